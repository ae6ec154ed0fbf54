"""A page of sections, in every format."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from icqf import __version__
from icqf.errors import InputError
from icqf.report.blocks import Leaf, Picture, Prose, Section, in_order
from icqf.report.renderers import html, json, latex, markdown, terminal, word


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
    lead: Sequence[str | Prose]  # what to read first
    sections: Sequence[Section]
    footer: str = ""
    cautions: Sequence[str] = ()  # shown before everything else
    data: Mapping[str, Any] | None = None  # values for JSON in addition to those of the sections
    interactive: bool = False  # whether the HTML page has the script that sorts tables and saves figures
    kind: str = ""  # class of the HTML page: "sheet" for one that is printed on a single sheet of A4

    def in_order(self) -> Iterator[Leaf]:
        """Everything below the title and the cautions, one block after another."""
        return in_order((*self.lead, *self.sections, self.footer))

    @property
    def pictures(self) -> list[Picture]:
        """The pictures that are files next to the page."""
        return [leaf for leaf in self.in_order() if isinstance(leaf, Picture) and leaf.figure is not None]

    def as_html(self) -> str:
        """The page as one HTML file that loads nothing, pictures included."""
        return html.render(self)

    def as_markdown(self) -> str:
        """The page in Markdown; pictures are named by their files."""
        return markdown.render(self)

    def as_json(self) -> str:
        """The values of the page, or its words and tables where sections have no values."""
        return json.render(self)

    def as_text(self, width: int = 100) -> str:
        """The page as plain text for a terminal."""
        return terminal.render(self, width)

    def as_latex(self) -> str:
        """The page in LaTeX, to be included in a document."""
        return latex.render(self)

    def as_word(self) -> bytes:
        """The page as the content of a Word file."""
        return word.render(self)


def made_by(command: str = "") -> str:
    """The last line of a page."""
    program = f"icqf {__version__}"
    return f"Made by {command} with {program}." if command else f"Made with {program}."


FORMATS: dict[str, Callable[[Document], str | bytes]] = {
    ".html": Document.as_html,
    ".md": Document.as_markdown,
    ".json": Document.as_json,
    ".txt": Document.as_text,
    ".tex": Document.as_latex,
    ".docx": Document.as_word,
}


def write_document(
    path: str | os.PathLike[str], page: Document, *, formats: Sequence[str] = (".html", ".md")
) -> list[Path]:
    """Write a page in several formats into the same folder, and its pictures as files.

    Parameters
    ----------
    path : path
        The file of the first format; the others have its name with their endings.
    formats : sequence of str
        Endings: ``.html``, ``.md``, ``.json``, ``.txt``, ``.tex`` or ``.docx``.

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
    path, written = Path(path), []
    for at, ending in enumerate(formats):
        if ending not in FORMATS:
            raise InputError(f"Pages are written as {', '.join(FORMATS)}, not as {ending!r}.")
        content = FORMATS[ending](page)
        file = path if at == 0 and path.suffix else path.with_suffix(ending)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        written.append(file)
    for picture in page.pictures:
        file = path.parent / f"{picture.name}.png"
        file.write_bytes(picture.png)
        written.append(file)
    return written
