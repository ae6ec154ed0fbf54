"""Simulated drift of loadings with age: is it recovered?

Run: python benchmarks/loadings_over_age.py docs/results      (one core, some minutes)

Writes longitudinal.md with its figure and tables into the folder. All settings are below; none was changed
after a look at the results.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from icqf import ICQF, __version__
from icqf.datasets import make_longitudinal
from icqf.models import LongitudinalICQF, LongitudinalICQFCV
from icqf.plotting.style import MARKERS, SERIES, guides, hide_frame
from icqf.resampling.matching import aligned
from icqf_experiments.made_with import commit, record

COMMAND = "python benchmarks/loadings_over_age.py docs/results"
SIZE = {"n": 400, "n_items": 24, "n_bins": 6, "k": 3, "seen": 0.5}
STUDIES = 10
LONG = "all ages together"
APART = "each age by itself"
BLIND = "one fit that ignores age"
METHODS = (LONG, APART, BLIND)


def correlations(found: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Correlation with the true loadings (items, k), by factor, after matching."""
    order, _ = aligned(truth.T, found.T)
    return np.array([np.corrcoef(found[:, o], truth[:, r])[0, 1] for r, o in enumerate(order)])


def recovery(seed: int) -> list[dict[str, object]]:
    """Mean and lowest correlation with the truth at each age, by method."""
    data = make_longitudinal(**SIZE, random_state=seed)
    visits, k, truth = data.visits, SIZE["k"], data.loadings
    answers = visits.drop(columns=["participant", "age"])
    search = LongitudinalICQFCV(LongitudinalICQF(item_range=(0, 4)), n_components=k, betas=[0.1]).fit(visits)
    together = search.best_estimator_.loadings_by_age_
    # One order for all ages: a factor must be the same one at every age.
    order, _ = aligned(truth.transpose(1, 0, 2).reshape(k, -1), together.transpose(1, 0, 2).reshape(k, -1))
    blind = ICQF(k, item_range=(0, 4)).fit(answers).loadings_.to_numpy()
    rows = []
    for t in range(SIZE["n_bins"]):
        apart = ICQF(k, item_range=(0, 4)).fit(answers[visits["age"] == t]).loadings_.to_numpy()
        ours = np.array([np.corrcoef(together[:, o, t], truth[:, r, t])[0, 1] for r, o in enumerate(order)])
        by_method = {LONG: ours, APART: correlations(apart, truth[:, :, t])}
        by_method[BLIND] = correlations(blind, truth[:, :, t])
        rows += [
            {"study": seed, "age": t, "method": name, "mean": values.mean(), "lowest": values.min()}
            for name, values in by_method.items()
        ]
    print(f"study {seed}: smoothness {search.smoothness_:g}", flush=True)
    return rows


def main(folder: Path) -> None:
    clock = time.perf_counter()
    table = pd.DataFrame([row for seed in range(STUDIES) for row in recovery(seed)])
    draw(table, folder / "longitudinal.png")
    (folder / "longitudinal.md").write_text(page(table), encoding="utf-8")
    record(folder, "longitudinal", command=COMMAND, made_with=commit())
    print(f"{time.perf_counter() - clock:.0f} s")


def draw(table: pd.DataFrame, path: Path) -> None:
    ax = Figure(figsize=(6.4, 3.8), layout="constrained").add_subplot()
    for at, (name, part) in enumerate(table.groupby("method", sort=False)):
        by_age = part.groupby("age")["mean"]
        ax.fill_between(range(SIZE["n_bins"]), by_age.min(), by_age.max(), color=SERIES[at], alpha=0.15)
        ax.plot(by_age.mean(), color=SERIES[at], marker=MARKERS[at], label=name)
    ax.axhline(0.9, color="#888", linewidth=0.8, linestyle="--")
    ax.set(xlabel="age bin", ylabel="correlation with the true loadings")
    ax.legend(frameon=False, loc="lower center")
    guides(ax)
    hide_frame(ax)
    ax.figure.savefig(path, dpi=130)


def page(table: pd.DataFrame) -> str:
    by_age = table.groupby(["age", "method"])
    means, lowest = by_age["mean"].mean(), by_age["lowest"].min()
    lines = [
        f"| {age} | " + " | ".join(f"{means[age, m]:.3f} ({lowest[age, m]:.3f})" for m in METHODS) + " |"
        for age in range(SIZE["n_bins"])
    ]
    ours = table[table["method"] == LONG]
    return "\n".join(
        [
            "# Loadings that change with age, on simulated visits",
            "",
            f"Made by `{COMMAND}` with icqf {__version__}, commit {commit()}.",
            "",
            f"{STUDIES} studies of {SIZE['n']} participants, {SIZE['n_items']} items answered 0 to 4, "
            f"{SIZE['k']} factors and {SIZE['n_bins']} ages; half of the visits did not take place, and half "
            "of the items slide to other loadings over the ages (`icqf.datasets.make_longitudinal`). The "
            "number of factors was given; whether loadings may differ was chosen. What is shown is "
            "the correlation of found and true loadings, the mean over factors and studies (and the lowest "
            "of any factor in any study):",
            "",
            f"| age | {LONG} | {APART} | {BLIND} |",
            "|---|---|---|---|",
            *lines,
            "",
            "![Correlation with the true loadings at each age](longitudinal.png)",
            "",
            f"The lowest correlation of any factor at any age in any study is {ours['lowest'].min():.3f} for "
            f"{LONG}, {table[table['method'] == APART]['lowest'].min():.3f} for {APART} (each of whose fits "
            f"was matched with the truth by itself, which favours it), and "
            f"{table[table['method'] == BLIND]['lowest'].min():.3f} for {BLIND}.",
            "",
            "How often change is said where there is none, and found where there is some: "
            "[How sure are we when we say so](calibration.md).",
            "",
        ]
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with threadpool_limits(limits=1):
        main(Path(sys.argv[1]))
