"""How many factors: against psych, and laws."""

import dataclasses
import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.optimize import minimize

from icqf.baselines import (
    FactorCount,
    bic_factor_analysis,
    comparison_data,
    empirical_kaiser,
    every_rule,
    hull_method,
    nest,
    parallel_analysis,
    velicer_map,
)
from icqf.baselines.factor_analysis import extract
from icqf.baselines.retention import RuleTable, make_population, upper_hull
from icqf.errors import InputError


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
    """All pairs of 4 500 items would take hours."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 3)) @ np.kron(np.eye(3), np.ones((1, 1500))) + rng.normal(size=(30, 4500))
    X[rng.random(X.shape) < hidden] = np.nan
    count = parallel_analysis(X, n_iter=5, random_state=0)
    again = parallel_analysis(X, n_iter=5, random_state=0)
    assert count.n_components == 3
    np.testing.assert_array_equal(count.curve, again.curve)
    unrelated = np.where(np.isnan(X), np.nan, rng.normal(size=X.shape))
    assert parallel_analysis(unrelated, n_iter=20, random_state=0).n_components <= 1


# --- factorCount: what it accepts and says ------------------------------------------------------------


CURVE = pd.DataFrame(
    {"n_components": [1, 2, 3], "error": [0.9, 0.4, 0.5], "se": [0.1, 0.1, 0.1], "chance": [0.8, 0.5, 0.6]}
)


def test_words():
    count = FactorCount("BIC", 1, CURVE, "One is enough.", better="lower")
    assert repr(count) == "FactorCount(method='BIC', n_components=1)"
    assert str(count) == "BIC: 1 factor. One is enough."
    assert count.value == "error"


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        FactorCount("BIC", 1, CURVE, "One.").n_components = 2


@pytest.mark.parametrize(
    ("curve", "options", "message"),
    [
        (CURVE[["error"]], {}, "needs 'n_components'"),
        (CURVE[["n_components"]], {}, "needs 'n_components'"),
        (CURVE, {"value": "bic"}, "no column 'bic'"),
        (CURVE, {"reference": "random"}, "no column 'random'"),
        (CURVE, {"better": "up"}, "choose 'lower', 'higher' or None"),
    ],
)
def test_counts_that_cannot_be(curve, options, message):
    with pytest.raises(ValueError, match=message):
        FactorCount("CV", 2, curve, "Two.", **options)


# --- empirical Kaiser criterion, Hull, comparison data and NEST: against R, a published example, and laws


RULES = (
    empirical_kaiser,
    lambda X, **options: hull_method(X, n_iter=10, random_state=0, **options),
    lambda X, **options: nest(X, n_iter=40, random_state=0, **options),
    lambda X, **options: comparison_data(X, n_samples=40, n_population=2000, random_state=0, **options),
)


@pytest.fixture(scope="module")
def from_r():
    with open(Path(__file__).parent / "golden" / "rules.json", encoding="utf-8") as file:
        return json.load(file)


def with_correlation(R, n, seed=0):
    """Normal answers of n participants whose correlations are exactly R."""
    Z = np.random.default_rng(seed).standard_normal((n, len(R)))
    Q, _ = np.linalg.qr(Z - Z.mean(axis=0))
    return Q @ np.linalg.cholesky(np.asarray(R)).T


@pytest.fixture(scope="module")
def studies(bfi, from_r):
    harman = from_r["harman74"]
    return {"bfi": bfi.dropna(), "harman74": with_correlation(harman["correlation"], harman["n"])}


def skewed(n, seed, loading=0.65):
    """Ordinal answers 0 to 3, mostly 0, with three factors that correlate at 0.3."""
    rng = np.random.default_rng(seed)
    L = np.kron(np.eye(3), np.full((1, 5), loading))
    F = rng.normal(size=(n, 3)) @ np.linalg.cholesky(np.full((3, 3), 0.3) + 0.7 * np.eye(3)).T
    return np.digitize(F @ L + np.sqrt(1 - loading**2) * rng.normal(size=(n, 15)), [0.6, 1.2, 1.9]) + 0.0


# --- against R and a published example --------------------------------------------------------------------


@pytest.mark.parametrize(("study", "kept"), [("bfi", 6), ("harman74", 4)])
def test_empirical_kaiser_agrees_with_r(studies, from_r, study, kept):
    count = empirical_kaiser(studies[study])
    np.testing.assert_allclose(count.curve["eigenvalue"], from_r[study]["eigenvalues"], atol=1e-8)
    np.testing.assert_allclose(count.curve["reference"], from_r[study]["ekc"], atol=1e-8)
    assert count.n_components == kept


@pytest.mark.parametrize(("study", "most", "kept"), [("bfi", 8, 6), ("harman74", 5, 4)])
def test_fit_of_the_hull_agrees_with_psych(studies, from_r, study, most, kept):
    count = hull_method(studies[study], max_components=most)
    np.testing.assert_allclose(count.curve["caf"], from_r[study]["caf"], atol=2e-5)
    assert count.n_components == kept == int(np.nanargmax(count.curve["elbow"]))


@pytest.mark.parametrize(("study", "kept"), [("bfi", 8), pytest.param("harman74", 4, marks=pytest.mark.long)])
def test_nest_agrees_with_samples_that_r_drew(studies, from_r, study, kept):
    count = nest(studies[study], n_iter=5000 if study == "harman74" else 300, random_state=0)
    compared = min(len(count.curve), len(from_r[study]["nest"]))
    ours, theirs = count.curve["random_eigenvalue"][:compared], from_r[study]["nest"][:compared]
    # Both are quantiles of as many draws: their standard errors are below 0.003.
    np.testing.assert_allclose(ours, theirs, atol=0.015)
    assert count.n_components == kept


@pytest.mark.parametrize("method", ["minres", "ml"])
def test_nest_on_the_worked_example_of_rnest(from_r, method):
    example = from_r["rnest"]
    published, correlation = example["published"], np.array(example["correlation"])
    # The published eigenvalues show that R drew the same answers here as there.
    np.testing.assert_allclose(np.linalg.eigvalsh(correlation)[::-1][:5], published["eigenvalues"], atol=6e-4)
    count = nest(with_correlation(correlation, example["n"]), method=method, random_state=0)
    assert count.n_components == published["n_factors"] == 4
    np.testing.assert_allclose(count.curve["eigenvalue"], published["eigenvalues"], atol=6e-4)
    np.testing.assert_allclose(count.curve["p_value"], example[f"p_{method}"], atol=0.04)
    # Rnest extracts in its own way and so has other chances (.010, .009, .727), but the same decisions.
    assert ((count.curve["p_value"] < 0.05) == (np.array(published["p"]) < 0.05)).all()
    fewer = nest(with_correlation(example["population"], 240), method=method, random_state=0)
    assert fewer.n_components == published["n_factors_240"] == 2


def test_horn_agrees_with_nfactors(studies, from_r):
    count = parallel_analysis(studies["bfi"], kind="pc", n_iter=300, random_state=0)
    np.testing.assert_allclose(count.curve["random_eigenvalue"], from_r["bfi"]["horn_quantile"], atol=0.01)


# --- against slow and independent versions ----------------------------------------------------------------


def test_nest_draws_like_samples_of_participants():
    X = skewed(300, 0)
    gap = X.copy()
    gap[0, 0] = np.nan  # a missing answer, so that participants are drawn, not sums of products
    fast, slow = (nest(table, n_iter=400, random_state=0).curve for table in (X, gap))
    np.testing.assert_allclose(fast["random_eigenvalue"], slow["random_eigenvalue"], atol=0.025)


def test_upper_hull_is_that_of_every_pair():
    rng = np.random.default_rng(0)
    for _ in range(200):
        x, y = np.arange(8), np.round(rng.random(8), 2)
        higher = [i for i in range(8) if all(y[j] < y[i] for j in range(i))]
        expected = [
            i
            for i in higher
            if not any(
                a < i < b and y[i] <= y[a] + (y[b] - y[a]) * (x[i] - x[a]) / (x[b] - x[a]) + 1e-12
                for a in higher
                for b in higher
            )
        ]
        assert upper_hull(x, y) == expected


def test_a_population_has_the_marginals_the_correlations_and_no_more_factors():
    X = skewed(2000, 1)
    R = np.corrcoef(X.T)
    ordered = np.sort(np.repeat(X, 3, axis=0), axis=0)
    for k, lowest, highest in ((3, 0, 0.02), (1, 0.05, 0.2)):
        made = make_population(R, ordered, k, np.random.default_rng(0))
        assert (np.sort(made, axis=0) == ordered).all()
        left = (np.corrcoef(made.T) - R)[np.tril_indices(15, -1)]
        assert lowest <= np.sqrt(np.mean(left**2)) <= highest


def distances_of_a_plain_version(X, k, samples, rng):
    """Comparison data by the definition, one item and one sample at a time, with principal axes."""
    n, m = X.shape
    R, size = np.corrcoef(X.T), 6000
    shared, own = rng.normal(size=(size, k)), rng.normal(size=(size, m))
    marginal = [np.sort(rng.choice(X[:, j], size=size)) for j in range(m)]
    aim, best, step = R.copy(), np.inf, 0
    while step < 5:
        h = np.full(m, 0.5)
        for _ in range(200):
            reduced = aim - np.diag(np.diag(aim)) + np.diag(h)
            values, vectors = np.linalg.eigh(reduced)
            L = vectors[:, -k:] * np.sqrt(np.maximum(values[-k:], 0))
            h = np.minimum((L**2).sum(axis=1), 0.995)
        made = np.empty((size, m))
        for j in range(m):
            level = shared @ L[j] + own[:, j] * np.sqrt(1 - h[j])
            made[np.argsort(level), j] = marginal[j]
        left = R - np.corrcoef(made.T)
        miss = np.sqrt(np.mean(left[np.tril_indices(m, -1)] ** 2))
        if miss < best:
            best, kept, best_aim, best_left, step = miss, made, aim, left, 0
        else:
            step += 1
        aim = best_aim + best_left * 0.5**step
    wanted, away = np.linalg.eigvalsh(R), []
    for _ in range(samples):
        found = np.linalg.eigvalsh(np.corrcoef(kept[rng.choice(size, size=n)].T))
        away.append(np.sqrt(np.mean((found - wanted) ** 2)))
    return away


def test_comparison_data_agrees_with_a_plain_version_of_it():
    X = skewed(400, 0)
    rng = np.random.default_rng(1)
    plain = [distances_of_a_plain_version(X, k, 100, rng) for k in (1, 2, 3, 4)]
    count = comparison_data(X, n_samples=100, random_state=0)
    ours = count.curve.set_index("n_components")["rmsr"]
    assert count.n_components == 3 and list(ours.index) == [1, 2, 3, 4]
    np.testing.assert_allclose(ours, np.mean(plain, axis=1), atol=0.01)
    tests = [stats.mannwhitneyu(b, a, alternative="less").pvalue for a, b in itertools.pairwise(plain)]
    assert [p > 0.3 for p in tests] == (count.curve["p_value"][1:] > 0.3).tolist() == [False, False, True]


def test_known_structure_is_found():
    found = pd.DataFrame([[rule(skewed(400, seed)).n_components for rule in RULES] for seed in range(6)])
    assert (found.median() == 3).all()
    assert (found - 3).abs().mean().max() <= 0.5


def test_other_rules_find_no_factors_in_unrelated_items():
    X = np.random.default_rng(11).normal(size=(500, 8))
    for rule in (empirical_kaiser, lambda X: nest(X, random_state=1)):
        count = rule(X)
        assert count.n_components == 0 and "irst factor" in count.reason


# --- laws -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("correlation", ["pairwise", "em"])
def test_missing_answers(gappy, rule, correlation):
    count = rule(gappy, correlation=correlation)
    assert 2 <= count.n_components <= 4
    padded = np.vstack([gappy, np.full((20, 12), np.nan)])
    assert rule(padded, correlation=correlation).curve.equals(count.curve)


@pytest.mark.parametrize("rule", RULES)
def test_the_same_seed_gives_the_same_curve(gappy, rule):
    assert rule(gappy).curve.equals(rule(gappy).curve)


def test_another_seed_gives_other_samples(three_factors):
    for rule in (nest, lambda X, **given: comparison_data(X, n_samples=10, n_population=1000, **given)):
        assert not rule(three_factors, random_state=0).curve.equals(rule(three_factors, random_state=1).curve)


@pytest.mark.parametrize("rule", RULES[:3])
def test_reflecting_rescaling_and_shuffling_items_changes_no_fit(three_factors, rule):
    order = np.random.default_rng(2).permutation(12)
    changed = three_factors[:, order] * np.where(np.arange(12) % 2, -2.0, 5.0) + 7.0
    plain, other = rule(three_factors), rule(changed)
    assert plain.n_components == other.n_components
    np.testing.assert_allclose(plain.curve[plain.value], other.curve[other.value], rtol=1e-5)


def test_a_hull_without_an_elbow_says_so(monkeypatch, three_factors):
    monkeypatch.setattr("icqf.baselines.retention._common_part", lambda R, k: 0.01 * k**2)
    count = hull_method(three_factors, max_components=4)
    assert count.n_components == 4 and count.reason.startswith("There is no elbow")


def test_a_limit_that_is_reached_is_said(three_factors):
    count = nest(three_factors, n_iter=20, max_components=1, random_state=0)
    assert count.n_components == 1 and "did not suffice" in count.reason
    count = comparison_data(three_factors, n_samples=20, max_components=2, random_state=0)
    assert count.n_components == 2 and "the most tried" in count.reason


def test_a_rare_answer_may_be_missing_from_a_sample():
    X = skewed(60, 0)
    X[:, 0] = 0
    X[0, 0] = 1
    assert comparison_data(X, n_samples=30, random_state=0).n_components >= 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: nest(X, n_iter=0), "at least one sample"),
        (lambda X: nest(X, quantile=95), "between 0 and 1"),
        (lambda X: nest(X[:, :2]), "too few for NEST; at least 3"),
        (lambda X: nest(X[:12]), "12 participants and 12 items. Use parallel_analysis"),
        (lambda X: comparison_data(X[:12]), "need more participants than items"),
        (lambda X: nest(X, max_components=8), "choose 1 to 7"),
        (lambda X: hull_method(X[:, :4]), "at least 5"),
        (lambda X: hull_method(X[:9]), "not positive definite"),
        (lambda X: hull_method(X, max_components=9), "choose 1 to 7"),
        (lambda X: comparison_data(X, n_samples=1), "at least two samples"),
        (lambda X: comparison_data(X, n_population=50), "at least 100"),
        (lambda X: comparison_data(X, alpha=0), "between 0 and 1"),
        (lambda X: comparison_data(X[:, :2]), "at least 3"),
        (lambda X: every_rule(X, n_iter=1), "at least two"),
        (lambda X: every_rule(X[:, :0]), "minimum of 2 is required"),
    ],
)
def test_what_other_rules_refuse(three_factors, call, message):
    with pytest.raises(ValueError, match=message):
        call(three_factors)


# --- all of them ------------------------------------------------------------------------------------------


def test_every_rule_in_one_table(gappy):
    found = every_rule(gappy, n_iter=20, random_state=3)
    assert found.table["rule"].tolist() == [
        "Parallel analysis",
        "NEST",
        "Comparison data",
        "BIC",
        "Empirical Kaiser criterion",
        "Velicer's MAP",
        "Hull method",
    ]
    assert found.table["n_components"].between(2, 4).all() and not found.refused
    for column in ("reason", "counts", "reference"):
        assert found.table[column].str.len().gt(10).all()
    assert (found.table["counts"].str.endswith(".") & found.table["reason"].str.endswith(".")).all()
    assert every_rule(gappy, n_iter=20, random_state=3).table.equals(found.table)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["rules"][1]["rule"] == "NEST"


def test_a_rule_that_cannot_be_run_is_listed_with_the_reason(three_factors):
    found = every_rule(three_factors[:9], n_iter=5)
    refused = found.table[found.table["n_components"].isna()]
    assert set(refused["rule"]) == {"BIC", "Hull method", "NEST", "Comparison data"}
    assert refused["reason"].str.startswith("Could not be run: ").all()
    assert found.to_dict()["rules"][-1]["n_components"] is None


def count_of(method, k):
    return FactorCount(method, k, pd.DataFrame({"n_components": [k], "value": [1.0]}), "So.")


def test_a_disagreement_is_explained():
    counts = [("Parallel analysis", 9), ("NEST", 9), ("Velicer's MAP", 5), ("Hull method", 2)]
    table = RuleTable(tuple(count_of(*each) for each in counts)).with_first(
        count_of("Blockwise cross-validation", 7)
    )
    text = " ".join(table.explanation)
    assert "between 2 (the Hull method) and 9 factors (parallel analysis and NEST)" in text
    assert "Parallel analysis and NEST count any dimension beyond chance, including small ones" in text
    assert "Velicer's MAP and the Hull method count only what many items have in common" in text
    assert "Cross-validation counts the factors that help predict hidden answers" in text
    agreed = RuleTable(tuple(count_of(method, 3) for method, _ in counts))
    assert agreed.explanation == ("All 4 rules keep 3 factors.",)
    assert RuleTable(()).explanation == ("No rule could be run on these answers.",)
    assert RuleTable((count_of("NEST", 1),)).explanation[0].endswith("NEST keeps 1 factor.")


# --- NEST beside a slow witness, and where it does not end ------------------------------------------------


def slow_nest(X, rng, n_iter=200, most=8):
    """Achim (2017) to the letter: loadings by a general optimizer, samples of participants one by one."""
    R = np.corrcoef(X.T)
    m, off = len(R), ~np.eye(len(R), dtype=bool)
    observed = np.linalg.eigvalsh(R)[::-1]

    def model(k):
        def misfit(flat):
            left = (R - flat.reshape(m, k) @ flat.reshape(m, k).T) * off
            return 0.5 * (left**2).sum(), (-2 * left @ flat.reshape(m, k)).ravel()

        values, vectors = np.linalg.eigh(R)
        start = vectors[:, -k:] * np.sqrt(values[-k:] * 0.7)
        L = minimize(misfit, start.ravel(), jac=True, method="L-BFGS-B").x.reshape(m, k)
        return L @ L.T + np.diag(np.maximum(1 - (L**2).sum(axis=1), 0.005))

    bars = []
    for k in range(most):
        covariance = model(k) if k else np.eye(m)
        samples = (rng.multivariate_normal(np.zeros(m), covariance, len(X)) for _ in range(n_iter))
        bars.append(np.quantile([np.linalg.eigvalsh(np.corrcoef(each.T))[-1 - k] for each in samples], 0.95))
        if observed[k] <= bars[-1]:
            break
    return k, bars


def answers_of(rng, n=200, k=3, m=15, cuts=None):
    """Participants who answer m items of k factors, as they are or cut into grades."""
    loadings = np.kron(np.eye(k), np.full((1, m // k), 0.7))
    drawn = rng.normal(size=(n, k)) @ loadings + 0.7 * rng.normal(size=(n, m // k * k))
    return drawn if cuts is None else np.digitize(drawn, cuts).astype(float)


@pytest.mark.parametrize("seed", range(3))
def test_nest_agrees_with_a_slow_witness(seed):
    X = answers_of(np.random.default_rng(seed), k=2 + seed % 2, m=12, cuts=[-0.5, 0.5, 1.5])
    kept, bars = slow_nest(X, np.random.default_rng(100))
    count = nest(X, n_iter=400, random_state=0)
    assert count.n_components == kept
    np.testing.assert_allclose(count.curve["random_eigenvalue"], bars, rtol=0.03)


def test_nest_finds_the_factors_of_simulated_studies():
    found = [
        nest(answers_of(np.random.default_rng(s)), n_iter=60, random_state=0).n_components for s in range(20)
    ]
    assert np.mean(np.array(found) == 3) >= 0.85  # a level of 5 %, and few samples


@pytest.mark.long
def test_nest_does_not_run_away_with_rare_answers():
    """Of 57 yes/no items with few yes, 46 factors were kept, which is all that 57 items can identify."""
    X = answers_of(np.random.default_rng(0), n=300, m=57, cuts=[2.0])
    with pytest.raises(
        InputError, match=r"NEST finds no number of factors .* rare or yes/no answers vary more"
    ):
        nest(X, n_iter=20, random_state=0)
    assert nest(X, n_iter=20, max_components=5, random_state=0).n_components == 5  # what is asked is answered
    table = every_rule(X, n_iter=10).table.set_index("rule")
    assert pd.isna(table.loc["NEST", "n_components"]) and "no number" in table.loc["NEST", "reason"]
