"""A report whose texts matplotlib draws as they are."""

from __future__ import annotations

from dataclasses import replace

from icqf.report.schema import Report


def drawable(report: Report) -> Report:
    """The report with texts that matplotlib draws as they are: a dollar sign begins no formula."""

    def plain(text: str) -> str:
        return "".join(mark if mark.isprintable() else " " for mark in text).replace("$", r"\$")

    factors = tuple(replace(each, name=plain(each.name)) for each in report.model.factors)
    confounds = tuple(replace(each, name=plain(each.name)) for each in report.model.confounds)
    items = tuple(
        replace(row, wording=plain(row.wording or row.name), subscale=plain(row.subscale))
        for row in report.items
    )
    scores = tuple(replace(each, name=plain(each.name)) for each in report.scores.factors)
    comparison = report.comparison
    if comparison is not None:
        pairs = tuple(replace(pair, factor=plain(pair.factor)) for pair in comparison.pairs)
        comparison = replace(comparison, pairs=pairs)
    view = replace(report.model, factors=factors, confounds=confounds)
    return replace(
        report,
        models=(view, *report.models[1:]),
        items=items,
        scores=replace(report.scores, factors=scores),
        comparison=comparison,
    )
