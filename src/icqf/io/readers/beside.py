"""What a second table says about the participants of the first, joined by their ids."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace

import pandas as pd

from icqf.errors import Advice, InputError, InputWarning, counted, did_you_mean, listed
from icqf.io.readers.tables import Table, require_column


def joined_by_id(table: Table, other: Table, columns: Iterable[str], *, id: str | None = None) -> Table:
    """Return the table with columns that it lacks, taken from another by participant id.

    Columns that neither has are left for the reader to complain about. A participant who is not in the other
    table has empty cells there.
    """
    wanted = [name for name in dict.fromkeys(columns) if name not in table.frame.columns]
    if not wanted:
        return table
    known = [name for name in wanted if name in other.frame.columns]
    if len(known) < len(wanted):
        absent = next(name for name in wanted if name not in known)
        choices = [*other.frame.columns, *table.frame.columns]
        raise InputError(
            f"{other.source}: there is no column {absent!r} here, nor in {table.source}."
            f"{did_you_mean(absent, choices)}"
        )
    own, theirs = _id_column(table, id), _id_column(other, id)
    lookup = other.frame.set_axis(_texts(other.frame[theirs]), axis=0)[known]
    again = lookup.index[lookup.index.duplicated() & (lookup.index != "")]
    if len(again):
        raise InputError(
            f"{other.source}: the participant {str(again[0])!r} stands in several rows. Keep one row per "
            f"participant."
        )
    ids = _texts(table.frame[own])
    met = ids.isin(lookup.index)
    if not met.any():
        raise InputError(
            f"{other.source}: none of its participants ({listed(lookup.index, most=2)}) is in {table.source} "
            f"({listed(ids, most=2)}). Write the ids alike in both.",
            code="no-shared-participants",
        )
    lookup = lookup[~lookup.index.duplicated()]
    frame = table.frame.assign(**{name: lookup[name].reindex(ids).to_numpy() for name in known})
    lost = int((~met).sum())
    if lost:
        warnings.warn(
            InputWarning(
                f"{table.source}: {counted(lost, 'participant')} not found in {other.source}, so "
                f"{listed(known)} "
                f"{'is' if len(known) == 1 else 'are'} missing there.",
                code="not-beside",
                number=lost,
            ),
            stacklevel=2,
        )
    note = f"{', '.join(known)} taken from {other.source} by participant id."
    about = tuple(item for item in other.items if item.name in known)
    return replace(table, frame=frame, items=(*table.items, *about), notes=(*table.notes, note))


def _id_column(table: Table, id: str | None) -> str:
    if id is not None and id in table.frame.columns:
        return id
    if table.id is None:
        raise InputError(
            f"{table.source}: no column of participant ids is recognised, so nothing can be joined by them.",
            code="no-id-column",
            remedy=Advice("Name the column with {id}."),
        )
    require_column(table, table.id, "the id")
    return table.id


def _texts(column: pd.Series) -> pd.Index:
    if pd.api.types.is_float_dtype(column.dtype) and bool((column.dropna() % 1 == 0).all()):
        column = column.astype("Int64")
    return pd.Index(column.astype(object).where(column.notna(), "").map(lambda cell: str(cell).strip()))
