"""`icqf score` on 100 000 participants x 119 items, against pandas reading the same CSV file five times.

The command's reading, scoring and writing are timed inside one process, as pandas is; starting Python and
importing are shown beside it, through the installed command. Turn and turn about, and each the best of five,
so that both meet the same machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pandas as pd

from _measure import report, run_script
from icqf.datasets import demo_paths
from icqf.datasets.demo import simulate
from icqf.io import write_table
from icqf.workflow.fit import fit_study
from icqf.workflow.options import StudyOptions
from icqf.workflow.results import DECIMALS, write_results
from icqf.workflow.score import score_file

PARTICIPANTS = 100_000
LIMIT = 5.0


def best_of_each(*works: Callable[[], object], times: int = 5) -> list[float]:
    """Shortest time of each of several works, done in turn."""
    spent: list[list[float]] = [[] for _ in works]
    for _ in range(times):
        for work, times_of_work in zip(works, spent, strict=True):
            start = time.perf_counter()
            work()
            times_of_work.append(time.perf_counter() - start)
    return [min(times_of_work) for times_of_work in spent]


def main() -> None:
    """Print the ratio."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        answers, codebook = demo_paths()
        asked = {"answers": answers, "codebook": codebook, "confounds": ["age", "sex"]}
        options = StudyOptions.of({**asked, "n_components": 8, "beta": 0.1})
        write_results(fit_study(options), folder / "results")
        model, table, out = folder / "results" / "model.icqf", folder / "big.csv", folder / "scores.csv"
        answers = simulate(1, n_participants=PARTICIPANTS)
        answers["child_id"] = [f"C{i:06d}" for i in range(PARTICIPANTS)]
        answers.to_csv(table, index=False)

        command = [sys.executable, "-m", "icqf", "score", str(model), str(table), "--out", str(out)]
        read, job, whole = best_of_each(
            lambda: [pd.read_csv(table) for _ in range(5)],
            lambda: write_table(score_file(model, table).scores, out, decimals=DECIMALS),
            lambda: subprocess.run([*command, "--force", "--quiet"], check=True),
        )
        read /= 5
        print(f"pandas reads the file in {read:.2f} s")
        print(f"the whole command, with the start of Python: {whole:.2f} s, {whole / read:.2f} times as long")
        report(f"read, score and write ({job:.2f} s) against pandas", job / read, LIMIT)


if __name__ == "__main__":
    run_script(main)
