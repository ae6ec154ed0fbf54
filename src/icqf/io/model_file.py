"""The model file: plain numbers and JSON as safetensors, without pickle, the same bytes for the same fit.

It begins with the SHA-256 of the whole file, in which zeros stand for the SHA-256 itself, so that a file is
refused if a single bit of it differs. Nothing is compressed: it takes no more memory than room on the disk.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from icqf.data.questionnaire import Item, StoredCodebook
from icqf.errors import LONGEST_MESSAGE, Advice, InputError, readable
from icqf.io.atomic import write_bytes
from icqf.io.formats import READERS

FORMAT, VERSION = "icqf-model", 5
BATTERY_FORMAT, BATTERY_VERSION = "icqf-battery", 2
HEADER, CODEBOOK, BATTERY = "model.json", "codebook.json", "battery.json"
META = "meta"  # the folder of the second stage; instruments are numbered
CHECKSUM = "sha256"
MOST_BYTES = 100 * 2**20
_MOST_NAMES = 2**20  # bytes that name the arrays
_MOST_JSON = 8 * 2**20  # bytes; in memory JSON takes up to forty times as much
_MOST_VALUES = 10**6
_MOST_INSTRUMENTS = 200
_ZEROS = b"0" * 64
_START = f'{{"__metadata__":{{"{CHECKSUM}":"'.encode()  # after eight bytes with the length of all names
_OF_CHECKSUM = slice(8 + len(_START), 8 + len(_START) + len(_ZEROS))
# What a damaged or forged file can raise, JSON nested without end (RecursionError, a RuntimeError) included.
_DAMAGE = (
    *(SafetensorError, OSError, RuntimeError, LookupError, TypeError, ValueError, AttributeError),
    *(OverflowError, MemoryError),
)


@dataclass(frozen=True, eq=False)
class StoredModel:
    """A fitted model in plain words and numbers, as `ICQF.describe` gives it and `ICQF.load` takes it.

    The header is anything that JSON can hold; arrays are in double precision. The codebook is there so that
    new answers are read as the first ones were: which items are reversed, and which values mean missing.
    """

    header: dict[str, Any]
    arrays: dict[str, Any]
    codebook: StoredCodebook = field(default_factory=StoredCodebook)


StoredBattery = tuple[dict[str, StoredModel], StoredModel]  # of the instruments, and of their joined scores


def write_model(path: str | os.PathLike[str], model: StoredModel) -> None:
    """Write a described model to `path`; the file appears whole or not at all."""
    _write(path, _tensors(model))


def write_battery_model(
    path: str | os.PathLike[str], instruments: Mapping[str, StoredModel], meta: StoredModel
) -> None:
    """Write the models of a battery's instruments, by name, and that of their joined scores to one file."""
    head = {"format": BATTERY_FORMAT, "version": BATTERY_VERSION, "instruments": list(instruments)}
    tensors = {BATTERY: _json(head)}
    for at, model in enumerate(instruments.values(), start=1):
        tensors |= _tensors(model, f"{at}/")
    _write(path, tensors | _tensors(meta, f"{META}/"))


def _tensors(model: StoredModel, folder: str = "") -> dict[str, np.ndarray]:
    """The arrays that hold a model: its numbers, and JSON as bytes."""
    tensors = {HEADER: _json({"format": FORMAT, "version": VERSION, **model.header})}
    if model.codebook.items:
        tensors[CODEBOOK] = _json(asdict(model.codebook))
    tensors |= {name: np.ascontiguousarray(array, dtype=np.float64) for name, array in model.arrays.items()}
    return {f"{folder}{name}": tensor for name, tensor in tensors.items()}


def _json(content: dict[str, Any]) -> np.ndarray:
    try:
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise InputError(
            "The model holds a number that is not finite and cannot be saved; look at its objective_ and "
            "certificate_, and at ranges, weights and beta."
        ) from None
    return np.frombuffer(text.encode(), dtype=np.uint8)


