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
from icqf.io.readers.table import Table, id_texts, names_of_ids, require_column
from icqf.io.study_files import AND, LEAVE_OUT, StudyFiles
from icqf.screening.answer_words import plain
from icqf.screening.missing_codes import as_number, number

NAMES = (
    *("redcap_event_name", "redcap_repeat_instrument", "redcap_repeat_instance"),
    *("visit", "visit_id", "visit_name", "visit_label", "visit_number", "visitnumber", "wave", "session"),
    *("session_id", "timepoint", "time_point", "time", "event", "eventname", "event_name", "assessment"),
    *("occasion",),
    *("phase", "round", "measurement", "followup", "follow_up", "prepost", "pre_post"),
)
RATERS = ("rater", "rater_id", "informant", "reporter", "judge", "observer", "respondent_type", "source")
MOST_VISITS = 20
FEWEST_REPEATED = 5  # participants with several rows, to recognise a column of visits by its values alone
MOSTLY = 0.8
STUDIES = (
    *("study", "study_name", "studyname", "sample", "site", "site_name", "cohort", "dataset", "data_set"),
    *("centre", "center", "country", "school", "clinic", "hospital", "lab", "project", "family", "household"),
)
PERSONAL = ("sex", "gender", "birth", "birthdate", "birth_date", "date_of_birth", "dob", "birthday")
DIFFERENT = 0.2  # of the ids
FEW_DOUBLED, FEW_OF_REPEATED = 0.05, 0.2  # of all rows, and of those that repeat an id
MOST_NAMED = 5
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
    sought = as_number(value)
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


def _shown(value: str) -> str:
    return value if value else "nothing"


def values_in(cells: pd.Series, *, most: int = MOST_VISITS) -> str:
    """Return a column's values with their numbers of rows, for a sentence."""
    counts = _texts(cells).value_counts()
    ordered = sorted(counts.index, key=_in_order)
    parts = [f"{_shown(text)} ({counted(int(counts[text]), 'row')})" for text in ordered[:most]]
    if len(ordered) > most:
        parts.append(f"{len(ordered) - most} more values")
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]])) if parts else "nothing"


def _in_order(text: str) -> tuple[bool, bool, float, str]:
    """Sort numbers by size, then texts, then empty cells."""
    value = as_number(text)
    return text == "", value is None, value or 0.0, text


def repeated_rows(table: Table, identity: str, ids: pd.Series) -> InputError:
    """Return the error for ids in several rows, with the option that resolves it.

    It is the visit to keep, or the column that with the ids tells participants apart, or else the choice
    among doubled rows.
    """
    again = np.flatnonzero(ids.duplicated())
    second = int(again[0])
    first = int(np.flatnonzero(ids == ids.iloc[second])[0])
    more = f", and {again.size - 1} more rows repeat an id" if again.size > 1 else ""
    message = (
        f"{table.source}: the id {ids.iloc[second]!r} in column {identity!r} appears in rows "
        f"{table.rows[first]} and {table.rows[second]}{more}."
    )
    columns = visit_columns(table.frame, identity, ids)
    beside = None if columns else _beside(table.frame, identity, ids)
    visits: list[tuple[tuple[str, str], ...]] = []
    remedy: Advice
    if columns:
        contents = [f"{name!r} holds {values_in(table.frame[name])}" for name in columns]
        tell = "distinguishes" if len(columns) == 1 else "together they distinguish"
        raters = all(plain_name(name) in RATERS for name in columns)
        message += f" The column {' and '.join(contents)}, and {tell} {'raters' if raters else 'visits'}."
        doubled = _doubled(table.frame, columns, ids)
        if doubled.any():
            message += f" At one visit, {_named_rows(table, ids, columns, doubled)}."
        visits = [pairs for pairs, _ in _by_rows(table.frame, columns)]
        all_of_them = "" if raters else ", or study them together with `icqf longitudinal`"
        keep = f"Keep one of them, for example with {{visit=}}{all_of_them}."
        remedy = Advice(keep, visit=dict(visits[0]))
    elif beside is not None:
        message += (
            f" The column {beside!r} holds {values_in(table.frame[beside], most=6)}; the same id in "
            "two of them may mean two participants."
        )
        remedy = Advice("Use both as ids with {id=}.", id=[beside, *identity.split(AND)])
    else:
        if again.size > 1:
            doubled = ids.duplicated().to_numpy()
            message = f"{table.source}: in column {identity!r}, {_named_rows(table, ids, (), doubled)}."
            if again.size > MANY_AGAIN * len(ids):
                message += (
                    " If these are not ids of participants, name another column as id, or none (''). If the "
                    "rows are visits, study them together with `icqf longitudinal`."
                )
        remedy = CHOOSE
    return InputError(
        message,
        code="duplicate-id",
        remedy=remedy,
        participant=ids.iloc[second],
        rows=(int(table.rows[first]), int(table.rows[second])),
        visit=visits[0] if visits else (),
        visits=tuple(sorted(visits, key=lambda visit: [_in_order(value) for _, value in visit])),
        ids=() if beside is None else (beside, *identity.split(AND)),
    )


