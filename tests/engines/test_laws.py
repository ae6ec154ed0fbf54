"""The laws of every engine: blocks, batches and masks change nothing but the last digits."""

import pickle
from functools import partial

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from icqf import ICQF
from icqf.core import observations
from icqf.core.start import Starts
from icqf.datasets import load_demo, make_synthetic
from icqf.engines import choice
from icqf.engines.base import IterationProgress, NamedStart, Solver
from icqf.engines.threads import one_blas_thread
from solving import with_answers


def stated(**options):
    data = make_synthetic(90, 24, 3, noise=0.2, missing=0.05, confounded=True, random_state=0)
    model = ICQF(3, item_range=(0, 100), dtype="float64", **options)
    return model.state(data.answers, confounds=data.confounds).problem


ENGINES = {
    "bound off": ("local", None),
    "bound on": ("local", "item_range"),
    "dask": ("dask", "item_range"),
}


every_engine = pytest.mark.parametrize("engine_and_bound", ENGINES, indirect=True)


@pytest.mark.parametrize("threads", [2, 3])
def test_the_number_of_threads_changes_no_digit(threads, monkeypatch):
    monkeypatch.setattr(observations, "_BLOCK_ROWS", 8)  # eleven blocks, as 45 000 participants have
    problem = stated(reconstruction_max="item_range")
    found = []
    for number in (1, threads):
        monkeypatch.setattr(one_blas_thread, "allowed", lambda number=number: number)
        (fit,) = choice.run(problem, NamedStart("nndsvd", 3, np.random.default_rng(0)), tol=1e-3)
        found.append(fit)
    one, several = found
    np.testing.assert_array_equal(one.factors.scores, several.factors.scores)
    np.testing.assert_array_equal(one.factors.loadings, several.factors.loadings)
    assert one.objective == several.objective
    assert one.certificate == several.certificate


def test_threads_of_the_linear_algebra_library_change_no_digit():
    model, found = ICQF(3, random_state=0, n_init=1), []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            found.append(model.fit(load_demo()).loadings_.to_numpy())
    np.testing.assert_array_equal(*found)


@pytest.fixture(params=["bound off", "bound on"])
def engine_and_bound(request):
    engine, bound = ENGINES[request.param]
    if engine == "dask":  # three chunks for two workers
        from icqf.engines import Dask

        engine = Dask(request.getfixturevalue("client"), chunk=30)
    return engine, bound


@pytest.fixture
def problem(engine_and_bound):
    return stated(reconstruction_max=engine_and_bound[1])


@pytest.fixture
def run(engine_and_bound):
    return partial(choice.run, engine=engine_and_bound[0])


def close(a, b, **limits):
    np.testing.assert_allclose(a.factors.scores, b.factors.scores, **{"atol": 1e-8, "rtol": 0} | limits)
    np.testing.assert_allclose(a.factors.loadings, b.factors.loadings, **{"atol": 1e-6, "rtol": 0} | limits)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("rows", [7, 30, 89])