def _write(path: str | os.PathLike[str], tensors: dict[str, np.ndarray]) -> None:
    content = bytearray(safetensors.numpy.save(tensors, {CHECKSUM: _ZEROS.decode()}))
    content[_OF_CHECKSUM] = hashlib.sha256(content).hexdigest().encode()
    if _too_large(content, tensors):
        raise InputError(f"{os.fspath(path)}: the model is too large for a model file.")
    write_bytes(path, bytes(content))


def _too_large(content: bytes | bytearray, tensors: Mapping[str, np.ndarray]) -> bool:
    words = sum(tensor.size for name, tensor in tensors.items() if name.endswith(".json"))
    return len(content) > MOST_BYTES or _length_of_names(content) > _MOST_NAMES or words > _MOST_JSON


def _length_of_names(content: bytes | bytearray) -> int:
    return int.from_bytes(content[:8], "little")


def read_any_model(path: str | os.PathLike[str]) -> StoredModel | StoredBattery:
    """Read a model file of any kind; others are refused with one sentence, and nothing in them is run."""
    with damage_refused(path):
        tensors = _read(Path(path))
        return _battery(tensors) if BATTERY in tensors else _model(tensors)


def read_model(path: str | os.PathLike[str]) -> StoredModel:
    """Read the model of one questionnaire."""
    stored = read_any_model(path)
    if not isinstance(stored, StoredModel):
        raise InputError(
            f"{os.fspath(path)}: this is the model of a battery.",
            code="battery-model",
            remedy=Advice(
                "Load it with MetaICQF.load.",
                typed="Use icqf score, icqf show or icqf shortform with it.",
            ),
        )
    return stored


def read_battery_model(path: str | os.PathLike[str]) -> StoredBattery:
    """Read the models of a battery's instruments, by name, and that of their joined scores."""
    stored = read_any_model(path)
    if isinstance(stored, StoredModel):
        raise InputError(
            f"{os.fspath(path)}: this is the model of one questionnaire, not of a battery.",
            code="no-battery-model",
            remedy=Advice("Load it with ICQF.load.", typed="Name a file that icqf meta wrote."),
        )
    return stored


def _battery(tensors: dict[str, np.ndarray]) -> StoredBattery:
    head = _parsed(tensors, BATTERY)
    _check_version(head, BATTERY_FORMAT, BATTERY_VERSION)
    instruments = head.pop("instruments")
    if head or not isinstance(instruments, list) or not 0 < len(instruments) <= _MOST_INSTRUMENTS:
        raise ValueError("it does not list its instruments")
    if not all(isinstance(name, str) and name for name in instruments):
        raise ValueError("an instrument has no name")
    if len({*instruments}) < len(instruments):
        raise ValueError("an instrument is there twice")
    models = [_model(tensors, f"{at}/") for at in range(1, len(instruments) + 1)]
    meta = _model(tensors, f"{META}/")
    for name in tensors:
        raise ValueError(f"{name[:80]!r} is not part of it")
    return dict(zip(instruments, models, strict=True)), meta


class _OtherKind(InputError):
    """A file that is not damaged, but not what is wanted either."""


