"""Previews of the loadings: CPU seconds for 5 000 x 120 answers, and how close they are to the fit.

Two studies, with strong and weak factors, and every combination of some numbers of factors and penalties; the
slowest counts.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd

from _measure import heading, report, run_script
from icqf import ICQF
from icqf.resampling.matching import aligned
from icqf.workflow.preview import preview

N, M, FACTORS = 5_000, 120, 8
NUMBERS, PENALTIES = (2, 4, 6, 8, 10, 12, 16, 20), (0.05, 0.1, 0.5)
COMPARED = (4, 8)
LIMIT = 1.0  # seconds


def study(noise: float) -> pd.DataFrame:
    """Answers from 0 to 4 with eight factors, of which 3 % are missing."""
    rng = np.random.default_rng(0)
    scores = rng.random((N, FACTORS)) * (rng.random((N, FACTORS)) < 0.4)
    loadings = 3 * rng.random((M, FACTORS)) * (rng.random((M, FACTORS)) < 0.25)
    answers = np.clip(np.rint(scores @ loadings.T + rng.normal(0, noise, (N, M))), 0, 4)
    answers[rng.random(answers.shape) < 0.03] = np.nan
    return pd.DataFrame(answers, columns=[f"q{j:03}" for j in range(M)])


def main() -> None:
    """Print the seconds, and the ratio of the slowest to its limit."""
    heading(f"Previews of {N} x {M}")
    slowest = 0.0
    for noise in (0.7, 1.5):
        stated = ICQF(2, beta=0.1, item_range=(0, 4)).state(study(noise))
        for k in NUMBERS:
            spent = []
            for beta in PENALTIES:
                clock = time.process_time()
                found = preview(stated, k, beta)
                spent.append(time.process_time() - clock)
                if k in COMPARED:
                    model = ICQF(k, beta=beta, random_state=0)
                    fitted = stated.problem.own_loadings(model.solve(stated).factors.loadings)[:k]
                    similar = aligned(fitted, found.loadings.to_numpy().T)[1]
                    print(f"  noise {noise}, k {k}, beta {beta}: mean correlation with the fit {similar:.3f}")
            slowest = max(slowest, *spent)
            print(f"  noise {noise}, k {k}: {min(spent):.2f} to {max(spent):.2f} s")
    report(f"the slowest preview takes {slowest:.2f} s of CPU time", slowest / LIMIT, 1.0)


if __name__ == "__main__":
    run_script(main)
