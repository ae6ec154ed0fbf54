"""Matching is a law-abiding comparison: order of factors and items does not matter, and the best is best."""

from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icqf.errors import InputError
from icqf.resampling import agreement, match_factors
from icqf.resampling.matching import aligned, correlations, paired

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.integers(1, 5)


def loadings(seed, k, items=12, prefix="F"):
    rng = np.random.default_rng(seed)
    names = [f"q{i}" for i in range(items)]
    return pd.DataFrame(rng.random((items, k)), index=names, columns=[f"{prefix}{i}" for i in range(k)])


def brute_force(similarity):
    """The largest total similarity over all ways of pairing the smaller side with the larger."""
    k, other = similarity.shape
    if k > other:
        return brute_force(similarity.T)
    return max(sum(similarity[i, j] for i, j in enumerate(way)) for way in permutations(range(other), k))


@settings(max_examples=30, deadline=None)
@given(SEEDS, SIZES, SIZES)
def test_optimal_equals_brute_force_and_is_never_below_greedy(seed, k, other):
    a, b = loadings(seed, k), loadings(seed + 1, other)
    corr = np.corrcoef(a.to_numpy().T, b.to_numpy().T)[:k, k:].reshape(k, other)
    optimal, greedy = (match_factors(a, b, method=method) for method in ("optimal", "greedy"))
    assert optimal.values.sum() == pytest.approx(brute_force(corr), abs=1e-9)
    assert optimal.values.sum() >= greedy.values.sum() - 1e-12
    assert greedy.values[0] == pytest.approx(corr.max())
    for match in (optimal, greedy):
        assert len(match.pairs) == min(k, other)
        assert match.pairs["factor_a"].is_unique and match.pairs["factor_b"].is_unique
        assert {*match.pairs["factor_a"], *match.unmatched_a} == set(a.columns)
        assert {*match.pairs["factor_b"], *match.unmatched_b} == set(b.columns)
        assert (np.diff(match.values) <= 0).all()


@settings(max_examples=30, deadline=None)
@given(
    SEEDS, SIZES, SIZES, st.sampled_from(["greedy", "optimal"]), st.sampled_from(["pearson", "congruence"])
)
def test_order_and_side_do_not_matter(seed, k, other, method, similarity):
    a, b = loadings(seed, k, prefix="A"), loadings(seed + 1, other, prefix="B")
    rng = np.random.default_rng(seed)
    shuffled = b.iloc[rng.permutation(len(b)), rng.permutation(other)]

    def pairs(match, first="factor_a", second="factor_b"):
        return {tuple(row) for row in match.pairs[[first, second]].to_numpy()}

    plain = match_factors(a, b, method=method, similarity=similarity)
    turned = match_factors(b, a, method=method, similarity=similarity)
    mixed = match_factors(a, shuffled, method=method, similarity=similarity)
    assert pairs(plain) == pairs(mixed) == pairs(turned, "factor_b", "factor_a")
    np.testing.assert_allclose(plain.values, mixed.values)
    np.testing.assert_allclose(plain.values, turned.values)


@pytest.mark.parametrize("method", ["greedy", "optimal"])
@pytest.mark.parametrize("similarity", ["pearson", "congruence"])
def test_a_set_of_loadings_matches_itself_whatever_its_scale(method, similarity):
    a = loadings(1, 6)
    match = match_factors(a, a * np.arange(1, 7), method=method, similarity=similarity)
    assert (match.pairs["factor_a"] == match.pairs["factor_b"]).all()
    assert match.mean == pytest.approx(1) and match.min == pytest.approx(1)
    assert match.std == pytest.approx(0, abs=1e-7)
    assert match.unmatched_a == match.unmatched_b == ()


def test_greedy_can_lose_what_optimal_keeps():
    rng = np.random.default_rng(0)
    base = np.linalg.qr(rng.standard_normal((40, 4)))[0]
    base -= base.mean(axis=0)
    x, y = base[:, 0] + 0.9 * base[:, 1], base[:, 1]
    a = np.column_stack([x, y])
    b = np.column_stack([base[:, 0] + base[:, 1], x + 0.5 * base[:, 2]])
    greedy, optimal = match_factors(a, b), match_factors(a, b, method="optimal")
    assert greedy.values[0] > optimal.values[0]
    assert optimal.mean > greedy.mean


def test_congruence_and_pearson_by_their_definitions():
    a, b = loadings(3, 1), loadings(4, 1)
    x, y = a.to_numpy().ravel(), b.to_numpy().ravel()
    pair = match_factors(a, b).pairs.iloc[0]
    assert pair["pearson"] == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert pair["congruence"] == pytest.approx((x @ y) / np.sqrt((x @ x) * (y @ y)))


