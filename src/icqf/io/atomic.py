"""Writing that is whole or not there: everything is made beside its place and moved in at the end.

A file is moved in by one rename, which replaces an earlier file. A folder cannot be renamed over another, so
that replacing one takes two renames: the earlier folder is set aside as ``.NAME.old``, and the new one moved
in. Whatever ends the program, one whole folder is left:

- before the first rename, the earlier folder is in its place;
- between the two, there is nothing in the place and the earlier folder is ``.NAME.old``, from where
  `recover`, which every later writer calls first, puts it back;
- after the second, the new folder is in its place, and `recover` removes ``.NAME.old``.

An unfinished file or folder that a crash leaves behind is hidden and ends in ``.partial``.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
    place = target.with_name(f".{target.stem}.{secrets.token_hex(4)}.partial{target.suffix}")
    try:
        yield place
        _to_disk(place)
        os.replace(place, target)
    finally:
        place.unlink(missing_ok=True)


@contextmanager
def new_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a folder to write into, which takes the place of `folder` when all went well."""
    target = Path(folder).resolve()
    recover(target)
    place = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    place.mkdir()
    try:
        yield place
        for path in place.iterdir():
            _to_disk(path)
        _move_in(place, target)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def recover(folder: str | os.PathLike[str]) -> None:
    """Put right what a crash may have left of `folder`: restore it, or remove what it replaced."""
    target = Path(folder).resolve()
    aside = _aside(target)
    if aside.is_dir():
        if target.exists():
            shutil.rmtree(aside, ignore_errors=True)
        else:
            aside.rename(target)


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
