"""Tables that are read batch by batch and may be larger than memory."""

from __future__ import annotations

import codecs
import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from icqf.data.frames import AnswersInParts, SomeAnswers
from icqf.errors import InputError, did_you_mean, listed, shortened
from icqf.io.formats import ARROW, PARQUET, TEXT
from icqf.io.readers.delimited import (
    SAMPLE,
    TextLayout,
    end_of_records,
    is_even,
    layout_of,
    lone_returns,
    parse,
    read_delimited,
    records,
    without_footer,
)
from icqf.io.readers.files import read_table
from icqf.io.readers.platforms import recognised_export
from icqf.io.readers.table import (
    Table,
    check_header,
    guarded,
    id_texts,
    recognised_id,
    refuse_second_header,
    require_content,
    require_file,
    require_package,
)

BATCH_ROWS = 32768
_AHEAD = 2  # batches that are unpacked in advance
_LONGEST = 60  # characters of a cell that are shown
_WHAT = {"parquet": "a Parquet file", "ipc": "an Arrow file"}


@dataclass(frozen=True, eq=False)
class Batch:
    """Consecutive rows of a table, including missing-answer codes."""

    source: str
    rows: np.ndarray  # row numbers in the file, as in a spreadsheet
    content: Any  # a pandas table or an Arrow record batch
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The cells as a pandas table, numbered from 0."""
        if isinstance(self.content, pd.DataFrame):
            return self.content
        return guarded(partial(arrow_frame, self.content), Path(self.source), "a table")

    def table(self) -> Table:
        """These rows as a `Table`."""
        return Table(
            self.frame, self.source, self.rows, id=recognised_id(self.frame.columns), notes=self.notes
        )

    def matrix(self, names: Sequence[str]) -> np.ndarray:
        """Return columns of numbers as an array (n, m) in C order; an empty cell is NaN."""
        columns = np.empty((len(names), len(self)))
        for j, name in enumerate(names):
            columns[j] = self._numbers(name)
        return np.ascontiguousarray(columns.T)  # three times as fast as filling columns

    def _numbers(self, name: str) -> Any:
        if isinstance(self.content, pd.DataFrame):
            column = self.content[name]
            if pd.api.types.is_numeric_dtype(column.dtype):  # true and false are 1 and 0
                return column.to_numpy(dtype=float, na_value=np.nan)
        else:
            import pyarrow as pa
            import pyarrow.compute as pc

            cells = self.content.column(name)
            numeric = pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal
            if any(each(cells.type) for each in numeric):
                return pc.cast(cells, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        present = [cell for cell in self.frame[name] if not (pd.api.types.is_scalar(cell) and pd.isna(cell))]
        if not present:
            return np.nan
        cell = next((cell for cell in present if not _is_number(cell)), present[0])
        shown = shortened(repr(cell), _LONGEST)
        raise InputError(
            f"{self.source}: the column {name!r} holds {shown}, which is not a number.",
            code="text-cells",
            remedy="Code its answers as numbers, or leave the column out.",
            column=name,
        )


def _is_number(cell: object) -> bool:
    try:
        return math.isfinite(float(cell))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False


def arrow_frame(batch: Any) -> pd.DataFrame:
    """Return an Arrow record batch as a pandas table, numbered from 0, with text names."""
    import pyarrow as pa

    table = pa.Table.from_batches([batch])
    try:
        frame: pd.DataFrame = table.to_pandas()
    except (TypeError, NotImplementedError):  # the pandas metadata does not fit the columns
        frame = table.to_pandas(ignore_metadata=True)
    return frame.reset_index(drop=True).set_axis(table.column_names, axis=1)


# --- Parquet and Arrow --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ArrowStream:
    """A table in Parquet or Arrow files, or an Arrow dataset, that is never in memory as a whole."""

    source: str
    names: tuple[str, ...]
    n_rows: int
    batch_rows: int
    files: tuple[Path, ...] = ()
    dataset: Any = field(default=None, repr=False)
    folder: Path | None = None

    whole = False

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Batch]:
        """Read the table from its beginning: these columns in order, or all."""
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
    path = path.absolute()  # datasets keep paths as given
    if path.is_dir():
        files = files_in(path)
    else:
        require_content(path)
        files = (path,)
    folder = path if path.is_dir() else None
    dataset = open_dataset(files, folder)
    return _described(dataset, path.name, batch_rows, files, folder)


def numbered_by_pandas(path: Path) -> bool:
    """Whether a Parquet file has a named index that pandas stores as a range, not as cells."""
    require_package("pyarrow", "pyarrow", path)
    require_content(path)
    if path.suffix.lower() not in PARQUET:
        return False
    import pyarrow.parquet as pq

    schema = guarded(lambda: pq.read_schema(path), path, _WHAT["parquet"])
    index = _pandas_metadata(schema).get("index_columns", [])
    return any(isinstance(each, dict) and each.get("name") for each in index)


def of_dataset(dataset: Any, batch_rows: int) -> ArrowStream:
    """Wrap an Arrow dataset."""
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
    """Open files with the same columns as one dataset; folder names (``site=A``) may add columns."""
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
    in_files = {name for schema in schemas.values() for name in schema.names}
    by_folder = pa.schema([column for column in whole.schema if column.name not in in_files])
    by_folder = by_folder.remove_metadata()
    try:
        schema = pa.unify_schemas([*schemas.values(), by_folder], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise _different_types(schemas, folder) from None
    return ds.dataset(paths, schema=schema, **options)


def files_in(folder: Path) -> tuple[Path, ...]:
    """The Parquet files of a folder and its subfolders, sorted by name."""
    inside = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and path.suffix.lower() in PARQUET
        and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    ]
    if not inside:
        content = sorted(path.name for path in folder.iterdir())
        holds = f"it holds {listed(content)}" if content else "it is empty"
        raise InputError(
            f"{folder.name}: the folder holds no Parquet file; {holds}.",
            code="no-parquet",
            remedy="Name a file, or a folder of Parquet files with the same columns.",
        )
    for path in inside:
        require_content(path)
    return tuple(inside)


def _fragments(dataset: Any, source: str, folder: Path | None) -> Iterator[tuple[Any, Path, str]]:
    """The parts of a dataset, each with its name and format for messages."""
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
    # Unbuffered, a file with one large row group would be read at once.
    options["fragment_scan_options"] = ds.ParquetFragmentScanOptions(
        use_buffered_stream=True, pre_buffer=False
    )
    parts = (part.to_batches(batch_readahead=_AHEAD, **options) for part in _parts(fragment, batch_rows))
    return _even(chain.from_iterable(parts), batch_rows)


def _parts(fragment: Any, batch_rows: int) -> Iterator[Any]:
    """Some row groups of a Parquet file at a time, as Arrow unpacks up to 1 GB in advance."""
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
    """Join small batches; many files have row groups of a few hundred rows."""
    import pyarrow as pa

    waiting: list[Any] = []
    for batch in batches:
        waiting.append(batch)
        if 2 * sum(map(len, waiting)) > batch_rows:
            yield _join_batches(waiting, pa)
            waiting = []
    if sum(map(len, waiting)):
        yield _join_batches(waiting, pa)


def _join_batches(batches: list[Any], pa: Any) -> Any:
    for batch in batches:
        for column in batch.columns:
            if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
                column.validate(full=True)  # finds damaged text
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _without_index(schema: Any) -> Any:
    """The schema with a named pandas index first, and without an unnamed one."""
    known = _pandas_metadata(schema)
    index = [name for name in known.get("index_columns", []) if isinstance(name, str)]
    unnamed = [name for name in index if name.startswith("__index_level_")]
    named = [name for name in index if name not in unnamed and name in schema.names]
    if not index:
        return schema.remove_metadata() if not known else _with_metadata(schema, known)
    import pyarrow as pa

    order = [*named, *(name for name in schema.names if name not in index)]
    return _with_metadata(pa.schema([schema.field(name) for name in order], metadata=schema.metadata), known)


def _pandas_metadata(schema: Any) -> dict[str, Any]:
    """The metadata of pandas; empty if damaged, as cells can be read without it."""
    try:
        metadata = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    except (ValueError, RecursionError):
        return {}
    sound = isinstance(metadata, dict) and isinstance(metadata.get("index_columns", []), list)
    return metadata if sound else {}


def _with_metadata(schema: Any, known: dict[str, Any]) -> Any:
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
                    f"{absent[0]!r}{more}, {other.name} does not.",
                    code="different-columns",
                    remedy="Give all files of the folder the same columns, or move the others elsewhere.",
                    column=absent[0],
                )


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


# --- delimited text -----------------------------------------------------------------------------------------


class _NotPlain(Exception):
    """A text that only the reader of whole files can read, or refuse with the right message."""


@dataclass(frozen=True, eq=False)
class TextStream:
    """A delimited text that is read batch by batch, with the same cells as from `read_delimited`.

    Every batch must be UTF-8 with as many cells in each row as in the header. From the first batch on that is
    not, the file is read at once, as other encodings and damaged rows are recognised only from all of it.
    """

    source: str
    names: tuple[str, ...]
    batch_rows: int
    path: Path
    text: tuple[str, ...]

    n_rows = None
    whole = False

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Batch]:
        """Read the text from its beginning: these columns in order, or all."""
        done = 0
        try:
            for batch in self._plain_batches(columns):
                yield batch
                done += len(batch)
        except _NotPlain:
            require_file(self.path)
            table = read_delimited(self.path, text=self.text)
            for start in range(done, len(table.frame), self.batch_rows):
                part = slice(start, start + self.batch_rows)
                frame = table.frame.iloc[part].reset_index(drop=True)
                frame = frame if columns is None else frame[list(columns)]
                yield Batch(self.source, table.rows[part], frame, table.notes)

    def _plain_batches(self, columns: Sequence[str] | None) -> Iterator[Batch]:
        with self.path.open("rb") as file:
            start = file.read(SAMPLE)
            file.seek(len(codecs.BOM_UTF8) if start.startswith(codecs.BOM_UTF8) else 0)
            start = start.removeprefix(codecs.BOM_UTF8)
            layout = layout_of(start.decode("utf-8", errors="ignore"), self.source, text=self.text)
            size = self.batch_rows * max(len(start) // max(start.count(b"\n"), 1), 1)
            line, rest = 1, b""
            while data := file.read(size):
                data = rest + data
                cut = end_of_records(data)
                rest = data[cut:]
                if len(rest) > max(8 * size, 2**24):  # an unclosed quotation mark
                    raise _NotPlain
                if cut:
                    yield from self._batch(data[:cut], layout, columns, line)
                    line += data.count(b"\n", 0, cut)
            if rest:
                yield from self._batch(rest, layout, columns, line)
            elif line <= 2:  # only a header
                raise _NotPlain

    def _batch(
        self, piece: bytes, layout: TextLayout, columns: Sequence[str] | None, line: int
    ) -> Iterator[Batch]:
        frame, rows = _cells(piece, layout, columns, line, self.source)
        if len(frame):
            yield Batch(self.source, rows, frame)


def open_text(path: Path, batch_rows: int, text: Sequence[str]) -> TextStream | None:
    """Open a delimited text with a plain beginning; None if it must be read at once."""
    with path.open("rb") as file:
        start = file.read(SAMPLE)
    start = start.removeprefix(codecs.BOM_UTF8)
    sample = start.decode("utf-8", errors="ignore")
    if b"\0" in start[:4096] or start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return None
    if not sample.strip() or b"\n" not in start or lone_returns(start):
        return None
    layout = layout_of(sample, path.name, text=text)
    if not all(layout.header) or layout.start or len({*layout.header}) < len(layout.header):
        return None
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - SAMPLE))
        if without_footer(file.read(), layout.delimiter, len(layout.header))[1]:
            return None
    top = pd.DataFrame(columns=list(layout.header), dtype=object)
    if (
        recognised_export(Table(top, path.name, np.arange(0))).metadata
        or layout.header[0].lower() == "timestamp"
    ):
        return None
    return TextStream(path.name, layout.header, batch_rows, path, tuple(text))


def _cells(
    piece: bytes, layout: TextLayout, columns: Sequence[str] | None, line: int, source: str
) -> tuple[pd.DataFrame, np.ndarray]:
    """Parse complete records that begin in `line`, with the header if that is line 1."""
    width, header = len(layout.header), line == 1
    lines = None
    if not is_even(piece, layout.delimiter, width):
        if lone_returns(piece) or not piece.strip():
            raise _NotPlain
        lines, widths = records(piece, layout.delimiter)
        if (widths != width).any():
            raise _NotPlain
    try:
        if not piece.isascii():
            piece.decode("utf-8")
        names = list(layout.header if columns is None else columns)
        places = [layout.header.index(name) for name in names]
        options = {**layout.options, "header": 0 if header else None}
        frame = parse(piece, options if columns is None else {**options, "usecols": places})
    except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.ParserWarning, pd.errors.EmptyDataError):
        raise _NotPlain from None
    if columns is not None:
        frame = frame[places]
    frame = frame.set_axis(names, axis=1)
    rows = np.arange(line + header, line + header + len(frame))
    if lines is not None:
        if len(lines) != len(frame) + header:
            raise _NotPlain
        rows = lines[int(header) :] + line - 1
    refuse_second_header(frame, rows, source)
    return frame, rows


# --- any table ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class WholeStream:
    """A table in memory, such as from a format that cannot be read in parts, in batches."""

    table: Table
    batch_rows: int = BATCH_ROWS

    whole = True

    @property
    def source(self) -> str:
        return self.table.source

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(map(str, self.table.frame.columns))

    @property
    def n_rows(self) -> int:
        return len(self.table.frame)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Batch]:
        """Yield the table from its beginning: these columns in order, or all."""
        frame = self.table.frame if columns is None else self.table.frame[list(columns)]
        for start in range(0, len(frame), self.batch_rows):
            part = slice(start, start + self.batch_rows)
            cells = frame.iloc[part].reset_index(drop=True)
            yield Batch(self.source, self.table.rows[part], cells, self.table.notes)


# A table that can be read several times, batch by batch. `source` is its name, `names` are its columns,
# `n_rows` is its number of rows (None: unknown before it is read); it is `whole` if it was read at once.
Stream = ArrowStream | TextStream | WholeStream


def open_stream(
    source: str | os.PathLike[str] | Any, *, batch_rows: int = BATCH_ROWS, text: Iterable[str] = ()
) -> Stream:
    """Open a table for reading batch by batch.

    Parameters
    ----------
    source : path or pyarrow.dataset.Dataset
        A Parquet file, a folder of Parquet files with the same columns, an Arrow (Feather) file, an Arrow
        dataset, or delimited text: these are never entirely in memory, except text that is not UTF-8 and
        exports with several header rows. Files of other formats are read at once.
    batch_rows : int
        Most rows of a batch; approximate for text, and fewer for a file with small row groups.
    text : iterable of str
        Columns of delimited text to read as text, so that ``007`` stays ``007``.

    Returns
    -------
    Stream
        With `source`, `names`, `n_rows`, `whole` and `batches()`; it can be read again, and pickled.

    Examples
    --------
    >>> from icqf.datasets import demo_paths
    >>> from icqf.io import open_stream
    >>> stream = open_stream(demo_paths().answers, batch_rows=200)
    >>> len(stream.names), stream.n_rows
    (124, None)
    >>> sum(batch.matrix(["q001", "q002"]).shape[0] for batch in stream.batches())
    600
    """
    if not isinstance(source, (str, os.PathLike)):
        if hasattr(source, "get_fragments"):
            return of_dataset(source, batch_rows)
        raise InputError(
            f"A table is read in batches from a file, a folder of Parquet files or an Arrow dataset, not "
            f"from {type(source).__name__!r}."
        )
    path, columns = Path(source), tuple(text)
    suffix = path.suffix.lower()
    if path.is_dir() or (suffix in (*PARQUET, *ARROW) and not numbered_by_pandas(path)):
        return open_arrow(path, batch_rows)
    if suffix in TEXT:
        require_content(path)
        plain = open_text(path, batch_rows, columns)
        if plain is not None:
            return plain
    return WholeStream(read_table(path, text=columns), batch_rows)


def parts_of_file(source: Any, confounds: Sequence[str] = ()) -> AnswersInParts:
    """The answers and confounds of a file, folder or dataset, in parts; repeated ids are refused."""
    stream = open_stream(source)
    for name in confounds:
        if name not in stream.names:
            raise InputError(
                f"{stream.source}: the confound {name!r} is not a column of the table."
                f"{did_you_mean(name, stream.names)} It has {listed(stream.names)}."
            )
    id = recognised_id(stream.names)
    items = [name for name in stream.names if name not in confounds and name != id]
    if not items:
        raise InputError(f"{stream.source}: apart from ids and confounds, the table has no column.")

    def parts() -> Iterator[SomeAnswers]:
        ids: list[np.ndarray] = []
        for batch in stream.batches([*items, *confounds, *([] if id is None else [id])]):
            answers = pd.DataFrame(batch.matrix(items), columns=items, index=batch.rows)
            own = batch.frame[list(confounds)].set_axis(batch.rows) if confounds else None
            if id is not None:
                ids.append(hashed_ids(pd.Index(id_texts(batch.frame[id]))))
            yield SomeAnswers(answers, own, batch.source)
        fault = repeated_id(stream, ids, str(id))
        if fault is not None:
            raise fault

    return AnswersInParts(parts)


def hashed_ids(index: pd.Index) -> np.ndarray:
    """An eight-byte hash of each id, to recognise it in another batch."""
    return pd.util.hash_array(index.to_numpy(dtype=object), categorize=False)


def repeated_id(stream: Stream, ids: Sequence[np.ndarray], name: str) -> InputError | None:
    """The error for an id that occurs in two batches; ids with equal hashes are read again to be sure.

    `ids` are those of all batches (`hashed_ids`), and `name` is their column.
    """
    every = np.sort(np.concatenate(ids)) if ids else np.empty(0, dtype=np.uint64)
    suspects = np.unique(every[1:][every[1:] == every[:-1]])
    if not len(suspects):
        return None
    seen: dict[str, str] = {}
    first: tuple[str, str, str] | None = None
    again = 0
    for batch in stream.batches([name]):
        texts = np.array(id_texts(batch.frame[name]), dtype=object)
        for place in np.flatnonzero(np.isin(hashed_ids(pd.Index(texts)), suspects, kind="sort")):
            text, where = texts[place], f"{batch.source}, row {batch.rows[place]}"
            if text in seen:
                again += 1
                first = first or (text, seen[text], where)
            seen.setdefault(text, where)
    if first is None:
        return None
    more = f", and {again - 1} more rows repeat an id" if again > 1 else ""
    return InputError(
        f"{stream.source}: the id {first[0]!r} in column {name!r} appears twice ({first[1]}, "
        f"and {first[2]}){more}.",
        code="duplicate-id",
        remedy="Keep one row per participant.",
        participant=first[0],
    )
