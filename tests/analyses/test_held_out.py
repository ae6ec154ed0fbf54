"""Held-out and validation participants never touch a training fit: spoiling them changes no bit of it."""

from dataclasses import replace

import numpy as np
import pytest

from icqf.analyses import FactorAnalysisMethod, ICQFMethod, ItemsMethod, SubscaleMethod
from icqf.analyses.methods import fit_part
from icqf.datasets import make_cohort
from icqf.resampling.folds import make_splits

SEARCHED = ICQFMethod((3, 6), (0.1, 0.5), n_splits=3)
FIXED = ICQFMethod((4,), (0.1,))
METHODS = [
    SEARCHED,
    FIXED,
    ICQFMethod((3, 6), (0.1,), n_splits=3, bounded=False, name="l1-NMF"),
    FactorAnalysisMethod(n_iter=3),
]


@pytest.fixture(scope="module")
def cohort():
    return make_cohort("hbn", 200)


@pytest.fixture(scope="module")
def rows(cohort):
    split = make_splits(cohort.questionnaire, None, sizes=[0.6], n_splits=1, random_state=0)[0]
    return split.training[0.6], split.validation, split.held_out


def learned(study, labels, method, rows):
    found = fit_part(study, labels, method, rows, 0)
    return {name: found[name] for name in ("n_components", "beta", "loadings")}


def spoiled(study, participants, rng):
    """Other answers, other gaps, other ages and sexes for some participants."""
    answers = study.answers.copy()
    answers.iloc[participants] = rng.choice([0.0, 1.0, 2.0, np.nan], (len(participants), answers.shape[1]))
    answers.iloc[participants, 0] = 2.0  # nobody without any answer
    confounds = study.confounds.copy()
    confounds.iloc[participants, 0] = rng.uniform(0, 90, len(participants))
    confounds.iloc[participants, 1] = rng.choice(["male", "female"], len(participants))
    return replace(study, answers=answers, confounds=confounds)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: repr(method)[:60])
def test_spoiling_everyone_else_changes_nothing_that_was_learned(cohort, rows, method):
    study, labels = cohort.questionnaire, cohort.diagnoses[["adhd"]].astype(float)
    others = np.concatenate(rows[1:])
    flipped = labels.copy()
    flipped.iloc[others] = 1 - flipped.iloc[others]
    before = learned(study, labels, method, rows)
    assert learned(spoiled(study, others, np.random.default_rng(1)), flipped, method, rows) == before


def test_spoiling_one_answer_at_a_time_changes_nothing_that_was_learned(cohort, rows):
    study = cohort.questionnaire.select(list(cohort.questionnaire.answers.columns[:30]))
    before = learned(study, None, FIXED, rows)
    rng = np.random.default_rng(2)
    for person in rng.permutation(np.concatenate(rows[1:]))[:40]:
        answers = study.answers.copy()
        item = int(rng.integers(answers.shape[1]))
        now = answers.iat[person, item]
        answers.iat[person, item] = np.nan if rng.random() < 0.3 else (0.0 if now != 0 else 2.0)
        assert learned(replace(study, answers=answers), None, FIXED, rows) == before


def test_spoiling_a_training_answer_does_change_it(cohort, rows):
    study = cohort.questionnaire
    answers = study.answers.copy()
    answers.iat[rows[0][0], 0] = 2.0 - np.nan_to_num(answers.iat[rows[0][0], 0])
    changed = learned(replace(study, answers=answers), None, FIXED, rows)
    assert changed != learned(study, None, FIXED, rows)


def test_the_labels_of_held_out_participants_are_only_looked_at_to_judge(cohort, rows):
    labels = cohort.diagnoses[["adhd"]].astype(float)
    flipped = labels.copy()
    flipped.iloc[rows[2]] = 1 - flipped.iloc[rows[2]]
    for method in (FIXED, SubscaleMethod(), ItemsMethod()):
        area = fit_part(cohort.questionnaire, labels, method, rows, 0)["auc"]["adhd"]
        mirrored = fit_part(cohort.questionnaire, flipped, method, rows, 0)["auc"]["adhd"]
        assert mirrored == pytest.approx(1 - area)  # the same ranking, read the other way round
