"""Atomic writing: files and folders are made in a temporary folder and moved to their place at the end.

The temporary folder ``.NAME.XXXXXXXX.partial`` is next to the target; it holds a mark of ours and the ``new``
content. A file replaces an earlier one by one rename. A folder needs two: the earlier one is moved into the
temporary folder as ``old``, then the new one is moved in. Whenever the program ends, one folder is whole:

- before the first rename, the earlier folder is in place;
- between the two, the earlier folder is ``old``, and `recover`, which every later writer calls first, puts it
  back;
- after the second, the new folder is in place, and `recover` removes the temporary folder.

A writer holds a lock on its folder while it lives, so that the next writer to the same place recognises and
removes what a dead one left behind. A folder without our mark is never touched, whatever its name.
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

_NEW, _OLD, _MARK = "new", "old", "icqf.txt"
_MARK_TEXT = "Unfinished results of icqf. The next run that writes to the same place removes this folder.\n"
_WRITTEN: dict[Path, tuple[int, int] | None] = {}

FULL = frozenset({errno.ENOSPC, errno.EFBIG, *([errno.EDQUOT] if hasattr(errno, "EDQUOT") else [])})


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file completely or not at all, replacing an earlier one."""
    with new_file(path) as place:
        place.write_bytes(content)


@contextmanager
def new_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a file to write, with the same extension, which replaces `path` on success."""
    target = Path(path)
    _sweep(target)
    with _report_full_disk(target), _own_folder(target) as own:
        place = own / f"new{target.suffix}"
        place.touch(exist_ok=False)
        yield place
        _to_disk(place)
        _remember(target, place)
        os.replace(place, target)


@contextmanager
def new_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a folder to write into, which replaces `folder` on success."""
    target = Path(folder).resolve()
    _sweep(target)
    with _report_full_disk(target), _own_folder(target) as own:
        place = own / _NEW
        place.mkdir()
        yield place
        for path in place.rglob("*"):
            if not path.is_dir():
                _to_disk(path)
        _remember(Path(folder), place)
        _move_in(place, target, own / _OLD)


def recover(folder: str | os.PathLike[str]) -> None:
    """Repair what a crash may have left of `folder`: restore it, or remove what was unfinished."""
    _sweep(Path(folder).resolve())


def written() -> list[Path]:
    """Return the files and folders that this process has written and that still exist."""
    return [path for path, known in _WRITTEN.items() if identity(path) == known]


def forget_written() -> None:
    """Clear the list of written files and folders."""
    _WRITTEN.clear()


def no_room(path: Path) -> InputError:
    """Return the error for a full disk."""
    return InputError(
        f"{path.name}: the disk is full, so it was not written; an earlier version is unchanged.",
        code="full",
        remedy="Free some space, or choose another place.",
    )


@contextmanager
def _report_full_disk(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise no_room(target) from error
        raise


@contextmanager
def _own_folder(target: Path) -> Iterator[Path]:
    """Make a marked folder next to `target`, locked for as long as this process lives."""
    own = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    own.mkdir(mode=0o700)
    lock = _lock(own)
    try:
        (own / _MARK).write_text(_MARK_TEXT, encoding="ascii")  # after the lock, so that nobody removes it
        yield own
    finally:
        with suppress(OSError):
            _clear(own)
        _unlock(lock)


def _sweep(target: Path) -> None:
    """Repair what killed writers to this place left; a locked folder belongs to a live one."""
    name = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{8}}\.partial")
    with suppress(OSError):
        for own in [each for each in target.parent.iterdir() if name.fullmatch(each.name) and _is_ours(each)]:
            lock = _lock(own)
            if lock is None and os.name != "nt":  # Windows has no locks, and nothing is removed there
                continue
            with suppress(OSError):
                if _is_folder(own / _OLD) and (own / _NEW).exists():  # between the two renames
                    (own / _OLD).rename(target)  # fails if something else is there by now
                if lock is not None:
                    _clear(own)
            _unlock(lock)


def _is_ours(own: Path) -> bool:
    mark = own / _MARK
    with suppress(OSError, ValueError):
        plain = _is_folder(own) and not mark.is_symlink() and mark.stat().st_size == len(_MARK_TEXT)
        return plain and mark.read_text(encoding="ascii") == _MARK_TEXT
    return False


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _clear(own: Path) -> None:
    """Remove a temporary folder, its mark last; keep an earlier folder that could not be put back."""
    if (own / _OLD).exists() and (own / _NEW).exists():
        return
    for path in own.iterdir():
        if path.name != _MARK:
            shutil.rmtree(path) if _is_folder(path) else path.unlink()
    (own / _MARK).unlink(missing_ok=True)
    own.rmdir()


def _remember(target: Path, place: Path) -> None:
    """Record what is moved to `target`, unless it is part of an unfinished folder."""
    if not any(part.startswith(".") and part.endswith(".partial") for part in target.parts[:-1]):
        _WRITTEN[target] = identity(place)


def identity(path: Path) -> tuple[int, int] | None:
    """Return what a file is, whatever its name; None if it cannot be looked at."""
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino


def _lock(place: Path) -> int | None:
    """Lock a folder until this process ends; None if that is not possible."""
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


def _unlock(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)


def _move_in(place: Path, target: Path, aside: Path) -> None:
    if target.exists():
        target.rename(aside)
    try:
        place.rename(target)
    except BaseException:
        if aside.exists() and not target.exists():
            aside.rename(target)
        raise


def _to_disk(path: Path) -> None:
    with path.open("r+b") as stream:
        os.fsync(stream.fileno())
