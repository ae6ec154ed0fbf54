"""What confounds may tell about single participants: no category of a few, no lone value, no exact range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icqf.errors import InputError, InputWarning, counted

Array = NDArray[Any]
SMALLEST_CATEGORY = 20  # members; see `icqf.data.confounds.ConfoundEncoder`
MANY_CATEGORIES = 20
INTERCEPT = "Intercept"
_ROWS_AT_A_TIME = 4096
_LONE = 0.3  # of a confound's spread being one participant's


def refuse_small_categories(
    name: str, categories: Sequence[Any], codes: Array, weights: Array, *, limit: int
) -> None:
    """Refuse a confound whose categories name single participants, or have few members.

    `codes` (n,) are places in `categories`. Members count by their weights, as their answers do.
    """
    if len(categories) > max(MANY_CATEGORIES, len(codes) / 2):
        raise InputError(
            f"Confound {name!r} has {len(categories)} categories for {len(codes)} participants, so it names "
            "single participants, as ids and dates do.",
            code="many-categories",
            remedy="Leave it out, or give numbers such as an age in years, or a few categories.",
            confound=name,
            count=len(categories),
        )
    members = effective_numbers(codes, weights)
    small = np.flatnonzero((members > 0) & (members < limit))
    if not len(small):
        return
    at = small[members[small].argmin()]
    n, count = int((weights[codes == at] > 0).sum()), max(1, int(members[at]))
    by_weight = f", who count as {members[at]:.1f} by their weights" if members[at] < n - 0.05 else ""
    more = f" (as in {len(small) - 1} more of its {len(categories)} categories)" if len(small) > 1 else ""
    raise InputError(
        f"Confound {name!r} has {counted(n, 'participant')} in the category {categories[at]!r}{by_weight}, "
        f"fewer than {limit}{more}: the model would tell the answers of these few.",
        code="small-category",
        remedy="Pool the category with another one, leave the confound or these participants out, or, for a "
        f"model that is not shared, set smallest_category={count}.",
        confound=name,
        category=categories[at],
        count=count,
    )


def effective_numbers(codes: Array, weights: Array) -> Array:
    """Members of each category by their weights: all if these are equal, one if one outweighs the others.

    Examples
    --------
    >>> effective_numbers(np.array([0, 0, 1, 1]), np.array([2.0, 2.0, 1e6, 1.0])).round(2)
    array([2., 1.])
    """
    sums, squares = np.bincount(codes, weights), np.bincount(codes, weights**2)
    return np.divide(sums**2, squares, out=np.zeros(len(sums)), where=squares > 0).round(6)


def few_answers(
    answers: Array, items: Sequence[str], design: Array, names: Sequence[str], *, limit: int
) -> InputWarning | None:
    """What is to be said of items that only a few members of a large category answered, or None.

    `design` (n, c) holds 1 for the members of each category in `names`; the intercept is one of everybody.
    """
    members = (design == 1).astype(float)
    counts = np.zeros((len(names), len(items)))
    for start in range(0, len(answers), _ROWS_AT_A_TIME):
        part = slice(start, start + _ROWS_AT_A_TIME)
        counts += members[part].T @ ~np.isnan(answers[part])
    return few_answers_of(counts, members.sum(axis=0), items, names, limit=limit)


def few_answers_of(
    counts: Array, members: Array, items: Sequence[str], names: Sequence[str], *, limit: int
) -> InputWarning | None:
    """The same from how many of each category answered each item (c, m), and its members (c,)."""
    few = (counts > 0) & (counts < limit) & (members[:, None] >= limit)
    if not few.any():
        return None
    at, item = divmod(int(np.where(few, counts, np.inf).argmin()), len(items))
    number = int(counts[at, item])
    whose = "" if names[at] == INTERCEPT else f" of the category {names[at]!r}"
    others = int(few.any(axis=0).sum()) - 1
    more = f" (and {counted(others, 'more item')} by fewer than {limit})" if others else ""
    return InputWarning(
        f"Item {items[item]!r} was answered by {counted(number, 'participant')}{whose}{more}: the model "
        "would tell the answers of these few.",
        code="few-answers",
        remedy="Leave the item out of a model that is shared.",
        item=str(items[item]),
        count=number,
    )


def refuse_lone_value(name: str, rows: Any, numbers: Array, weights: Array, *, limit: int) -> None:
    """Refuse one value so far from the others that the confound's loadings would follow its answers."""
    if (weights > 0).sum() < limit:
        return
    spread = weights * (numbers - np.average(numbers, weights=weights)) ** 2
    if not spread.max() > _LONE * spread.sum():
        return
    at = int(spread.argmax())
    others = np.delete(numbers, at)
    raise InputError(
        f"Confound {name!r} is {numbers[at]:g} for participant {rows[at]!r}, far from all others "
        f"({others.min():g} to {others.max():g}), so the model would follow the answers of this one.",
        code="lone-confound",
        remedy="Correct it, leave the participant out, or give the range of the others in confound_ranges.",
        confound=name,
        participant=rows[at],
    )


def rounded(numbers: Array, low: float, high: float, mean: float) -> tuple[tuple[float, float], float]:
    """The range rounded outward, and the mean rounded, so that they are nobody's own.

    The step is 1, 2 or 5 times a power of ten, about a tenth of the range, and coarser than whole numbers, so
    that a rounded end may be that of several values.

    Examples
    --------
    >>> rounded(np.array([6.2, 9.5, 17.9]), 6.2, 17.9, 11.2)
    ((6.0, 18.0), 11.2)
    """
    least = (high - low) / 15
    if (numbers == np.rint(numbers)).all():
        least = max(least, 2.0)
    power = 10.0 ** np.floor(np.log10(least))
    step = next(power * digit for digit in (1, 2, 5, 10) if power * digit >= least * (1 - 1e-9))
    ends = (np.array([np.floor(low / step), np.ceil(high / step)]) * step).round(12).tolist()
    return (ends[0], ends[1]), float(round(round(10 * mean / step) * step / 10, 12))
