"""A document as one self-contained HTML file."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from icqf.report.blocks import Bullets, Details, Grid, Group, Histogram, Picture, Row, Section

if TYPE_CHECKING:
    from icqf.report.document import Document

_LONG = 4  # sections from which a page has a navigation in any case
_KINDS = (Bullets, Details, Grid, Group, Histogram, Picture, Row, Section, Markup)


def render(page: Document) -> str:
    """The page as HTML; whatever is not Markup is escaped."""
    from icqf.report.svg import heat_css  # with matplotlib, which the app's own pages do not need

    templates = environment()
    for kind in _KINDS:
        templates.tests[kind.__name__.lower()] = _is(kind)
    templates.tests["inline"] = lambda picture: picture.inline
    templates.filters["png"] = lambda picture: Markup(b64encode(picture.png).decode())
    templates.filters["extent"] = lambda share: f"{100 * min(share, 1):.1f}"
    templates.globals["classes"] = _classes
    contents = _contents(page)
    listed = {entry.section: entry.key for entry in contents}
    templates.filters["anchor"] = lambda section: section.key or listed.get(section, "")
    scripts = ["contents.js"] * bool(contents) + ["script.js"] * page.interactive
    return templates.get_template("document.html").render(
        page=page,
        kind=" ".join(each for each in (page.kind, "with-contents" if contents else "") if each),
        contents=contents,
        style=Markup(file_of(templates, "style.css") + heat_css()),
        script=Markup("\n".join(file_of(templates, name) for name in scripts)),
    )


@dataclass(frozen=True)
class _Entry:
    """A section in the navigation, with its cards."""

    section: Section
    key: str
    title: str
    parts: Sequence[tuple[str, str]]


def _contents(page: Document) -> list[_Entry]:
    """The navigation of a page: sections with a title or, where none has one, all of a long page."""
    listed = [section for section in page.sections if section.title]
    if not listed and len(page.sections) >= _LONG and not page.kind:
        listed = list(page.sections)
    return [
        _Entry(
            section,
            section.key or f"section{number}",
            section.title or section.heading,
            [
                (card.key, card.heading)
                for group in section.parts
                if isinstance(group, Group) and group.kind == "cards"
                for card in group.parts
                if isinstance(card, Section) and card.key
            ],
        )
        for number, section in enumerate(listed, 1)
    ]


def _is(kind: type) -> Any:
    return lambda value: isinstance(value, kind)


def _classes(grid: Grid, at: int, *more: str) -> str:
    """The class attribute of a cell."""
    return _class_attribute("num" * bool(grid.numeric[at]), "wide" * bool(grid.columns[at].drawn), *more)


@lru_cache
def _class_attribute(*names: str) -> str:
    shown = " ".join(each for each in names if each)
    return Markup(' class="{}"').format(shown) if shown else ""


@cache
def environment(package: str = "icqf.report") -> Environment:
    """The templates of a package, compiled once; all is escaped, and undefined names are errors."""
    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )


def file_of(templates: Environment, name: str) -> str:
    """A file of the package, verbatim."""
    loader: Any = templates.loader
    text: str = loader.get_source(templates, name)[0]
    return text
