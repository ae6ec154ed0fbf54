"""Numbers in plain words: the sentences of a report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace as Values

STABLE = ((0.95, "very stable"), (0.85, "stable"), (0.7, "fairly stable"))
_SMALL = (
    *("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"),
    "twelve",
)
LONG_DASH = "–"


def spelled(n: int) -> str:
    """A small number as a word."""
    return _SMALL[n] if 0 <= n < len(_SMALL) else str(n)


def count_of(n: int, what: str) -> str:
    """A number with its noun."""
    return f"{whole(n)} {what}{'' if n == 1 else 's'}"


def whole(n: int) -> str:
    """A whole number, with thin spaces between thousands from 10 000 on."""
    return f"{n:,}".replace(",", "\u202f") if n >= 10_000 else str(n)


def members(bar: Values) -> str:
    """How many participants are in a bar (`icqf.report.values.bar_of`)."""
    return f"fewer than {bar.below}" if bar.n is None else whole(bar.n)


def percent(share: float | None, digits: int = 0) -> str:
    """A share as a percentage."""
    if share is None or math.isnan(share):
        return LONG_DASH
    if digits == 0 and 0 < share < 0.005:
        return "<1%"
    if digits == 0 and 0.995 <= share < 1:
        return ">99%"
    return f"{round(share, 2 + digits) + 0.0:.{digits}%}"  # no "-0%"


def number(value: float | None, digits: int = 2) -> str:
    """A number with fixed digits; a minus sign, not a hyphen; an en dash when there is none."""
    if value is None or math.isnan(value):
        return LONG_DASH
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return text.replace("-", "−")


def interval(low: float | None, high: float | None) -> str:
    """An interval; an en dash when there is none."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return LONG_DASH
    return f"{number(low)}–{number(high)}"


def at_least(value: float) -> str:
    """A correlation that others are not below; nothing is above 1."""
    text = number(value)
    return text if text == "1.00" else f"{text} or higher"


def joined(parts: Sequence[str]) -> str:
    """Texts as a list in a sentence."""
    if len(parts) < 2:
        return "".join(parts)
    return ", ".join(parts[:-1]) + " and " + parts[-1]


def stability_words(agreement: float, top_kept: float, n_top: int, n_resamples: int) -> str:
    """One sentence on a factor's stability."""
    verdict = next((word for limit, word in STABLE if agreement >= limit), "unstable: read it with care")
    return (
        f"{verdict.capitalize()}. When the participants are drawn again ({n_resamples} times), its loadings "
        f"correlate {number(agreement)} with those shown here on average, and {number(top_kept, 1)} of its "
        f"top {n_top} items stay among the top {n_top}."
    )
