"""`icqf score` on a Parquet file of 2 000 000 participants x 119 items: memory that does not grow with it.

The command runs in a process of its own, whose peak memory is taken, once on a quarter of the participants
and once on all of them. Scores go to CSV and to Parquet. `python bench_score_stream.py 10000000` takes
another number.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from _demo import simulate
from _measure import report, run_script
from icqf import ICQF
from icqf.datasets import load_demo

PARTICIPANTS = 2_000_000
AT_A_TIME = 100_000
MOST = 1.0  # GB
GROWTH = 1.25  # of the peak, where there are four times as many participants
_RUN = """
import sys
sys.argv = ["icqf", "score", *sys.argv[1:], "--quiet"]
from icqf.cli import main
try:
    main()
finally:
    # Not ru_maxrss, which a process takes over from its parent.
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(float(peak.split()[1]) / 2**20)
"""


def write_answers(path: Path, n: int) -> None:
    """Write the answers of n participants; the same hundred thousand again and again, under other ids."""
    answers = simulate(1, n_participants=AT_A_TIME)
    columns = {
        name: pa.array(pd.to_numeric(answers[name], errors="coerce").astype("Int8"))
        if name.startswith("q")
        else pa.array(answers[name])
        for name in answers
    }
    writer = None
    for start in range(0, n, AT_A_TIME):
        columns["child_id"] = pa.array([f"C{i:08d}" for i in range(start, start + AT_A_TIME)])
        part = pa.table(columns).slice(0, n - start)
        writer = writer or pq.ParquetWriter(path, part.schema)
        writer.write_table(part)
    if writer is not None:
        writer.close()


def scored(model: Path, answers: Path, out: Path) -> tuple[float, float]:
    """Seconds and peak memory (GB) of scoring a file."""
    start = time.perf_counter()
    words = [sys.executable, "-c", _RUN, str(model), str(answers), "--out", str(out)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return time.perf_counter() - start, float(done.stdout.split()[-1])


def main() -> None:
    """Print peaks and rows per second."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else PARTICIPANTS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = folder / "model.icqf"
        ICQF(8, beta=0.1).fit(load_demo()).save(model)
        write_answers(folder / "some.parquet", n // 4)
        write_answers(folder / "all.parquet", n)
        _, before = scored(model, folder / "some.parquet", folder / "some.csv")
        for ending in ("csv", "parquet"):
            seconds, peak = scored(model, folder / "all.parquet", folder / f"scores.{ending}")
            print(
                f"{n} participants to .{ending}: {seconds:.1f} s, {n / seconds:.0f} a second, {peak:.2f} GB"
            )
            report(f"  peak memory in GB, to .{ending}", peak, MOST)
            report(
                f"  peak against that of a quarter of the participants, to .{ending}", peak / before, GROWTH
            )


if __name__ == "__main__":
    run_script(main)
