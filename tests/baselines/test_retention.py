"""How many factors: against psych, and laws."""

import numpy as np
import pytest

from icqf.baselines import bic_factor_analysis, parallel_analysis, velicer_map
from icqf.baselines.factor_analysis import extract


def test_parallel_analysis_picks_what_psych_picks(bfi, golden):
    for kind, column, picked in (
        ("fa", "fa_values", "n_factors"),
        ("pc", "pc_values", "n_components"),
    ):
        for random_data in ("normal", "permuted"):
            count = parallel_analysis(bfi, n_iter=20, kind=kind, random_data=random_data, random_state=0)
            assert count.n_components == golden["parallel"][picked] == 6
            np.testing.assert_allclose(count.curve["eigenvalue"], golden["parallel"][column], atol=1e-5)
    count = parallel_analysis(bfi, n_iter=20, communalities="smc", random_state=0)
    assert count.n_components == golden["parallel"]["smc_n_factors"] == 8
    np.testing.assert_allclose(count.curve["eigenvalue"], golden["parallel"]["smc_values"], atol=1e-8)


def test_random_eigenvalues_look_like_those_of_psych(bfi, golden):
    count = parallel_analysis(bfi, kind="pc", random_state=0)
    np.testing.assert_allclose(count.curve["random_mean"], golden["parallel"]["pc_random_mean"], atol=0.01)
    count = parallel_analysis(bfi, random_state=0)
    # The first random factor now and then swallows a single item whole, which makes its mean volatile.
    ours, theirs = count.curve["random_mean"].to_numpy(), np.array(golden["parallel"]["fa_random_mean"])
    np.testing.assert_allclose(ours[1:], theirs[1:], atol=0.01)
    assert ours[0] == pytest.approx(theirs[0], abs=0.06)


def test_map_agrees_with_psych(bfi, golden):
    count = velicer_map(bfi)
    assert count.n_components == golden["velicer"]["n_components"] == 5
    by_k = count.curve.set_index("n_components")["average_partial"]
    np.testing.assert_allclose(by_k.loc[1:20], golden["velicer"]["map"], atol=1e-9)


def test_map_by_regressing_out_components(three_factors):
    Z = (three_factors - three_factors.mean(axis=0)) / three_factors.std(axis=0)
    U, _, _ = np.linalg.svd(Z, full_matrices=False)
    curve = velicer_map(three_factors).curve.set_index("n_components")["average_partial"]
    off = ~np.eye(12, dtype=bool)
    for k in (0, 1, 3, 6):
        left = Z - U[:, :k] @ (U[:, :k].T @ Z)
        assert curve[k] == pytest.approx(np.mean(np.corrcoef(left.T)[off] ** 2))


@pytest.mark.parametrize("method", ["minres", "ml"])
def test_bic_agrees_with_psych(bfi, golden, method):
    count = bic_factor_analysis(bfi, method=method, max_components=10)
    np.testing.assert_allclose(count.curve["bic"], golden["bic"][method], atol=0.02)
    assert count.n_components == 1 + int(np.argmin(golden["bic"][method]))


@pytest.mark.parametrize("correlation", ["pairwise", "em"])
def test_three_factors_with_missing_answers(gappy, correlation):
    assert parallel_analysis(gappy, n_iter=20, correlation=correlation, random_state=0).n_components == 3
    assert velicer_map(gappy, correlation=correlation).n_components == 3
    assert velicer_map(gappy, correlation=correlation, power=4).n_components == 3
    assert bic_factor_analysis(gappy, correlation=correlation).n_components == 3


def test_unrelated_items_have_no_factors():
    X = np.random.default_rng(11).normal(size=(500, 8))
    count = parallel_analysis(X, kind="pc", random_state=1)
    assert count.n_components == 0 and "Not even the first" in count.reason
    count = velicer_map(X)
    assert count.n_components == 0 and "even one factor" in count.reason


def test_same_seed_same_answer(gappy):
    one, two, other = (parallel_analysis(gappy, n_iter=5, random_state=s).curve for s in (3, 3, 4))
    assert one.equals(two) and not one.equals(other)
    generator = np.random.default_rng(3)
    assert parallel_analysis(gappy, n_iter=5, random_state=generator).curve.equals(one)


