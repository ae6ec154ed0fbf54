"""A document as one self-contained HTML file."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from icqf.report.blocks import Bullets, Details, Grid, Group, Histogram, Picture, Row, Section
from icqf.report.svg import heat_css

if TYPE_CHECKING:
    from icqf.report.document import Document

_KINDS = (Bullets, Details, Grid, Group, Histogram, Picture, Row, Section, Markup)


def render(page: Document) -> str:
    """The page as HTML; whatever is not Markup is escaped."""
    templates = environment()
    for kind in _KINDS:
        templates.tests[kind.__name__.lower()] = _is(kind)
    templates.tests["inline"] = lambda picture: picture.inline
    templates.filters["png"] = lambda picture: Markup(b64encode(picture.png).decode())
    templates.filters["extent"] = lambda share: f"{100 * min(share, 1):.1f}"
    templates.globals["classes"] = _classes
    return templates.get_template("document.html").render(
        page=page,
        style=Markup(file_of(templates, "style.css") + heat_css()),
        script=Markup(file_of(templates, "script.js")) if page.interactive else "",
    )


def _is(kind: type) -> Any:
    return lambda value: isinstance(value, kind)


def _classes(grid: Grid, at: int, *more: str) -> str:
    """The class attribute of a cell."""
    own = ("num" if grid.numeric[at] else "", "wide" if grid.columns[at].drawn else "", *more)
    shown = " ".join(each for each in own if each)
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
