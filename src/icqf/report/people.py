"""The participants' scores, never one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from icqf.report import words
from icqf.report.tree import Bin, FactorScores, People

PRESENT = 0.1
BINS = 40


def describe_people(scores: np.ndarray, names: Sequence[str], *, top: float = 1.0) -> People:
    """How scores (n, k) are spread, how many factors a person has, and how scores go together."""
    n, k = scores.shape
    has = scores >= PRESENT * top
    many = has.sum(axis=1)
    counts = np.bincount(many, minlength=k + 1)
    bins = tuple(Bin(str(at), int(number), float(number / n)) for at, number in enumerate(counts))
    edges = np.linspace(0, max(top, float(scores.max(initial=top))), BINS + 1)
    factors = tuple(
        FactorScores(
            name=name,
            mean=float(scores[:, r].mean()),
            median=float(np.median(scores[:, r])),
            sd=float(scores[:, r].std(ddof=1)) if n > 1 else 0.0,
            none=float((scores[:, r] <= 0).mean()),
            present=float(has[:, r].mean()),
            high=float((scores[:, r] >= 0.5 * top).mean()),
            histogram=tuple(int(at) for at in np.histogram(scores[scores[:, r] > 0, r], edges)[0]),
        )
        for r, name in enumerate(names)
    )
    correlations = pd.DataFrame(scores).corr().to_numpy()
    said = [
        f"A score runs from 0 (nothing of the factor) to {top:g} (all of it): a participant with a score of "
        f"{top:g} is expected to answer with the factor's loadings added."
    ]
    if k > 1:
        common = max(factors, key=lambda factor: factor.present)
        rare = min(factors, key=lambda factor: factor.present)
        said.append(
            f"The median participant has {words.spelled(int(np.median(many)))} of the {words.spelled(k)} "
            f"factors "
            f"(score {PRESENT * top:g} or more). Most common is {common.name} "
            f"({words.percent(common.present)} of the "
            f"participants), rarest {rare.name} ({words.percent(rare.present)})."
        )
        off = correlations[~np.eye(k, dtype=bool)]
        if np.isfinite(off).any():
            said.append(
                f"Scores of different factors correlate between {words.number(float(np.nanmin(off)))} and "
                f"{words.number(float(np.nanmax(off)))}. These are correlations of the scores in this "
                f"sample, not "
                "factor correlations of a factor analysis."
            )
    return People(
        words=tuple(said),
        threshold=PRESENT * top,
        n_scored=n,
        factors=factors,
        n_present=bins,
        correlations=tuple(tuple(float(value) for value in row) for row in correlations),
    )
