"""Writing result tables; a text cell never becomes a formula."""

from __future__ import annotations

import errno
import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from importlib.util import find_spec
from itertools import chain, repeat
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from icqf.data.frames import as_pandas
from icqf.errors import InputError
from icqf.io.atomic import FULL, new_file
from icqf.io.formats import WRITABLE

_NEEDS = {"parquet": "pyarrow", "xlsx": "xlsxwriter", "sav": "pyreadstat"}
RISKY = re.compile(r"^'*[=+\-@\t\r]")
NEEDS_QUOTES = re.compile(r'[",\n\r]')
_ODD = ('"', ",", "\r", *(f"\n{start}" for start in "'=+-@\t"))
_PROBE = 2**16  # bytes
PLAIN_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def harmless(cell: object) -> object:
    """Return a cell that no spreadsheet treats as a formula: risky text gets a leading apostrophe."""
    if isinstance(cell, str) and RISKY.match(cell) and not PLAIN_NUMBER.fullmatch(cell):
        return "'" + cell
    return cell


def unharmed(cell: str) -> str:
    """Undo `harmless`."""
    return cell[1:] if cell.startswith("'") and RISKY.match(cell) else cell


def write_table(
    frame: Any,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    decimals: int | None = None,
) -> None:
    """Write a table, completely or not at all; a named index becomes the first columns.

    Parameters
    ----------
    frame : table of pandas, polars or another library
        The table to write.
    path : path
        Where to write it.
    format : {"csv", "parquet", "xlsx", "sav"}, optional
        None: by the extension of `path`.
    decimals : int, optional
        Decimals in a CSV file; None: full precision. Other formats always have full precision.

    Notes
    -----
    In CSV a text that begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return gets a leading
    apostrophe, so that a spreadsheet does not evaluate it; in Excel files it is stored as text, unchanged.
    Numbers stay numbers.

    Examples
    --------
    >>> import pandas as pd, pathlib, tempfile
    >>> scores = pd.DataFrame({"Worry": [0.25]}, index=pd.Index(["=P1"], name="id"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "scores.csv")
    ...     write_table(scores, file)
    ...     file.read_text()
    "id,Worry\\n'=P1,0.25\\n"
    """
    with table_writer(path, format=format, decimals=decimals) as writer:
        writer.add(writer.rendered(as_pandas(frame)))


class TableWriter:
    """A table written part by part to a path or, for CSV, an open file; see `table_writer`."""

    def __init__(self, place: Path | IO[bytes], format: str, decimals: int | None) -> None:
        self._place, self._format, self._decimals = place, format, decimals
        self._file = place.open("wb") if isinstance(place, Path) else place
        self._parquet: Any = None
        self._frames: list[pd.DataFrame] = []
        self._begun = False

    def rendered(self, frame: pd.DataFrame) -> Any:
        """A part in the format of the file; thread-safe."""
        if self._format == "csv":
            head, body = _csv_parts(frame, decimals=self._decimals)
            return head.encode(), body.encode()
        if self._format == "parquet":
            import pyarrow as pa

            return pa.Table.from_pandas(_flat(frame), preserve_index=False)
        return frame

    def add(self, part: Any) -> None:
        """Write the next part, from `rendered`."""
        if self._format == "csv":
            head, body = part
            self._file.write(body if self._begun else head + body)
        elif self._format == "parquet":
            import pyarrow.parquet as pq

            if self._parquet is None:
                self._parquet = pq.ParquetWriter(self._file, part.schema)
            self._parquet.write_table(part)
        else:  # these formats are written at once
            self._frames.append(part)
        self._begun = True

    def end(self) -> None:
        """Finish the file after the last part."""
        if self._parquet is not None:
            self._parquet.close()
        if isinstance(self._place, Path):
            self._file.close()
            if self._frames:
                writers = {"xlsx": _write_xlsx, "sav": _write_sav}
                writers[self._format](_flat(pd.concat(self._frames)), self._place)

    def give_up(self) -> None:
        """Close a file that will not be finished."""
        with suppress(OSError, ValueError):
            if self._parquet is not None:
                self._parquet.close()  # otherwise garbage collection would write more
        with suppress(OSError):
            if isinstance(self._place, Path):
                self._file.close()


@contextmanager
def table_writer(
    path: str | os.PathLike[str], *, format: str | None = None, decimals: int | None = None
) -> Iterator[TableWriter]:
    """Yield a writer for a table that comes part by part; the file appears, complete, on success.

    CSV and Parquet files are never held in memory. The parameters are those of `write_table`.
    """
    target = Path(path)
    ending = format or target.suffix.lower().lstrip(".")
    require_writer(target, ending)
    with new_file(target) as place:
        writer = TableWriter(place, ending, decimals)
        try:
            yield writer
            writer.end()
        except BaseException:
            writer.give_up()
            raise


def require_writer(path: Path, format: str) -> None:
    """Refuse a table format that is unknown, or whose writer is not installed."""
    if format not in WRITABLE:
        raise InputError(f"{path.name}: tables are written as {', '.join(WRITABLE)}, not as {format!r}.")
    if format in _NEEDS and find_spec(_NEEDS[format]) is None:
        raise InputError(
            f"{path.name}: writing .{format} tables needs the package {_NEEDS[format]}; "
            "pip install 'icqf[io]', or choose csv."
        )


def csv_text(frame: pd.DataFrame, *, decimals: int | None = None) -> str:
    """Return the CSV file of a table as text; a named index becomes the first columns."""
    return "".join(_csv_parts(frame, decimals=decimals))


