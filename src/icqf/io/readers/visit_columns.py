"""Several rows per participant: which columns distinguish visits, and how to keep one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd

from icqf.data.questionnaire import Item
from icqf.data.settings import Visit, visit_pairs
from icqf.errors import Advice, InputError, counted
from icqf.io.readers.table import Table, require_column
from icqf.screening.answer_words import plain
from icqf.screening.missing_codes import number

NAMES = (
    *("redcap_event_name", "redcap_repeat_instrument", "redcap_repeat_instance"),
    *("visit", "visit_id", "visit_name", "visit_number", "visitnumber", "wave", "session", "session_id"),
    *("timepoint", "time_point", "time", "event", "eventname", "event_name", "assessment", "occasion"),
    *("phase", "round", "measurement", "followup", "follow_up", "prepost", "pre_post"),
)
MOST_VISITS = 20
FEWEST_REPEATED = 5  # participants with several rows, to recognise a column of visits by its values alone
MOSTLY = 0.8
_DATE = re.compile(r"\d{4}-\d\d(-\d\d)?([T ]|$)")


def keep_visit(table: Table, visit: Visit) -> Table:
    """Return the table with the rows of one visit, without the columns that define it.

    Numbers match as numbers, so 1 is 1.0; text matches ignoring case, or by a value's label; an empty text
    matches empty cells.
    """
    pairs = visit_pairs(visit)
    return without_visit(table, pairs, *rows_of_visit(table, pairs)) if pairs else table


def rows_of_visit(table: Table, pairs: Sequence[tuple[str, str]]) -> tuple[np.ndarray, str]:
    """Return the rows of the visit defined by pairs of column and value, and a note."""
    chosen = np.ones(len(table.frame), dtype=bool)
    for column, value in pairs:
        require_column(table, column, "the visit")
        here = _matches(table, column, value)
        if not here.any():
            raise InputError(
                f"{table.source}: no row has {_shown(value)} in the column {column!r}; it holds "
                f"{values_in(table.frame[column])}.",
                code="no-visit",
                column=column,
                value=value,
            )
        chosen &= here
    visit = " and ".join(f"{column} = {_shown(value)}" for column, value in pairs)
    if not chosen.any():
        raise InputError(f"{table.source}: no row has both {visit}.", code="no-visit")
    return chosen, f"Kept {int(chosen.sum())} of {counted(len(chosen), 'row')}: those with {visit}."


def without_visit(table: Table, pairs: Sequence[tuple[str, str]], rows: np.ndarray, note: str) -> Table:
    """Return the table with the rows of a visit, without the columns that define it."""
    columns = [column for column, _ in pairs]
    rest = replace(table, frame=table.frame.drop(columns=columns))
    if rest.structural is not None:
        rest = replace(rest, structural=rest.structural.drop(columns=columns))
    if rest.candidates is not None:
        rest = replace(rest, candidates=tuple(name for name in rest.candidates if name not in columns))
    return replace(rest.take(rows), notes=(*table.notes, note))


def _matches(table: Table, column: str, value: str) -> np.ndarray:
    cells = table.frame[column]
    if value == "":
        return _texts(cells).eq("").to_numpy()
    sought = _as_number(value)
    if sought is None:
        labels = table.described.get(column, Item(column)).labels
        sought = next((float(code) for code, text in labels if plain(text) == plain(value)), None)
    texts = _texts(cells)
    exact = texts.eq(value).to_numpy()
    matches = exact if exact.any() else texts.str.casefold().eq(value.casefold()).to_numpy()
    return (
        matches if sought is None else matches | pd.to_numeric(texts, errors="coerce").eq(sought).to_numpy()
    )


def _texts(cells: pd.Series) -> pd.Series:
    """The cells as text, numbers without ``.0``, empty ones as an empty text."""
    return cells.astype(object).where(cells.notna(), "").map(lambda cell: number(cell).strip())


def _as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _shown(value: str) -> str:
    return value if value else "nothing"


def values_in(cells: pd.Series) -> str:
    """Return a column's values with their numbers of rows, for a sentence."""
    counts = _texts(cells).value_counts()
    ordered = sorted(counts.index, key=_in_order)
    parts = [f"{_shown(text)} ({counted(int(counts[text]), 'row')})" for text in ordered[:MOST_VISITS]]
    if len(ordered) > MOST_VISITS:
        parts.append(f"{len(ordered) - MOST_VISITS} more values")
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]])) if parts else "nothing"


def _in_order(text: str) -> tuple[bool, bool, float, str]:
    """Sort numbers by size, then texts, then empty cells."""
    value = _as_number(text)
    return text == "", value is None, value or 0.0, text


