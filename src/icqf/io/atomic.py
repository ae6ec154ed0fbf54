"""Writing that is whole or not there: everything is made beside its place and moved in at the end.

A file is moved in by one rename, which replaces an earlier file. A folder cannot be renamed over another, so
that replacing one takes two renames: the earlier folder is set aside as ``.NAME.old``, and the new one moved
in. Whatever ends the program, one whole folder is left:

- before the first rename, the earlier folder is in its place;
- between the two, there is nothing in the place and the earlier folder is ``.NAME.old``, from where
  `recover`, which every later writer calls first, puts it back;
- after the second, the new folder is in its place, and `recover` removes ``.NAME.old``.

An unfinished file or folder is hidden and ends in ``.partial``. Its writer holds a lock on it while it lives,
so that the next writer to the same place can tell what a dead one left behind, and removes it.
"""

from __future__ import annotations

import errno
import importlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from icqf.errors import InputError

FULL = frozenset({errno.ENOSPC, errno.EFBIG, *([errno.EDQUOT] if hasattr(errno, "EDQUOT") else [])})


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file, whole or not at all, over an earlier one.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_bytes(pathlib.Path(folder, "note.txt"), b"done")
    ...     pathlib.Path(folder, "note.txt").read_text()
    'done'
    """
    with new_file(path) as place:
        place.write_bytes(content)


@contextmanager
def new_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a file to write, of the same ending, which takes the place of `path` when all went well."""
    target = Path(path)
    _sweep(target, target.stem, target.suffix)
    with _full_disk_is_said(target):
        place, lock = _begun(target, target.stem, target.suffix, folder=False)
        try:
            yield place
            _to_disk(place)
            os.replace(place, target)
        finally:
            place.unlink(missing_ok=True)
            _let_go(lock)


@contextmanager
def new_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a folder to write into, which takes the place of `folder` when all went well."""
    target = Path(folder).resolve()
    recover(target)
    with _full_disk_is_said(target):
        place, lock = _begun(target, target.name, "", folder=True)
        try:
            yield place
            for path in place.rglob("*"):
                if not path.is_dir():
                    _to_disk(path)
            _move_in(place, target)
        finally:
            shutil.rmtree(place, ignore_errors=True)
            _let_go(lock)


def recover(folder: str | os.PathLike[str]) -> None:
    """Put right what a crash may have left of `folder`: restore it, or remove what it replaced or was new."""
    target = Path(folder).resolve()
    _sweep(target, target.name, "")
    aside = _aside(target)
    if aside.is_dir():
        if target.exists():
            shutil.rmtree(aside, ignore_errors=True)
        else:
            aside.rename(target)


def no_room(path: Path) -> InputError:
    """Return what is said when the disk is full."""
    return InputError(
        f"{path.name}: there is no room on the disk to write it, and what was there before is unchanged.",
        code="full",
        remedy="Make room, or choose another place.",
    )


@contextmanager
def _full_disk_is_said(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise no_room(target) from error
        raise


def _begun(target: Path, stem: str, suffix: str, *, folder: bool) -> tuple[Path, int | None]:
    """Make an unfinished file or folder, locked for as long as this process lives."""
    while True:
        place = target.with_name(f".{stem}.{secrets.token_hex(4)}.partial{suffix}")
        if folder:
            place.mkdir()
        else:
            place.touch(exist_ok=False)
        lock = _locked(place)
        # Another writer's sweep may have come between the two: then it is gone, and made again.
        if place.exists():
            return place, lock
        _let_go(lock)


def _sweep(target: Path, stem: str, suffix: str) -> None:
    """Remove what writers to this place left when they were killed; what is locked belongs to a live one."""
    ours = re.compile(rf"\.{re.escape(stem)}\.[0-9a-f]{{8}}\.partial{re.escape(suffix)}")
    with suppress(OSError):
        for left in [path for path in target.parent.iterdir() if ours.fullmatch(path.name)]:
            lock = _locked(left)
            if lock is not None:
                with suppress(OSError):
                    shutil.rmtree(left) if left.is_dir() else left.unlink()
                _let_go(lock)


def _locked(place: Path) -> int | None:
    """A lock on a file or folder, which ends with this process; None where there is none to be had."""
    try:
        fcntl = importlib.import_module("fcntl")
        descriptor = os.open(place, os.O_RDONLY)
    except (ImportError, OSError):  # not on Windows
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _let_go(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)


def _move_in(place: Path, target: Path) -> None:
    aside = _aside(target)
    if target.exists():
        target.rename(aside)
    try:
        place.rename(target)
    except BaseException:
        if aside.exists():
            aside.rename(target)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _aside(target: Path) -> Path:
    return target.with_name(f".{target.name}.old")


def _to_disk(path: Path) -> None:
    with path.open("r+b") as stream:
        os.fsync(stream.fileno())
