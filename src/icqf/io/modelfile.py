"""The model file: a zip of JSON and plain arrays, without pickle, the same bytes for the same fit."""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from icqf.data.questionnaire import Item
from icqf.errors import InputError
from icqf.io.atomic import write_bytes

FORMAT = "icqf-model"
VERSION = 2
_MOST_BYTES = 256 * 2**20
_DATE = (2020, 1, 1, 0, 0, 0)  # zip entries carry a date; a fixed one keeps the bytes the same
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
    """What a model file says about the table it was fitted to: its items and its id column, if it does."""

    items: tuple[Item, ...] = ()
    id: str | None = None


@dataclass(frozen=True, eq=False)
class StoredModel:
    """A fitted model in plain words and numbers, as `ICQF.describe` gives it and `ICQF.load` takes it.

    Attributes
    ----------
    header : dict
        Anything that JSON can hold.
    arrays : dict of str to array
        Numbers in double precision.
    """

    header: dict[str, Any]
    arrays: dict[str, Any]


def write_model(
    path: str | os.PathLike[str], model: StoredModel, *, items: Iterable[Item] = (), id: str = ""
) -> None:
    """Write a described model to `path`; the file appears whole or not at all.

    Parameters
    ----------
    path : path
        Where to write it.
    model : StoredModel
        What `ICQF.describe` returns.
    items : iterable of Item
        The codebook, kept in the file so that new answers are read as the first ones were: which items
        are reversed, and which values mean that an answer is missing.
    id : str
        Name of the id column.
    """
    header = {"format": FORMAT, "version": VERSION, "arrays": list(model.arrays), **model.header}
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        _add(archive, "model.json", json.dumps(header, indent=1, ensure_ascii=False).encode())
        codebook = {"id": id, "items": [asdict(item) for item in items]}
        if codebook["items"]:
            _add(archive, "codebook.json", json.dumps(codebook, indent=1, ensure_ascii=False).encode())
        for name, array in model.arrays.items():
            stream = io.BytesIO()
            np.lib.format.write_array(
                stream, np.ascontiguousarray(array, dtype=np.float64), version=(1, 0), allow_pickle=False
            )
            _add(archive, f"{name}.npy", stream.getvalue())
    write_bytes(path, content.getvalue())


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, date_time=_DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o600 << 16
    entry.create_system = 3
    archive.writestr(entry, content, compresslevel=6)


def read_model(path: str | os.PathLike[str]) -> StoredModel:
    """Read a model file; anything else is refused with one sentence, and nothing in it is run."""
    where = os.fspath(path)
    if not Path(path).exists():
        raise InputError(f"{where}: there is no such file.")
    try:
        with zipfile.ZipFile(path) as archive:
            return StoredModel(*_read(archive, where))
    except InputError:
        raise
    except _DAMAGE as error:
        raise InputError(
            f"{where}: this is not an icqf model file, or it is damaged ({_brief(error)}). "
            "Save the model again."
        ) from None


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
    return " ".join(str(error).split()) or type(error).__name__


def load_codebook(path: str | os.PathLike[str]) -> StoredCodebook:
    """Read the codebook in a model file; one without items when the file has none.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from icqf.data.questionnaire import Item
    >>> from icqf.io.modelfile import StoredModel, load_codebook, write_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_model(pathlib.Path(folder, "m.icqf"), StoredModel({}, {}), items=[Item("q1", reverse=True)])
    ...     load_codebook(pathlib.Path(folder, "m.icqf")).items[0].reverse
    True
    """
    where = os.fspath(path)
    try:
        with zipfile.ZipFile(path) as archive:
            if "codebook.json" not in archive.namelist():
                return StoredCodebook()
            content = json.loads(_entry(archive, "codebook.json", where))
        items = tuple(
            Item(
                **{
                    **entry,
                    "missing_codes": tuple(entry["missing_codes"]),
                    "labels": tuple((float(value), str(text)) for value, text in entry["labels"]),
                }
            )
            for entry in content["items"]
        )
        return StoredCodebook(items, str(content["id"]) or None)
    except _DAMAGE as error:
        raise InputError(
            f"{where}: the codebook in the model file is damaged ({_brief(error)}). Save the model again."
        ) from None


def _read(archive: zipfile.ZipFile, where: str) -> tuple[dict[str, Any], dict[str, Any]]:
    size = sum(entry.file_size for entry in archive.infolist())
    if size > _MOST_BYTES:
        raise InputError(
            f"{where}: the file would unpack to {size / 2**20:.0f} MB, more than any model needs; "
            "it is not an icqf model file."
        )
    if "model.json" not in archive.namelist():
        raise InputError(f"{where}: this zip file is not an icqf model: it holds no model.json.")
    try:
        header = json.loads(_entry(archive, "model.json", where))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"{where}: the model file is damaged ({error}). Save the model again.") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InputError(f"{where}: this zip file is not an icqf model.")
    version = header.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise InputError(
            f"{where}: the model was saved in file format {version}, and this icqf reads up to {VERSION}. "
            "Install a newer icqf."
        )
    arrays = {}
    for name in header["arrays"]:
        if f"{name}.npy" not in archive.namelist():
            raise InputError(f"{where}: the model file is incomplete: it lacks {name}.npy.")
        try:
            arrays[name] = _array(_entry(archive, f"{name}.npy", where))
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"{where}: the array {name!r} in the model file is damaged ({_brief(error)}). "
                "Save the model again."
            ) from None
    return header, arrays


def _array(content: bytes) -> Any:
    """The numbers of a .npy entry; the header decides nothing but their shape, and no object is made."""
    stream = io.BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("it is of an unknown kind")
    shape, by_column, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype != np.float64:
        raise ValueError(f"it holds {dtype} instead of double precision numbers")
    numbers = np.frombuffer(content, dtype=np.float64, offset=stream.tell())
    return numbers.reshape(shape, order="F" if by_column else "C").copy()


def _entry(archive: zipfile.ZipFile, name: str, where: str) -> bytes:
    """One entry, never unpacking more than its header promised."""
    promised = archive.getinfo(name).file_size
    with archive.open(name) as stream:
        content = stream.read(promised + 1)
    if len(content) > promised:
        raise InputError(f"{where}: the entry {name!r} is larger than it says; the file is damaged.")
    return content
