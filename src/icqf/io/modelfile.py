"""The model file: a zip of JSON and plain arrays, without pickle, the same bytes for the same fit.

``members.json`` lists the other members with their SHA-256. A file that lacks a member, has one more or one
twice, or in which a single bit of a member differs, is refused.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from math import isfinite, prod
from pathlib import Path
from typing import Any

import numpy as np

from icqf.data.questionnaire import Item
from icqf.errors import InputError
from icqf.io.atomic import write_bytes
from icqf.io.formats import READABLE

FORMAT, VERSION = "icqf-model", 4
BATTERY_FORMAT, BATTERY_VERSION = "icqf-battery", 1
MEMBERS, HEADER, CODEBOOK, BATTERY = "members.json", "model.json", "codebook.json", "battery.json"
META = "meta"  # the folder of the second stage; instruments are numbered
# What a file may unpack to. Numbers take the memory they take on disk; JSON takes up to forty times as much.
_MOST_BYTES = 100 * 2**20
_MOST_JSON = 8 * 2**20
_MOST_MEMBERS = 50  # of one model
_MOST_INSTRUMENTS = 200
_DATE = (2020, 1, 1, 0, 0, 0)  # zip entries carry a date; a fixed one keeps the bytes the same
_NPY = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([^']+)', 'fortran_order': False, 'shape': \(([\d, ]*)\), \} *\n",
    re.DOTALL,
)
# What reading a damaged or made-up file can raise: no zip, broken compression, an entry marked as encrypted
# (RuntimeError), JSON nested without end (RecursionError, a RuntimeError), and anything of a wrong type.
_DAMAGE = (
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


@dataclass(frozen=True)
class StoredCodebook:
    """What a model knows about the table it was fitted to: its items, its id column, and what the values of
    its confounds mean; or nothing.

    Without items, it is not known which items are reversed.
    """

    items: tuple[Item, ...] = ()
    id: str = ""
    confounds: tuple[Item, ...] = ()


@dataclass(frozen=True, eq=False)
class StoredModel:
    """A fitted model in plain words and numbers, as `ICQF.describe` gives it and `ICQF.load` takes it.

    Attributes
    ----------
    header : dict
        Anything that JSON can hold.
    arrays : dict of str to array
        Numbers in double precision.
    codebook : StoredCodebook
        Kept in the file so that new answers are read as the first ones were: which items are reversed, and
        which values mean that an answer is missing.
    """

    header: dict[str, Any]
    arrays: dict[str, Any]
    codebook: StoredCodebook = field(default_factory=StoredCodebook)


def write_model(path: str | os.PathLike[str], model: StoredModel) -> None:
    """Write a described model to `path`; the file appears whole or not at all.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from icqf.data.questionnaire import Item
    >>> from icqf.io.modelfile import StoredCodebook, StoredModel, read_model, write_model
    >>> codebook = StoredCodebook((Item("q1", min=0.0, max=2.0, reverse=True),), "code")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_model(pathlib.Path(folder, "m.icqf"), StoredModel({}, {}, codebook))
    ...     read_model(pathlib.Path(folder, "m.icqf")).codebook == codebook
    True
    """
    _write(path, _described(model))


def write_battery_model(
    path: str | os.PathLike[str], instruments: Mapping[str, StoredModel], meta: StoredModel
) -> None:
    """Write the models of a battery's instruments, by name, and that of their joined scores to one file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from icqf.io.modelfile import StoredModel, read_battery_model, write_battery_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "meta.icqf")
    ...     write_battery_model(path, {"CES-D": StoredModel({}, {})}, StoredModel({}, {}))
    ...     list(read_battery_model(path)[0])
    ['CES-D']
    """
    head = {"format": BATTERY_FORMAT, "version": BATTERY_VERSION, "instruments": list(instruments)}
    members = {BATTERY: _json(head)}
    for at, model in enumerate(instruments.values(), start=1):
        members |= _described(model, f"{at}/")
    _write(path, members | _described(meta, f"{META}/"))


def _described(model: StoredModel, folder: str = "") -> dict[str, bytes]:
    """The members that hold a model."""
    members = {f"{folder}{HEADER}": _json({"format": FORMAT, "version": VERSION, **model.header})}
    if model.codebook.items:
        members[f"{folder}{CODEBOOK}"] = _json(asdict(model.codebook))
    for name, array in model.arrays.items():
        stream = io.BytesIO()
        numbers = np.ascontiguousarray(array, dtype=np.float64)
        np.lib.format.write_array(stream, numbers, version=(1, 0), allow_pickle=False)
        members[f"{folder}{name}.npy"] = stream.getvalue()
    return members


def _write(path: str | os.PathLike[str], members: dict[str, bytes]) -> None:
    checksums = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    members = {MEMBERS: _json(checksums), **members}
    words = sum(len(content) for name, content in members.items() if name.endswith(".json"))
    if sum(map(len, members.values())) > _MOST_BYTES or words > _MOST_JSON:
        raise InputError(f"{os.fspath(path)}: the model is too large for a model file.")
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, member in members.items():
            entry = zipfile.ZipInfo(name, date_time=_DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o600 << 16
            entry.create_system = 3
            archive.writestr(entry, member, compresslevel=6)
    write_bytes(path, content.getvalue())


def _json(content: dict[str, Any]) -> bytes:
    try:
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        raise InputError(
            "The model holds a number that is not finite and cannot be saved; look at its objective_ and "
            "certificate_, and at ranges, weights and beta."
        ) from None


def read_model(path: str | os.PathLike[str]) -> StoredModel:
    """Read a model file; anything else is refused with one sentence, and nothing in it is run."""
    with _opened(path) as (archive, names):
        if BATTERY in names:
            raise _OtherKind(
                f"{os.fspath(path)}: this is the model of a battery.",
                code="battery-model",
                remedy="Load it with MetaICQF.load.",
            )
        return _model(_members(archive, HEADER, _MOST_MEMBERS))


def read_battery_model(path: str | os.PathLike[str]) -> tuple[dict[str, StoredModel], StoredModel]:
    """Read the models of a battery's instruments, by name, and that of their joined scores."""
    with _opened(path) as (archive, names):
        if BATTERY not in names and HEADER in names:
            raise _OtherKind(
                f"{os.fspath(path)}: this is the model of one questionnaire, not of a battery.",
                code="no-battery-model",
                remedy="Load it with ICQF.load.",
            )
        members = _members(archive, BATTERY, _MOST_MEMBERS * (_MOST_INSTRUMENTS + 1))
        head = _parsed(members.pop(BATTERY))
        _check_version(head, BATTERY_FORMAT, BATTERY_VERSION)
        instruments = head.pop("instruments")
        if head or not isinstance(instruments, list) or not 0 < len(instruments) <= _MOST_INSTRUMENTS:
            raise ValueError("it does not list its instruments")
        if not all(isinstance(name, str) and name for name in instruments):
            raise ValueError("an instrument has no name")
        if len({*instruments}) < len(instruments):
            raise ValueError("an instrument is there twice")
        folders = [*(str(at) for at in range(1, len(instruments) + 1)), META]
        parts: dict[str, dict[str, bytes]] = {folder: {} for folder in folders}
        for name, content in members.items():
            folder, _, own = name.partition("/")
            if folder not in parts or not own:
                raise ValueError(f"{name!r} is no part of it")
            parts[folder][own] = content
        absent = [f"{folder}/{HEADER}" for folder in folders if HEADER not in parts[folder]]
        if absent:
            raise ValueError(f"it lacks {absent[0]!r}")
        models = [_model(parts[folder]) for folder in folders]
        return dict(zip(instruments, models, strict=False)), models[-1]


