"""A folder that a coordinator and several sites share, and the files that they exchange in it.

Every file is a zip of one JSON text and plain arrays (`icqf.io.archive`), written whole or not at all, and
none is ever changed: the folder is the record of a fit, from which everybody can go on after a break.

======================================  ===============================================================
``site-hospital-a.zip``                 a site says that it takes part, and how many participants it has
``round-0001-request.zip``              what the coordinator asks of every site
``round-0001-hospital-a.zip``           what a site answers
``finished.zip``                        the coordinator needs no more
======================================  ===============================================================
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import time
import unicodedata
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from icqf.errors import InputError
from icqf.io.archive import (
    DAMAGE,
    MOST_BYTES,
    array_bytes,
    array_of,
    brief,
    json_bytes,
    packed,
    parsed_json,
    unpacked,
)
from icqf.io.atomic import write_bytes

_HEADER = "message.json"
_FORMAT, _VERSION = "icqf-federate", 1
_MOST_MEMBERS = 40
_FIRST_LOOK, _LAST_LOOK = 0.02, 2.0  # seconds between two looks into the folder: at first, and later on
SETTLED = 30.0  # seconds after which a file that cannot be read is not on its way any more
REQUEST = "request"


@dataclass(frozen=True, eq=False)
class Message:
    """What one file says: plain values, and arrays by name."""

    header: dict[str, Any]
    arrays: dict[str, Any]
    digest: str = ""  # of the file


def write_message(path: Path, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> str:
    """Write a file of the exchange, whole or not at all; returns its digest.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from icqf.io.exchange import read_message, write_message
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "note.zip")
    ...     _ = write_message(path, {"site": "A"}, {"sums": [1.0, 2.0]})
    ...     read_message(path).arrays["sums"]
    array([1., 2.])
    """
    head = {"format": _FORMAT, "version": _VERSION, **header}
    members = {_HEADER: json_bytes(head)}
    members |= {f"{name}.npy": array_bytes(array) for name, array in arrays.items()}
    content = packed(members)
    write_bytes(path, content)
    return hashlib.sha256(content).hexdigest()


def read_message(path: Path) -> Message:
    """Read a file of the exchange; anything else is refused with one sentence, and nothing in it is run."""
    try:
        content = _content(path)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = unpacked(archive, first=_HEADER, most=_MOST_MEMBERS)
        header = parsed_json(members.pop(_HEADER))
        if header.pop("format", None) != _FORMAT or header.pop("version", None) != _VERSION:
            raise ValueError("it is another kind of zip file, or of another version of icqf")
        arrays = {name.removesuffix(".npy"): array_of(name, each) for name, each in members.items()}
    except DAMAGE as error:
        raise InputError(
            f"{path.name}: this is no file of a federated fit, or it is damaged ({brief(error)}).",
            code="exchange-damage",
            remedy="Copy it again, or remove it and let whoever wrote it start again.",
        ) from None
    return Message(header, arrays, hashlib.sha256(content).hexdigest())


def _content(path: Path) -> bytes:
    """The bytes of a file, of which no more are read than a message may have."""
    if not path.is_file():
        raise ValueError("it is a folder, a pipe or a device")
    with path.open("rb") as stream:
        content = stream.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"it has more than the {MOST_BYTES // 2**20} MB of any message")
    return content


def file_name(site: str) -> str:
    """The name of a site as it stands in the names of files.

    Examples
    --------
    >>> file_name("Hôpital A, Genève")
    'hopital-a-geneve'
    """
    plain = unicodedata.normalize("NFKD", site).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


@dataclass(frozen=True)
class Exchange:
    """The shared folder.

    Attributes
    ----------
    folder : Path
    patience : float
        Seconds that are waited for a file.
    settled : float
        Seconds after which a file that cannot be read is taken for a damaged one: until then it may be on its
        way.
    """

    folder: Path
    patience: float = 3600.0
    settled: float = SETTLED

    def announcement(self, site: str) -> Path:
        return self.folder / f"site-{file_name(site)}.zip"

    def request(self, number: int) -> Path:
        return self.folder / f"round-{number:04d}-{REQUEST}.zip"

    def answer(self, number: int, site: str) -> Path:
        return self.folder / f"round-{number:04d}-{file_name(site)}.zip"

    @property
    def end(self) -> Path:
        return self.folder / "finished.zip"

    def require(self) -> None:
        """Refuse a folder that is not there."""
        if not self.folder.is_dir():
            raise InputError(f"{os.fspath(self.folder)}: there is no such folder; make it, or name another.")

    def wait_for(
        self, path: Path, late: Callable[[float], InputError], *, or_else: Path | None = None
    ) -> Message | None:
        """The content of a file, as soon as it is there; None where `or_else` is there and it is not.

        After `patience` seconds without it, what `late` makes of the seconds is raised.
        """
        began, pause = time.monotonic(), _FIRST_LOOK
        seen: tuple[int, int] | None = None
        since = began
        while True:
            if path.exists():
                try:
                    return read_message(path)
                except InputError:
                    found, now = _look(path), time.monotonic()
                    if found != seen:
                        seen, since = found, now
                    elif now - since > self.settled:
                        raise
            elif or_else is not None and or_else.exists():
                return None
            if time.monotonic() - began > self.patience:
                raise late(self.patience)
            time.sleep(pause)
            pause = min(pause * 1.2, _LAST_LOOK)


def _look(path: Path) -> tuple[int, int] | None:
    """Size and time of a file, which change while it is being copied."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns
