"""Which rule chooses the number of factors that a second study confirms?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from icqf.report.blocks import Block, Grid, Section
from icqf.workflow.evaluation import Design, linked, results_page
from icqf_experiments.fit_parts import FittedPart
from icqf_experiments.rules import evaluate_rules
from icqf_experiments.split_studies import DEVELOPMENT, SplitStudy, study_of

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
