"""What an answer scale may be: how wide, and which values on it usually mean "no answer"."""

from __future__ import annotations

import numpy as np

from icqf.errors import Advice, InputError

WIDEST_RANGE = 1e6
_REPEATED = (
    int(str(digit) * times) for digit in range(1, 10) for times in (1, 2, 3, 4) if digit > 5 or times > 1
)
_FEW = 11  # different answers: on a scale of more, a gap of a few steps is nothing unusual
USUAL_CODES = frozenset([-1.0, *(float(sign * code) for code in _REPEATED for sign in (1, -1))])


def refuse_wide_range(item: str, low: float, high: float) -> None:
    """Refuse a range that no questionnaire has: ids and dates have, and sums of their squares overflow."""
    if high - low > WIDEST_RANGE:
        raise InputError(
            f"Item {item!r} would have the range {low:g} to {high:g}, wider than any questionnaire's.",
            code="wide-range",
            remedy="If such numbers are ids, dates or codes of missing answers, leave them out; otherwise "
            "rescale them.",
            item=item,
            low=low,
            high=high,
        )


def codes_apart(values: np.ndarray) -> list[float]:
    """Return the usual no-answer codes (9, 44, 777, -9, ...) that stand apart from an item's other answers.

    A code stands apart when more than one step separates it from them, or a quarter of their range where they
    are many.

    Examples
    --------
    >>> codes_apart(np.array([0, 1, 2, 1, 9, 0]))
    [9.0]
    >>> codes_apart(np.array([7, 8, 9, 10]))
    []
    """
    present = np.unique(values[np.isfinite(values)])
    if not USUAL_CODES.intersection(present.tolist()):
        return []
    found: list[float] = []
    for side in (1.0, -1.0):
        ordered = np.sort(side * present)[::-1]
        run = 0
        while run < len(ordered) and float(side * ordered[run]) in USUAL_CODES:
            run += 1
        while run and (run >= len(ordered) or ordered[run - 1] - ordered[run] <= _widest_step(ordered[run:])):
            run -= 1
        codes = [float(side * v) for v in ordered[:run]]
        found += [code for code in codes if side > 0 or code < 0]
    return sorted(found)


def _widest_step(answers: np.ndarray) -> float:
    """The widest step between answers, in falling order, that is nothing unusual."""
    return 1.0 if len(answers) <= _FEW else max(1.0, float(answers[0] - answers[-1]) / 4)


DECLARE_RANGE = "if not, declare the item's range in a codebook"


def missing_code_remedy(value: float | str, otherwise: str = "") -> Advice:
    """Return what to do about a value that may mean "no answer", and `otherwise`."""
    text = number(value) if is_number(value) else repr(value)
    end = f"; {otherwise}." if otherwise else "."
    return Advice("If {} marks a missing answer, add {missing_codes=}{}", text, end, missing_codes=[value])


def number(value: object) -> str:
    """Write a number without a needless ``.0``; anything else as it is.

    Examples
    --------
    >>> number(9.0), number(0.5)
    ('9', '0.5')
    """
    if isinstance(value, (int, float, np.number)):
        whole = float(value).is_integer() and abs(float(value)) < 1e15  # longer ones are not written out
        return str(int(value)) if whole else f"{float(value)!r}"
    return str(value)


def is_number(value: object) -> bool:
    """Whether a missing code is a number rather than a text."""
    return isinstance(value, (int, float, np.number))
