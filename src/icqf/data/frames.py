"""Conversion of tables (polars, Arrow, pandas), row labels, and tables in parts."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.data.questionnaire import Draft
from icqf.errors import InputError


def as_pandas(table: Any) -> Any:
    """Convert a table or column of any kind to pandas; return anything else unchanged.

    Column by column, so that a polars table needs no pyarrow.
    """
    if isinstance(table, (pd.DataFrame, pd.Series)):
        return table
    native = nw.from_native(table, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(native, nw.Series):
        return pd.Series(_values(native), name=native.name)
    if isinstance(native, nw.DataFrame):
        return pd.DataFrame(
            {name: _values(native[name]) for name in native.columns}, index=range(len(native))
        )
    return table


def _values(column: Any) -> Any:
    """A column as an array; missing values are NaN in numbers and None elsewhere."""
    kind = column.dtype
    if kind.is_numeric() or kind.is_temporal() or (kind == nw.Boolean and not column.is_null().any()):
        return column.to_numpy()
    return pd.Series(column.to_list(), dtype=object)


def like(table: Any, values: NDArray[Any], columns: list[str]) -> Any:
    """Convert an array (n, m) to the same kind of table as `table`; return the array if that is not one."""
    if isinstance(table, pd.DataFrame):
        return pd.DataFrame(values, index=table.index, columns=columns)
    native = nw.from_native(table, eager_only=True, pass_through=True)
    if isinstance(native, nw.DataFrame):
        parts = {name: np.ascontiguousarray(values[:, j]) for j, name in enumerate(columns)}
        return nw.from_dict(parts, backend=native.implementation).to_native()
    return values


def label_at(index: pd.Index[Any], place: Any) -> Any:
    """The label of a row for a message: 3, not np.int64(3)."""
    return index[[int(place)]].tolist()[0]


_LABELLED = (pd.DataFrame, pd.Series)


def refuse_other_rows(answers: Any, *, to: str = "answers", **tables: Any) -> None:
    """Refuse pandas tables whose row labels differ from those of the answers or are in another order.

    They are not reordered, since differing labels point to an earlier mistake. Arrays, lists and tables
    without labels are matched by position.
    """
    if isinstance(answers, Draft):
        answers = answers.answers
    if not isinstance(answers, _LABELLED):
        return
    for name, table in tables.items():
        if not isinstance(table, _LABELLED) or len(table) != len(answers):
            continue
        if table.index.equals(answers.index):
            continue
        both = zip(answers.index, table.index, strict=True)
        for row, (ours, theirs) in enumerate(both, start=1):
            if ours != theirs:
                raise InputError(
                    f"Row {row} of the {to} is labelled {ours!r}, but row {row} of {name} {theirs!r}: both "
                    f"must have the same row labels in the same order. Use {name}.loc[{to}.index], or "
                    f"{name}.to_numpy() if the rows already correspond.",
                    code="other-rows",
                    name=name,
                )


# Answers read in parts, because the whole table may be larger than memory.

_ROWS = 32768


@dataclass(frozen=True, eq=False)
class SomeAnswers:
    """Answers (a table, an array or a questionnaire) and confounds of consecutive participants.

    `source` is the file whose rows the labels number; empty if there is none.
    """

    answers: Any
    confounds: pd.DataFrame | None = None
    source: str = ""


@dataclass(frozen=True, eq=False)
class AnswersInParts:
    """Answers that can be read in parts repeatedly."""

    parts: Callable[[], Iterator[SomeAnswers]]  # each call starts from the first part
    stored: np.memmap[Any, Any] | None = None  # the array, if the answers are one in a file
    missing: int | None = None  # code of a missing answer, read as NaN; no range may contain it

    @classmethod
    def of(cls, answers: Any) -> AnswersInParts | None:
        """Wrap a dask array or memory map; None for anything else."""
        if isinstance(answers, AnswersInParts):
            return answers
        if is_dask_array(answers):
            return cls.of_blocks(answers)
        return cls.of_array(answers) if isinstance(answers, np.memmap) else None

    @classmethod
    def of_blocks(cls, answers: Any) -> AnswersInParts:
        """The rows of a dask array, block by block."""
        whole = answers.rechunk({1: -1})
        return cls(lambda: (SomeAnswers(block.compute()) for block in whole.blocks))

    @classmethod
    def of_array(cls, answers: np.memmap[Any, Any]) -> AnswersInParts:
        """The rows of an array in a file. In whole numbers, -1 is a missing answer."""
        missing = -1 if answers.dtype.kind == "i" else None

        def parts() -> Iterator[SomeAnswers]:
            for start in range(0, len(answers), _ROWS):
                part = np.asarray(answers[start : start + _ROWS])
                if missing is not None and (part == missing).any():
                    part = np.where(part == missing, np.nan, part)
                yield SomeAnswers(part)

        return cls(parts, answers if isinstance(answers.base, mmap.mmap) else None, missing)


def is_dask_array(X: Any) -> bool:
    """Whether something is a dask array, without importing dask."""
    return type(X).__module__.startswith("dask.array") and hasattr(X, "to_delayed")
