"""The simulated pair has the marginals its documentation states, one shared truth, and no surprises."""

import doctest
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from icqf.datasets.cohort import FACTORS, LIABILITIES, POPULATIONS, make_cohort
from icqf.errors import InputError

LIMITS = {
    "hbn": {"mean": (0.33, 0.37), "zeros": (0.67, 0.72), "twos": (0.035, 0.055), "missing": (0.02, 0.035)},
    "abcd": {"mean": (0.16, 0.19), "zeros": (0.81, 0.86), "twos": (0.008, 0.015), "missing": (0.01, 0.015)},
}


@pytest.fixture(scope="module", params=["hbn", "abcd"])
def cohort(request):
    return make_cohort(request.param)


def test_shapes_names_and_ranges(cohort):
    study, truth = cohort.questionnaire, cohort.truth
    n = {"hbn": 1335, "abcd": 11681}[cohort.name]
    assert study.answers.shape == (n, 119) and cohort.diagnoses.shape == (n, 11)
    assert {item.subscale for item in study.items} == set(FACTORS) and not any(i.reverse for i in study.items)
    assert len({item.wording for item in study.items}) == 119
    assert set(np.unique(study.answers.to_numpy()[study.answers.notna()])) == {0, 1, 2}
    assert set(np.unique(cohort.diagnoses)) == {0, 1} and list(cohort.diagnoses) == list(LIABILITIES)
    for table in (study.confounds, cohort.diagnoses, truth.scores):
        assert table.index.equals(study.answers.index)
    for table in (truth.loadings, truth.effects, truth.noise):
        assert list(table.index) == list(study.answers)
    assert truth.loadings.to_numpy().min() == 0 and truth.loadings.to_numpy().max() <= 2
    assert truth.scores.to_numpy().min() == 0 and truth.scores.to_numpy().max() <= 1
    assert (truth.effects >= 0).all(axis=None)


def test_marginals_are_those_in_the_documentation(cohort):
    values = cohort.questionnaire.answers.to_numpy()
    known = values[~np.isnan(values)]
    found = {
        "mean": known.mean(),
        "zeros": (known == 0).mean(),
        "twos": (known == 2).mean(),
        "missing": np.isnan(values).mean(),
    }
    for name, (low, high) in LIMITS[cohort.name].items():
        assert low <= found[name] <= high, name
    item_means = cohort.questionnaire.answers.mean()
    assert item_means.min() < 0.06 and item_means.max() > 0.5
    prevalence = cohort.diagnoses.mean().to_numpy()
    np.testing.assert_allclose(prevalence, POPULATIONS[cohort.name].prevalence, atol=1 / len(values))
    count = cohort.diagnoses.sum(axis=1)
    assert count.var() > 1.5 * (prevalence * (1 - prevalence)).sum(), "diagnoses come together"


def test_the_populations_differ_as_stated():
    hbn, abcd = (make_cohort(name).questionnaire.confounds for name in ("hbn", "abcd"))
    assert hbn["age"].between(5, 21).all() and abcd["age"].between(9, 10.999).all()
    assert hbn["age"].mean() == pytest.approx(10.7, abs=0.3)
    assert (hbn["sex"] == "male").mean() == pytest.approx(0.64, abs=0.03)
    assert (abcd["sex"] == "male").mean() == pytest.approx(0.52, abs=0.02)


def test_both_studies_share_the_true_questionnaire():
    hbn, abcd = make_cohort("hbn", 50), make_cohort("abcd", 60, random_state=5)
    pd.testing.assert_frame_equal(hbn.truth.loadings, abcd.truth.loadings)
    pd.testing.assert_frame_equal(hbn.truth.effects, abcd.truth.effects)
    assert hbn.questionnaire.items == abcd.questionnaire.items
    loads = hbn.truth.loadings > 0
    assert loads.sum(axis=1).isin([1, 2]).all() and (loads.sum(axis=1) == 2).sum() >= 25
    assert (loads.sum() >= 12).all()


def test_same_seed_same_people():
    first, again, other = (make_cohort("hbn", 80, random_state=seed) for seed in (3, 3, 4))
    pd.testing.assert_frame_equal(first.questionnaire.answers, again.questionnaire.answers)
    pd.testing.assert_frame_equal(first.diagnoses, again.diagnoses)
    pd.testing.assert_frame_equal(first.truth.scores, again.truth.scores)
    assert not first.questionnaire.answers.equals(other.questionnaire.answers)
    community = make_cohort("abcd", 80, random_state=3)
    assert abs(np.corrcoef(first.truth.scores.iloc[:, 0], community.truth.scores.iloc[:, 0])[0, 1]) < 0.4


def test_the_truth_makes_the_answers():
    cohort = make_cohort("hbn")
    truth, confounds = cohort.truth, cohort.questionnaire.confounds
    old = (confounds["age"] - 5) / 16
    male = (confounds["sex"] == "male").astype(float)
    design = np.column_stack([np.ones(len(old)), old, 1 - old, male, 1 - male])
    level = truth.scores.to_numpy() @ truth.loadings.to_numpy().T + design @ truth.effects.to_numpy().T
    values = cohort.questionnaire.answers.to_numpy()
    known = ~np.isnan(values)
    assert np.corrcoef(level[known], values[known])[0, 1] > 0.65
    residual = np.where(known, values - level, 0)
    assert abs(residual[known].mean()) < 0.1
    main = truth.loadings.idxmax(axis=1)
    item = main.index[main == "Attention Problems"][0]
    high = truth.scores["Attention Problems"] > 0.7
    answers = cohort.questionnaire.answers[item]
    assert answers[high].mean() > answers[~high].mean() + 0.3


def test_factors_drive_their_diagnoses_and_age_drives_gaps():
    cohort = make_cohort("hbn")
    scores, diagnoses = cohort.truth.scores, cohort.diagnoses
    for label, factor in (("adhd", "Attention Problems"), ("depression", "Withdrawn/Depressed")):
        given = diagnoses[label] == 1
        assert scores.loc[given, factor].mean() > scores.loc[~given, factor].mean() + 0.1
    missing, age = cohort.questionnaire.answers.isna(), cohort.questionnaire.confounds["age"]
    wording = {item.wording: item.name for item in cohort.questionnaire.items}
    alcohol, light = missing[wording["Drinks alcohol"]], missing[wording["Needs a light on to fall asleep"]]
    assert alcohol[age < 8].mean() > 0.05 + alcohol[age > 14].mean()
    assert light[age > 16].mean() > 0.05 + light[age < 12].mean()


def test_a_single_participant_and_wrong_wishes():
    assert make_cohort("abcd", 1).questionnaire.answers.shape == (1, 119)
    with pytest.raises(InputError, match=r"no simulated cohort 'HBN'; choose one of 'hbn', 'abcd'"):
        make_cohort("HBN")
    for n in (0, 2.5, True):
        with pytest.raises(InputError, match="whole number of participants"):
            make_cohort("hbn", n)


def test_the_documentation_states_what_is_simulated():
    page = Path(__file__).parents[2] / "docs" / "simulated-cohorts.md"
    assert doctest.testfile(str(page), module_relative=False, encoding="utf-8").failed == 0
    text = page.read_text(encoding="utf-8")
    rows = [line.split("|")[-3:-1] for line in text.splitlines() if line.count("|") == 6][2:]
    stated = np.array([[float(cell.strip(" %")) / 100 for cell in row] for row in rows])
    np.testing.assert_allclose(stated.T, [population.prevalence for population in POPULATIONS.values()])
