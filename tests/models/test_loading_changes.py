"""Loadings and levels of items over the visits, told apart."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from icqf.models import LongitudinalICQF
from icqf.models.longitudinal import expected_answers


def yes_no_visits(*, raised=0.0, weakened=1.0, seed=0, n=250, m=12):
    """Three visits with yes/no items; at the last, q00 to q05 are raised, or weakened, at equal scores."""
    rng = np.random.default_rng(seed)
    own = np.repeat([0, 1], m // 2)[rng.permutation(m)]
    loadings = np.where(np.arange(2)[:, None] == own, rng.uniform(0.6, 1, m), 0)
    parts = []
    for visit in range(3):
        scores = np.clip(0.35 + 0.3 * rng.normal(size=(n, 2)), 0, 1)
        first = (np.arange(m) < m // 2) & (visit == 2)
        clean = scores @ loadings * np.where(first, weakened, 1.0) + raised * first
        answers = (clean + rng.normal(0, 0.18, clean.shape) > 0.4).astype(float)
        part = pd.DataFrame(answers, columns=[f"q{j:02d}" for j in range(m)])
        part.insert(0, "participant", [f"P{i:03d}" for i in range(n)])
        parts.append(part.assign(visit=visit))
    return pd.concat(parts, ignore_index=True)


def changes_of(visits):
    model = LongitudinalICQF(2, age="visit", item_range=(0, 1), n_init=1).fit(visits)
    return model.changes(visits, n_permutations=99)


def test_items_that_rise_at_equal_scores_change_their_level_and_not_their_loadings():
    found = changes_of(yes_no_visits(raised=0.15))
    assert not found.factors["changes"].any()
    raised = found.levels.iloc[:6].query("changes")
    assert len(raised) >= 3 and (raised["highest"] == "2").all()
    assert "items are answered higher or lower at the same scores" in str(found)


def test_items_that_rise_less_steeply_change_their_loadings():
    assert changes_of(yes_no_visits(weakened=0.3)).factors["changes"].any()


def test_where_nothing_changes_nothing_is_said_to():
    found = changes_of(yes_no_visits())
    assert not found.factors["changes"].any() and not found.levels["changes"].any()


def test_the_curve_of_a_yes_no_item_is_that_of_a_plain_logistic_model():
    rng = np.random.default_rng(0)
    known = rng.normal(size=(200, 2))
    answers = (known @ [1.0, -0.5] + rng.logistic(size=200) > 0.3).astype(float)
    mean, deviation = expected_answers(answers, known)
    plain = LogisticRegression(C=2.0, tol=1e-8).fit(known, answers).predict_proba(known)[:, 1]
    np.testing.assert_allclose(mean, plain, atol=1e-4)
    np.testing.assert_allclose(deviation, np.sqrt(plain * (1 - plain)), atol=1e-4)


@pytest.mark.parametrize("steps", [4, 1000])
def test_the_curve_of_a_graded_item_follows_a_shift_to_the_end_of_the_range(steps):
    rng = np.random.default_rng(1)
    known = np.column_stack([rng.normal(size=1000), np.repeat([0.0, 1.0], 500)])
    answers = np.clip(np.rint(steps * (0.4 + known @ [0.2, 0.4] + rng.normal(0, 0.15, 1000))), 0, steps)
    mean, _ = expected_answers(answers, known)
    assert (answers[500:] == steps).mean() > 0.2
    halves = (slice(500), slice(500, 1000))
    left, linear = (
        [np.polyfit(known[half, 0], values[half] / steps, 1)[0] for half in halves]
        for values in (answers - mean, answers)
    )
    assert np.abs(left).max() < 0.015 and linear[0] - linear[1] > 0.025


def test_an_item_that_everybody_answers_alike_is_expected_as_it_is():
    mean, deviation = expected_answers(np.full(50, 2.0), np.random.default_rng(0).normal(size=(50, 2)))
    assert (mean == 2).all() and (deviation == 0).all()
