"""Runs: one folder each, with the data, the options in ``config.toml``, and the results.

All that the app knows about a run is in its folder, so that nothing is lost when a tab is closed or the
server ends.
"""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from icqf.app.offers import OFFERS, Offer
from icqf.data.settings import Settings, options_in, parts_of
from icqf.errors import InputError, short
from icqf.io.atomic import write_bytes
from icqf.io.study_files import FILES
from icqf.workflow.options import StudyOptions, read_config
from icqf.workflow.results_folder import PROVENANCE, files_in, safe_name

ABOUT = "run.json"
CONFIG = "config.toml"
RESULTS = "results"
DATA = "data"
SCORES = "scores"
FURTHER = "analyses"
_HEAD = "# Repeat this with: icqf {tool} --config config.toml --out NEW_FOLDER\n"
_UNREAD = "unread"  # exists in the folder of an upload that could not be read
_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,80}")
_LARGEST_JSON = 2**25
_LARGEST_CONFIG = 2**22
_MOST_ENTRIES = 20_000
# Errors that a file written by somebody else may raise.
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)
_CHUNK = 2**20
Kind = TypeVar("Kind", bound=Settings)


def readable(text: str) -> str:
    """Return a text with characters that UTF-8 cannot encode replaced."""
    return text.encode("utf-8", "replace").decode()


def free_place(wanted: Path) -> Path:
    """Return a path that does not exist yet: the wanted one, or one with a number added."""
    path, n = wanted, 1
    while os.path.lexists(path):
        n += 1
        path = wanted.with_name(f"{wanted.stem}-{n}{wanted.suffix}")
    return path


def _folder_damage(folder: Path) -> str:
    """Return what is wrong with a folder: links or special files, or too many files; empty if nothing."""
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
        except FileNotFoundError:  # moved by a running fit
            continue
        except OSError as error:
            return f"its folder cannot be read ({error.strerror})"
        if n > _MOST_ENTRIES:
            return "its folder holds too many files"
    return ""


def _read_json(path: Path) -> Any:
    """Read a JSON file; links and very large files are refused."""
    flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, os.O_RDONLY | flags), "rb") as stream:
        if os.fstat(stream.fileno()).st_size > _LARGEST_JSON:
            raise ValueError("too large")
        return json.loads(stream.read(_LARGEST_JSON))


