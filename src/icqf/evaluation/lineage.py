"""Which factor of a fit with more factors comes from which factor of a fit with fewer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from icqf.errors import InputError
from icqf.resampling.matching import correlations


def factor_lineage(loadings: Sequence[pd.DataFrame | np.ndarray], *, least: float = 0.4) -> pd.DataFrame:
    """Link the factors of fits with more and more factors by the correlation of their loadings.

    Parameters
    ----------
    loadings : sequence of DataFrame or array (m, k)
        Fits of the same items, such as ``model.loadings_``; they are put in order of their number of factors.
    least : float
        Weakest correlation that counts as a link; every factor is linked to its closest predecessor anyway.

    Returns
    -------
    DataFrame
        One row per link: ``k`` and ``factor`` (counted from 1), ``next_k`` and ``next_factor`` in the next
        larger fit, and the ``correlation`` of their loadings.

    Examples
    --------
    >>> import numpy as np
    >>> from icqf.evaluation import factor_lineage
    >>> one = np.array([[1.0], [1], [0], [0]])
    >>> two = np.array([[1.0, 0], [0, 1], [0, 0], [0, 0]])
    >>> factor_lineage([two, one]).round(2)
       k  factor  next_k  next_factor  correlation
    0  1       1       2            1         0.58
    1  1       1       2            2         0.58
    """
    fits = sorted((np.asarray(each, dtype=float).T for each in loadings), key=len)
    if len(fits) < 2:
        raise InputError("A lineage of factors needs at least two fits.")
    if len({fit.shape[1] for fit in fits}) > 1:
        raise InputError("The fits are of different items; a lineage needs fits of the same items.")
    rows = []
    for first, second in pairwise(fits):
        values = correlations(first, second)
        closest = values.argmax(axis=0)
        rows += [
            (len(first), r + 1, len(second), s + 1, values[r, s])
            for r in range(len(first))
            for s in range(len(second))
            if r == closest[s] or values[r, s] >= least
        ]
    return pd.DataFrame(rows, columns=["k", "factor", "next_k", "next_factor", "correlation"])
