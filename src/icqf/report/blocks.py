"""The blocks of a page: sections of prose, lists, tables and pictures, the same for every renderer."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from markupsafe import Markup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DOTS_PER_INCH = 144
_NUMBER = r"[<>≤≥≈+−-]?\d[\d., \u202f]*%?"
_NUMERIC = re.compile(rf"(–|{_NUMBER}(\s?(–|to|±)\s?{_NUMBER})?( \({_NUMBER}\))?)?")


@dataclass(frozen=True)
class Span:
    """Highlighted or linked words of a sentence.

    Examples
    --------
    >>> from icqf.report import Prose, Span
    >>> Prose(["Made by ", Span("icqf fit", "code"), "."]).text
    'Made by icqf fit.'
    """

    text: str
    kind: str = ""  # "strong", "code" or "small"
    link: str = ""


@dataclass(frozen=True, eq=False)
class Prose:
    """A paragraph with highlighted words or links; a plain paragraph is just a string.

    Examples
    --------
    >>> from icqf.report import Prose, Span
    >>> Prose(["See ", Span("the table", link="table.csv"), "."]).text
    'See the table.'
    """

    parts: Sequence[str | Span]
    kind: str = ""  # "quote" for a text to be pasted elsewhere, or a class of the page

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

    Examples
    --------
    >>> from icqf.report import Cell
    >>> Cell("Cries a lot", note="q14").plain
    'Cries a lot (q14)'
    """

    text: str = ""
    note: str = ""  # small print after it, such as the name of an item after its wording
    kind: str = ""  # class on the page, such as a shade from q1 to q10
    link: str = ""
    tip: str = ""  # the interval, shown under the pointer
    drawing: Bar | Histogram | None = None  # instead of the text; only on the page
    spoken: str = ""  # what a screen reader says where the text is empty

    @property
    def plain(self) -> str:
        """The text with its note."""
        return f"{self.text} ({self.note})" if self.note else self.text


