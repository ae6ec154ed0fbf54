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
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pandas as pd

from _demo import simulate
from _measure import best_of_each, report, run_script
from icqf.datasets import demo_paths
from icqf.workflow.fit import fit_study, write_results
from icqf.workflow.options import StudyOptions
from icqf.workflow.score import write_scores

PARTICIPANTS = 100_000
LIMIT = 5.0


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
            lambda: write_scores(model, table, out),
            lambda: subprocess.run([*command, "--force", "--quiet"], check=True),
        )
        read /= 5
        print(f"pandas reads the file in {read:.2f} s")
        print(f"the whole command, with the start of Python: {whole:.2f} s, {whole / read:.2f} times as long")
        report(f"read, score and write ({job:.2f} s) against pandas", job / read, LIMIT)


if __name__ == "__main__":
    run_script(main)
