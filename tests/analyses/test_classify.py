"""The classifier against scikit-learn's pipeline written out, and its behaviour at the edges."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from icqf.analyses.methods import STRENGTHS, held_out_auc


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
