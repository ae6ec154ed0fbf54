"""Meta-factors of simulated batteries: composed item loadings beside the true ones.

Six instruments of 12 items with three factors each, three meta-factors, and two in five participants without
each instrument. Numbers of factors and penalties are chosen by cross-validation in both stages, and every
battery counts, also one in which another number of meta-factors is chosen. Fewer participants and more noise
follow for orientation, without a limit.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from _measure import heading, report, run_script
from icqf import ICQF, ICQFCV
from icqf.datasets import make_battery
from icqf.models import MetaICQF
from icqf.resampling import match_factors

LEAST = 0.9
SEEDS = 5


def recovery(n: int, noise: float, seed: int) -> tuple[float, int]:
    """The lowest correlation of a meta-factor's composed item loadings with the true ones, and K."""
    made = make_battery(n, absent=0.4, noise=noise, random_state=seed)
    search = ICQFCV(ICQF(), n_splits=5, random_state=0)
    second = ICQFCV(ICQF(item_weight="variance"), n_splits=5, random_state=0)
    model = MetaICQF(search, meta_estimator=second).fit(made.battery)
    truth, found = made.item_loadings.to_numpy(), model.item_loadings_.to_numpy()
    match = match_factors(truth, found, method="optimal")
    pairs = match.pairs["pearson"].to_list() + [0.0] * len(match.unmatched_a)
    return float(min(pairs)), found.shape[1]


def main() -> None:
    """Print the ratio, and how far it goes with less."""
    for n, noise in ((400, 0.15), (200, 0.15), (400, 0.30), (200, 0.30)):
        heading(f"{n} participants, noise {noise:g} of the range, {SEEDS} batteries")
        worst, counts = zip(*(recovery(n, noise, seed) for seed in range(SEEDS)), strict=True)
        print(f"  meta-factors found: {', '.join(map(str, counts))} (true: 3)")
        print(f"  lowest correlation of a meta-factor: {', '.join(f'{value:.3f}' for value in worst)}")
        if (n, noise) == (400, 0.15):
            report(f"{LEAST} against the lowest of all", LEAST / min(worst), 1.0)


if __name__ == "__main__":
    run_script(main)
