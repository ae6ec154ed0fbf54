"""A fit to 10 000 000 participants x 100 items from a Parquet file, against 100 000 in memory.

The file is made first (a gigabyte of answers, about two minutes). Each fit runs in a process of its own,
whose highest memory is measured; iterations are timed one by one, and both sides use all processors. Say
another number of participants on the command line to try it: ``python benchmarks/bench_stream.py 1000000``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from _simulated import TOP, answers, parts

PARTICIPANTS, IN_MEMORY, ITEMS, FACTORS = 10_000_000, 100_000, 100, 8
PER_ROW_LIMIT, MEMORY_LIMIT = 1.5, 3.0  # times as long, and gigabytes


def write(path: Path, n: int) -> None:
    """The answers as a Parquet file, missing ones empty."""
    names = [f"q{j:03}" for j in range(ITEMS)]
    schema = pa.schema([(name, pa.int8()) for name in names])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for codes in parts(n, ITEMS, FACTORS):
            columns = [pa.array(column, mask=column < 0) for column in np.ascontiguousarray(codes.T)]
            writer.write_table(pa.table(columns, schema=schema))


def fit(source: str) -> None:
    """Fit in this process, and print what it took."""
    import resource

    from icqf import ICQF

    clocks = [time.perf_counter()]
    model = ICQF(
        FACTORS, beta=0.1, item_range=(0, TOP), n_init="auto" if source != "memory" else 1, dtype="float32",
        callback=lambda progress: clocks.append(time.perf_counter()),
    )  # fmt: skip
    if source == "memory":
        codes = answers(IN_MEMORY, ITEMS, FACTORS)
        X: object = np.where(codes < 0, np.nan, codes.astype(np.float32))
    else:
        X = source
    clocks[0] = time.perf_counter()
    model.fit(X)
    whole = time.perf_counter() - clocks[0]
    steps = np.diff(clocks[-model.n_iter_ :])  # the iterations of the last start, which is of everybody
    found = {
        "n": model.n_participants_, "iterations": model.n_iter_, "converged": bool(model.converged_),
        "seconds": whole, "iteration": float(np.median(steps)), "objective": model.objective_,
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }  # fmt: skip
    print(json.dumps(found))


def measured(source: str) -> dict[str, float]:
    """What a fit takes in a process of its own."""
    command = [sys.executable, __file__, "--fit", source]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Print the ratios."""
    from _measure import report

    n = int(sys.argv[1]) if len(sys.argv) > 1 else PARTICIPANTS
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        path = Path(folder, "cohort.parquet")
        clock = time.perf_counter()
        write(path, n)
        size = path.stat().st_size / 1e9
        print(f"{n} x {ITEMS} answers written in {time.perf_counter() - clock:.0f} s ({size:.2f} GB)")
        held = min((measured("memory") for _ in range(3)), key=lambda found: found["iteration"])
        read = measured(str(path))
    for name, found in (("in memory", held), ("from Parquet", read)):
        print(
            f"{name}: {found['n']} participants, {found['seconds']:.1f} s, {found['iterations']} iterations "
            f"of {found['iteration'] * 1e3:.0f} ms, converged {found['converged']}, "
            f"at most {found['gigabytes']:.2f} GB"
        )
    per_row = read["iteration"] / read["n"] / (held["iteration"] / held["n"])
    report("time per iteration and participant, from Parquet against memory", per_row, PER_ROW_LIMIT)
    report("memory in GB", read["gigabytes"], MEMORY_LIMIT)
    if not read["converged"]:
        sys.exit("not converged")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--fit"]:
        fit(sys.argv[2])
    else:
        from _measure import run_script

        run_script(main)
