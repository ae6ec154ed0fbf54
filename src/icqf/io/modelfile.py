"""The model file: a zip of JSON and plain arrays, without pickle, the same bytes for the same fit."""

from __future__ import annotations

import io
import json
import os
import secrets
import struct
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from icqf.data.confounds import ConfoundEncoder
from icqf.data.parameters import check_parameters
from icqf.data.questionnaire import Item
from icqf.errors import InputError
from icqf.estimator import ICQF
from icqf.solvers.result import Certificate
from icqf.summary import FitStatistics

FORMAT = "icqf-model"
VERSION = 1
_MOST_BYTES = 256 * 2**20
_DATE = (2020, 1, 1, 0, 0, 0)  # zip entries carry a date; a fixed one keeps the bytes the same
_ARRAYS = (
    "components",
    "confound_components",
    "item_range",
    "solving_order",
    "sse",
    "sst",
    "removal",
    "missing",
)
_NOT_STORED = ("callback", "random_state")
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


def save_model(
    model: ICQF, path: str | os.PathLike[str], *, items: Iterable[Item] = (), id: str = ""
) -> None:
    """Write a fitted model to `path`; the file appears whole or not at all.

    Parameters that are objects of the running program (callback, a generator, arrays as a start) are
    left out. No participant's data are stored.

    Parameters
    ----------
    model : ICQF
        A fitted model.
    path : path
        Where to write it.
    items : iterable of Item
        The codebook, kept in the file so that new answers are read as the first ones were: which items
        are turned, and which values mean "no answer".
    id : str
        Name of the id column.
    """
    arrays = {
        "components": model.components_,
        "confound_components": model.confound_components_,
        "item_range": model.item_range_.to_numpy(),
        "solving_order": model.solving_order_,
        **vars(model.fit_statistics_),
    }
    arrays |= {f"trace_{name}": model.trace_[name].to_numpy() for name in model.trace_.columns}
    named = hasattr(model, "feature_names_in_")
    header = {
        "format": FORMAT,
        "version": VERSION,
        "model": type(model).__name__,
        "parameters": _plain_parameters(model),
        "items": list(model.item_range_.index),
        "items_named": named,
        "confounds": model.confound_encoder_.to_dict(),
        "dtype": model.dtype_.name,
        "objective": model.objective_,
        "certificate": vars(model.certificate_),
        "trace": list(model.trace_.columns),
        "converged": bool(model.converged_),
        "n_iter": int(model.n_iter_),
        "n_participants": int(model.n_participants_),
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        _add(archive, "model.json", json.dumps(header, indent=1, ensure_ascii=False).encode())
        codebook = {"id": id, "items": [asdict(item) for item in items]}
        if codebook["items"]:
            _add(archive, "codebook.json", json.dumps(codebook, indent=1, ensure_ascii=False).encode())
        for name, array in arrays.items():
            stream = io.BytesIO()
            np.lib.format.write_array(
                stream, np.ascontiguousarray(array, dtype=np.float64), version=(1, 0), allow_pickle=False
            )
            _add(archive, f"{name}.npy", stream.getvalue())
    _write_whole(Path(path), content.getvalue())


def _plain_parameters(model: ICQF) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for name, value in sorted(model.get_params(deep=False).items()):
        if name in _NOT_STORED or (name == "init" and not isinstance(value, str)):
            continue
        if name == "item_range":  # the ranges themselves are stored as an array
            continue
        if name == "dtype":
            value = value if value == "auto" else np.dtype(value).name
        if name == "confound_ranges" and value is not None:
            value = {str(key): [float(end) for end in ends] for key, ends in value.items()}
        plain[name] = value.item() if isinstance(value, np.generic) else value
    return plain


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, date_time=_DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o600 << 16
    entry.create_system = 3
    archive.writestr(entry, content, compresslevel=6)


def _write_whole(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".icqf-{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def load_model(path: str | os.PathLike[str]) -> ICQF:
    """Read a model file; anything else is refused with one sentence, and nothing in it is run."""
    where = os.fspath(path)
    if not Path(path).exists():
        raise InputError(f"{where}: there is no such file.")
    try:
        with zipfile.ZipFile(path) as archive:
            header, arrays = _read(archive, where)
    except InputError:
        raise
    except _DAMAGE as error:
        raise InputError(
            f"{where}: this is not an icqf model file, or it is damaged ({_brief(error)}). "
            "Save the model again."
        ) from None
    try:
        return _rebuild(header, arrays)
    except _DAMAGE as error:
        raise InputError(
            f"{where}: the model file is damaged or incomplete ({_brief(error)}). Save the model again."
        ) from None


def _brief(error: BaseException) -> str:
    """What went wrong, on one line."""
    return " ".join(str(error).split()) or type(error).__name__


def load_codebook(path: str | os.PathLike[str]) -> StoredCodebook:
    """Read the codebook in a model file; one without items when the file has none.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from icqf import ICQF
    >>> from icqf.data.questionnaire import Item
    >>> model = ICQF(1, item_range=(0, 2)).fit([[0, 1], [2, 2], [0, 0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, pathlib.Path(folder, "m.icqf"), items=[Item("q1", reverse=True)])
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
    names = [*_ARRAYS, *(f"trace_{name}" for name in header.get("trace", []))]
    arrays = {}
    for name in names:
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


def _model_class(name: str) -> type[ICQF]:
    from icqf.baselines.l1nmf import L1NMF  # the baselines build on the estimator, and are rarely stored

    classes = {"ICQF": ICQF, "L1NMF": L1NMF}
    if name not in classes:
        raise ValueError(f"it holds a model of the unknown kind {name!r}")
    return classes[name]


def _rebuild(header: dict[str, Any], arrays: dict[str, Any]) -> ICQF:
    items = [str(name) for name in header["items"]]
    components, confounds = arrays["components"], arrays["confound_components"]
    encoder = ConfoundEncoder.from_dict(header["confounds"])
    shapes = {
        "components": (len(components), len(items)),
        "confound_components": (len(encoder.names), len(items)),
        "item_range": (len(items), 2),
        "removal": (len(components), len(items)),
        **{name: (len(items),) for name in ("sse", "sst", "missing")},
        "solving_order": (len(components),),
    }
    for name, shape in shapes.items():
        if arrays[name].shape != shape or arrays[name].dtype != np.float64:
            raise ValueError(f"the array {name!r} has the shape {arrays[name].shape} instead of {shape}")
    if not (np.isfinite(components).all() and np.isfinite(confounds).all()):
        raise ValueError("a loading is not a finite number")
    if sorted(arrays["solving_order"].tolist()) != list(range(len(components))):
        raise ValueError("the order of the factors is not one")
    low, high = arrays["item_range"].T
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise ValueError("the range of an item is not one")

    ranges = pd.DataFrame(arrays["item_range"], index=items, columns=["min", "max"])
    model = _model_class(header.get("model", "ICQF"))(**header["parameters"], item_range=ranges)
    model.confound_encoder_ = encoder
    model.confound_names_ = list(encoder.names)
    model.item_range_ = ranges
    model.n_features_in_ = len(items)
    if header["items_named"]:
        model.feature_names_in_ = np.array(items, dtype=object)
    model.components_ = components
    model.confound_components_ = confounds
    model.solving_order_ = arrays["solving_order"].astype(int)
    model.dtype_ = np.dtype(header["dtype"])
    model.objective_ = float(header["objective"])
    model.certificate_ = Certificate(**{name: float(v) for name, v in header["certificate"].items()})
    trace = {str(name): arrays[f"trace_{name}"] for name in header["trace"]}
    model.trace_ = pd.DataFrame(trace).rename_axis("iteration")
    model.converged_ = bool(header["converged"])
    model.n_iter_ = int(header["n_iter"])
    model.n_participants_ = int(header["n_participants"])
    model.fit_statistics_ = FitStatistics(
        **{name: arrays[name] for name in ("sse", "sst", "removal", "missing")}
    )
    check_parameters(model)
    return model
