"""Intervals of scores: coverage, information, missing answers, files; and reliable change."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

from icqf import ICQF, InputError
from icqf.analyses import reduced_model
from icqf.datasets import make_cohort
from icqf.models import reliable_change
from icqf.models.score_intervals import NOTHING_ANSWERED, TOO_LITTLE, ScoreDistribution, score_table

RNG = np.random.default_rng(28)
LOADINGS = np.kron(np.eye(2), np.ones((1, 10))) * RNG.uniform(1.5, 3.0, 20)


def answered(scores, rng):
    """Answers from 0 to 4, with error."""
    return np.clip(np.rint(0.3 + scores @ LOADINGS + rng.normal(0, 0.8, (len(scores), 20))), 0, 4)


def expected(scores):
    """The mean of such answers."""
    return sum(ndtr((0.3 + scores @ LOADINGS - limit) / 0.8) for limit in (0.5, 1.5, 2.5, 3.5))


def drawn(n, *, rng=RNG):
    """True scores, many of them 0, and answers."""
    scores = np.clip(rng.normal(0.25, 0.3, (n, 2)), 0, 1)
    answers = answered(scores, rng)
    index = [f"P{i:04d}" for i in range(n)]
    return scores, pd.DataFrame(answers, index=index, columns=[f"q{j:02d}" for j in range(20)])


@pytest.fixture(scope="module")
def model():
    return ICQF(2, item_range=(0, 4), n_init=1).fit(drawn(800)[1])


@pytest.fixture(scope="module")
def visit():
    return drawn(1500)


def truth(model, scores):
    """Scores of answers without error, on the model's scale."""
    unpenalized = pickle.loads(pickle.dumps(model)).set_params(beta=0.0)
    return unpenalized.transform(pd.DataFrame(expected(scores), columns=model.item_range_.index))


def covered(found, true):
    low, high = found.low.to_numpy(), found.high.to_numpy()
    return ((low <= true + 1e-9) & (true <= high + 1e-9))[~np.isnan(low)].mean()


def test_intervals_hold_the_true_score_as_often_as_they_say(model, visit):
    scores, answers = visit
    true = truth(model, scores)
    for level in (0.9, 0.6):
        assert abs(covered(model.score_intervals(answers, level=level), true) - level) < 0.06
    some = np.abs(true - 0.5) < 0.4
    found = model.score_intervals(answers)
    inside = (found.low <= true) & (true <= found.high)
    assert 0.86 < inside.to_numpy()[some].mean() < 0.95


def test_fewer_answers_give_wider_intervals_that_still_hold(model, visit):
    scores, answers = visit
    full = model.score_intervals(answers)
    rng = np.random.default_rng(1)
    hidden = rng.random(answers.shape) < 0.6
    hidden[:, [0, 19]] = False
    half = model.score_intervals(answers.mask(hidden))
    assert (half.information <= full.information + 1e-12).all(axis=None)
    assert (half.high - half.low).mean().gt(1.15 * (full.high - full.low).mean()).all()
    assert 0.86 < covered(half, truth(model, scores)) < 0.95


def test_information_is_the_squared_correlation_with_the_truth(model, visit):
    scores, answers = visit
    found, true = model.score_intervals(answers), truth(model, scores)
    for r, name in enumerate(found.scores):
        assert (
            abs(found.information[name].iloc[0] - np.corrcoef(found.scores[name], true[:, r])[0, 1] ** 2)
            < 0.06
        )


def test_a_factor_without_answers_is_missing_with_a_reason(model, visit):
    answers = visit[1].head(4).copy()
    own = model.loadings_.iloc[:10].sum().idxmax()
    answers.iloc[0, :10] = np.nan
    answers.iloc[1] = np.nan
    with pytest.warns(UserWarning, match="answered nothing"):
        found = model.score_intervals(answers)
    other = next(name for name in found.scores if name != own)
    assert np.isnan(found.scores[own].iloc[0]) and found.reasons[own].iloc[0] == TOO_LITTLE
    assert found.scores[other].notna().tolist() == [True, False, True, True]
    assert (found.reasons.iloc[1] == NOTHING_ANSWERED).all() and (found.reasons.iloc[2:] == "").all(axis=None)
    assert found.low.isna().equals(found.scores.isna()) and found.high.isna().equals(found.scores.isna())
    assert found.information.iloc[1].eq(0).all()


def test_scores_are_those_of_transform_and_lie_in_their_table(model, visit):
    answers = visit[1]
    found = model.score_intervals(answers)
    np.testing.assert_array_equal(found.scores, model.transform(answers))
    table = found.table()
    assert list(table.columns[:4]) == ["factor1", "factor1_low", "factor1_high", "factor1_information"]
    assert table.index.equals(answers.index)
    assert ((table["factor1_low"] >= 0) & (table["factor1_high"] <= 1)).all()


def test_one_by_one_or_together_the_intervals_are_the_same(model, visit):
    answers = visit[1].iloc[:12].copy()
    answers.iloc[3, :7] = answers.iloc[8, 5:] = np.nan
    together = model.score_intervals(answers).table()
    alone = pd.concat([model.score_intervals(answers.iloc[[i]]).table() for i in range(12)])
    pd.testing.assert_frame_equal(together, alone, rtol=1e-4)


def test_saved_pickled_and_fitted_again_the_intervals_are_the_same(model, visit, tmp_path):
    answers = visit[1].head(50)
    before = model.score_intervals(answers).table()
    model.save(tmp_path / "model.icqf")
    for again in (ICQF.load(tmp_path / "model.icqf"), pickle.loads(pickle.dumps(model))):
        pd.testing.assert_frame_equal(again.score_intervals(answers).table(), before, check_exact=True)
    used = (tmp_path / "model.icqf").read_bytes()
    fresh = ICQF.load(tmp_path / "model.icqf")
    fresh.save(tmp_path / "again.icqf")
    assert (tmp_path / "again.icqf").read_bytes() == used


