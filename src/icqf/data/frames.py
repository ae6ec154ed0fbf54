"""Tables of any kind (polars, Arrow, pandas) as pandas ones, and back."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray


def as_pandas(table: Any) -> Any:
    """A table or column of any kind as a pandas one; what is neither comes back as it is.

    Column by column, so that a polars table needs no pyarrow.

    Examples
    --------
    >>> import polars as pl
    >>> as_pandas(pl.DataFrame({"q1": [0, None, 2], "sex": ["f", "m", None]}))
        q1   sex
    0  0.0     f
    1  NaN     m
    2  2.0  None
    >>> as_pandas([1, 2])
    [1, 2]
    """
    if isinstance(table, (pd.DataFrame, pd.Series)):
        return table
    found = nw.from_native(table, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(found, nw.Series):
        return pd.Series(_values(found), name=found.name)
    if isinstance(found, nw.DataFrame):
        return pd.DataFrame({name: _values(found[name]) for name in found.columns}, index=range(len(found)))
    return table


def _values(column: Any) -> Any:
    """A column as an array; missing values are NaN in numbers and None elsewhere."""
    kind = column.dtype
    if kind.is_numeric() or kind.is_temporal() or (kind == nw.Boolean and not column.is_null().any()):
        return column.to_numpy()
    return pd.Series(column.to_list(), dtype=object)


def like(table: Any, values: NDArray[Any], columns: list[str]) -> Any:
    """An array (n, m) as the kind of table that `table` is, with these columns; an array if it is none."""
    if isinstance(table, pd.DataFrame):
        return pd.DataFrame(values, index=table.index, columns=columns)
    found = nw.from_native(table, eager_only=True, pass_through=True)
    if isinstance(found, nw.DataFrame):
        parts = {name: np.ascontiguousarray(values[:, j]) for j, name in enumerate(columns)}
        return nw.from_dict(parts, backend=found.implementation).to_native()
    return values


def label_at(index: pd.Index[Any], place: Any) -> Any:
    """The label of a row for a message: 3, not np.int64(3).

    Examples
    --------
    >>> label_at(pd.Index([5, 3]), 1)
    3
    >>> label_at(pd.MultiIndex.from_product([["b.csv"], [5, 3]]), 1)
    ('b.csv', 3)
    """
    return index[[int(place)]].tolist()[0]
