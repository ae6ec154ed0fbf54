"""What a results page was made with: the commit, and the defaults that it depends on.

They are stored in ``defaults.json`` next to the pages, one record for each table that a command writes, such
as ``stability-help`` or ``calibration-seeds``; a test compares them with today's defaults. A page whose
defaults have changed is made again, or says so at its top, which
``python -m icqf_experiments.made_with docs/results`` writes.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
import subprocess
import sys
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from icqf import ICQF, ICQFCV
from icqf.baselines import parallel_analysis
from icqf.data.settings import BETAS
from icqf.models import LongitudinalICQF, LongitudinalICQFCV
from icqf.resampling.folds import ROW_BLOCKS
from icqf.workflow.evaluation import Design

FILE = "defaults.json"
BEFORE = "Made before some of today's defaults:"
# Where and how something runs, not what it computes.
RUN = (
    "callback",
    "checkpoint",
    "command",
    "commit",
    "engine",
    "estimator",
    "n_jobs",
    "names",
    "quick",
    "random_state",
)
_FITS = ("ICQF.*", "folds.ROW_BLOCKS")
_SEARCH = (*_FITS, "BETAS", "ICQFCV.*")
_METHODS = (*_FITS, "Design.*", "ICQFCV.search_tol", "ICQFCV.thorough", "parallel_analysis.*")
_PARTS = (*_FITS, "BETAS", "ICQFCV.n_splits", "ICQFCV.search_tol", "ICQFCV.thorough", "ICQFCV.n_halves")
# The defaults that a page depends on; those that its experiment sets itself are not among them.
DEPENDS: Mapping[str, tuple[str, ...]] = {
    "calibration": _SEARCH,
    "consensus": _PARTS,
    "diagnosis": _METHODS,
    "loadings": _METHODS,
    "longitudinal": ("LongitudinalICQF.*", "LongitudinalICQFCV.*"),
    "questionnaires": _SEARCH,
    "reading": _SEARCH,
    "replication": _METHODS,
    "rules": ("parallel_analysis.*",),
    "selection": _PARTS,
    "stability": _METHODS,
    "table1": (*_FITS, "parallel_analysis.*"),
    "weights": _PARTS,
}


def commit() -> str:
    """Return the short commit of this code, with "+ changes" if it was edited; empty outside a checkout."""
    here = Path(__file__).parent
    code = [":(top)src", ":(top)experiments/src"]

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=here, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        number = git("rev-parse", "--short", "HEAD")
        edited = number and git("status", "--porcelain", "--", *code)
    except OSError:  # git is not installed
        return ""
    return f"{number} + changes" if edited else number


def defaults() -> dict[str, Any]:
    """Return today's defaults of models, searches and experiments, by name."""
    owners = (ICQF, ICQFCV, LongitudinalICQF, LongitudinalICQFCV, parallel_analysis)
    found: dict[str, Any] = {"BETAS": BETAS, "folds.ROW_BLOCKS": ROW_BLOCKS}
    for owner in owners:
        for name, parameter in inspect.signature(owner).parameters.items():
            if parameter.default is not inspect.Parameter.empty:
                found[f"{owner.__name__}.{name}"] = parameter.default
    for field in dataclasses.fields(Design):
        if field.default is not dataclasses.MISSING:
            found[f"Design.{field.name}"] = field.default
    kept = {
        name: "infinity" if value == math.inf else value  # JSON has no number for it
        for name, value in found.items()
        if name.rpartition(".")[2] not in RUN
    }
    plain: dict[str, Any] = json.loads(json.dumps(kept, allow_nan=False))
    return plain


def page_of(table: str) -> str:
    """Return the name of the page that shows a table, without its ending.

    Examples
    --------
    >>> page_of("calibration-planning-model"), page_of("table1")
    ('calibration', 'table1')
    """
    return table.partition("-")[0]


