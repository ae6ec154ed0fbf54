"""Numbers in words, and the values of a report (report.json)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace as Values
from typing import TYPE_CHECKING, Any

import pandas as pd

from icqf.errors import joined as joined

if TYPE_CHECKING:
    from icqf.report.analysis import Analysis

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
    """How many participants are in a bar (`icqf.report.words.bar_of`)."""
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


def printable(text: str) -> str:
    """A text in one line, without the control characters that figures and Word files cannot hold."""
    return "".join(mark if mark.isprintable() else " " for mark in text)


def interval(low: float | None, high: float | None) -> str:
    """An interval; an en dash when there is none."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return LONG_DASH
    return f"{number(low)}–{number(high)}"


def at_least(value: float) -> str:
    """A lower limit of correlations, which cannot exceed 1."""
    text = number(value)
    return text if text == "1.00" else f"{text} or higher"


def stability_words(agreement: float, top_kept: float, n_top: int, n_resamples: int) -> str:
    """One sentence on a factor's stability."""
    kept = "all" if round(top_kept, 1) == n_top else number(top_kept, 1)
    verdict = next((word for limit, word in STABLE if agreement >= limit), "unstable, interpret with care")
    return (
        f"{verdict.capitalize()}: over {n_resamples} resamples its loadings correlate {number(agreement)} on "
        f"average with those shown here, and {kept} of its top {n_top} items stay in the top {n_top}."
    )


class Report(Values):
    """The content of a report as plain values by name, sentences included; report.json holds the same.

    Shares are between 0 and 1. A number that does not exist (the fit of an item that everyone answered alike)
    is NaN, and null in JSON. `models` begins with the model of the report; `analysis` is what the report was
    made from, None for a report that was read from JSON.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.report import analyse, report_of
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> report = report_of(analyse(ICQF(2).fit(demo), demo, n_bootstrap=0, compare=False), title="The demo")
    >>> report.sample.n_participants, len(report.model.factors)
    (600, 2)
    """

    __slots__ = ("analysis",)

    def __init__(self, analysis: Analysis | None = None, **values: Any) -> None:
        super().__init__(**values)
        self.analysis = analysis

    def __repr__(self) -> str:
        return f"Report({self.title!r})"

    @property
    def model(self) -> Any:
        """The model that the report is about."""
        return self.models[0]

    def keep(self, key: str, work: Callable[[Analysis], Mapping[str, Any]]) -> Any:
        """The values under `key`, computed from the analysis once and kept; None without an analysis."""
        if not hasattr(self, key) and self.analysis is not None:
            setattr(self, key, frozen(work(self.analysis)))
        return getattr(self, key, None)


def changed(values: Any, **changes: Any) -> Any:
    """A copy of these values with changes."""
    copy = type(values)(**{**vars(values), **changes})
    if isinstance(values, Report):
        copy.analysis = values.analysis
    return copy


def frozen(value: Any) -> Any:
    """Plain values in which mappings become Values and lists tuples."""
    if isinstance(value, Mapping):
        return Values(**{str(name): frozen(part) for name, part in value.items()})
    if isinstance(value, (list, tuple)):
        return tuple(frozen(part) for part in value)
    return value


def records(table: pd.DataFrame) -> tuple[Values, ...]:
    """The rows of a table as plain values."""
    return tuple(Values(**row) for row in table.to_dict("records"))  # type: ignore[arg-type]


def bar_of(label: object, n: int, total: int, *, limit: int) -> Values:
    """A bar of a histogram; a count above 0 and below `limit` might identify participants, and is None."""
    if 0 < n < limit:
        return Values(label=str(label), n=None, share=None, below=limit)
    return Values(label=str(label), n=int(n), share=int(n) / max(total, 1), below=0)


def table_of(rows: Sequence[Values]) -> pd.DataFrame:
    """Plain values as a table, one row each."""
    return pd.DataFrame([vars(row) for row in rows])


def eigenvalue_table(found: Values) -> pd.DataFrame:
    """The eigenvalues of parallel analysis as a table for `scree`."""
    return table_of(found.eigenvalues).set_axis(["n_components", "eigenvalue", "random_eigenvalue"], axis=1)
