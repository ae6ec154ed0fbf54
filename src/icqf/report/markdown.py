"""The report as Markdown, with tables that paste well."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from icqf.report.tree import Confound, Factor, ItemRow, Loading, ModelView, Report
from icqf.report.words import number, percent, whole


def as_markdown(report: Report) -> str:
    """The same content as the page, sections in the same order."""
    items = {row.name: row for row in report.items}
    parts = [f"# {safe(report.title)}", *map(safe, report.headline)]
    parts += ["## Who and what", *map(safe, report.sample.words)]
    parts += [
        markdown_table(
            ("Missing answers of a participant", "Participants", "Share"),
            ((bin.label, whole(bin.n), percent(bin.share)) for bin in report.sample.missing_by_person),
        ),
        "### Items",
        _items(report),
    ]
    parts += _notes(report) + _count(report)
    parts += ["## The factors", safe(report.bootstrap_words), _overview(report.model)]
    for factor in report.model.factors:
        parts += _factor(factor, items)
    parts += ["### All loadings", _loadings(report, report.model)]
    for view in report.models[1:]:
        parts += [f"### With {view.n_components} factors", _loadings(report, view)]
    parts += _splits(report)
    parts += ["## Confounds", "Points that go with a confound, beside the factors."]
    for confound in report.model.confounds:
        parts += [f"### {safe(confound.name)}", safe(confound.words), _top(confound.top, items)]
    parts += _people(report) + _fit(report) + _comparison(report)
    methods = report.methods
    parts += ["## Methods", safe(methods.paragraph), "### References"]
    parts += [f"- {safe(reference)}" for reference in methods.references]
    parts += ["### Settings and versions"]
    parts += [
        markdown_table(("Setting", "Value"), (*methods.settings, *methods.versions, ("seed", methods.seed)))
    ]
    if report.participants is not None:
        names = [factor.name for factor in report.model.factors]
        rows = ((p.id, str(p.n_answered), *(number(v, 3) for v in p.scores)) for p in report.participants)
        parts += ["## Participants", markdown_table(("Participant", "Answers", *names), rows)]
    return "\n\n".join(part for part in parts if part) + "\n"


def safe(text: str) -> str:
    """A text that Markdown shows as it is.

    Examples
    --------
    >>> print(safe("a|b <script> *c*"))
    a\\|b &lt;script&gt; \\*c\\*
    """
    text = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\\\`*_{}\[\]|#~])", r"\\\1", text)


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(safe(cell) for cell in head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(safe(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _wording(row: ItemRow) -> str:
    return f"{row.wording or row.name}{' (reversed)' if row.reverse else ''}"


def _items(report: Report) -> str:
    head = ("Item", "Wording", "Subscale", "Range", "Mean", "SD", "Lowest", "Highest", "Missing")
    return markdown_table(
        head,
        (
            (
                *(row.name, _wording(row), row.subscale, f"{row.low:g}–{row.high:g}"),
                *(number(row.mean), number(row.sd), percent(row.floor), percent(row.ceiling)),
                percent(row.share_missing, 1),
            )
            for row in report.items
        ),
    )


def _notes(report: Report) -> list[str]:
    if not report.sample.notes:
        return []
    return ["### What was done to the data", *(f"- {safe(note)}" for note in report.sample.notes)]


def _count(report: Report) -> list[str]:
    count = report.count
    parts = ["## How many factors, and how sure", *map(safe, count.words)]
    if count.candidates:
        rows = (
            (
                str(c.n_components),
                f"{c.beta:g}",
                number(c.error, 4),
                number(c.standard_error, 4),
                "yes" * c.chosen,
            )
            for c in count.candidates
        )
        parts.append(markdown_table(("Factors", "β", "Error", "Standard error", "Chosen"), rows))
    if count.shares:
        parts.append(
            markdown_table(
                ("Factors", "Chosen again"), ((str(k), percent(share)) for k, share in count.shares)
            )
        )
    if count.halves:
        rows_ = (
            (str(h.n_components), number(h.agreement), f"{number(h.low)} to {number(h.high)}")
            for h in count.halves
        )
        parts.append(markdown_table(("Factors", "Agreement of halves", "10th to 90th percentile"), rows_))
    if count.eigenvalues:
        rows__ = ((str(e.factor), number(e.observed), number(e.unrelated)) for e in count.eigenvalues)
        parts.append(markdown_table(("Factor", "Eigenvalue", "Unrelated answers"), rows__))
    return parts


def _overview(view: ModelView) -> str:
    rows = []
    for factor in view.factors:
        stability = factor.stability
        rows.append(
            (
                *(factor.name, factor.theme, percent(factor.variance, 1), str(factor.n_items)),
                "–" if stability is None else number(stability.agreement),
            )
        )
    return markdown_table(("Factor", "Theme", "Share of variance", "Items", "Agreement when resampled"), rows)


def _factor(factor: Factor, items: dict[str, ItemRow]) -> list[str]:
    head = f"{factor.theme[:1].upper()}{factor.theme[1:]}. " if factor.theme else ""
    said = f"{head}Share of variance: {percent(factor.variance, 1)}."
    if factor.stability is not None:
        said += f" {factor.stability.words}"
    return [f"### {safe(factor.name)}", safe(said), _top(factor.top, items)]


def _top(top: Sequence[Loading], items: dict[str, ItemRow]) -> str:
    if not top:
        return "No item moves by more than a twentieth of its range."
    rows = (
        (
            *(each.item, _wording(items[each.item]), number(each.value)),
            "–" if each.low is None else f"{number(each.low)}–{number(each.high)}",
        )
        for each in top
    )
    return markdown_table(("Item", "Wording", "Loading", "95% interval"), rows)


def _loadings(report: Report, view: ModelView) -> str:
    columns: list[Factor | Confound] = [*view.factors, *view.confounds]
    rows = (
        (row.name, _wording(row), *(number(column.loadings[j].value) for column in columns))
        for j, row in enumerate(report.items)
    )
    return markdown_table(("Item", "Wording", *(column.name for column in columns)), rows)


def _splits(report: Report) -> list[str]:
    if not report.splits:
        return []
    rows = (
        (f"{s.factor} of {s.k}", f"{s.next_factor} of {s.next_k}", number(s.correlation))
        for s in report.splits
    )
    return [
        "### How factors split",
        markdown_table(("Factor", "Becomes factor", "Correlation of loadings"), rows),
    ]


def _people(report: Report) -> list[str]:
    people = report.people
    names = [factor.name for factor in people.factors]
    spread = (
        (
            *(factor.name, number(factor.mean), number(factor.median), number(factor.sd)),
            *(percent(factor.none), percent(factor.present), percent(factor.high)),
        )
        for factor in people.factors
    )
    has = f"At least {people.threshold:g}"
    pairs = zip(names, people.correlations, strict=True)
    return [
        "## People",
        *map(safe, people.words),
        markdown_table(("Factor", "Mean", "Median", "SD", "At 0", has, "At least half"), spread),
        markdown_table(
            ("Factors a participant has", "Participants", "Share"),
            ((bin.label, whole(bin.n), percent(bin.share)) for bin in people.n_present),
        ),
        "Correlations between scores:",
        markdown_table(("", *names), ((name, *(number(value) for value in row)) for name, row in pairs)),
    ]


def _fit(report: Report) -> list[str]:
    rows = (
        (
            *(row.name, _wording(row), row.strongest, percent(row.fit)),
            *(percent(row.fit_hidden) if row.fit_hidden is not None else "–",),
            *(percent(row.fit_comparison) if row.fit_comparison is not None else "–",),
        )
        for row in report.items
    )
    head = ("Item", "Wording", "Strongest factor", "Explained", "Hidden answers", "Factor analysis")
    return ["## How well each item is described", *map(safe, report.fit.words), markdown_table(head, rows)]


def _comparison(report: Report) -> list[str]:
    comparison = report.comparison
    if comparison is None:
        return []
    rows = ((pair.factor, pair.other, number(pair.correlation)) for pair in comparison.pairs)
    return [
        "## Beside factor analysis",
        *map(safe, comparison.words),
        markdown_table(("Factor", "Nearest factor", "Correlation of loadings"), rows)
        if comparison.pairs
        else "",
    ]
