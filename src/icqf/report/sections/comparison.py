"""The same answers by factor analysis."""

from __future__ import annotations

from collections.abc import Mapping

from icqf.analyses.factor_properties import Counterparts
from icqf.report import words
from icqf.report.blocks import Block, Cell, Column, Grid, Group
from icqf.report.section import report_section
from icqf.report.svg import strength
from icqf.report.words import Report, Values

CLOSE = 0.8  # correlation of loadings from which two factors are counterparts
_METHOD = "exploratory factor analysis (minimum residual, promax rotation)"


@report_section("comparison", "Comparison with factor analysis", title="Factor analysis")
def comparison(report: Report) -> list[Block] | None:
    """Every factor beside its counterpart."""
    found = report.comparison
    if found is None:
        return None
    if not found.pairs:
        return list(found.words)
    rows = [[pair.factor, pair.other, words.number(pair.correlation)] for pair in found.pairs]
    head = ["Factor", "Factor analysis", "Correlation of loadings"]
    pairs = Grid("Factors and their counterparts", head, rows, scroll=False)
    names = [factor.name for factor in report.model.factors]
    every = Grid(
        "Correlations of loadings, every pair",
        ["", *(Column(f"FA {at}", kind="up", numeric=True) for at, _ in enumerate(found.matrix[0], 1))],
        [
            [name, *(Cell(words.number(value), kind=strength(value)) for value in row)]
            for name, row in zip(names, found.matrix, strict=True)
        ],
        kind="matrix",
        label="Correlations of loadings with factor analysis",
    )
    return [*found.words, Group([pairs, every])]


def comparison_values(
    found: Counterparts | str | None, names: Mapping[str, str], *, r_squared: float
) -> Values | None:
    """What factor analysis finds, or why it could not be run; `names` are the shown names of the factors."""
    if found is None:
        return None
    empty = dict.fromkeys(("r_squared", "r_squared_here", "negative", "small", "small_here"))
    values = Values(
        method=_METHOD, n_components=len(names), failed="", pairs=(), matrix=(), **empty, words=()
    )
    if isinstance(found, str):
        values.failed = found
        return values
    values.pairs = tuple(
        Values(factor=names[str(a)], other=str(b), correlation=float(value))
        for a, b, value in found.pairs[["factor_a", "factor_b", "pearson"]].itertuples(index=False)
    )
    values.matrix = tuple(tuple(float(value) for value in row) for row in found.similarities.to_numpy())
    values.r_squared, values.r_squared_here = found.r_squared, r_squared
    values.negative, values.small, values.small_here = found.negative, found.small, found.small_here
    return values


def apart(found: Values) -> list[str]:
    """Names of the factors without a close counterpart."""
    return [pair.factor for pair in found.pairs if pair.correlation < CLOSE]


def comparison_words(found: Values) -> list[str]:
    """How many factors have a counterpart, and how the two models differ."""
    if found.failed:
        return [f"Factor analysis of the same answers could not be run: {found.failed}"]
    k, without = found.n_components, apart(found)
    if not without:
        extent = "the factor." if k == 1 else f"all {k} factors."
    elif k == 1:
        extent = "none."
    else:
        extent = f"{k - len(without)} of the {k} factors, but not for {words.joined(without)}."
    here = words.percent(found.r_squared_here)
    return [
        "With the same number of factors, factor analysis finds a close counterpart (correlation of loadings "
        f"{CLOSE} or more) for {extent}",
        f"Its squared error is {words.percent(found.r_squared)} smaller than that of the items' means "
        f"in this sample (R²); that of this model is {here} smaller, with confounds and within all bounds.",
        f"{words.percent(found.negative)} of its loadings are negative; this model has no negative "
        "loadings, so that a factor only ever adds to answers. "
        f"{words.percent(found.small_here)} of this model's loadings are close to zero (below a tenth "
        f"of the factor's largest), against {words.percent(found.small)} there.",
    ]
