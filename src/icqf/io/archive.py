"""A zip of JSON and plain arrays, without pickle, the same bytes for the same content.

``members.json`` lists the other members with their SHA-256. A file that lacks a member, has one more or one
twice, or in which a single bit of a member differs, is refused; no more of it is unpacked than it may hold.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from icqf.errors import LONGEST_MESSAGE, readable

MEMBERS = "members.json"
# What a file may unpack to. Numbers take the memory they take on disk; JSON takes up to forty times as much.
MOST_BYTES = 100 * 2**20
_MOST_JSON = 8 * 2**20
_MOST_VALUES = 10**6
_DATE = (2020, 1, 1, 0, 0, 0)  # zip entries carry a date; a fixed one keeps the bytes the same
_NPY = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([^']+)', 'fortran_order': False, 'shape': \(([\d, ]*)\), \} *\n",
    re.DOTALL,
)
# What reading a damaged or made-up file can raise: no zip, broken compression, an entry marked as encrypted
# (RuntimeError), JSON nested without end (RecursionError, a RuntimeError), and anything of a wrong type.
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    RuntimeError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    MemoryError,
)


class ArchiveTooLarge(ValueError):
    """More than a file may hold."""


def packed(members: Mapping[str, bytes]) -> bytes:
    """The bytes of a file with these members.

    Examples
    --------
    >>> import io, zipfile
    >>> from icqf.io.archive import packed, unpacked
    >>> with zipfile.ZipFile(io.BytesIO(packed({"note.json": b"{}"}))) as archive:
    ...     unpacked(archive, first="note.json", most=2)
    {'note.json': b'{}'}
    """
    checksums = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    members = {MEMBERS: json_bytes(checksums), **members}
    words = sum(len(content) for name, content in members.items() if name.endswith(".json"))
    if sum(map(len, members.values())) > MOST_BYTES or words > _MOST_JSON:
        raise ArchiveTooLarge
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, member in members.items():
            entry = zipfile.ZipInfo(name, date_time=_DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o600 << 16
            entry.create_system = 3
            archive.writestr(entry, member, compresslevel=6)
    return content.getvalue()


def json_bytes(content: Mapping[str, Any]) -> bytes:
    """Plain values as JSON; a number that is not finite raises ValueError."""
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False).encode()


def array_bytes(array: Any) -> bytes:
    """Numbers in double precision as the content of a .npy member."""
    stream = io.BytesIO()
    numbers = np.ascontiguousarray(array, dtype=np.float64).reshape(np.shape(array))
    np.lib.format.write_array(stream, numbers, version=(1, 0), allow_pickle=False)
    return stream.getvalue()


def unpacked(archive: zipfile.ZipFile, *, first: str, most: int) -> dict[str, bytes]:
    """The members that the file lists, each with the checksum that is listed; `first` must be one."""
    names = [entry.filename for entry in archive.infolist()]
    if len(names) > most:
        raise ValueError(f"it has {len(names)} members, more than any model needs")
    if MEMBERS not in names:
        raise ValueError(f"it holds no {MEMBERS}")
    checksums = parsed_json(_member(archive, MEMBERS, _MOST_JSON))
    twice = [name for name, count in Counter(names).items() if count > 1]
    strange = sorted({*names} - {MEMBERS, *checksums})
    absent = sorted({first, *checksums} - {*names})
    complaints = ((twice, "it holds {} twice"), (strange, "{} is no part of it"), (absent, "it lacks {}"))
    for found, complaint in complaints:
        if found:
            raise ValueError(complaint.format(repr(found[0])[:80]))
    members: dict[str, bytes] = {}
    words = numbers = 0
    for name, checksum in checksums.items():
        in_words = name.endswith(".json")
        limit = _MOST_JSON - words if in_words else MOST_BYTES - words - numbers
        members[name] = _member(archive, name, limit)
        words += len(members[name]) * in_words
        numbers += len(members[name]) * (not in_words)
        if hashlib.sha256(members[name]).hexdigest() != checksum:
            raise ValueError(f"{name!r} does not have its checksum")
    return members


def _member(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    """One member, of which no more than `limit` bytes are unpacked, whatever the file says of its size."""
    entry = archive.getinfo(name)
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name!r} is compressed in another way")
    with archive.open(entry) as stream:
        content = stream.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"{name!r} would unpack to more than any model needs")
    return content


def parsed_json(content: bytes) -> dict[str, Any]:
    """An object in JSON, in which every number is finite."""

    def refuse(constant: str) -> Any:
        raise ValueError(f"it holds {constant} instead of a number")

    if content.count(b",") > _MOST_VALUES:
        raise ValueError("its JSON holds more values than any model needs")
    found = json.loads(content.decode("utf-8"), parse_constant=refuse)
    if not isinstance(found, dict):
        raise ValueError("its JSON is not that of a model, nor of a message")
    return found


def array_of(name: str, content: bytes) -> Any:
    """The numbers of a .npy member; its header is read for the shape only, and no object is made."""
    head = _NPY.match(content[:256])
    if head is None or not name.endswith(".npy"):
        raise ValueError(f"the array {name!r} is of an unknown kind")
    if (dtype := np.dtype(head[1].decode())) != np.float64:
        raise ValueError(f"the array {name!r} holds {dtype} instead of double precision numbers")
    shape = [int(length) for length in head[2].decode().split(",") if length.strip()]
    numbers = np.frombuffer(content, dtype=np.float64, offset=head.end())
    if numbers.size != prod(shape):
        raise ValueError(f"the array {name!r} does not have as many numbers as it says")
    return numbers.reshape(shape).copy()


def brief(error: BaseException) -> str:
    """What went wrong, on one line."""
    return readable(" ".join(str(error)[: 10 * LONGEST_MESSAGE].split())).rstrip(".") or type(error).__name__
