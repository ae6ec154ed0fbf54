"""1 000 000 × 100 int8 answers, k = 8, bounds on: peak memory and growth of time with n."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

from _measure import heading, report, run_script

ITERATIONS = 10
CHILD = """
import sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np
from icqf import ICQF
n = int(sys.argv[1])
rng = np.random.default_rng(0)
loadings = rng.uniform(0, 2, (100, 8)) * (rng.random((100, 8)) < 0.2)
answers = np.empty((n, 100), np.int8)
for at in range(0, n, 50_000):
    rows = slice(at, min(at + 50_000, n))
    scores = rng.beta(0.4, 1.5, (rows.stop - rows.start, 8))
    propensity = scores @ loadings.T + rng.normal(0, 0.4, (rows.stop - rows.start, 100))
    answers[rows] = np.clip(np.rint(propensity), 0, 2)
clock = time.perf_counter()
ICQF(8, item_range=(0, 2), n_init=1, max_iter=int(sys.argv[2])).fit(answers)
print(time.perf_counter() - clock)
"""


def fit(n: int) -> float:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(n), str(ITERATIONS)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    return float(done.stdout)


def main() -> None:
    heading(f"1 000 000 × 100 int8 answers, k = 8, bounds on, {ITERATIONS} iterations and the exact finish")
    half = min(fit(500_000) for _ in range(2))
    full = min(fit(1_000_000) for _ in range(2))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    print(f"  500 000 rows {half:.1f} s, 1 000 000 rows {full:.1f} s, peak resident memory {peak:.2f} GiB")
    report("  time for twice the rows", full / half, 2.2)
    report("  peak memory in units of 1.5 GB", peak * 2**30 / 1.5e9, 1.0)


if __name__ == "__main__":
    run_script(main)
