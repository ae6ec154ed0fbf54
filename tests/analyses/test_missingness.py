"""Missing answers: what leaving out depends on, delta adjustment against a slow one, and no influence."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from icqf import ICQF
from icqf.analyses import missing_answers
from icqf.analyses.missingness import DELTAS, MissingAnswers, _pairs, score_tests, sensitivity_sentence
from icqf.data.questionnaire import Item, Questionnaire
from icqf.resampling.matching import aligned


def study(seed=0, n=200, m=12, *, by_score=0.0, share=0.1, spread=1.0, high=3):
    rng = np.random.default_rng(seed)
    W = np.where(rng.random((n, 2)) < 0.4, 0.0, rng.beta(2, 2, (n, 2)))
    Q = np.zeros((2, m))
    Q[0, : m // 2], Q[1, m // 2 :] = high, high
    values = np.clip(np.round(W @ Q + 0.4 * rng.normal(size=(n, m))), 0, high)
    odds = np.log(share / (1 - share)) + by_score * (W[:, :1] - W[:, 0].mean())
    odds = odds + spread * rng.normal(size=(n, 1))
    gone = rng.random((n, m)) < 1 / (1 + np.exp(-odds))
    gone[:, [0, -1]] = False  # everybody answers something
    values[gone] = np.nan
    items = tuple(Item(f"q{j}", min=0, max=high) for j in range(m))
    return Questionnaire(pd.DataFrame(values, columns=[item.name for item in items]), items)


@pytest.fixture(scope="module")
def made():
    answers = study()
    return answers, ICQF(2, n_init=1).fit(answers)


@pytest.fixture(scope="module")
def found(made):
    return missing_answers(made[1], made[0])


def test_counts_and_tables(made, found):
    gaps = made[0].answers.isna().to_numpy()
    assert (found.n_missing, found.n_participants) == (gaps.sum(), gaps.any(axis=1).sum())
    assert found.sensitivity["delta"].tolist() == [-1, -0.5, -0.25, 0, 0.25, 0.5, 1]
    assert found.n_refitted == 200 and len(found.scores) == 2 and found.confounds.empty


def test_the_more_they_are_moved_the_more_moves(found):
    moved = found.sensitivity.set_index("delta")
    for name in ("loading_move", "score_move"):
        assert moved.loc[0, name] < 0.01
        for side in (-1, 1):
            assert moved.loc[[side * delta for delta in DELTAS], name].is_monotonic_increasing
    assert moved["congruence"].idxmax() == 0


def test_one_refit_agrees_with_a_fit_of_the_filled_table(made, found):
    answers, model = made
    expected = model.inverse_transform(model.transform(answers))
    table = answers.answers
    moved = np.clip(expected + table.std(ddof=0).to_numpy(), 0, 3)
    filled = table.where(table.notna(), moved)
    init = model.transform(answers), model.components_.T
    again = ICQF(2, init=init, item_range=(0, 3), tol=1e-4).fit(filled)
    row = found.sensitivity.set_index("delta").loc[1.0]
    order = aligned(model.components_, again.components_)[0]
    largest = np.abs(again.components_[order] - model.components_).max() / 3
    assert largest == pytest.approx(row["loading_move"], abs=0.01)
    gaps = table.isna().any(axis=1).to_numpy()
    move = np.abs(again.transform(filled)[:, order] - model.transform(answers))[gaps].mean()
    assert move == pytest.approx(row["score_move"], abs=0.005)


def test_the_fit_is_not_touched(made):
    answers, model = made
    before = model.components_.copy(), answers.answers.copy(), model.state(answers)
    kept = before[2].problem.observations.answers.copy()
    missing_answers(model, answers, stated=before[2])
    assert np.array_equal(model.components_, before[0])
    pd.testing.assert_frame_equal(answers.answers, before[1])
    assert np.array_equal(before[2].problem.observations.answers, kept, equal_nan=True)


def test_the_same_seed_gives_the_same_numbers(made, found):
    again = missing_answers(made[1], made[0])
    pd.testing.assert_frame_equal(again.sensitivity, found.sensitivity)
    pd.testing.assert_frame_equal(again.scores, found.scores)


def test_pairs_are_of_different_people_and_different_shares():
    rng = np.random.default_rng(0)
    share = rng.binomial(5, 0.2, 101) / 5
    more, less = _pairs(share, None, rng)
    assert (share[more] > share[less]).all() and len(set(more) | set(less)) == 2 * len(more)
    families = np.arange(101) // 2
    more, less = _pairs(share, families, rng)
    assert len(set(families[more]) | set(families[less])) == 2 * len(more)
    sites = np.arange(101) // 51
    more, less = _pairs(share, sites, rng)
    assert (sites[more] == sites[less]).all() and len(more) > 20


def test_dependence_on_scores_is_found_with_its_sign():
    answers = study(1, by_score=4.0)
    table = missing_answers(ICQF(2, n_init=1).fit(answers), answers).scores
    best = table.loc[table["p_adjusted"].idxmin()]
    assert best["p_adjusted"] <= 0.05 and best["difference"] > 0


def test_shrunken_scores_are_no_finding():
    """Scores of those who left out a lot are lower, whatever they would have answered."""
    answers = study(2, n=600, share=0.35, spread=2.5, high=1)
    model = ICQF(2, beta=0.2, n_init=1).fit(answers)
    share = answers.answers.isna().mean(axis=1).to_numpy()
    scores = model.transform(answers)
    assert min(spearmanr(share, each).pvalue for each in scores.T) < 0.001  # what a plain comparison finds
    stated = model.state(answers)
    table, _ = score_tests(model, stated.problem, share[stated.kept])
    assert (table["p_adjusted"] > 0.05).all()


def test_large_studies_are_refitted_in_part(made, monkeypatch):
    answers, model = made
    monkeypatch.setattr("icqf.analyses.missingness.MOST_REFITTED", 150)
    part = missing_answers(model, answers)
    assert part.n_refitted == 150 and part.sensitivity.set_index("delta").loc[0, "congruence"] > 0.999


def test_items_not_shown_are_neither_counted_nor_filled(made):
    answers, model = made
    gaps = answers.answers.isna()
    shown = replace(answers, structural=gaps)
    assert missing_answers(model, shown) is None
    half = gaps.copy()
    half.iloc[:, :6] = False
    counted = missing_answers(model, replace(answers, structural=half)).n_missing
    assert counted == gaps.iloc[:, :6].to_numpy().sum()


def test_nothing_is_said_of_fewer_than_five_participants(made):
    answers, model = made
    table = answers.answers.fillna(1.0)
    table.iloc[:4, 0] = np.nan
    assert missing_answers(model, replace(answers, answers=table)) is None


@pytest.mark.parametrize(
    ("bad", "robust", "begins"),
    [((), 1.0, "Robust:"), ((1.0,), 0.5, "Robust only up to 0.5 SD"), ((-0.25,), 0.0, "Not robust")],
)
@pytest.mark.parametrize(
    ("measure", "value"),
    [("congruence", 0.94), ("score_correlation", 0.94), ("loading_move", 0.11), ("score_move", 0.06)],
)
def test_the_verdict_follows_the_stated_criterion(bad, robust, begins, measure, value):
    table = pd.DataFrame({"delta": [-1, -0.5, -0.25, 0, 0.25, 0.5, 1]}, dtype=float)
    table = table.assign(congruence=0.99, loading_move=0.05, score_correlation=0.99, score_move=0.02)
    table.loc[table["delta"].isin(bad), measure] = value
    made = MissingAnswers(9, 99, 9, pd.DataFrame(), pd.DataFrame(), 0, table, 100)
    assert made.robust_up_to == robust and sensitivity_sentence(made).startswith(begins)
