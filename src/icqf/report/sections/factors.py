"""The factors, all loadings, and the confounds: one fitted model with its top items and their stability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from icqf.analyses import factor_lineage
from icqf.data.confounds import INTERCEPT
from icqf.data.questionnaire import Item
from icqf.errors import shortened
from icqf.models.icqf import ICQF
from icqf.models.summary import (
    checked_names,
    default_names,
    is_loaded,
    shown_names,
    suggested_names,
    themes,
    top_places,
)
from icqf.plotting import split_tree
from icqf.plotting.loadings import grouped_order
from icqf.plotting.style import item_label
from icqf.report import words
from icqf.report.analysis import Analysis
from icqf.report.blocks import Bar, Block, Cell, Column, Details, Grid, Group, Picture, Prose, Row, Section
from icqf.report.renderers.html import environment
from icqf.report.sections import report_section
from icqf.report.sections.sample import item_cell
from icqf.report.svg import drawn, level
from icqf.report.words import Report, Values
from icqf.resampling.bootstrap import Resamples
from icqf.resampling.replication import replication_in_words

NEAR_BOUND = 0.03  # of an item's range: below, an intercept has no interval
_LONG = 40  # items from which the table of all loadings is not printed
_BRIEF = 20  # characters of an item; where all have at most as many, bars take half of the width
_REPLICATION_WORDS = (
    "The replication probability says how likely another study like this one (as many participants, "
    "fitted with as many factors) finds the factor: has one whose loadings correlate at least 0.8 with "
    "it. It is predicted from the agreement of fits to halves of the participants, stepped up to the "
    "whole sample, by a model learned from other studies. A study that chooses its own number of factors "
    "finds somewhat fewer. Factors with a probability below one half are marked as fragile; a factor "
    "that one item carries (four fifths of its squared loadings) is that item, and has the probability 0."
)


# --- what the page shows ----------------------------------------------------------------------------------


@report_section("factors", "The factors")
def factors(report: Report) -> list[Block]:
    """The map of all loadings, an overview, and a card for each factor."""
    model_factors = report.model.factors
    replicated = model_factors[0].replication is not None
    probabilities = " and replication probabilities" if replicated else ""
    how = [report.bootstrap_words, *([report.replication_words] if replicated else [])]
    return [
        "A factor is a pattern of answers. Its loading on an item is the number of points that it adds to "
        "the answer at the highest score. The variance shares of factors and confounds add up to that of the "
        "whole model.",
        loading_map(report, report.model, "map"),
        "“Items” is the number of items with a loading of at least a tenth of their range; the last column "
        f"is the share of participants with a score of {report.scores.threshold:g} or more.",
        _overview(report),
        Details(f"How intervals{probabilities} were computed", how, kind="how"),
        Group([_card(report, factor) for factor in model_factors], "cards"),
    ]


def _overview(report: Report) -> Grid:
    model_factors = report.model.factors
    themed, replicated = (
        any(factor.theme for factor in model_factors),
        model_factors[0].replication is not None,
    )
    columns: list[tuple[str | Column, list[str]]] = []
    if themed:
        where = Column("Subscales of its items", kind="where", cells="where", numeric=False)
        columns.append((where, [factor.theme or words.LONG_DASH for factor in model_factors]))
    columns.append(("Share of variance", [words.percent(factor.variance, 1) for factor in model_factors]))
    columns.append(("Items", [str(factor.n_items) for factor in model_factors]))
    if report.bootstrap:
        agreement = [words.number(factor.stability.agreement) for factor in model_factors]
        columns.append(("Agreement across resamples", agreement))
    if replicated:
        probabilities = [
            words.percent(factor.replication.probability) + " (fragile)" * factor.replication.fragile
            for factor in model_factors
        ]
        columns.append((Column("Replication probability", numeric=True), probabilities))
    present = [words.percent(factor.present) for factor in report.scores.factors]
    columns.append((f"Score ≥ {report.scores.threshold:g}", present))
    rows: list[list[str | Cell]] = [
        [Cell(factor.name, link=f"#{factor.key}"), *(cells[at] for _, cells in columns)]
        for at, factor in enumerate(model_factors)
    ]
    rows += [
        [name, *(words.percent(share, 1) if head == "Share of variance" else "" for head, _ in columns)]
        for name, share in variance_totals(report.model)
    ]
    head = ["Factor", *(title for title, _ in columns)]
    return Grid("Overview of the factors", head, rows, kind="overview", quiet=True)


def _card(report: Report, factor: Values) -> Section:
    sentences = [
        f"{words.percent(factor.variance, 1)} of the variance; {words.count_of(factor.n_items, 'item')} with "
        "a loading of at least a tenth of the range.",
        *(each.words for each in (factor.stability, factor.replication) if each is not None),
    ]
    theme = factor.theme[:1].upper() + factor.theme[1:]
    parts: list[Block] = [
        *([Prose([theme], "theme")] if theme else []),
        _top(report, factor.top, f"Top items of {factor.name}"),
        Prose([" ".join(sentences)], "facts"),
    ]
    loaded = [each for each in factor.loadings if is_loaded(each.share)]
    if len(loaded) > len(factor.top):
        ranked = sorted(loaded, key=lambda each: each.share, reverse=True)
        summary = f"All {len(loaded)} items with a loading of at least a tenth of the range"
        table = _top(report, ranked, f"Items of {factor.name}")
        parts.append(Details(summary, [table], page_only=True))  # all loadings are in a table below
    return Section(factor.name, parts, factor.key)


def _top(report: Report, top: Sequence[Values], caption: str, kind: str = "") -> Block:
    """The items with the largest loadings, with bars and intervals."""
    if not top:
        return "No loading reaches a twentieth of the item's range."
    by_name = {row.name: row for row in report.items}
    rows: list[list[Any]] = []
    for each in top:
        row = by_name[each.item]
        span = row.high - row.low
        low, high = (None, None) if each.low is None else (each.low / span, each.high / span)
        cells = [
            item_cell(row),
            words.number(each.value),
            Cell(drawing=Bar(each.share, low, high, kind)),
            *([words.interval(each.low, each.high)] if report.bootstrap else []),
        ]
        rows.append(cells)
    brief = max(len(cells[0].text) for cells in rows) <= _BRIEF
    drawn_share = Column("Share of the range", drawn=True, quiet=True, kind="wide")
    intervals = ["95% interval"] if report.bootstrap else []
    head = ["Item", "Points", drawn_share, *intervals]
    return Grid(caption, head, rows, kind="top brief" if brief else "top", quiet=True, scroll=False)


@report_section("loadings", "All loadings")
def loadings(report: Report) -> list[Block]:
    """Every loading of every model in tables that can be sorted and filtered, and how factors split."""
    order = "grouped by subscale" if report.sample.subscales else "each near its strongest factor"
    parts: list[Block] = [
        f"All items, {order}. Loadings are in points on the answer scale; the more a cell stands out, the "
        f"larger the share of the item's range.{_colours(report.model)}"
    ]
    n = len(report.items)
    if n > _LONG:
        note = (
            "The table of all {} items is in loadings.csv and, if Word tables were written, in tables.docx."
        )
        parts.append(Markup(f'<p class="for-print">{note}</p>').format(n))
    tools = environment().get_template("tools.html").render(report=report)
    parts.append(Markup(tools))  # controls that filter the tables on the page; the script shows them
    for at, view in enumerate(report.models):
        shown = _view(report, view, at)
        if len(report.models) > 1:
            own = " (the model of this report)" if at == 0 else ""
            explains = (
                f"Explains {words.percent(view.variance, 1)} of the variance of the answers "
                f"(penalty β = {view.beta:g})."
            )
            heading = f"{words.count_of(view.n_components, 'factor')}{own}"
            shown = [Section(heading, [explains, *shown])]
        parts.append(Group(shown, "model", {"model": str(at)}))
    if report.splits:
        parts.append(_splits(report))
    return parts


def _view(report: Report, view: Values, at: int) -> list[Block]:
    """The table of all loadings of a model, with a map if it is not the report's own model."""
    order, groups = item_groups(report)
    begins = {first for _, first, _ in groups if first}
    scales = bool(report.sample.subscales)
    parts = [("q", factor, False) for factor in view.factors]
    parts += [("o", confound, number == 0) for number, confound in enumerate(view.confounds)]
    rows = []
    for place, j in enumerate(order):
        row = report.items[j]
        cells = [item_cell(row), *([row.subscale] if scales else [])]
        for shade, part, first in parts:
            each = part.loadings[j]
            known = each.low is not None and each.high >= 0.005
            tip = f"{words.number(each.low)} to {words.number(each.high)}" if known else ""
            kind = f"{shade}{level(each.share)}{' first' if first else ''}"
            cells.append(Cell(words.number(each.value), kind=kind, tip=tip))
        rows.append(Row(cells, "begin" if place in begins else "", {"span": f"{row.high - row.low:g}"}))
    head: list[str | Column] = ["Item"]
    if scales:
        head.append(Column("Subscale", kind="scale", cells="scale", numeric=False))
    head += [
        Column(part.name, kind=f"up{' first' if first else ''}", numeric=False) for _, part, first in parts
    ]
    hover = report.bootstrap and at == 0
    intervals = "; hover over a cell, or see each factor above, for its interval" if hover else ""
    table = Grid(
        f"Loadings of all items{intervals}",
        head,
        rows,
        kind=f"heat sortable{' long' if len(rows) > _LONG else ''}",
        label=f"Loadings of all items with {words.count_of(view.n_components, 'factor')}",
    )
    return [table] if at == 0 else [loading_map(report, view, f"map{at + 1}"), table]


