"""The results folder: checked before any work, and written atomically with its provenance."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from icqf.data.questionnaire import Questionnaire
from icqf.errors import Advice, InputError, listed
from icqf.io.atomic import FULL, identity, new_folder, no_room, recover, write_bytes
from icqf.io.formats import PARQUET, WRITABLE
from icqf.io.provenance import fingerprints_of, versions
from icqf.io.write import require_writer

PROVENANCE = "provenance.json"
DECIMALS = 6  # scores are solved for to about 1e-5


def safe_name(name: str, *, otherwise: str = "file") -> str:
    """Return a file name without separators, control characters or leading dots."""
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", name))[-1]
    kept = "".join(c if c.isalnum() or c in " ._-()+" else "" if not c.isprintable() else "_" for c in last)
    kept = kept.strip(" .")
    stem, dot, ending = kept.rpartition(".")
    if not dot:
        stem, ending = kept, ""
    stem = stem.encode("utf-8", "ignore")[:_LONGEST].decode("utf-8", "ignore").rstrip()
    kept = f"{stem or otherwise}{dot}{ending[:12]}"
    return f"_{kept}" if _RESERVED.fullmatch(kept) else kept or otherwise


def files_in(folder: Path) -> list[str]:
    """Return the files and links in a results folder and its subfolders, as relative paths."""
    inside = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return sorted(path.relative_to(folder).as_posix() for path in inside)


_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_LONGEST = 100  # bytes of a file name
_LEAST = 2**18  # bytes of a small study's results
_EACH = 100  # bytes of each participant's scores, and of each item's loadings
_EACH_IN_REPORT = 1000  # bytes of each item in the report

# These commands may share a folder, and use each other's fits.
SHARING = frozenset({"stability", "diagnosis"})


def refuse_results(
    folder: Path,
    tool: str,
    questionnaire: Questionnaire,
    *,
    format: str,
    force: bool,
    inputs: Iterable[Path | None] = (),
) -> None:
    """Refuse a folder for the results of a fit; also a format without a writer, and a full disk."""
    refuse_existing(folder, tool, force=force, inputs=inputs)
    require_writer(folder / f"scores.{format}", format)
    size = _LEAST + _EACH * questionnaire.n_participants + _EACH_IN_REPORT * questionnaire.n_items
    if shutil.disk_usage(folder.parent).free < size:
        raise no_room(folder)


def refuse_existing(folder: Path, tool: str, *, force: bool, inputs: Iterable[Path | None] = ()) -> None:
    """Refuse a results folder that cannot or may not be written to.

    An existing folder is replaced only if it contains nothing but results of the same `tool`, and no inputs.
    """
    if _is_taken(folder, inputs):
        _refuse_foreign(folder, tool)
        if not force:
            raise InputError(
                f"{folder}: the folder already contains results.",
                code="exists",
                remedy=Advice("Choose another one, or add {force=} to replace them.", force=True),
            )


def refuse_shared(folder: Path, tool: str, *, inputs: Iterable[Path | None] = ()) -> None:
    """Refuse a folder for results written one by one, unless it is new, empty or of the same `tool`.

    Such a folder may also contain files of the user.
    """
    if _is_taken(folder, inputs, made=True):
        kinds = {tool, tool_of(folder)}
        if len(kinds) > 1 and not kinds <= SHARING:
            _refuse_foreign(folder, tool)


def _is_taken(folder: Path, inputs: Iterable[Path | None], *, made: bool = False) -> bool:
    """Whether a folder exists and is not empty; impossible folders, and those with inputs, are refused.

    With `made`, parent folders may be missing.
    """
    _refuse_dangling(folder)
    recover(folder)
    _refuse_parent(
        next(each for each in (folder, *folder.parents) if each.parent.exists()) if made else folder
    )
    if not folder.exists():
        return False
    if not folder.is_dir():
        raise InputError(f"{folder}: this is a file; choose a folder for the results.")
    _refuse_read(folder, inputs)
    return any(folder.iterdir())


def _refuse_foreign(folder: Path, tool: str) -> None:
    empty = {
        f"{each.relative_to(folder)}/"
        for each in folder.rglob("*")
        if each.is_dir() and not any(each.iterdir())
    }
    foreign = sorted({*files_in(folder), *empty} - _own_files(folder))
    if foreign:
        raise InputError(
            f"{folder}: the folder contains files that are not results of an earlier run "
            f"({listed(foreign)}). Choose another folder, or move them."
        )
    kind = tool_of(folder)
    if kind != tool:
        what = f"results of icqf {kind}" if kind else "results of an earlier version"
        raise InputError(
            f"{folder}: the folder contains {what}, and icqf {tool} replaces only its own. "
            "Choose another folder.",
            code="other-results",
        )


def _refuse_read(folder: Path, inputs: Iterable[Path | None]) -> None:
    """Refuse a folder that contains an input file, also under another name."""
    inside, held = folder.resolve(), {identity(folder / name) for name in files_in(folder)}
    for path in inputs:
        if path is None:
            continue
        parts = (each for each in path.rglob("*") if each.suffix.lower() in PARQUET) if path.is_dir() else ()
        for each in (path, *parts):
            places = (each.resolve(), each.parent.resolve() / each.name)
            if any(place.is_relative_to(inside) for place in places) or identity(each) in held - {None}:
                raise InputError(
                    f"{folder}: the folder contains the input {each.name!r}, which would be lost.",
                    code="input",
                    remedy="Choose another folder.",
                )


def tool_of(folder: Path) -> str:
    """Return the command whose results a folder contains; empty if unknown."""
    return str(_provenance_in(folder).get("tool", ""))


def _own_files(folder: Path) -> set[str]:
    outputs = _provenance_in(folder).get("outputs")
    return {str(name) for name in outputs} if isinstance(outputs, list) else set()


def _provenance_in(folder: Path) -> dict[str, Any]:
    try:
        provenance = json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return provenance if isinstance(provenance, dict) and provenance.get("program") == "icqf" else {}


def refuse_file(path: Path, *, force: bool, inputs: Iterable[Path | None] = ()) -> None:
    """Refuse a file that cannot or may not be written to, or that is one of the `inputs`."""
    if path.is_dir():
        raise InputError(f"{path}: this is a folder; choose a file.")
    if any(_is_of(path, each) for each in inputs if each is not None):
        raise InputError(
            f"{path}: this is an input file, which would be lost.",
            code="input",
            remedy="Choose another file.",
        )
    _refuse_dangling(path)
    _refuse_parent(path)
    if path.exists():
        _refuse_part(path)
    if path.exists() and not force:
        raise exists(path)


def exists(path: Path) -> InputError:
    """Return the error for a file that would be replaced."""
    return InputError(
        f"{path}: the file already exists.",
        code="exists",
        remedy=Advice("Choose another one, or add {force=} to replace it.", force=True),
    )


def refuse_table(
    path: Path, *, force: bool, format: str | None = None, inputs: Iterable[Path | None] = ()
) -> None:
    """Refuse a file that cannot be written as a table."""
    refuse_file(path, force=force, inputs=inputs)
    ending = format or path.suffix.lower().lstrip(".")
    if ending not in WRITABLE:
        raise InputError(f"{path}: tables are written as {', '.join(WRITABLE)}; use one of these endings.")
    require_writer(path, ending)


def _refuse_part(path: Path) -> None:
    """Refuse to replace a single file of a results folder, which would contradict its provenance."""
    place = path.parent.resolve() / path.name
    for folder in place.parents[:2]:
        if place.relative_to(folder).as_posix() in _own_files(folder):
            raise InputError(
                f"{path}: this file belongs to the results in {str(folder.name)!r}.",
                code="input",
                remedy="Choose another file.",
            )


def _is_of(path: Path, read: Path) -> bool:
    """Whether a file is an input, also under another name, or would be inside an input folder."""
    if read.is_dir():
        return path.suffix.lower() in PARQUET and path.resolve().is_relative_to(read.resolve())
    return path.exists() and read.exists() and path.samefile(read)


def _refuse_dangling(path: Path) -> None:
    if path.is_symlink() and not path.exists():
        raise InputError(
            f"{path}: this is a link to {str(path.readlink())!r}, which does not exist. Remove the link, "
            "or choose another path."
        )


def _refuse_parent(path: Path) -> None:
    """Refuse a path whose folder does not exist or is not writable, tested with a temporary file."""
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder {str(path.parent)!r} does not exist.")
    try:
        with tempfile.TemporaryFile(dir=path.parent) as stream:
            stream.write(bytes(1))
    except OSError as error:
        if error.errno in FULL:
            raise no_room(path) from None
        raise InputError(
            f"{path}: the folder {str(path.parent)!r} is not writable ({error.strerror}). Choose another one."
        ) from None


def write_folder(
    folder: Path,
    tool: str,
    write: Callable[[Path], None],
    provenance: Callable[[list[str]], Mapping[str, Any]],
    *,
    force: bool = False,
    inputs: Iterable[Path | None] = (),
) -> list[str]:
    """Write a results folder, and return the names of its files; if anything fails, the folder is unchanged.

    `tool` is the command; `write` writes the files into the folder it is given; `provenance` returns the
    content of ``provenance.json`` from the names of all files. An existing results folder is replaced only
    with `force`, and only if its results are of the same `tool`; any other folder that is not empty, or that
    contains an input, is refused.
    """
    inputs = tuple(inputs)
    refuse_existing(folder, tool, force=force, inputs=inputs)
    with new_folder(folder) as place:
        write(place)
        names = sorted([*(path.name for path in place.iterdir()), PROVENANCE])
        outputs = sorted([*files_in(place), PROVENANCE])
        (place / PROVENANCE).write_text(_text(tool, provenance(outputs)), encoding="utf-8")
        refuse_existing(folder, tool, force=force, inputs=inputs)
    return names


@contextmanager
def shared_folder(
    folder: Path,
    tool: str,
    provenance: Callable[[], Mapping[str, Any]],
    *,
    inputs: Iterable[Path | None] = (),
) -> Iterator[None]:
    """Mark a folder for results written one by one, and write their provenance at the end.

    A folder of the same `tool` is continued; `provenance` returns the content of ``provenance.json`` without
    the names of the files.
    """
    refuse_shared(folder, tool, inputs=inputs)
    folder.mkdir(parents=True, exist_ok=True)
    write_bytes(folder / PROVENANCE, _text(tool, {"program": "icqf", "outputs": [PROVENANCE]}).encode())
    yield
    outputs = sorted({*(name for name in files_in(folder) if "/" not in name), PROVENANCE})
    write_bytes(folder / PROVENANCE, _text(tool, {**provenance(), "outputs": outputs}).encode())


def _text(tool: str, provenance: Mapping[str, Any]) -> str:
    """Return the provenance as JSON, with the program and the tool first."""
    known = {"program": "icqf", "tool": tool}
    return (
        json.dumps(
            known | {k: v for k, v in provenance.items() if k not in known}, indent=2, ensure_ascii=False
        )
        + "\n"
    )


def write_tool_folder(
    folder: str | os.PathLike[str],
    tool: str,
    write: Callable[[Path], None],
    files: Iterable[Path],
    result: Mapping[str, Any],
    notes: Iterable[str] = (),
    *,
    options: Mapping[str, Any],
    started: datetime | None = None,
    force: bool = False,
    config: Path | None = None,
) -> list[str]:
    """Write the results folder of a tool that read `files`; its provenance names no participant or user."""
    files, started = tuple(files), started or datetime.now(UTC)

    def provenance(outputs: list[str]) -> dict[str, Any]:
        return {
            "versions": versions(),
            "started": started.isoformat(timespec="seconds"),
            "options": dict(options),
            "inputs": fingerprints_of(files),
            "notes": list(notes),
            "result": dict(result),
            "outputs": outputs,
        }

    return write_folder(Path(folder), tool, write, provenance, force=force, inputs=(*files, config))
