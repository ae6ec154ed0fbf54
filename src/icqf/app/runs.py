"""Runs: one folder each, with the data, the options as ``config.toml``, and the results.

Whatever the app knows about a run stands in its folder, so that a closed tab or a server that ended loses
nothing.
"""

from __future__ import annotations

import json
import math
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
from icqf.io.study_files import FILES
from icqf.workflow.options import StudyOptions, read_config
from icqf.workflow.results_folder import ACCOUNT, files_in

ABOUT = "run.json"
CONFIG = "config.toml"
RESULTS = "results"
DATA = "data"
SCORES = "scores"
_HEAD = "# Repeat this run with: icqf fit --config config.toml --out NEW_FOLDER\n"
_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,80}")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_LONGEST = 100  # bytes of the name of a file
_LARGEST_JSON = 2**25
_LARGEST_CONFIG = 2**22
_MOST_ENTRIES = 20_000
# What a file that somebody else has written may raise.
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)
_CHUNK = 2**20


def safe_name(name: str, *, otherwise: str = "file") -> str:
    r"""Return a file's name that stays in its folder: no separators, controls or leading dots."""
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", name))[-1]
    kept = "".join(c if c.isalnum() or c in " ._-()+" else "" if not c.isprintable() else "_" for c in last)
    kept = kept.strip(" .")
    stem, dot, ending = kept.rpartition(".")
    if not dot:
        stem, ending = kept, ""
    stem = stem.encode("utf-8", "ignore")[:_LONGEST].decode("utf-8", "ignore").rstrip()
    kept = f"{stem or otherwise}{dot}{ending[:12]}"
    return f"_{kept}" if _RESERVED.fullmatch(kept) else kept or otherwise


def readable(text: str) -> str:
    """Return a text without what cannot be written as UTF-8."""
    return text.encode("utf-8", "replace").decode()


def free_place(wanted: Path) -> Path:
    """Return a place where nothing is yet: the one that is wanted, or its name with a number."""
    path, n = wanted, 1
    while os.path.lexists(path):
        n += 1
        path = wanted.with_name(f"{wanted.stem}-{n}{wanted.suffix}")
    return path


def _fault_in(folder: Path) -> str:
    """What is wrong with a folder: it holds something other than plain files and folders, or far too much."""
    folders, n = [str(folder)], 0
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    n += 1
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif not entry.is_file(follow_symlinks=False):
                        return f"{short(readable(entry.name))!r} is a link, or not a file"
        except FileNotFoundError:  # a fit that is under way has moved it
            continue
        except OSError as error:
            return f"its folder cannot be read ({error.strerror})"
        if n > _MOST_ENTRIES:
            return "its folder holds too many files"
    return ""


def _json_in(path: Path) -> Any:
    """The content of a JSON file, which is neither a link nor very large."""
    flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, os.O_RDONLY | flags), "rb") as stream:
        if os.fstat(stream.fileno()).st_size > _LARGEST_JSON:
            raise ValueError("too large")
        return json.loads(stream.read(_LARGEST_JSON))


