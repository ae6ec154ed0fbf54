"""The participants' scores in aggregate, never individually."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from icqf.analyses import describe_scores
from icqf.analyses.factor_properties import GeneralFactor
from icqf.models.score_intervals import score_table
from icqf.report import words
from icqf.report.analysis import Analysis
from icqf.report.blocks import Block, Cell, Column, Details, Grid, Group, Histogram
from icqf.report.sections import report_section
from icqf.report.sections.sample import counts_grid
from icqf.report.svg import strength
from icqf.report.words import Report, Values, bar_of


@report_section("scores", "Scores")
def scores(report: Report) -> list[Block]:
    """How scores are distributed, how many factors participants have, and how scores correlate."""
    values = report.scores
    rows = [
        [
            factor.name,
            Cell(drawing=Histogram(factor.histogram)),
            *(words.number(value) for value in (factor.mean, factor.median, factor.sd)),
            *(words.percent(value) for value in (factor.none, factor.present, factor.high)),
            *([] if factor.reliability is None else [words.number(factor.reliability)]),
        ]
        for factor in values.factors
    ]
    spread = Grid(
        f"Distribution of the scores of {words.whole(values.n_scored)} participants",
        [
            *("Factor", Column("Scores above 0", drawn=True), "Mean", "Median", "SD", "At 0"),
            *(f"{values.threshold:g} or more", f"{values.top / 2:g} or more"),
            *(["Reliability"] if values.factors[0].reliability is not None else []),
        ],
        rows,
        kind="spread",
        label="Distribution of scores",
    )
    many = f"Number of factors per participant (score {values.threshold:g} or more)"
    tables = [counts_grid(many, "Factors", values.n_present)]
    if len(values.factors) > 1:
        tables.append(_correlations(values))
    return [*values.words, spread, Group(tables)]


def _correlations(values: Values) -> Grid:
    names = [factor.name for factor in values.factors]
    rows = [
        [
            name,
            *(Cell(words.number(value), kind=strength(value)) for value in values.correlations[i][:i]),
            Cell("1", kind=strength(values.correlations[i][i])),
            *[""] * (len(names) - i - 1),
        ]
        for i, name in enumerate(names)
    ]
    return Grid(
        "Correlations between scores (not factor correlations)",
        ["", *(Column(name, kind="up", numeric=True) for name in names)],
        rows,
        kind="matrix",
        label="Correlations between scores",
    )


def score_values(analysis: Analysis, names: Sequence[str]) -> Values:
    """The scores of a sample; numbers of participants below the model's limit are not shown."""
    top, limit = analysis.model.score_max or 1.0, analysis.model.smallest_category
    tables = describe_scores(analysis.scores, top=top)
    counts = tables.n_present
    median = counts.loc[counts["n"].cumsum() * 2 >= tables.n_scored, "factors"].iloc[0]
    model = analysis.model
    known = model.score_distribution_ is not None
    reliability = score_table(model).information[:, -1].tolist() if known else [None] * len(names)
    return Values(
        threshold=tables.threshold,
        top=top,
        n_scored=tables.n_scored,
        factors=tuple(
            Values(
                name=name,
                **{str(measure): float(value) for measure, value in row.items()},
                histogram=pooled(tables.histograms[key].to_numpy(), limit),
                reliability=reliable,
            )
            for name, (key, row), reliable in zip(names, tables.factors.iterrows(), reliability, strict=True)
        ),
        n_present=tuple(
            bar_of(number, n, tables.n_scored, limit=limit)
            for number, n in counts[["factors", "n"]].itertuples(index=False)
        ),
        median_present=int(median),
        several=float(counts["share"].iloc[2:].sum()),
        correlations=tuple(map(tuple, tables.correlations.to_numpy(dtype=float).tolist())),
        words=(),
    )


def pooled(counts: np.ndarray, limit: int) -> tuple[float, ...]:
    """Average neighbouring bars until each group holds `limit` participants; empty bars if all hold fewer.

    Examples
    --------
    >>> pooled(np.array([0, 25, 3, 1, 2, 30]), 20)
    (12.5, 12.5, 9.0, 9.0, 9.0, 9.0)
    """
    if limit <= 1:
        return tuple(float(n) for n in counts)
    ends, total = [0], 0
    for at, n in enumerate(counts, start=1):
        total += int(n)
        if total >= limit:
            ends, total = [*ends, at], 0
    if len(ends) == 1:
        return (0.0,) * len(counts)
    ends[-1] = len(counts)  # what is left over goes with the last
    bars = [np.full(stop - start, counts[start:stop].mean()) for start, stop in pairwise(ends)]
    return tuple(float(n) for n in np.concatenate(bars))