def repeated_rows(table: Table, identity: str, ids: pd.Series) -> InputError:
    """Return the error for ids in several rows, with the option that keeps one visit."""
    again = np.flatnonzero(ids.duplicated())
    second = int(again[0])
    first = int(np.flatnonzero(ids == ids.iloc[second])[0])
    more = f", and {again.size - 1} more rows repeat an id" if again.size > 1 else ""
    message = (
        f"{table.source}: the id {ids.iloc[second]!r} in column {identity!r} appears in rows "
        f"{table.rows[first]} and {table.rows[second]}{more}."
    )
    columns = visit_columns(table.frame, identity, ids)
    remedy: str = "Keep one row per participant."
    visits: list[tuple[tuple[str, str], ...]] = []
    if columns:
        contents = [f"{name!r} holds {values_in(table.frame[name])}" for name in columns]
        tell = "distinguishes" if len(columns) == 1 else "together they distinguish"
        message += f" The column {' and '.join(contents)}, and {tell} visits."
        visits = [pairs for pairs, _ in _by_rows(table.frame, columns)]
        remedy = Advice("Keep one of them, for example with {visit=}.", visit=dict(visits[0]))
    return InputError(
        message,
        code="duplicate-id",
        remedy=remedy,
        participant=ids.iloc[second],
        rows=(int(table.rows[first]), int(table.rows[second])),
        visit=visits[0] if visits else (),
        visits=tuple(visits),
    )


def visits_in(table: Table, column: str) -> list[str]:
    """The values of a column of visits in order of time.

    Numbers and dates (2024-05-31) go by size, other texts as they first appear in the file.
    """
    require_column(table, column, "the visit")
    values = list(dict.fromkeys(text for text in _texts(table.frame[column]) if text))
    if all(_as_number(value) is not None or _DATE.match(value) for value in values):
        values.sort(key=_in_order)
    return values


Pairs = tuple[tuple[str, str], ...]


def visits_of(table: Table, identity: str | None, chosen: Pairs = ()) -> tuple[tuple[Pairs, int], ...]:
    """The visits of a table with several rows per participant, in order of time, with their numbers of rows.

    The visits are those of the columns of the `chosen` one, if it is given; empty if nothing tells visits
    apart.
    """
    frame = table.frame
    columns = tuple(column for column, _ in chosen)
    if not columns and identity in frame.columns and frame[identity].duplicated().any():
        columns = visit_columns(frame, str(identity), _texts(frame[identity]))
    if not columns or not set(columns) <= set(frame.columns):
        return ()
    visits = _by_rows(frame, columns)
    return tuple(sorted(visits, key=lambda visit: [_in_order(value) for _, value in visit[0]]))


def _by_rows(frame: pd.DataFrame, columns: Sequence[str]) -> list[tuple[Pairs, int]]:
    """The visits with their numbers of rows, by decreasing number, then in the order of the file."""
    texts = pd.DataFrame({name: _texts(frame[name]) for name in columns})
    counts = texts.groupby(list(columns), sort=False).size().sort_values(ascending=False, kind="stable")
    keys = [key if isinstance(key, tuple) else (key,) for key in counts.index]
    named = [tuple(zip(columns, map(str, values), strict=True)) for values in keys]
    return list(zip(named, map(int, counts), strict=True))


def visit_columns(frame: pd.DataFrame, identity: str, ids: pd.Series) -> tuple[str, ...]:
    """The fewest columns that distinguish a participant's rows, by their names or values."""
    named = [name for name in frame.columns if _plain(name) in NAMES and name != identity]
    named.sort(key=lambda name: NAMES.index(_plain(name)))
    named = [str(name) for name in named if frame[name].nunique(dropna=False) > 1]
    for size in (1, 2, 3):
        for columns in combinations(named, size):
            if _distinguish(frame, columns, ids):
                return columns
    repeated = ids.duplicated(keep=False).to_numpy()
    if ids[repeated].nunique() >= FEWEST_REPEATED:
        for name in frame.columns:
            if name != identity and frame[name].nunique() <= MOST_VISITS and _like_visits(frame[name], ids):
                return (str(name),)
    return ()


def _plain(name: object) -> str:
    return re.sub(r"[\W_]+", "_", str(name).lower()).strip("_")


def _distinguish(frame: pd.DataFrame, columns: Sequence[str], ids: pd.Series) -> bool:
    keys = pd.DataFrame({"": ids, **{name: _texts(frame[name]) for name in columns}})
    return not keys.duplicated().any()


def _like_visits(cells: pd.Series, ids: pd.Series) -> bool:
    """Whether a column distinguishes rows, with the same first and second value for most participants."""
    texts = _texts(cells)
    if pd.DataFrame({"id": ids, "visit": texts}).duplicated().any():
        return False
    nth = ids.groupby(ids).cumcount()
    several = ids.isin(ids[ids.duplicated()])
    usual = []
    for at in (0, 1):
        shares = texts[several & (nth == at)].value_counts(normalize=True)
        if shares.iloc[0] < MOSTLY:
            return False
        usual.append(shares.index[0])
    return usual[0] != usual[1]
