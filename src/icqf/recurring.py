"""Would a second study find the factors of a model again? Resamples of its own participants foretell it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from icqf.chance import replication_table
from icqf.data.questionnaire import Questionnaire
from icqf.engines.choice import engine_of
from icqf.errors import InputError
from icqf.estimator import ICQF
from icqf.resampling.dealing import units_of
from icqf.resampling.recurrence import recurrence

N_RESAMPLES = 20
FEWEST_RESAMPLES = 5


def replication_chance(
    model: ICQF,
    X: Any,
    *,
    confounds: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    n_resamples: int = N_RESAMPLES,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> pd.DataFrame:
    """Foretell for each factor whether an independent study of the same size would find it again.

    Participants are drawn with replacement, every resample is fitted afresh with as many factors, and its
    factors are matched with the model's. A factor's mean correlation with its counterparts foretells, by a
    curve learned from other studies, whether an independent sample of the same size, fitted with as many
    factors, finds it: whether a factor there has loadings with a correlation of at least 0.8.

    Parameters
    ----------
    model : fitted ICQF
    X, confounds, sample_weight
        The data the model was fitted to.
    groups : array (n,), optional
        Families or sites, which are drawn whole. None: those of the questionnaire, if X is one.
    n_resamples : int
        How often participants are drawn.
    n_jobs : int, optional
        Processes; the result does not depend on it.
    random_state : int, RandomState or None

    Returns
    -------
    DataFrame of shape (k, 6)
        By factor: ``agreement`` over resamples (mean), ``low`` and ``high`` (5th and 95th percentile),
        ``found`` (share of resamples that find it), ``chance``, and ``fragile`` (whether the chance is below
        one half). It is also kept as ``model.replication_``.

    Examples
    --------
    >>> from icqf import ICQF, replication_chance
    >>> from icqf.datasets import make_synthetic
    >>> answers = make_synthetic(n=200, m=40, k=4, noise=0.1, random_state=0).answers
    >>> model = ICQF(4, item_range=(0, 100)).fit(answers)
    >>> bool((replication_chance(model, answers)["chance"] > 0.9).all())
    True
    """
    check_is_fitted(model)
    if n_resamples < FEWEST_RESAMPLES:
        raise InputError(
            f"n_resamples must be at least {FEWEST_RESAMPLES}, not {n_resamples}: fewer tell nothing."
        )
    if isinstance(X, Questionnaire) and groups is None:
        groups = X.groups
    stated = model.state(X, confounds=confounds, sample_weight=sample_weight)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    (agreement,) = recurrence(
        stated.problem,
        [(float(model.beta), stated.problem.scaled_loadings(model.components_))],
        n_resamples=n_resamples,
        groups=units_of(stated.problem, groups, stated.kept),
        n_jobs=n_jobs,
        engine=engine_of(model.engine),
        rng=rng,
    )
    model.replication_ = replication_table(agreement, model.get_feature_names_out())
    return model.replication_