MANY_AGAIN = 0.2  # share of the rows that repeat an id, above which the column may be another
CHOOSE = Advice(
    "Use one of them with {doubled=}; 'last' and 'leave-out' are the other choices.", doubled="first"
)


def once_each(table: Table, identity: str | None, files: StudyFiles, visits: Sequence[str] = ()) -> Table:
    """Return the table without rows that have no id, with one row per participant and visit, if chosen.

    The columns of `visits` are recognised unless named.
    """
    doubled = files.doubled
    if files.without_id == LEAVE_OUT and identity in table.frame.columns:
        known = np.array([text != "" for text in id_texts(table.frame[identity])])
        if not known.all():
            rows = listed_rows(table.rows[~known])
            note = f"Left out {counted(int((~known).sum()), 'row')} without an id ({rows})."
            table = replace(table.take(known), notes=(*table.notes, note))
    if doubled is None or identity is None or identity not in table.frame.columns:
        return table
    ids: pd.Series = pd.Series(id_texts(table.frame[identity]), dtype=object)
    columns = tuple(name for name in visits if name in table.frame.columns)
    if not columns and ids.duplicated().any():
        columns = tuple(visit_columns(table.frame, identity, ids))
    keys = _keys(table.frame, columns, ids)
    again = keys.duplicated(keep=False).to_numpy() & ids.ne("").to_numpy()
    if not again.any():
        return table
    keep = np.ones(len(keys), dtype=bool)
    places = first_of(keys) if doubled == "first" else last_of(keys)
    keep[again] = False if doubled == "leave-out" else np.isin(np.flatnonzero(again), places)
    which = {"first": "the first was used", "last": "the last was used", "leave-out": "none was used"}
    note = f"Of the rows of one participant{' at one visit' if columns else ''}, {which[doubled]}: "
    note += f"{_named_rows(table, ids, columns, _doubled(table.frame, columns, ids))}."
    return replace(table.take(keep), notes=(*table.notes, note))


def listed_rows(rows: np.ndarray) -> str:
    """Return the numbers of rows for a sentence, the first of many."""
    if len(rows) == 1:
        return f"row {rows[0]}"
    shown = [str(row) for row in rows[:MOST_NAMED]] + ["more"] * (len(rows) > MOST_NAMED)
    return f"rows {', '.join(shown[:-1])} and {shown[-1]}"


def first_of(keys: pd.DataFrame) -> np.ndarray:
    """The positions of the first row with each key."""
    return np.flatnonzero(~keys.duplicated())


def last_of(keys: pd.DataFrame) -> np.ndarray:
    """The positions of the last row with each key."""
    return np.flatnonzero(~keys.duplicated(keep="last"))


def _keys(frame: pd.DataFrame, columns: Sequence[str], ids: pd.Series) -> pd.DataFrame:
    """The participant and the visit of each row."""
    return pd.DataFrame({"": ids, **{name: _texts(frame[name]) for name in columns}})


def _doubled(frame: pd.DataFrame, columns: Sequence[str], ids: pd.Series) -> np.ndarray:
    """Which rows repeat a participant at one visit."""
    return _keys(frame, columns, ids).duplicated().to_numpy() & ids.ne("").to_numpy()


