"""What a page is made of: sections of prose, lists, tables and pictures, the same for every renderer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from markupsafe import Markup
from matplotlib.figure import Figure

_NUMBER = r"[<>≤≥≈+−-]?\d[\d., \u202f]*%?"
_NUMERIC = re.compile(rf"(–|{_NUMBER}(\s?(–|to|±)\s?{_NUMBER})?( \({_NUMBER}\))?)?")


@dataclass(frozen=True)
class Span:
    """Words of a sentence that stand out or lead somewhere; `kind` is "strong", "code", "small" or "".

    Examples
    --------
    >>> from icqf.report import Prose, Span
    >>> Prose(["Made by ", Span("icqf fit", "code"), "."]).text
    'Made by icqf fit.'
    """

    text: str
    kind: str = ""
    link: str = ""


@dataclass(frozen=True, eq=False)
class Prose:
    """A paragraph with words that stand out; a plain paragraph is just a text.

    Attributes
    ----------
    parts : sequence of str or Span
    kind : str
        "quote" for a text to be pasted elsewhere, or a class of the page.

    Examples
    --------
    >>> from icqf.report import Prose, Span
    >>> Prose(["See ", Span("the table", link="table.csv"), "."]).text
    'See the table.'
    """

    parts: Sequence[str | Span]
    kind: str = ""

    @property
    def text(self) -> str:
        """The words alone."""
        return "".join(part if isinstance(part, str) else part.text for part in self.parts)


@dataclass(frozen=True, eq=False)
class Bullets:
    """A list, one entry per line.

    Examples
    --------
    >>> from icqf.report import Bullets
    >>> len(Bullets(["one", "two"]).entries)
    2
    """

    entries: Sequence[str | Prose]
    kind: str = ""


@dataclass(frozen=True)
class Bar:
    """A bar in a cell of the page: a share from 0 to 1, with an interval where there is one."""

    share: float
    low: float | None = None
    high: float | None = None
    kind: str = ""


@dataclass(frozen=True)
class Histogram:
    """A small histogram in a cell of the page."""

    counts: Sequence[float]

    @property
    def outline(self) -> str:
        """An SVG path in a box as wide as it has bars, and 1 high."""
        highest = max(self.counts, default=0) or 1
        return f"M0,1{''.join(f'V{1 - count / highest:.3f}h1' for count in self.counts)}V1Z"


@dataclass(frozen=True)
class Cell:
    """A cell of a table that is more than its text.

    Attributes
    ----------
    text : str
    note : str
        Small print after it, such as the name of an item after its wording.
    kind : str
        Class on the page, such as a shade from q1 to q10.
    link : str
    tip : str
        The interval that the page tells of the number under the pointer.
    drawing : Bar or Histogram, optional
        Drawn on the page instead of the text; other renderers leave it out.
    spoken : str
        What a screen reader says where the text is empty.

    Examples
    --------
    >>> from icqf.report import Cell
    >>> Cell("Cries a lot", note="q14").plain
    'Cries a lot (q14)'
    """

    text: str = ""
    note: str = ""
    kind: str = ""
    link: str = ""
    tip: str = ""
    drawing: Bar | Histogram | None = None
    spoken: str = ""

    @property
    def plain(self) -> str:
        """The text with its note."""
        return f"{self.text} ({self.note})" if self.note else self.text


@dataclass(frozen=True)
class Column:
    """A heading that is more than its title.

    Attributes
    ----------
    title : str
    kind : str
        Class of the heading on the page ("up" for a vertical one).
    cells : str
        Class of the cells below it.
    numeric : bool, optional
        Whether it is set to the right; by default where all its cells look like numbers.
    drawn : bool
        Whether its cells hold drawings, which the page alone shows.
    quiet : bool
        Whether the title is for screen readers only.

    Examples
    --------
    >>> from icqf.report import Column
    >>> Column("Share", drawn=True).drawn
    True
    """

    title: str
    kind: str = ""
    cells: str = ""
    numeric: bool | None = None
    drawn: bool = False
    quiet: bool = False


@dataclass(frozen=True, eq=False)
class Row:
    """A row of a table with a class and data attributes on the page."""

    cells: Sequence[object]
    kind: str = ""
    data: Mapping[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[object]:
        return iter(self.cells)


@dataclass(frozen=True, eq=False)
class Grid:
    """A table; the first column names the rows.

    Attributes
    ----------
    caption : str
    head : sequence of str or Column
        Headings; none for a table without.
    rows : sequence of rows
        Each a sequence of str or Cell, or a Row.
    links : sequence of str
        Where the name of each row leads, such as a folder beside the page; empty for nowhere.
    note : str
        What a reader needs beside it; set below.
    bold : set of (row, column)
        Cells that stand out.
    kind : str
        Classes on the page: "sortable" for a table that a click on a heading sorts, "bars" for a narrow one.
    label : str
        Name of the scrolling region on the page; the caption by default.
    quiet : bool
        Whether the page shows the caption to screen readers only.
    scroll : bool
        Whether the page scrolls a table that is wider than the window.

    Examples
    --------
    >>> from icqf.report import Grid
    >>> Grid("Instruments", ["name", "k"], [["mood", "3"]]).numeric
    [False, True]
    """

    caption: str
    head: Sequence[object]
    rows: Sequence[Iterable[object]]
    links: Sequence[str] = ()
    note: str = ""
    bold: frozenset[tuple[int, int]] = frozenset()
    kind: str = ""
    label: str = ""
    quiet: bool = False
    scroll: bool = True

    @cached_property
    def columns(self) -> list[Column]:
        """The headings, each as a Column; without a title where the table has none."""
        width = len(self.head) or max((len(list(row)) for row in self.rows), default=0)
        head = self.head or [""] * width
        return [title if isinstance(title, Column) else Column(str(title)) for title in head]

    @cached_property
    def cells(self) -> list[list[Cell]]:
        """The rows, each cell as a Cell."""
        return [[cell if isinstance(cell, Cell) else Cell(str(cell)) for cell in row] for row in self.rows]

    @cached_property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers, and are set to the right."""
        return [
            bool(self.rows)
            and not column.drawn
            and all(_NUMERIC.fullmatch(row[at].text) for row in self.cells)
            if column.numeric is None
            else column.numeric
            for at, column in enumerate(self.columns)
        ]

    def texts(self) -> tuple[list[str], list[list[str]]]:
        """Headings and rows as plain texts, without drawings."""
        shown = [at for at, column in enumerate(self.columns) if not column.drawn]
        head = [self.columns[at].title for at in shown] if self.head else []
        return head, [[row[at].plain for at in shown] for row in self.cells]


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure with the name of its file, and what it shows for those who do not see it.

    Attributes
    ----------
    name : str
        Of the file, without its ending, beside the page.
    figure : matplotlib Figure, bytes, callable or None
        What is drawn: a figure, the content of a PNG file, a function that returns an SVG element of the
        page as Markup (which no other renderer shows), or nothing where the file is there already.
    caption : str
    alt : str
        What it shows in words; the caption by default.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from icqf.report import Picture
    >>> Picture("levels", Figure(), "Three levels").name
    'levels'
    """

    name: str
    figure: Figure | bytes | Callable[[], Markup] | None
    caption: str
    alt: str = ""

    @property
    def inline(self) -> bool:
        """Whether it is a drawing of the page itself, without a file."""
        return callable(self.figure)


@dataclass(frozen=True, eq=False)
class Details:
    """Blocks that the page folds away under a summary; elsewhere they stand under `title` or the summary.

    With `page_only`, other renderers leave them out.

    Examples
    --------
    >>> from icqf.report import Details
    >>> Details("How this was done", ["In two stages."]).summary
    'How this was done'
    """

    summary: str
    parts: Sequence[Block]
    kind: str = ""
    page_only: bool = False
    title: str = ""

    @property
    def heading(self) -> str:
        """What stands above the parts where nothing is folded away."""
        return self.title or self.summary


@dataclass(frozen=True, eq=False)
class Group:
    """Blocks that the page sets beside each other ("cols") or, if they are sections, as cards ("cards").

    A list among the parts is set as one. Where `data` are given, they are attributes on the page.

    Examples
    --------
    >>> from icqf.report import Group
    >>> len(Group(["Left.", ["Right, above.", "Right, below."]]).parts)
    2
    """

    parts: Sequence[Block | Sequence[Block]]
    kind: str = "cols"
    data: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Section:
    """A heading with what stands below it, in order: paragraphs, lists, tables, pictures, smaller sections.

    Attributes
    ----------
    heading : str
    parts : sequence of blocks
        A text is a paragraph. A Markup is shown by the page alone.
    key : str
        Its id on the page, and its name in JSON; needed only where something refers to it.
    title : str
        What the navigation of the page calls it; without one, it is not part of it.
    data : mapping, optional
        Its values for JSON, instead of its words and tables; an empty mapping for none.

    Examples
    --------
    >>> from icqf.report import Section
    >>> Section("Methods", ["Two stages."]).heading
    'Methods'
    """

    heading: str
    parts: Sequence[Block]
    key: str = ""
    title: str = ""
    data: Mapping[str, Any] | None = None


Block: TypeAlias = str | Markup | Prose | Bullets | Grid | Picture | Details | Group | Section


def plain_text(text: str | Prose) -> str:
    """The words of a paragraph."""
    return text if isinstance(text, str) else text.text


def on_the_page_alone(block: Any) -> bool:
    """Whether only the HTML page shows a block: its own drawings and controls."""
    return (
        isinstance(block, Markup)
        or (isinstance(block, Picture) and block.inline)
        or (isinstance(block, Details) and block.page_only)
    )


def walk(parts: Sequence[Any]) -> Iterator[Block]:
    """All blocks in their order, those inside others included."""
    for part in parts:
        if isinstance(part, (list, tuple)):
            yield from walk(part)
            continue
        yield part
        if isinstance(part, (Details, Group, Section)):
            yield from walk(part.parts)
