"""Where a table ends: lines below the answers, such as the date of an export or totals, and columns twice."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from icqf.errors import InputError, and_more, counted, listed, shortened
from icqf.io.readers.header import is_number
from icqf.screening.missing_codes import number

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
