"""The laws of the engine of batches: its numbers are those of the local engine, whatever is batched."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch

from icqf import ICQF, ICQFCV
from icqf.datasets import make_synthetic
from icqf.engines import torch_memory
from icqf.engines.base import Begin, Solver
from icqf.engines.choice import run
from icqf.errors import InputError
from icqf.resampling.bootstrap import bootstrap
from icqf.resampling.folds import halves_of
from icqf.resampling.halves import stability_curve
from icqf.resampling.hidden import predict_hidden
from icqf.resampling.recurrence import recurrence
from icqf.solvers.start import Starts
from solving import with_answers

UNBOUNDED = {"score_max": None, "loading_max": None, "reconstruction_max": None}
KINDS = {
    "all bounds": {},
    "no bound on answers": {"reconstruction_max": None},
    "ridge": {"penalty": "l2"},
    "unbounded": UNBOUNDED,
    "unequal ranges": {"item_weight": "variance"},
}


def stated(dtype="float64", **options):
    data = make_synthetic(90, 24, 3, noise=0.2, missing=0.05, confounded=True, random_state=0)
    model = ICQF(3, item_range=(0, 100), dtype=dtype, **options)
    return model.state(data.answers, confounds=data.confounds).problem


def some_problems(problem):
    """Problems that differ in penalty, factors, mask, weights and participants, each with a start."""
    rng = np.random.default_rng(0)
    problems = [problem.with_beta(beta) for beta in (0.1, 1.0)] * 2
    problems += [problem.hide(rng.random((90, 24)) < 0.1), problem.of_rows(np.arange(50))]
    problems += [problem.drawn(rng.poisson(1, 90))]
    ks = [2, 2, 5, 5, 3, 4, 4]
    return problems, [Starts(each).make("nndsvd", k) for each, k in zip(problems, ks, strict=True)]


def close(a, b, *, scores=1e-10, loadings=1e-8):
    np.testing.assert_allclose(a.factors.scores, b.factors.scores, rtol=0, atol=scores)
    np.testing.assert_allclose(a.factors.loadings, b.factors.loadings, rtol=0, atol=loadings)


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "settled"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_finds_what_the_local_engine_finds(kind, exact):
    problems, starts = some_problems(stated(**KINDS[kind]))
    settings = {"tol": 2e-3, "max_iter": 120, "exact": exact}
    for here, batched in zip(
        run(problems, starts, **settings), run(problems, starts, engine="torch", **settings), strict=True
    ):
        close(here, batched)
        assert (here.n_iter, here.converged) == (batched.n_iter, batched.converged)
        for name, values in here.trace.columns().items():
            np.testing.assert_allclose(batched.trace.columns()[name], values, rtol=1e-8, atol=1e-10)
        if exact:
            assert batched.objective == pytest.approx(here.objective, rel=1e-12)
            assert batched.order.tolist() == here.order.tolist()
        elif kind == "all bounds":
            ours, theirs = batched.factors.multipliers, here.factors.multipliers
            assert ours.rows.tolist() == theirs.rows.tolist()
            np.testing.assert_allclose(ours.values, theirs.values, atol=1e-8)


@pytest.mark.parametrize("kind", ["all bounds", "no bound on answers"])
def test_in_single_precision_they_agree_as_far_as_it_goes(kind):
    problems, starts = some_problems(stated("float32", **KINDS[kind]))
    for here, batched in zip(
        run(problems, starts, tol=2e-3), run(problems, starts, tol=2e-3, engine="torch"), strict=True
    ):
        close(here, batched, scores=1e-4, loadings=1e-2)
        assert batched.objective == pytest.approx(here.objective, rel=1e-5)
        assert batched.converged


@pytest.mark.parametrize("kind", ["all bounds", "no bound on answers"])
def test_a_batch_finds_what_each_problem_finds_alone(kind):
    """Among others a problem has room for more factors and participants than its own; they stay zero."""
    problems, starts = some_problems(stated(**KINDS[kind]))
    together = run(problems, starts, tol=2e-3, exact=False, engine="torch")
    for problem, start, batched in zip(problems, starts, together, strict=True):
        (alone,) = run(problem, start, tol=2e-3, exact=False, engine="torch")
        assert batched.factors.scores.shape == start.scores.shape
        close(alone, batched)
        assert alone.n_iter == batched.n_iter


def test_reconstructed_answers_stay_inside_their_range_exactly():
    problem = stated("float32")
    problems, starts = some_problems(problem)
    for each, fit in zip(problems, run(problems, starts, tol=1e-3, engine="torch"), strict=True):
        W, Q = fit.factors.scores, fit.factors.loadings
        assert W.min() >= 0 and W.max() <= 1 and Q.min() >= 0 and (each.bounds.loading >= Q).all()
        assert (each.bounds.reconstruction >= np.concatenate([W, each.design]).T @ Q).all()
        assert fit.certificate.holds(1e-3)


def test_who_is_never_drawn_counts_as_if_not_there():
    problem = stated()
    counts = np.random.default_rng(1).poisson(1, 90)
    start = Starts(problem.drawn(counts)).make("nndsvd", 3)
    spread = np.random.default_rng(2).random((3, 90))
    spread[:, counts > 0] = start.scores
    settings = {"tol": 1e-3, "exact": False, "engine": "torch"}
    (drawn,) = run(problem.drawn(counts), start, **settings)
    (counted,) = run(problem.counted(counts), type(start)(spread, start.loadings), **settings)
    np.testing.assert_allclose(counted.factors.loadings, drawn.factors.loadings, atol=1e-8)
    np.testing.assert_allclose(counted.factors.scores[:, counts > 0], drawn.factors.scores, atol=1e-10)
    assert counted.n_iter == drawn.n_iter


def test_spoiling_a_hidden_answer_changes_nothing():
    problem = stated(reconstruction_max=None)
    mask = np.random.default_rng(3).random((90, 24)) < 0.2
    start = Starts(problem.hide(mask)).make("nndsvd", 3)
    spoiled = with_answers(problem, np.where(mask, 77.0, problem.answers))
    (a,), (b,) = (run(each.hide(mask), start, tol=1e-3, engine="torch") for each in (problem, spoiled))
    np.testing.assert_array_equal(a.factors.scores, b.factors.scores)
    np.testing.assert_array_equal(a.factors.loadings, b.factors.loadings)


@pytest.mark.parametrize(
    ("options", "solver"), [({"penalty": "l21"}, Solver()), ({}, Solver("admm"))], ids=["l21", "admm"]
)
def test_what_a_batch_cannot_hold_the_local_engine_solves(options, solver):
    problem = stated(**options)
    start = Starts(problem).make("nndsvd", 2)
    (here,), (there,) = (
        run(problem, start, tol=5e-3, max_iter=20, solver=solver, engine=engine)
        for engine in ("local", "torch")
    )
    np.testing.assert_array_equal(here.factors.scores, there.factors.scores)


def test_the_callback_hears_of_every_iteration():
    problem, heard = stated(), []
    starts = [Begin(name, 2, np.random.default_rng(0)) for name in ("nndsvd", "rotated")]
    fits = run(problem, starts, tol=1e-3, callback=heard.append, engine="torch")
    assert [each.iteration for each in heard] == list(range(1, max(fit.n_iter for fit in fits) + 1))


# --- memory ----------------------------------------------------------------------------------------------


def scarce(monkeypatch, most):
    """As on a device whose memory holds no more than so many problems at a time; returns the attempts."""
    attempts = []
    fits = torch_memory._fits

    def attempt(work, part):
        def too_much(things):
            attempts.append(len(things))
            if len(things) > most:
                raise torch.OutOfMemoryError("CUDA out of memory.")
            work(things)

        return fits(too_much, part)

    monkeypatch.setattr(torch_memory, "_fits", attempt)
    return attempts


def test_out_of_memory_halves_the_batch_and_goes_on(monkeypatch):
    problems, starts = some_problems(stated())
    expected = run(problems, starts, tol=2e-3, exact=False)
    attempts = scarce(monkeypatch, most=2)
    for here, batched in zip(
        expected, run(problems, starts, tol=2e-3, exact=False, engine="torch"), strict=True
    ):
        close(here, batched)
    assert attempts == [7, 3, 1, 1, 1, 1, 1, 1, 1]


def test_a_fit_that_does_not_fit_ends_with_a_sentence(monkeypatch):
    scarce(monkeypatch, most=0)
    problem = stated()
    with pytest.raises(InputError, match=r"^The GPU has not enough memory for even one fit of this table\."):
        run(problem, Starts(problem).make("nndsvd", 2), tol=1e-3, engine="torch")


# --- searches and resamples --------------------------------------------------------------------------------


def searches(answers, weights=None, **options):
    more = {name: options.pop(name) for name in ("n_components", "thorough") if name in options}
    return [
        ICQFCV(
            ICQF(**{"item_range": (0, 100)} | options),
            betas=[0.1, 0.5],
            n_splits=4,
            random_state=0,
            engine=engine,
            **{"n_components": [2, 3, 4]} | more,
        ).fit(answers, sample_weight=weights)
        for engine in ("local", "torch")
    ]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"item_range": None},
        {"item_weight": "variance"},
        UNBOUNDED,
        {"penalty": "l2"},
        {"init": "rotated"},
    ],
    ids=["plain", "range undeclared", "variance", "unbounded", "l2", "rotated"],
)
@pytest.mark.filterwarnings("ignore::icqf.errors.InputWarning", "ignore:item_range is not declared")
def test_a_search_makes_the_same_choice(options):
    answers = make_synthetic(120, 30, 3, noise=0.2, missing=0.05, random_state=1).answers
    here, there = searches(answers, dtype="float64", **options)
    assert (here.n_components_, here.beta_) == (there.n_components_, there.beta_)
    a, b = here.cv_results_, there.cv_results_
    assert a[["fold", "n_components", "beta", "n_hidden", "n_iter"]].equals(
        b[["fold", "n_components", "beta", "n_hidden", "n_iter"]]
    )
    np.testing.assert_allclose(b["error"], a["error"], rtol=1e-6)


def test_a_search_with_weights_in_single_precision_makes_the_same_choice():
    answers = make_synthetic(120, 30, 3, noise=0.2, missing=0.05, random_state=1).answers
    here, there = searches(answers, np.random.default_rng(0).uniform(0.5, 2, 120))
    assert (here.n_components_, here.beta_) == (there.n_components_, there.beta_)
    np.testing.assert_allclose(there.errors_["error"], here.errors_["error"], rtol=1e-3)


def test_a_thorough_search_makes_the_same_choice():
    answers = make_synthetic(100, 20, 2, noise=0.2, random_state=1).answers
    here, there = searches(answers, dtype="float64", n_components=[2, 3], thorough=True)
    assert (here.n_components_, here.beta_) == (there.n_components_, there.beta_)
    np.testing.assert_allclose(there.cv_results_["error"], here.cv_results_["error"], rtol=1e-6)


def test_a_search_that_runs_out_of_memory_goes_on_with_smaller_batches(monkeypatch):
    answers = make_synthetic(100, 20, 2, noise=0.2, random_state=1).answers
    here, _ = searches(answers, n_components=[2, 3])
    attempts = scarce(monkeypatch, most=3)
    _, there = searches(answers, n_components=[2, 3])
    assert attempts[:4] == [8, 4, 2, 2]
    assert (here.n_components_, here.beta_) == (there.n_components_, there.beta_)


def test_resamples_halves_and_hidden_answers_are_told_alike():
    problem = stated()
    (fit,) = run(problem, Starts(problem).make("nndsvd", 3), tol=1e-3)
    W, Q = fit.factors.scores, fit.factors.loadings
    halves = [halves_of(problem, rng=np.random.default_rng(0)) for _ in range(2)]

    def told(engine):
        rng = [np.random.default_rng(seed) for seed in range(3)]
        drawn = bootstrap(problem, W, problem.own_loadings(Q), n_resamples=4, engine=engine, rng=rng[0])
        found = recurrence(problem, [(0.1, Q[:3])], n_resamples=3, engine=engine, rng=rng[1])
        hidden = predict_hidden(problem, 3, n_splits=4, engine=engine, rng=rng[2])
        curve = stability_curve(problem, [(2, 0.1), (3, 0.1)], halves, engine=engine)
        return drawn.loadings, *found, hidden.sse, curve.to_numpy()

    for here, there in zip(told("local"), told("torch"), strict=True):
        np.testing.assert_allclose(there, here, rtol=1e-6, atol=1e-6)


def test_resamples_that_a_batch_cannot_hold_are_those_of_the_local_engine():
    problem = stated(penalty="l21")
    (fit,) = run(problem, Starts(problem).make("nndsvd", 2), tol=5e-3, max_iter=30)
    here, there = (
        bootstrap(
            problem,
            fit.factors.scores,
            problem.own_loadings(fit.factors.loadings),
            n_resamples=2,
            engine=engine,
            rng=np.random.default_rng(0),
        ).loadings
        for engine in ("local", "torch")
    )
    np.testing.assert_array_equal(there, here)


WITHOUT_PYTORCH = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'")
sys.meta_path.insert(0, Absent())
from icqf.cli import main
main()
"""


def test_without_pytorch_the_command_says_what_to_install(tmp_path):
    table = tmp_path / "answers.csv"
    pd.DataFrame(np.random.default_rng(0).integers(0, 4, (40, 6))).add_prefix("q").to_csv(table, index=False)
    command = [
        sys.executable,
        "-c",
        WITHOUT_PYTORCH,
        "fit",
        str(table),
        "--engine",
        "torch",
        "--n-components",
        "2",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "The engine 'torch' needs PyTorch, which is not installed." in done.stderr
    assert "Install it with pip install 'icqf[gpu]', or leave out --engine torch." in done.stderr
    assert "Traceback" not in done.stderr
