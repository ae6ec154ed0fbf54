"""The model file: numbers and JSON as safetensors, without pickle, the same bytes for the same fit.

It begins with the SHA-256 of the whole file (computed with zeros in its own place), so that a single changed
bit is detected. Nothing is compressed, so that a file takes no more memory than disk space.
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

from icqf.data.about import About
from icqf.data.questionnaire import Item, StoredCodebook
from icqf.errors import LONGEST_MESSAGE, Advice, InputError, readable
from icqf.io.atomic import write_bytes
from icqf.io.formats import READERS

FORMAT, VERSION = "icqf-model", 6
BATTERY_FORMAT, BATTERY_VERSION = "icqf-battery", 3
NORMS_FORMAT, NORMS_VERSION = "icqf-norms", 1
CROSSWALK_FORMAT, CROSSWALK_VERSION = "icqf-crosswalk", 2
HEADER, CODEBOOK, BATTERY, NORMS = "model.json", "codebook.json", "battery.json", "norms.json"
CROSSWALK = "crosswalk.json"
META = "meta"  # the folder of the second stage; instruments are numbered
CHECKSUM = "sha256"
MOST_BYTES = 100 * 2**20
_MOST_NAMES = 2**20  # bytes that name the arrays
_MOST_JSON = 8 * 2**20  # bytes; in memory JSON takes up to forty times as much
_MOST_VALUES = 10**6
_MOST_INSTRUMENTS = 200
_ZEROS = b"0" * 64
_START = f'{{"__metadata__":{{"{CHECKSUM}":"'.encode()  # follows the length of the header in eight bytes
_OF_CHECKSUM = slice(8 + len(_START), 8 + len(_START) + len(_ZEROS))
# What a damaged or forged file can raise, including deeply nested JSON (RecursionError, a RuntimeError).
_DAMAGE = (
    *(SafetensorError, OSError, RuntimeError, LookupError, TypeError, ValueError, AttributeError),
    *(OverflowError, MemoryError),
)


@dataclass(frozen=True, eq=False)
class StoredModel:
    """A fitted model as plain values and numbers, from `ICQF.describe` and for `ICQF.load`.

    The header is JSON; arrays are in double precision. The codebook makes sure that new answers are read like
    the first ones: which items are reversed, and which values mean missing.
    """

    header: dict[str, Any]
    arrays: dict[str, Any]
    codebook: StoredCodebook = field(default_factory=StoredCodebook)


# models of instruments, of their joined scores (None without a common factor), and how many participants
StoredBattery = tuple[dict[str, StoredModel], StoredModel | None, int]


def write_model(path: str | os.PathLike[str], model: StoredModel) -> None:
    """Write a model to `path`, completely or not at all."""
    _write(path, _tensors(model))


def write_battery_model(
    path: str | os.PathLike[str],
    instruments: Mapping[str, StoredModel],
    meta: StoredModel | None,
    n_participants: int,
) -> None:
    """Write the models of a battery's instruments, by name, and of their joined scores to one file."""
    head = {
        "format": BATTERY_FORMAT,
        "version": BATTERY_VERSION,
        "instruments": list(instruments),
        "n_participants": n_participants,
        "common_factor": meta is not None,
    }
    tensors = {BATTERY: _json(head)}
    for at, model in enumerate(instruments.values(), start=1):
        tensors |= _tensors(model, f"{at}/")
    _write(path, tensors | ({} if meta is None else _tensors(meta, f"{META}/")))


