"""From errors to a choice: the rules on tables made by hand, and how sure the choice is."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icqf.data.settings import RULES
from icqf.errors import InputError
from icqf.models.selection_rules import (
    Choice,
    _pick,
    best_by_k,
    best_row,
    choose,
    error_table,
    resampled_choice,
)


def results(errors, hidden=None, weights=None):
    """A search's results from {(k, beta): errors by fold}; `hidden` gives each fold's hidden answers."""
    rows = [
        (0, fold, k, beta, error, 10 if hidden is None else hidden[fold])
        for (k, beta), by_fold in errors.items()
        for fold, error in enumerate(by_fold)
    ]
    found = pd.DataFrame(rows, columns=["repeat", "fold", "n_components", "beta", "error", "n_hidden"])
    weight = found["n_hidden"] if weights is None else found["fold"].map(dict(enumerate(weights)))
    return found.assign(weight=weight.astype(float))


def test_folds_are_pooled_by_weight():
    """A fold whose participants stand for a hundred others each decides, however few answers it hides."""
    errors = {(1, 0.1): [1.0, 5.0, 9.0], (2, 0.1): [4.0, 4.0, 4.0]}
    plain = results(errors, hidden=[10, 10, 10])
    heavy = results(errors, hidden=[10, 10, 10], weights=[1000.0, 10.0, 0.0])
    assert error_table(plain)["error"].tolist() == [5.0, 4.0]
    np.testing.assert_allclose(error_table(heavy)["error"], [(1000 + 50) / 1010, 4.0])
    assert choose(error_table(plain), "min")[0] == 2 and choose(error_table(heavy), "min")[0] == 1
    chosen = resampled_choice(heavy, "min", rng=np.random.default_rng(0)).by_k()
    assert chosen[1] > 0.7


def table(rows):
    return pd.DataFrame(rows, columns=["n_components", "beta", "error", "standard_error"])


# Lowest at k = 5 (1.00 ± 0.05): 3 is outside one standard error, 4, 5 and 6 inside.
CURVE = table(
    [
        (2, 0.0, 1.60, 0.05),
        (2, 0.1, 1.50, 0.05),
        (3, 0.0, 1.06, 0.05),
        (3, 0.1, 1.20, 0.05),
        (4, 0.0, 1.30, 0.05),
        (4, 0.1, 1.04, 0.05),
        (5, 0.0, 1.00, 0.05),
        (5, 0.1, 1.01, 0.05),
        (6, 0.0, 1.02, 0.05),
        (6, 0.1, 1.03, 0.05),
    ]
)
STABILITY = pd.DataFrame({"n_components": [2, 3, 4, 5, 6], "agreement": [0.99, 0.95, 0.8, 0.7, 0.9]})


def test_folds_count_by_the_answers_they_hide():
    found = error_table(results({(2, 0.1): [1.0, 2.0, 6.0], (3, 0.1): [2.0, 2.0, 2.0]}, hidden=[8, 1, 1]))
    assert found["n_components"].tolist() == [2, 3] and found["beta"].tolist() == [0.1, 0.1]
    assert found["error"].tolist() == [pytest.approx((8 * 1 + 2 + 6) / 10), pytest.approx(2.0)]
    spread = np.sqrt(((1 - 3) ** 2 + (2 - 3) ** 2 + (6 - 3) ** 2) / 2 / 3)
    assert found["standard_error"].tolist() == [pytest.approx(spread), 0.0]


def test_weights_by_hidden_answers_can_turn_the_choice():
    errors = {(2, 0.1): [1.0, 1.0, 9.0], (3, 0.1): [2.0, 2.0, 2.0]}
    assert choose(error_table(results(errors, hidden=[10, 10, 10])), "min") == (3, 0.1)
    assert choose(error_table(results(errors, hidden=[10, 10, 1])), "min") == (2, 0.1)


def test_a_fold_that_hides_nothing_says_nothing():
    """Its error is 0 by want of answers."""
    full = error_table(results({(2, 0.1): [1.0, 2.0], (3, 0.1): [2.0, 2.5]}))
    holed = results({(2, 0.1): [1.0, 2.0, 0.0], (3, 0.1): [2.0, 2.5, 0.0]}, hidden=[10, 10, 0])
    pd.testing.assert_frame_equal(error_table(holed), full)
    for seed in range(5):
        choice = resampled_choice(holed, "one_se", rng=np.random.default_rng(seed))
        assert choice.shares["share"].sum() == pytest.approx(1)


def test_repeats_count_as_folds():
    both = pd.concat(
        [results({(2, 0.1): [1.0, 2.0]}), results({(2, 0.1): [3.0, 4.0]}).assign(repeat=1)], ignore_index=True
    )
    found = error_table(both)
    assert found["error"].tolist() == [2.5]
    assert found["standard_error"][0] == pytest.approx(np.std([1, 2, 3, 4], ddof=1) / 2)


def test_one_fold_has_no_standard_error():
    assert error_table(results({(2, 0.1): [1.0]}))["standard_error"].tolist() == [0.0]


def test_best():
    assert best_row(CURVE) == (5, 0.0, 1.00)
    best = best_by_k(CURVE)
    assert best[["n_components", "beta"]].to_numpy().tolist() == [[2, 0.1], [3, 0], [4, 0.1], [5, 0], [6, 0]]


@pytest.mark.parametrize(
    ("rule", "within", "chosen"),
    [
        ("min", None, (5, 0.0)),
        ("min", 0.5, (5, 0.0)),
        ("one_se", None, (4, 0.1)),  # 1.04 ≤ 1.05, 1.06 is not
        ("one_se", 0.0, (5, 0.0)),
        ("one_se", 0.03, (5, 0.0)),
        ("one_se", 0.10, (3, 0.0)),
        ("one_se", 0.50, (2, 0.1)),
        ("stable", None, (6, 0.0)),  # of 4, 5, 6 the one with agreement 0.9
        ("stable", 0.005, (5, 0.0)),
        ("stable", 0.06, (3, 0.0)),
        ("stable", 0.50, (2, 0.1)),
    ],
)
def test_rules_on_a_table_made_by_hand(rule, within, chosen):
    assert choose(CURVE, rule, stability=STABILITY, within=within) == chosen
    shuffled = CURVE.sample(frac=1, random_state=0, ignore_index=True)
    assert choose(shuffled, rule, stability=STABILITY, within=within) == chosen


@pytest.mark.parametrize("rule", ["stable", "replicable"])
def test_a_rule_that_looks_at_resamples_needs_them(rule):
    with pytest.raises(InputError, match=f"rule='{rule}' needs resamples for each number of factors"):
        choose(CURVE, rule)


@pytest.mark.parametrize(
    ("gains", "k"),
    [
        ([1.0, 2.0, 3.5, 3.0], 4),  # the most expected to be found again
        ([1.0, 2.0, 3.5, 9.0], 5),
        ([1.5, 1.5, 1.5, 1.0], 4),  # of equals, the one with most factors
        ([-0.5, -1.0, -2.0, -3.0], 2),
    ],
)
def test_the_replicable_rule_on_a_table_made_by_hand(gains, k):
    # 5 factors have the lowest error; what 6 would gain does not count.
    replicable = pd.DataFrame({"n_components": [2, 3, 4, 5], "gain": gains})
    chosen, beta = choose(CURVE, "replicable", replicable=replicable)
    best = CURVE[CURVE["n_components"] == chosen].sort_values("error").iloc[0]
    assert (chosen, beta) == (k, best["beta"])
    beyond = pd.concat([replicable, pd.DataFrame({"n_components": [6], "gain": [99.0]})])
    assert choose(CURVE, "replicable", replicable=beyond)[0] == k


@settings(deadline=None)
@given(
    st.integers(2, 5),
    st.integers(1, 5),
    st.integers(1, 3),
    st.sampled_from(["min", "one_se", "stable"]),
    st.sampled_from([None, 0.0, 0.05, 0.5]),
    st.integers(0, 1000),
)
def test_a_resample_that_draws_every_fold_once_is_the_choice_itself(folds, n_ks, n_betas, rule, within, seed):
    """`choose` and the resampling state the rules twice: they must be the same rules."""
    rng = np.random.default_rng(seed)
    ks, betas = np.repeat(np.arange(2, 2 + n_ks), n_betas), np.tile(np.linspace(0, 1, n_betas), n_ks)
    errors = 1 + 0.2 * rng.random((folds, len(ks)))
    hidden = rng.integers(1, 20, folds)
    stability = pd.DataFrame({"n_components": np.unique(ks), "agreement": rng.permutation(n_ks) / n_ks})
    columns = {(int(k), float(b)): errors[:, at] for at, (k, b) in enumerate(zip(ks, betas, strict=True))}
    expected = choose(error_table(results(columns, hidden)), rule, stability=stability, within=within)
    agreement = stability.set_index("n_components")["agreement"].reindex(ks).to_numpy()
    mean = hidden @ errors / hidden.sum()
    agreement = agreement if rule == "stable" else None
    of_best = errors[:, mean.argmin()]
    spread = of_best.std(ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else 0.0
    at = _pick(mean, spread, ks, RULES.load(rule), agreement, within)
    assert (ks[at], betas[at]) == expected


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 5), st.integers(1, 4), st.sampled_from(["min", "one_se", "stable"]), st.integers(0, 99))
def test_shares_sum_to_one_most_frequent_first(folds, n_ks, rule, seed):
    rng = np.random.default_rng(seed)
    errors = {(k, beta): rng.random(folds) for k in range(1, n_ks + 1) for beta in (0.0, 0.1)}
    stability = pd.DataFrame({"n_components": range(1, n_ks + 1), "agreement": rng.random(n_ks)})
    found = results(errors, rng.integers(1, 9, folds))
    one, again = (
        resampled_choice(found, rule, rng=np.random.default_rng(seed), stability=stability) for _ in range(2)
    )
    pd.testing.assert_frame_equal(one.shares, again.shares)
    assert one.shares["share"].sum() == pytest.approx(1, abs=1e-12)
    assert one.by_k().sum() == pytest.approx(1, abs=1e-12)
    assert (one.shares["share"] > 0).all() and (np.diff(one.shares["share"]) <= 0).all()
    assert (np.diff(one.by_k()) <= 0).all()


def test_two_folds_checked_by_hand():
    """Fold 0 says 2, fold 1 says 3, and by more: 2 wins only when fold 0 is drawn twice, one time in four."""
    found = results({(2, 0.1): [1.0, 4.0], (3, 0.1): [2.0, 1.0]})
    choice = resampled_choice(found, "min", rng=np.random.default_rng(0))
    shares = choice.shares.set_index("n_components")["share"]
    assert shares[2] == pytest.approx(0.25, abs=0.03) and shares[3] == pytest.approx(0.75, abs=0.03)
    assert str(choice).startswith("k = 3 in 7")


def test_a_heavy_fold_decides_when_it_is_drawn():
    """Fold 0 hides 100 times as many answers: whenever it is drawn, 3 times in 4, its word counts."""
    found = results({(2, 0.1): [1.0, 4.0], (3, 0.1): [2.0, 1.0]}, hidden=[1000, 10])
    shares = resampled_choice(found, "min", rng=np.random.default_rng(0)).shares.set_index("n_components")
    assert shares["share"][2] == pytest.approx(0.75, abs=0.03)


def test_a_clear_case_is_certain():
    found = results({(2, 0.1): [2.0, 2.1, 2.2], (3, 0.0): [1.0, 1.1, 1.2], (3, 0.1): [0.5, 0.4, 0.6]})
    choice = resampled_choice(found, "min", rng=np.random.default_rng(0))
    assert choice.shares.to_numpy().tolist() == [[3, 0.1, 1.0]]
    assert str(choice) == repr(choice) == "k = 3 in 100%"


def test_the_choice_in_words():
    rows = [(8, 0.1, 0.5), (8, 0.2, 0.24), (7, 0.1, 0.21), (9, 0.1, 0.047), (3, 0.1, 0.003)]
    choice = Choice(pd.DataFrame(rows, columns=["n_components", "beta", "share"]))
    assert str(choice) == "k = 8 in 74%, 7 in 21%, 9 in 5%"  # what rounds to nothing is left out
    assert choice.by_k().to_dict() == pytest.approx({8: 0.74, 7: 0.21, 9: 0.047, 3: 0.003})


@pytest.mark.parametrize("rule", ["min", "one_se"])
def test_folds_are_drawn_as_one_by_one(rule):
    rng = np.random.default_rng(7)
    found = results({(k, 0.1): 1 + 0.1 * rng.random(6) for k in (1, 2, 3)}, hidden=[3, 5, 1, 4, 9, 2])
    wide = found.pivot_table(index="fold", columns="n_components", values="error").to_numpy()
    hidden = found.groupby("fold")["weight"].first().to_numpy(float)
    again, picks = np.random.default_rng(1), []
    for _ in range(2000):
        drawn = again.integers(0, 6, 6)
        mean = np.average(wide[drawn], axis=0, weights=hidden[drawn])
        best = mean.argmin()
        close = mean[best] + (wide[drawn, best].std(ddof=1) / np.sqrt(6) if rule == "one_se" else 0)
        picks.append(1 + int(np.flatnonzero(mean <= close)[0]))
    shares = resampled_choice(found, rule, rng=np.random.default_rng(1)).by_k()
    assert shares.to_dict() == {k: picks.count(k) / 2000 for k in (1, 2, 3) if k in picks}
