"""Whether two versions give the same numbers: `python benchmarks/same_numbers.py OLD NEW`.

OLD and NEW are folders (checkouts) or git revisions. Both run the same commands on the same files: a fit of
the demo and of bfi, a battery, visits and groups. Every table that both write is compared cell by
cell, numbers to 1e-6 of the largest in their column. Exits with 1 when a table, a column or a number
differs, and names it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

from compare import ONE_THREAD, ROOT, source_of

TOLERANCE = 1e-6


def write_inputs(folder: Path) -> None:
    """The files that all commands read."""
    from icqf.datasets import demo_paths, load_bfi, make_battery, make_longitudinal

    for path in demo_paths():
        (folder / path.name).write_bytes(path.read_bytes())
    bfi = load_bfi()
    bfi.answers.join(bfi.confounds).to_csv(folder / "bfi.csv", index_label="id")
    visits = make_longitudinal(n=200, n_items=12, n_bins=3, k=2, unanswered=0.05, random_state=1).visits
    visits.to_csv(folder / "visits.csv", index=False)
    battery = make_battery(n=200, n_items=(8, 8, 8), n_factors=2, n_meta=2, random_state=1).battery
    (folder / "battery").mkdir()
    for name, instrument in battery.instruments.items():
        instrument.answers.to_csv(folder / "battery" / f"{name}.csv", index_label="id")


def commands() -> dict[str, list[str]]:
    """What is run, in this order, by the name of the folder that it writes."""
    answers, codebook = (path.name for path in _demo())
    model = str(Path("demo") / "model.icqf")
    return {
        "demo": ["fit", answers, "--codebook", codebook, "--confounds", "age", "sex"],
        "bfi": ["fit", "bfi.csv", "--n-components", "4-6", "--reverse", "auto", "--bootstrap", "20"],
        "meta": ["meta", "battery", "--n-components", "2", "--n-meta", "1-3"],
        "visits": [
            *("longitudinal", "visits.csv", "--n-components", "2", "--smoothness", "1", "10"),
            *("--bootstrap", "10", "--permutations", "99"),
        ],
        "groups": [
            *("invariance", model, answers, "--codebook", codebook, "--by", "sex"),
            *("--permutations", "19", "--bootstrap", "10"),
        ],
    }


def _demo() -> tuple[Path, Path]:
    from icqf.datasets import demo_paths

    answers, codebook = demo_paths()
    return answers, codebook


def run(source: Path, inputs: Path, place: Path, cases: list[str]) -> None:
    """Run the commands with one version, in a folder of its own that holds the inputs."""
    subprocess.run(["cp", "-r", f"{inputs}/.", str(place)], check=True)
    environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(source)}
    program = [sys.executable, "-m", "icqf"]
    for name, words in commands().items():
        if name in cases or (name == "demo" and "groups" in cases):
            command = [*program, *words, "--out", name, "--quiet"]
            done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"{source}: {' '.join(words)} failed:\n{done.stderr[-2000:]}")


def differences(old: Path, new: Path) -> list[str]:
    """What differs between two tables, in words."""
    before, after = pd.read_csv(old), pd.read_csv(new)
    if list(before.columns) != list(after.columns) or len(before) != len(after):
        return [f"{before.shape} {list(before.columns)} against {after.shape} {list(after.columns)}"]
    found = []
    for name in before.columns.drop("seconds", errors="ignore"):  # which no two runs have in common
        left, right = before[name], after[name]
        if all(pd.api.types.is_numeric_dtype(side) and side.dtype != bool for side in (left, right)):
            largest = max(float(left.abs().max()), 1e-12)
            apart = float((left - right).abs().max()) / largest
            if apart > TOLERANCE or not left.isna().equals(right.isna()):
                found.append(f"{name}: by {apart:.2g} of the largest")
        elif not left.fillna("").astype(str).equals(right.fillna("").astype(str)):
            found.append(f"{name}: other texts")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", help="a folder or a git revision")
    parser.add_argument("new", nargs="?", default=str(ROOT), help="the same (default: this checkout)")
    parser.add_argument("--cases", nargs="+", choices=list(commands()), default=list(commands()))
    given = parser.parse_args()
    faults = tables = 0
    with tempfile.TemporaryDirectory() as scratch:
        places = {name: Path(scratch, name) for name in ("inputs", "old", "new")}
        for place in places.values():
            place.mkdir()
        write_inputs(places["inputs"])
        for name, version in (("old", given.old), ("new", given.new)):
            run(source_of(version, Path(scratch)), places["inputs"], places[name], given.cases)
        for case in given.cases:
            written = {
                side: {path.relative_to(places[side]) for path in (places[side] / case).rglob("*.csv")}
                for side in ("old", "new")
            }
            for path in sorted(written["old"] ^ written["new"]):
                faults += 1
                print(f"{path}: written by one version only")
            for path in sorted(written["old"] & written["new"]):
                tables += 1
                for text in differences(places["old"] / path, places["new"] / path):
                    faults += 1
                    print(f"{path}: {text}")
    print(f"{tables} tables compared to {TOLERANCE:g}: {faults} differences")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