def _named_rows(table: Table, ids: pd.Series, columns: Sequence[str], doubled: np.ndarray) -> str:
    """Say which participants have several rows, with the numbers of these rows."""
    keys = _keys(table.frame, columns, ids)
    same = keys.groupby(list(keys.columns), sort=False).ngroup().to_numpy()
    groups = list(dict.fromkeys(same[doubled].tolist()))
    parts = []
    for group in groups[:MOST_NAMED]:
        at = listed_rows(table.rows[same == group])
        parts.append(f"{ids[same == group].iloc[0]!r} in {at}")
    more = f", and {len(groups) - MOST_NAMED} more" if len(groups) > MOST_NAMED else ""
    several = counted(len(groups), "participant")
    return f"{several} {'has' if len(groups) == 1 else 'have'} several rows: {', '.join(parts)}{more}"


def visits_in(table: Table, column: str) -> list[str]:
    """The values of a column of visits in order of time.

    Numbers and dates (2024-05-31) go by size, other texts as they first appear in the file.
    """
    require_column(table, column, "the visit")
    values = list(dict.fromkeys(text for text in _texts(table.frame[column]) if text))
    if all(as_number(value) is not None or _DATE.match(value) for value in values):
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
    """The fewest columns that distinguish a participant's rows, by their names or values.

    A few rows may be doubled. Studies, sites and the like are no visits, whatever their values.
    """
    own = {identity, *identity.split(AND)}
    named = [name for name in frame.columns if plain_name(name) in NAMES and name not in own]
    named.sort(key=lambda name: NAMES.index(plain_name(name)))
    named = [str(name) for name in named if frame[name].nunique(dropna=False) > 1]
    known = ids.ne("")
    repeated = int(ids[known].duplicated().sum())
    for size in (1, 2, 3):
        every = list(combinations(named, size))
        left = [int(_doubled(frame, columns, ids).sum()) for columns in every]
        for most in (0, min(FEW_DOUBLED * len(ids), FEW_OF_REPEATED * repeated)):
            for columns, doubled in zip(every, left, strict=True):
                if doubled <= most:
                    return columns
    several = ids[known & ids.duplicated(keep=False)]
    if several.nunique() >= FEWEST_REPEATED:
        for name in frame.columns:
            if name in own or plain_name(name) in STUDIES or frame[name].nunique() > MOST_VISITS:
                continue
            if _like_visits(frame[name], ids) and not _different_people(frame, ids):
                return (str(name),)
    return ()


def _different_people(frame: pd.DataFrame, ids: pd.Series) -> bool:
    """Whether rows with one id are often of different sex, or born on different days."""
    several = ids.duplicated(keep=False).to_numpy()
    for name in frame.columns:
        if plain_name(name) in PERSONAL:
            values = _texts(frame[name])[several].replace("", np.nan)
            if (values.groupby(ids[several].to_numpy()).nunique() > 1).mean() > DIFFERENT:
                return True
    return False


def _beside(frame: pd.DataFrame, identity: str, ids: pd.Series) -> str | None:
    """A column of studies or other ids within which the ids tell participants, or visits, apart."""
    own = {identity, *identity.split(AND)}
    others = [name for name in names_of_ids(frame.columns) if name not in own]
    others += [str(name) for name in frame.columns if plain_name(name) in STUDIES and name not in own]
    repeated = int(ids[ids.ne("")].duplicated().sum())
    for name in dict.fromkeys(others):
        cells = _texts(frame[name])
        if not 2 <= cells.nunique() <= len(cells) / 2 or cells.eq("").any():  # numbers of rows are no studies
            continue
        joined = (cells.reset_index(drop=True) + "-" + ids).where(ids.ne("").to_numpy(), "")
        left = int(joined[joined.ne("")].duplicated().sum())
        if left == 0 or (left < repeated and visit_columns(frame, f"{name}{AND}{identity}", joined)):
            return name
    return None


def plain_name(name: object) -> str:
    return re.sub(r"[\W_]+", "_", str(name).lower()).strip("_")


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
