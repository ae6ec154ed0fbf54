"""The model file: a zip of JSON and plain arrays, without pickle, the same bytes for the same fit."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from icqf.data.questionnaire import Item, StoredCodebook
from icqf.errors import InputError
from icqf.io.archive import (
    DAMAGE,
    ArchiveTooLarge,
    array_bytes,
    array_of,
    brief,
    json_bytes,
    packed,
    parsed_json,
    unpacked,
)
from icqf.io.atomic import write_bytes
from icqf.io.formats import READERS

FORMAT, VERSION = "icqf-model", 4
BATTERY_FORMAT, BATTERY_VERSION = "icqf-battery", 1
HEADER, CODEBOOK, BATTERY = "model.json", "codebook.json", "battery.json"
META = "meta"  # the folder of the second stage; instruments are numbered
_MOST_MEMBERS = 50  # of one model
_MOST_INSTRUMENTS = 200


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
    >>> from icqf.data.questionnaire import Item, StoredCodebook
    >>> from icqf.io.modelfile import StoredModel, read_model, write_model
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
        members[f"{folder}{name}.npy"] = array_bytes(array)
    return members


def _write(path: str | os.PathLike[str], members: dict[str, bytes]) -> None:
    try:
        content = packed(members)
    except ArchiveTooLarge:
        raise InputError(f"{os.fspath(path)}: the model is too large for a model file.") from None
    write_bytes(path, content)


def _json(content: dict[str, Any]) -> bytes:
    try:
        return json_bytes(content)
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
        return _model(unpacked(archive, first=HEADER, most=_MOST_MEMBERS))


def read_battery_model(path: str | os.PathLike[str]) -> tuple[dict[str, StoredModel], StoredModel]:
    """Read the models of a battery's instruments, by name, and that of their joined scores."""
    with _opened(path) as (archive, names):
        if BATTERY not in names and HEADER in names:
            raise _OtherKind(
                f"{os.fspath(path)}: this is the model of one questionnaire, not of a battery.",
                code="no-battery-model",
                remedy="Load it with ICQF.load.",
            )
        members = unpacked(archive, first=BATTERY, most=_MOST_MEMBERS * (_MOST_INSTRUMENTS + 1))
        head = parsed_json(members.pop(BATTERY))
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
    except DAMAGE:
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
    except DAMAGE as error:
        raise InputError(
            f"{where}: this is not an icqf model file, or it is damaged ({brief(error)}). "
            "Save the model again."
        ) from None


def _model(members: dict[str, bytes]) -> StoredModel:
    """The model that some members hold, which are used up."""
    if len(members) > _MOST_MEMBERS:
        raise ValueError(f"it has {len(members)} members, more than any model needs")
    header = parsed_json(members.pop(HEADER))
    _check_version(header, FORMAT, VERSION)
    codebook = _codebook(parsed_json(members.pop(CODEBOOK))) if CODEBOOK in members else StoredCodebook()
    arrays = {name.removesuffix(".npy"): array_of(name, members.pop(name)) for name in list(members)}
    return StoredModel(header, arrays, codebook)


def _what_it_may_be(path: Path) -> str:
    """What a file that is no zip file is instead, and what to give."""
    wanted = "Give the model.icqf that a fit wrote"
    if path.suffix.lower() in READERS:
        return f", but a table by its name. {wanted}; the model comes before the answers."
    if path.suffix.lower() == ".icqf":
        return ", or it is damaged or incomplete. Save the model again."
    return f". {wanted}."


@contextmanager
def damage_refused(path: str | os.PathLike[str]) -> Iterator[None]:
    """Says of any error while a model is made from its description that the file is damaged."""
    try:
        yield
    except DAMAGE as error:
        raise InputError(
            f"{os.fspath(path)}: the model file is damaged or incomplete ({brief(error)}). "
            "Save the model again."
        ) from None


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
