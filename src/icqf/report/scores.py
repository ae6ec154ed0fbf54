"""The section on the participants' scores, never one by one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from icqf.evaluation.factors import ScoreTables
from icqf.report.schema import Bin, FactorScores, Scores


def scores_section(tables: ScoreTables, names: Sequence[str], *, top: float = 1.0, limit: int = 0) -> Scores:
    """How scores are distributed, how many factors participants have, and how scores correlate.

    Numbers of participants below `limit` are not shown.
    """
    factors = tuple(
        FactorScores(
            name=name,
            **{str(measure): float(value) for measure, value in row.items()},
            histogram=pooled(tables.histograms[key].to_numpy(), limit),
        )
        for name, (key, row) in zip(names, tables.factors.iterrows(), strict=True)
    )
    bins = tuple(
        Bin.of(number, n, tables.n_scored, limit=limit)
        for number, n in tables.n_present[["factors", "n"]].itertuples(index=False)
    )
    correlations, counts = tables.correlations.to_numpy(dtype=float), tables.n_present
    median = counts.loc[counts["n"].cumsum() * 2 >= tables.n_scored, "factors"].iloc[0]
    return Scores(
        threshold=tables.threshold,
        top=top,
        n_scored=tables.n_scored,
        factors=factors,
        n_present=bins,
        median_present=int(median),
        several=float(tables.n_present["share"].iloc[2:].sum()),
        correlations=tuple(tuple(float(value) for value in row) for row in correlations),
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