def _csv_parts(frame: pd.DataFrame, *, decimals: int | None) -> tuple[str, str]:
    """The header line, and the lines of cells; several times as fast as DataFrame.to_csv."""
    table = _flat(frame)
    start, stop, numbers = _decimal_rows(table, decimals) if decimals else (0, 0, None)
    places = [*range(start), *range(stop, table.shape[1])]
    columns = [_csv_cells(table.iloc[:, j], decimals) for j in places]
    head = ",".join(_quoted(str(harmless(name))) for name in table.columns) + "\n"
    before, after = (_joined(part) for part in (columns[: start or None], columns[start:] if start else []))
    if numbers is None:
        return head, "\n".join([*before, ""])
    if not after:
        return head, "".join(chain.from_iterable(zip(before, numbers, repeat("\n"))))
    return head, "".join(chain.from_iterable(zip(before, numbers, repeat(","), after, repeat("\n"))))


def _joined(columns: list[list[str]]) -> list[str]:
    return columns[0] if len(columns) == 1 else list(map(",".join, zip(*columns, strict=True)))


def _flat(frame: pd.DataFrame) -> pd.DataFrame:
    named = [name is not None for name in frame.index.names]
    table = frame.reset_index() if all(named) else frame.reset_index(drop=True)
    return table.set_axis([str(name) for name in table.columns], axis=1)


def _decimal_rows(table: pd.DataFrame, decimals: int) -> tuple[int, int, list[str] | None]:
    """Return where the last run of floats begins and ends, and the cells of each row from there.

    The first column is never part of it. Only numbers from 0 to below 10 are written this way, digit by digit
    for all rows at once: it takes a third of the time of formatting one by one, and an eighth of that of
    pandas.
    """
    floats = (table.dtypes == np.float64).to_numpy()
    stop = len(floats) - int(floats[::-1].argmax())
    start = stop
    while start > 1 and floats[start - 1]:
        start -= 1
    values = table.iloc[:, start:stop].to_numpy(dtype=float)
    whole = np.rint(values * 10**decimals)
    if not values.shape[1] or not ((whole >= 0) & (whole < 10 ** (decimals + 1))).all():
        return 0, 0, None
    left = whole.astype(np.int32 if decimals < 9 else np.int64)
    width = values.shape[1] * (decimals + 3)
    digits = np.empty((*values.shape, decimals + 3), dtype=np.uint8)
    digits[:, :, 0], digits[:, :, 2] = ord(","), ord(".")
    for place in (*range(decimals + 2, 2, -1), 1):
        tens = left // 10  # several times as fast as divmod
        digits[:, :, place] = ord("0") + (left - 10 * tens)
        left = tens
    text = digits.tobytes().decode("ascii")
    return start, stop, [text[at : at + width] for at in range(0, len(text), width)]


def _csv_cells(column: pd.Series, decimals: int | None) -> list[str]:
    gaps = column.isna().to_numpy()
    if pd.api.types.is_float_dtype(column.dtype):
        write = repr if decimals is None else f"{{:.{decimals}f}}".format
        cells = list(map(write, column.to_numpy(dtype=float, na_value=np.nan).tolist()))
    elif pd.api.types.is_numeric_dtype(column.dtype):
        cells = list(map(str, column.tolist()))
    else:
        cells = list(map(str, column.tolist()))
        if _any_odd(cells):
            cells = [_quoted(str(harmless(cell))) for cell in column.tolist()]
    for i in np.flatnonzero(gaps):
        cells[i] = ""
    return cells


def _any_odd(cells: list[str]) -> bool:
    """Whether any cell may need quotation marks or an apostrophe, by a quick test of all at once."""
    text = "\n" + "\n".join(cells)
    return text.count("\n") != len(cells) or any(mark in text for mark in _ODD)


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if NEEDS_QUOTES.search(cell) else cell


def _write_xlsx(table: pd.DataFrame, path: Path) -> None:
    texts = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    options, content = {**texts, "in_memory": True}, io.BytesIO()
    with pd.ExcelWriter(content, engine="xlsxwriter", engine_kwargs={"options": options}) as writer:
        # With a fixed date, the same table gives the same bytes.
        writer.book.set_properties({"created": datetime(2000, 1, 1)})
        table.to_excel(writer, sheet_name="table", index=False)
    path.write_bytes(content.getvalue())


def _write_sav(table: pd.DataFrame, path: Path) -> None:
    import pyreadstat

    names: list[str] = []
    for name in table.columns:
        short = re.sub(r"[^A-Za-z0-9_]", "_", name)[:60] or "v"
        short = short if short[0].isalpha() else f"v{short}"
        used = {other.lower() for other in names}
        variants = [short, *(f"{short}_{i}" for i in range(1, len(names) + 1))]
        names.append(next(variant for variant in variants if variant.lower() not in used))
    plain = table.copy(deep=False)
    for key, column in table.items():
        if not pd.api.types.is_numeric_dtype(column.dtype):
            plain[key] = column.astype(object).where(column.notna(), "").map(str)
        elif pd.api.types.is_bool_dtype(column.dtype):
            plain[key] = column.astype(float)
    try:
        pyreadstat.write_sav(plain.set_axis(names, axis=1), str(path), column_labels=list(table.columns))
        # On a full disk the library may silently write an incomplete file.
        written, _ = pyreadstat.read_sav(str(path), usecols=names[:1])
        fault = None if len(written) == len(table) else "the file is incomplete"
    except pyreadstat.ReadstatError as error:
        fault = str(error)
    if fault is not None:
        if _disk_is_full(path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        raise InputError(
            f"{path.name}: the table cannot be written as an SPSS file ({fault.rstrip('.')}).",
            code="not-written",
            remedy="Choose csv, parquet or xlsx.",
        )


def _disk_is_full(path: Path) -> bool:
    """Whether nothing more can be appended to a file; the library does not report this."""
    try:
        with path.open("ab") as stream:
            stream.write(bytes(_PROBE))
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        return error.errno in FULL
    return False
