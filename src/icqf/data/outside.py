"""Answers outside their range: one error for each item, or for each value that stands apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from icqf.data.ranges import Stray
from icqf.data.scales import DECLARE_RANGE, USUAL_CODES, missing_code_remedy, number
from icqf.errors import InputError

if TYPE_CHECKING:
    from icqf.data.questionnaire import Draft, Item


def range_faults(draft: Draft) -> Iterator[InputError]:
    """Yield an error for each item with answers outside its range or infinite ones.

    Its fields are item, value, low, high, participant, row (in the file, or None) and count. Without a
    declared range, a value is outside when it stands apart from the answers of the item's family.
    """
    items = draft.items
    table = draft.answers.to_numpy(dtype=float, na_value=np.nan)
    lowest = np.array([-np.finfo(float).max if item.min is None else item.min for item in items])
    highest = np.array([np.finfo(float).max if item.max is None else item.max for item in items])
    low, high = np.fmin.reduce(table, initial=np.nan), np.fmax.reduce(table, initial=np.nan)
    for j in np.flatnonzero((low < lowest) | (high > highest)):
        column, item = table[:, j], items[j]
        at = np.flatnonzero((column < lowest[j]) | (column > highest[j]))
        yield _outside(draft, item, float(column[at[0]]), at)
    places = {item.name: j for j, item in enumerate(items)}
    for stray in () if draft.families is None else draft.families.strays:
        if stray.item in places:  # otherwise the item was not selected
            at = np.flatnonzero(table[:, places[stray.item]] == stray.value)
            if len(at):
                yield _apart(draft, stray, at)


def _outside(draft: Draft, item: Item, value: float, at: np.ndarray) -> InputError:
    """The error for answers outside a declared range, or infinite ones, in the rows `at`."""
    place, found = _place(draft, at)
    fields = {"item": item.name, "value": value, "low": item.min, "high": item.max, **found}
    if np.isinf(value):
        return InputError(
            f"Item {item.name!r} holds an infinite value {place}.",
            code="infinite",
            remedy="Correct it or leave the cell empty.",
            **fields,
        )
    above = item.max is not None and value > item.max
    edge, end = ("above its highest", item.max) if above else ("below its lowest", item.min)
    return InputError(
        f"Item {item.name!r} holds {number(value)}, {edge} answer {number(end)} {place}.",
        code="outside-range",
        remedy=missing_code_remedy(value),
        **fields,
    )


def _apart(draft: Draft, stray: Stray, at: np.ndarray) -> InputError:
    """The error for a value that stands apart from the answers of an item's family, in the rows `at`."""
    place, found = _place(draft, at)
    family = (
        "its other answers" if stray.n_items == 1 else f"the answers of its family of {stray.n_items} items"
    )
    return InputError(
        f"Item {stray.item!r} holds {number(stray.value)}, far from {family}, {number(stray.low)} to "
        f"{number(stray.high)} {place}.",
        code="suspicious-code" if stray.value in USUAL_CODES else "far-answer",
        remedy=missing_code_remedy(stray.value, DECLARE_RANGE),
        **{"item": stray.item, "value": stray.value, "low": stray.low, "high": stray.high, "apart": True},
        **found,
    )


def _place(draft: Draft, at: np.ndarray) -> tuple[str, dict[str, Any]]:
    """Where answers stand, in words and as fields."""
    participant = str(draft.answers.index[at[0]])
    row = None if draft.file_rows is None else int(draft.file_rows[at[0]])
    more = f", and {len(at) - 1} more" if len(at) > 1 else ""
    words = f"({'' if row is None else f'row {row}, '}participant {participant!r}{more})"
    return words, {"participant": participant, "row": row, "count": len(at)}
