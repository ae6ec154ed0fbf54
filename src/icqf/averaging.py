"""One stable solution from many resampled fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from icqf.core.finish import finish
from icqf.core.problem import Problem
from icqf.core.result import Factorization, Trace
from icqf.data.questionnaire import Questionnaire
from icqf.errors import InputError
from icqf.estimator import ICQF
from icqf.jobs.parallel import in_parallel, pieces
from icqf.resampling.dealing import drawn_counts, units_of
from icqf.resampling.matching import aligned
from icqf.resampling.recurrence import best_fits

Array = NDArray[Any]
N_RESAMPLES = 20


def consensus(
    model: ICQF,
    X: Any,
    *,
    confounds: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    n_resamples: int = N_RESAMPLES,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> ICQF:
    """Average aligned fits to resampled participants into one solution under the same constraints.

    In small samples averaged loadings are found again more often than those of one fit
    (docs/results/consensus.md).

    Parameters
    ----------
    model : ICQF
        A fitted model; its factors are the reference that resampled ones are matched to.
    X, confounds, sample_weight
        The data the model was fitted to.
    groups : array (n,), optional
        Families or sites, which are drawn whole. None: those of the questionnaire, if X is one.
    n_resamples : int
        Bootstrap samples of the participants.
    n_jobs : int, optional
        Processes; the result does not depend on it.
    random_state : int, RandomState or None

    Returns
    -------
    ICQF
        A new fitted model with averaged loadings, which lie inside all bounds as averages do, and scores
        solved under the constraints. `n_averaged_` is the number of resamples. An average is not the
        minimum of the objective: `certificate_` says how far it lies from one, and `converged_` is False
        when that is more than `tol`.

    Examples
    --------
    >>> from icqf import ICQF, consensus
    >>> from icqf.datasets import make_synthetic
    >>> answers = make_synthetic(n=100, m=40, k=4, noise=0.1, random_state=0).answers
    >>> model = ICQF(4, item_range=(0, 100)).fit(answers)
    >>> consensus(model, answers, n_resamples=5).n_averaged_
    5
    """
    check_is_fitted(model)
    if n_resamples < 2:
        raise InputError(f"n_resamples must be at least 2, not {n_resamples}.")
    if isinstance(X, Questionnaire) and groups is None:
        groups = X.groups
    stated = model.state(X, confounds=confounds, sample_weight=sample_weight)
    problem, confound_names = stated.problem, list(stated.encoder.names)
    if confound_names != model.confound_names_:
        raise InputError(
            f"The model was fitted with the confounds {model.confound_names_}, and these data give "
            f"{confound_names}; give the confounds it was fitted to."
        )
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    together = units_of(problem, groups, stated.kept)
    average = averaged_loadings(
        problem,
        problem.scaled_loadings(model.components_),
        float(model.beta),
        draws=[drawn_counts(problem.n, together, rng) for _ in range(n_resamples)],
        n_jobs=n_jobs,
    )
    result = clone(model).keep(stated, _with_loadings(problem, average, model.tol))
    result.n_averaged_ = n_resamples
    return result


def averaged_loadings(
    problem: Problem, reference: Array, beta: float, *, draws: Sequence[Array], n_jobs: int | None = None
) -> Array:
    """Mean loadings (k + c, m) of fits to resamples, in the problem's units.

    `reference` (k, m) are the loadings that factors are matched to, and `draws` say how often each
    participant is in each resample.
    """
    tasks = [(problem, part, reference, beta) for part in pieces(draws, n_jobs)]
    found = [each for part in in_parallel(_resampled, tasks, n_jobs=n_jobs) for each in part]
    mean: Array = np.mean(found, axis=0)
    return mean


def _resampled(problem: Problem, draws: Sequence[Array], reference: Array, beta: float) -> list[Array]:
    """Loadings (k + c, m) of some resamples, each started afresh, its factors in the reference's order."""
    k, found = len(reference), []
    for counts in draws:
        (loadings,) = best_fits(problem.drawn(counts), [(k, beta)])
        order, _ = aligned(reference, loadings[:k])
        found.append(np.concatenate([loadings[:k][order], loadings[k:]]))
    return found


def _with_loadings(problem: Problem, loadings: Array, tol: float) -> Factorization:
    finished = finish(problem, loadings, tol=tol)
    return finished.factorization(Trace(), finished.certificate.holds(tol), 0)
