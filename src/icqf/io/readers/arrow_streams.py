"""Parquet and Arrow files, folders of them, and Arrow datasets, read batch by batch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from icqf.errors import InputError, listed
from icqf.io.formats import ARROW, PARQUET
from icqf.io.readers.batches import Batch
from icqf.io.readers.tables import check_header, guarded, require_content, require_package

_AHEAD = 2  # batches that are unpacked before they are asked for


@dataclass(frozen=True, eq=False)
class ArrowStream:
    """A table in Parquet or Arrow files, or in an Arrow dataset, that is never held whole.

    Parameters
    ----------
    source : str
        Name of the file, folder or dataset.
    names : tuple of str
    n_rows : int
    batch_rows : int
        Most rows of a batch.
    files : tuple of Path
        The files, in their order; none for a dataset that is in memory.
    dataset : pyarrow.dataset.Dataset or None
        The dataset, where that is what was given.
    """

    source: str
    names: tuple[str, ...]
    n_rows: int
    batch_rows: int
    files: tuple[Path, ...] = ()
    dataset: Any = field(default=None, repr=False)
    folder: Path | None = None

    whole = False

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Batch]:
        """Read the table from its beginning; only the columns named, in that order, or all."""
        names = list(self.names if columns is None else columns)
        dataset = self.dataset if self.dataset is not None else open_dataset(self.files, self.folder)
        schema = _without_index(dataset.schema)
        for fragment, source, what in _fragments(dataset, self.source, self.folder):
            row = 1
            reader = guarded(partial(_reader, fragment, schema, names, self.batch_rows), source, what)
            while (piece := guarded(partial(next, reader, None), source, what)) is not None:
                yield Batch(str(source), np.arange(row, row + len(piece)), piece)
                row += len(piece)


def open_arrow(path: Path, batch_rows: int) -> ArrowStream:
    """Open a Parquet or Arrow file, or a folder of Parquet files with the same columns."""
    require_package("pyarrow", "pyarrow", path)
    path = path.absolute()  # datasets name their files as they were given
    if path.is_dir():
        files = files_in(path)
    else:
        require_content(path)
        files = (path,)
    folder = path if path.is_dir() else None
    dataset = open_dataset(files, folder)
    return _described(dataset, path.name, batch_rows, files, folder)


def numbered_by_pandas(path: Path) -> bool:
    """Whether a Parquet file has a named index that pandas keeps as a rule (1, 2, 3, …) and not as cells."""
    require_package("pyarrow", "pyarrow", path)
    require_content(path)
    if path.suffix.lower() not in PARQUET:
        return False
    import pyarrow.parquet as pq

    schema = guarded(lambda: pq.read_schema(path), path, _WHAT["parquet"])
    index = _known_by_pandas(schema).get("index_columns", [])
    return any(isinstance(each, dict) and each.get("name") for each in index)


def of_dataset(dataset: Any, batch_rows: int) -> ArrowStream:
    """Open an Arrow dataset that is there already."""
    return _described(dataset, "the dataset", batch_rows, (), None, given=dataset)


def _described(
    dataset: Any,
    source: str,
    batch_rows: int,
    files: tuple[Path, ...],
    folder: Path | None,
    given: Any = None,
) -> ArrowStream:
    n_rows = sum(
        int(guarded(fragment.count_rows, place, what))
        for fragment, place, what in _fragments(dataset, source, folder)
    )
    names = tuple(_without_index(dataset.schema).names)
    check_header(list(names), source)
    return ArrowStream(source, names, n_rows, batch_rows, files, given, folder)


def open_dataset(files: Sequence[Path], folder: Path | None) -> Any:
    """Open files with the same columns as one dataset; the folders' names (``site=A``) may tell more."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    kind = "parquet" if files[0].suffix.lower() in PARQUET else "ipc"
    options: dict[str, Any] = {"format": kind}
    if folder is not None:
        options |= {"partitioning": "hive", "partition_base_dir": str(folder)}
    paths = [str(file) for file in files]
    whole = guarded(lambda: ds.dataset(paths, **options), files[0], _WHAT[kind])
    if folder is None:
        return whole
    schemas = {}
    for fragment, place, what in _fragments(whole, folder.name, folder):
        schemas[place] = guarded(partial(getattr, fragment, "physical_schema"), place, what)
    _refuse_different(schemas, folder)
    told = [pa.field(name, whole.schema.field(name).type) for name in _told_by_folders(whole, schemas)]
    try:
        schema = pa.unify_schemas([*schemas.values(), pa.schema(told)], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise _different_types(schemas, folder) from None
    return ds.dataset(paths, schema=schema, **options)


_WHAT = {"parquet": "a Parquet file", "ipc": "an Arrow file"}


def files_in(folder: Path) -> tuple[Path, ...]:
    """The Parquet files of a folder and of the folders in it, in the order of their names."""
    inside = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and path.suffix.lower() in PARQUET
        and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    ]
    if not inside:
        there = sorted(path.name for path in folder.iterdir())
        holds = f"it holds {listed(there)}" if there else "it is empty"
        raise InputError(
            f"{folder.name}: the folder holds no Parquet file; {holds}.",
            code="no-parquet",
            remedy="Name a file, or a folder of Parquet files with the same columns.",
        )
    for path in inside:
        require_content(path)
    return tuple(inside)