@contextmanager
def damage_refused(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say of any error while a file is read, or a model made from it, that the file is damaged."""
    try:
        yield
    except _OtherKind as error:
        raise error.at(os.fspath(path)) from None
    except _DAMAGE as error:
        why = readable(" ".join(str(error)[: 10 * LONGEST_MESSAGE].split())).rstrip(".")
        raise InputError(
            f"{os.fspath(path)}: the model file is damaged or incomplete ({why or type(error).__name__}). "
            "Save the model again."
        ) from None


def _read(path: Path) -> dict[str, np.ndarray]:
    """All arrays of a model file whose checksum is right; no more than a model may hold is read."""
    if not path.exists():
        raise _OtherKind("there is no such file.")
    if not path.is_file():  # a pipe would wait for somebody to write into it
        raise _OtherKind("this is not an icqf model file, but a folder or a device.")
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if content[8 : 8 + len(_START)] != _START:
        raise _OtherKind(f"this is not an icqf model file{_what_it_may_be(path, content)}")
    if _too_large(content, {}):
        raise ValueError("it is larger than any model")
    checksum = hashlib.sha256(content[: _OF_CHECKSUM.start] + _ZEROS + content[_OF_CHECKSUM.stop :])
    if content[_OF_CHECKSUM] != checksum.hexdigest().encode():
        raise ValueError("it does not have its checksum")
    tensors = safetensors.numpy.load(content)
    if _too_large(content, tensors):
        raise ValueError("its JSON is larger than that of any model")
    return {name: tensors[name] for name in sorted(tensors)}


def _what_it_may_be(path: Path, content: bytes) -> str:
    """What a file that is not a model file is instead, and what to give."""
    wanted, ending = "Give the model.icqf that a fit wrote", path.suffix.lower()
    if ending in READERS:
        return f", but a table by its name. {wanted}; the model comes before the answers."
    if ending == ".icqf" and content.startswith(b"PK\x03\x04"):
        return f" of format {VERSION}, but one of an earlier format, which is no longer read. Fit again."
    if ending == ".icqf":
        return ", or it is damaged or incomplete. Save the model again."
    return f". {wanted}."


def _model(tensors: dict[str, np.ndarray], folder: str = "") -> StoredModel:
    """The model that the arrays of a folder hold, which are taken out."""
    own = {name[len(folder) :]: tensors.pop(name) for name in [*tensors] if name.startswith(folder)}
    header = _parsed(own, HEADER)
    _check_version(header, FORMAT, VERSION)
    codebook = _codebook(_parsed(own, CODEBOOK)) if CODEBOOK in own else StoredCodebook()
    for name, array in own.items():
        if array.dtype != np.float64:
            raise ValueError(
                f"the array {name[:80]!r} holds {array.dtype} instead of double precision numbers"
            )
    return StoredModel(header, own, codebook)


def _parsed(tensors: dict[str, np.ndarray], name: str) -> dict[str, Any]:
    """An object in JSON, in which every number is finite; it is taken out of the arrays."""

    def refuse(constant: str) -> Any:
        raise ValueError(f"it holds {constant} instead of a number")

    if name not in tensors:
        raise ValueError(f"it lacks {name!r}")
    content = tensors.pop(name).tobytes()
    if content.count(b",") > _MOST_VALUES:
        raise ValueError("its JSON holds more values than any model needs")
    found = json.loads(content.decode("utf-8"), parse_constant=refuse)
    if not isinstance(found, dict):
        raise ValueError("its JSON is not that of a model")
    return found


def _check_version(header: dict[str, Any], kind: str, known: int) -> None:
    if header.pop("format", None) != kind:
        raise ValueError("it is another kind of file")
    version = header.pop("version", None)
    if type(version) is not int or version != known:
        newer = isinstance(version, int) and version > known
        raise _OtherKind(
            f"the model was saved in file format {str(version)[:20]}, and this icqf reads format {known}"
            f"{'; install a newer icqf' if newer else ''}."
        )


def _codebook(stored: dict[str, Any]) -> StoredCodebook:
    """The codebook of a file; whether it is one that a model writes is checked with the model."""
    items, confounds = (
        tuple(
            Item(
                **entry
                | {
                    "missing_codes": tuple(entry["missing_codes"]),
                    "labels": tuple(map(tuple, entry["labels"])),
                }
            )
            for entry in stored[kind]
        )
        for kind in ("items", "confounds")
    )
    codebook = StoredCodebook(items, stored["id"], confounds)
    if json.dumps(asdict(codebook), sort_keys=True) != json.dumps(stored, sort_keys=True):
        raise ValueError("its codebook is not valid")
    return codebook
