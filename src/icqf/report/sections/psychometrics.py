"""Reliability and item statistics."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from icqf.analyses.factor_properties import Counterparts, Psychometry
from icqf.data.confounds import INTERCEPT
from icqf.errors import shown_p
from icqf.models.summary import Summary, default_names
from icqf.plotting.style import item_label
from icqf.report import words
from icqf.report.analysis import Analysis
from icqf.report.blocks import Block, Cell, Column, Details, Grid, Group
from icqf.report.sections import report_section
from icqf.report.sections.sample import item_cell
from icqf.report.svg import strength
from icqf.report.words import Report, Values

_ENDS = ("alpha", "alpha_low", "alpha_high", "omega", "omega_low", "omega_high")


@report_section("psychometrics", "Reliability and item statistics", title="Reliability")
def psychometrics(report: Report) -> list[Block] | None:
    """α and ω, variance by source, item statistics, and correlated residuals."""
    values = report.psychometrics
    if values is None:
        return None
    tables = [*([_scales(values)] if values.scales else []), _shares(values)]
    parts: list[Block] = [*values.words, Group(tables), _items(report)]
    if values.residuals:
        parts.append(_residuals(report))
    return parts


def _scales(values: Values) -> Grid:
    rows = [
        [
            row.name,
            str(row.n_items),
            words.number(row.alpha),
            words.interval(row.alpha_low, row.alpha_high),
            words.number(row.omega),
            words.interval(row.omega_low, row.omega_high),
        ]
        for row in values.scales
    ]
    also = " and subscale" if any(not row.key for row in values.scales) else ""
    caption = f"Reliability of the items of each factor{also}"
    head = ["Items of", "Items", "α", "95% interval", "ω", "95% interval"]
    return Grid(caption, head, rows, kind="reliability", label="Reliability")


def _shares(values: Values) -> Grid:
    rows = [
        [row.name, words.percent(row.share, 1), words.percent(row.cumulative, 1)] for row in values.variance
    ]
    caption = "Variance of the answers by source"
    return Grid(caption, ["Source", "Share", "Cumulative"], rows, label="Shares of the variance")


def _items(report: Report) -> Details:
    rows = [
        [
            item_cell(item),
            *(words.number(value) for value in (row.skew, row.kurtosis, row.item_rest, row.kmo)),
            item.strongest,
            *(words.number(value) for value in (row.loading, row.fa_loading)),
            *(words.number(value) for value in (row.communality, row.fa_communality, row.uniqueness)),
        ]
        for row, item in zip(report.psychometrics.items, report.items, strict=True)
    ]
    caption = (
        "KMO is the item's sampling adequacy: how far what it shares with one item is shared with the rest. "
        "Loadings are standardised: the change in the item, in standard deviations, for a score one standard "
        "deviation higher. Communality is the share of the item's variance that the model explains, "
        "uniqueness the rest. FA columns refer to the factor's counterpart in the factor analysis."
    )
    head = [
        *("Item", "Skew", "Kurtosis", "Item-rest", "KMO", Column("Strongest factor", numeric=False)),
        *("Loading", "FA loading", "Communality", "FA communality", "Uniqueness"),
    ]
    return Details(
        "All items: skew, kurtosis, item-rest correlation, KMO, standardised loadings, communality, and "
        "factor analysis",
        [Grid(caption, head, rows, kind="sortable", label="Item statistics")],
    )


def _residuals(report: Report) -> Details:
    labels = {row.name: item_label(row.name, row.wording, row.reverse) for row in report.items}
    pairs = report.psychometrics.residuals
    rows = [[labels[pair.item], labels[pair.other], words.number(pair.correlation)] for pair in pairs]
    caption = (
        f"The {len(pairs)} largest correlations between residuals (observed minus expected answers); a large "
        "one means that two items share something beyond the factors, such as similar wording"
    )
    table = Grid(caption, ["Item", "Item", "Correlation"], rows, label="Largest residual correlations")
    return Details("Pairs of items with correlated residuals", [table])


def psychometric_values(analysis: Analysis, summary: Summary, names: list[str]) -> Values | None:
    """Reliability, adequacy, item statistics, variance and residuals; `names` are those of the factors."""
    measured, rival, keys = analysis.psychometry, analysis.rival, default_names(len(names))
    if measured is None:
        return None
    scales = tuple(
        Values(
            key="" if row["kind"] == "subscale" else keys[int(row["place"])],
            name=str(row["name"]) if row["kind"] == "subscale" else names[int(row["place"])],
            n_items=int(row["n_items"]),
            **{end: float(row[end]) for end in _ENDS},
        )
        for row in measured.scales.to_dict("records")
    )
    standardised = measured.standardised.to_numpy(dtype=float)
    strongest = np.nan_to_num(standardised).argmax(axis=1)
    every = np.arange(len(standardised))
    explained = summary.items["variance_explained"].to_numpy()
    fa_loading, fa_communality = None, None
    if isinstance(rival, Counterparts):
        fa_loading = rival.loadings.to_numpy(dtype=float)[every, strongest]
        fa_communality = rival.communalities.to_numpy()
    items = measured.items[["skew", "kurtosis", "item_rest", "kmo"]].rename_axis("name").reset_index()
    items = items.assign(
        name=items["name"].map(str),
        loading=standardised[every, strongest],
        communality=explained,
        uniqueness=1 - explained,
        fa_loading=fa_loading,
        fa_communality=fa_communality,
    )
    return Values(
        words=tuple(_words(measured)),
        kmo=measured.kmo.overall,
        bartlett=measured.bartlett.chi2,
        bartlett_dof=measured.bartlett.dof,
        bartlett_p=measured.bartlett.p_value,
        scales=scales,
        items=words.records(items),
        variance=_variance(summary, names, keys),
        residuals=words.records(measured.residuals),
    )


def _variance(summary: Summary, names: list[str], keys: list[str]) -> tuple[Values, ...]:
    """Shares of factors, confounds and the unexplained rest, which add up to 1."""
    parts = list(zip(keys, names, summary.factors["variance_explained"].tolist(), strict=True))
    confounds = summary.confounds.drop(index=INTERCEPT, errors="ignore")["variance_explained"]
    if len(confounds):
        parts.append(("", "Confounds", float(confounds.sum())))
    parts.append(("", "Unexplained", 1 - float(summary.variance_explained)))
    sums = np.cumsum([share for _, _, share in parts])
    return tuple(
        Values(key=key, name=name, share=float(share), cumulative=float(total))
        for (key, name, share), total in zip(parts, sums, strict=True)
    )


def _words(measured: Psychometry) -> list[str]:
    sentences = []
    if np.isfinite(measured.kmo.overall):
        enough = "enough variance for factors" if round(measured.kmo.overall, 2) >= 0.6 else "little variance"
        p = shown_p(measured.bartlett.p_value, equals="= ")
        sentences.append(
            f"The items share {enough}: the Kaiser-Meyer-Olkin measure is "
            f"{words.number(measured.kmo.overall)} (0.6 is the usual minimum), and Bartlett's test of "
            f"sphericity is {measured.bartlett.chi2:.1f} ({measured.bartlett.dof} degrees of freedom, p {p})."
        )
    else:
        sentences.append(
            "The correlations of the items are not positive definite, so the Kaiser-Meyer-Olkin measure and "
            "Bartlett's test cannot be computed."
        )
    sentences.append(
        "α and ω describe the sum of a scale's items, not the scores of this model. Intervals are Feldt's "
        "for α and bootstrap intervals for ω."
    )
    return sentences


CLOSE = 0.8  # correlation of loadings from which two factors are counterparts
_METHOD = "exploratory factor analysis (minimum residual, promax rotation)"


@report_section("comparison", "Comparison with factor analysis", title="Factor analysis")
def comparison(report: Report) -> list[Block] | None:
    """Every factor with its counterpart."""
    compared = report.comparison
    if compared is None:
        return None
    if not compared.pairs:
        return list(compared.words)
    rows = [[pair.factor, pair.other, words.number(pair.correlation)] for pair in compared.pairs]
    head = ["Factor", "Factor analysis", "Correlation of loadings"]
    pairs = Grid("Factors and their counterparts", head, rows, scroll=False)
    names = [factor.name for factor in report.model.factors]
    every = Grid(
        "Correlations of loadings, all pairs",
        ["", *(Column(f"FA {at}", kind="up", numeric=True) for at, _ in enumerate(compared.matrix[0], 1))],
        [
            [name, *(Cell(words.number(value), kind=strength(value)) for value in row)]
            for name, row in zip(names, compared.matrix, strict=True)
        ],
        kind="matrix",
        label="Correlations of loadings with factor analysis",
    )
    return [*compared.words, Group([pairs, every])]


def comparison_values(
    rival: Counterparts | str | None, names: Mapping[str, str], *, r_squared: float
) -> Values | None:
    """The result of factor analysis, or why it failed; `names` are the shown names of the factors."""
    if rival is None:
        return None
    empty = dict.fromkeys(("r_squared", "r_squared_here", "negative", "small", "small_here"))
    values = Values(
        method=_METHOD, n_components=len(names), failed="", pairs=(), matrix=(), **empty, words=()
    )
    if isinstance(rival, str):
        values.failed = rival
        return values
    found = {str(pair.factor_a): pair for pair in words.records(rival.pairs)}
    values.pairs = tuple(
        Values(factor=name, other=str(found[key].factor_b), correlation=found[key].pearson)
        for key, name in names.items()  # in the order of the factors, as everywhere
        if key in found
    )
    values.matrix = tuple(map(tuple, rival.similarities.to_numpy(dtype=float).tolist()))
    values.r_squared, values.r_squared_here = rival.r_squared, r_squared
    values.negative, values.small, values.small_here = rival.negative, rival.small, rival.small_here
    return values


def without_counterpart(compared: Values) -> list[str]:
    """Names of the factors without a close counterpart."""
    return [pair.factor for pair in compared.pairs if pair.correlation < CLOSE]


def comparison_words(compared: Values) -> list[str]:
    """How many factors have a counterpart, and how the two models differ."""
    if compared.failed:
        return [f"Factor analysis of the same answers could not be run: {compared.failed}"]
    k, without = compared.n_components, without_counterpart(compared)
    if not without:
        extent = "the factor." if k == 1 else f"all {k} factors."
    elif k == 1:
        extent = "none of the factors."
    else:
        extent = f"{k - len(without)} of the {k} factors, but not for {words.joined(without)}."
    return [
        "With the same number of factors, factor analysis finds a close counterpart (correlation of loadings "
        f"{CLOSE} or more) for {extent}",
        f"In this sample, R² is {words.percent(compared.r_squared)} for factor analysis and "
        f"{words.percent(compared.r_squared_here)} for this model, which includes confounds and keeps to its "
        "bounds.",
        f"{words.percent(compared.negative)} of the loadings of factor analysis are negative; this model has "
        "none, so that a factor only adds to answers. "
        f"{words.percent(compared.small_here)} of this model's loadings are close to zero (below a tenth "
        f"of the factor's largest), compared with {words.percent(compared.small)} in factor analysis.",
    ]
