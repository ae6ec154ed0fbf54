"""0 for "no answer" on a scale from 1 is found, with a remedy; a rare answer that fits the others is not."""

import numpy as np
import pandas as pd
import pytest

from icqf.io import Table, suggest_codebook
from icqf.workflow import StudyOptions, check_table
from icqf.workflow.check import remedies_of

OPTIONS = StudyOptions.of({"answers": "a.csv"})


def answers(n=400, m=20, levels=5, shift=0.0, loading=0.6, seed=0):
    """Answers 0, 1, … with three factors, some items reversed; a shift makes an end rare."""
    rng = np.random.default_rng(seed)
    sign = np.where(np.arange(m) % 5 == 4, -1, 1)
    scores = rng.normal(size=(n, 3))[:, np.arange(m) % 3] * sign
    latent = loading * scores + np.sqrt(1 - loading**2) * rng.normal(size=(n, m)) + shift
    return np.searchsorted(np.linspace(-1.5, 1.5, levels - 1), latent + rng.normal(0, 0.2, m)).astype(float)


def with_code(values, code, share=0.005, seed=1):
    values = values.copy()
    values[np.random.default_rng(seed).random(values.shape) < share] = code
    return values


def frame(values, prefix="q"):
    return pd.DataFrame(values, columns=[f"{prefix}{j + 1}" for j in range(values.shape[1])])


@pytest.mark.parametrize(
    ("values", "code"),
    [(answers() + 1, 0), (answers(levels=7) + 1, 0), (answers(levels=4), -1), (answers() + 1, 6)],
    ids=["0 on 1-5", "0 on 1-7", "-1 on 0-3", "6 on 1-5"],
)
def test_a_code_beyond_the_scale_is_one_finding_with_a_remedy(values, code):
    found = check_table(frame(with_code(values, code)))
    (finding,) = found.of("end-code")
    assert finding.severity == "warning" and not found.must_fix
    assert f"missing_codes=[{code}]" in finding.remedy
    (remedy,) = remedies_of(finding, found, OPTIONS)
    assert remedy.label == f"Treat {code} as missing"
    assert remedy.applied(OPTIONS).missing_codes == (code,)
    (missing,) = found.of("missing")
    assert missing.message == f"No answer is missing, unless {code} means no answer."
    again = check_table(frame(with_code(values, code)), missing_codes=[code])
    assert not again.of("end-code")
    assert again.overview.ranges[0].low == values.min() and again.overview.ranges[0].high == values.max()


@pytest.mark.parametrize("shift", [1.0, 1.3, 1.6])
@pytest.mark.parametrize("levels", [3, 4, 5, 11])
def test_an_extreme_answer_that_hardly_anybody_gives_is_an_answer(levels, shift):
    for sign in (1, -1):  # a rare lowest answer, and a rare highest one
        assert not check_table(frame(answers(levels=levels, shift=sign * shift))).of("end-code")


def test_yes_or_no_has_no_such_code():
    assert not check_table(frame((answers(shift=1.5) > 1).astype(float))).of("end-code")


def test_a_declared_range_says_that_the_value_is_an_answer():
    from icqf.data import Item

    table = frame(with_code(answers() + 1, 0))
    codebook = [Item(name, min=0, max=5) for name in table]
    assert not check_table(table, codebook=codebook).of("end-code")


def test_where_other_items_have_the_value_as_an_answer_a_codebook_is_offered():
    """A missing code for all items would take the answer 0 from those who gave it."""
    table = frame(with_code(answers() + 1, 0)).join(frame(answers(levels=3, seed=5), "symptom_"))
    found = check_table(table)
    (finding,) = found.of("end-code")
    (remedy,) = remedies_of(finding, found, OPTIONS)
    assert remedy.codebook and not remedy.changes and "codebook" in finding.remedy
    guess = {item.name: item for item in suggest_codebook(Table(table, "a.csv", np.arange(len(table)))).items}
    assert (guess["q1"].min, guess["q1"].max, guess["q1"].missing_codes) == (1, 5, (0,))
    assert (guess["symptom_1"].min, guess["symptom_1"].missing_codes) == (0, ())


def test_sixty_like_findings_are_one():
    table = frame(answers(n=100, m=70))
    table.iloc[5:, :60] = np.nan
    found = check_table(table)
    (finding,) = found.of("nearly-empty")
    assert len(finding.fields["items"]) == 60 and "60 items" in finding.message
    (remedy,) = remedies_of(finding, found, OPTIONS)
    assert remedy.label == "Exclude 60 items"
