"""Experiment 3 of the paper, second part: do two studies give the same factors?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from icqf.analyses.method_comparison import replication
from icqf.data.settings import FACTORIZATIONS
from icqf.data.study import Study
from icqf.plotting import by_method
from icqf.report.blocks import Grid, Picture, Section
from icqf.workflow.evaluation import (
    Design,
    about_simulations,
    about_tests,
    failures_words,
    how_chosen,
    in_each_split,
    in_short,
    linked,
    present,
    results_page,
    table_of_tests,
    tests_of,
    verdict,
    with_spread,
)
from icqf_experiments.published import REPLICATION


def replication_experiment(studies: Sequence[Study], design: Design) -> Path:
    """Run the experiment on two studies, and write tables and the page ``replication.md``."""
    a, b = studies
    design.out.mkdir(parents=True, exist_ok=True)
    found = replication(
        a.questionnaire,
        b.questionnaire,
        labels=(a.labels, b.labels),
        methods=design.methods(FACTORIZATIONS),
        n_splits=design.n_splits,
        random_state=design.random_state,
        n_jobs=design.n_jobs,
        checkpoints=(design.journal(a.name), design.journal(b.name)),
        callback=design.callback,
    )
    tests, summary = tests_of(found), found.summary()
    found.table.to_csv(design.out / "replication.csv", index=False, float_format="%.6g")
    tests.to_csv(design.out / "replication-tests.csv", index=False, float_format="%.6g")
    theirs = REPLICATION if {a.name, b.name} == {"hbn", "abcd"} else {}
    lines = [
        [
            row["method"],
            f"{row['k_a']:g} and {row['k_b']:g}",
            with_spread(row["pearson"], row["pearson_spread"]),
            f"{row['pearson_sd']:.3f}",
            f"{row['pearson_optimal']:.3f}",
            f"{row['congruence']:.3f}",
            "{:.2f} ({:.2f})".format(*theirs[row["method"]]) if row["method"] in theirs else "",
        ]
        for row in summary.to_dict("records")
    ]
    head = [
        *("method", "factors (median)", "greedy, Pearson (sd over splits)", "sd over pairs"),
        *("best assignment", "congruence", "paper (sd)"),
    ]
    ax: Any = by_method(found.table, "pearson", label="mean correlation of loadings")
    ax.set_title(f"{a.title} ↔ {b.title}", loc="left")
    if theirs:
        for at, method in enumerate(dict.fromkeys(found.table["method"])):
            if method in theirs:
                ax.plot(at, theirs[method][0], "x", color="0.35", markersize=8)
        ax.set_xlabel("× the paper's mean, on the real studies")
    section = Section(
        f"{a.described} ↔ {b.described}",
        present(
            *(f"{study.title}: {note}" for study in studies for note in study.notes),
            Grid("Agreement of the two studies' factors", head, lines),
            "The paper's numbers are from the real studies." if theirs else "",
            Picture("replication", ax.figure, "Agreement in every split"),
            table_of_tests(tests),
            failures_words(found.failures),
            linked("All runs", "replication.csv"),
        ),
    )
    return results_page(
        design,
        "replication",
        "Replication: do two studies give the same factors?",
        _setting(design),
        [in_short([(f"{a.title} and {b.title}", verdict(tests, "the agreement"))]), section],
        lead=[about_simulations(studies)],
    )


def _setting(design: Design) -> str:
    return f"""{in_each_split(design)}, every method is fitted to the development set (80 %) of
    each study, choosing its number of factors in each: {how_chosen(design)}. Factors are matched on the items
    that both studies have, over min(k, k′) pairs. {about_tests(design, "these samples")}"""
