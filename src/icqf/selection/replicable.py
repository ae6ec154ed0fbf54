"""How many factors would a second study find again? Numbers of factors judged by resamples of this one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.core.problem import Problem
from icqf.engines.base import Engine
from icqf.models.stability import best_fits, recurrence
from icqf.resampling.replication import CURVE, ChanceCurve

Array = NDArray[Any]
COST = 0.3  # a factor must be this likely to be found again to be worth having


def replicable_curve(
    problem: Problem,
    candidates: Sequence[tuple[int, float]],
    *,
    n_resamples: int,
    groups: Array | None = None,
    n_jobs: int | None = None,
    engine: str | Engine = "local",
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Fit each (k, beta) to all participants and to resamples, and say what a second study would find.

    Parameters
    ----------
    problem : Problem
    candidates : sequence of (int, float)
        Numbers of factors and penalties.
    n_resamples : int
        How often participants are drawn.
    groups : int array (n,), optional
        Families or sites, which are drawn whole.

    Returns
    -------
    DataFrame
        As `replicable_table`, with ``beta``.
    """
    fits = best_fits(problem, candidates, engine=engine)
    models = [(beta, loadings[:k]) for (k, beta), loadings in zip(candidates, fits, strict=True)]
    found = recurrence(
        problem, models, n_resamples=n_resamples, groups=groups, n_jobs=n_jobs, engine=engine, rng=rng
    )
    table = replicable_table([k for k, _ in candidates], found)
    table.insert(1, "beta", [beta for _, beta in candidates])
    return table


def replicable_table(
    ks: Sequence[int], agreement: Sequence[Array], *, curve: ChanceCurve = CURVE
) -> pd.DataFrame:
    """What resamples say about each number of factors.

    Parameters
    ----------
    ks : sequence of int
        Numbers of factors.
    agreement : sequence of array (B, k)
        Correlation of each factor with its counterpart in every resample, for each number of factors.
    curve : ChanceCurve
        From agreement to the chance of being found again.

    Returns
    -------
    DataFrame
        ``n_components``, ``agreement`` (mean), ``weakest`` (of the factor with the lowest mean), ``found``
        (factors expected to be found again), ``gain`` (those less COST for each factor).

    Examples
    --------
    >>> import numpy as np
    >>> table = replicable_table([1, 2], [np.full((20, 1), 0.95), np.full((20, 2), 0.1)])
    >>> (table["gain"] > 0).tolist()
    [True, False]
    """
    rows = []
    for k, values in zip(ks, agreement, strict=True):
        by_factor = np.mean(values, axis=0)
        chance = curve(by_factor)
        rows.append(
            {
                "n_components": k,
                "agreement": by_factor.mean(),
                "weakest": by_factor.min(),
                "found": chance.sum(),
                "gain": (chance - COST).sum(),
            }
        )
    return pd.DataFrame(rows)
