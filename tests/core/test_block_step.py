"""The seam: a step touches only its own block, sums add, and F and γ are what the specification says."""

import numpy as np
import pytest

from icqf import ICQF
from icqf.core import observations
from icqf.core.block_step import Loadings, Multipliers, block_step, extrapolated, updated_multipliers
from icqf.core.observations import Block, half_square
from icqf.core.problem import half_square_of_products
from icqf.core.start import Starts
from icqf.datasets import make_synthetic
from solving import solved, with_answers


def problem_with(missing, *, weights=None, **options):
    data = make_synthetic(60, 20, 3, noise=0.3, missing=missing, confounded=True, random_state=1)
    model = ICQF(3, item_range=(0, 100), dtype="float64", smallest_category=1, **options)
    return model.state(data.answers, confounds=data.confounds, sample_weight=weights).problem


WEIGHTS = np.random.default_rng(0).integers(1, 4, 60)
CASES = {
    "complete": (0.0, {}, False),
    "missing": (0.1, {}, False),
    "complete, bound looked at": (0.0, {}, True),
    "missing, weighted, bound looked at": (0.1, {"weights": WEIGHTS}, True),
    "ridge": (0.1, {"penalty": "l2"}, True),
    "row groups": (0.1, {"penalty": "l21"}, True),
}


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request):
    """A block, scores, multipliers (or None) and loadings high enough that the bound is reached."""
    missing, options, look = request.param
    problem = problem_with(missing, **options)
    (block,) = problem.blocks()
    rng = np.random.default_rng(5)
    y = rng.random((3, problem.n))
    Q = np.concatenate([rng.uniform(0, 60, (3, problem.m)), rng.uniform(0, 10, (problem.c, problem.m))])
    multipliers = None
    if look:
        at_bound = np.arange(0, problem.n, 7)
        multipliers = Multipliers(at_bound, *rng.random((2, len(at_bound), problem.m)))
    return problem, block, y, multipliers, Loadings(Q, 3)


def arrays_of(block, multipliers):
    found = [block.X, block.O, block.C, block.weights]
    found += [] if multipliers is None else [multipliers.rows, multipliers.values]
    return [each for each in found if each is not None]


def test_a_step_changes_nothing_that_it_is_given(case):
    problem, block, y, multipliers, loadings = case
    given = [*arrays_of(block, multipliers), y, loadings.Q]
    before = [each.copy() for each in given]
    for each in given:
        each.flags.writeable = False
    first = block_step(block, y, multipliers, loadings, problem.terms)
    second = block_step(block, y, multipliers, loadings, problem.terms)
    for each, copy in zip(given, before, strict=True):
        np.testing.assert_array_equal(each, copy)
        each.flags.writeable = True
    np.testing.assert_array_equal(first[0], second[0])
    assert not np.array_equal(first[0], y)


def test_two_halves_of_a_block_add_up_to_the_block(monkeypatch, case):
    problem, block, y, multipliers, loadings = case
    W, at_bound, whole = block_step(block, y, multipliers, loadings, problem.terms)
    monkeypatch.setattr(observations, "_BLOCK_ROWS", 30)
    halves = list(with_answers(problem, problem.answers).blocks())
    assert len(halves) == 2
    parts = [
        block_step(
            half,
            y[:, half.rows],
            None if multipliers is None else multipliers.within(half.rows),
            loadings,
            problem.terms,
        )
        for half in halves
    ]
    np.testing.assert_allclose(np.concatenate([part[0] for part in parts], axis=1), W, atol=1e-12)
    for total in (parts[0][2] + parts[1][2], parts[1][2] + parts[0][2]):
        for name, value in vars(whole).items():
            other = getattr(total, name)
            if value is None:
                assert other is None
            else:
                np.testing.assert_allclose(other, value, rtol=1e-10, atol=1e-9, err_msg=name)
    if multipliers is not None:
        firsts = [half.rows.start for half in halves]
        joined = Multipliers.joined(list(zip(firsts, [part[1] for part in parts], strict=True)))
        np.testing.assert_array_equal(joined.rows, at_bound.rows)
        np.testing.assert_array_equal(joined.values, at_bound.values)
        np.testing.assert_array_equal(joined.plain, at_bound.plain)
        assert len(at_bound.rows) >= len(multipliers.rows) and whole.excess > 0


def test_each_field_of_the_sums_is_its_equation(case):
    problem, block, y, multipliers, loadings = case
    W, at_bound, sums = block_step(block, y, multipliers, loadings, problem.terms)
    weights = np.ones(problem.n) if block.weights is None else block.weights
    A = np.concatenate([W, block.C])
    np.testing.assert_allclose(sums.S, sum(w * np.outer(a, a) for w, a in zip(weights, A.T, strict=True)))
    np.testing.assert_allclose(sums.peak, W.max(axis=1))
    np.testing.assert_allclose(sums.step, np.abs(W - y).max(axis=1))
    plain = block.O is None and multipliers is None
    at = np.concatenate([y, block.C])  # the misfit is taken before the step, with gaps or without
    R = at.T @ loadings.Q
    misfit = 0.5 * (weights[:, None] * block.observed() * (block.X - R) ** 2).sum()
    assert sums.misfit == pytest.approx(misfit)
    assert sums.penalty == pytest.approx(problem.penalty.value(at[:3], block.weights))
    if not plain:
        excess = np.maximum(R / problem.span - 1, 0).max() if multipliers is not None else 0.0
        assert sums.excess == pytest.approx(excess)
    if multipliers is not None:
        sigma, bound, k = problem.terms.sigma, problem.bounds.reconstruction, len(A)
        rows = at_bound.rows
        pull = at_bound.values + sigma * ((A.T @ loadings.Q)[rows] - bound)
        expected = np.zeros((k, k, problem.m))
        for at_row, row in enumerate(rows):
            outer = weights[row] * np.outer(A[:, row], A[:, row])
            expected += sigma * outer[:, :, None] * (pull[at_row] > 0)
        np.testing.assert_allclose(sums.active, expected[np.triu_indices(k)])


