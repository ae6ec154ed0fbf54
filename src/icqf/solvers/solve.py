"""From a problem to a finished factorization: starts, solver, and the best of several tries."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from icqf.solvers import start as starts
from icqf.solvers.admm import ADMMIteration
from icqf.solvers.fast import FastIteration
from icqf.solvers.loop import Callback, Iteration, run
from icqf.solvers.problem import Problem
from icqf.solvers.result import Factorization, Factors


@dataclass(frozen=True)
class Options:
    """How to solve."""

    solver: Literal["fast", "admm"] = "fast"
    inner: Literal["cd", "fista", "admm"] = "cd"
    rho: float | Literal["adaptive"] = 3.0
    tol: float = 1e-3
    max_iter: int = 500
    init: Any = "nndsvd"
    n_init: int = 1
    callback: Callback | None = None


def solve(problem: Problem, k: int, options: Options, rng: np.random.Generator) -> Factorization:
    """Factorize with k factors; with several starts, the one that ends lowest."""
    best: Factorization | None = None
    for start in _starts(problem, k, options, rng):
        iteration = _iteration(problem, start, options)
        found = run(problem, iteration, tol=options.tol, max_iter=options.max_iter, callback=options.callback)
        if best is None or found.objective < best.objective:
            best = found
    if best is None:
        raise ValueError(f"n_init must be at least 1, not {options.n_init}.")
    if not best.converged:
        certificate = best.certificate
        warnings.warn(
            f"The fit stopped after {best.n_iter} iterations before it settled: a score would still move by "
            f"{certificate.score_step:.2g} and a loading by {certificate.loading_step:.2g} of its item's "
            f"range (tol={options.tol:g}). Raise max_iter, or loosen tol if that is close enough.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return best


def _iteration(problem: Problem, start: Factors, options: Options) -> Iteration:
    if options.solver == "admm":
        return ADMMIteration(problem, start, rho=options.rho, inner=options.inner)
    return FastIteration(problem, start)


def _starts(problem: Problem, k: int, options: Options, rng: np.random.Generator) -> Iterator[Factors]:
    """The start asked for; then the other deterministic one; then random ones."""
    names: list[Any] = [options.init, *(name for name in ("nndsvd", "rotated") if name != options.init)]
    names += ["random"] * options.n_init
    for name in names[: options.n_init]:
        if isinstance(name, str):
            yield starts.settle(problem, make_start(problem, k, name, rng))
        else:
            scores, loadings = (np.asarray(part, dtype=float).T for part in name)
            yield starts.settle(problem, Factors(scores, loadings), raw=False)


def make_start(problem: Problem, k: int, name: str, rng: np.random.Generator) -> Factors:
    """A raw start by name."""
    if name == "random":
        return starts.random(problem, k, rng)
    spectrum = starts.Spectrum(problem, centred=name == "rotated")
    return starts.rotated(spectrum, k) if name == "rotated" else starts.nndsvd(spectrum, k)
