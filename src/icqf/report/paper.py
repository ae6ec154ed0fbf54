"""Tables for a paper: loadings, fit and confounds in APA style, for Word and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from icqf.io.atomic import write_bytes
from icqf.models.summary import LOADED
from icqf.plotting.style import item_label
from icqf.report import words
from icqf.report.blocks import Grid
from icqf.report.renderers.latex import latex_tables
from icqf.report.renderers.word import word_tables
from icqf.report.sections.factors import given_confounds, item_groups, variance_totals
from icqf.report.words import Report, Values

_PANEL = 12  # columns of loadings that fit on a page
_MOST_NAMED, _LONG_WORD = 6, 11  # columns, and characters of a word, up to which columns are named


def paper_tables(report: Report) -> list[Grid]:
    """The tables of a report for a paper; confounds and reliability where there are any.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.report import analyse, paper_tables, report_of
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> model = ICQF(2, item_range=demo.ranges()).fit(demo.keyed_answers(), confounds=demo.confounds)
    >>> report = report_of(analyse(model, demo, n_bootstrap=0, compare=False))
    >>> [table.caption for table in paper_tables(report)]
    ['Loadings of the items on the factors', 'Factors and fit of the model', 'Loadings of the confounds']
    """
    view = report.model
    confounds = given_confounds(view)
    loadings = _loadings(
        report, view.factors, "Loadings of the items on the factors", explained=True,
        note="Loadings are the points that a factor adds to the answer at a score of 1; each item's largest "
        "loading is bold. Explained: share of the item's variance that the model explains.",
    )  # fmt: skip
    tables = [*loadings, _fit(report)]
    if confounds:
        note = "Loadings of the confounds in answer points; each item's largest loading is bold."
        tables += _loadings(report, confounds, "Loadings of the confounds", note=note)
    if report.psychometrics is not None and report.psychometrics.scales:
        tables.append(_reliability(report.psychometrics))
    return tables


def _reliability(measured: Values) -> Grid:
    rows = tuple(
        (
            row.name,
            str(row.n_items),
            words.number(row.alpha),
            f"[{words.number(row.alpha_low)}, {words.number(row.alpha_high)}]",
            words.number(row.omega),
            f"[{words.number(row.omega_low)}, {words.number(row.omega_high)}]",
        )
        for row in measured.scales
    )
    note = f"KMO = {words.number(measured.kmo)}. Intervals are Feldt's for α and bootstrap intervals for ω."
    head = ("Items of", "Items", "α", "95% CI", "ω", "95% CI")
    return Grid("Reliability of the items of factors and subscales", head, rows, note=note)


def _loadings(
    report: Report, parts: Sequence[Values], title: str, *, note: str, explained: bool = False
) -> list[Grid]:
    """A table of the loadings of factors or confounds, or several where there are more than fit on a page."""
    heads, key = _heads([part.name for part in parts])
    panels = [range(first, min(first + _PANEL, len(parts))) for first in range(0, len(parts), _PANEL)]
    tables = []
    for panel in panels:
        rows, bold = _loading_rows(report, parts, panel, explained=explained)
        head = ("Item", *(heads[at] for at in panel), *(("Explained",) if explained else ()))
        which = f", {panel.start + 1} to {panel.stop} of {len(parts)}" if len(panels) > 1 else ""
        tables.append(Grid(f"{title}{which}", head, rows, bold=frozenset(bold), note=f"{key}{note}"))
    return tables


def _loading_rows(
    report: Report, parts: Sequence[Values], panel: range, *, explained: bool
) -> tuple[list[tuple[str, ...]], set[tuple[int, int]]]:
    """The rows of a table with some of these parts, and its bold cells: the largest of all parts."""
    rows, bold = [], set()
    for at, j in enumerate(item_groups(report)[0]):
        item = report.items[j]
        label = item_label(item.name, item.wording, item.reverse)
        cells = [part.loadings[j] for part in parts]
        largest = max(each.share for each in cells)
        cells = [cells[number] for number in panel]
        bold |= {(at, column) for column, each in enumerate(cells, 1) if each.share == largest >= LOADED}
        row = [
            f"{label} [{item.name}]" if item.wording else label,
            *(words.number(each.value) for each in cells),
        ]
        rows.append((*row, words.percent(item.explained)) if explained else tuple(row))
    return rows, bold


def _heads(names: Sequence[str]) -> tuple[list[str], str]:
    """Headings of columns of numbers: the names or, if their words are long or many, numbers with a key."""
    found = [re.fullmatch(r"Factor \d+ \((.+)\)", name) for name in names]
    short = [match[1] if match else name for match, name in zip(found, names, strict=True)]
    if len(names) <= _MOST_NAMED and max(len(word) for name in short for word in name.split()) <= _LONG_WORD:
        return short, ""
    key = "; ".join(f"{at} {name}" for at, name in enumerate(short, 1))
    return [str(at) for at in range(1, len(names) + 1)], f"{key}. "


def _fit(report: Report) -> Grid:
    view, fit = report.model, report.fit
    rows = [
        (
            factor.name,
            words.percent(factor.variance, 1),
            str(factor.n_items),
            words.LONG_DASH if factor.stability is None else words.number(factor.stability.agreement),
            words.LONG_DASH if factor.replication is None else words.percent(factor.replication.probability),
        )
        for factor in view.factors
    ]
    rows += [(name, words.percent(share, 1), "", "", "") for name, share in variance_totals(view)]
    hidden = (
        ""
        if fit.r_squared_hidden is None
        else f"; of hidden answers {words.percent(fit.r_squared_hidden, 1)}"
    )
    note = (
        f"N = {words.whole(report.sample.n_fitted)}, {report.sample.n_items} items, penalty "
        f"β = {view.beta:g}. R² of the model: {words.percent(fit.r_squared, 1)}{hidden}. Items: those with a "
        "loading of at least a tenth of their range. Agreement: mean correlation of loadings with "
        "those of resamples. Replication: "
        "probability that another study like this one, fitted with as many factors, finds the factor."
    )
    head = ("Factor", "Variance", "Items", "Agreement", "Replication")
    return Grid("Factors and fit of the model", head, tuple(rows), note=note)


def write_paper_tables(folder: Path, report: Report) -> list[Path]:
    """Write ``tables.tex`` and ``tables.docx``."""
    tables = paper_tables(report)
    written = [folder / "tables.tex", folder / "tables.docx"]
    write_bytes(written[0], latex_tables(tables).encode())
    write_bytes(written[1], word_tables(tables))
    return written
