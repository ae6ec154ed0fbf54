"""`icqf check` of 40 000 participants x 100 items, against pandas reading the same CSV file three times.

Reading and looking are timed inside one process, as pandas is, in processor seconds, turn and turn about,
each the best of seven, so that both meet the same machine.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd

from _measure import heading, least_cpu, report, run_script
from icqf.workflow.check import check_study
from icqf.workflow.options import StudyOptions

PARTICIPANTS, ITEMS = 40_000, 100
LIMIT = 3.0


def study(folder: Path) -> Path:
    """Answers 1 to 5 behind four factors, 2 % of them missing, beside ids, age, sex and a total."""
    rng = np.random.default_rng(0)
    level = rng.normal(size=(PARTICIPANTS, 4)).repeat(ITEMS // 4, axis=1)
    answers = np.clip(np.rint(3 + level + rng.normal(size=level.shape)), 1, 5)
    frame = pd.DataFrame(answers, columns=[f"q{j}" for j in range(1, ITEMS + 1)])
    total = frame.sum(axis=1).astype(int)
    frame = frame.mask(rng.random(frame.shape) < 0.02).astype("Int8")
    frame.insert(0, "record_id", [f"P{i:05d}" for i in range(PARTICIPANTS)])
    frame = frame.assign(
        age=rng.integers(18, 80, PARTICIPANTS), sex=rng.integers(1, 3, PARTICIPANTS), total=total
    )
    frame.to_csv(folder / "study.csv", index=False)
    return folder / "study.csv"


def main() -> None:
    """Print the ratio."""
    heading(f"icqf check of {PARTICIPANTS} x {ITEMS} (CSV)")
    with tempfile.TemporaryDirectory() as folder:
        path = study(Path(folder))
        options = StudyOptions.of({"answers": path})
        works = (lambda: check_study(options), lambda: pd.read_csv(path))
        turns = [[least_cpu(1, work)[0] for work in works] for _ in range(7)]
        ours, theirs = map(min, zip(*turns, strict=True))
        print(f"  check {ours:.3f} s, one pandas read {theirs:.3f} s")
        report("  check, in pandas reads", ours / theirs, LIMIT)


if __name__ == "__main__":
    run_script(main)
