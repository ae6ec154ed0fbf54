"""The long form: ``python tests/hostile/torture.py [kind ...]`` prints one table of counts.

Without ICQF_TORTURE=long, which ``make torture`` sets, the sizes are those of the tests. Ends with exit
code 1 when anything happened that may not happen.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from hostile import degenerate, inputs, kills, leaks, model_files, settings, terminal
from hostile.tally import Tally, size, table

SEED = 11


def kinds(folder: Path):
    return {
        "damaged": lambda: model_files.damaged(size(400, 100_000), SEED, folder),
        "forged": lambda: model_files.forgeries(size(400, 5_000), SEED, folder),
        "bombs": lambda: model_files.bombed(folder),
        "inputs": lambda: inputs.run(size(60, 5_000), SEED, folder),
        "workbooks": lambda: inputs.bombed(folder),
        "degenerate": lambda: degenerate.run(),
        "written": lambda: leaks.written(folder),
        "recovered": lambda: leaks.reconstruction(folder),
        "cells": lambda: leaks.cells_of_few(folder),
        "ages": lambda: leaks.lone_ages(),
        "settings": lambda: settings.run(folder),
        "escapes": lambda: terminal.run(folder),
        "kills": lambda: kills.run(size(5, 100), SEED, folder),
    }


def main(wanted: list[str]) -> int:
    found: list[Tally] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, work in kinds(Path(folder)).items():
            if not wanted or name in wanted:
                start = time.monotonic()
                done = work()
                found += [done]
                print(f"{name}: {time.monotonic() - start:.0f} s", file=sys.stderr)
    print(table(found))
    return int(any(tally.faults for tally in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
