"""Disclosure control: no category or cell of a few participants, lone value or exact range in a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icqf.errors import Advice, InputError, InputWarning, counted

Array = NDArray[Any]
SMALLEST_CATEGORY = 20  # members; see `icqf.data.confounds.ConfoundEncoder`
MANY_CATEGORIES = 20
INTERCEPT = "Intercept"
_LONE = 0.3  # largest share of a confound's sum of squares from one participant


def refuse_small_categories(
    name: str, categories: Sequence[Any], codes: Array, weights: Array, *, limit: int
) -> None:
    """Refuse a confound whose categories identify participants, or have few members.

    `codes` (n,) are positions in `categories`. Members count by their weights, as their answers do.
    """
    if len(categories) > max(MANY_CATEGORIES, len(codes) / 2):
        raise InputError(
            f"Confound {name!r} has {len(categories)} categories for {len(codes)} participants, so it "
            "identifies single participants, as ids and dates do.",
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
        f"fewer than {limit}{more}: the model would reveal the answers of these few.",
        code="small-category",
        remedy=Advice(
            "Pool the category with another one, leave the confound or these participants out, or, for a "
            "model that is not shared, add {smallest_category=}.",
            smallest_category=count,
        ),
        confound=name,
        category=categories[at],
        count=count,
    )


def tens(n: int) -> int:
    """A count, rounded so that one participant more is not seen."""
    return int(10 * np.rint(n / 10))


def effective_numbers(codes: Array, weights: Array) -> Array:
    """Effective number of members of each category, (Σω)²/Σω²."""
    sums, squares = np.bincount(codes, weights), np.bincount(codes, weights**2)
    return np.divide(sums**2, squares, out=np.zeros(len(sums)), where=squares > 0).round(6)


def answer_counts(observed: Array, members: Array, weights: Array | None) -> Array:
    """Σω and Σω² over the members of each category who answered each item (2, c, m).

    `observed` (n, m) marks the answers, and `members` (n, c) membership: 0 or 1, or a share where the
    confound is missing.
    """
    if weights is None and observed.dtype == np.float32 and not (members % 1).any():
        counts = (members.astype(np.float32).T @ observed).astype(np.float64)
        return np.stack([counts, counts])
    own = members if weights is None else members * weights[:, None]
    return np.stack([own.T @ observed, (own**2).T @ observed])


def few_cells(counts: Array, *, limit: int) -> Array:
    """Cells (c, m) of items that so few members of a category answered that loadings would reveal them."""
    sums, squares = counts
    numbers = np.divide(sums**2, squares, out=np.zeros(sums.shape), where=squares > 0).round(6)
    few: Array = (numbers > 0) & (numbers < limit)
    return few


def in_few_cells(members: Array, few: Array) -> Array:
    """Which answers (n, m) of these participants are in cells of a few."""
    inside: Array = (members > 0).astype(np.float32) @ few.astype(np.float32) > 0
    return inside


def refuse_few_answers(cells: Array, items: Sequence[str], *, limit: int, weighted: bool = False) -> None:
    """Refuse an item answered by so few participants that a model may hold nothing of it.

    `cells` (c, m) are those of a few; the last row is all participants.
    """
    few = [str(item) for item, is_few in zip(items, cells[-1], strict=True) if is_few]
    if few:
        more = ", by their weights" if weighted else ""
        more += f" (as were {counted(len(few) - 1, 'more item')})" if len(few) > 1 else ""
        raise InputError(
            f"Item {few[0]!r} was answered by fewer than {limit} participants{more}: the model would reveal "
            "their answers.",
            code="few-answers",
            remedy=Advice(
                "Leave the item out, or, for a model that is not shared, add {smallest_category=}.",
                smallest_category=1,
            ),
            item=few[0],
            count=limit - 1,
        )


def left_out(
    cells: Array, items: Sequence[str], names: Sequence[str], number: int, *, limit: int
) -> InputWarning:
    """The warning about answers that were left out; `names` are those of the categories."""
    at, item = divmod(int(cells.argmax()), cells.shape[1])
    whose = "" if names[at] == INTERCEPT else f" of the category {names[at]!r}"
    others = int(cells.any(axis=0).sum()) - 1
    more = f" (and {counted(others, 'more item')})" if others else ""
    return InputWarning(
        f"Item {items[item]!r}{more} was answered by fewer than {limit} participants{whose}: "
        f"{counted(number, 'answer')} of so few {'is' if number == 1 else 'are'} left out of the fit, so "
        "that the model does not reveal them.",
        code="few-answers",
        remedy=Advice(
            "For a model that is not shared, {smallest_category=} keeps them.", smallest_category=1
        ),
        item=str(items[item]),
        count=number,
    )


def refuse_emptied(number: int) -> None:
    """Refuse participants all of whose answers were left out, if they cannot be removed from the table."""
    if number:
        raise InputError(
            f"{counted(number, 'participant')} answered only items that so few of their category "
            "answered that the model would reveal their answers.",
            code="few-answers",
            remedy=Advice(
                "Leave these items or participants out, or, for a model that is not shared, add "
                "{smallest_category=}.",
                smallest_category=1,
            ),
            count=number,
        )


def refuse_lone_value(name: str, rows: Any, numbers: Array, weights: Array, *, limit: int) -> None:
    """Refuse values so far from all others that the confound's loadings or range would identify someone.

    One participant may not make up much of the confound's sum of squares, and a group of fewer than `limit`
    may not lie further from all others than these lie from each other.
    """
    if (weights > 0).sum() < limit:
        return
    apart = _set_apart(numbers, limit)
    spread = weights * (numbers - np.average(numbers, weights=weights)) ** 2
    if not apart.any():
        if not spread.max() > _LONE * spread.sum():
            return
        apart = np.arange(len(numbers)) == spread.argmax()
    at, others = int(np.flatnonzero(apart)[0]), numbers[~apart]
    group = int(apart.sum())
    more = f" (as for {counted(group - 1, 'more participant')})" if group > 1 else ""
    raise InputError(
        f"Confound {name!r} is {numbers[at]:g} for participant {rows[at]!r}{more}, far from all others "
        f"({others.min():g} to {others.max():g}), so the model would follow the answers of "
        f"{'this one' if group == 1 else 'these few'}.",
        code="lone-confound",
        remedy=Advice(
            "Correct it, leave the participant out, or give the range of the others with {confound_ranges}."
        ),
        confound=name,
        participant=rows[at],
    )


def _set_apart(numbers: Array, limit: int) -> Array:
    """Which values (n,) are fewer than `limit`, beyond a gap wider than the range of the others."""
    ordered = np.sort(numbers)
    for few in range(1, min(limit, (len(ordered) + 1) // 2)):
        if ordered[-few] - ordered[-few - 1] > ordered[-few - 1] - ordered[0]:
            return numbers >= ordered[-few]
        if ordered[few] - ordered[few - 1] > ordered[-1] - ordered[few]:
            return numbers <= ordered[few - 1]
    return np.zeros(len(numbers), dtype=bool)


def rounded(numbers: Array, low: float, high: float, mean: float) -> tuple[tuple[float, float], float]:
    """The range rounded outward, and the mean rounded, so that none is a participant's own value.

    The step is 1, 2 or 5 times a power of ten, about a tenth of the range, and at least 2 for whole numbers.
    """
    least = (high - low) / 15
    if (numbers == np.rint(numbers)).all():
        least = max(least, 2.0)
    power = 10.0 ** np.floor(np.log10(least))
    step = next(power * digit for digit in (1, 2, 5, 10) if power * digit >= least * (1 - 1e-9))
    ends = (np.array([np.floor(low / step), np.ceil(high / step)]) * step).round(12).tolist()
    return (ends[0], ends[1]), float(round(round(10 * mean / step) * step / 10, 12))
