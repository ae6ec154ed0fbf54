"""Comparison with a factor analysis of the same answers."""

from __future__ import annotations

from collections.abc import Mapping

from icqf.analyses.factor_properties import Counterparts
from icqf.report import words
from icqf.report.blocks import Block, Cell, Column, Grid, Group
from icqf.report.section import report_section
from icqf.report.svg import strength
from icqf.report.words import Report, Values

_PAIR = ("factor_a", "factor_b", "pearson")
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
    found = {str(a): (b, value) for a, b, value in zip(*(rival.pairs[name] for name in _PAIR), strict=True)}
    values.pairs = tuple(
        Values(factor=name, other=str(found[key][0]), correlation=float(found[key][1]))
        for key, name in names.items()  # in the order of the factors, as everywhere
        if key in found
    )
    values.matrix = tuple(tuple(float(value) for value in row) for row in rival.similarities.to_numpy())
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
