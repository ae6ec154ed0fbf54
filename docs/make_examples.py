"""Runs the examples and keeps what they print and draw in examples/output: `python docs/make_examples.py`.

The site shows these files; tests/test_examples.py runs every example again and compares.
"""

from __future__ import annotations

import contextlib
import io
import runpy
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
OUTPUT = EXAMPLES / "output"


def examples() -> list[Path]:
    return sorted(EXAMPLES.glob("*.py"))


def run(path: Path, folder: Path) -> str:
    """What an example prints; its picture is written into `folder`, which must be there."""
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        runpy.run_path(str(path), run_name="__main__")
    return printed.getvalue()


if __name__ == "__main__":
    for example in [EXAMPLES / f"{name}.py" for name in sys.argv[1:]] or examples():
        (OUTPUT / f"{example.stem}.txt").write_text(run(example, OUTPUT), encoding="utf-8")
