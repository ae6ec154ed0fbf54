"""The simulated pair has the marginals its documentation states, one shared truth, and no surprises."""

import doctest
import hashlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from icqf.baselines.correlation import item_moments
from icqf.baselines.factor_analysis import extract
from icqf.datasets.simulated import FACTORS, LIABILITIES, POPULATIONS, make_cohort
from icqf.errors import InputError

LIMITS = {
    "hbn": {"mean": (0.33, 0.37), "zeros": (0.67, 0.72), "twos": (0.035, 0.055), "missing": (0.02, 0.035)},
    "abcd": {"mean": (0.16, 0.19), "zeros": (0.81, 0.86), "twos": (0.008, 0.015), "missing": (0.01, 0.015)},
}

# Of the answers, ages and diagnoses of 300 participants with random_state=2, before there were minor factors.
OLD = {"hbn": "9e812634b3698bab", "abcd": "e1d776487248944a"}


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


# --- minor factors ----------------------------------------------------------------------------------------


def fingerprint(cohort):
    parts = (cohort.questionnaire.answers, cohort.questionnaire.confounds["age"], cohort.diagnoses)
    joined = b"".join(np.nan_to_num(part.to_numpy(dtype=float), nan=9).tobytes() for part in parts)
    return hashlib.sha256(joined).hexdigest()[:16]


@pytest.mark.parametrize("minor", [None, 0, 0.0, "none"])
def test_without_minor_factors_the_cohorts_are_the_old_ones_bit_for_bit(minor):
    cohort = make_cohort("hbn", 300, minor=minor, random_state=2)
    assert fingerprint(cohort) == OLD["hbn"]
    assert fingerprint(make_cohort("abcd", 300, minor=minor, random_state=2)) == OLD["abcd"]
    assert cohort.truth.minor_loadings.shape == (119, 0) and cohort.truth.minor_scores.shape == (300, 0)
    assert cohort.truth.n_major == 8


@pytest.mark.parametrize(("minor", "share"), [("fair", 0.10), ("poor", 0.20), (0.5, 0.5)])
def test_minor_factors_carry_the_share_that_was_asked_for(minor, share):
    plain, cohort = make_cohort("hbn", 4000), make_cohort("hbn", 4000, minor=minor)
    truth, before = cohort.truth, plain.truth.noise**2
    asked = (truth.minor_loadings**2).sum(axis=1)
    np.testing.assert_allclose(asked / before, share)
    np.testing.assert_allclose(asked + truth.noise**2, before)
    realised = (truth.minor_scores.to_numpy() @ truth.minor_loadings.to_numpy().T).var(axis=0)
    assert (realised / before).mean() == pytest.approx(share, rel=0.02)
    np.testing.assert_allclose(realised / before, share, rtol=0.15)
    # None of them stands out: the first carries a few percent of what all carry, and all are needed.
    each = (truth.minor_loadings**2).sum() / asked.sum()
    assert each.max() < 0.06 and (each > 0).all()


def test_minor_factors_change_the_answers_and_nothing_else():
    plain, cohort = make_cohort("abcd", 3000), make_cohort("abcd", 3000, minor="poor")
    pd.testing.assert_frame_equal(plain.truth.loadings, cohort.truth.loadings)
    pd.testing.assert_frame_equal(plain.truth.scores, cohort.truth.scores)
    pd.testing.assert_frame_equal(plain.diagnoses, cohort.diagnoses)
    pd.testing.assert_frame_equal(plain.questionnaire.confounds, cohort.questionnaire.confounds)
    before, after = plain.questionnaire.answers, cohort.questionnaire.answers
    assert before.isna().equals(after.isna())
    changed = (before != after) & before.notna()
    assert 0.02 < changed.to_numpy().mean() < 0.2
    # The noise is as large as before, only shared: so the answers keep their marginals.
    np.testing.assert_allclose(before.mean(), after.mean(), atol=0.03)
    assert set(np.unique(after.to_numpy()[after.notna()])) == {0, 1, 2}
    assert cohort.questionnaire.notes == ("Simulated (abcd, minor=0.2, random_state=0).",)


@pytest.mark.parametrize("name", ["hbn", "abcd"])
def test_every_minor_factor_is_weaker_than_every_major_one(name):
    cohort = make_cohort(name, 20000, minor="poor")
    truth = cohort.truth
    major = truth.scores.to_numpy() @ truth.loadings.to_numpy().T
    minor = truth.minor_loadings.to_numpy() @ truth.minor_loadings.to_numpy().T
    total = np.cov(major.T) + minor + np.diag(truth.noise**2)
    scale = np.outer(*2 * [np.sqrt(np.diag(total))])
    # By principal axes of what they make items share, which is what eigenvalue rules see.
    weakest = np.linalg.eigvalsh(np.cov(major.T) / scale)[-8]
    assert np.linalg.eigvalsh(minor / scale)[-1] < weakest


def test_minor_factors_leave_correlations_that_eight_factors_do_not_explain():
    def left(minor):
        answers = make_cohort("hbn", 4000, minor=minor).questionnaire.answers
        R = item_moments(answers).correlation
        L = extract(R, 8).loadings
        return np.sqrt(np.mean((R - L @ L.T)[np.tril_indices(119, -1)] ** 2))

    none, fair, poor = (left(minor) for minor in ("none", "fair", "poor"))
    assert none < fair < poor


def test_minor_loadings_are_those_of_the_questionnaire():
    first = make_cohort("hbn", 50, minor=0.2, random_state=1)
    other = make_cohort("abcd", 60, minor=0.2, random_state=2)
    pd.testing.assert_frame_equal(first.truth.minor_loadings, other.truth.minor_loadings)
    again = make_cohort("hbn", 50, minor=0.2, random_state=1)
    pd.testing.assert_frame_equal(first.questionnaire.answers, again.questionnaire.answers)
    assert abs(np.corrcoef(first.truth.minor_scores.iloc[:, 0], first.truth.scores.iloc[:, 0])[0, 1]) < 0.5


@pytest.mark.parametrize("minor", [-0.1, 1, 1.5, float("nan"), True, [0.1]])
def test_a_share_that_is_none(minor):
    with pytest.raises(InputError, match="a share of at least 0 and below 1"):
        make_cohort("hbn", 10, minor=minor)


def test_a_word_that_is_not_known():
    with pytest.raises(InputError, match=r"choose one of 'none', 'fair', 'poor'.*Did you mean 'poor'"):
        make_cohort("hbn", 10, minor="por")


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