def record(folder: Path, table: str, *, command: str, made_with: str) -> None:
    """Store the commit and the defaults with which a command has made a table in this folder."""
    wanted = DEPENDS[page_of(table)]
    own = {
        name: value for name, value in defaults().items() if any(fnmatchcase(name, each) for each in wanted)
    }
    records = {**read(folder), table: {"commit": made_with, "command": command, "defaults": own}}
    lines = [
        f"{json.dumps(name)}: {json.dumps(made, allow_nan=False)}" for name, made in sorted(records.items())
    ]
    (folder / FILE).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def read(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the records of a folder by table; none if nothing was recorded."""
    file = folder / FILE
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else {}


def commit_of(folder: Path, table: str) -> str:
    """Return the commit with which a table in this folder was made; empty if that is not known."""
    return str(read(folder).get(table, {}).get("commit", ""))


def changes(made: Mapping[str, Any], today: Mapping[str, Any]) -> list[str]:
    """Return in words which of the recorded defaults have changed.

    Examples
    --------
    >>> changes({"ICQF.tol": 0.001, "ICQF.beta": 0.1}, {"ICQF.tol": 0.0001, "ICQF.beta": 0.1})
    ['`ICQF.tol` was 0.001 and is now 0.0001']
    """
    return [
        f"`{name}` was {_shown(then)} and is now {_shown(today[name]) if name in today else 'gone'}"
        for name, then in sorted(made.items())
        if name not in today or today[name] != then
    ]


def notes(folder: Path, page: str) -> list[str]:
    """Return the paragraphs that a page needs because defaults have changed since its tables were made."""
    today = defaults()
    by_words: dict[tuple[str, str], list[str]] = {}
    for table, made in read(folder).items():
        changed = changes(made["defaults"], today)
        if page_of(table) == page and changed:
            by_words.setdefault((made["commit"], "; ".join(changed)), []).append(table)
    return [
        f"{BEFORE} {', '.join(tables)}, with commit {number}. {words}."
        for (number, words), tables in by_words.items()
    ]


def complaints(folder: Path) -> list[str]:
    """Return a sentence for each page that does not say what it was made with, or that defaults changed."""
    found = []
    records = read(folder)
    for file in sorted(folder.glob("*.md")):
        if file.stem == "index":
            continue
        text, page = file.read_text(encoding="utf-8"), file.stem
        own = {table: made for table, made in records.items() if page_of(table) == page}
        if not own:
            found.append(f"{file.name} has no record in {FILE} of the commit and defaults it was made with.")
        for table, made in own.items():
            if made["commit"] not in text:
                found.append(f"{file.name} does not name {made['commit']}, the commit of {table}.")
        commands = ", ".join(f"`{each}`" for each in dict.fromkeys(made["command"] for made in own.values()))
        found += [
            f"{file.name} does not say: “{note}” Run {commands} again, or write this at the top of the page "
            "with `python -m icqf_experiments.made_with docs/results`."
            for note in notes(folder, page)
            if note not in text
        ]
    return found


def mark(folder: Path) -> None:
    """Write at the top of each page which of its defaults have changed, or remove what is no longer true."""
    for file in sorted(folder.glob("*.md")):
        text = file.read_text(encoding="utf-8")
        parts = [part for part in text.split("\n\n") if not part.startswith(BEFORE)]
        marked = "\n\n".join([parts[0], *notes(folder, file.stem), *parts[1:]])
        if marked != text:
            file.write_text(marked, encoding="utf-8")


def _shown(value: Any) -> str:
    if isinstance(value, list):
        whole = len(value) > 3 and value == [value[0] + i for i in range(len(value))]
        return f"{value[0]} to {value[-1]}" if whole else ", ".join(map(_shown, value)) or "none"
    if value is None or isinstance(value, bool):
        return "on" if value else "none" if value is None else "off"
    return value if isinstance(value, str) else f"{value:g}"


def main(folders: Iterable[str]) -> None:
    """Mark the pages of these folders."""
    for folder in folders:
        mark(Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