def test_tables_are_joined_on_item_names_and_models_are_taken():
    a = loadings(5, 3)
    b = pd.concat([a, pd.DataFrame(9.0, index=["only in b"], columns=a.columns)]).iloc[::-1]
    match = match_factors(SimpleNamespace(loadings_=a), SimpleNamespace(loadings_=b))
    assert match.n_items == 12 and match.mean == pytest.approx(1)
    assert match_factors(a.to_numpy(), a).mean == pytest.approx(1)


def test_a_factor_without_direction_counts_as_zero():
    a = loadings(6, 2)
    a["F1"] = 0.3
    match = match_factors(a, a)
    assert match.pairs["pearson"].tolist() == pytest.approx([1, 0])
    assert match.pairs["congruence"].tolist() == pytest.approx([1, 1])
    assert match_factors(a * 0, a).mean == 0


def test_repr_tells_the_pairs_and_who_is_left():
    text = repr(match_factors(loadings(7, 3, prefix="A"), loadings(8, 1, prefix="B")))
    assert text.startswith("1 matched pair over 12 items (greedy, pearson): mean ")
    assert "factor_a" in text and "unmatched in a: A" in text and "unmatched in b" not in text


@pytest.mark.parametrize(
    ("a", "b", "options", "words"),
    [
        (loadings(1, 2), loadings(1, 2).rename(lambda q: f"x{q}"), {}, "share 0 item names.*'q0'.*'xq0'"),
        (loadings(1, 2), loadings(1, 2, items=2), {}, "share 2 item names"),
        (np.ones((5, 2)), np.ones((6, 2)), {}, "a has 5 items and b has 6"),
        (np.ones((2, 2)), np.ones((2, 2)), {}, "a and b have 2 items, but 3"),
        (np.ones(5), np.ones((5, 2)), {}, "a has 1 dimension"),
        (np.ones((5, 2)), np.ones((5, 0)), {}, "b has no factors"),
        (loadings(1, 2).replace(loadings(1, 2).iat[3, 1], np.nan), loadings(1, 2), {}, "'q3', factor 'F1'"),
        (pd.DataFrame({"F": ["x", "y", "z"]}), np.ones((3, 1)), {}, "a holds loadings that are not numbers"),
        (pd.concat([loadings(1, 2)] * 2), loadings(1, 2), {}, "a has the item 'q0' twice"),
        (np.ones((5, 2)), np.ones((5, 2)), {"method": "best"}, "method is 'best'; choose one of 'greedy'"),
        (np.ones((5, 2)), np.ones((5, 2)), {"similarity": "cosine"}, "similarity is 'cosine'"),
    ],
)
def test_what_cannot_be_compared_is_said_in_a_sentence(a, b, options, words):
    with pytest.raises(InputError, match=words):
        match_factors(a, b, **options)


@settings(deadline=None)
@given(st.integers(1, 6), st.integers(0, 100))
def test_matching_finds_a_permutation(k, seed):
    rng = np.random.default_rng(seed)
    reference, order = rng.random((k, 20)), rng.permutation(k)
    found, agreement = aligned(reference, 3 * reference[order] + 1)
    assert (order[found] == np.arange(k)).all()
    assert agreement == pytest.approx(1)


def test_correlations_are_pearsons_and_a_constant_has_none():
    rng = np.random.default_rng(0)
    a, b = rng.random((3, 12)), rng.random((4, 12))
    np.testing.assert_allclose(correlations(a, b), np.corrcoef(a, b)[:3, 3:])
    b[1] = 0.0
    assert (correlations(a, b)[:, 1] == 0).all()
    assert np.abs(correlations(a, a)).max() <= 1


@settings(max_examples=30, deadline=None)
@given(SEEDS, SIZES, SIZES)
def test_all_measures_of_agreement_come_from_one_matcher(seed, k, other):
    """What halves, studies and tables of pairs say is the same number."""
    a, b = loadings(seed, k), loadings(seed + 1, other)
    similarity = correlations(a.to_numpy().T, b.to_numpy().T)
    greedy, optimal = (similarity[paired(similarity, greedy=way)].mean() for way in (True, False))
    found = agreement(a, b)
    assert found["pearson"] == pytest.approx(greedy, abs=1e-12)
    assert found["pearson_optimal"] == pytest.approx(optimal, abs=1e-12)
    if k == other:
        assert aligned(a.to_numpy().T, b.to_numpy().T)[1] == pytest.approx(optimal, abs=1e-12)
    assert found["pearson_sd"] == pytest.approx(match_factors(a, b).std, abs=1e-12)
