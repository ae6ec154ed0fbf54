"""One stable solution from many resampled fits."""

from __future__ import annotations

from itertools import tee
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from icqf.engines.local import run
from icqf.errors import InputError
from icqf.estimator import ICQF
from icqf.jobs.parallel import in_parallel, pieces
from icqf.resampling.matching import aligned, correlations
from icqf.solvers.finish import finish, score_tolerance
from icqf.solvers.problem import Problem
from icqf.solvers.result import Factorization, Trace
from icqf.solvers.start import Starts

Array = NDArray[Any]


def consensus(
    model: ICQF,
    X: Any,
    *,
    confounds: Any = None,
    sample_weight: Any = None,
    n_resamples: int = 20,
    refit: Literal["scores", "all"] = "scores",
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> ICQF:
    """Average aligned fits to resampled participants into one solution under the same constraints.

    Parameters
    ----------
    model : ICQF
        A fitted model; its factors are the reference that resampled ones are matched to.
    X, confounds, sample_weight
        The data the model was fitted to.
    n_resamples : int
        Bootstrap samples of the participants.
    refit : {"scores", "all"}
        "scores" keeps the averaged loadings, which lie inside all bounds as averages do, and solves the
        scores under the constraints. "all" goes on from there until the fit settles.
    n_jobs : int, optional
    random_state : int, RandomState or None

    Returns
    -------
    ICQF
        A new fitted model. `agreement_` (k,) is the mean correlation of each of its factors with those
        of the resampled fits. With refit="scores" its certificate says how far the averaged loadings lie
        from a stationary point, and `converged_` is False when that is more than `tol`.

    Examples
    --------
    >>> from icqf import ICQF, consensus
    >>> from icqf.datasets import make_synthetic
    >>> answers = make_synthetic(n=100, m=40, k=4, noise=0.1, random_state=0).answers
    >>> model = ICQF(4, item_range=(0, 100)).fit(answers)
    >>> stable = consensus(model, answers, n_resamples=5)
    >>> bool((stable.agreement_ > 0.9).all())
    True
    """
    check_is_fitted(model)
    if n_resamples < 2:
        raise InputError(f"n_resamples must be at least 2, not {n_resamples}.")
    if refit not in ("scores", "all"):
        raise InputError(f"refit={refit!r} is not known; choose 'scores' or 'all'.")
    stated = model.state(X, confounds=confounds, sample_weight=sample_weight)
    problem, confound_names = stated.problem, list(stated.encoder.names)
    if confound_names != model.confound_names_:
        raise InputError(
            f"The model was fitted with the confounds {model.confound_names_}, and these data give "
            f"{confound_names}; give the confounds it was fitted to."
        )
    k = len(model.components_)
    reference = problem.scaled_loadings(model.components_)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    draws = [np.sort(rng.integers(0, problem.n, problem.n)) for _ in range(n_resamples)]
    tasks = [(problem, part, k, model.tol, model.max_iter) for part in pieces(draws, n_jobs)]
    found = [each for part in in_parallel(_resampled, tasks, n_jobs=n_jobs) for each in part]
    orders = [aligned(reference, each[:k])[0] for each in found]
    fits = [np.concatenate([each[:k][order], each[k:]]) for each, order in zip(found, orders, strict=True)]
    loadings = np.mean(fits, axis=0)
    if refit == "all":
        average = finish(problem, loadings, tol=score_tolerance(model.tol)).factors
        start = (average.scores.T, problem.own_loadings(average.loadings)[:k].T)
        solution = clone(model).set_params(n_components=k, init=start, n_init=1).solve(stated)
    else:
        solution = _with_loadings(problem, loadings, model.tol)
    result = clone(model).keep(stated, solution)
    result.agreement_ = _agreement(problem.scaled_loadings(result.components_), [each[:k] for each in fits])
    return result


def _resampled(problem: Problem, draws: list[Array], k: int, tol: float, max_iter: int) -> list[Array]:
    """Loadings (K, m) of some resamples, each started afresh."""
    problems, again = tee(problem.of_rows(rows) for rows in draws)  # one at a time in memory
    starts = (Starts(drawn).make("nndsvd", k) for drawn in again)
    found = run(problems, starts, tol=tol, max_iter=max_iter, exact=False)
    return [fit.factors.loadings.astype(np.float64) for fit in found]


def _with_loadings(problem: Problem, loadings: Array, tol: float) -> Factorization:
    finished = finish(problem, loadings, tol=score_tolerance(tol))
    return Factorization(
        finished.factors,
        Trace(),
        finished.certificate.holds(tol),
        0,
        finished.objective,
        finished.certificate,
        finished.fit,
        finished.order,
    )


def _agreement(components: Array, fits: list[Array]) -> Array:
    """Mean correlation (k,) of each factor with its counterparts; 0 where one has no pattern."""
    rows = np.arange(len(components))
    values = [correlations(components, found)[rows, aligned(components, found)[0]] for found in fits]
    return np.mean(values, axis=0)
