"""Tables with one row per answer: recognised, and made into tables with one row per participant or visit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd

from icqf.data.settings import parameter_error
from icqf.errors import Advice, InputError, and_more, counted, listed
from icqf.io.readers.table import Table, names_of_ids, require_column
from icqf.io.readers.visit_columns import CHOOSE, MOST_VISITS, RATERS, first_of, last_of, plain_name
from icqf.io.readers.visit_columns import NAMES as VISITS
from icqf.screening.column_names import named_kind
from icqf.screening.missing_codes import number

NEVER = "no"
ITEMS = (
    *("item", "items", "item_id", "item_name", "item_code", "item_number", "itemid", "itemname", "item_no"),
    *("question", "question_id", "questionid", "question_name", "question_code", "variable", "variable_name"),
)
ANSWERS = (
    *("answer", "answers", "response", "responses", "resp", "answer_value", "response_value"),
    *("item_response", "value", "rating", "item_score", "item_value"),
)
_SURE = ("id", "item", "resp")  # the names of the Item Response Warehouse
_FEWEST_ITEMS, _MOST_ITEMS = 2, 5000
_FILLED = 0.3  # of participants by items
_DOUBLED = 0.05  # of the rows
# Of a table that may have one answer per row under other names: rows, columns, values of names, times each
# occurs, pairs that would repeat by chance, and the share of these that do.
_FEWEST_CROSSED, _MOST_CROSSED, _FEWEST_LEVELS, _REPEATED = 200, 10, 10, 3
_FEWEST_AGAIN, _RARELY = 20, 0.1


def widened(table: Table, wanted: Sequence[str], identity: str | None, doubled: str | None) -> Table:
    """Return a table with one row per participant, or visit, if each of its rows is one answer.

    `wanted` are the columns of items and answers, empty to recognise them, or `NEVER`.
    """
    if tuple(wanted) == (NEVER,):
        return table
    identity = identity or next(iter(names_of_ids(table.frame.columns)), table.id)  # also of a few people
    if wanted:
        for name, role in zip(wanted, ("the items", "the answers"), strict=True):
            require_column(table, name, role)
        if identity is None:
            raise InputError(
                f"{table.source}: no column of participant ids was recognised.",
                code="no-id-column",
                remedy=Advice("Name the column with {id}."),
            )
        item, answer = wanted
        return _wide(table, identity, item, answer, doubled)
    found = _recognised(table, identity)
    if found is None:
        _refuse_crossed(table, identity)
        return table
    return _wide(table, str(identity), *found, doubled)


def _recognised(table: Table, identity: str | None) -> tuple[str, str] | None:
    """The columns of items and answers, if their names and values leave no doubt."""
    names = {plain_name(name): str(name) for name in reversed(list(map(str, table.frame.columns)))}
    item = next((names[name] for name in ITEMS if name in names), None)
    answer = next((names[name] for name in ANSWERS if name in names), None)
    if item is None or answer is None or identity in (item, answer):
        return None
    if identity is None:
        if _FEWEST_ITEMS <= table.frame[item].nunique() <= len(table.frame) / _REPEATED:
            raise InputError(
                f"{table.source}: each row looks like one answer, by the columns {item!r} and {answer!r}, "
                "but no column of participant ids was recognised.",
                code="no-id-column",
                remedy=Advice("Name the column with {id}; if rows are participants, set {long} to no."),
            )
        return None
    require_column(table, identity, "the id")
    keys = [identity, *_visits(table.frame, identity, item, answer)]
    n_rows, n_items = len(table.frame), table.frame[item].nunique()
    units = len(table.frame[keys].drop_duplicates())
    again = int(table.frame[[*keys, item]].duplicated().sum())
    if not (_FEWEST_ITEMS <= n_items <= _MOST_ITEMS and units < n_rows):
        return None
    sure = tuple(map(plain_name, (identity, item, answer))) == _SURE
    usual = again <= _DOUBLED * n_rows and n_rows - again >= _FILLED * units * n_items
    return (item, answer) if usual or sure else None


def _refuse_crossed(table: Table, identity: str | None) -> None:
    """Refuse a table whose rows seem to be one answer each, under names that do not say so.

    Two of its few columns repeat their values again and again, and yet hardly a pair of them, far less often
    than by chance: one names participants, the other one items.
    """
    frame, n = table.frame, len(table.frame)
    if n < _FEWEST_CROSSED or frame.shape[1] > _MOST_CROSSED:
        return
    levels = {str(name): int(frame[name].nunique()) for name in frame.columns}
    keys = [
        name
        for name in levels
        if _FEWEST_LEVELS <= levels[name] <= n / _REPEATED
        and named_kind(name) is None  # such as a year
        and _like_names(frame[name])
    ]
    if identity in keys:
        pairs = [(identity, name) for name in keys if name != identity]
    else:
        pairs = list(combinations(keys, 2))  # participants usually come first
    for person, item in pairs:
        cells = levels[person] * levels[item]
        by_chance = n - cells * (1 - np.exp(-n / cells))
        again = int(frame[[person, item]].duplicated().sum())
        if by_chance < _FEWEST_AGAIN or again > _RARELY * by_chance:
            continue
        few = [name for name in levels if 1 < levels[name] <= MOST_VISITS and name not in (person, item)]
        answers = [
            name
            for name in few
            if all(frame.groupby(key)[name].nunique().max() > 1 for key in (person, item))
            and pd.api.types.is_numeric_dtype(frame[name].dtype)
        ]
        if not answers:
            continue
        answer = next((name for name in answers if plain_name(name) in (*ANSWERS, "y")), answers[-1])
        raise InputError(
            f"{table.source}: each row looks like one answer: {person!r} has {levels[person]} values and "
            f"{item!r} {levels[item]}, which repeat, but hardly ever together.",
            code="crossed",
            remedy=Advice(
                "If so, name the participants, the items and the answers, as in {id=} {long=}; if not, set "
                "{long} to no.",
                id=person,
                long=(item, answer),
            ),
            columns=(person, item, answer),
        )


def _like_names(column: pd.Series) -> bool:
    """Whether values may name participants or items: texts or whole numbers, none missing."""
    if column.isna().any():
        return False
    return not pd.api.types.is_numeric_dtype(column.dtype) or bool((column % 1 == 0).all())


def _visits(frame: pd.DataFrame, identity: str, item: str, answer: str) -> list[str]:
    """The columns of visits, by their names, and one that tells repeated answers apart."""
    others = [str(name) for name in frame.columns if name not in (identity, item, answer)]
    different = {name: int(frame[name].nunique(dropna=False)) for name in others}
    named = [name for name in others if plain_name(name) in VISITS and different[name] > 1]

    def many(more: Sequence[str]) -> bool:
        """Whether many answers repeat an item of a participant with the same values in these columns."""
        return int(frame[[identity, item, *more]].duplicated().sum()) > _DOUBLED * len(frame)

    if not many(named):
        return named
    rest = sorted(
        (name for name in others if name not in named), key=lambda name: plain_name(name) not in RATERS
    )
    few = (name for name in rest if plain_name(name) in RATERS or 1 < different[name] <= MOST_VISITS)
    found = next((name for name in few if not many([*named, name])), None)
    return named if found is None else [*named, found]


def _wide(table: Table, identity: str, item: str, answer: str, doubled: str | None) -> Table:
    if len({identity, item, answer}) < 3:
        raise parameter_error("long", f" must name two columns other than the ids in {identity!r}.")
    frame = table.frame
    if frame[[identity, item]].isna().any(axis=None):
        kept = frame[[identity, item]].notna().all(axis=1).to_numpy()
        row = int(table.rows[int(np.flatnonzero(~kept)[0])])
        left = counted(int((~kept).sum()), "row")
        note = f"Left out {left} without a participant or an item (the first is row {row})."
        table = replace(table.take(kept), notes=(*table.notes, note))
        frame = table.frame
    visits = _visits(frame, identity, item, answer)
    unit, keys = _numbered(frame[[identity, *visits]])
    place, texts = _in_order(frame[item])
    names = _item_names(texts, item, [str(name) for name in frame.columns])
    kept = _each_once(table, unit, place, answer, names, doubled)
    first = np.sort(np.unique(unit, return_index=True)[1])
    answers = _spread(frame[answer].iloc[kept], unit[kept], place[kept], names, len(keys))
    others = [name for name in frame.columns if name not in (item, answer, identity, *visits)]
    of_items = frame[others].groupby(place).nunique().max()
    about_items = [name for name in others if of_items[name] <= 1 and frame[name].nunique() > 1]
    others = [name for name in others if name not in about_items]
    values = frame[others].groupby(unit, sort=True)
    steady = [str(name) for name, most in values.nunique().max().items() if most <= 1]
    beside = values[steady].first() if steady else pd.DataFrame(index=range(len(keys)))
    head = keys.reset_index(drop=True)
    wide = pd.concat([head, beside.reset_index(drop=True), answers], axis=1)
    dropped = [str(name) for name in others if name not in steady]
    units = "participant"
    if visits:
        units += f" and {'rater' if plain_name(visits[-1]) in RATERS else 'visit'}"
    notes = [
        f"Each of the {len(frame)} rows is one answer: the {len(names)} items in {item!r} became columns "
        f"with the answers in {answer!r}, one row per {units}."
    ]
    if about := [name for name in steady if frame[name].nunique() > 1]:
        notes.append(f"The same in all rows of one {units}, so they can be confounds: {listed(about)}.")
    if about_items:
        notes.append(f"Left out because they describe items: {listed(about_items)}.")
    if dropped:
        notes.append(f"Left out because they differ between answers of one {units}: {listed(dropped)}.")
    described = table.described
    own = [described[name] for name in map(str, head.columns) if name in described]
    own += [described[name] for name in steady if name in described]
    known = described.get(answer)
    own += [] if known is None else [replace(known, name=name, wording="") for name in names]
    return replace(
        table,
        frame=wide,
        id=identity,
        rows=table.rows[first],
        items=tuple(own),
        candidates=tuple(names),
        structural=None,
        notes=(*table.notes, *notes),
    )


def _numbered(keys: pd.DataFrame) -> tuple[np.ndarray, pd.DataFrame]:
    """The number of each row's participant and visit, and these in order of the file."""
    unit = keys.groupby(list(keys.columns), sort=False, dropna=False).ngroup().to_numpy()
    return unit, keys.iloc[np.sort(np.unique(unit, return_index=True)[1])]


