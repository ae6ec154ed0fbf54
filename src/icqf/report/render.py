"""The three views of a report: HTML, Markdown and JSON."""

from __future__ import annotations

import json
import math
import os
import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from icqf.data.confounds import INTERCEPT
from icqf.errors import shortened
from icqf.models.summary import is_loaded
from icqf.plotting.style import item_label
from icqf.report import words
from icqf.report.figures import figures, item_groups
from icqf.report.renderers.markdown import safe
from icqf.report.schema import ModelView, Report
from icqf.report.svg import heat_css, level, strength
from icqf.report.templating import environment, file_of

_DIGITS = 12  # significant ones: all that a page shows follows from these


def write_report(path: str | os.PathLike[str], report: Report) -> tuple[Path, Path, Path]:
    """Write a report as HTML, and beside it the same content as Markdown and JSON.

    Parameters
    ----------
    path : path
        The HTML file; the others have its name with the endings ``.md`` and ``.json``.
    report : Report

    Returns
    -------
    tuple of three Path
        The files written.

    Examples
    --------
    >>> import tempfile
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.report import analyse, report_of, write_report
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> model = ICQF(2, item_range=demo.ranges()).fit(demo.keyed_answers(), confounds=demo.confounds)
    >>> report = report_of(analyse(model, demo, n_bootstrap=0, compare=False))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in write_report(f"{folder}/report.html", report)]
    ['report.html', 'report.md', 'report.json']
    """
    target = Path(path)
    views = {target.suffix or ".html": as_html, ".md": as_markdown, ".json": as_json}
    written = []
    for ending, view in views.items():
        file = target.with_suffix(ending)
        file.write_text(view(report), encoding="utf-8", newline="\n")
        written.append(file)
    html, markdown, plain = written
    return html, markdown, plain


def as_json(report: Report) -> str:
    """The whole report as JSON: numbers to twelve digits, null for what does not exist.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.report import analyse, as_json, report_of
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> model = ICQF(2, item_range=demo.ranges()).fit(demo.keyed_answers(), confounds=demo.confounds)
    >>> report = report_of(analyse(model, demo, n_bootstrap=0, compare=False), title="The demo")
    >>> as_json(report).splitlines()[1]
    ' "title": "The demo",'
    """
    return json.dumps(_plain(report), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, (tuple, list)):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return value


def as_html(report: Report) -> str:
    """The report as one HTML page that needs nothing else: style, script and figures are inside.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.report import analyse, as_html, report_of
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> model = ICQF(2, item_range=demo.ranges()).fit(demo.keyed_answers(), confounds=demo.confounds)
    >>> report = report_of(analyse(model, demo, n_bootstrap=0, compare=False), title="The demo")
    >>> "<h1>The demo</h1>" in as_html(report)
    True
    """
    templates = _environment()
    order, groups = item_groups(report)
    begins = {first for _, first, _ in groups}
    return templates.get_template("report.html").render(
        **_shared(report),
        figures={name: Markup(text) for name, text in figures(report).items()},
        style=Markup(file_of(templates, "style.css") + heat_css()),
        script=Markup(file_of(templates, "script.js")),
        rows=[(at in begins and at > 0, j, report.items[j]) for at, j in enumerate(order)],
        groups=groups,
        histogram=_histogram,
        loaded=lambda factor: [each for each in factor.loadings if is_loaded(each.share)],
    )


def as_markdown(report: Report) -> str:
    """The report as Markdown: the content of the page in the same order, in tables that paste well.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.report import analyse, as_markdown, report_of
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> model = ICQF(2, item_range=demo.ranges()).fit(demo.keyed_answers(), confounds=demo.confounds)
    >>> report = report_of(analyse(model, demo, n_bootstrap=0, compare=False), title="The demo")
    >>> as_markdown(report).splitlines()[0]
    '# The demo'
    """
    text = _environment(finalize=_for_markdown).get_template("report.md").render(**_shared(report))
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _for_markdown(value: Any) -> Markup:
    """Whatever a template prints, escaped for Markdown; what a macro returns is escaped already."""
    return value if isinstance(value, Markup) else Markup(safe(str(value)))


def _environment(**options: Any) -> Environment:
    found = environment(**options)
    found.filters |= {
        "number": words.number,
        "percent": words.percent,
        "whole": words.whole,
        "members": words.members,
        "level": level,
        "strength": strength,
        "cut": shortened,
    }
    return found


def _shared(report: Report) -> dict[str, Any]:
    return {
        "report": report,
        "label": lambda row: item_label(row.name, row.wording, row.reverse),
        "by_name": {row.name: row for row in report.items},
        "parts": _parts_beside_factors(report.model),
        "intercept": INTERCEPT,
        "interval_of": words.interval,
        "given": [each for each in report.model.confounds if each.name != INTERCEPT],
    }


def _parts_beside_factors(view: ModelView) -> list[tuple[str, float]]:
    """The last rows of the table of factors: what confounds explain, if there are any, and the total."""
    confounds = [confound.variance for confound in view.confounds if confound.name != INTERCEPT]
    return [*([("Confounds", sum(confounds))] if confounds else []), ("Total", view.variance)]


def _histogram(counts: tuple[float, ...]) -> str:
    """The outline of a histogram as an SVG path in a box as wide as it has bars and 1 high."""
    highest = max(counts, default=0) or 1
    steps = "".join(f"V{1 - count / highest:.3f}h1" for count in counts)
    return f"M0,1{steps}V1Z"
