"""A report read back from its JSON, so that it can be written again with other names or figures."""

from __future__ import annotations

import json
import math
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from icqf.errors import InputError
from icqf.report.schema import Report


def from_json(text: str) -> Report:
    """The report that `as_json` wrote.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.report import analyse, as_html, as_json, from_json, report_of
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> model = ICQF(2, item_range=demo.ranges()).fit(demo.keyed_answers(), confounds=demo.confounds)
    >>> report = report_of(analyse(model, demo, n_bootstrap=0, compare=False))
    >>> as_html(from_json(as_json(report))) == as_html(report)
    True
    """
    try:
        report: Report = _made(Report, json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(
            f"This is not the JSON of a report of this version of icqf ({error}).",
            code="not-a-report",
            remedy="Fit again to write it anew.",
        ) from None
    return report


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _made(kind: Any, value: Any) -> Any:
    """A plain value as one of this type; null is NaN where only a number can be."""
    if is_dataclass(kind) and isinstance(kind, type):
        hints, names = _hints(kind), {field.name for field in fields(kind)}
        if not set(value) <= names:
            raise ValueError(f"{kind.__name__} has other parts")
        return kind(**{name: _made(hints[name], part) for name, part in value.items()})
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        if value is None:
            return None
        (other,) = [each for each in inner if each is not NoneType]
        return _made(other, value)
    if origin is tuple:
        kinds = [inner[0]] * len(value) if inner[1:] == (Ellipsis,) else inner
        return tuple(_made(each, part) for each, part in zip(kinds, value, strict=True))
    if kind is float:
        return math.nan if value is None else float(value)
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value