def _splits(report: Report) -> Section:
    links = words.table_of(report.splits)
    largest = max(report.models, key=lambda view: view.n_components)
    names = [factor.name for factor in largest.factors] if largest is report.model else None
    title = "How factors split as their number grows"
    figure = drawn(
        "splits",
        lambda ax: split_tree(links, names=names, ax=ax),
        title,
        "Each column is a fit with that many factors, numbered by their share of variance. The thicker the "
        "line between two factors, the more similar their loadings; grey lines are weaker links.",
        size=(5.4, 0.38 * largest.n_components + 1.0),
    )
    rows = [
        [f"{each.factor} of {each.k}", f"{each.next_factor} of {each.next_k}", words.number(each.correlation)]
        for each in report.splits
    ]
    head = ["Factor", "Next factor", "Correlation of loadings"]
    table = Grid("Similar factors", head, rows, quiet=True, scroll=False)
    return Section(title, [figure, Details("Table behind this figure", [table], title="Similar factors")])


@report_section("confounds", "Confounds")
def confounds(report: Report) -> list[Block] | None:
    """A card for each confound that was given."""
    given = given_confounds(report.model)
    if not given:
        return None
    cards = [
        Section(
            each.name,
            [Prose([each.words], "theme"), _top(report, each.top, f"Top items of {each.name}", "other")],
            f"confound{number}",
        )
        for number, each in enumerate(given, 1)
    ]
    lead = "Effects of known variables are modelled separately, so that they do not appear as factors."
    return [lead, Group(cards, "cards")]