def _in_order(items: pd.Series) -> tuple[np.ndarray, pd.Index]:
    """The number of each row's item, and the items: Q1, Q2, … by number, others as they first appear."""
    place, texts = pd.factorize(items)
    names = [number(text).strip() for text in texts]
    stems = [name.rstrip("0123456789") for name in names]
    first = {stem: at for at, stem in reversed(list(enumerate(stems)))}
    digits = [name[len(stem) :].lstrip("0") for name, stem in zip(names, stems, strict=True)]
    keys = [(first[stem], len(tail), tail) for stem, tail in zip(stems, digits, strict=True)]
    order = np.array(sorted(range(len(names)), key=keys.__getitem__), dtype=int)
    return np.argsort(order)[place], texts[order]


def _item_names(texts: pd.Index, item: str, columns: Sequence[str]) -> list[str]:
    """Names of the items' columns; those that are numbers follow the name of their column."""
    names = [number(text).strip() for text in texts]
    if any(re.fullmatch(r"[\d.]+", name) for name in names) or {*names} & {*columns}:
        names = [f"{item}{name}" for name in names]
    return names


def _each_once(
    table: Table, unit: np.ndarray, place: np.ndarray, answer: str, names: Sequence[str], doubled: str | None
) -> np.ndarray:
    """The rows with one answer to each item; different answers of one participant need a choice."""
    given = np.flatnonzero(table.frame[answer].notna())  # an empty answer is none
    cells = pd.DataFrame({"unit": unit[given], "item": place[given]})
    if not cells.duplicated().any():
        return given
    answered = pd.DataFrame({**cells, "answer": table.frame[answer].astype(object).to_numpy()[given]})
    if not answered.drop_duplicates().duplicated(["unit", "item"]).any() or doubled == "first":
        return given[first_of(cells)]
    if doubled == "last":
        return given[last_of(cells)]
    if doubled is not None:
        return given[~cells.duplicated(keep=False).to_numpy()]
    different = answered.drop_duplicates()
    again = given[different.index[different.duplicated(["unit", "item"])].to_numpy()]
    second = int(again[0])
    first = int(given[(unit[given] == unit[second]) & (place[given] == place[second])][0])
    identity = str(table.frame.columns[0]) if table.id is None else table.id
    raise InputError(
        f"{table.source}: {len({*unit[again]})} participants have different answers to one item: "
        f"{number(table.frame[identity].iloc[second])!r} answered {names[place[second]]!r} with "
        f"{number(table.frame[answer].iloc[first])} in row {table.rows[first]}, and with "
        f"{number(table.frame[answer].iloc[second])} in row {table.rows[second]}{and_more(len(again))}.",
        code="doubled-rows",
        remedy=CHOOSE,
        rows=(int(table.rows[first]), int(table.rows[second])),
    )


def _spread(
    answers: pd.Series, unit: np.ndarray, place: np.ndarray, names: Sequence[str], n_units: int
) -> pd.DataFrame:
    """The answers as one column per item."""
    numeric = pd.api.types.is_numeric_dtype(answers.dtype)
    cells = np.full((n_units, len(names)), np.nan, dtype=float if numeric else object)
    cells[unit, place] = answers.to_numpy(dtype=cells.dtype, na_value=np.nan)
    return pd.DataFrame(cells, columns=list(names))