@dataclass(frozen=True)
class Column:
    """A heading that is more than its title.

    Examples
    --------
    >>> from icqf.report import Column
    >>> Column("Share", drawn=True).drawn
    True
    """

    title: str
    kind: str = ""  # class of the heading on the page; "up" for a vertical one
    cells: str = ""  # class of the cells below it
    numeric: bool | None = None  # whether set to the right; by default where all cells look like numbers
    drawn: bool = False  # whether its cells hold drawings, which only the page shows
    quiet: bool = False  # whether the title is for screen readers only


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
    """A table; the first column names the rows. Cells are texts or Cells, headings texts or Columns.

    Examples
    --------
    >>> from icqf.report import Grid
    >>> Grid("Instruments", ["name", "k"], [["mood", "3"]]).numeric
    [False, True]
    """

    caption: str
    head: Sequence[object]  # none for a table without headings
    rows: Sequence[Iterable[object]]
    links: Sequence[str] = ()  # where the name of each row leads, such as a folder; empty for nowhere
    note: str = ""  # below the table
    bold: frozenset[tuple[int, int]] = frozenset()  # row and column of bold cells
    kind: str = ""  # classes on the page: "sortable" where a click on a heading sorts, "bars" for narrow ones
    label: str = ""  # of the scrolling region on the page; the caption by default
    quiet: bool = False  # whether the page shows the caption to screen readers only
    scroll: bool = True  # whether the page scrolls a table that is wider than the window

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
            not column.drawn and self._looks_numeric(at) if column.numeric is None else column.numeric
            for at, column in enumerate(self.columns)
        ]

    def _looks_numeric(self, at: int) -> bool:
        return bool(self.rows) and all(_NUMERIC.fullmatch(row[at].text) for row in self.cells)

    def texts(self) -> tuple[list[str], list[list[str]]]:
        """Headings and rows as plain texts, without drawings."""
        shown = [at for at, column in enumerate(self.columns) if not column.drawn]
        head = [self.columns[at].title for at in shown] if self.head else []
        return head, [[row[at].plain for at in shown] for row in self.cells]


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure with the name of its file and a description for screen readers.

    `figure` is a matplotlib figure, the content of a PNG file, a function that returns an SVG element of the
    page as Markup (which no other renderer shows), or None where the file is there already.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from icqf.report import Picture
    >>> Picture("levels", Figure(), "Three levels").name
    'levels'
    """

    name: str  # of the file next to the page, without its ending
    figure: Figure | bytes | Callable[[], Markup] | None
    caption: str
    alt: str = ""  # what it shows in words; the caption by default

    @cached_property
    def png(self) -> bytes:
        """The content of its PNG file, drawn once for all formats; the same bytes for the same figure."""
        if isinstance(self.figure, bytes):
            return self.figure
        if self.figure is None or callable(self.figure):
            return b""
        from icqf.plotting.style import (
            default_settings,  # with matplotlib, which a page of text does not need
        )

        stream = io.BytesIO()
        with default_settings():
            self.figure.savefig(
                stream, format="png", dpi=_DOTS_PER_INCH, metadata={"Software": None}, facecolor="white"
            )
        return stream.getvalue()

    @property
    def inline(self) -> bool:
        """Whether it is a drawing of the page itself, without a file."""
        return callable(self.figure)


@dataclass(frozen=True, eq=False)
class Details:
    """Blocks that the page collapses under a summary; elsewhere they follow `title` or the summary.

    Examples
    --------
    >>> from icqf.report import Details
    >>> Details("How this was done", ["In two stages."]).heading
    'How this was done'
    """

    summary: str
    parts: Sequence[Block]
    kind: str = ""
    page_only: bool = False  # whether other renderers leave it out
    title: str = ""

    @property
    def heading(self) -> str:
        """The heading where nothing is collapsed."""
        return self.title or self.summary


@dataclass(frozen=True, eq=False)
class Group:
    """Blocks that the page sets side by side ("cols") or, if they are sections, as cards ("cards").

    Examples
    --------
    >>> from icqf.report import Group
    >>> len(Group(["Left.", ["Right, above.", "Right, below."]]).parts)
    2
    """

    parts: Sequence[Block | Sequence[Block]]  # a list is one column
    kind: str = "cols"
    data: Mapping[str, str] = field(default_factory=dict)  # attributes on the page


@dataclass(frozen=True, eq=False)
class Section:
    """A heading with blocks: paragraphs, lists, tables, pictures, smaller sections.

    Examples
    --------
    >>> from icqf.report import Section
    >>> Section("Methods", ["Two stages."]).heading
    'Methods'
    """

    heading: str
    parts: Sequence[Block]  # a text is a paragraph; a Markup is shown by the page alone
    key: str = ""  # its id on the page, and its name in JSON
    title: str = ""  # in the navigation of the page; without one, it is not listed
    data: Mapping[str, Any] | None = None  # values for JSON instead of its words and tables; {} for none


@dataclass(frozen=True)
class Heading:
    """The heading of a section or of details, in formats that show one block after another."""

    level: int
    text: str


Block: TypeAlias = str | Markup | Prose | Bullets | Grid | Picture | Details | Group | Section
Leaf: TypeAlias = str | Prose | Bullets | Grid | Picture | Heading


def in_order(blocks: Iterable[Any], level: int = 1) -> Iterator[Leaf]:
    """Blocks one after another for formats without columns, without those that only a page shows."""
    for block in blocks:
        if isinstance(block, (list, tuple, Group)):
            yield from in_order(block.parts if isinstance(block, Group) else block, level)
        elif isinstance(block, (Section, Details)):
            below = list(in_order(block.parts, level + 1))
            if isinstance(block, Section) or (below and not block.page_only):
                yield Heading(level, block.heading)
                yield from below
        elif not (isinstance(block, Markup) or block == "" or (isinstance(block, Picture) and block.inline)):
            yield block


def plain_text(text: str | Prose) -> str:
    """The words of a paragraph."""
    return text if isinstance(text, str) else text.text