def given_confounds(view: Values) -> list[Values]:
    """The confounds of a model without its intercept."""
    return [each for each in view.confounds if each.name != INTERCEPT]


def _colours(view: Values) -> str:
    return " Factors are blue, confounds orange." if given_confounds(view) else ""


def variance_totals(view: Values) -> list[tuple[str, float]]:
    """The last rows of a table of factors: the confounds' share, if there are any, and the total."""
    confounds = [confound.variance for confound in given_confounds(view)]
    return [*([("Confounds", sum(confounds))] if confounds else []), ("Total", view.variance)]


def item_groups(report: Report) -> tuple[list[int], list[tuple[str, int, int]]]:
    """Order of the items (by subscale, then strongest factor), and where each subscale begins and ends."""
    shares = np.array([[loading.share for loading in factor.loadings] for factor in report.model.factors]).T
    return grouped_order([row.subscale for row in report.items], shares)


_WIDE, _LEFT, _ROW = 960, 216, 22  # of the map, in its own units


def loading_map(report: Report, view: Values, name: str) -> Picture:
    """All loadings of a model as a picture of the page: one row per factor, one column per item."""
    order, groups = item_groups(report)
    grouped = ", grouped by subscale" if groups else ""
    caption = (
        f"Each column is an item{grouped}; the more a cell stands out, the larger its loading as a share of "
        f"the item's range.{_colours(view)}"
    )
    return Picture(name, lambda: _map(report, view, name, order, groups), caption)


