"""A document as one HTML file that loads nothing: style, script and pictures are inside."""

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
    found = environment()
    for kind in _KINDS:
        found.tests[kind.__name__.lower()] = _is(kind)
    found.tests["inline"] = lambda picture: picture.inline
    found.filters["png"] = lambda picture: Markup(b64encode(picture.png).decode())
    found.filters["extent"] = lambda share: f"{100 * min(share, 1):.1f}"
    found.globals["classes"] = _classes
    return found.get_template("document.html").render(
        page=page,
        style=Markup(file_of(found, "style.css") + heat_css()),
        script=Markup(file_of(found, "script.js")) if page.interactive else "",
    )


def _is(kind: type) -> Any:
    return lambda value: isinstance(value, kind)


def _classes(grid: Grid, at: int, *more: str) -> str:
    """The class attribute of a cell: numbers to the right, drawings wide, and what else it is."""
    own = ("num" if grid.numeric[at] else "", "wide" if grid.columns[at].drawn else "", *more)
    shown = " ".join(each for each in own if each)
    return Markup(' class="{}"').format(shown) if shown else ""


@cache
def environment(package: str = "icqf.report") -> Environment:
    """Return what renders a package's templates: everything is escaped, and nothing may be undefined.

    There is one for each package, so that a process compiles a template once.
    """
    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )


def file_of(found: Environment, name: str) -> str:
    """Return a file of the package as it is, without the template language."""
    loader: Any = found.loader
    text: str = loader.get_source(found, name)[0]
    return text