def write_norms(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Write norms, as plain values, to a file of their own."""
    _write(path, {NORMS: _json({"format": NORMS_FORMAT, "version": NORMS_VERSION, **content})})


def read_norms(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the plain values of a norms file."""
    with damage_refused(path, "norms file"):
        tensors = _read(Path(path), "norms file")
        if NORMS not in tensors:
            raise _OtherKind("this is a model file, not a norms file. Give the file that icqf norms wrote.")
        content = _parsed(tensors, NORMS)
        _check_version(content, NORMS_FORMAT, NORMS_VERSION)
        return content


def write_crosswalk(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Write a crosswalk, as plain values, to a model file."""
    _write(path, {CROSSWALK: _json({"format": CROSSWALK_FORMAT, "version": CROSSWALK_VERSION, **content})})


def read_crosswalk(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Read the plain values of a crosswalk; None for a model file of another kind."""
    stored = read_stored(path)
    return stored if isinstance(stored, dict) else None


def _tensors(model: StoredModel, folder: str = "") -> dict[str, np.ndarray]:
    """The arrays that hold a model: its numbers, and JSON as bytes."""
    tensors = {HEADER: _json({"format": FORMAT, "version": VERSION, **model.header})}
    if model.codebook.items or model.codebook.about:
        tensors[CODEBOOK] = _json(asdict(model.codebook))
    tensors |= {name: np.ascontiguousarray(array, dtype=np.float64) for name, array in model.arrays.items()}
    return {f"{folder}{name}": tensor for name, tensor in tensors.items()}


def _json(content: dict[str, Any]) -> np.ndarray:
    try:
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise InputError(
            "The model holds a number that is not finite, so it cannot be saved; check its objective_ and "
            "certificate_, and the ranges, weights and beta."
        ) from None
    return np.frombuffer(text.encode(), dtype=np.uint8)


def _write(path: str | os.PathLike[str], tensors: dict[str, np.ndarray]) -> None:
    content = bytearray(safetensors.numpy.save(tensors, {CHECKSUM: _ZEROS.decode()}))
    content[_OF_CHECKSUM] = hashlib.sha256(content).hexdigest().encode()
    if _too_large(content, tensors):
        raise InputError(
            f"{os.fspath(path)}: the model is too large for a model file. Use fewer items or factors."
        )
    write_bytes(path, bytes(content))


def _too_large(content: bytes | bytearray, tensors: Mapping[str, np.ndarray]) -> bool:
    words = sum(tensor.size for name, tensor in tensors.items() if name.endswith(".json"))
    names = int.from_bytes(content[:8], "little")
    return len(content) > MOST_BYTES or names > _MOST_NAMES or words > _MOST_JSON


def read_stored(path: str | os.PathLike[str]) -> StoredModel | StoredBattery | dict[str, Any]:
    """Read a model file of any kind, or the plain values of a crosswalk; no code in it is run."""
    with damage_refused(path):
        tensors = _read(Path(path))
        if NORMS in tensors:
            raise _OtherKind("this is a norms file, not a model file. Give the model.icqf that a fit wrote.")
        if CROSSWALK in tensors:
            content = _parsed(tensors, CROSSWALK)
            _check_version(content, CROSSWALK_FORMAT, CROSSWALK_VERSION)
            return content
        return _battery(tensors) if BATTERY in tensors else _model(tensors)


def read_any_model(path: str | os.PathLike[str]) -> StoredModel | StoredBattery:
    """Read the model of a questionnaire or of a battery."""
    stored = read_stored(path)
    if isinstance(stored, dict):
        raise InputError(
            f"{os.fspath(path)}: this is a crosswalk, not the model of a questionnaire. Use icqf score with "
            "it."
        )
    return stored


def read_model(path: str | os.PathLike[str]) -> StoredModel:
    """Read the model of one questionnaire."""
    stored = read_any_model(path)
    if not isinstance(stored, StoredModel):
        raise InputError(
            f"{os.fspath(path)}: this is the model of a battery.",
            code="battery-model",
            remedy=Advice(
                "Load it with MetaICQF.load.", typed="Use icqf score, icqf show or icqf shortform with it."
            ),
        )
    return stored


def read_battery_model(path: str | os.PathLike[str]) -> StoredBattery:
    """Read the models of a battery's instruments, by name, and of their joined scores."""
    stored = read_any_model(path)
    if isinstance(stored, StoredModel):
        raise InputError(
            f"{os.fspath(path)}: this is the model of one questionnaire, not of a battery.",
            code="no-battery-model",
            remedy=Advice("Load it with ICQF.load.", typed="Give a file that icqf meta wrote."),
        )
    return stored


def _battery(tensors: dict[str, np.ndarray]) -> StoredBattery:
    head = _parsed(tensors, BATTERY)
    _check_version(head, BATTERY_FORMAT, BATTERY_VERSION)
    instruments, n_participants = head.pop("instruments"), head.pop("n_participants")
    common_factor = head.pop("common_factor")
    if type(n_participants) is not int or n_participants < 1 or type(common_factor) is not bool:
        raise ValueError("it does not say how many participants and common factors it has")
    if head or not isinstance(instruments, list) or not 0 < len(instruments) <= _MOST_INSTRUMENTS:
        raise ValueError("it does not list its instruments")
    if not all(isinstance(name, str) and name for name in instruments):
        raise ValueError("an instrument has no name")
    if len({*instruments}) < len(instruments):
        raise ValueError("an instrument appears twice")
    models = [_model(tensors, f"{at}/") for at in range(1, len(instruments) + 1)]
    meta = _model(tensors, f"{META}/") if common_factor else None
    for name in tensors:
        raise ValueError(f"{name[:80]!r} is not part of it")
    return dict(zip(instruments, models, strict=True)), meta, n_participants


class _OtherKind(InputError):
    """A sound file that is not a model of the expected kind."""


@contextmanager
def damage_refused(path: str | os.PathLike[str], what: str = "model file") -> Iterator[None]:
    """Report any error while a model file is read as a damaged file."""
    try:
        yield
    except _OtherKind as error:
        raise error.at(os.fspath(path)) from None
    except _DAMAGE as error:
        why = readable(" ".join(str(error)[: 10 * LONGEST_MESSAGE].split())).rstrip(".")
        raise InputError(
            f"{os.fspath(path)}: the {what} is damaged or incomplete ({why or type(error).__name__}). "
            f"Save the {what.removesuffix(' file')} again."
        ) from None


def _read(path: Path, what: str = "model file") -> dict[str, np.ndarray]:
    """All arrays of a file with a valid checksum and a size that a model may have."""
    if not path.exists():
        raise _OtherKind("there is no such file.")
    if not path.is_file():  # reading a pipe could wait forever
        inside = sorted(each.name for each in path.glob("*.icqf*"))
        more = f" Give the file {inside[0]!r} in it." if inside else ""
        raise _OtherKind(f"this is not an icqf {what}, but a folder or a device.{more}")
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if content[8 : 8 + len(_START)] != _START:
        if what != "model file":
            raise _OtherKind(f"this is not an icqf {what}. Give the file that icqf norms wrote.")
        raise _OtherKind(f"this is not an icqf model file{_what_it_may_be(path, content)}")
    if _too_large(content, {}):
        raise ValueError("it is larger than any model")
    checksum = hashlib.sha256(content[: _OF_CHECKSUM.start] + _ZEROS + content[_OF_CHECKSUM.stop :])
    if content[_OF_CHECKSUM] != checksum.hexdigest().encode():
        raise ValueError("its checksum is wrong")
    tensors = safetensors.numpy.load(content)
    if _too_large(content, tensors):
        raise ValueError("its JSON is larger than that of any model")
    return {name: tensors[name] for name in sorted(tensors)}


def _what_it_may_be(path: Path, content: bytes) -> str:
    """What a file is that is not a model file, and what to do."""
    wanted, ending = "Give the model.icqf that a fit wrote", path.suffix.lower()
    if ending in READERS:
        return f", but a table by its name. {wanted}; name the model before the answers."
    if ending == ".icqf" and content.startswith(b"PK\x03\x04"):
        return f" of format {VERSION} but of an earlier one, which is no longer read. Fit again."
    if ending == ".icqf":
        return ", or it is damaged or incomplete. Save the model again."
    return f". {wanted}."


def _model(tensors: dict[str, np.ndarray], folder: str = "") -> StoredModel:
    """The model in a folder of arrays, which are removed from `tensors`."""
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
    """A JSON object with finite numbers, which is removed from `tensors`."""

    def refuse(constant: str) -> Any:
        raise ValueError(f"it holds {constant} instead of a number")

    if name not in tensors:
        raise ValueError(f"it lacks {name!r}")
    content = tensors.pop(name).tobytes()
    if content.count(b",") > _MOST_VALUES:
        raise ValueError("its JSON holds more values than any model needs")
    parsed = json.loads(content.decode("utf-8"), parse_constant=refuse)
    if not isinstance(parsed, dict):
        raise ValueError("its JSON is not that of a model")
    return parsed


def _check_version(header: dict[str, Any], kind: str, known: int) -> None:
    if header.pop("format", None) != kind:
        raise ValueError("it is another kind of file")
    version = header.pop("version", None)
    if type(version) is not int or version != known:
        newer = isinstance(version, int) and version > known
        raise _OtherKind(
            f"it was saved in file format {str(version)[:20]}, but this icqf reads format {known}"
            f"{'; install a newer icqf' if newer else '. Fit again'}."
        )


def _codebook(stored: dict[str, Any]) -> StoredCodebook:
    """The codebook of a file, which must be exactly what a model writes."""
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
    codebook = StoredCodebook(items, stored["id"], confounds, About.of(stored["about"]))
    if json.dumps(asdict(codebook), sort_keys=True) != json.dumps(stored, sort_keys=True):
        raise ValueError("its codebook is not valid")
    return codebook