def _map(
    report: Report, view: Values, name: str, order: list[int], groups: list[tuple[str, int, int]]
) -> Markup:
    given = given_confounds(view)
    cell = (_WIDE - _LEFT) / len(order)
    items = [report.items[j] for j in order]
    heads = [(text, _LEFT + cell * (first + last) / 2) for text, first, last in groups]
    if not groups and len(items) <= 60:
        heads = [(shortened(row.name, 24), _LEFT + cell * (at + 0.5)) for at, row in enumerate(items)]
    top = 12 + 6.6 * max((len(text) for text, _ in heads), default=0)
    gap = 8 if given else 0
    columns = [("q", factor, 0) for factor in view.factors] + [("o", confound, gap) for confound in given]
    labels = [item_label(row.name, row.wording, row.reverse) for row in items]
    rows = []
    for number, (shade, column, below) in enumerate(columns):
        loadings = [column.loadings[j] for j in order]
        cells = [
            (f"{shade}{level(each.share)}", _LEFT + cell * at, labels[at], words.number(each.value))
            for at, each in enumerate(loadings)
            if level(each.share)
        ]
        rows.append((top + _ROW * number + below, shortened(column.name, 28), cells))
    drawing = (
        environment()
        .get_template("map.html")
        .render(
            name=name,
            wide=_WIDE,
            left=_LEFT,
            top=top,
            high=top + _ROW * len(columns) + gap + 4,
            cell=cell,
            heads=heads,
            confounds=given,
            rows=rows,
            lines=[_LEFT + cell * first for _, first, _ in groups[1:]],
        )
    )
    return Markup(drawing)


# --- the values behind it ---------------------------------------------------------------------------------


def model_values(analysis: Analysis, names: list[str], sample: Values) -> dict[str, Any]:
    """The model and the other models, how factors split, and how intervals were computed."""
    items, model = analysis.questionnaire.items, analysis.model
    seen = {each.name: (each.low, each.high) for each in sample.confounds if each.low is not None}

    def values(fitted: ICQF, shown: list[str], resamples: Resamples | None = None) -> Values:
        return _values(fitted, shown, items, resamples, seen)

    others = [values(other, names_shown(other, items, None)) for other in analysis.other_models]
    links: tuple[Values, ...] = ()
    if others:
        every = (model, *analysis.other_models)
        links = words.records(factor_lineage([each.weighted_loadings_ for each in every]))
    return {
        "models": (values(model, names, analysis.resamples), *others),
        "splits": links,
        "bootstrap": analysis.n_bootstrap,
        "bootstrap_words": _bootstrap_words(analysis.n_bootstrap, grouped=analysis.groups is not None),
        "replication_words": _REPLICATION_WORDS if model.replication_ is not None else "",
    }


def names_shown(
    model: ICQF, items: Sequence[Item], names: Sequence[str] | Mapping[str, str] | None
) -> list[str]:
    """The names given or those of the model, else a number with a suggestion."""
    own = model.factor_names_ if names is None else checked_names(model.factor_names_, names)
    return shown_names(own, suggested_names(model.loadings_.div(_spans(model), axis=0), items))


def _spans(model: ICQF) -> np.ndarray:
    return (model.item_range_["max"] - model.item_range_["min"]).to_numpy()