def score_words(values: Values) -> list[str]:
    """What scores mean, which factors are common and rare, and how scores correlate."""
    sentences = [
        f"Scores range from 0 to {values.top:g}. At a score of {values.top:g}, the factor's loadings are "
        "added in full to the expected answers."
    ]
    k = len(values.factors)
    known = [factor.reliability for factor in values.factors if factor.reliability is not None]
    if known:
        least, most = words.number(min(known)), words.number(max(known))
        spread = least if least == most else f"{least} to {most}"
        sentences.append(
            f"The reliability of the scores of complete answers is {spread}: the share of their variance "
            "that is not error. `icqf score` gives each score an interval."
        )
    if k == 1:
        return sentences
    common = max(values.factors, key=lambda factor: factor.present)
    rare = min(values.factors, key=lambda factor: factor.present)
    sentences.append(
        f"The median participant has {words.spelled(values.median_present)} of the {words.spelled(k)} "
        f"factors (a score of {values.threshold:g} or more). The most common factor is {common.name}, with "
        f"{words.percent(common.present)} of the participants, the rarest {rare.name}, with "
        f"{words.percent(rare.present)}."
    )
    off = np.array(values.correlations, dtype=float)[~np.eye(k, dtype=bool)]
    if np.isfinite(off).any():
        sentences.append(
            f"Correlations between the factors' scores range from {words.number(float(np.nanmin(off)))} to "
            f"{words.number(float(np.nanmax(off)))}. They describe the scores in this sample; they are not "
            "the factor correlations of a factor analysis."
        )
    return sentences


_MEANING = (
    "None of this shows that a general factor (“p”) causes the answers. Scores cannot be negative. Where "
    "many are 0, participants without problems score 0 on every factor and those with many on several, "
    "which is enough to make scores correlate. Habits of answering, such as agreeing with everything, do the "
    "same. The factors of this model are free to correlate, and it needs no general factor to describe them."
)


@report_section("general", "A general factor", title="General factor")
def general(report: Report) -> list[Block] | None:
    """Correlations of scores, one factor instead of several, and ω hierarchical."""
    values = report.general
    if values is None:
        return None
    if not values.factors:
        return list(values.words)
    rows = [
        [factor.name, words.number(row.with_others), words.number(row.with_one)]
        for factor, row in zip(report.model.factors, values.factors, strict=True)
    ]
    head = ["Factor", "Correlation with the other scores (mean)", "Correlation with the score of one factor"]
    caption = "Correlation of each score with the others, and with that of a model with one factor"
    grid = Grid(caption, head, rows, label="General factor", scroll=False)
    return [*values.words, _MEANING, Details("Each score and the others", [grid])]


def general_values(analysis: Analysis) -> Values | None:
    """The general factor in numbers and sentences; None where it was not computed."""
    found = analysis.general
    if found is None:
        return None
    if isinstance(found, str):
        return Values(words=(found,), factors=())
    hierarchy, more = found.hierarchy, {}
    if hierarchy is not None:
        more = {name: getattr(hierarchy, name) for name in ("omega_hierarchical", "omega_total", "common")}
    return Values(
        words=tuple(_sentences(found)),
        factors=words.records(found.factors[["with_others", "with_one"]]),
        mean=found.mean,
        variance=found.variance,
        variance_one=found.variance_one,
        **more,
    )


def _sentences(found: GeneralFactor) -> list[str]:
    k = len(found.factors)
    spread = f" on average ({words.number(found.low)} to {words.number(found.high)})" if k > 2 else ""
    share = found.variance_one / found.variance if found.variance > 0 else math.nan
    one = (
        f"A model with one factor and the same penalties explains {words.percent(found.variance_one)} of the "
        f"variance, {words.percent(share)} of what the {words.spelled(k)} factors explain "
        f"({words.percent(found.variance)})."
    )
    if math.isfinite(found.error_one) and math.isfinite(found.error):
        more = found.error_one / found.error - 1
        than = f"{words.percent(abs(more), 1)} {'larger' if more > 0 else 'smaller'}"
        one += f" Its cross-validated error is {than} than that of {words.spelled(k)} factors."
    sentences = [f"Scores of different factors correlate {words.number(found.mean)}{spread}.", one]
    if found.hierarchy is None:
        sentences.append(f"ω hierarchical is not defined here. {found.reason}")
        return sentences
    hierarchy = found.hierarchy
    sentences.append(
        "In a factor analysis with as many factors (minimum residual, oblimin; Schmid-Leiman), a general "
        f"factor accounts for {words.percent(hierarchy.common)} of the variance that the factors explain. "
        f"ω hierarchical is {words.number(hierarchy.omega_hierarchical)}: that share of the variance of a "
        "total score is due to the general factor, and "
        f"{words.number(hierarchy.omega_total)} to all factors together (ω total). Both grow with the number "
        "of items, and describe a total score, not the scores of this model."
    )
    return sentences