def test_many_blocks_equal_one_block(monkeypatch, run, problem, rows, exact):
    start = Starts(problem).make("nndsvd", 3)
    (one,) = run(problem, start, tol=1e-3, exact=exact)
    monkeypatch.setattr(observations, "_BLOCK_ROWS", rows)
    cut = with_answers(problem, problem.answers)
    assert len(list(cut.blocks())) == max(1, 90 // rows)
    (many,) = run(cut, start, tol=1e-3, exact=exact)
    assert many.n_iter == one.n_iter
    close(one, many)


@every_engine
def test_the_order_of_participants_does_not_matter(monkeypatch, run, problem):
    monkeypatch.setattr(observations, "_BLOCK_ROWS", 20)
    start = Starts(problem).make("nndsvd", 3)
    order = np.random.default_rng(1).permutation(problem.n)
    mixed = problem.of_rows(order)
    (plain,), (permuted,) = (
        run(each, begin, tol=1e-3)
        for each, begin in (
            (problem, start),
            (mixed, type(start)(start.scores[:, order], start.loadings)),
        )
    )
    np.testing.assert_allclose(permuted.factors.scores, plain.factors.scores[:, order], atol=1e-8)
    np.testing.assert_allclose(permuted.factors.loadings, plain.factors.loadings, atol=1e-6)


@pytest.mark.parametrize("exact", [True, False])
def test_a_batch_equals_its_problems_one_by_one(run, problem, exact):
    """Problems that share answers and differ in mask, weights or β: to the bit."""
    rng = np.random.default_rng(2)
    mask = rng.random((problem.n, problem.m)) < 0.2
    counts = rng.multinomial(problem.n, np.full(problem.n, 1 / problem.n))
    batch = [problem, problem.hide(mask), problem.with_beta(0.5), problem.drawn(counts)]
    starts = [Starts(each).make("nndsvd", 3) for each in batch]
    together = run(batch, starts, tol=1e-3, exact=exact)
    for each, start, found in zip(batch, starts, together, strict=True):
        (alone,) = run(each, start, tol=1e-3, exact=exact)
        np.testing.assert_array_equal(alone.factors.loadings, found.factors.loadings)
        np.testing.assert_array_equal(alone.factors.scores, found.factors.scores)
    assert not np.allclose(together[0].factors.loadings, together[1].factors.loadings)


def test_a_mask_gives_what_the_masked_table_gives(run, problem):
    mask = np.random.default_rng(3).random((problem.n, problem.m)) < 0.3
    answers = problem.answers.astype(float)
    answers[mask] = np.nan
    masked, hidden = with_answers(problem, answers), problem.hide(mask)
    found = [run(each, Starts(each).make("nndsvd", 3), tol=1e-3)[0] for each in (masked, hidden)]
    np.testing.assert_array_equal(found[0].factors.loadings, found[1].factors.loadings)
    np.testing.assert_array_equal(found[0].factors.scores, found[1].factors.scores)


@every_engine
def test_a_resample_equals_its_rows_repeated(run, problem):
    counts = np.random.default_rng(4).multinomial(problem.n, np.full(problem.n, 1 / problem.n))
    start = Starts(problem).make("nndsvd", 3)
    drawn, rows = np.flatnonzero(counts), np.repeat(np.arange(problem.n), counts)
    (weighted,) = run(problem.drawn(counts), type(start)(start.scores[:, drawn], start.loadings), tol=1e-3)
    (repeated,) = run(problem.of_rows(rows), type(start)(start.scores[:, rows], start.loadings), tol=1e-3)
    assert problem.drawn(counts).gamma == pytest.approx(problem.of_rows(rows).gamma)
    np.testing.assert_allclose(weighted.factors.loadings, repeated.factors.loadings, atol=1e-6)


def test_a_fit_that_begins_near_its_end_is_there_soon(run, problem):
    start = Starts(problem).make("nndsvd", 3)
    (first,) = run(problem, start, tol=2e-3, exact=False)
    (warm,), (cold,) = (
        run(problem.with_beta(0.2), begin, tol=2e-3, exact=False) for begin in (first.factors, start)
    )
    assert warm.n_iter < cold.n_iter


def test_one_start_for_all_and_several_for_one(run, problem):
    starts = Starts(problem)
    begin = [starts.make(name, 3, np.random.default_rng(0)) for name in ("nndsvd", "rotated", "random")]
    found = run(problem, begin, tol=1e-3)
    assert len(found) == 3
    assert len(run([problem, problem], begin[0], tol=1e-3)) == 2
    with pytest.raises(ValueError, match="zip"):
        run([problem, problem], begin, tol=1e-3)


def test_a_start_is_left_alone(run, problem):
    start = Starts(problem).make("nndsvd", 3)
    before = start.scores.copy(), start.loadings.copy()
    for solver in (Solver(), Solver("admm")):
        run(problem, start, tol=1e-2, solver=solver, exact=False)
    np.testing.assert_array_equal(start.scores, before[0])
    np.testing.assert_array_equal(start.loadings, before[1])


@every_engine
def test_a_callback_hears_of_every_iteration(run, problem):
    heard: list[IterationProgress] = []
    (found,) = run(problem, Starts(problem).make("nndsvd", 3), tol=1e-3, callback=heard.append)
    assert [each.iteration for each in heard] == list(range(1, found.n_iter + 1))
    assert [each.objective for each in heard] == found.trace.objective


@every_engine
def test_a_fit_that_ran_out_of_iterations_says_so(run, problem):
    (found,) = run(problem, Starts(problem).make("nndsvd", 3), tol=1e-6, max_iter=2)
    assert not found.converged and found.n_iter == 2
    assert not found.certificate.holds(1e-6)


def test_a_problem_travels_without_its_decoded_table(problem):
    before = len(pickle.dumps(problem))
    list(problem.blocks())
    assert len(pickle.dumps(problem)) == before
    again = pickle.loads(pickle.dumps(problem))
    np.testing.assert_array_equal(next(iter(again.blocks())).X, next(iter(problem.blocks())).X)


def test_problems_that_share_answers_share_the_decoded_table(problem):
    other = problem.with_beta(0.7).without_reconstruction_bound()
    assert next(iter(other.blocks())).X is next(iter(problem.blocks())).X
