"""The participants' scores taken together, never one by one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from icqf.analyses import describe_scores
from icqf.report import words
from icqf.report.analysis import Analysis
from icqf.report.blocks import Block, Cell, Column, Grid, Group, Histogram
from icqf.report.section import report_section
from icqf.report.sections.sample import counts_grid
from icqf.report.svg import strength
from icqf.report.words import Report, Values, bar_of


@report_section("scores", "Scores")
def scores(report: Report) -> list[Block]:
    """How scores are distributed, how many factors participants have, and how scores correlate."""
    found = report.scores
    rows = [
        [
            factor.name,
            Cell(drawing=Histogram(factor.histogram)),
            *(words.number(value) for value in (factor.mean, factor.median, factor.sd)),
            *(words.percent(value) for value in (factor.none, factor.present, factor.high)),
        ]
        for factor in found.factors
    ]
    spread = Grid(
        f"Distribution of the scores of {words.whole(found.n_scored)} participants",
        [
            *("Factor", Column("Scores above 0", drawn=True), "Mean", "Median", "SD", "At 0"),
            *(f"{found.threshold:g} or more", "Half or more"),
        ],
        rows,
        kind="spread",
        label="Distribution of scores",
    )
    many = f"How many factors a participant has (score {found.threshold:g} or more)"
    tables = [counts_grid(many, "Factors", found.n_present)]
    if len(found.factors) > 1:
        tables.append(_correlations(found))
    return [*found.words, spread, Group(tables)]


def _correlations(found: Values) -> Grid:
    names = [factor.name for factor in found.factors]
    rows = [
        [
            name,
            *(Cell(words.number(value), kind=strength(value)) for value in found.correlations[i][:i]),
            Cell("1", kind=strength(found.correlations[i][i])),
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
    return Values(
        threshold=tables.threshold,
        top=top,
        n_scored=tables.n_scored,
        factors=tuple(
            Values(
                name=name,
                **{str(measure): float(value) for measure, value in row.items()},
                histogram=pooled(tables.histograms[key].to_numpy(), limit),
            )
            for name, (key, row) in zip(names, tables.factors.iterrows(), strict=True)
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
    """Bars that each stand for `limit` participants or more: neighbours that do not are evened out.

    Fewer participants than that in all give empty bars.

    Examples
    --------
    >>> pooled(np.array([0, 25, 3, 1, 2, 30]), 20)
    (12.5, 12.5, 9.0, 9.0, 9.0, 9.0)
    """
    if limit <= 1:
        return tuple(float(n) for n in counts)
    ends, held = [0], 0
    for at, n in enumerate(counts, start=1):
        held += int(n)
        if held >= limit:
            ends, held = [*ends, at], 0
    if len(ends) == 1:
        return (0.0,) * len(counts)
    ends[-1] = len(counts)  # what is left over goes with the last
    bars = [np.full(stop - start, counts[start:stop].mean()) for start, stop in pairwise(ends)]
    return tuple(float(n) for n in np.concatenate(bars))


def score_words(found: Values) -> list[str]:
    """What scores mean, which factors are common and rare, and how scores correlate."""
    said = [
        f"A score runs from 0 (none of the factor) to {found.top:g} (all of it). For a participant with a "
        f"score of {found.top:g}, the factor's loadings are added in full to the expected answers."
    ]
    k = len(found.factors)
    if k == 1:
        return said
    common = max(found.factors, key=lambda factor: factor.present)
    rare = min(found.factors, key=lambda factor: factor.present)
    said.append(
        f"The median participant has {words.spelled(found.median_present)} of the {words.spelled(k)} "
        f"factors (a score of {found.threshold:g} or more). The most common is {common.name} "
        f"({words.percent(common.present)} of the participants), the rarest {rare.name} "
        f"({words.percent(rare.present)})."
    )
    off = np.array(found.correlations, dtype=float)[~np.eye(k, dtype=bool)]
    if np.isfinite(off).any():
        said.append(
            f"Scores of different factors correlate between {words.number(float(np.nanmin(off)))} and "
            f"{words.number(float(np.nanmax(off)))}. These are correlations of the scores in this sample, "
            "not the factor correlations of a factor analysis."
        )
    return said