def test_multipliers_follow_the_excess_and_let_go():
    problem = problem_with(0.0)
    (block,) = problem.blocks()
    W, Q = np.full((3, problem.n), 0.5), np.zeros((3 + problem.c, problem.m))
    Q[0, 0] = 210.0
    before = Multipliers(np.array([0, 5]), *np.zeros((2, 2, problem.m)))
    after = updated_multipliers(block, W, before, Q, problem.terms, 0.9)
    np.testing.assert_array_equal(after.rows, [0, 5])
    assert after.plain[0, 0] == pytest.approx(problem.terms.sigma * 5)
    assert after.plain[:, 1:].max() == after.values[:, 1:].max() == 0
    assert len(updated_multipliers(block, W, before, Q / 2, problem.terms, 0.9).rows) == 0


def test_multipliers_are_extrapolated_while_they_go_on():
    """One that has turned back is not, and none is extrapolated below zero or away from it."""
    problem = problem_with(0.0)
    (block,) = problem.blocks()
    W, Q = np.full((3, problem.n), 0.5), np.zeros((3 + problem.c, problem.m))
    Q[0, :4] = 210.0, 210.0, 190.0, 150.0
    sigma = problem.terms.sigma
    start, plain = np.zeros((2, 1, problem.m))
    start[0, :4], plain[0, :4] = 30 * sigma, (31 * sigma, 40 * sigma, 40 * sigma, 30 * sigma)
    found = updated_multipliers(block, W, Multipliers(np.array([2]), start, plain), Q, problem.terms, 0.9)
    ended = np.array([35, 35, 25, 5]) * sigma
    np.testing.assert_allclose(found.plain[0, :4], ended)
    goes_on = np.array([True, False, True, True])
    extrapolated_to = np.maximum(ended + 0.9 * (ended - plain[0, :4]), 0)
    np.testing.assert_allclose(found.values[0, :4], np.where(goes_on, extrapolated_to, ended), rtol=1e-6)


def test_extrapolation_stays_in_the_box_and_leaves_those_at_the_bound():
    W, previous = np.array([[0.5, 0.9, 0.2]]), np.array([[0.4, 0.5, 0.4]])
    found = extrapolated(W, previous, 1.5, 1.0, still=np.array([0]))
    np.testing.assert_allclose(found, [[0.5, 1.0, 0.0]])


def test_multipliers_of_a_resample_are_those_of_the_participants_drawn():
    values = np.arange(6.0).reshape(3, 2)
    multipliers = Multipliers(np.array([1, 3, 4]), values, values + 1)
    drawn = multipliers.drawn(np.array([2, 1, 0, 0, 3]))  # participants 0, 1 and 4 are drawn
    np.testing.assert_array_equal(drawn.rows, [1, 2])
    np.testing.assert_array_equal(drawn.values, [[0, 1], [4, 5]])
    np.testing.assert_array_equal(drawn.plain, [[1, 2], [5, 6]])


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_the_misfit_from_products_is_the_misfit(weights):
    rng = np.random.default_rng(3)
    A, X, Q = rng.random((4, 60)), rng.random((60, 20)), rng.random((4, 20))
    block = Block(slice(0, 60), X, None, A[:0], weights, A[:0], weights)
    found = half_square_of_products(block, A, Q @ X.T, Q)
    assert found == pytest.approx(half_square(X - A.T @ Q, weights))


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_gamma_is_its_formula_and_follows_the_participants(weights):
    problem = problem_with(0.0, weights=weights)
    total = 60 if weights is None else weights.sum()
    assert problem.gamma == total / 20 * 100
    rows = np.arange(0, 60, 2)
    part = 30 if weights is None else weights[rows].sum()
    assert problem.of_rows(rows).gamma == part / 20 * 100


@pytest.mark.parametrize(
    ("penalty", "solver"),
    [("l1", "fast"), ("l2", "fast"), ("l21", "fast"), ("l1", "admm"), ("l2", "admm")]
    + [pytest.param("l21", "admm", marks=pytest.mark.long)],
)
def test_trace_and_certificate_call_one_objective(penalty, solver):
    """The last entry of a settled trace, and the objective of the finished fit, are F there."""
    problem = problem_with(0.1, penalty=penalty, weights=WEIGHTS, reconstruction_max=None)
    found = solved(problem, 3, tol=1e-5, max_iter=5000, name=solver)
    value = problem.objective(found.factors.scores, found.factors.loadings)
    assert found.objective == pytest.approx(value, rel=1e-12)
    assert found.trace.objective[-1] == pytest.approx(value, rel=1e-4)


def test_starts_share_their_spectra_and_differ_by_penalty():
    starts = Starts(problem_with(0.1))
    other = starts.with_beta(5.0)
    assert other.problem.penalty.beta == 5.0
    assert not np.array_equal(starts.make("nndsvd", 3).loadings, other.make("nndsvd", 3).loadings)
