"""Rules that choose the number of factors: which of them chooses one that a second study confirms?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import minimize

from icqf.models.selection_rules import best_row, choose
from icqf.report.blocks import Block, Grid, Section
from icqf.resampling.replication import FOUND, fisher_z, stepped_up
from icqf.workflow.evaluation import Design, linked, results_page
from icqf_experiments.fit_parts import FittedPart, found_again
from icqf_experiments.split_studies import DEVELOPMENT, SplitStudy, study_of

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
    """Whether each factor of a part is found in each other part of its study, fitted with as many factors."""
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


# A number of factors from a part and the replication curve fitted to the other studies.
Rule = Callable[[FittedPart, ChanceCurve], int | None]


def _up_to_min(part: FittedPart, curve: ChanceCurve) -> pd.DataFrame:
    """Return the agreement over resamples for each number of factors up to the one that predicts best."""
    rows = []
    for k in range(1, best_row(part.errors)[0] + 1):
        agreement, halves = (each[k - 1].mean(axis=0) for each in (part.agreement, part.halves))
        common = {"agreement": agreement.mean(), "weakest": agreement.min()}
        rows.append({"n_components": k, **common, "found": curve(halves).sum()})
    return pd.DataFrame(rows)


def _most_where(part: FittedPart, curve: ChanceCurve, column: str, least: float) -> int:
    table = _up_to_min(part, curve)
    enough = table.loc[table[column] >= least, "n_components"]
    return int(enough.max()) if len(enough) else 1


def _expected(cost: float) -> Rule:
    """Return the rule that maximises the factors expected to replicate, minus a cost per factor."""

    def rule(part: FittedPart, curve: ChanceCurve) -> int:
        table = _up_to_min(part, curve)
        gain = (table["found"] - cost * table["n_components"]).to_numpy()
        return int(table["n_components"].iloc[len(gain) - 1 - int(np.argmax(gain[::-1]))])

    return rule


def _always(k: int) -> Rule:
    return lambda part, curve: min(k, len(part.loadings))


def _other(name: str) -> Rule:
    """Return a rule of factor analysis, limited to between one factor and the most that were fitted."""

    def rule(part: FittedPart, curve: ChanceCurve) -> int | None:
        k = part.counts.get(name)
        return None if k is None else min(max(k, 1), len(part.loadings))

    return rule


# All candidates. Their settings were fixed before the evaluation studies were run.
CANDIDATES: Mapping[str, Rule] = {
    "min (lowest error)": lambda part, curve: best_row(part.errors)[0],
    "one_se": lambda part, curve: choose(part.errors, "one_se")[0],
    "stable (halves)": lambda part, curve: choose(part.errors, "stable", stability=part.stability)[0],
    "every factor's agreement ≥ 0.8": lambda part, curve: _most_where(part, curve, "weakest", 0.8),
    "mean agreement ≥ 0.9": lambda part, curve: _most_where(part, curve, "agreement", 0.9),
    "expected found again − ½ per factor": _expected(0.5),
    "expected found again − 0.3 per factor": _expected(0.3),
    "expected found again − 0.7 per factor": _expected(0.7),
    **{f"always {k}": _always(k) for k in (3, 5, 7)},
}


def rules_of(parts: Sequence[FittedPart]) -> dict[str, Rule]:
    """Return all candidates, and the rules of factor analysis that were run on these parts."""
    names = dict.fromkeys(name for part in parts for name in part.counts)
    return {**CANDIDATES, **{name: _other(name) for name in names}}


def evaluate_rules(parts: Sequence[FittedPart], major: Mapping[str, int | None]) -> pd.DataFrame:
    """Evaluate every rule on every study, with a replication curve fitted to the other studies.

    ``share`` is the factors found again over the larger of the two numbers, ``k_spread`` the mean difference
    between parts, and ``off`` the mean distance to the number of major factors, if known.
    """
    rows: list[dict[str, Any]] = []
    curves = curves_of_others(parts)
    for ground in dict.fromkeys(part.ground for part in parts):
        mine = [part for part in parts if part.ground == ground]
        for name, rule in rules_of(parts).items():
            ks = [k for part in mine if (k := rule(part, curves[study_of(ground)])) is not None]
            if len(ks) < len(mine):
                continue
            pairs = [_pair(mine[a], mine[b], ks[a], ks[b]) for a, b in combinations(range(len(mine)), 2)]
            truth = major.get(ground)
            rows.append(
                {
                    "ground": ground,
                    "rule": name,
                    "share": np.mean([share for share, _, _ in pairs]),
                    "found": np.mean([found for _, found, _ in pairs]),
                    "k": np.mean(ks),
                    "k_spread": np.mean([spread for _, _, spread in pairs]),
                    "off": np.nan if truth is None else np.mean(np.abs(np.array(ks) - truth)),
                }
            )
    return pd.DataFrame(rows)


def _pair(a: FittedPart, b: FittedPart, k_a: Any, k_b: Any) -> tuple[float, int, int]:
    """Return share and number of factors found again, and the difference between the two numbers."""
    found = int((found_again(a.loadings[k_a - 1], b.loadings[k_b - 1]) >= FOUND).sum())
    return found / max(k_a, k_b), found, abs(k_a - k_b)


BASE = "min (lowest error)"
GAIN, KEPT = 0.08, 0.85  # required gain over `min`, and share of its factors that must remain


def selection_page(grounds: Sequence[SplitStudy], parts: Sequence[FittedPart], design: Design) -> Path:
    """Evaluate all rules, and write the tables and the page ``selection.md``."""
    table = evaluate_rules(parts, {ground.name: ground.n_major for ground in grounds})
    table.to_csv(design.out / "selection.csv", index=False, float_format="%.6g")
    simulated = table["off"].notna()
    development = table["ground"].map(lambda name: study_of(name) in DEVELOPMENT)
    evaluation = table[~simulated & ~development]
    return results_page(
        design,
        "selection",
        "Which rule chooses a number of factors that a second study confirms?",
        _setting(),
        [
            Section("Public studies for evaluation", [summary(evaluation)]),
            Section("Public studies for development", [summary(table[~simulated & development])]),
            Section("Simulated studies with minor factors", [summary(table[simulated])]),
            Section(
                "Every study",
                [
                    *(_study(str(ground), mine) for ground, mine in table.groupby("ground", sort=False)),
                    linked("All numbers", "selection.csv"),
                ],
            ),
        ],
        lead=[_verdict(overall(evaluation)) if len(evaluation) else ""],
    )


def overall(table: pd.DataFrame) -> pd.DataFrame:
    """Return each rule's means over the studies where it could be run, compared with `min` there."""
    rows = []
    base = table[table["rule"] == BASE].set_index("ground")
    for rule, mine in table.groupby("rule", sort=False):
        there = base.loc[mine["ground"]]
        rows.append(
            {
                "rule": rule,
                "studies": len(mine),
                "share": mine["share"].mean(),
                "worst": mine["share"].min(),
                "found": mine["found"].mean(),
                "k": mine["k"].mean(),
                "k_spread": mine["k_spread"].mean(),
                "off": mine["off"].mean(),
                "share_gain": mine["share"].mean() - there["share"].mean(),
                "found_ratio": mine["found"].mean() / there["found"].mean(),
            }
        )
    return pd.DataFrame(rows)


