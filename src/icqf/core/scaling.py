"""Item weights: the units in which a problem counts its items, so that wide ranges do not decide alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from icqf.core.problem import Array, Problem

_SMALLEST_DEVIATION = 0.1  # of the range: that of a 0/1 item where one answer in a hundred is 1


def weighed(problem: Problem, item_weight: Any) -> Problem:
    """The problem (in the items' own units) with answers and loadings multiplied by s_j for item j.

    s_j = max(b) / b_j for "range"; for "variance" it is inversely proportional to the standard deviation of
    the observed answers, and for an array proportional to it, such that the widest scaled range is max(b).
    None, and whatever leaves all items as they are, gives the problem itself.
    """
    if isinstance(item_weight, str) and item_weight == "variance":
        return problem.scaled(_in_proportion(1 / _deviations(problem), problem.span), learned=True)
    scale = scale_of(item_weight, problem.span)
    return problem if scale is None else problem.scaled(scale)


def scale_of(item_weight: Any, span: Array) -> Array | None:
    """The scale (m,) that weights other than "variance" give items of these ranges; None where it is 1."""
    if item_weight is None:
        return None
    if isinstance(item_weight, str):
        scale = span.max() / span
    else:
        scale = _in_proportion(np.asarray(item_weight, dtype=float), span)
    return None if (scale == 1).all() else scale


def weighed_anew(problem: Problem) -> Problem:
    """The problem with what its weights have learned from answers learned again from those it still sees."""
    if problem.scaling is None or not problem.scaling.learned:
        return problem
    return weighed(problem.unscaled(), "variance")


def _in_proportion(weights: Array, span: Array) -> Array:
    # Of equal ranges, only that they are equal may count: an undeclared one tells a hidden answer.
    return weights / (weights * (span / span.max())).max()


def _deviations(problem: Problem) -> Array:
    """Standard deviation of each item's observed answers, and no less than a tenth of its range."""
    total, square, count = problem.observations.item_sums()
    count = np.maximum(count, 1e-300)
    variance = np.maximum(square / count - (total / count) ** 2, 0)
    return np.maximum(np.sqrt(variance), _SMALLEST_DEVIATION * problem.span)
