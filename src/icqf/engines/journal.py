"""A journal of finished work, and fingerprints of everything that determines a result."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from icqf import __version__
from icqf.errors import InputError
from icqf.io.atomic import write_bytes

FORMAT = "icqf-journal"
CHECKSUM = "checksum"


class Journal:
    """A file of finished records, one line of JSON each, after a header line.

    A line cut off by a crash is dropped when the journal is opened again; a changed line is recognised by its
    checksum and refused. A journal that is removed during the work is written again. It is not continued with
    other data or settings, nor by another version of icqf, whose results may differ.
    """

    def __init__(self, path: str | os.PathLike[str], identity: str) -> None:
        self.path = Path(path)
        self.records: list[dict[str, Any]] = []
        if self.path.is_dir():
            raise InputError(f"{self.path}: the checkpoint must be a file, but this is a folder.")
        content = self.path.read_bytes() if self.path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        self._whole = whole or _header_line(identity)
        if not whole:
            if content and not self._whole.startswith(content):
                raise InputError(f"{self.path}: this file is not a journal; choose another checkpoint.")
            self._create()
            return
        header, *lines = whole.splitlines()
        self._check_header(header, identity)
        for number, line in enumerate(lines, start=2):
            try:
                self.records.append(_record(line))
            except (ValueError, TypeError, KeyError):
                raise self.damaged(number) from None
        if len(whole) < len(content):
            os.truncate(self.path, len(whole))

    def _check_header(self, line: bytes, identity: str) -> None:
        try:
            header: Any = json.loads(line)
        except ValueError:
            header = None
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise InputError(f"{self.path}: this file is not a journal; choose another checkpoint.")
        if header.get("version") != __version__:
            raise InputError(
                f"{self.path}: this journal was written by icqf {header.get('version', '(no version)')}, but "
                f"this is icqf {__version__}; results of two versions are not mixed. Delete it to start "
                "again, or choose another checkpoint."
            )
        if header.get("identity") != identity:
            raise self.of_other_work()

    def damaged(self, number: int) -> InputError:
        """The error about a damaged line."""
        return InputError(
            f"{self.path}: line {number} of the journal is damaged; delete the file to start again."
        )

    def of_other_work(self) -> InputError:
        """The error about a journal of other work."""
        return InputError(
            f"{self.path}: this journal belongs to other data or other settings (answers, confounds, "
            "folds, betas, seed or options differ). Delete it to start again, or choose another "
            "checkpoint."
        )

    def append(self, records: Iterable[dict[str, Any]]) -> None:
        """Write finished records to disk."""
        lines = "".join(_line(record) for record in records).encode()
        gone = not self.path.exists()
        self._whole += lines
        if gone:
            self._create()
            return
        try:
            with open(self.path, "ab") as stream:
                stream.write(lines)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise InputError(
                f"{self.path}: the journal could not be written ({error.strerror}). Finished work is kept; "
                "free some space and run again to continue."
            ) from None

    def _create(self) -> None:
        try:
            write_bytes(self.path, self._whole)
        except (OSError, InputError) as error:  # InputError: the disk is full
            fault = error if isinstance(error, OSError) else error.__cause__
            reason = getattr(fault, "strerror", None) or error
            raise InputError(f"{self.path}: the journal cannot be created ({reason}).") from None


class WorkJournal(Journal):
    """A journal of results, each with a fingerprint of everything that determines it; see `run_all`.

    Several kinds of work may share a journal. Results of other data or settings are never used. A run of
    several kinds of work opens it once and passes it to each of them as the checkpoint.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path, "work")
        self._in_use = False

    @classmethod
    def at(cls, checkpoint: str | os.PathLike[str] | WorkJournal | None) -> WorkJournal | None:
        """Return the journal at a path, a given journal, or None."""
        return checkpoint if checkpoint is None or isinstance(checkpoint, WorkJournal) else cls(checkpoint)

    def finished(
        self, work: str, keys: Mapping[str, str], *, mixed: bool = False
    ) -> dict[str, dict[str, Any]]:
        """Results by the names of jobs, whose fingerprints are `keys`; a journal of other work is refused.

        A journal is of other work if it has only results of this kind of work, but none of these jobs; this
        is allowed for a `mixed` journal and for one that is in use already.
        """
        self.recognise(work, keys.values(), mixed=mixed)
        results = {record["key"]: record["result"] for record in self.records}
        return {name: results[key] for name, key in keys.items() if key in results}

    def recognise(self, work: str, keys: Iterable[str], *, mixed: bool = False) -> None:
        """Refuse a journal of other work at its first use."""
        of_others = all(record["work"] == work for record in self.records)
        of_others &= not {record["key"] for record in self.records}.intersection(keys)
        if self.records and of_others and not mixed and not self._in_use:
            raise self.of_other_work()
        self._in_use = True


def _header_line(identity: str) -> bytes:
    return json.dumps({"format": FORMAT, "version": __version__, "identity": identity}).encode() + b"\n"


def _line(record: dict[str, Any]) -> str:
    return json.dumps({**record, CHECKSUM: _checksum(record)}) + "\n"


def _record(line: bytes) -> dict[str, Any]:
    """The record of a line; raises an error for a damaged line."""
    record = dict(json.loads(line))
    if record.pop(CHECKSUM) != _checksum(record):
        raise ValueError("the checksum differs")
    return record


def _checksum(record: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record).encode()).hexdigest()[:16]


# Where work runs, in how many processes, and how it is reported: none of these changes results.
ASIDE = frozenset({"engine", "n_jobs", "jobs", "callback", "checkpoint", "keeps_floats"})
_PLAIN = (bool, int, float, complex, str, bytes, date, timedelta, type(pd.NA), type(pd.NaT), pd.Interval)


def fingerprint(*parts: Any) -> str:
    """Return a fingerprint that changes if anything in `parts` does.

    Tables, arrays, records, estimators (settings and fitted attributes), files (their contents, not their
    paths), functions (their names) and containers of these are included in full, except for settings of where
    the work runs (`ASIDE`).

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
    """Add a value to a digest: first its type, then its contents."""
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
    contents = _contents(value)
    update(f"{len(contents)};".encode())
    for each in contents:
        _add(update, each)


def _contents(value: Any) -> Sequence[Any]:
    """The contents of a value, in a fixed order."""
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
        return [value.name, _file_digest(value) if value.is_file() else None]
    if isinstance(value, np.random.Generator):
        return [value.bit_generator.state]
    if isinstance(value, np.random.RandomState):
        return [value.get_state(legacy=False)]
    if isinstance(value, partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, type) or hasattr(value, "__qualname__"):
        return [value.__module__, value.__qualname__]
    return _settings(value)


def _file_digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _settings(value: Any) -> Sequence[Any]:
    """The fields of a record or the attributes of another object, except cached properties."""
    if is_dataclass(value):
        named = {field.name: getattr(value, field.name) for field in fields(value)}
    else:
        kind = type(value)
        derived = {name for name in vars(value) if isinstance(getattr(kind, name, None), cached_property)}
        named = {name: each for name, each in vars(value).items() if name not in derived}
    return [(name, named[name]) for name in sorted(named) if name not in ASIDE]
