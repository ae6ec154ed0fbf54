"""What a report says, as plain values by name: report.json holds them, and sections show them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace as Values
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from icqf.report.analysis import Analysis


class Report(Values):
    """Everything a report says about a fitted model, as plain values by name; report.json holds the same.

    Sentences are part of it, so that all formats say the same. Shares are between 0 and 1. A number that does
    not exist (the fit of an item that everyone answered alike) is NaN, and null in JSON. `models` begins
    with the model that the report is about; `analysis` is what it was made from, None for a report that was
    read from JSON.

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
        """The values under `key`: worked out from the analysis once, and kept in report.json.

        None where there is no analysis and they were not kept, as in results of an earlier version.
        """
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
    """Plain values with names for attributes: mappings become Values, and lists tuples."""
    if isinstance(value, Mapping):
        return Values(**{str(name): frozen(part) for name, part in value.items()})
    if isinstance(value, (list, tuple)):
        return tuple(frozen(part) for part in value)
    return value


def bar_of(label: object, n: int, total: int, *, limit: int) -> Values:
    """A bar of a histogram: how many participants are in it, unless that is above 0 and below `limit`.

    So small a number might tell who they are: it is None, and so is its share; there are fewer than `below`.
    """
    if 0 < n < limit:
        return Values(label=str(label), n=None, share=None, below=limit)
    return Values(label=str(label), n=int(n), share=int(n) / max(total, 1), below=0)