def test_reflecting_rescaling_and_shuffling_items_changes_nothing(gappy):
    order = np.random.default_rng(2).permutation(12)
    changed = gappy[:, order] * np.where(np.arange(12) % 2, -2.0, 5.0) + 7.0
    for rule in (velicer_map, bic_factor_analysis):
        plain, other = rule(gappy), rule(changed)
        np.testing.assert_allclose(plain.curve[plain.value], other.curve[other.value], rtol=1e-6, atol=1e-8)


def test_participants_who_answered_nothing_do_not_count(gappy):
    padded = np.vstack([gappy, np.full((50, 12), np.nan)])
    assert bic_factor_analysis(padded).curve.equals(bic_factor_analysis(gappy).curve)
    assert velicer_map(padded).curve.equals(velicer_map(gappy).curve)


def test_all_stronger_than_random_is_said(three_factors, monkeypatch):
    answers = iter([np.arange(12.0, 0.0, -1.0)] + 3 * [np.zeros(12)])
    monkeypatch.setattr("icqf.baselines.retention._common_eigenvalues", lambda *_: next(answers))
    count = parallel_analysis(three_factors, n_iter=3, random_state=0)
    assert count.n_components == 12 and count.reason.startswith("Every factor")


def test_the_reason_is_one_sentence_with_numbers(bfi):
    count = parallel_analysis(bfi, n_iter=10, random_state=0)
    assert "first 6 factors" in count.reason and "factor 7 did not" in count.reason
    assert count.reason.endswith(".")
    assert "5 factors" in velicer_map(bfi).reason
    assert "8 factors" in bic_factor_analysis(bfi).reason


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: parallel_analysis(X, kind="ica"), "choose 'fa' or 'pc'"),
        (lambda X: parallel_analysis(X, communalities="one"), "choose 'minres' or 'smc'"),
        (lambda X: parallel_analysis(X, random_data="uniform"), "choose 'normal' or 'permuted'"),
        (lambda X: parallel_analysis(X, n_iter=0), "at least one random data set"),
        (lambda X: parallel_analysis(X, quantile=95), "between 0 and 1"),
        (lambda X: velicer_map(X, power=3), "choose 2"),
        (lambda X: velicer_map(X, max_components=12), "choose 1 to 11"),
        (lambda X: bic_factor_analysis(X, max_components=0), "choose 1 to"),
        (lambda X: bic_factor_analysis(X[:, :3]), "at least 4"),
        (lambda X: bic_factor_analysis(X[:9]), "not positive definite"),
    ],
)
def test_errors(three_factors, call, message):
    with pytest.raises(ValueError, match=message):
        call(three_factors)


def test_more_items_than_participants_give_the_eigenvalues_of_all_pairs():
    """The smaller side of the table, against the matrix of all pairs, decomposed whole."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) @ rng.uniform(0.3, 1, (3, 400)) + rng.normal(size=(40, 400))
    R = np.corrcoef(X.T)
    for kind, communalities, diagonal in (
        ("pc", "minres", np.ones(400)),
        ("fa", "smc", np.full(400, 0.5)),
        ("fa", "minres", np.sum(extract(R, 1).loadings ** 2, axis=1)),
    ):
        count = parallel_analysis(X, n_iter=2, kind=kind, communalities=communalities, random_state=0)
        whole = np.linalg.eigvalsh(R - np.eye(400) + np.diag(diagonal))[::-1][:39]
        np.testing.assert_allclose(count.curve["eigenvalue"], whole, atol=1e-3)


@pytest.mark.parametrize("hidden", [0.0, 0.3])
def test_many_more_items_than_participants(hidden):
    """All pairs of 9 000 items would take hours."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 3)) @ np.kron(np.eye(3), np.ones((1, 3000))) + rng.normal(size=(30, 9000))
    X[rng.random(X.shape) < hidden] = np.nan
    count = parallel_analysis(X, n_iter=5, random_state=0)
    again = parallel_analysis(X, n_iter=5, random_state=0)
    assert count.n_components == 3
    np.testing.assert_array_equal(count.curve, again.curve)
    unrelated = np.where(np.isnan(X), np.nan, rng.normal(size=X.shape))
    assert parallel_analysis(unrelated, n_iter=20, random_state=0).n_components <= 1
