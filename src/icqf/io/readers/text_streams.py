"""Delimited text, read batch by batch where it is plain, and whole where it is not."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from icqf.io.readers.batches import Batch
from icqf.io.readers.delimited import SAMPLE, TextLayout, layout_of, parse, read_delimited
from icqf.io.readers.lines import end_of_records, is_even, lone_returns, records
from icqf.io.readers.platforms import recognised_export, without_further_headers
from icqf.io.readers.tables import Table, refuse_second_header, require_file


class _NotPlain(Exception):
    """A text that only the reader of whole files understands, or refuses with the right words."""


@dataclass(frozen=True, eq=False)
class TextStream:
    """A delimited text that is read batch by batch, with the same cells as `read_delimited` gives.

    Every batch must be UTF-8 with as many cells in each row as the header has. From the first batch on that
    is not, the file is read whole, as other encodings and damaged rows can only be told from all of it.

    Parameters
    ----------
    source : str
        Name of the file.
    names : tuple of str
    batch_rows : int
        About as many rows has a batch.
    path : Path
    text : tuple of str
        Columns to read as text.
    """

    source: str
    names: tuple[str, ...]
    batch_rows: int
    path: Path
    text: tuple[str, ...]

    n_rows = None
    whole = False

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Batch]:
        """Read the text from its beginning; only the columns named, in that order, or all."""
        done = 0
        try:
            for batch in self._plain_batches(columns):
                yield batch
                done += len(batch)
        except _NotPlain:
            table = whole_text(self.path, self.text)
            for start in range(done, len(table.frame), self.batch_rows):
                part = slice(start, start + self.batch_rows)
                frame = table.frame.iloc[part].reset_index(drop=True)
                frame = frame if columns is None else frame[list(columns)]
                yield Batch(self.source, table.rows[part], frame, table.notes)

    def _plain_batches(self, columns: Sequence[str] | None) -> Iterator[Batch]:
        with self.path.open("rb") as file:
            start = file.read(SAMPLE)
            marked = start.startswith(codecs.BOM_UTF8)
            file.seek(len(codecs.BOM_UTF8) if marked else 0)
            start = start.removeprefix(codecs.BOM_UTF8)
            notes = ("The text was read as utf-8-sig.",) if marked else ()
            layout = layout_of(start.decode("utf-8", errors="ignore"), self.source, text=self.text)
            size = self.batch_rows * max(len(start) // max(start.count(b"\n"), 1), 1)
            line, rest = 1, b""
            while data := file.read(size):
                data = rest + data
                cut = end_of_records(data)
                rest = data[cut:]
                if len(rest) > max(8 * size, 2**24):  # a quotation mark that is never closed
                    raise _NotPlain
                if cut:
                    yield from self._batch(data[:cut], layout, columns, line, notes)
                    line += data.count(b"\n", 0, cut)
            if rest:
                yield from self._batch(rest, layout, columns, line, notes)
            elif line <= 2:  # nothing but a header
                raise _NotPlain

    def _batch(
        self,
        piece: bytes,
        layout: TextLayout,
        columns: Sequence[str] | None,
        line: int,
        notes: tuple[str, ...],
    ) -> Iterator[Batch]:
        frame, rows = _cells(piece, layout, columns, line, self.source)
        if len(frame):
            yield Batch(self.source, rows, frame, notes)


def open_text(path: Path, batch_rows: int, text: Sequence[str]) -> TextStream | None:
    """Open a delimited text of which the beginning is plain; None where it must be read whole."""
    with path.open("rb") as file:
        start = file.read(SAMPLE)
    start = start.removeprefix(codecs.BOM_UTF8)
    sample = start.decode("utf-8", errors="ignore")
    if b"\0" in start[:4096] or start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return None
    if not sample.strip() or b"\n" not in start or lone_returns(start):
        return None
    layout = layout_of(sample, path.name, text=text)
    if not all(layout.header) or without_further_headers(start, sample, layout.delimiter)[2]:
        return None
    top = pd.DataFrame(columns=list(layout.header), dtype=object)
    if (
        recognised_export(Table(top, path.name, np.arange(0))).metadata
        or layout.header[0].lower() == "timestamp"
    ):
        return None
    return TextStream(path.name, layout.header, batch_rows, path, tuple(text))


def whole_text(path: Path, text: Sequence[str]) -> Table:
    """Read all of a text that is not plain."""
    require_file(path)
    return read_delimited(path, text=text)


def _cells(
    piece: bytes, layout: TextLayout, columns: Sequence[str] | None, line: int, source: str
) -> tuple[pd.DataFrame, np.ndarray]:
    """Parse whole records, of which the first stands in `line`, and is the header if that is line 1."""
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
