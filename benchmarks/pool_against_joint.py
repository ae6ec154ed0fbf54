"""Models pooled from sites against one fit of all participants: `python benchmarks/pool_against_joint.py`.

The participants of a study are dealt to sites at random, each site is fitted on its own, the sites' files
are pooled, and the pooled loadings are correlated with those of one fit to everybody, factor by factor
(optimal matching). The models go through files, as those of hospitals do. Prints one row per design over
three deals: mean correlation of the pooled factors and that of the worst one, both averaged over deals, the
lowest of all, and the lowest and highest mean correlation of a single site.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from icqf import ICQF
from icqf.data.questionnaire import Questionnaire
from icqf.datasets import load_demo, make_cohort
from icqf.resampling import match_factors
from icqf.workflow import pool_models

K, BETA = 8, 0.1
SEEDS = (10, 11, 12)
LIMITS = {"150-250": 0.997, "3 x 445": 0.998, "6 x 222": 0.997, "12 x 111": 0.993}
WORST_OF_TWELVE = 0.977


def fitted(study: Questionnaire) -> ICQF:
    """A fit as the config.toml of docs/pool.md asks for it."""
    return ICQF(K, beta=BETA, confound_ranges={"age": (5, 21)}).fit(study)


def compare(study: Questionnaire, sizes: Sequence[int], *, seed: int) -> tuple[float, float, float, float]:
    """Mean and worst r of the pooled model with the joint one, and lowest and highest mean r of a site."""
    dealt = np.split(np.random.default_rng(seed).permutation(sum(sizes)), np.cumsum(sizes)[:-1])
    joint = fitted(study.take(np.sort(np.concatenate(dealt))))
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"site{at}.icqf") for at in range(len(sizes))]
        for path, rows in zip(paths, dealt, strict=True):
            fitted(study.take(np.sort(rows))).save(path)
        pooled = match_factors(pool_models(paths).model, joint, method="optimal")
        alone = [match_factors(ICQF.load(path), joint, method="optimal").mean for path in paths]
    return pooled.mean, pooled.min, min(alone), max(alone)


def main() -> None:
    """Print the table, and fail where a design falls below its limit."""
    demo, cohort = load_demo(), make_cohort("hbn", random_state=0).questionnaire
    designs = {
        "150-250": (demo, [150, 200, 250]),
        "3 x 445": (cohort, [445] * 3),
        "6 x 222": (cohort, [222] * 6),
        "12 x 111": (cohort, [111] * 12),
    }
    print("| sites | pooled: mean r | worst factor | lowest in three deals | one site alone: mean r |")
    print("|---|---|---|---|---|")
    missed = []
    for name, (study, sizes) in designs.items():
        deals = np.array([compare(study, sizes, seed=seed) for seed in SEEDS])
        mean, worst = deals[:, :2].mean(axis=0)
        least, most = deals[:, 2].min(), deals[:, 3].max()
        print(
            f"| {name} | {mean:.4f} | {worst:.4f} | {deals[:, 1].min():.4f} | {least:.3f} to {most:.3f} |",
            flush=True,
        )
        if round(mean, 3) < LIMITS[name] or (len(sizes) == 12 and round(worst, 3) < WORST_OF_TWELVE):
            missed.append(name)
    if missed:
        raise SystemExit(f"Below the limit: {', '.join(missed)}.")


if __name__ == "__main__":
    main()