def summary(table: pd.DataFrame) -> Block:
    """Return the rules' means over studies as a table."""
    if table.empty:
        return "None were run."
    known = bool(table["off"].notna().any())
    head = [
        *("rule", "studies", "share found again (worst)", "found again", "gain over min", "of min's number"),
        *("mean k", "k differs by"),
        *(["off the major factors"] if known else []),
    ]
    lines = [
        [
            row["rule"],
            str(row["studies"]),
            f"{row['share']:.2f} ({row['worst']:.2f})",
            f"{row['found']:.1f}",
            f"{row['share_gain']:+.2f}",
            f"{100 * row['found_ratio']:.0f} %",
            f"{row['k']:.1f}",
            f"{row['k_spread']:.1f}",
            *([f"{row['off']:.2f}"] if known else []),
        ]
        for row in overall(table).to_dict("records")
    ]
    return Grid("Means over studies", head, lines)


def _verdict(means: pd.DataFrame) -> str:
    """Return whether a rule is better than `min` by the margin fixed in advance."""
    better = means[(means["share_gain"] >= GAIN) & (means["found_ratio"] >= KEPT)]["rule"].tolist()
    base = means.set_index("rule").loc[BASE]
    criterion = (
        f"A rule was to become the default if, on the public studies for evaluation, it raised the share of "
        f"factors found again by {GAIN} over that of min and found at least {100 * KEPT:.0f} % as many."
    )
    baseline = f"min has a share of {base['share']:.2f} and {base['found']:.1f} factors found again there."
    verdict = f"These do: {', '.join(better)}." if better else "No rule does, so min remains the default."
    return f"{criterion} {baseline} {verdict}"


def _study(ground: str, mine: pd.DataFrame) -> Section:
    lines = [
        [
            row["rule"],
            f"{row['share']:.2f}",
            f"{row['found']:.1f}",
            f"{row['k']:.1f}",
            f"{row['k_spread']:.1f}",
        ]
        for row in mine.to_dict("records")
    ]
    head = ["rule", "share found again", "found again", "mean k", "k differs by"]
    return Section(ground, [Grid("", head, lines)])


def _setting() -> str:
    return """Every study is split into independent parts; each rule chooses a number of factors in each part.
    A factor is found again if its loadings correlate at least 0.8 with those of its counterpart in another
    part; the share is of the larger of the two numbers. Rules and their settings were fixed before the
    evaluation studies were run; all are shown. Replication probabilities come, for each study, from a curve
    fitted to the other studies."""