def _read_provenance(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = _read_json(path)
    model, rows, warned = found["model"], found["rows"], found.get("warnings", [])
    numbers = [model["n_components"], model["beta"], rows["fitted"], found["items"]]
    whole = all(isinstance(each, int | float) and math.isfinite(float(each)) for each in numbers)
    texts = [model["chosen_by"], model.get("choice", ""), *(warned if isinstance(warned, list) else [None])]
    if not whole or not all(isinstance(each, str) for each in texts):
        raise TypeError
    return found


@dataclass(frozen=True)
class Job:
    """A command with its options and its results, in a folder of its own inside that of a run."""

    folder: Path

    @property
    def id(self) -> str:
        """The name of the folder."""
        return self.folder.name

    @property
    def run(self) -> Run:
        """The run that it belongs to, whose folder holds all files that it may read."""
        return Run(self.folder.parent.parent)

    @property
    def tool(self) -> str:
        """The command."""
        return self.id.rpartition("-")[0]

    @property
    def damage(self) -> str:
        """What is wrong with the run's folder; empty if it can be used."""
        return self.run.damage

    def require_whole(self) -> None:
        """Refuse a run whose folder is damaged or contains links."""
        damage = self.damage
        if damage:
            raise InputError(
                f"This run is damaged: {damage}.",
                code="damaged",
                remedy=f"Repair its folder {self.run.folder}, or remove the run.",
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
        return os.path.isfile(self.results / PROVENANCE)

    @property
    def settings(self) -> str:
        """The text of ``config.toml``."""
        try:
            with self.config.open("rb") as stream:
                return stream.read(_LARGEST_CONFIG).decode("utf-8", "replace")
        except OSError:
            return ""

    def read_options(self, kind: type[Kind]) -> Kind:
        """Return the options in ``config.toml``; files outside the run's folder are refused."""
        if os.path.isfile(self.config) and self.config.stat().st_size > _LARGEST_CONFIG:
            raise InputError(f"{CONFIG}: the file is too large for a file of settings.")
        options = kind.of(read_config(self.config, kind))
        for name, declared in options_in(kind).items():
            for path in parts_of(getattr(options, name)) if declared.file else ():
                if isinstance(path, Path) and not path.resolve().is_relative_to(self.run.folder.resolve()):
                    raise InputError(
                        f"The settings of this run name a file outside its folder ({name}: {path}); the app "
                        "reads only a run's own files.",
                        code="outside",
                        remedy="Open the file as a new run, or use icqf fit --config.",
                    )
        return options

    @property
    def options(self) -> Settings:
        """The options of the command."""
        return self.read_options(OFFERS[self.tool].kind)

    def save(self, options: Settings) -> None:
        """Write the options."""
        head = _HEAD.format(tool=self.tool)
        write_bytes(self.config, (head + options.to_toml(folder=self.folder)).encode())

    def outputs(self) -> list[tuple[str, int]]:
        """The result files with their sizes, those in subfolders included."""
        places = {name: self.results / name for name in files_in(self.results) if name == readable(name)}
        return [(name, path.stat().st_size) for name, path in places.items() if self.holds(path)]

    def holds(self, path: Path) -> bool:
        """Whether a path is a file inside this folder, and not a link out of it."""
        return path.is_file() and path.resolve().is_relative_to(self.folder.resolve())


@dataclass(frozen=True)
class Run(Job):
    """One run, described by its folder."""

    @property
    def run(self) -> Run:
        return self

    @property
    def tool(self) -> str:
        return "fit"

    @property
    def about(self) -> dict[str, str]:
        """The run's title, when it was started, and the run it was made from."""
        try:
            return self._about()
        except _UNREADABLE:
            return {"title": self.id, "created": "", "of": ""}

    def _about(self) -> dict[str, str]:
        found = _read_json(self.folder / ABOUT)
        about = {"title": found["title"], "created": found["created"], "of": found.get("of", "")}
        if not all(isinstance(text, str) for text in about.values()):
            raise TypeError
        datetime.fromisoformat(about["created"]).astimezone(UTC)
        return about | {"title": short(readable(about["title"])), "of": readable(about["of"])}

    @property
    def damage(self) -> str:
        """What is wrong with the run's folder; empty if it can be used.

        Somebody else's run may contain links to other places; it is then neither read nor written to.
        """
        fault = _folder_damage(self.folder)
        if fault:
            return fault
        try:
            self._about()
        except _UNREADABLE:
            return f"{ABOUT} cannot be read"
        if os.path.lexists(self.results / PROVENANCE):
            try:
                _read_provenance(self.results / PROVENANCE)
            except _UNREADABLE:
                return f"{RESULTS}/{PROVENANCE} cannot be read"
        return ""

    @property
    def unread(self) -> bool:
        """Whether this is only an upload that could not be read, and not a run."""
        return os.path.lexists(self.folder / _UNREAD) and not self.done

    def mark_unread(self, unread: bool) -> None:
        """Store whether the uploaded file could be read."""
        if unread:
            write_bytes(self.folder / _UNREAD, b"")
        else:
            (self.folder / _UNREAD).unlink(missing_ok=True)

    @property
    def provenance(self) -> dict[str, Any]:
        """The content of ``provenance.json`` of the results."""
        try:
            return _read_provenance(self.results / PROVENANCE)
        except _UNREADABLE:
            raise InputError(
                f"{self.id}: {RESULTS}/{PROVENANCE} cannot be read.",
                code="no-provenance",
                remedy="Make a new run from it, and fit it.",
            ) from None

    @property
    def options(self) -> StudyOptions:
        """The options in ``config.toml``; files outside the run's folder are refused."""
        return self.read_options(StudyOptions)

    @property
    def starts_from(self) -> str:
        """What was opened: the answers of a "study", "files" of several questionnaires, or a "model"."""
        answers = self.options.answers
        return (
            "files" if os.path.isdir(answers) else "model" if answers.suffix.lower() == ".icqf" else "study"
        )

    @property
    def analyses(self) -> list[FurtherAnalysis]:
        """Further analyses, latest first."""
        folder = self.folder / FURTHER
        names = os.listdir(folder) if folder.is_dir() and not folder.is_symlink() else []
        found = [each for name in names if (each := self.analysis(name)) is not None]
        return sorted(found, key=lambda each: (each.created, each.id), reverse=True)

    def analysis(self, id: str) -> FurtherAnalysis | None:
        """Return the further analysis with this id, or None."""
        folder = self.folder / FURTHER / id
        tool, _, number = id.rpartition("-")
        known = tool in OFFERS and number.isdecimal() and folder.is_dir() and not folder.is_symlink()
        return FurtherAnalysis(folder) if known else None

    @property
    def offers(self) -> dict[str, Offer]:
        """The further analyses that are possible now, by command."""
        try:
            here = {self.starts_from} | ({"results"} if self.done else set())
            here |= {"visits"} if here == {"study"} or self.options.visit else set()
        except InputError:  # its settings cannot be read
            return {}
        return {tool: offer for tool, offer in OFFERS.items() if here & set(offer.needs)}

    def begin(self, tool: str, options: Settings) -> FurtherAnalysis:
        """Make the folder of a further analysis."""
        place = self.folder / FURTHER
        place.mkdir(exist_ok=True, mode=0o700)
        number = next(n for n in count(1) if not os.path.lexists(place / f"{tool}-{n}"))
        new = FurtherAnalysis(place / f"{tool}-{number}")
        new.folder.mkdir(mode=0o700)
        new.save(options)
        return new

    def describe(self, **about: str) -> None:
        """Store the run's title, date and origin."""
        write_bytes(self.folder / ABOUT, json.dumps(self.about | about, ensure_ascii=False).encode())

    def add(self, name: str, stream: BinaryIO, *, folder: str = DATA, otherwise: str = "file") -> Path:
        """Store an uploaded file under a safe and unused name, and return its path."""
        place = self.folder / folder
        place.mkdir(exist_ok=True, mode=0o700)
        path = free_place(place / safe_name(name, otherwise=otherwise))
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            shutil.copyfileobj(stream, out, _CHUNK)
        return path

    def scored(self) -> list[str]:
        """The tables of scores of new participants."""
        folder = self.folder / SCORES
        return sorted(path.name for path in folder.iterdir() if self.holds(path)) if folder.is_dir() else []


@dataclass(frozen=True)
class FurtherAnalysis(Job):
    """A further analysis of a run."""

    @property
    def offer(self) -> Offer:
        """How the app describes it."""
        return OFFERS[self.tool]

    @property
    def done(self) -> bool:
        """Whether there are results; where these are written one by one, the versions come last."""
        try:
            return "versions" in _read_json(self.results / PROVENANCE)
        except _UNREADABLE:
            return False

    @property
    def created(self) -> float:
        """When it was started, in seconds."""
        try:
            return self.config.stat().st_mtime
        except OSError:
            return 0.0

    @property
    def pages(self) -> list[str]:
        """The HTML pages among the results, the main one first."""
        names = [name for name, _ in self.outputs() if name.endswith(".html")]
        return sorted(names, key=lambda name: (name != self.offer.page, name))


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
        except (ValueError, RuntimeError) as error:  # an impossible path, or ~ of an unknown user
            raise InputError(f"{str(folder)!r}: this is not a folder ({str(error).rstrip('.')}).") from None
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise InputError(f"{self.folder}: this folder is not writable. Choose another one.")

    def __iter__(self) -> Iterator[Run]:
        """The runs, latest first."""
        try:
            names = os.listdir(self.folder)
        except OSError as error:
            raise InputError(
                f"{self.folder}: the folder of runs cannot be read ({error.strerror})."
            ) from None
        runs = [run for name in names if (run := self.get(name)) is not None]
        return iter(sorted(runs, key=lambda run: (run.about["created"], run.id), reverse=True))

    def get(self, id: str) -> Run | None:
        """Return the run with this id, or None."""
        folder = self.folder / id
        if not _ID.fullmatch(id) or os.path.islink(folder) or not os.path.lexists(folder / ABOUT):
            return None
        return Run(folder)

    def begin(self, title: str, *, of: str = "") -> Run:
        """Make the folder of a new run, readable by its owner only."""
        now = datetime.now(UTC)
        plain = Path(title).stem.lower().encode("ascii", "ignore").decode()
        stem = re.sub(r"[^0-9a-z]+", "-", plain).strip("-")
        folder = self.folder / f"{now:%Y%m%d-%H%M%S}-{stem[:24] or 'run'}-{secrets.token_hex(2)}"
        folder.mkdir(mode=0o700)
        run = Run(folder)
        run.describe(title=short(readable(title)), created=now.isoformat(timespec="milliseconds"), of=of)
        return run

    def again(self, run: Run, **changes: Any) -> Run:
        """Make a new run with the data and options of another, with changes."""
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

    def remove(self, run: Job) -> None:
        """Remove a run with its data and results, or a further analysis."""
        try:
            shutil.rmtree(run.folder)
        except (OSError, RecursionError) as error:
            reason = getattr(error, "strerror", None) or "its folders are nested too deeply"
            raise InputError(
                f"{run.folder}: this folder cannot be removed ({reason}).",
                code="not-removed",
                remedy="Remove it by hand.",
            ) from None
