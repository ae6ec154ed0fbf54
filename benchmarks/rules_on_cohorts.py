"""How far the rules of factor analysis are from the number of major factors, on cohorts with minor ones.

Run: python benchmarks/rules_on_cohorts.py docs/results      (one core, under ten minutes)

Writes rules.csv (one row per cohort and rule) into the folder and prints the tables of docs/results/rules.md.
All settings are below; none was changed after a look at the results.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pandas as pd
from threadpoolctl import threadpool_limits

from icqf.baselines import every_rule
from icqf.datasets import make_cohort
from icqf_experiments.made_with import commit, record

COHORTS = [(name, n) for name in ("hbn", "abcd") for n in (300, 1000, 3000)] + [("hbn", 10_000)]
MODEL_ERROR = ("none", "fair", "poor")
SEED = 11
SAMPLES = 20  # random data sets of parallel analysis and Hull, samples of NEST and comparison data
FEWEST = 5  # an item is left out when fewer participants depart from its most frequent answer


def usable(answers: pd.DataFrame) -> pd.DataFrame:
    """Leave out items that nearly everybody answered alike: a few participants decide their correlations."""
    departing = answers.notna().sum() - answers.apply(lambda item: item.value_counts().max())
    return answers.loc[:, departing >= FEWEST]


def main(folder: Path) -> None:
    """Run every rule on every cohort, write the table, and print its summaries."""
    rows = []
    for name, n in COHORTS:
        for minor in MODEL_ERROR:
            cohort = make_cohort(name, n, minor=minor, random_state=SEED)
            answers = usable(cohort.questionnaire.answers)
            clock = time.perf_counter()
            found = every_rule(answers, n_iter=SAMPLES, random_state=SEED).table
            seconds = time.perf_counter() - clock
            print(
                f"{name} {n} {minor}: {answers.shape[1]} items, {seconds:.0f} s", file=sys.stderr, flush=True
            )
            for rule, k in zip(found["rule"], found["n_components"], strict=True):
                rows.append((name, n, minor, answers.shape[1], rule, k, cohort.truth.n_major))
    columns = ["cohort", "n", "model_error", "items", "rule", "n_components", "n_major"]
    table = pd.DataFrame(rows, columns=columns).astype({"n_components": "Int64"})
    table.to_csv(folder / "rules.csv", index=False)
    record(folder, "rules", command="python benchmarks/rules_on_cohorts.py docs/results", made_with=commit())
    show(table)


def show(table: pd.DataFrame) -> None:
    """Print what each rule kept, and how far that is from the number of major factors."""
    shown = table.assign(distance=(table["n_components"] - table["n_major"]).abs())
    kept = shown.pivot(index=["cohort", "n", "model_error"], columns="rule", values="n_components")
    kept = kept[list(dict.fromkeys(shown["rule"]))]
    order = [(*cohort, minor) for cohort in COHORTS for minor in MODEL_ERROR]
    print(markdown(kept.loc[order].reset_index()))
    mean = shown.pivot_table(index="rule", columns="model_error", values="distance", aggfunc="mean")
    mean = mean[list(MODEL_ERROR)].assign(all=shown.groupby("rule")["distance"].mean())
    missing = shown["n_components"].isna().groupby(shown["rule"]).sum()
    mean = mean.assign(refused=missing).sort_values("all")
    print("\n" + markdown(mean.round(2).reset_index()))


def markdown(table: pd.DataFrame) -> str:
    """Return a table in Markdown."""
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in table.astype(object).itertuples(index=False)]
    return "\n".join(["| " + " | ".join(map(str, table)) + " |", "|" + "---|" * table.shape[1], *lines])


if __name__ == "__main__":
    with threadpool_limits(limits=1):
        main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