def _account_in(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = _json_in(path)
    model, rows, warned = found["model"], found["rows"], found.get("warnings", [])
    numbers = [model["n_components"], model["beta"], rows["fitted"], found["items"]]
    whole = all(isinstance(each, int | float) and math.isfinite(float(each)) for each in numbers)
    texts = [model["chosen_by"], model.get("choice", ""), *(warned if isinstance(warned, list) else [None])]
    if not whole or not all(isinstance(each, str) for each in texts):
        raise TypeError
    return found


@dataclass(frozen=True)
class Run:
    """One run: its folder, and what is known of it."""

    folder: Path

    @property
    def id(self) -> str:
        """The name of the folder."""
        return self.folder.name

    @property
    def about(self) -> dict[str, str]:
        """The run's title, when it was begun, and the run it was made from."""
        try:
            return self._about()
        except _UNREADABLE:
            return {"title": self.id, "created": "", "of": ""}

    def _about(self) -> dict[str, str]:
        found = _json_in(self.folder / ABOUT)
        about = {"title": found["title"], "created": found["created"], "of": found.get("of", "")}
        if not all(isinstance(text, str) for text in about.values()):
            raise TypeError
        datetime.fromisoformat(about["created"]).astimezone(UTC)
        return {
            "title": short(readable(about["title"])),
            "created": about["created"],
            "of": readable(about["of"]),
        }

    @property
    def damage(self) -> str:
        """What is wrong with the run's folder; empty where it can be used.

        A run of somebody else may hold links that lead anywhere, and is then neither read nor written to.
        """
        fault = _fault_in(self.folder)
        if fault:
            return fault
        try:
            self._about()
        except _UNREADABLE:
            return f"{ABOUT} cannot be read"
        if os.path.lexists(self.results / ACCOUNT):
            try:
                _account_in(self.results / ACCOUNT)
            except _UNREADABLE:
                return f"its account of the results, {ACCOUNT}, cannot be read"
        return ""

    def require_whole(self) -> None:
        """Refuse a run whose folder is damaged, or holds links."""
        damage = self.damage
        if damage:
            raise InputError(
                f"This run is damaged: {damage}.",
                code="damaged",
                remedy=f"Repair its folder {self.folder}, or remove the run.",
            )

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
        return os.path.isfile(self.results / ACCOUNT)

    @property
    def account(self) -> dict[str, Any]:
        """What ``provenance.json`` says of the results; refused where it says nothing of a model."""
        try:
            return _account_in(self.results / ACCOUNT)
        except _UNREADABLE:
            raise InputError(
                f"{self.id}: the account of the results, {ACCOUNT}, cannot be read.",
                code="no-account",
                remedy="Make a new run from it, and fit that.",
            ) from None

    @property
    def options(self) -> StudyOptions:
        """The options of ``config.toml``; refused where they name files outside the run's folder."""
        if os.path.isfile(self.config) and self.config.stat().st_size > _LARGEST_CONFIG:
            raise InputError(f"{CONFIG}: the file is too large to be one of settings.")
        options = StudyOptions.of(read_config(self.config))
        for name in FILES:
            path = getattr(options, name)
            if path is not None and not path.resolve().is_relative_to(self.folder.resolve()):
                raise InputError(
                    f"The settings of this run name a file outside its folder ({name}: {path}); the app "
                    "reads only a run's own files.",
                    code="outside",
                    remedy="Open the file as a new run, or use icqf fit --config.",
                )
        return options

    @property
    def settings(self) -> str:
        """The text of ``config.toml``, as far as it can be shown."""
        try:
            with self.config.open("rb") as stream:
                return stream.read(_LARGEST_CONFIG).decode("utf-8", "replace")
        except OSError:
            return ""

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
        path = free_place(place / safe_name(name, otherwise=otherwise))
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            shutil.copyfileobj(stream, out, _CHUNK)
        return path

    def outputs(self) -> list[tuple[str, int]]:
        """The files of the results with their sizes, those in folders included."""
        places = {name: self.results / name for name in files_in(self.results) if name == readable(name)}
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
            raise InputError(f"{str(folder)!r}: this is not a folder ({str(error).rstrip('.')}).") from None
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise InputError(f"{self.folder}: nothing can be written into this folder. Choose another one.")

    def __iter__(self) -> Iterator[Run]:
        """The runs, the latest first."""
        try:
            names = os.listdir(self.folder)
        except OSError as error:
            raise InputError(
                f"{self.folder}: the folder of runs cannot be read ({error.strerror})."
            ) from None
        found = [run for name in names if (run := self.get(name)) is not None]
        return iter(sorted(found, key=lambda run: (run.about["created"], run.id), reverse=True))

    def get(self, id: str) -> Run | None:
        """Return the run of this id; None where there is none."""
        folder = self.folder / id
        if not _ID.fullmatch(id) or os.path.islink(folder) or not os.path.lexists(folder / ABOUT):
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
        run.describe(title=short(readable(title)), created=now.isoformat(timespec="milliseconds"), of=of)
        return run

    def again(self, run: Run, **changes: Any) -> Run:
        """Make a new run from the data and options of another, some of these changed."""
        run.require_whole()
        options = run.options
        if not (run.folder / DATA).is_dir():
            raise InputError(
                "The files of this run are missing, so no new run can be made from it.",
                code="no-data",
                remedy="Open the file again.",
            )
        new = self.begin(run.about["title"], of=run.id)
        try:
            shutil.copytree(run.folder / DATA, new.folder / DATA, symlinks=True)
            moved = {
                name: new.folder / path.resolve().relative_to(run.folder.resolve())
                for name in FILES
                if (path := getattr(options, name)) is not None
            }
            new.save(replace(options, **moved, **changes))
        except BaseException:
            self.remove(new)
            raise
        return new

    def remove(self, run: Run) -> None:
        """Remove a run with its data and results."""
        try:
            shutil.rmtree(run.folder)
        except (OSError, RecursionError) as error:
            reason = getattr(error, "strerror", None) or "its folders are nested too deeply"
            raise InputError(
                f"{run.folder}: the run cannot be removed ({reason}).",
                code="not-removed",
                remedy="Remove its folder by hand.",
            ) from None
