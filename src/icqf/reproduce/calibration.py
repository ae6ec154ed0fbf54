"""Learn how agreement over resamples foretells replication, and see how far the chance is off elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize

from icqf.chance import FOUND
from icqf.plotting.style import axes_or_new
from icqf.report.markdown import markdown_table
from icqf.reproduce.collect_parts import BEYOND, FittedPart, found_again
from icqf.reproduce.design import Design
from icqf.reproduce.grounds import study_of
from icqf.reproduce.pages import made_by, prose, write_page

BINS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True)
class ChanceCurve:
    """Chance of replication by the share of resamples that find a factor: a logistic curve."""

    intercept: float
    slope: float

    def __call__(self, share: Any) -> Any:
        return 1 / (1 + np.exp(-(self.intercept + self.slope * np.asarray(share, dtype=float))))


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


def learned(pairs: pd.DataFrame) -> ChanceCurve:
    """Learn the curve; every study counts alike, however many factors it has."""
    share, found = pairs["share"].to_numpy(), pairs["found"].to_numpy()
    weight = 1 / pairs.groupby("study")["found"].transform("size").to_numpy()

    def loss(parameters: Any) -> float:
        chance = np.clip(ChanceCurve(*parameters)(share), 1e-9, 1 - 1e-9)
        return float(-(weight * (found * np.log(chance) + (1 - found) * np.log(1 - chance))).sum())

    intercept, slope = minimize(loss, x0=np.array([-2.0, 5.0])).x
    return ChanceCurve(float(intercept), float(slope))


def foretold(pairs: pd.DataFrame) -> pd.DataFrame:
    """Add ``chance``: what a curve learned from all other studies says."""
    chance = np.zeros(len(pairs))
    for study in pairs["study"].unique():
        out = (pairs["study"] == study).to_numpy()
        chance[out] = learned(pairs[~out])(pairs.loc[out, "share"])
    return pairs.assign(chance=chance)


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
    table, curve = foretold(pairs), learned(pairs)
    bins, (error, naive) = reliability(table), brier(table)
    table.to_csv(design.out / "replication-chance.csv", index=False, float_format="%.6g")
    _figure(table, curve, design.out / "replication-chance.png")
    rows = [
        [str(row["bin"]), str(row["factors"]), f"{row['promised']:.2f}", f"{row['found']:.2f}"]
        for row in bins.to_dict("records")
    ]
    by = [_by(table, name, edges, title) for name, edges, title in SPLITS]
    page = design.out / "replication-chance.md"
    write_page(
        page,
        [
            "# The chance that a second study finds a factor again",
            made_by(design, _setting(pairs)),
            f"**The curve.** chance = 1 / (1 + exp(−({curve.intercept:.2f} + {curve.slope:.2f} share))), "
            "share being that of resamples in which the factor's counterpart has a correlation of at least "
            f"{FOUND:g}. These numbers stand in `icqf/chance.py`.",
            "![What is promised and what is found](replication-chance.png)",
            "## On studies that were left out",
            f"Each study's chances come from a curve learned from all others. Largest difference between "
            f"promised and found in a bin: {bins['difference'].abs().max():.2f}. Brier score {error:.3f}; "
            f"always saying the mean gives {naive:.3f}.",
            markdown_table(["promised chance", "factors", "promised (mean)", "found again"], rows),
            "## How it depends on participants, items and factors",
            *by,
            "All factors: [replication-chance.csv](replication-chance.csv).",
        ],
    )
    return page


SPLITS = (
    ("n", (0, 400, 800, np.inf), "participants in a part"),
    ("m", (0, 25, 60, np.inf), "items"),
    ("k", (0, 2, 5, np.inf), "factors fitted"),
    ("study", None, "study"),
)


def _by(table: pd.DataFrame, name: str, edges: tuple[float, ...] | None, title: str) -> str:
    groups = table[name] if edges is None else pd.cut(table[name], list(edges))
    grouped = table.groupby(groups, observed=True)
    lines = [
        [
            str(key),
            str(len(part)),
            f"{part['chance'].mean():.2f}",
            f"{part['found'].mean():.2f}",
            f"{own:.3f}",
        ]
        for key, part in grouped
        for own in (brier(part)[0],)
    ]
    return markdown_table([title, "factors", "promised", "found again", "Brier score"], lines)


def _setting(pairs: pd.DataFrame) -> str:
    return prose(
        f"""{pairs["study"].nunique()} studies were cut into
        independent parts. Every part was fitted with each number of factors up to {BEYOND} above the one that
        predicts hidden answers best, and its factors were compared with those of every other part of its
        study, fitted with as many factors: {len(pairs)} comparisons, each study counting alike."""
    )


def _figure(table: pd.DataFrame, curve: ChanceCurve, path: Path) -> None:
    ax: Any = axes_or_new(None, size=(5.2, 3.8))
    grid = np.linspace(0, 1, 101)
    ax.plot(grid, curve(grid), color="0.2")
    bins = table.groupby(
        pd.cut(table["share"], np.linspace(0, 1, 11).tolist(), include_lowest=True), observed=True
    )
    ax.scatter(bins["share"].mean(), bins["found"].mean(), s=12 + bins.size() ** 0.5, color="C0", zorder=3)
    ax.set_xlabel("share of resamples that find the factor")
    ax.set_ylabel("found in an independent sample")
    ax.set_ylim(-0.02, 1.02)
    ax.figure.savefig(path, dpi=150)
