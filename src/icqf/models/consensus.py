"""Resamples of a fitted model: replication of its factors, and an averaged solution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from icqf.core.certificate import finish
from icqf.core.result import Trace
from icqf.data.questionnaire import Questionnaire
from icqf.engines.choice import engine_of
from icqf.engines.threads import one_blas_thread
from icqf.errors import InputError
from icqf.models.icqf import ICQF
from icqf.models.statement import StatedProblem
from icqf.resampling.bootstrap import N_HALVES, agreement_of, averaged_loadings
from icqf.resampling.folds import drawn_counts, units_of
from icqf.resampling.replication import replication_table

Array = NDArray[Any]
N_RESAMPLES = 20  # that a consensus averages
FEWEST_HALVES = 5


@one_blas_thread()
def replication_probability(
    model: ICQF,
    X: Any,
    *,
    confounds: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    n_halves: int = N_HALVES,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> pd.DataFrame:
    """Predict how likely another study like this one, fitted with as many factors, finds each factor.

    Participants are divided into halves, which are fitted from scratch with as many factors; these are
    matched with the model's. How well two halves agree about a factor, stepped up to the whole sample,
    predicts whether an independent sample of the same size, fitted with as many factors, finds it: whether a
    factor there has loadings with a correlation of at least 0.8. The curve was learned from other studies
    (docs/results/calibration.md).

    Parameters
    ----------
    X, confounds, sample_weight
        The data the model was fitted to.
    groups : array (n,), optional
        Families or sites, which are drawn whole. None: those of the questionnaire, if X is one.
    n_halves : int
        How often the participants are divided.
    n_jobs : int, optional
        Processes; the result does not depend on it.

    Returns
    -------
    DataFrame of shape (k, 6)
        By factor: ``halves`` (mean agreement of two halves), ``low`` and ``high`` (5th and 95th percentile),
        ``largest`` (share of the squared loadings that its strongest item has), ``probability``, and
        ``fragile`` (whether that is below one half). A factor that one item carries (``largest`` above 0.8)
        is that item, and has the probability 0. The table is also kept as ``model.replication_``.

    Examples
    --------
    >>> from icqf import ICQF, replication_probability
    >>> from icqf.datasets import make_synthetic
    >>> answers = make_synthetic(n=200, m=40, k=4, noise=0.1, random_state=0).answers
    >>> model = ICQF(4, item_range=(0, 100)).fit(answers)
    >>> bool((replication_probability(model, answers)["probability"] > 0.9).all())
    True
    """
    check_is_fitted(model)
    if n_halves < FEWEST_HALVES:
        raise InputError(f"n_halves must be at least {FEWEST_HALVES}, not {n_halves}: fewer say too little.")
    stated = model.state(X, confounds=confounds, sample_weight=sample_weight)
    units = _together(stated, X, groups)
    if (stated.problem.n if units is None else units.max() + 1) < 2:
        raise InputError(
            "The participants are one group, which has no halves; give groups that can be divided."
        )
    loadings = stated.problem.scaled_loadings(model.components_)
    (agreement,) = agreement_of(
        stated.problem,
        [(float(model.beta), loadings)],
        n_halves=n_halves,
        groups=units,
        n_jobs=n_jobs,
        engine=engine_of(model.engine),
        rng=_generator(random_state),
    )
    model.replication_ = replication_table(agreement.halves, loadings, model.get_feature_names_out())
    return model.replication_


@one_blas_thread()
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
    X, confounds, sample_weight, groups, n_jobs
        As for `replication_probability`.
    n_resamples : int
        Bootstrap samples of the participants.

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
    stated = model.state(X, confounds=confounds, sample_weight=sample_weight)
    problem, confound_names = stated.problem, list(stated.encoder.names)
    if confound_names != model.confound_names_:
        raise InputError(
            f"The model was fitted with the confounds {model.confound_names_}, and these data give "
            f"{confound_names}; give the confounds it was fitted to."
        )
    rng, together = _generator(random_state), _together(stated, X, groups)
    average = averaged_loadings(
        problem,
        problem.scaled_loadings(model.components_),
        float(model.beta),
        draws=[drawn_counts(problem.n, together, rng) for _ in range(n_resamples)],
        n_jobs=n_jobs,
    )
    finished = finish(problem, average, tol=model.tol)
    found = finished.factorization(Trace(), finished.certificate.holds(model.tol), 0)
    result = clone(model).keep(stated, found)
    result.n_averaged_ = n_resamples
    return result


def _together(stated: StatedProblem, X: Any, groups: Any) -> Array | None:
    """Who is drawn together (n,): families or sites, by default those of the questionnaire."""
    if isinstance(X, Questionnaire) and groups is None:
        groups = X.groups
    return units_of(stated.problem, groups, stated.kept)


def _generator(random_state: Any) -> np.random.Generator:
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
