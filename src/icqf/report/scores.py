"""The section on the participants' scores, never one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from icqf.evaluation.scores import ScoreTables
from icqf.report import words
from icqf.report.schema import Bin, FactorScores, Scores


def scores_section(tables: ScoreTables, names: Sequence[str], *, top: float = 1.0, limit: int = 0) -> Scores:
    """How scores are distributed, how many factors participants have, and how scores correlate.

    Numbers of participants below `limit` are not shown.
    """
    factors = tuple(
        FactorScores(
            name=name,
            **{str(measure): float(value) for measure, value in row.items()},
            histogram=tuple(int(n) for n in tables.histograms[key]),
        )
        for name, (key, row) in zip(names, tables.factors.iterrows(), strict=True)
    )
    bins = tuple(
        Bin.of(number, n, tables.n_scored, limit=limit)
        for number, n in tables.n_present[["factors", "n"]].itertuples(index=False)
    )
    correlations = tables.correlations.to_numpy(dtype=float)
    return Scores(
        words=tuple(_words(tables, factors, correlations, top)),
        threshold=tables.threshold,
        n_scored=tables.n_scored,
        factors=factors,
        n_present=bins,
        several=float(tables.n_present["share"].iloc[2:].sum()),
        correlations=tuple(tuple(float(value) for value in row) for row in correlations),
    )


def _words(
    tables: ScoreTables, factors: Sequence[FactorScores], correlations: np.ndarray, top: float
) -> list[str]:
    said = [
        f"A score runs from 0 (none of the factor) to {top:g} (all of it). For a participant with a score of "
        f"{top:g}, the factor's loadings are added in full to the expected answers."
    ]
    k = len(factors)
    if k == 1:
        return said
    counts = tables.n_present
    middle = int(counts.loc[counts["n"].cumsum() * 2 >= tables.n_scored, "factors"].iloc[0])
    common = max(factors, key=lambda factor: factor.present)
    rare = min(factors, key=lambda factor: factor.present)
    said.append(
        f"The median participant has {words.spelled(middle)} of the {words.spelled(k)} factors (a score of "
        f"{tables.threshold:g} or more). The most common is {common.name} "
        f"({words.percent(common.present)} of the participants), the rarest {rare.name} "
        f"({words.percent(rare.present)})."
    )
    off = correlations[~np.eye(k, dtype=bool)]
    if np.isfinite(off).any():
        said.append(
            f"Scores of different factors correlate between {words.number(float(np.nanmin(off)))} and "
            f"{words.number(float(np.nanmax(off)))}. These are correlations of the scores in this sample, "
            "not the factor correlations of a factor analysis."
        )
    return said
