"""Some participants of a table that is read batch by batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from icqf.errors import InputError, shortened
from icqf.io.readers.tables import Table, guarded, recognised_id
from icqf.screening.ranges import number

_LONGEST = 60  # characters of a cell that are shown


@dataclass(frozen=True, eq=False)
class Batch:
    """Consecutive rows of a table.

    Parameters
    ----------
    source : str
        Name of the file; messages start with it.
    rows : ndarray of int, shape (n,)
        Where each record stands in its file, counted as a spreadsheet does.
    content : DataFrame or pyarrow.RecordBatch
        The cells as they stand; missing-answer codes are still in place.
    notes : tuple of str
        What was done while reading.

    Examples
    --------
    >>> batch = Batch("answers.csv", np.arange(2, 4), pd.DataFrame({"q1": [0, 2], "q2": [1, None]}))
    >>> batch.matrix(["q1", "q2"], dtype=np.int8, missing=-1)
    array([[ 0,  1],
           [ 2, -1]], dtype=int8)
    """

    source: str
    rows: np.ndarray
    content: Any
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The cells as pandas has them, numbered from 0."""
        if isinstance(self.content, pd.DataFrame):
            return self.content
        return guarded(partial(arrow_frame, self.content), Path(self.source), "a table")

    def table(self) -> Table:
        """These rows as the readers of whole files give them."""
        return Table(
            self.frame, self.source, self.rows, id=recognised_id(self.frame.columns), notes=self.notes
        )

    def matrix(
        self, names: Sequence[str], *, dtype: npt.DTypeLike = np.float64, missing: float = np.nan
    ) -> np.ndarray:
        """Return columns of numbers as an array (n, m), one participant after the other.

        Parameters
        ----------
        names : sequence of str
        dtype : dtype
            The type of the array, such as int8, which must hold every number exactly.
        missing : number
            What stands for an empty cell. No cell may hold it.
        """
        kind = np.dtype(dtype)
        columns = np.empty((len(names), len(self)), dtype=kind)
        for j, name in enumerate(names):
            columns[j] = self._numbers(name, kind, missing)
        return np.ascontiguousarray(columns.T)  # at once: thrice as fast as column by column

    def _numbers(self, name: str, dtype: np.dtype[Any], missing: float) -> np.ndarray:
        if isinstance(self.content, pd.DataFrame):
            column = self.content[name]
            if pd.api.types.is_numeric_dtype(column.dtype):  # true and false are 1 and 0
                values = column.to_numpy(dtype=float, na_value=np.nan)
                return self._exact(name, values, dtype, missing)
        else:
            import pyarrow as pa
            import pyarrow.compute as pc

            cells = self.content.column(name)
            if pa.types.is_integer(cells.type) and cells.type.to_pandas_dtype() == dtype:
                filled = pc.fill_null(cells, pa.scalar(missing, cells.type)).to_numpy(zero_copy_only=False)
                if np.count_nonzero(filled == dtype.type(missing)) == cells.null_count:
                    return np.asarray(filled)
            if pa.types.is_null(cells.type):
                return np.full(len(self), missing, dtype=dtype)
            numeric = pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal
            if any(each(cells.type) for each in numeric):
                values = pc.cast(cells, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
                return self._exact(name, values, dtype, missing)
        present = [cell for cell in self.frame[name] if not (pd.api.types.is_scalar(cell) and pd.isna(cell))]
        if not present:
            return np.full(len(self), missing, dtype=dtype)
        cell = next((cell for cell in present if not _is_number(cell)), present[0])
        shown = shortened(repr(cell), _LONGEST)
        raise InputError(
            f"{self.source}: the column {name!r} holds {shown}, which is no number.",
            code="text-cells",
            remedy="Code its answers as numbers, or leave the column out.",
            column=name,
        )

    def _exact(self, name: str, values: np.ndarray, dtype: np.dtype[Any], missing: float) -> np.ndarray:
        """The values in the type asked for; refuse one that the type does not hold, or that means missing."""
        gaps = np.isnan(values)
        with np.errstate(invalid="ignore"):
            cast = np.where(gaps, missing, values).astype(dtype)
        odd = np.flatnonzero(~gaps & ((cast != values) | (values == missing)))
        if odd.size:
            raise InputError(
                f"{self.source}: the column {name!r} holds {number(values[odd[0]])} in row "
                f"{self.rows[odd[0]]}, which is no whole number between {np.iinfo(dtype).min + 1} and "
                f"{np.iinfo(dtype).max}."
                if dtype.kind in "iu"
                else f"{self.source}: the column {name!r} holds {number(values[odd[0]])} in row "
                f"{self.rows[odd[0]]}, which {dtype} does not hold.",
                code="does-not-fit",
                column=name,
                row=int(self.rows[odd[0]]),
            )
        return cast


def _is_number(cell: object) -> bool:
    try:
        return math.isfinite(float(cell))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False


def arrow_frame(batch: Any) -> pd.DataFrame:
    """Return an Arrow record batch as pandas has it, numbered from 0, with names that are text."""
    import pyarrow as pa

    table = pa.Table.from_batches([batch])
    try:
        frame: pd.DataFrame = table.to_pandas()
    except (TypeError, NotImplementedError):  # what pandas noted of the columns is not of these columns
        frame = table.to_pandas(ignore_metadata=True)
    return frame.reset_index(drop=True).set_axis(table.column_names, axis=1)
