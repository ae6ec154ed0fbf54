"""The chance that an independent study finds a factor again, foretold by resamples of this one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from icqf.errors import InputError
from icqf.estimator import ICQF
from icqf.resampling.recurrence import recurrence

Array = NDArray[Any]
FOUND = 0.8  # correlation of loadings from which a factor counts as found again
FRAGILE = 0.5  # a factor with a lower chance is marked wherever it is shown
N_RESAMPLES = 20
FEWEST_RESAMPLES = 5
# Chance = 1 / (1 + exp(-(INTERCEPT + SLOPE share))), share being that of resamples in which the factor is
# found again. Learned by `icqf reproduce replication-chance`; its page says from which studies, and how far
# the chance is off in studies left out.
INTERCEPT = -2.7
SLOPE = 5.6


def chance_of(agreement: Array) -> Array:
    """Chance (k,) that an independent study of the same size finds each factor, from its agreement (B, k).

    Examples
    --------
    >>> import numpy as np
    >>> chance_of(np.array([[0.95, 0.4], [0.9, 0.6]])).round(1)
    array([0.9, 0.1])
    """
    share = (np.asarray(agreement) >= FOUND).mean(axis=0)
    return 1 / (1 + np.exp(-(INTERCEPT + SLOPE * share)))


def chance_in_words(chance: float) -> str:
    """Say a chance in words that follow the name of a factor.

    Examples
    --------
    >>> chance_in_words(0.88)
    'would be found again in about 9 of 10 studies like this one'
    >>> chance_in_words(0.3)
    'would be found again in about 3 of 10 studies like this one'
    >>> chance_in_words(0.02)
    'would hardly be found again in another study like this one'
    """
    tenths = round(10 * chance)
    if tenths == 0:
        return "would hardly be found again in another study like this one"
    if tenths == 10:
        return "would be found again in nearly every study like this one"
    return f"would be found again in about {tenths} of 10 studies like this one"


def replication_table(agreement: Array, names: Any) -> pd.DataFrame:
    """Return agreement over resamples with its 90 % interval, and the chance of replication, by factor.

    Parameters
    ----------
    agreement : array (B, k)
        Correlation of each factor's loadings with those of its counterpart in every resample.
    names : sequence of str
        Names of the factors.

    Returns
    -------
    DataFrame of shape (k, 5)
        ``agreement`` (mean), ``low`` and ``high`` (5th and 95th percentile), ``chance``, and ``fragile``
        (whether the chance is below one half).

    Examples
    --------
    >>> import numpy as np
    >>> replication_table(np.array([[0.9, 0.2], [0.9, 0.4]]), ["a", "b"])["fragile"].to_dict()
    {'a': False, 'b': True}
    """
    low, high = np.quantile(agreement, [0.05, 0.95], axis=0)
    chance = chance_of(agreement)
    table = {
        "agreement": np.mean(agreement, axis=0),
        "low": low,
        "high": high,
        "chance": chance,
        "fragile": chance < FRAGILE,
    }
    return pd.DataFrame(table, index=pd.Index(list(names), name="factor"))


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
    factors are matched with the model's. The share of resamples in which a factor's counterpart has a
    correlation of at least 0.8 foretells, by a curve learned from other studies, whether an independent
    sample of the same size, fitted with as many factors, finds it.

    Parameters
    ----------
    model : fitted ICQF
    X, confounds, sample_weight
        The data the model was fitted to.
    groups : int array (n,), optional
        Families or sites, which are drawn whole.
    n_resamples : int
        How often participants are drawn.
    n_jobs : int, optional
        Processes; the result does not depend on it.
    random_state : int, RandomState or None

    Returns
    -------
    DataFrame of shape (k, 5)
        As `replication_table`; it is also kept as ``model.replication_``.

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
    stated = model.state(X, confounds=confounds, sample_weight=sample_weight)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    (agreement,) = recurrence(
        stated.problem,
        [(float(model.beta), stated.problem.scaled_loadings(model.components_))],
        n_resamples=n_resamples,
        groups=groups,
        n_jobs=n_jobs,
        rng=rng,
    )
    model.replication_ = replication_table(agreement, model.get_feature_names_out())
    return model.replication_
