"""How often groups are called different that are the same, and how often a real difference is seen.

`python benchmarks/invariance_error.py [STUDIES]` writes docs/results/invariance-error.csv. Every study has
two groups of 150 (or 75 and 225) participants, the items of two syndromes, two factors, 39 permutations (with
which the test is exact at 5 %) and its own seed. It has no limit to reach; docs/groups.md tells its numbers.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd

from icqf import ICQF
from icqf.analyses import invariance
from icqf.data import Questionnaire
from icqf.datasets import make_cohort
from icqf.engines.parallel import run_all

OUT = Path(__file__).parent.parent / "docs" / "results" / "invariance-error.csv"
SCALES = ("Anxious/Depressed", "Aggressive Behavior")
CHANGED = 6  # items that load otherwise in one group of the last kind of study


def answers(name: str, n: int, seed: int) -> pd.DataFrame:
    """Answers of n participants of a simulated cohort to the items of two syndromes."""
    study = make_cohort(name, n, random_state=seed).questionnaire
    return study.keyed_answers()[[item.name for item in study.items if item.subscale in SCALES]]


def same(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Two groups of one population."""
    return answers("hbn", 300, seed), np.repeat(["a", "b"], 150)


def unequal(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """The same with 75 and 225 participants."""
    return answers("hbn", 300, seed), np.repeat(["a", "b"], [75, 225])


def ages(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """The older and the younger half of a study: some items rise or fall with age, whatever the scores."""
    study = make_cohort("hbn", 300, random_state=seed).questionnaire
    age = study.confounds["age"]
    return answers("hbn", 300, seed), np.where(age > age.median(), "older", "younger")


def levels(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """The same loadings in a care-seeking and a community sample, whose scores differ widely."""
    parts = [answers("hbn", 150, 2 * seed), answers("abcd", 150, 2 * seed + 1)]
    return pd.concat(parts, ignore_index=True), np.repeat(["a", "b"], 150)


def other(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """One population, but some items have changed places in one group, so that their loadings have, too."""
    table, group = same(seed)
    moved = np.random.default_rng(seed).choice(table.shape[1], CHANGED, replace=False)
    values = table.to_numpy(copy=True)
    values[150:, moved] = values[150:, np.roll(moved, 1)]
    return pd.DataFrame(values, columns=table.columns), group


KINDS = {
    "same": (same, 1.0),
    "unequal sizes": (unequal, 0.5),
    "older and younger": (ages, 0.25),
    "patients and community": (levels, 0.25),
    "other loadings": (other, 0.25),
}


def judged(kind: str, seed: int) -> dict[str, Any]:
    """What is said of one study."""
    warnings.simplefilter("ignore")
    table, group = KINDS[kind][0](1000 + seed)
    study = Questionnaire.of(table.reset_index(drop=True), item_range=(0, 2))
    model = ICQF(2, beta=0.1, n_init=2).fit(study)
    found = invariance(model, study, by=group, n_permutations=39, n_resamples=2, random_state=seed)
    return {
        "kind": kind,
        "seed": seed,
        "verdict": found.verdict,
        "p": float(found.factors["p"].min()),
        "items_flagged": int(found.items["flagged"].sum()),
        "levels_flagged": int(found.items["level_flagged"].sum()),
    }


def main(studies: int) -> None:
    """Write how often each kind of study is called different, and how often items are flagged."""
    jobs = {
        f"{kind} {seed}": (kind, seed)
        for kind, (_, share) in KINDS.items()
        for seed in range(round(share * studies))
    }
    done = run_all(jobs, judged, identity="invariance-error", checkpoint=OUT.with_suffix(".journal"))
    table = pd.DataFrame(done.values())
    table.to_csv(OUT, index=False)
    OUT.with_suffix(".journal").unlink()
    for kind, part in table.groupby("kind", sort=False):
        different = float((part["verdict"] == "different").mean())
        error = np.sqrt(different * (1 - different) / len(part))
        items, level = ((part[name] > 0).mean() for name in ("items_flagged", "levels_flagged"))
        print(f"{kind}: different in {different:.3f} ({error:.3f}) of {len(part)} studies")
        print(f"  any item flagged in {items:.3f}, any level in {level:.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
