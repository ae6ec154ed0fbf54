"""One fingerprint of all that decides a result, by which journals know finished work."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

# Where work runs, in how many processes, and who is told about it: the same results whatever they are.
ASIDE = frozenset({"engine", "n_jobs", "jobs", "callback", "checkpoint", "keeps_floats"})
_PLAIN = (bool, int, float, complex, str, bytes, date, timedelta, type(pd.NA), type(pd.NaT), pd.Interval)


def fingerprint(*parts: Any) -> str:
    """Return a fingerprint that differs as soon as anything in `parts` does.

    Tables, arrays, records, estimators (settings and what a fit found), files (their contents, not where they
    lie), functions (their names) and containers of these are taken apart; what only says where the work runs
    (`ASIDE`) is left out.

    Examples
    --------
    >>> import numpy as np
    >>> from icqf import ICQF
    >>> from icqf.engines import fingerprint
    >>> answers = np.zeros((3, 2))
    >>> fingerprint(answers, ICQF(2)) == fingerprint(answers.copy(), ICQF(2, engine="dask"))
    True
    >>> fingerprint(answers, ICQF(2)) == fingerprint(answers, ICQF(2, beta=0.2))
    False
    """
    digest = hashlib.sha256()
    _add(digest.update, parts)
    return digest.hexdigest()


def _add(update: Callable[[Any], object], value: Any) -> None:
    """Add a value to a digest: first what it is, then what it holds."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, _PLAIN):
        text = repr(value)
        update(f"{type(value).__name__} {len(text)} {text};".encode())
        return
    kind = type(value)
    update(f"<{kind.__module__}.{kind.__qualname__}>".encode())
    if isinstance(value, np.ndarray) and value.dtype != object:
        update(f"{value.dtype} {value.shape};".encode())
        update(np.ascontiguousarray(value).tobytes())
        return
    held = _held(value)
    update(f"{len(held)};".encode())
    for each in held:
        _add(update, each)


def _held(value: Any) -> Sequence[Any]:
    """What a value is made of, in an order of its own."""
    if isinstance(value, pd.DataFrame):
        return [value.columns, value.index, *(value.iloc[:, j].array for j in range(value.shape[1]))]
    if isinstance(value, pd.Series):
        return [value.name, value.index, value.array]
    if isinstance(value, pd.Index):
        return [list(value.names), value.array]
    if isinstance(value, pd.api.extensions.ExtensionArray):
        values = value.to_numpy()
        return [str(value.dtype), values.tolist() if values.dtype == object else values]
    if isinstance(value, np.ndarray):
        return [value.shape, value.ravel().tolist()]
    if isinstance(value, Mapping):
        return sorted(((fingerprint(name), value[name]) for name in value), key=lambda pair: pair[0])
    if isinstance(value, set | frozenset):
        return sorted(map(fingerprint, value))
    if isinstance(value, list | tuple | range):
        return value
    if isinstance(value, slice):
        return [value.start, value.stop, value.step]
    if isinstance(value, np.dtype):
        return [value.str]
    if isinstance(value, Path):
        return [value.name, _contents(value) if value.is_file() else None]
    if isinstance(value, np.random.Generator):
        return [value.bit_generator.state]
    if isinstance(value, np.random.RandomState):
        return [value.get_state(legacy=False)]
    if isinstance(value, partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, type) or hasattr(value, "__qualname__"):
        return [value.__module__, value.__qualname__]
    return _settings(value)


def _contents(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _settings(value: Any) -> Sequence[Any]:
    """The fields of a record, the attributes of another object; nothing that is derived from them later."""
    if is_dataclass(value):
        named = {field.name: getattr(value, field.name) for field in fields(value)}
    else:
        kind = type(value)
        derived = {name for name in vars(value) if isinstance(getattr(kind, name, None), cached_property)}
        named = {name: each for name, each in vars(value).items() if name not in derived}
    return [(name, named[name]) for name in sorted(named) if name not in ASIDE]
