"""Tables that are read batch by batch, so that they may be larger than the memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from icqf.errors import InputError
from icqf.io.formats import ARROW, PARQUET, TEXT
from icqf.io.readers.arrow_streams import numbered_by_pandas, of_dataset, open_arrow
from icqf.io.readers.batches import Batch
from icqf.io.readers.files import read_table
from icqf.io.readers.tables import Table, require_content
from icqf.io.readers.text_streams import open_text

BATCH_ROWS = 32768


class Stream(Protocol):
    """A table that can be read several times, batch by batch.

    `source` is its name, `names` are its columns, `n_rows` its number of rows (None where that is not known
    before it is read), and `whole` says whether it had to be read whole.
    """

    @property
    def source(self) -> str: ...

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def n_rows(self) -> int | None: ...

    @property
    def whole(self) -> bool: ...

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Batch]:
        """Read the table from its beginning; only the columns named, in that order, or all."""
        ...


@dataclass(frozen=True, eq=False)
class WholeStream:
    """A table of a format that cannot be read in parts, or that is in memory already, handed on in batches.

    Examples
    --------
    >>> from icqf.datasets import demo_paths
    >>> stream = WholeStream(read_table(demo_paths().answers), batch_rows=250)
    >>> [len(batch) for batch in stream.batches()]
    [250, 250, 100]
    """

    table: Table
    batch_rows: int = BATCH_ROWS

    whole = True

    @property
    def source(self) -> str:
        """Name of the file."""
        return self.table.source

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(map(str, self.table.frame.columns))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.table.frame)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Batch]:
        """Hand the table on from its beginning; only the columns named, in that order, or all."""
        frame = self.table.frame if columns is None else self.table.frame[list(columns)]
        for start in range(0, len(frame), self.batch_rows):
            part = slice(start, start + self.batch_rows)
            cells = frame.iloc[part].reset_index(drop=True)
            yield Batch(self.source, self.table.rows[part], cells, self.table.notes)


def open_stream(
    source: str | os.PathLike[str] | Any, *, batch_rows: int = BATCH_ROWS, text: Iterable[str] = ()
) -> Stream:
    """Open a table to be read batch by batch.

    Parameters
    ----------
    source : path or pyarrow.dataset.Dataset
        A Parquet file, a folder of Parquet files with the same columns, an Arrow (Feather) file, an Arrow
        dataset, or delimited text: these are never held whole, except text in another encoding than UTF-8
        and exports with several header rows. Files of other formats are read whole.
    batch_rows : int
        Most rows of a batch; of text about as many, and of a file with small row groups fewer.
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
            f"A table to be read in batches is a file, a folder of Parquet files or an Arrow dataset, not "
            f"{type(source).__name__!r}."
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
