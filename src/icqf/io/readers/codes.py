"""Values that studies use for "no answer" and that easily pass for answers."""

from __future__ import annotations

import numpy as np

USUAL = tuple(
    sign * int(str(digit) * times) for digit in (6, 7, 8, 9) for times in (1, 2, 3, 4) for sign in (1, -1)
)
USUAL_CODES = frozenset(float(code) for code in (*USUAL, -1))


def suspicious_codes(values: np.ndarray, lo: float | None = None, hi: float | None = None) -> list[float]:
    """Return the usual no-answer codes (9, 99, 777, -9, ...) that stand apart from the other answers.

    Parameters
    ----------
    values : ndarray
        Answers of one item.
    lo, hi : float or None
        The declared range. None: a code stands apart when more than one step separates it from the other
        answers.

    Examples
    --------
    >>> suspicious_codes(np.array([0, 1, 2, 1, 9, 0]))
    [9.0]
    >>> suspicious_codes(np.array([7, 8, 9, 10]))
    []
    >>> suspicious_codes(np.array([0, 3, 9]), 0, 4)
    [9.0]
    """
    present = np.unique(values[np.isfinite(values)])
    if lo is not None and hi is not None:
        return [float(v) for v in present if (v < lo or v > hi) and float(v) in USUAL_CODES]
    found: list[float] = []
    for side in (1.0, -1.0):
        ordered = np.sort(side * present)[::-1]
        run = 0
        while run < len(ordered) and float(side * ordered[run]) in USUAL_CODES:
            run += 1
        while run and (run >= len(ordered) or ordered[run - 1] - ordered[run] <= 1):
            run -= 1
        codes = [float(side * v) for v in ordered[:run]]
        found += [code for code in codes if side > 0 or code < 0]
    return sorted(found)
