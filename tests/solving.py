"""Factorize a problem as `ICQF` does, for tests that begin with a problem."""

from dataclasses import replace

from icqf.core.start import Starts
from icqf.engines.base import Solver
from icqf.engines.choice import run


def solved(problem, k, *, init="nndsvd", tol=1e-3, max_iter=2000, **solver):
    """The finished fit from one start."""
    start = Starts(problem).make(init, k)
    return run(problem, start, tol=tol, max_iter=max_iter, solver=Solver(**solver))[0]


def settled(problem, start, *, tol=2e-3, max_iter=500):
    """Where the iterations end, without the exact finish."""
    return run(problem, start, tol=tol, max_iter=max_iter, exact=False)[0]


def solved_as(model, problem):
    """The finished fit with the settings of a model."""
    settings = {"tol": model.tol, "max_iter": model.max_iter, "inner": model.inner, "rho": model.rho}
    return solved(problem, model.n_components, init=model.init, name=model.solver, **settings)


def with_answers(problem, answers):
    """The same problem of other answers."""
    return replace(problem, observations=replace(problem.observations, answers=answers))
