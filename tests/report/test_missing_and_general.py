"""The sections on missing answers and on a general factor."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF
from icqf.data.check import check
from icqf.report import analyse, as_json, as_markdown, from_json, renamed, report_of
from icqf.report.sections import sections_of
from icqf.report.sections.sample import missing
from icqf.report.words import changed


def section(report, key):
    text = as_markdown(report)
    start = text.index(f"## {key}")
    return text[start : text.index("\n## ", start + 3)]


def test_missing_answers_are_counted_tested_and_moved(report):
    text = section(report, "Missing answers")
    assert (
        "participants left something out" in text
        and "depends on age or sex" in text
        and "depends on scores" in text
    )
    assert "Robust: were the missing answers up to 1 SD higher or lower" in text
    assert [row.delta for row in report.missing.sensitivity] == [-1, -0.5, -0.25, 0, 0.25, 0.5, 1]
    assert "−0.25 SD" in text and "+1.00 SD" in text


def test_both_are_kept_and_renamed(report):
    again = from_json(as_json(report))
    assert section(again, "Missing answers") == section(report, "Missing answers")
    names = [f"New {r}" for r in range(len(report.model.factors))]
    text = as_markdown(renamed(again, names))
    assert (
        "| New 0 |" in text[text.index("## A general factor") :] and report.model.factors[0].name not in text
    )


def test_a_finding_names_the_factor_and_the_side(report):
    rows = [changed(row, p_adjusted=0.6) for row in report.missing.scores]
    rows[0] = changed(rows[0], difference=-0.12, p_adjusted=0.01)
    found = changed(report, missing=changed(report.missing, scores=tuple(rows)))
    text = " ".join(each for each in missing.make(found) if isinstance(each, str))
    assert f"0.12 lower on {report.model.factors[0].name} (p = 0.010)" in text
    assert "not missing at random" in text


def test_large_studies_say_how_many_were_refitted(report):
    found = changed(report, missing=changed(report.missing, n_fitted=20_000, n_refitted=5000))
    assert "5000 participants drawn at random" in missing.make(found)[-1].parts[-1]


def test_the_general_factor_is_described_and_not_believed(report):
    text = section(report, "A general factor")
    assert "correlate" in text and "None of this shows that a general factor" in text
    assert report.general.variance_one < report.general.variance
    if len(report.model.factors) > 2:
        assert 0 < report.general.omega_hierarchical < report.general.omega_total < 1
    assert np.isfinite(report.general.mean)


def test_what_was_not_computed_is_left_out(report):
    keys = {each.key for each in sections_of(report)}
    without = {each.key for each in sections_of(changed(report, missing=None, general=None))}
    assert keys - without == {"missing", "general"}


@pytest.mark.filterwarnings("ignore::icqf.data.validate.EmptyRowsWarning")
@pytest.mark.parametrize("aside", ["nothing", "not asked", "weights"])
def test_check_and_report_count_missing_answers_alike(questionnaire, aside):
    """Participants without answers or weight, and items that were not asked, do not count."""
    study = questionnaire.select(list(questionnaire.answers)[:8]).take(np.arange(200))
    answers = study.answers.copy()
    answers.iloc[:30] = np.nan
    answers.iloc[30:70, :4] = np.nan
    structural, weights = None, None
    if aside == "not asked":
        structural = pd.DataFrame(False, answers.index, answers.columns)
        structural.iloc[30:60, :4] = True
    if aside == "weights":
        weights = pd.Series(np.where(np.arange(200) < 50, 0.0, 1.0), answers.index)
    study = replace(study, answers=answers, structural=structural, weights=weights)
    report = report_of(analyse(ICQF(2, n_init=1).fit(study), study, n_bootstrap=2))
    share = f"{100 * report.sample.share_missing:.1f}"
    assert check(study).of("missing")[0].message.startswith(f"{share} % of the answers are missing.")
    assert f"{share}% of the answers are missing" in section(report, "Missing answers")
    assert f"{share}% of the answers are missing" in section(report, "The sample")
    assert ("without survey weights" in as_markdown(report)) == (aside == "weights")
    first = report.items[0]
    rows = {"nothing": 170, "not asked": 140, "weights": 150}[aside]
    assert first.share_missing == pytest.approx(1 - first.n_answered / rows)
