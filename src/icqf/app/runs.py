"""Runs: one folder each, with the data, the options as ``config.toml``, and the results.

Whatever the app knows about a run stands in its folder, so that a closed tab or a server that ended loses
nothing.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from icqf.errors import InputError, short
from icqf.io.atomic import write_bytes
from icqf.workflow.contents import ACCOUNT, files_in
from icqf.workflow.options import FILES, StudyOptions, read_config

ABOUT = "run.json"
CONFIG = "config.toml"
RESULTS = "results"
DATA = "data"
SCORES = "scores"
_HEAD = "# Repeat this run with: icqf fit --config config.toml --out NEW_FOLDER\n"
_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,80}")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_LONGEST = 80
_CHUNK = 2**20


def safe_name(name: str, *, otherwise: str = "file") -> str:
    r"""Return a file's name that stays in its folder: no separators, controls or leading dots.

    Examples
    --------
    >>> safe_name("../../etc/passwd"), safe_name("C:\\study\\answers 2.csv"), safe_name("\u202ecsv.exe")
    ('passwd', 'answers 2.csv', 'csv.exe')
    """
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", name))[-1]
    kept = "".join(c if c.isalnum() or c in " ._-()+" else "" if not c.isprintable() else "_" for c in last)
    kept = kept.strip(" .")
    stem, dot, ending = kept.rpartition(".")
    if not dot:
        stem, ending = kept, ""
    kept = f"{stem[:_LONGEST].rstrip()}{dot}{ending[:12]}" if stem else otherwise + dot + ending[:12]
    return f"_{kept}" if _RESERVED.fullmatch(kept) else kept or otherwise


@dataclass(frozen=True)
class Run:
    """One run: its folder, and what is known of it."""

    folder: Path

    @property
    def id(self) -> str:
        """The name of the folder."""
        return self.folder.name

    @property
    def about(self) -> dict[str, Any]:
        """The run's title, when it was begun, and the run it was made from."""
        try:
            found = json.loads((self.folder / ABOUT).read_text(encoding="utf-8"))
            return {"title": str(found["title"]), "created": str(found["created"]), "of": found.get("of", "")}
        except (OSError, ValueError, KeyError, TypeError):
            return {"title": self.id, "created": "", "of": ""}

    @property
    def config(self) -> Path:
        """The file with the options."""
        return self.folder / CONFIG

    @property
    def results(self) -> Path:
        """The folder of results."""
        return self.folder / RESULTS

    @property
    def done(self) -> bool:
        """Whether there are results."""
        return (self.results / ACCOUNT).is_file()

    @property
    def account(self) -> dict[str, Any]:
        """What ``provenance.json`` says of the results; refused where it says nothing of a model."""
        try:
            found: dict[str, Any] = json.loads((self.results / ACCOUNT).read_text(encoding="utf-8"))
            model, rows = found["model"], found["rows"]
            numbers = model["n_components"], model["beta"], rows["fitted"], found["items"]
            if not all(isinstance(each, int | float) for each in numbers):
                raise TypeError
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            raise InputError(
                f"{self.id}: the account of the results, {ACCOUNT}, cannot be read.",
                code="no-account",
                remedy="Make a new run from it, and fit that.",
            ) from None
        return found

    @property
    def options(self) -> StudyOptions:
        """The options of ``config.toml``."""
        return StudyOptions.of(read_config(self.config))

    def save(self, options: StudyOptions) -> None:
        """Write the options."""
        write_bytes(self.config, (_HEAD + options.to_toml(folder=self.folder)).encode())

    def describe(self, **about: str) -> None:
        """Keep what is known of the run besides its options."""
        write_bytes(self.folder / ABOUT, json.dumps(self.about | about, ensure_ascii=False).encode())

    def add(self, name: str, stream: BinaryIO, *, folder: str = DATA, otherwise: str = "file") -> Path:
        """Keep a file of the user's under a name that is safe and its own; return its place."""
        place = self.folder / folder
        place.mkdir(exist_ok=True, mode=0o700)
        wanted = place / safe_name(name, otherwise=otherwise)
        path, n = wanted, 1
        while path.exists():
            n += 1
            path = wanted.with_name(f"{wanted.stem}-{n}{wanted.suffix}")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            shutil.copyfileobj(stream, out, _CHUNK)
        return path

    def outputs(self) -> list[tuple[str, int]]:
        """The files of the results with their sizes, those in folders included."""
        places = {name: self.results / name for name in files_in(self.results)}
        return [(name, path.stat().st_size) for name, path in places.items() if self._holds(path)]

    def scored(self) -> list[str]:
        """The tables of scores of new participants."""
        folder = self.folder / SCORES
        return sorted(path.name for path in folder.iterdir() if self._holds(path)) if folder.is_dir() else []

    def _holds(self, path: Path) -> bool:
        """Whether a path is a file of this run; a link in a run of somebody else may lead anywhere."""
        return path.is_file() and path.resolve().is_relative_to(self.folder.resolve())


class Runs:
    """The runs in a folder that the user chose."""

    def __init__(self, folder: Path) -> None:
        try:
            self.folder = folder.expanduser().absolute()
            if self.folder.is_file():
                raise InputError(f"{self.folder}: this is a file; name a folder for the runs.")
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise InputError(f"{folder}: the folder cannot be made ({error.strerror}).") from None
        except (ValueError, RuntimeError) as error:  # a path that cannot be, and ~ of an unknown user
            raise InputError(f"{str(folder)!r}: this is no folder ({str(error).rstrip('.')}).") from None
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise InputError(f"{self.folder}: nothing can be written into this folder. Choose another one.")

    def __iter__(self) -> Iterator[Run]:
        """The runs, the latest first."""
        found = [run for path in self.folder.iterdir() if (run := self.get(path.name)) is not None]
        return iter(sorted(found, key=lambda run: (run.about["created"], run.id), reverse=True))

    def get(self, id: str) -> Run | None:
        """Return the run of this id; None where there is none."""
        folder = self.folder / id
        if not _ID.fullmatch(id) or folder.is_symlink() or not (folder / ABOUT).is_file():
            return None
        return Run(folder)

    def begin(self, title: str, *, of: str = "") -> Run:
        """Make the folder of a new run, which only its user may read."""
        now = datetime.now(UTC)
        plain = Path(title).stem.lower().encode("ascii", "ignore").decode()
        stem = re.sub(r"[^0-9a-z]+", "-", plain).strip("-")
        folder = self.folder / f"{now:%Y%m%d-%H%M%S}-{stem[:24] or 'run'}-{secrets.token_hex(2)}"
        folder.mkdir(mode=0o700)
        run = Run(folder)
        run.describe(title=short(title), created=now.isoformat(timespec="milliseconds"), of=of)
        return run

    def again(self, run: Run, **changes: Any) -> Run:
        """Make a new run from the data and options of another, some of these changed."""
        new = self.begin(run.about["title"], of=run.id)
        shutil.copytree(run.folder / DATA, new.folder / DATA)
        options = run.options
        inside = {name: getattr(options, name) for name in FILES}
        moved = {
            name: new.folder / path.relative_to(run.folder)
            for name, path in inside.items()
            if path is not None and path.is_relative_to(run.folder)
        }
        new.save(replace(options, **moved, **changes))
        return new

    def remove(self, run: Run) -> None:
        """Remove a run with its data and results."""
        shutil.rmtree(run.folder)
