"""The folder of results: checked before any work, written whole or not at all, with its provenance."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from icqf.data.questionnaire import Questionnaire
from icqf.errors import Advice, InputError, listed
from icqf.io.atomic import FULL, new_folder, no_room, recover, write_bytes
from icqf.io.formats import PARQUET, WRITABLE
from icqf.io.provenance import fingerprints_of, versions
from icqf.io.write import require_writer

PROVENANCE = "provenance.json"


def files_in(folder: Path) -> list[str]:
    """The files and links of a folder of results and of folders in it, by their place in it."""
    inside = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return sorted(path.relative_to(folder).as_posix() for path in inside)


_LEAST = 2**18  # bytes of a small study's results
_EACH = 100  # bytes of each participant's scores, and of each item's loadings
_EACH_IN_REPORT = 1000  # bytes of each item in the report

# These take turns in one folder, where the second finds the fits of the first.
TOGETHER = frozenset({"stability", "diagnosis"})


def refuse_results(
    folder: Path,
    tool: str,
    questionnaire: Questionnaire,
    *,
    format: str,
    force: bool,
    inputs: Iterable[Path | None] = (),
) -> None:
    """Refuse a place for the results of a fit: also a format without a writer, and a disk without room."""
    refuse_existing(folder, tool, force=force, inputs=inputs)
    require_writer(folder / f"scores.{format}", format)
    size = _LEAST + _EACH * questionnaire.n_participants + _EACH_IN_REPORT * questionnaire.n_items
    if shutil.disk_usage(folder.parent).free < size:
        raise no_room(folder)


def refuse_existing(folder: Path, tool: str, *, force: bool, inputs: Iterable[Path | None] = ()) -> None:
    """Refuse a place for a folder of results that cannot or may not be written to.

    What is there is replaced only if it is nothing but results of the same `tool`, and none of it is read.
    """
    if _is_taken(folder, inputs):
        _refuse_foreign(folder, tool)
        if not force:
            raise InputError(
                f"{folder}: the folder already holds results.",
                code="exists",
                remedy=Advice("Choose another one, or add {force=} to replace them.", force=True),
            )


def refuse_shared(folder: Path, tool: str, *, inputs: Iterable[Path | None] = ()) -> None:
    """Refuse a place for results that are written one by one, unless it is new, empty or of the same `tool`.

    Such a folder may also hold what its user has put there.
    """
    if _is_taken(folder, inputs, made=True):
        kinds = {tool, tool_of(folder)}
        if len(kinds) > 1 and not kinds <= TOGETHER:
            _refuse_foreign(folder, tool)


def _is_taken(folder: Path, inputs: Iterable[Path | None], *, made: bool = False) -> bool:
    """Whether a folder is there and holds something; refused where it cannot be one, or is read from.

    With `made`, the folders above it are made if need be.
    """
    _refuse_dangling(folder)
    recover(folder)
    _refuse_parent(
        next(each for each in (folder, *folder.parents) if each.parent.exists()) if made else folder
    )
    if not folder.exists():
        return False
    if not folder.is_dir():
        raise InputError(f"{folder}: this is a file; name a folder for the results.")
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
            f"{folder}: the folder holds files that are not results of an earlier run ({listed(foreign)}). "
            "Choose another folder, or move them."
        )
    kind = tool_of(folder)
    if kind != tool:
        found = f"results of icqf {kind}" if kind else "results of an earlier version"
        raise InputError(
            f"{folder}: the folder holds {found}, and icqf {tool} replaces only its own. "
            "Choose another folder.",
            code="other-results",
        )


def _refuse_read(folder: Path, inputs: Iterable[Path | None]) -> None:
    """Refuse a folder that holds something that is read, under whatever name."""
    inside, held = folder.resolve(), {_identity(folder / name) for name in files_in(folder)}
    for path in inputs:
        if path is None:
            continue
        parts = (each for each in path.rglob("*") if each.suffix.lower() in PARQUET) if path.is_dir() else ()
        for each in (path, *parts):
            places = (each.resolve(), each.parent.resolve() / each.name)
            if any(place.is_relative_to(inside) for place in places) or _identity(each) in held - {None}:
                raise InputError(
                    f"{folder}: the folder holds {each.name!r}, which is read and would be lost.",
                    code="input",
                    remedy="Choose another folder.",
                )


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino


def tool_of(folder: Path) -> str:
    """The command whose results a folder holds; empty where it does not say."""
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
    """Refuse a place for a file that cannot or may not be written to, and that of one of the `inputs`."""
    if path.is_dir():
        raise InputError(f"{path}: this is a folder; name a file.")
    if any(_is_of(path, each) for each in inputs if each is not None):
        raise InputError(
            f"{path}: this is one of the files that are read, which would be lost.",
            code="input",
            remedy="Choose another place.",
        )
    _refuse_dangling(path)
    _refuse_parent(path)
    if path.exists():
        _refuse_part(path)
    if path.exists() and not force:
        raise exists(path)


def exists(path: Path) -> InputError:
    """What is said of a file that would be replaced."""
    return InputError(
        f"{path}: the file is already there.",
        code="exists",
        remedy=Advice("Choose another one, or add {force=} to replace it.", force=True),
    )


def refuse_table(
    path: Path, *, force: bool, format: str | None = None, inputs: Iterable[Path | None] = ()
) -> None:
    """Refuse a file that may not be written, or not as a table."""
    refuse_file(path, force=force, inputs=inputs)
    ending = format or path.suffix.lower().lstrip(".")
    if ending not in WRITABLE:
        raise InputError(
            f"{path}: a table is written as {', '.join(WRITABLE)}; give the name one of these endings."
        )
    require_writer(path, ending)


def _refuse_part(path: Path) -> None:
    """Refuse to replace one file of a folder of results, which would then not be what its account says."""
    place = path.parent.resolve() / path.name
    for folder in place.parents[:2]:
        if place.relative_to(folder).as_posix() in _own_files(folder):
            raise InputError(
                f"{path}: this file belongs to the results in {str(folder.name)!r}.",
                code="input",
                remedy="Choose another place.",
            )


def _is_of(path: Path, read: Path) -> bool:
    """Whether a file is the one that is read, under whatever name, or would be part of a folder that is."""
    if read.is_dir():
        return path.suffix.lower() in PARQUET and path.resolve().is_relative_to(read.resolve())
    return path.exists() and read.exists() and path.samefile(read)


def _refuse_dangling(path: Path) -> None:
    if path.is_symlink() and not path.exists():
        raise InputError(
            f"{path}: this is a link to {str(path.readlink())!r}, which does not exist. Remove the link, "
            "or choose another place."
        )


def _refuse_parent(path: Path) -> None:
    """Refuse a place whose folder is not there or takes no file, found out by a file without a name."""
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {str(path.parent)!r} to put it in.")
    try:
        with tempfile.TemporaryFile(dir=path.parent) as stream:
            stream.write(bytes(1))
    except OSError as error:
        if error.errno in FULL:
            raise no_room(path) from None
        raise InputError(
            f"{path}: nothing can be written into {str(path.parent)!r} ({error.strerror}). Choose "
            "another place."
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
    """Write a folder of results, which afterwards holds all of them or is as it was.

    Parameters
    ----------
    folder : Path
        Where. An existing folder of results is replaced only with `force`, and only if they are of the same
        `tool`; any other folder that holds something is refused.
    tool : str
        The command whose results these are.
    write : callable
        Writes the files into the folder that it is given.
    account : callable
        Gives the content of ``provenance.json``, from the names of all files.
    force : bool
        Whether to replace earlier results.
    inputs : iterable of Path
        What is read; a folder that holds any of it is refused.

    Returns
    -------
    list of str
        Names of the files.
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
    """Mark a folder as that of results that are written one by one, and give their account at the end.

    Parameters
    ----------
    folder, tool, inputs
        As in `write_folder`. A folder of the same `tool` is continued.
    account : callable
        Gives the content of ``provenance.json`` but for the names of the files.
    """
    refuse_shared(folder, tool, inputs=inputs)
    folder.mkdir(parents=True, exist_ok=True)
    write_bytes(folder / PROVENANCE, _text(tool, {"program": "icqf", "outputs": [PROVENANCE]}).encode())
    yield
    outputs = sorted({*(name for name in files_in(folder) if "/" not in name), PROVENANCE})
    write_bytes(folder / PROVENANCE, _text(tool, {**provenance(), "outputs": outputs}).encode())


def _text(tool: str, provenance: Mapping[str, Any]) -> str:
    """The account as JSON; the tool by which its results are known stands where every reader finds it."""
    known = {"program": "icqf", "tool": tool}
    return (
        json.dumps(
            known | {k: v for k, v in provenance.items() if k not in known}, indent=2, ensure_ascii=False
        )
        + "\n"
    )


def tool_provenance(
    *,
    files: Iterable[Path],
    options: Mapping[str, Any],
    started: datetime,
    notes: Iterable[str] = (),
    result: Mapping[str, Any],
) -> Callable[[list[str]], dict[str, Any]]:
    """Return what gives the account of a tool's results; no participant, folder or user is named in it."""

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

    return provenance
