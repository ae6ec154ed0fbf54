"""What a federated fit costs, and what its settings change: `python benchmarks/federated_settings.py`.

The demo's 600 participants at three hospitals of 150, 200 and 250, against the fit of all in one table:
rounds, megabytes, and how far the loadings (on a range of 2) are from those of the pooled fit.
"""

from __future__ import annotations

import tempfile
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from icqf import ICQF
from icqf.datasets import demo_paths
from icqf.datasets.demo import load_demo
from icqf.io import read_codebook
from icqf.io.exchange import Exchange
from icqf.resampling.matching import aligned
from icqf.workflow import FederatedFit, answer_requests, draw_up_plan, fit_federated, site_participants

SITES, EDGES = ("Hospital A", "Hospital B", "Hospital C"), (0, 150, 350, 600)
RANGES, CATEGORIES = {"age": (6, 18)}, {"sex": ["female", "male"]}
SETTINGS: tuple[dict[str, Any], ...] = (
    {"smallest_group": 1},
    {},
    {"smallest_group": 10},
    {"digits": 6},
    {"digits": 4},
    {"noise": 10},
    {"noise": 50},
)


def federated(**settings: Any) -> FederatedFit:
    plan = draw_up_plan(
        read_codebook(demo_paths().codebook),
        sites=SITES,
        confound_ranges=RANGES,
        categories=CATEGORIES,
        n_components=8,
        n_init=1,
        **settings,
    )
    study = load_demo()
    sites = [site_participants(plan, study.take(np.arange(first, last))) for first, last in pairwise(EDGES)]
    with tempfile.TemporaryDirectory() as folder:
        shared = Path(folder, "shared")
        shared.mkdir()
        exchange = Exchange(shared, patience=120)
        threads = [
            threading.Thread(
                target=answer_requests,
                args=(plan, site, exchange),
                kwargs={"name": name, "log": Path(folder, name)},
            )
            for name, site in zip(SITES, sites, strict=True)
        ]
        for thread in threads:
            thread.start()
        fit = fit_federated(plan, exchange)
        for thread in threads:
            thread.join()
    return fit


def main() -> None:
    pooled = ICQF(8, beta=0.1, n_init=1, confound_ranges=RANGES, dtype="float64").fit(load_demo())
    print("settings                rounds  iterations    MB   largest difference  mean    correlation")
    for settings in SETTINGS:
        fit = federated(**settings)
        order, _ = aligned(pooled.components_, fit.model.components_)
        ours, theirs = fit.model.components_[order], pooled.components_
        apart = np.abs(ours - theirs)
        correlation = np.corrcoef(ours.ravel(), theirs.ravel())[0, 1]
        name = ", ".join(f"{key} {value:g}" for key, value in settings.items()) or "the usual ones"
        print(
            f"{name:<22}  {fit.rounds:>6}  {fit.model.n_iter_:>10}  {fit.exchanged / 1e6:>4.1f}  "
            f"{apart.max():>18.2g}  {apart.mean():<6.2g}  {correlation:.6f}"
            f"{'' if fit.model.converged_ else '  not settled'}",
            flush=True,
        )


if __name__ == "__main__":
    main()
