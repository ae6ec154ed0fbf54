"""From errors to a choice: the rules on tables made by hand, and how sure the choice is."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icqf.data.settings import RULES
from icqf.errors import InputError
from icqf.models.selection_rules import (
    SAME,
    Choice,
    Evidence,
    _picks,
    best_by_k,
    best_row,
    choice_frequencies,
    choose,
    level_with,
)


def elsewhere(found, rule, **more):
    """What other divisions into folds would choose."""
    evidence = Evidence(found)
    noise = evidence.between_divisions()
    return choice_frequencies(evidence, noise, rule, rng=np.random.default_rng(0), **more)


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
    assert Evidence(plain).table()["error"].tolist() == [5.0, 4.0]
    np.testing.assert_allclose(Evidence(heavy).table()["error"], [(1000 + 50) / 1010, 4.0])
    assert choose(Evidence(plain).table(), "min")[0] == 2 and choose(Evidence(heavy).table(), "min")[0] == 1


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
    found = Evidence(
        results({(2, 0.1): [1.0, 2.0, 6.0], (3, 0.1): [2.0, 2.0, 2.0]}, hidden=[8, 1, 1])
    ).table()
    assert found["n_components"].tolist() == [2, 3] and found["beta"].tolist() == [0.1, 0.1]
    assert found["error"].tolist() == [pytest.approx((8 * 1 + 2 + 6) / 10), pytest.approx(2.0)]
    spread = np.sqrt(((1 - 3) ** 2 + (2 - 3) ** 2 + (6 - 3) ** 2) / 2 / 3)
    assert found["standard_error"].tolist() == [pytest.approx(spread), 0.0]


def test_weights_by_hidden_answers_can_turn_the_choice():
    errors = {(2, 0.1): [1.0, 1.0, 9.0], (3, 0.1): [2.0, 2.0, 2.0]}
    assert choose(Evidence(results(errors, hidden=[10, 10, 10])).table(), "min") == (3, 0.1)
    assert choose(Evidence(results(errors, hidden=[10, 10, 1])).table(), "min") == (2, 0.1)


def test_a_fold_that_hides_nothing_says_nothing():
    """Its error is 0 by want of answers."""
    full = Evidence(results({(2, 0.1): [1.0, 2.0], (3, 0.1): [2.0, 2.5]})).table()
    holed = results({(2, 0.1): [1.0, 2.0, 0.0], (3, 0.1): [2.0, 2.5, 0.0]}, hidden=[10, 10, 0])
    pd.testing.assert_frame_equal(Evidence(holed).table(), full)
    assert elsewhere(holed, "one_se").shares["share"].sum() == pytest.approx(1)


def test_repeats_add_no_participants():
    """The mean is over all folds; its standard error is that of one division."""
    one, two = results({(2, 0.1): [1.0, 2.0]}), results({(2, 0.1): [3.0, 6.0]}).assign(repeat=1)
    found = Evidence(pd.concat([one, two], ignore_index=True)).table()
    assert found["error"].tolist() == [3.0]
    assert found["standard_error"][0] == pytest.approx(np.sqrt((0.5**2 + 1.5**2) / 2))


def test_the_standard_error_is_between_participants():
    """Folds of one division agree where every participant is in all of them; participants need not."""
    rng = np.random.default_rng(0)
    own = rng.exponential(1.0, 50)  # some participants answer erratically
    squares = np.add.outer(np.zeros(4), own) + 0.01 * rng.random((4, 50))
    found = results({(2, 0.1): squares.mean(axis=1)})
    blocks = {(0, fold, 2, 0.1): np.array([squares[fold], np.ones(50)]) for fold in range(4)}
    (error,) = Evidence(found, blocks).table()["standard_error"]
    assert error == pytest.approx(squares.mean(axis=0).std(ddof=1) / np.sqrt(50), rel=1e-6)
    assert Evidence(found).table()["standard_error"][0] < error / 10


def test_candidates_that_were_given_up_are_compared_where_they_were_fitted():
    """Folds differ in difficulty: the second half is easy, and only the best was fitted there."""
    found = results({(2, 0.1): [5.0, 5.2, 1.0, 1.0], (3, 0.1): [5.5, 5.7]})
    errors = Evidence(found).table()
    assert errors["error"].tolist() == pytest.approx([3.05, 3.55]) and errors["n_folds"].tolist() == [4, 2]
    assert best_row(errors)[0] == 2 and choose(errors, "min") == (2, 0.1)
    lucky = results({(2, 0.1): [5.0, 5.2, 1.0, 1.0], (3, 0.1): [4.9, 5.1]})
    assert choose(Evidence(lucky).table(), "min") == (2, 0.1)  # it had been given up


def test_one_fold_has_no_standard_error():
    assert Evidence(results({(2, 0.1): [1.0]})).table()["standard_error"].tolist() == [0.0]


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


@pytest.mark.parametrize(("apart", "k"), [(0.5 * SAME, 2), (2 * SAME, 6)])
def test_errors_that_fits_cannot_tell_apart_are_the_same(apart, k):
    table = CURVE.assign(error=np.where(CURVE["n_components"] == 6, 1.0, 1.0 + apart))
    assert choose(table, "min")[0] == k


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
    expected = choose(Evidence(results(columns, hidden)).table(), rule, stability=stability, within=within)
    agreement = stability.set_index("n_components")["agreement"].reindex(ks).to_numpy()
    mean = hidden @ errors / hidden.sum()
    agreement = agreement if rule == "stable" else None
    of_best = errors[:, mean.argmin()]
    spread = of_best.std(ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else 0.0
    at = slow_pick(mean, spread, ks, rule, agreement, within)
    assert (ks[at], betas[at]) == expected


def slow_pick(errors, spread, ks, rule, merit, within):
    """The candidate that a rule picks, one candidate after the other."""
    best = min(errors)
    close = best * (1 + within) if within is not None else best + spread
    if rule == "min":
        number = min(k for k, error in zip(ks, errors, strict=True) if error <= best * (1 + SAME))
    elif rule == "one_se":
        number = min(k for k, error in zip(ks, errors, strict=True) if error <= close)
    else:
        highest = close if rule == "stable" else np.inf
        most = max(ks) if rule == "stable" else ks[list(errors).index(best)]
        among = [at for at, error in enumerate(errors) if error <= highest and ks[at] <= most]
        number = max((merit[at], ks[at]) for at in among)[1]
    return min((error, at) for at, (k, error) in enumerate(zip(ks, errors, strict=True)) if k == number)[1]


@pytest.mark.parametrize("rule", ["min", "one_se", "stable", "replicable"])
@pytest.mark.parametrize("within", [None, 0.02])
def test_many_lines_of_errors_are_picked_from_one_by_one(rule, within):
    rng = np.random.default_rng(4)
    ks = np.repeat([2, 3, 4, 6], 3)
    errors, spreads = 1 + 0.1 * rng.random((200, len(ks))), 0.05 * rng.random(200)
    merit = np.repeat([0.5, 0.9, 0.9, 0.2], 3) if rule in ("stable", "replicable") else None
    picked = _picks(errors, spreads, ks, RULES.load(rule), merit, within)
    expected = [
        slow_pick(error, spread, ks, rule, merit, within)
        for error, spread in zip(errors, spreads, strict=True)
    ]
    assert picked.tolist() == expected
    assert len(set(expected)) > 3


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 5), st.integers(1, 4), st.sampled_from(["min", "one_se", "stable"]), st.integers(0, 99))
def test_shares_sum_to_one_most_frequent_first(folds, n_ks, rule, seed):
    rng = np.random.default_rng(seed)
    errors = {(k, beta): rng.random(folds) for k in range(1, n_ks + 1) for beta in (0.0, 0.1)}
    stability = pd.DataFrame({"n_components": range(1, n_ks + 1), "agreement": rng.random(n_ks)})
    found = results(errors, rng.integers(1, 9, folds))
    one, again = (elsewhere(found, rule, stability=stability) for _ in range(2))
    pd.testing.assert_frame_equal(one.shares, again.shares)
    assert one.shares["share"].sum() == pytest.approx(1, abs=1e-12)
    assert one.by_k().sum() == pytest.approx(1, abs=1e-12)
    assert (one.shares["share"] > 0).all() and (np.diff(one.shares["share"]) <= 0).all()
    assert (np.diff(one.by_k()) <= 0).all()


def divisions(rng, gap, apart, n=1):
    """Errors of two candidates in n divisions of ten folds, whose means differ by `gap` ± `apart`."""
    tables = []
    for repeat in range(n):
        level = 1 + 0.2 * rng.random(10)
        noise = rng.normal(size=10)
        noise += rng.normal() * apart - noise.mean()
        errors = {(2, 0.1): level + gap + noise, (3, 0.1): level}
        tables.append(results(errors).assign(repeat=repeat))
    return pd.concat(tables, ignore_index=True)


@pytest.mark.parametrize("gap", [0.0, 0.3, 0.6])
def test_the_share_is_what_fresh_seeds_do(gap):
    """Over many searches of five divisions each: what is said of a number, and how often others choose it."""
    rng, said, chosen = np.random.default_rng(3), [], []
    for _ in range(60):
        found = divisions(rng, gap, 0.6, n=5)
        said.append(float(elsewhere(found, "min").by_k().get(3, 0.0)))
        chosen.append(choose(Evidence(found).table(), "min")[0] == 3)
    assert np.mean(said) == pytest.approx(np.mean(chosen), abs=0.1)


def test_a_clear_case_is_certain():
    found = results({(2, 0.1): [2.0, 2.1, 2.2], (3, 0.0): [1.0, 1.1, 1.2], (3, 0.1): [0.5, 0.4, 0.6]})
    choice = elsewhere(found, "min")
    assert choice.by_k().to_dict() == {3: 1.0} and choice.shares["beta"][0] == 0.1
    assert str(choice) == repr(choice) == "k = 3 in 100%"


def test_another_sample_is_less_sure_than_another_seed():
    found = divisions(np.random.default_rng(0), 0.4, 0.3, n=5)
    evidence = Evidence(found)
    seeds, samples = (
        choice_frequencies(evidence, noise, "min", rng=np.random.default_rng(0)).by_k()
        for noise in (evidence.between_divisions(), evidence.between_samples())
    )
    assert seeds[3] > samples[3] > 0.5


def test_neighbours_are_level_within_the_standard_error_of_their_difference():
    rng = np.random.default_rng(0)
    level, noise = 1 + 0.2 * rng.random(10), rng.normal(size=10)
    noise = 0.1 * (noise - noise.mean())
    errors = {(2, 0.1): level + 0.5 + noise, (3, 0.1): level, (4, 0.1): level + 0.01 + noise}
    assert level_with(Evidence(results(errors)), 3) == (4,)
    assert level_with(Evidence(results(errors)), 2) == ()


def test_the_choice_in_words():
    rows = [(8, 0.1, 0.5), (8, 0.2, 0.24), (7, 0.1, 0.21), (9, 0.1, 0.047), (3, 0.1, 0.003)]
    choice = Choice(pd.DataFrame(rows, columns=["n_components", "beta", "share"]))
    assert str(choice) == "k = 8 in 74%, 7 in 21%, 9 in 5%"  # what rounds to nothing is left out
    assert choice.by_k().to_dict() == pytest.approx({8: 0.74, 7: 0.21, 9: 0.047, 3: 0.003})
    rare = pd.DataFrame({"n_components": [8, 9], "beta": 0.1, "share": [0.995, 0.005]})
    assert str(Choice(rare)) == "k = 8 in 99%, 9 in 1%"  # never "9 in 0%"