def is_battery_model(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is the model of a battery; whatever else it is, its reader will say."""
    if not os.path.isfile(path):  # a pipe would wait for somebody to write into it
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return BATTERY in archive.namelist()
    except _DAMAGE:
        return False


class _OtherKind(InputError):
    """A model file of the other kind, which is not damaged."""


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[tuple[zipfile.ZipFile, list[str]]]:
    """A model file to be read; whatever is wrong with it is refused with one sentence."""
    where = os.fspath(path)
    if not Path(path).exists():
        raise InputError(f"{where}: there is no such file.")
    if Path(path).is_file() and not zipfile.is_zipfile(path):
        raise InputError(f"{where}: this is not an icqf model file{_what_it_may_be(Path(path))}")
    try:
        if not Path(path).is_file():
            raise ValueError("it is a folder or a device")
        with zipfile.ZipFile(path) as archive:
            yield archive, [entry.filename for entry in archive.infolist()]
    except _OtherKind:
        raise
    except _DAMAGE as error:
        raise InputError(
            f"{where}: this is not an icqf model file, or it is damaged ({_brief(error)}). "
            "Save the model again."
        ) from None


def _model(members: dict[str, bytes]) -> StoredModel:
    """The model that some members hold, which are used up."""
    if len(members) > _MOST_MEMBERS:
        raise ValueError(f"it has {len(members)} members, more than any model needs")
    header = _parsed(members.pop(HEADER))
    _check_version(header, FORMAT, VERSION)
    codebook = _codebook(_parsed(members.pop(CODEBOOK))) if CODEBOOK in members else StoredCodebook()
    arrays = {name.removesuffix(".npy"): _array(name, members.pop(name)) for name in list(members)}
    return StoredModel(header, arrays, codebook)


def _what_it_may_be(path: Path) -> str:
    """What a file that is no zip file is instead, and what to give."""
    wanted = "Give the model.icqf that a fit wrote"
    if path.suffix.lower() in READABLE:
        return f", but a table by its name. {wanted}; the model comes before the answers."
    if path.suffix.lower() == ".icqf":
        return ", or it is damaged or incomplete. Save the model again."
    return f". {wanted}."


@contextmanager
def damage_refused(path: str | os.PathLike[str]) -> Iterator[None]:
    """Says of any error while a model is made from its description that the file is damaged."""
    try:
        yield
    except _DAMAGE as error:
        raise InputError(
            f"{os.fspath(path)}: the model file is damaged or incomplete ({_brief(error)}). "
            "Save the model again."
        ) from None


def _brief(error: BaseException) -> str:
    """What went wrong, on one line."""
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__


def _members(archive: zipfile.ZipFile, first: str, most: int) -> dict[str, bytes]:
    """The members that the file lists, each with the checksum that is listed; `first` must be one."""
    names = [entry.filename for entry in archive.infolist()]
    if len(names) > most:
        raise ValueError(f"it has {len(names)} members, more than any model needs")
    if MEMBERS not in names:
        raise ValueError(f"it holds no {MEMBERS}")
    checksums = _parsed(_unpacked(archive, MEMBERS, _MOST_JSON))
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
        limit = _MOST_JSON - words if in_words else _MOST_BYTES - words - numbers
        members[name] = _unpacked(archive, name, limit)
        words += len(members[name]) * in_words
        numbers += len(members[name]) * (not in_words)
        if hashlib.sha256(members[name]).hexdigest() != checksum:
            raise ValueError(f"{name!r} does not have its checksum")
    return members


def _unpacked(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    """One member, of which no more than `limit` bytes are unpacked, whatever the file says of its size."""
    entry = archive.getinfo(name)
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name!r} is compressed in another way")
    with archive.open(entry) as stream:
        content = stream.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"{name!r} would unpack to more than any model needs")
    return content


def _parsed(content: bytes) -> dict[str, Any]:
    def refuse(constant: str) -> Any:
        raise ValueError(f"it holds {constant} instead of a number")

    found = json.loads(content.decode("utf-8"), parse_constant=refuse)
    if not isinstance(found, dict):
        raise ValueError("its JSON is not that of a model")
    return found


def _check_version(header: dict[str, Any], kind: str, known: int) -> None:
    if header.pop("format", None) != kind:
        raise ValueError("it is another kind of zip file")
    version = header.pop("version", None)
    if type(version) is not int or version != known:
        newer = isinstance(version, int) and version > known
        raise ValueError(
            f"it was saved in file format {version}, and this icqf reads format {known}"
            f"{'; install a newer icqf' if newer else ''}"
        )


def _codebook(stored: dict[str, Any]) -> StoredCodebook:
    items, confounds = (
        tuple(
            Item(
                **{
                    **entry,
                    "missing_codes": tuple(entry["missing_codes"]),
                    "labels": tuple((value, text) for value, text in entry["labels"]),
                }
            )
            for entry in stored[kind]
        )
        for kind in ("items", "confounds")
    )
    for item in (*items, *confounds):
        texts = (item.name, item.wording, item.subscale, *(text for _, text in item.labels))
        ends = () if item in confounds and not item.declared else (item.min, item.max)
        numbers = (*ends, *(value for value, _ in item.labels))
        right = all(isinstance(text, str) for text in texts) and type(item.reverse) is bool
        right &= all(isinstance(number, float) and isfinite(number) for number in numbers)
        if not right or not all(type(code) in (str, int, float) for code in item.missing_codes):
            raise ValueError(f"the codebook says of item {item.name!r} what cannot be")
    codebook = StoredCodebook(items, stored["id"], confounds)
    same = json.dumps(asdict(codebook), sort_keys=True) == json.dumps(stored, sort_keys=True)
    if not same or not items or not isinstance(codebook.id, str):
        raise ValueError("the codebook is not one")
    return codebook


def _array(name: str, content: bytes) -> Any:
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
