"""Methods: a fit that is not possible is told apart from a defect."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from icqf.analyses import FactorAnalysisMethod, ICQFMethod, ItemsMethod, Method, SubscaleMethod
from icqf.analyses.method_comparison import STRENGTHS, fit_part, held_out_auc, trained
from icqf.datasets import make_cohort
from icqf.errors import InputError
from icqf.resampling.folds import make_splits


@pytest.fixture(scope="module")
def study():
    return make_cohort("hbn", 60).questionnaire


@dataclass(frozen=True)
class Failing(Method):
    error: Exception
    name: str = "failing"

    def fit(self, training, *, random_state):
        raise self.error


def test_what_is_not_possible_is_told_in_words(study):
    assert trained(Failing(InputError("too few")), study, random_state=0) == "too few"


@pytest.mark.parametrize("error", [ValueError("shapes"), np.linalg.LinAlgError("singular"), TypeError("x")])
def test_a_defect_is_not_taken_for_a_fit_that_is_not_possible(study, error):
    with pytest.raises(type(error)):
        trained(Failing(error), study, random_state=0)


@pytest.mark.parametrize("varying", [0, 1])
def test_factor_analysis_says_when_too_few_items_vary(study, varying):
    answers = study.answers.copy()
    answers.iloc[:, varying:] = 1.0
    found = trained(FactorAnalysisMethod(), replace(study, answers=answers), random_state=0)
    assert found == (
        f"Of 119 items, {varying} vary among the training participants; factor analysis needs at least 2."
    )


# --- the classifier against scikit-learn's pipeline written out, and its behaviour at the edges -------


@pytest.fixture
def participants():
    rng = np.random.default_rng(0)
    scores = [rng.normal(size=(n, 5)) * (1, 10, 0.1, 1, 1) for n in (150, 60, 80)]
    direction = np.array([1.0, 0.05, 3.0, 0, 0])
    labels = [(part @ direction + rng.normal(size=len(part)) > 0.8).astype(float) for part in scores]
    return scores, labels


def test_it_is_the_pipeline_written_out(participants):
    (X, X_validation, X_held_out), (y, y_validation, y_held_out) = participants
    best, area = -1.0, np.nan
    for C in STRENGTHS:
        model = make_pipeline(
            StandardScaler(), LogisticRegression(C=C, class_weight="balanced", max_iter=5000, tol=1e-10)
        ).fit(X, y)
        here = roc_auc_score(y_validation, model.decision_function(X_validation))
        if here > best:
            best, area = here, roc_auc_score(y_held_out, model.decision_function(X_held_out))
    assert held_out_auc(*participants) == pytest.approx(area, abs=1e-3)


def test_the_units_of_the_scores_do_not_matter(participants):
    scores, labels = participants
    assert held_out_auc([part * 1000 + 7 for part in scores], labels) == pytest.approx(
        held_out_auc(*participants)
    )


def test_participants_whose_label_is_not_known_are_left_out(participants):
    scores, labels = participants
    more = [np.vstack([part, np.full((3, 5), 99.0)]) for part in scores[1:]]
    unknown = [np.concatenate([label, [np.nan] * 3]) for label in labels[1:]]
    assert held_out_auc([scores[0], *more], [labels[0], *unknown]) == held_out_auc(*participants)


def test_a_missing_score_counts_as_the_training_mean(participants):
    scores, labels = participants
    gap, filled = scores[2].copy(), scores[2].copy()
    gap[0, 1], filled[0, 1] = np.nan, scores[0][:, 1].mean()
    assert held_out_auc([*scores[:2], gap], labels) == held_out_auc([*scores[:2], filled], labels)


def test_there_is_no_area_without_both_cases_and_controls(participants):
    scores, labels = participants
    for at in (0, 2):
        alike = [np.zeros_like(label) if at == which else label for which, label in enumerate(labels)]
        assert np.isnan(held_out_auc(scores, alike))
    alike = [labels[0], np.zeros_like(labels[1]), labels[2]]
    assert 0.5 < held_out_auc(scores, alike) <= 1  # no tuning then


def test_scores_that_are_all_alike_tell_nothing(participants):
    _, labels = participants
    assert held_out_auc([np.ones((len(label), 2)) for label in labels], labels) == 0.5


# --- held-out and validation participants never touch a training fit: spoiling them changes no bit of it


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
