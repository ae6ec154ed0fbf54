"""Places for results, looked at before any work is done: what cannot be written is said at once."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from icqf.data.questionnaire import Questionnaire
from icqf.errors import InputError, listed
from icqf.io.atomic import FULL, no_room, recover
from icqf.io.formats import PARQUET, WRITABLE
from icqf.io.write import require_writer
from icqf.workflow.contents import ACCOUNT, files_in

_LEAST = 2**18  # bytes of a small study's results
_EACH = 100  # bytes of each participant's scores, and of each item's loadings
_EACH_IN_REPORT = 1000  # bytes of each item in the report


def refuse_results(folder: Path, questionnaire: Questionnaire, *, format: str, force: bool) -> None:
    """Refuse a place for the results of a fit: also a format without a writer, and a disk without room."""
    refuse_existing(folder, force=force)
    require_writer(folder / f"scores.{format}", format)
    size = _LEAST + _EACH * questionnaire.n_participants + _EACH_IN_REPORT * questionnaire.n_items
    if shutil.disk_usage(folder.parent).free < size:
        raise no_room(folder)


def refuse_existing(folder: Path, *, force: bool) -> None:
    """Refuse a place for a folder of results that cannot or may not be written to."""
    _refuse_dangling(folder)
    recover(folder)
    _refuse_parent(folder)
    if folder.exists():
        _refuse_content(folder, force=force)


def _refuse_content(folder: Path, *, force: bool) -> None:
    if not folder.is_dir():
        raise InputError(f"{folder}: this is a file; name a folder for the results.")
    present = {*files_in(folder)}
    if not any(folder.iterdir()):
        return
    foreign = sorted(present - _own_files(folder))
    if foreign:
        raise InputError(
            f"{folder}: the folder holds files that are not results of an earlier run ({listed(foreign)}). "
            "Choose another folder, or move them."
        )
    if not force:
        raise InputError(
            f"{folder}: the folder already holds results.",
            code="exists",
            remedy="Choose another one, or give force=True to replace them.",
        )


def _own_files(folder: Path) -> set[str]:
    try:
        account = json.loads((folder / ACCOUNT).read_text(encoding="utf-8"))
        return {str(name) for name in account["outputs"]} if account["program"] == "icqf" else set()
    except (OSError, ValueError, KeyError, TypeError):
        return set()


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
    if path.exists() and not force:
        raise InputError(
            f"{path}: the file is already there.",
            code="exists",
            remedy="Choose another one, or give force=True to replace it.",
        )


def refuse_page(page: Path, *, force: bool) -> None:
    """Refuse a place for a page and what stands beside it, in a folder that may have to be made."""
    folder = page.parent
    _refuse_dangling(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: this is a file; name a folder for the results.")
    _refuse_parent(next(path for path in (page, *page.parents) if path.parent.exists()))
    if page.exists():  # of an earlier run, which went through
        refuse_file(page, force=force)


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


def _is_of(path: Path, read: Path) -> bool:
    """Whether a file is the one that is read, under whatever name, or would be part of a folder that is."""
    if read.is_dir():
        return path.suffix.lower() in PARQUET and path.resolve().is_relative_to(read.resolve())
    return path.exists() and read.exists() and path.samefile(read)


def _refuse_dangling(path: Path) -> None:
    if path.is_symlink() and not path.exists():
        raise InputError(
            f"{path}: this is a link to {str(path.readlink())!r}, where there is nothing. Remove the link, "
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
