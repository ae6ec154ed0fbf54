"""Where a table begins: title rows above the header, headers in two rows, and question texts below."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from icqf.data.settings import parameter_error
from icqf.errors import InputError, and_more, counted, listed, shortened
from icqf.io.readers.platforms import further_headers, header_notes, question_texts
from icqf.screening.answer_words import means_no_answer
from icqf.screening.missing_codes import number

ROWS = 60  # rows from which the header is recognised
ROW_NAMES_NOTE = "The first column has no name in the header; it is called {!r} here."
MOSTLY = 0.7  # of the cells of the fullest row: a header names most columns
_NEARLY = 0.8  # of columns or cells
_WIDE = 3  # columns per group, on average, to trust that numbers are names
_BELOW = 20  # rows that are looked at
_FEWEST_BELOW = 3  # rows that must have numbers below a second header row
_NUMBER = re.compile(r"\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d+)?\s*%?", re.IGNORECASE)
_MISSING = re.compile(r"[.\-–—?*#]+|nan|null|none|#\S+", re.IGNORECASE)
Row = Sequence[str]


@dataclass(frozen=True)
class Header:
    """The header among the first rows of a table; rows are counted from 0, with blank ones."""

    row: int  # the names, or the lower of the two rows that hold them
    last: int  # the last row above the answers
    names: tuple[str, ...]  # stripped; empty where a column has none
    wordings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    alone: bool = True  # whether no other row is above the answers


def find_header(rows: Sequence[Row], source: str, *, row: int | None = None) -> Header:
    """Find the header among the first rows of a table.

    The header is the first row that fills most columns; above it there may be titles, or groups of columns.
    A row of texts above columns of numbers is a further header row. `row`, counted from 1, is a header
    that was chosen.
    """
    stripped = [[cell.strip() for cell in cells] for cells in rows]
    places = [at for at, cells in enumerate(stripped) if any(cells)]
    filled = [stripped[at] for at in places]
    if row is not None:
        at = _chosen(places, row, source)
        upper = _groups_above(filled, at)
    elif not filled:
        raise InputError(f"{source}: the file is empty.")
    else:
        at, upper = _found(filled)
    names, last = list(filled[at]), at
    if upper is not None:
        names = _with_groups(filled[upper], names)
    first = at if upper is None else upper
    platform = further_headers(names, filled[at + 1 : at + 3]) if first == 0 else 0
    wordings = question_texts(filled[at + 1 : at + 1 + platform])
    notes = list(header_notes(platform))
    last += platform
    completed = len(filled) > at + 1 and _completes(names, filled[at + 1])
    if not platform and upper is None and (completed or _texts_above_numbers(filled, at + 1)):
        last = at + 1
        if completed or _incomplete(names, filled, at + 2):  # groups of columns above their names
            names, at = _with_groups(names, filled[last]), last
        else:
            wordings = filled[last]
            texts = f"Row {places[last] + 1} was read as the texts of the questions."
            notes.append(texts)
    titles = [next(filter(None, cells)) for cells in filled[:first]]
    if first < at:
        here = f"Rows {places[first] + 1} and {places[at] + 1} were read together as the header"
    else:
        here = f"Row {places[at] + 1} was read as the header"
    if titles:
        texts = listed((shortened(title, 40) for title in titles), most=3)
        above = "row above it was" if len(titles) == 1 else "rows above it were"
        notes.insert(0, f"{here}; the {above} left out: {texts}.")
    elif first < at or row is not None:
        notes.insert(0, f"{here}.")
    alone = last == 0
    return Header(places[at], places[last], tuple(names), tuple(wordings), tuple(notes), alone)


def _chosen(places: Sequence[int], row: int, source: str) -> int:
    if row - 1 not in places:
        raise parameter_error("header_row", f" is {row}, but {source} has no such row with names.", row=row)
    return places.index(row - 1)


def _found(rows: Sequence[Row]) -> tuple[int, int | None]:
    """Return the header's row and, where names are in two rows, the one above."""
    filled = [sum(map(bool, cells)) for cells in rows]
    most = sorted(filled)[-1 - min(max(1, len(filled) // 10), len(filled) - 1)]  # one row may be too long
    if most < 3 or filled[0] >= MOSTLY * most:
        return 0, None
    at = next(i for i, n in enumerate(filled) if n >= MOSTLY * most)
    if not _like_answers(rows[at]):
        return at, _groups_above(rows, at)
    if _completes(rows[at - 1], rows[at]) or _numbered(rows[at - 1], rows[at]):
        return at, at - 1
    above = at - 1  # names in two rows, neither of which fills most columns
    if not _like_answers(rows[above]):
        upper = above - 1 if above and filled[above - 1] > 1 else None
        together = rows[above] if upper is None else _with_groups(rows[upper], rows[above])
        if sum(map(bool, together)) >= MOSTLY * most:
            return above, upper
    return 0, None


def _groups_above(rows: Sequence[Row], at: int) -> int | None:
    """The row above, if it has names or groups that the header needs."""
    if at == 0 or sum(map(bool, rows[at - 1])) < 2:
        return None
    return at - 1 if _incomplete(rows[at], rows, at + 1) else None


def _completes(names: Row, below: Row) -> bool:
    """Whether a row has names for all columns without one, and nothing where the first columns have some."""
    pairs = list(zip(names, below, strict=False))
    unnamed = [under for name, under in pairs if not name]
    return bool(names[0]) and not below[0] and len(unnamed) > 0 and all(unnamed)


def _numbered(groups: Row, names: Row) -> bool:
    """Whether a row numbers the columns below the groups above: no number repeats in its group."""
    joined = [name for name in _with_groups(groups, names) if name]
    known = [name for name in names if name]
    wide = len(known) >= _WIDE * max(1, sum(map(bool, groups)))
    return (
        sum(map(bool, groups)) > 1
        and not _like_answers(groups)
        and wide
        and (len({*known}) < len(known) and len({*joined}) == len(joined))
    )


def _incomplete(names: Row, rows: Sequence[Row], below: int) -> bool:
    """Whether names repeat, or filled columns have none (other than a first one of row names)."""
    known = [name for name in names if name]
    if len({*known}) < len(known):
        return True
    unnamed = [j for j, name in enumerate(names) if not name and j]
    return any(len(cells) > j and cells[j] for cells in rows[below:] for j in unnamed)


def _with_groups(groups: Row, names: Row) -> list[str]:
    """Names completed by the row above: where they are empty, and all if they repeat in several groups."""
    width = max(len(groups), len(names))
    upper = [*groups, *[""] * (width - len(groups))]
    lower = [*names, *[""] * (width - len(names))]
    known = [name for name in lower if name]
    repeats = len({*known}) < len(known)
    group, joined = "", []
    for above, name in zip(upper, lower, strict=True):
        group = above or group
        joined.append(above if not name else f"{group} {name}" if repeats and group else name)
    return joined


def _like_answers(cells: Row) -> bool:
    """Whether more than half of the filled cells are numbers or gaps."""
    filled = [cell for cell in cells if cell]
    return 2 * sum(is_number(cell) or _is_gap(cell) for cell in filled) > len(filled)


def _texts_above_numbers(rows: Sequence[Row], at: int) -> bool:
    """Whether a row has texts in nearly all columns that have only numbers below it."""
    below = rows[at + 1 : at + 1 + _BELOW]
    if len(below) < _FEWEST_BELOW or _like_answers(rows[at]):
        return False
    numeric = [
        j
        for j in range(len(rows[at]))
        if len(cells := [row[j] for row in below if len(row) > j and row[j]]) >= _FEWEST_BELOW
        and sum(is_number(cell) or _is_gap(cell) for cell in cells) >= _NEARLY * len(cells)
        and any(map(is_number, cells))
    ]
    own = [rows[at][j] for j in numeric]
    texts = [cell for cell in own if cell and not is_number(cell) and not _is_gap(cell)]
    return len(texts) > 1 and len(texts) >= _NEARLY * len(own)


def is_number(cell: str) -> bool:
    return _NUMBER.fullmatch(cell) is not None


def _is_gap(cell: str) -> bool:
    return _MISSING.fullmatch(cell) is not None or means_no_answer(cell)


MOST = 10  # rows of a footer
_NARROWEST = 3  # columns of a table whose footer is recognised
_MOST_FILLED = 2  # cells of a line that is not a row of answers
_LINE = re.compile(
    r"\W*(export(ed)?|generated|created|downloaded|printed|extracted|retrieved|produced|sources?|end of"
    r"|notes?|copyright|confidential|total (number of )?(records|rows|cases|participants|responses))\b"
    r"|n *= *\d"
    r"|.*\b\d[\d  .,]* *(records|rows|cases|participants|respondents|responses|entries|observations)\b",
    re.IGNORECASE,
)
_TOTAL = re.compile(
    r"(grand |column )?(total|sum|mean|average|median|sd|std\.?( dev(iation)?\.?)?|standard deviation)s?:?"
    r"|(gesamt|summe|mittelwert|durchschnitt|sw|standardabweichung|somme|moyenne|médiane|suma|media|promedio):?",
    re.IGNORECASE,
)


def rows_of_footer(rows: Sequence[Sequence[str]], width: int) -> int:
    """Return how many of the last rows of a table are below its answers; blank ones among them count."""
    last = 0
    for below, cells in enumerate(reversed(rows[-MOST:]), start=1):
        filled = [cell.strip() for cell in cells if cell.strip()]
        if filled and not _is_footer(cells, filled, width):
            break
        last = below if filled else last
    return last if width >= _NARROWEST else 0


def _is_footer(cells: Sequence[str], filled: Sequence[str], width: int) -> bool:
    """Whether a row is a line of text, or named as a total with nothing but numbers beside it."""
    if _TOTAL.fullmatch(filled[0]) and cells[0].strip() == filled[0]:
        return all(is_number(cell) for cell in filled[1:])
    narrow = len(cells) < width or len(filled) <= _MOST_FILLED
    return narrow and " " in filled[0].strip() and _LINE.match(" ".join(filled)) is not None


def footer_note(rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the note on rows of a footer that were left out."""
    texts = [shortened(" ".join(cell.strip() for cell in cells if cell.strip()), 60) for cells in rows]
    texts = [text for text in texts if text]
    if not texts:
        return ()
    below = "last row was" if len(texts) == 1 else f"last {counted(len(texts), 'row')} were"
    return (f"The {below} left out, as a footer or total: {listed(texts)}.",)


_OF_LABELS = "Complete?"  # a column after each form in REDCap's exports with labels


def once_named(
    frame: pd.DataFrame, names: Sequence[str], source: str, header: int, rows: np.ndarray
) -> tuple[list[int], tuple[str, ...]]:
    """Return the positions of columns to keep, with a note; the same column twice is read once.

    Two columns with one name that differ are refused. `header` is the row with the names.
    """
    first: dict[str, int] = {}
    kept, again = [], []
    for at, name in enumerate(names):
        if not name or name not in first:
            kept.append(at)
            first.setdefault(name, at)
            continue
        one, other = frame.iloc[:, first[name]], frame.iloc[:, at]
        differ = np.flatnonzero(~((one == other) | (one.isna() & other.isna())).to_numpy(dtype=bool))
        if len(differ):
            cells = " and ".join(repr(number(each.iloc[differ[0]])) for each in (one, other))
            more = and_more(len(differ))
            remedy = "Rename one of them, or delete the one that is not needed."
            if name == _OF_LABELS:
                remedy = "The header holds labels of REDCap, not names of variables: export the raw data."
            raise InputError(
                f"{source}: row {header} names the column {name!r} twice (columns {first[name] + 1} and "
                f"{at + 1}), and they differ: {cells} in row {rows[differ[0]]}{more}. {remedy}"
            )
        again.append(name)
    if not again:
        return kept, ()
    twice = listed(dict.fromkeys(again))
    return kept, (f"Read once, because the file holds the same column twice: {twice}.",)
