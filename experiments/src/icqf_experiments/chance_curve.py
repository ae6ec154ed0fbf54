"""Learn how agreement over resamples predicts replication, and see how far the chance is off elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import minimize

from icqf.plotting.style import axes_or_new
from icqf.report.blocks import Grid, Picture, Prose, Section, Span
from icqf.resampling.replication import CURVE, FOUND, HIGHEST, ChanceCurve, fisher_z
from icqf.workflow.evaluation import Design, linked, results_page, span_words
from icqf_experiments.collect_parts import Effort, FittedPart, found_again
from icqf_experiments.grounds import study_of

Array = NDArray[Any]
BINS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


# What the chance may be predicted from. All were tried; Fisher's z is what the package uses.
FEATURES: Mapping[str, Callable[[pd.DataFrame], Array]] = {
    "share of resamples that find the factor": lambda pairs: pairs["share"].to_numpy(),
    "mean agreement": lambda pairs: pairs["agreement"].to_numpy(),
    "Fisher's z of the mean agreement": lambda pairs: fisher_z(pairs["agreement"]),
}
USED = "Fisher's z of the mean agreement"


def pairs_of(parts: Sequence[FittedPart]) -> pd.DataFrame:
    """Every factor of every part beside every other part of its study, fitted with as many factors.

    Returns
    -------
    DataFrame
        ``study``, ``n``, ``m``, ``k``, ``agreement``, ``share`` (of resamples that find the factor) and
        ``found`` (whether the other part has it).
    """
    rows = []
    for ground in dict.fromkeys(part.ground for part in parts):
        mine = [part for part in parts if part.ground == ground]
        for a, b in permutations(mine, 2):
            most = min(len(a.agreement), len(b.loadings))
            for k in range(1, most + 1):
                values = a.agreement[k - 1]
                again = found_again(a.loadings[k - 1], b.loadings[k - 1]) >= FOUND
                rows += [
                    {
                        "study": study_of(ground),
                        "n": a.n,
                        "m": a.m,
                        "k": k,
                        "agreement": values[:, r].mean(),
                        "share": (values[:, r] >= FOUND).mean(),
                        "found": float(again[r]),
                    }
                    for r in range(k)
                ]
    return pd.DataFrame(rows)


def learned(pairs: pd.DataFrame, feature: str = USED, *, by_study: bool = False) -> tuple[float, float]:
    """Learn intercept and slope; every comparison counts alike, or `by_study`, every study."""
    x, found = FEATURES[feature](pairs), pairs["found"].to_numpy()
    sizes = pairs.groupby("study")["found"].transform("size").to_numpy()
    weight = 1 / sizes if by_study else np.ones(len(pairs))

    def loss(parameters: Any) -> float:
        chance = np.clip(_logistic(parameters[0] + parameters[1] * x), 1e-9, 1 - 1e-9)
        return float(-(weight * (found * np.log(chance) + (1 - found) * np.log(1 - chance))).sum())

    intercept, slope = minimize(loss, x0=np.array([-2.0, 5.0])).x
    return float(intercept), float(slope)


def predicted(pairs: pd.DataFrame, feature: str = USED, *, by_study: bool = False) -> pd.DataFrame:
    """Add ``chance``: what a curve learned from all other studies says."""
    chance, x = np.zeros(len(pairs)), FEATURES[feature](pairs)
    for study in pairs["study"].unique():
        out = (pairs["study"] == study).to_numpy()
        intercept, slope = learned(pairs[~out], feature, by_study=by_study)
        chance[out] = _logistic(intercept + slope * x[out])
    return pairs.assign(chance=chance)


def curves_of_others(parts: Sequence[FittedPart]) -> dict[str, ChanceCurve]:
    """For each study, the curve learned from all others."""
    pairs = pairs_of(parts)
    studies = list(dict.fromkeys(study_of(part.ground) for part in parts))
    if len(studies) == 1:
        return {studies[0]: CURVE}
    return {study: ChanceCurve(*learned(pairs[pairs["study"] != study])) for study in studies}


def _logistic(x: Any) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def reliability(table: pd.DataFrame) -> pd.DataFrame:
    """Compare what is promised with what is found, in five bins of the promised chance."""
    bins = pd.cut(table["chance"], list(BINS), include_lowest=True)
    grouped = table.groupby(bins, observed=True)
    found = grouped.agg(factors=("found", "size"), promised=("chance", "mean"), found=("found", "mean"))
    return found.assign(difference=found["found"] - found["promised"]).reset_index(names="bin")


def brier(table: pd.DataFrame) -> tuple[float, float]:
    """Return the mean squared error of the chance, and of always saying the mean."""
    found = table["found"]
    return float(((table["chance"] - found) ** 2).mean()), float(((found.mean() - found) ** 2).mean())


def calibration_page(parts: Sequence[FittedPart], design: Design) -> Path:
    """Write the tables, the figure and the page ``replication-chance.md``."""
    pairs = pairs_of(parts)
    table, curve = predicted(pairs), ChanceCurve(*learned(pairs))
    table.to_csv(design.out / "replication-chance.csv", index=False, float_format="%.6g")
    by = [_by(table, name, edges, title) for name, edges, title in SPLITS]
    return results_page(
        design,
        "replication-chance",
        "The chance that a second study finds a factor again",
        _setting(pairs),
        [
            Section("The curve", _curve_parts(table, curve)),
            Section("On studies that were left out", _left_out(pairs, table)),
            Section(
                "How it depends on participants, items and factors",
                [*by, linked("All factors", "replication-chance.csv")],
            ),
        ],
    )


def _curve_parts(table: pd.DataFrame, curve: ChanceCurve) -> list[Any]:
    formula = (
        f"chance = 1 / (1 + exp({-curve.intercept:.2f} − {curve.slope:.2f} z)), z being Fisher's z of the "
        "factor's mean correlation with its counterparts in resamples. These numbers are those of "
    )
    return [
        Prose([formula, Span("replication_chance", "code"), "."]),
        Picture("replication-chance", _figure(table, curve), "What is promised and what is found"),
    ]


def _left_out(pairs: pd.DataFrame, table: pd.DataFrame) -> list[Any]:
    bins, (error, naive) = reliability(table), brier(table)
    rows = [
        [span_words(row["bin"]), str(row["factors"]), f"{row['promised']:.2f}", f"{row['found']:.2f}"]
        for row in bins.to_dict("records")
    ]
    return [
        f"Each study's chances come from a curve learned from all others. Largest difference between "
        f"promised and found in a bin: {bins['difference'].abs().max():.2f}. Brier score {error:.3f}; "
        f"always saying the mean gives {naive:.3f}.",
        Grid("Promised and found", ["promised chance", "factors", "promised (mean)", "found again"], rows),
        "What the chance is predicted from, and what counts alike when the curve is learned, was chosen "
        "among six by these same figures.",
        Grid(
            "All six",
            ["predicted from", "count alike", "largest difference", "Brier score"],
            _by_feature(pairs),
        ),
    ]


def _by_feature(pairs: pd.DataFrame) -> list[list[str]]:
    rows = []
    for feature, by_study in product(FEATURES, (False, True)):
        table = predicted(pairs, feature, by_study=by_study)
        largest = reliability(table)["difference"].abs().max()
        alike = "studies" if by_study else "comparisons"
        rows.append([feature, alike, f"{largest:.2f}", f"{brier(table)[0]:.3f}"])
    return rows


SPLITS = (
    ("n", (0, 400, 800, np.inf), "participants in a part"),
    ("m", (0, 25, 60, np.inf), "items"),
    ("k", (0, 2, 5, np.inf), "factors fitted"),
    ("study", None, "study"),
)


def _by(table: pd.DataFrame, name: str, edges: tuple[float, ...] | None, title: str) -> Grid:
    groups = table[name] if edges is None else pd.cut(table[name], list(edges))
    grouped = table.groupby(groups, observed=True)
    lines = [
        [
            str(key) if edges is None else span_words(key),
            str(len(part)),
            f"{part['chance'].mean():.2f}",
            f"{part['found'].mean():.2f}",
            f"{own:.3f}",
        ]
        for key, part in grouped
        for own in (brier(part)[0],)
    ]
    return Grid(f"By {title}", [title, "factors", "promised", "found again", "Brier score"], lines)


def _setting(pairs: pd.DataFrame) -> str:
    return f"""{pairs["study"].nunique()} studies were cut into independent parts. Every part was fitted with
    each number of factors up to {Effort.beyond} above the one that predicts hidden answers best, and its
    factors were compared with those of every other part of its study, fitted with as many factors:
    {len(pairs)} comparisons."""


def _figure(table: pd.DataFrame, curve: ChanceCurve) -> Any:
    ax: Any = axes_or_new(None, size=(5.2, 3.8))
    grid = np.linspace(0, HIGHEST, 101)
    ax.plot(grid, curve(grid), color="0.2")
    edges = [-1, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1]
    bins = table.groupby(pd.cut(table["agreement"], edges), observed=True)
    ax.scatter(
        bins["agreement"].mean(), bins["found"].mean(), s=12 + bins.size() ** 0.5, color="C0", zorder=3
    )
    ax.set_xlabel("mean agreement over resamples")
    ax.set_ylabel("found in an independent sample")
    ax.set_ylim(-0.02, 1.02)
    return ax.figure
