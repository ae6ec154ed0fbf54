"""Tables of any kind (polars, Arrow, pandas) as pandas ones and back, row labels, and tables in parts."""

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
    """A table or column of any kind as a pandas one; what is neither comes back as it is.

    Column by column, so that a polars table needs no pyarrow.
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
    """The label of a row for a message: 3, not np.int64(3)."""
    return index[[int(place)]].tolist()[0]


# Row labels: tables that are given together are about the same participants, in the same order.

_LABELLED = (pd.DataFrame, pd.Series)


def refuse_other_rows(answers: Any, *, to: str = "answers", **beside: Any) -> None:
    """Refuse pandas tables whose row labels are not those of the answers, in their order.

    They are not brought into that order: labels that differ show that something went wrong before, and only
    who made the tables can say what. Arrays, lists and tables without labels go by position.
    """
    if isinstance(answers, Draft):
        answers = answers.answers
    if not isinstance(answers, _LABELLED):
        return
    for name, table in beside.items():
        if not isinstance(table, _LABELLED) or len(table) != len(answers):
            continue
        if table.index.equals(answers.index):
            continue
        both = zip(answers.index, table.index, strict=True)
        for row, (ours, theirs) in enumerate(both, start=1):
            if ours != theirs:
                raise InputError(
                    f"Row {row} of the {to} is labelled {ours!r}, and row {row} of {name} {theirs!r}: the "
                    f"rows of both must have the same labels in the same order. Use {name}.loc[{to}.index], "
                    f"or {name}.to_numpy() if the rows belong together as they stand.",
                    code="other-rows",
                    name=name,
                )


# Answers that are read in parts, because the table as a whole may be larger than memory.

_ROWS = 32768


@dataclass(frozen=True, eq=False)
class SomeAnswers:
    """Consecutive participants: their answers (a table, an array or a questionnaire) and their confounds.

    `source` is the file that the table's row labels count in; empty where it has none.
    """

    answers: Any
    confounds: pd.DataFrame | None = None
    source: str = ""


@dataclass(frozen=True, eq=False)
class AnswersInParts:
    """Answers that are read in parts, as often as they are needed."""

    parts: Callable[[], Iterator[SomeAnswers]]  # gives the parts from the first on, each time it is called
    stored: np.memmap[Any, Any] | None = None  # the array itself, where the answers are one in a file
    # the number that stands for a missing answer, which is read as NaN; no range may hold it
    missing: int | None = None

    @classmethod
    def of(cls, answers: Any) -> AnswersInParts | None:
        """What is read in parts without a file reader; None for anything else."""
        if isinstance(answers, AnswersInParts):
            return answers
        if is_dask_array(answers):
            return cls.of_blocks(answers)
        return cls.of_array(answers) if isinstance(answers, np.memmap) else None

    @classmethod
    def of_blocks(cls, answers: Any) -> AnswersInParts:
        """The rows of a dask array, one of its blocks after the other."""
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
    """Whether something is a dask array, told without importing dask."""
    return type(X).__module__.startswith("dask.array") and hasattr(X, "to_delayed")
