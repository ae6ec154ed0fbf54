"""1 000 000 answers of repeated visits in 20 age bins: peak memory, which grows with the answers given."""

from __future__ import annotations

import os
import subprocess
import sys

from _measure import heading, report, run_script

LIMIT = 1e9  # bytes
CHILD = """
import resource, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np
import pandas as pd
from icqf.models import LongitudinalICQF
answers, bins, items, k = int(sys.argv[1]), 20, 25, 4
rng = np.random.default_rng(0)
n = answers // items // 2  # two visits each
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
when = np.sort(np.argsort(rng.random((n, bins)), axis=1)[:, :2], axis=1).ravel()
scores = rng.beta(0.4, 1.5, (n, k)).repeat(2, axis=0)
early, late = (rng.uniform(0, 4, (items, k)) * (rng.random((items, k)) < 0.3) for _ in range(2))
age = (when / (bins - 1))[:, None]
clean = scores @ early.T * (1 - age) + scores @ late.T * age
given = np.clip(np.rint(clean + rng.normal(0, 0.5, clean.shape)), 0, 4).astype(np.int8)
visits = pd.DataFrame(given, columns=[f"q{j}" for j in range(items)])
visits.insert(0, "participant", np.arange(n).repeat(2))
visits.insert(1, "age", when)
del clean, scores, given, age
clock = time.perf_counter()
model = LongitudinalICQF(k, item_range=(0, 4), n_init=1, max_iter=100, bins=[str(t) for t in range(bins)])
model.fit(visits)
seconds = time.perf_counter() - clock
model.transform(visits)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(before * 1024, peak * 1024, seconds, len(model.bins_), model.model_.n_iter_)
"""


def fit(answers: int) -> tuple[float, float, float]:
    """Bytes before the visits are there, at most, and the seconds of the fit."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(answers)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    before, peak, seconds, bins, iterations = map(float, done.stdout.split())
    print(
        f"  {answers:>9,} answers in {bins:.0f} bins: fit and scores in {seconds:.0f} s ({iterations:.0f} "
        f"iterations), peak resident memory {peak / 1e6:.0f} MB ({before / 1e6:.0f} MB before the data)"
    )
    return before, peak, seconds


def main() -> None:
    heading(
        "Two visits of each participant in 20 age bins, 25 items, k = 4: nine tenths of the table are empty"
    )
    _, small, _ = fit(500_000)
    before, peak, _ = fit(1_000_000)
    report("  peak memory of 1 000 000 answers in units of 1 GB", peak / LIMIT, 1.0)
    report(
        "  memory beyond the program for twice the answers", (peak - before) / max(small - before, 1.0), 2.2
    )


if __name__ == "__main__":
    run_script(main)