def _values(
    model: ICQF,
    names: Sequence[str],
    items: Sequence[Item],
    resamples: Resamples | None,
    seen: Mapping[str, tuple[float, float]],
) -> Values:
    """One fitted model; its `variance` is the sum over factors and confounds."""
    points = model.loadings_.join(model.confound_loadings_)
    span = _spans(model)
    shares = points.div(span, axis=0)
    ends: list[Any] = [np.full(points.shape, None)] * 2
    stability = None
    if resamples is not None:
        bound = span if model.loading_max == "item_range" else None
        ends = [end.T.astype(object) for end in resamples.interval(points.to_numpy().T, bound)]
        near = (points.columns == INTERCEPT) & (shares < NEAR_BOUND).to_numpy()
        for end in ends:  # resamples of an intercept at its bound do not vary as samples do
            end[near] = None
        stability = resamples.factors([top_places(shares[key]) for key in model.loadings_], span)
    places = [str(name) for name in points.columns]
    columns = {}
    for at, key in enumerate(places):
        table = pd.DataFrame({"value": points[key], "share": shares[key]})
        table["low"], table["high"] = (end[:, at] for end in ends)
        columns[key] = words.records(table.rename_axis("item").reset_index())
    tops = {key: tuple(columns[key][j] for j in top_places(shares[key])) for key in places}
    k, summary = len(names), model.summary()
    suggestions = suggested_names(shares.iloc[:, :k], items)
    about = themes(shares.iloc[:, :k], [item.subscale for item in items])
    n_resamples = 0 if resamples is None else len(resamples.loadings)
    sentences = confound_sentences(model.confound_encoder_.columns, model.confound_names_, seen)
    return Values(
        n_components=k,
        beta=float(model.beta),
        variance=float(summary.variance_explained),
        converged=bool(model.converged_),
        n_iter=int(model.n_iter_),
        factors=tuple(
            Values(
                key=key,
                name=name,
                suggested=suggestions[r],
                theme=about[r].words,
                variance=float(summary.factors["variance_explained"].iloc[r]),
                n_items=int(summary.factors["n_items"].iloc[r]),
                loadings=columns[places[r]],
                top=tops[places[r]],
                stability=None if stability is None else _stability(stability.iloc[r], n_resamples),
                replication=None if model.replication_ is None else _replication(model.replication_.iloc[r]),
            )
            for r, (name, key) in enumerate(zip(names, default_names(k), strict=True))
        ),
        confounds=tuple(
            Values(name=key, words=text, variance=variance, loadings=columns[key], top=tops[key])
            for key, text, variance in zip(
                places[k:], sentences, summary.confounds["variance_explained"].tolist(), strict=True
            )
        ),
    )


def _stability(row: pd.Series, n_resamples: int) -> Values:
    """Agreement of a factor's loadings over resamples, its fifth percentile, and how many top items stay."""
    agreement, n_top, kept = float(row["agreement"]), int(row["n_top"]), float(row["top_kept"])
    sentence = words.stability_words(agreement, kept, n_top, n_resamples)
    return Values(agreement=agreement, low=float(row["low"]), n_top=n_top, top_kept=kept, words=sentence)


def _replication(row: pd.Series) -> Values:
    """How likely another study like this one, fitted with as many factors, finds a factor."""
    probability, fragile = float(row["probability"]), bool(row["fragile"])
    sentence = replication_in_words(probability, float(row["largest"]))
    return Values(
        **{key: float(row[key]) for key in ("halves", "low", "high")},
        probability=probability,
        fragile=fragile,
        words=f"{'Fragile: it' if fragile else 'It'} {sentence}.",
    )


def confound_sentences(
    columns: Sequence[Any], names: Sequence[str], seen: Mapping[str, tuple[float, float]]
) -> list[str]:
    """The meaning of each confound's loadings; `columns` are those of a fitted `ConfoundEncoder`.

    The ends of a column are rounded outward; `seen` are the lowest and highest value in the sample.
    """
    sentences = []
    for column in columns:
        if column.categories is not None:
            sentences += [
                f"Points added to the answers of participants with {column.name} = {category}, whatever "
                "their scores."
                for category in column.categories
            ]
        else:
            ends = seen.get(column.name, (column.low, column.high))
            within = f"; in this sample, {column.name} is {ends[0]:g} to {ends[1]:g}"
            note = "" if ends == (column.low, column.high) else within
            sentences += [
                f"Points added to the answers at {column.name} {end:g}, falling linearly to 0 at {other:g}"
                f"{note}."
                for end, other in ((column.high, column.low), (column.low, column.high))
            ]
    if names and names[-1] == INTERCEPT and len(sentences) < len(names):
        sentences.append("Points above the lowest answer, added for everyone.")
    return sentences


def _bootstrap_words(n: int, *, grouped: bool) -> str:
    if n == 0:
        return "The sample was not resampled, so there are no intervals and no estimates of stability."
    who = "groups of participants (families or sites)" if grouped else "participants"
    return (
        f"95% intervals are ±1.96 standard errors, estimated from {n} bootstrap resamples of {who}. Each "
        "resample is fitted from the model's own factors: the intervals show how these factors vary with the "
        "sample, not whether another start would find other factors."
    )
