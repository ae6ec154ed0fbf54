"""Scores of 100 000 participants x 119 items with intervals, against the scores alone.

Complete answers, and answers of which each participant leaves out some, all of them others. Once with the
simulated table of the model at hand; then the whole command, from a CSV file to a CSV file, which makes it.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from _demo import simulate
from _measure import best_of_each, heading, report, run_script
from icqf import ICQF
from icqf.datasets import load_demo
from icqf.workflow import ScoreColumns, write_scores

PARTICIPANTS, FACTORS, LIMIT = 100_000, 8, 1.5


def main() -> None:
    """Print the ratios."""
    heading(f"{PARTICIPANTS} participants, {FACTORS} factors")
    demo = load_demo()
    items = list(demo.answers.columns)
    model = ICQF(FACTORS, beta=0.1, n_init=1).fit(demo)
    table = simulate(1, n_participants=PARTICIPANTS)
    reverse = {item.name for item in demo.items if item.reverse}
    ranges = model.item_range_
    answers = table[items].apply(pd.to_numeric, errors="coerce")
    answers = answers.where(answers.le(ranges["max"]))  # codes of missing answers
    for name in reverse:
        answers[name] = ranges.loc[name, "min"] + ranges.loc[name, "max"] - answers[name]
    confounds = table[["age", "sex"]]
    complete = answers.fillna(0.0)
    hidden = np.random.default_rng(0).random(answers.shape) < 0.05

    clock = time.perf_counter()
    model.score_intervals(complete.head(1), confounds=confounds.head(1))
    print(f"the table of the model takes {time.perf_counter() - clock:.2f} s, once")
    for what, X in {"complete answers": complete, "5 % missing": complete.mask(hidden)}.items():
        alone, both = best_of_each(
            lambda X=X: model.transform(X, confounds=confounds),
            lambda X=X: model.score_intervals(X, confounds=confounds),
            times=3,
        )
        claim = f"{what}: with intervals ({both:.2f} s) against scores alone ({alone:.2f} s)"
        report(claim, both / alone, LIMIT)
    with tempfile.TemporaryDirectory() as name:
        saved, source, out = (Path(name, each) for each in ("model.icqf", "answers.csv", "scores.csv"))
        model.save(saved)
        table.to_csv(source, index=False)
        alone, both = best_of_each(
            lambda: write_scores(saved, source, out, columns=ScoreColumns(intervals=False)),
            lambda: write_scores(saved, source, out),
            times=3,
        )
    claim = f"icqf score, from file to file: with intervals ({both:.2f} s) against without ({alone:.2f} s)"
    report(claim, both / alone, LIMIT)


if __name__ == "__main__":
    run_script(main)
