"""Where the time of a whole `icqf fit` goes: `python benchmarks/fit_stages.py OLD NEW`.

OLD and NEW are folders (checkouts) or git revisions. Both fit the demo with the command line's defaults, and
with the same penalties, as the grid has grown: in turn, each time in a process of its own on one thread.
Processor time is counted, as a busy machine changes it least, and of several runs the shortest counts, stage
by stage. Exits with 1 when OLD takes less than 1.5 times as long as NEW.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from compare import ONE_THREAD, ROOT, source_of

GOAL = 1.5
PENALTIES = ["0", "0.01", "0.05", "0.1", "0.2", "0.5", "1", "2"]
# By stage, where its work is called; places that a version does not have are passed over.
STAGES = {
    "reading": ["icqf.workflow.read:read_study"],
    "looking at the data": ["icqf.cli.commands.fit:announce"],
    "search and final fit": ["icqf.workflow.fit:ICQFCV.fit_transform", "icqf.workflow.fit:ICQFCV.solve"],
    "replication": ["icqf.workflow.fit:replication_probability"],
    "hidden answers": ["icqf.workflow.fit:predicted_hidden"],
    "what the report needs": ["icqf.workflow.results:build_report", "icqf.workflow.fit:analyse"],
    "page": ["icqf.workflow.naming:write_report"],
    "figures": ["icqf.workflow.naming:write_figures"],
    "Word and LaTeX": ["icqf.workflow.naming:write_paper_tables"],
}
REST = "imports and the rest"


def timed(stage: str, spent: dict[str, float], work: Any) -> Any:
    """A function that counts the processor time that it takes."""

    @functools.wraps(work)
    def counted(*args: Any, **options: Any) -> Any:
        clock = time.process_time()
        try:
            return work(*args, **options)
        finally:
            spent[stage] = spent.get(stage, 0.0) + time.process_time() - clock

    return counted


def one_run(folder: str) -> None:
    """Fit the demo in this process, and print the seconds of each stage as JSON."""
    import icqf
    from icqf.cli import main
    from icqf.datasets import demo_paths

    spent: dict[str, float] = {}
    for stage, places in STAGES.items():
        for place in places:
            module, _, path = place.partition(":")
            *owners, name = path.split(".")
            owner: Any = importlib.import_module(module)
            for each in owners:
                owner = getattr(owner, each)
            if hasattr(owner, name):
                setattr(owner, name, timed(stage, spent, getattr(owner, name)))
    answers, codebook = map(str, demo_paths())
    words = ["fit", answers, "--codebook", codebook, "--confounds", "age", "sex", "--out", f"{folder}/out"]
    words += ["--beta", *PENALTIES]
    sys.argv = ["icqf", *words]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
    spent[REST] = time.process_time() - sum(spent.values())
    print(json.dumps({"from": icqf.__file__, "spent": spent}))


def stages_of(source: Path) -> dict[str, float]:
    """Seconds of each stage of one run of a version."""
    environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(source)}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--one-run", folder]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{source}: the fit failed:\n{done.stderr[-2000:]}")
    told = json.loads(done.stdout.splitlines()[-1])
    if not Path(told["from"]).is_relative_to(source):
        raise SystemExit(f"{told['from']} was measured instead of {source}")
    return dict(told["spent"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", nargs="?", help="a folder or a git revision")
    parser.add_argument("new", nargs="?", default=str(ROOT), help="the same (default: this checkout)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--one-run", metavar="FOLDER", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one_run:
        one_run(given.one_run)
        return 0
    if given.old is None:
        parser.error("name the old version")
    with tempfile.TemporaryDirectory() as folder:
        sources = [source_of(given.old, Path(folder)), source_of(given.new, Path(folder))]
        runs: list[list[dict[str, float]]] = [[], []]
        for turn in range(given.repeats):
            for at in (0, 1) if turn % 2 == 0 else (1, 0):
                runs[at].append(stages_of(sources[at]))
    print(f"icqf fit of the demo, seconds of processor time, best of {given.repeats}")
    print(f"{'stage':<26}{'old':>8}{'new':>8}")
    for stage in (*STAGES, REST):
        old, new = (min(run.get(stage, 0.0) for run in side) for side in runs)
        print(f"{stage:<26}{old:>8.2f}{new:>8.2f}")
    old, new = (min(sum(run.values()) for run in side) for side in runs)
    verdict = "reached" if old >= GOAL * new else "NOT reached"
    print(f"{'all of it':<26}{old:>8.2f}{new:>8.2f}\n{old / new:.2f} times as fast (goal {GOAL}) {verdict}")
    return 0 if old >= GOAL * new else 1


if __name__ == "__main__":
    sys.exit(main())