def test_a_refit_has_a_new_table(visit):
    answers = visit[1]
    model = ICQF(2, item_range=(0, 4), n_init=1).fit(answers.head(300))
    first = model.score_intervals(answers.head(5)).table()
    second = model.fit(answers.tail(300)).score_intervals(answers.head(5)).table()
    assert not first.equals(second)


def test_models_without_a_distribution_say_that_they_must_be_fitted_again(model, visit):
    old = pickle.loads(pickle.dumps(model))
    old.score_distribution_ = None
    old.__dict__.pop("_score_table", None)
    with pytest.raises(InputError, match="Fit it again"):
        old.score_intervals(visit[1])
    with pytest.raises(InputError, match="fewer than 100 participants"):
        ICQF(2, item_range=(0, 4), n_init=1).fit(visit[1].head(90)).score_intervals(visit[1])


def test_the_distribution_holds_no_score_of_fewer_than_twenty():
    rng = np.random.default_rng(3)
    scores = np.sort(rng.random((1, 200)))
    moved = scores.copy()
    moved[0, -1] = 50.0  # nobody else is near

    class Fitted:
        sse = sst = np.ones(3)

    model = ICQF(1, item_range=(0, 1))
    problem = model.state(pd.DataFrame(rng.integers(0, 2, (200, 3)), columns=list("abc"))).problem
    one, other = (ScoreDistribution.of(problem, each, Fitted).quantiles for each in (scores, moved))
    assert other.max() < 51 / 15
    np.testing.assert_array_equal(one[:, :20], other[:, :20])


def test_a_level_must_be_a_probability(model, visit):
    with pytest.raises(InputError, match="level"):
        model.score_intervals(visit[1], level=90)


def test_short_forms_have_wider_intervals(model, visit):
    answers = visit[1]
    short = reduced_model(model, list(answers.columns[::3]))
    found, full = short.score_intervals(answers[answers.columns[::3]]), model.score_intervals(answers)
    assert (found.high - found.low).mean().gt((full.high - full.low).mean()).all()
    assert 0.86 < covered(found, truth(model, visit[0])) < 0.97


def test_confounds_are_part_of_it():
    cohort = make_cohort("hbn", 400, random_state=1).questionnaire
    model = ICQF(4, n_init=1).fit(cohort)
    found = model.score_intervals(cohort.take(np.arange(30)))
    assert found.scores.shape == (30, 4) and (found.low <= found.high).all(axis=None)
    with pytest.raises(InputError, match="fitted with the confounds"):
        model.score_intervals(cohort.keyed_answers())


# --- change -----------------------------------------------------------------------------------------------


def test_false_alarms_of_change_are_five_percent(model, visit):
    scores, answers = visit
    rng = np.random.default_rng(5)
    again = pd.DataFrame(answered(scores, rng), index=answers.index, columns=answers.columns)
    before, after = model.score_intervals(answers), model.score_intervals(again)
    change = reliable_change(before, after)
    assert 0.03 < (change["p_value"] < 0.05).mean() < 0.07
    assert ((change["low"] <= 0) & (change["high"] >= 0)).mean() > 0.9
    fewer = again.mask(rng.random(again.shape) < 0.5)
    change = reliable_change(before, model.score_intervals(fewer))
    assert 0.03 < (change["p_value"] < 0.05).mean() < 0.07


def test_real_change_is_found_and_probabilities_are_right(model, visit):
    scores, answers = visit
    rng = np.random.default_rng(6)
    moved = rng.random(scores.shape) < 0.5
    new = np.where(moved, scores[rng.permutation(len(scores))], scores)
    again = pd.DataFrame(answered(new, rng), index=answers.index, columns=answers.columns)
    change = reliable_change(model.score_intervals(answers), model.score_intervals(again.sample(frac=1)))
    change = change.reindex(pd.MultiIndex.from_product([answers.index, list(model.factor_names_)]))
    own = [int(np.argmax(model.components_[r] @ LOADINGS.T)) for r in range(2)]
    happened = moved[:, own].ravel()
    said = change["probability"].to_numpy()
    for low, high in ((0, 0.4), (0.4, 0.8), (0.8, 1.01)):
        rows = (said >= low) & (said < high)
        assert abs(happened[rows].mean() - said[rows].mean()) < 0.12
    error = truth(model, new) - truth(model, scores)
    inside = (change["low"] <= error.ravel()) & (error.ravel() <= change["high"])
    assert inside.mean() > 0.88


def test_change_needs_the_same_participants_and_model(model, visit):
    answers = visit[1]
    before = model.score_intervals(answers.head(5))
    with pytest.raises(InputError, match="only one of the two visits"):
        reliable_change(before, model.score_intervals(answers.head(6)))
    other = ICQF(2, item_range=(0, 4), n_init=1).fit(answers)
    with pytest.raises(InputError, match="different models"):
        reliable_change(before, other.score_intervals(answers.head(5)))


def test_the_table_is_made_of_probabilities(model):
    table = score_table(model)
    np.testing.assert_allclose(table.prior.sum(axis=1), 1)
    np.testing.assert_allclose(table.likelihood.sum(axis=3), 1)
    assert (np.diff(table.information, axis=1) >= 0).all() and table.information.max() <= 1


def test_scores_that_stay_have_not_changed(model, visit):
    """Also at the end of the range, where a score is expected to fall at the next visit."""
    scored = model.score_intervals(visit[1])
    change = reliable_change(scored, scored)
    same = change["p_value"].dropna()
    assert len(same) > 0 and (same == 1).all()
    assert scored.scores.max().max() > 0.98
