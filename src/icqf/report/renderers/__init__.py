"""One module per format: HTML, Markdown, Word, LaTeX, JSON and terminal, all from the same document.

Here are the widths of a table's columns for formats with pages, in which no word is broken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from icqf.report.blocks import Grid

_LONGEST = 28  # characters of a word from which it may be broken, such as an address
_READABLE = 20  # characters of a line of text, at least
_GAP = 2.6  # characters between columns


@dataclass(frozen=True)
class Layout:
    """Columns of a table on a page: their shares of its width, which are numbers, and if it is turned."""

    shares: Sequence[float]
    numeric: Sequence[bool]
    turned: bool


def layout(grid: Grid, *, upright: float, turned: float) -> Layout:
    """How a table is set on a page with so many characters in a line, upright if no word has to be broken."""
    shown = [at for at, column in enumerate(grid.columns) if not column.drawn]
    numeric = [grid.numeric[at] for at in shown]
    titles, rows = grid.texts()
    texts = [[*titles[at : at + 1], *(row[at] for row in rows)] for at in range(len(shown))]
    for room in (upright, turned):
        shares = _shares(texts, numeric, bool(titles), room)
        if shares is not None:
            return Layout(shares, numeric, room == turned)
    n = len(shown)  # words are broken after all: the first column is wider, all others are alike
    return Layout([2 / (n + 1), *[1 / (n + 1)] * (n - 1)], numeric, True)


def _shares(
    columns: Sequence[Sequence[str]], numeric: Sequence[bool], headed: bool, room: float
) -> list[float] | None:
    """The share of each column in a line of `room` characters; None if words would have to be broken."""
    needed, wanted = [], []
    for texts, is_number in zip(columns, numeric, strict=True):
        whole = texts[headed:] if is_number else []  # a number stays in one line
        words = [*whole, *(word for text in texts for word in text.split())]
        least = 0 if is_number else min(max(map(_long, texts), default=1), _READABLE)
        needed.append(max(least, max((min(_long(word), _LONGEST) for word in words), default=1)) + _GAP)
        wanted.append(max(needed[-1], min(max(map(_long, texts), default=1), 3 * _LONGEST) + _GAP))
    left = room - sum(needed)
    if left < 0:
        return None
    more = [want - need for want, need in zip(wanted, needed, strict=True)]
    part = min(1.0, left / (sum(more) or 1.0))
    return [(need + part * extra) / room for need, extra in zip(needed, more, strict=True)]


def _long(text: str) -> float:
    """The length of a text in usual letters; capitals are wider."""
    return len(text) + 0.5 * sum(mark.isupper() for mark in text)
