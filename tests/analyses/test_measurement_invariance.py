"""Groups: told apart in 5 of 100 studies of one population, and where loadings or levels really differ."""

from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF, InputError
from icqf.analyses import invariance
from icqf.analyses.measurement_invariance import Contrasts, level_of, rescaled
from icqf.data import Questionnaire
from icqf.datasets import load_bfi, load_demo

GOLDEN = Path(__file__).parent / "golden"
QUICK = {"n_permutations": 19, "n_resamples": 4}


def study(seed=0, n=240, m=12):
    """Answers 0–4 behind two factors, six items each, and two groups of one population."""
    rng = np.random.default_rng(seed)
    loadings = np.zeros((2, m))
    loadings[0, : m // 2], loadings[1, m // 2 :] = 4, 4
    loadings *= rng.uniform(0.5, 1, m)
    answers = np.rint(np.clip(rng.random((n, 2)) @ loadings + rng.normal(0, 0.6, (n, m)), 0, 4))
    return answers, np.where(np.arange(n) < n // 2, "a", "b")


def questionnaire(answers):
    return Questionnaire.of(
        pd.DataFrame(answers, columns=[f"q{j}" for j in range(answers.shape[1])]), item_range=(0, 4)
    )


def compared(answers, group, **more):
    asked = questionnaire(answers)
    return invariance(ICQF(2, beta=0.1).fit(asked), asked, by=group, **{**QUICK, **more})


# --- the test ---------------------------------------------------------------------------------------------


def made_up(rng, k=3, m=20, n=39):
    """Contrasts whose observed statistics are drawn as the shuffled ones are."""
    scale = rng.uniform(0.1, 10, (1, m))
    apart = [rng.chisquare(2, (n + 1, k)), rng.chisquare(2, (n + 1, m)) * scale, rng.chisquare(2, (n + 1, m))]
    nothing = np.zeros(0)
    first, others = tuple(part[0] for part in apart), tuple(part[1:] for part in apart)
    return Contrasts(nothing, nothing, nothing, nothing, nothing, first, others, 0)


def test_five_of_a_hundred_whatever_the_number_of_factors():
    rng = np.random.default_rng(0)
    found = np.array([made_up(rng, k).p_factors().min() <= 0.05 for k in (1, 4, 12) for _ in range(1500)])
    assert abs(found.mean() - 0.05) < 0.01


def test_the_tests_of_items_are_uniform_where_nothing_differs():
    rng = np.random.default_rng(1)
    p = np.concatenate([made_up(rng).p_items() for _ in range(200)])
    assert abs((p <= 0.05).mean() - 0.05) < 0.012 and abs((p <= 0.5).mean() - 0.5) < 0.04


def test_no_p_is_zero_or_above_one():
    found = made_up(np.random.default_rng(2))
    for p in (found.p_factors(), found.p_items(), found.p_levels()):
        assert ((p > 0) & (p <= 1)).all()


def test_the_length_of_a_factor_does_not_count():
    common = np.random.default_rng(0).random((2, 5))
    np.testing.assert_allclose(rescaled(common * [[3.0], [0.2]], common), common)


def test_levels_leave_missing_answers_out():
    left = np.array([[1.0, np.nan], [3.0, 2.0], [5.0, 6.0]])
    np.testing.assert_allclose(level_of(left, np.array([0, 0, 1])), [[2.0, 2.0], [5.0, 6.0]])


# --- groups that differ -----------------------------------------------------------------------------------


def test_one_population(recwarn):
    answers, group = study()
    found = compared(answers, group, n_permutations=39)
    assert found.verdict == "same" and not found.items["flagged"].any()
    assert found.sizes == {"a": 120, "b": 120}
    assert (found.factors["congruence"] > 0.95).all() and (found.factors["found"] > 0.9).all()


def test_items_that_load_elsewhere_in_one_group():
    answers, group = study()
    answers[group == "b", 0], answers[group == "b", 6] = (
        answers[group == "b", 6].copy(), answers[group == "b", 0].copy(),
    )  # fmt: skip
    found = compared(answers, group, n_permutations=39)
    assert found.verdict == "different"
    assert {"q0", "q6"} <= {*found.items.index[found.items["flagged"]]}
    part = found.loadings.query("item == 'q0'").pivot_table("loading", "factor", "group", observed=True)
    assert part.loc[found.items.loc["q0", "factor"]].diff().abs().max() > 1


def test_an_item_answered_higher_by_one_group():
    answers, group = study()
    answers[group == "b", 3] = np.minimum(answers[group == "b", 3] + 1, 4)
    found = compared(answers, group, n_permutations=39)
    assert found.items.loc["q3", "level_flagged"] and found.items.loc["q3", "level_difference"] > 0.4
    assert found.items["level_flagged"].sum() <= 3


def test_a_confound_of_the_model_is_no_reason_to_miss_a_level():
    answers, group = study()
    answers[group == "b", 3] = np.minimum(answers[group == "b", 3] + 1, 4)
    asked = questionnaire(answers)
    asked = asked.with_confounds(pd.DataFrame({"sex": group}, index=asked.answers.index))
    found = invariance(ICQF(2, beta=0.1).fit(asked), asked, by="sex", **{**QUICK, "n_permutations": 39})
    assert found.items.loc["q3", "level_flagged"] and found.by == "sex"


def test_intervals_hold_the_loadings():
    found = compared(*study(), n_resamples=20)
    table = found.loadings
    assert ((table["low"] <= table["loading"]) & (table["loading"] <= table["high"] + 1e-9)).all()
    assert table["low"].min() >= 0 and len(table) == 2 * 2 * 12


def test_three_groups():
    answers, _ = study(n=300)
    found = compared(answers, np.arange(300) % 3)
    assert found.sizes == {"0": 100, "1": 100, "2": 100} and "3 groups" in found.sentences[0]


def test_factors_keep_the_names_of_the_model():
    answers, group = study()
    asked = questionnaire(answers)
    model = ICQF(2, beta=0.1).fit(asked).name_factors(["Mood", "Temper"])
    found = invariance(model, asked, by=group, **QUICK)
    assert list(found.factors.index) == ["Mood", "Temper"] and {*found.items["factor"]} <= {"Mood", "Temper"}


# --- how it runs ------------------------------------------------------------------------------------------


def test_processes_and_interruptions_change_nothing(tmp_path):
    answers, group = study(n=120)
    whole = compared(answers, group)
    told = []
    again = compared(answers, group, n_jobs=2, checkpoint=tmp_path / "journal")
    resumed = compared(answers, group, checkpoint=tmp_path / "journal", callback=told.append)
    for other in (again, resumed):
        pd.testing.assert_frame_equal(other.factors, whole.factors)
        pd.testing.assert_frame_equal(other.items, whole.items)
        pd.testing.assert_frame_equal(other.loadings, whole.loadings)
    assert told[0].done == told[0].total  # everything was in the journal


@pytest.mark.parametrize("other", ["groups", "answers", "random_state", "beta"])
def test_nothing_of_other_data_or_settings_is_taken_from_a_journal(tmp_path, other):
    answers, group = study(n=60)

    def run(changed=False, **more):
        asked = questionnaire(4 - answers if changed and other == "answers" else answers)
        labels = group[::-1] if changed and other == "groups" else group
        beta = 0.3 if changed and other == "beta" else 0.1
        seed = {"random_state": 1} if changed and other == "random_state" else {}
        return invariance(ICQF(2, beta=beta).fit(asked), asked, by=labels, **{**QUICK, **seed, **more})

    run(checkpoint=tmp_path / "journal")
    with suppress(InputError):  # a journal in which nothing belongs to this run is refused
        continued = run(changed=True, checkpoint=tmp_path / "journal")
        plain = run(changed=True)
        pd.testing.assert_frame_equal(continued.items, plain.items)
        pd.testing.assert_frame_equal(continued.factors, plain.factors)


def test_who_has_no_group_is_left_out():
    answers, group = study()
    labels = pd.Series(group, name="site").astype(object)
    labels[:7] = None
    with pytest.warns(UserWarning, match="7 participants without a group in 'site' are left out"):
        found = compared(answers, labels)
    assert found.sizes == {"a": 113, "b": 120}


def changed(group, n, value):
    labels = group.astype(object)
    labels[:n] = value
    return labels


@pytest.mark.parametrize(
    ("by", "said"),
    [
        (
            lambda group: changed(group, 10, "few"),
            "The group 'few' of 'group' has 10 participants",
        ),
        (lambda group: np.full(len(group), "all"), "There is nothing to compare: everybody has 'all'"),
        (lambda group: np.full(len(group), None), "There is nothing to compare: nobody has a value"),
        (lambda group: np.arange(len(group)), "has 240 different values .* too many groups"),
        (lambda group: group[:-1], "by holds 239 labels for 240 participants"),
        (lambda group: "q3", "by names 'q3', which is an item of the model"),
        (lambda group: "site", "by names 'site', which is not a confound of the questionnaire"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*without a group")
def test_what_is_no_group(by, said):
    answers, group = study()
    with pytest.raises(InputError, match=said):
        compared(answers, by(group))


def test_too_few_permutations():
    with pytest.raises(InputError, match="n_permutations must be a whole number of at least 19, not 5"):
        compared(*study(), n_permutations=5)


# --- beside lavaan ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_levels_and_loadings_of_bfi_beside_lavaan():
    """R lavaan 0.6-14 on the same answers (golden/make_lavaan_bfi.R): loadings alike, intercepts not."""
    steps = pd.read_csv(GOLDEN / "lavaan_bfi.csv").set_index("step")
    items = pd.read_csv(GOLDEN / "lavaan_bfi_items.csv").set_index(["step", "item"])
    assert steps.loc["metric", "p"] > 0.05 and steps.loc["scalar", "p"] < 1e-6
    bfi = load_bfi()
    asked = bfi.with_confounds(None)
    found = invariance(
        ICQF(5, beta=0.1).fit(asked), asked, by=bfi.confounds["sex"], n_permutations=99, n_resamples=2
    )
    assert (found.factors["verdict"] == "same").sum() >= 4
    theirs = {name for name, p in items.loc["scalar", "p"].items() if p < 0.01}
    ours = {*found.items.index[found.items["level_flagged"]]}
    assert len(theirs) == 11 and len(theirs & ours) >= 9
    assert found.items["level_difference"].idxmax() == items.loc["scalar", "x2"].idxmax() == "N5"


def test_the_demo_by_sex():
    demo = load_demo().select(["q00*", "q01*"])
    found = invariance(ICQF(2).fit(demo), demo, by="sex", **QUICK)
    assert found.sizes == {"female": 302, "male": 298}
