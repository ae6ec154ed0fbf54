"""A short page of headings, sentences, tables and pictures, as HTML and as Markdown."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup
from matplotlib.figure import Figure

from icqf.plotting.style import default_settings
from icqf.report.markdown import markdown_table, safe
from icqf.report.templating import environment, file_of

_DOTS_PER_INCH = 144


@dataclass(frozen=True, eq=False)
class Grid:
    """A table of texts; the first column names the rows.

    Attributes
    ----------
    caption : str
    head : sequence of str
    rows : sequence of sequences of str
    links : sequence of str
        Where the name of each row leads, such as a folder beside the page; empty for nowhere.

    Examples
    --------
    >>> from icqf.report import Grid
    >>> Grid("Instruments", ["name", "k"], [["mood", "3"]]).numeric
    [False, True]
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    links: Sequence[str] = ()

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers, and are set to the right."""
        return [
            bool(self.rows) and all(_looks_numeric(row[at]) for row in self.rows)
            for at in range(len(self.head))
        ]


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure with the name of its file, and what it shows for those who do not see it.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from icqf.report import Picture
    >>> Picture("levels", Figure(), "Three levels").name
    'levels'
    """

    name: str
    figure: Figure
    caption: str


@dataclass(frozen=True, eq=False)
class Section:
    """A heading with what stands below it: sentences, tables and pictures in their order.

    Examples
    --------
    >>> from icqf.report import Section
    >>> Section("Methods", ["Two stages."]).heading
    'Methods'
    """

    heading: str
    parts: Sequence[str | Grid | Picture]


@dataclass(frozen=True, eq=False)
class Document:
    """A page: its title, the sentences to read first, and sections.

    Examples
    --------
    >>> from icqf.report import Document, Grid, Section
    >>> table = Grid("Two instruments", ["name", "k"], [["mood", "3"], ["sleep", "2"]])
    >>> Document("A battery", ["Two instruments."], [Section("Instruments", [table])]).as_markdown()[:11]
    '# A battery'
    """

    title: str
    lead: Sequence[str]
    sections: Sequence[Section]
    footer: str = ""

    def as_markdown(self) -> str:
        """The page in Markdown; pictures are named by their files."""
        parts = [f"# {safe(self.title)}", *(safe(sentence) for sentence in self.lead)]
        for section in self.sections:
            parts.append(f"## {safe(section.heading)}")
            for part in section.parts:
                if isinstance(part, Grid):
                    parts += [safe(part.caption) + ":", markdown_table(part.head, part.rows)]
                elif isinstance(part, Picture):
                    parts.append(f"![{safe(part.caption)}]({part.name}.png)")
                else:
                    parts.append(safe(part))
        return "\n\n".join([*parts, safe(self.footer)]).strip() + "\n"

    def as_html(self) -> str:
        """The page as one HTML file that loads nothing, pictures included."""
        found = environment()
        found.tests["grid"] = lambda part: isinstance(part, Grid)
        found.tests["picture"] = lambda part: isinstance(part, Picture)
        found.filters["data"] = lambda picture: Markup(b64encode(_png(picture.figure)).decode())
        style = Markup(file_of(found, "style.css"))
        return found.get_template("document.html").render(page=self, style=style)


def write_document(path: Path, page: Document) -> list[Path]:
    """Write a page as HTML, and beside it the same as Markdown and its pictures as files.

    Parameters
    ----------
    path : Path
        The HTML file; the Markdown has its name with the ending ``.md``.
    page : Document

    Returns
    -------
    list of Path
        The files written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from icqf.report import Document, write_document
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [file.name for file in write_document(pathlib.Path(folder, "page.html"), Document("T", [], []))]
    ['page.html', 'page.md']
    """
    texts = {path: page.as_html(), path.with_suffix(".md"): page.as_markdown()}
    for file, text in texts.items():
        file.write_text(text, encoding="utf-8", newline="\n")
    written = list(texts)
    for section in page.sections:
        for part in section.parts:
            if isinstance(part, Picture):
                file = path.parent / f"{part.name}.png"
                file.write_bytes(_png(part.figure))
                written.append(file)
    return written


def _png(figure: Figure) -> bytes:
    stream = io.BytesIO()
    with default_settings():
        figure.savefig(
            stream, format="png", dpi=_DOTS_PER_INCH, metadata={"Software": None}, facecolor="white"
        )
    return stream.getvalue()


def _looks_numeric(text: str) -> bool:
    plain = text.replace(" ", "").replace("%", "").replace("−", "-").replace(",", "")
    return plain in ("", "–") or plain.replace(".", "").lstrip("-").isdigit()
