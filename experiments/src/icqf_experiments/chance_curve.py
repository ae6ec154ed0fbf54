"""The replication probability by halves alone, learned from other studies: what rules are judged with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import minimize

from icqf.resampling.replication import FOUND, fisher_z, stepped_up
from icqf_experiments.fit_parts import FittedPart, found_again
from icqf_experiments.split_studies import study_of

Array = NDArray[Any]


@dataclass(frozen=True)
class ChanceCurve:
    """Replication probability by the mean agreement of halves: logistic in Fisher's z, stepped up."""

    intercept: float
    slope: float

    def __call__(self, halves: Any) -> Array:
        """The probability of factors with this mean agreement of halves."""
        return np.asarray(1 / (1 + np.exp(-(self.intercept + self.slope * fisher_z(stepped_up(halves))))))


CALIBRATED = ChanceCurve(-3.2, 3.2)  # about what `icqf reproduce calibration` learns from halves alone


def pairs_of(parts: Sequence[FittedPart]) -> pd.DataFrame:
    """Compare every factor of every part with every other part of its study, fitted with as many factors.

    Returns
    -------
    DataFrame
        ``study``, ``n``, ``m``, ``k``, ``halves`` (mean agreement) and ``found`` (whether the other part has
        the factor).
    """
    rows = []
    for ground in dict.fromkeys(part.ground for part in parts):
        mine = [part for part in parts if part.ground == ground]
        for a, b in permutations(mine, 2):
            most = min(len(a.halves), len(b.loadings))
            for k in range(1, most + 1):
                halves = a.halves[k - 1].mean(axis=0)
                again = found_again(a.loadings[k - 1], b.loadings[k - 1]) >= FOUND
                common = {"study": study_of(ground), "n": a.n, "m": a.m, "k": k}
                rows += [{**common, "halves": halves[r], "found": float(again[r])} for r in range(k)]
    return pd.DataFrame(rows)


def fit_curve(pairs: pd.DataFrame) -> ChanceCurve:
    """Learn the curve; every comparison counts alike."""
    x, found = fisher_z(stepped_up(pairs["halves"])), pairs["found"].to_numpy()

    def loss(parameters: Any) -> float:
        t = parameters[0] + parameters[1] * x
        return float((np.logaddexp(0, t) - found * t).sum() + 1e-3 * parameters[1] ** 2)

    intercept, slope = minimize(loss, x0=np.array([-2.0, 5.0])).x
    return ChanceCurve(float(intercept), float(slope))


def curves_of_others(parts: Sequence[FittedPart]) -> dict[str, ChanceCurve]:
    """For each study, the curve learned from all others; for a single one, that of the calibration page."""
    pairs = pairs_of(parts)
    studies = list(dict.fromkeys(study_of(part.ground) for part in parts))
    if len(studies) == 1:
        return {studies[0]: CALIBRATED}
    return {study: fit_curve(pairs[pairs["study"] != study]) for study in studies}