def _fragments(dataset: Any, source: str, folder: Path | None) -> Iterator[tuple[Any, Path, str]]:
    """The parts of a dataset, each with its name for messages and with what it is, in words."""
    for fragment in dataset.get_fragments():
        path = Path(getattr(fragment, "path", "") or source)
        place = Path(path.name) if folder is None else Path(folder.name, path.relative_to(folder))
        ending = path.suffix.lower()
        what = _WHAT["parquet"] if ending in PARQUET else _WHAT["ipc"] if ending in ARROW else "a dataset"
        yield fragment, place, what


def _reader(fragment: Any, schema: Any, names: Sequence[str], batch_rows: int) -> Iterator[Any]:
    import pyarrow.dataset as ds

    options: dict[str, Any] = {"schema": schema, "columns": list(names), "batch_size": batch_rows}
    if not isinstance(fragment, ds.ParquetFileFragment):
        return _even(fragment.to_batches(batch_readahead=_AHEAD, **options), batch_rows)
    # Unbuffered, a file with one large row group would be held whole.
    options["fragment_scan_options"] = ds.ParquetFragmentScanOptions(
        use_buffered_stream=True, pre_buffer=False
    )
    parts = (part.to_batches(batch_readahead=_AHEAD, **options) for part in _parts(fragment, batch_rows))
    return _even(chain.from_iterable(parts), batch_rows)


def _parts(fragment: Any, batch_rows: int) -> Iterator[Any]:
    """Some row groups of a Parquet file at a time: Arrow unpacks up to 1 GB of what is not yet asked for."""
    waiting: list[int] = []
    rows = 0
    for group in fragment.row_groups:
        waiting.append(group.id)
        rows += group.num_rows
        if rows >= batch_rows:
            yield fragment.subset(row_group_ids=waiting)
            waiting, rows = [], 0
    if waiting:
        yield fragment.subset(row_group_ids=waiting)


def _even(batches: Iterator[Any], batch_rows: int) -> Iterator[Any]:
    """Put small batches together; many files have row groups of a few hundred rows."""
    import pyarrow as pa

    waiting: list[Any] = []
    for batch in batches:
        waiting.append(batch)
        if 2 * sum(map(len, waiting)) > batch_rows:
            yield _joined(waiting, pa)
            waiting = []
    if sum(map(len, waiting)):
        yield _joined(waiting, pa)


def _joined(batches: list[Any], pa: Any) -> Any:
    for batch in batches:
        for column in batch.columns:
            if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
                column.validate(full=True)  # damaged text is only found when it is looked at
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _without_index(schema: Any) -> Any:
    """The schema with the index that pandas kept: first if it has a name, and left out if it has none."""
    known = _known_by_pandas(schema)
    index = [name for name in known.get("index_columns", []) if isinstance(name, str)]
    unnamed = [name for name in index if name.startswith("__index_level_")]
    named = [name for name in index if name not in unnamed and name in schema.names]
    if not index:
        return schema.remove_metadata() if not known else _with_known(schema, known)
    import pyarrow as pa

    order = [*named, *(name for name in schema.names if name not in index)]
    kept = pa.schema([schema.field(name) for name in order], metadata=schema.metadata)
    return _with_known(kept, known)


def _known_by_pandas(schema: Any) -> dict[str, Any]:
    """What pandas noted of the columns; nothing where the note is damaged, as cells are read without it."""
    try:
        found = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    except (ValueError, RecursionError):
        return {}
    sound = isinstance(found, dict) and isinstance(found.get("index_columns", []), list)
    return found if sound else {}


def _with_known(schema: Any, known: dict[str, Any]) -> Any:
    return schema.with_metadata({b"pandas": json.dumps({**known, "index_columns": []}).encode()})


def _refuse_different(schemas: dict[Path, Any], folder: Path) -> None:
    """Refuse a folder whose files are not parts of one table."""
    first, *others = schemas
    for place in others:
        for one, other in ((first, place), (place, first)):
            absent = [name for name in schemas[one].names if name not in schemas[other].names]
            if absent:
                more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
                raise InputError(
                    f"{folder.name}: the files are not parts of one table: {one.name} has the column "
                    f"{absent[0]!r}{more}, {other.name} has not.",
                    code="different-columns",
                    remedy="Give all files of the folder the same columns, or move those that do not belong "
                    "to it.",
                    column=absent[0],
                )


def _told_by_folders(dataset: Any, schemas: dict[Path, Any]) -> list[str]:
    there = {name for schema in schemas.values() for name in schema.names}
    return [name for name in dataset.schema.names if name not in there]


def _different_types(schemas: dict[Path, Any], folder: Path) -> InputError:
    import pyarrow as pa

    first, *others = schemas
    for place in others:
        for name in schemas[first].names:
            fields = [pa.schema([schemas[each].field(name)]) for each in (first, place)]
            try:
                pa.unify_schemas(fields, promote_options="permissive")
            except (pa.ArrowInvalid, pa.ArrowTypeError):
                one, other = (str(each.field(name).type) for each in fields)
                return InputError(
                    f"{folder.name}: the column {name!r} is of the type {one} in {first.name}, but {other} "
                    f"in {place.name}.",
                    code="different-types",
                    remedy="Write all files of the folder with the same types.",
                    column=name,
                )
    return InputError(f"{folder.name}: the files have columns of different types.", code="different-types")
