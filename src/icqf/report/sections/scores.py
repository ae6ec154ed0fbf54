"""The participants' scores in aggregate, never individually."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from icqf.analyses import describe_scores
from icqf.models.score_intervals import score_table
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
