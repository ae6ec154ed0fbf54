"""A document as one self-contained HTML file."""

from __future__ import annotations

from base64 import b64encode
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
    templates.filters["cards"] = _cards
    templates.globals["classes"] = _classes
    contents = _contents(page)
    keys = {section: key for key, section in contents.items()}
    templates.filters["anchor"] = lambda section: section.key or keys.get(section, "")
    scripts = ["contents.js"] * bool(contents) + ["script.js"] * page.interactive
    return templates.get_template("document.html").render(
        page=page,
        kind=" ".join(each for each in (page.kind, "with-contents" if contents else "") if each),
        contents=contents,
        style=Markup(file_of(templates, "style.css") + heat_css()),
        script=Markup("\n".join(file_of(templates, name) for name in scripts)),
    )


def _contents(page: Document) -> dict[str, Section]:
    """The navigation of a page: sections with a title or, where none has one, all of a long page."""
    listed = [section for section in page.sections if section.title]
    if not listed and len(page.sections) >= _LONG and not page.kind:
        listed = list(page.sections)
    return {section.key or f"section{number}": section for number, section in enumerate(listed, 1)}


def _cards(section: Section) -> list[Section]:
    """The cards of a section that the navigation lists below it."""
    groups = [part for part in section.parts if isinstance(part, Group) and part.kind == "cards"]
    return [card for group in groups for card in group.parts if isinstance(card, Section) and card.key]


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
    templates = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    templates.policies["json.dumps_kwargs"] = {"allow_nan": False}
    return templates


def file_of(templates: Environment, name: str) -> str:
    """A file of the package, verbatim."""
    loader: Any = templates.loader
    text: str = loader.get_source(templates, name)[0]
    return text
