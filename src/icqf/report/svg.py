"""Drawings of a page: inline SVG that follows the page's colours, and shades of cells."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape
from matplotlib.colors import Colormap, LinearSegmentedColormap, to_hex
from matplotlib.figure import Figure

from icqf.plotting.style import BLUES, ORANGES, default_settings, laid_out, readable_on
from icqf.report.blocks import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours that no palette contains, and the CSS variables that replace them.
_INK, _MUTED, _FAINT = "#010203", "#020304", "#030405"
_VARIABLES = {_INK: "var(--ink)", _MUTED: "var(--muted)", _FAINT: "var(--rule)"}
_SETTINGS: dict[str, Any] = {
    "text.parse_math": False,  # a dollar sign does not begin a formula
    "svg.fonttype": "none",
    "svg.hashsalt": "icqf",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _MUTED,
    "xtick.color": _MUTED,
    "ytick.color": _MUTED,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "grid.color": _FAINT,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}
LEVELS = 10
_DARK_BLUES = LinearSegmentedColormap.from_list("", ["#16202b", "#17395c", "#1d5b96", "#3f8fd2", "#a9d6ff"])
_DARK_ORANGES = LinearSegmentedColormap.from_list("", ["#231b14", "#533012", "#8a4a10", "#cf7a2a", "#ffcf9c"])


def level(share: float) -> int:
    """Shade of a share between 0 and 1: 0 for next to nothing, then 1 to 10.

    Examples
    --------
    >>> level(0.0), level(0.05), level(0.62), level(1.0)
    (0, 1, 7, 10)
    """
    return 0 if not share >= 0.02 else min(LEVELS, 1 + int(share * LEVELS))


def heat_css() -> str:
    """CSS of the shades of cells, blue (q) and orange (o), with readable text on each."""
    themes = (("", BLUES, ORANGES), ("dark", _DARK_BLUES, _DARK_ORANGES))
    sheets = []
    for theme, blues, oranges in themes:
        within = ":root:not(.light) " if theme else ""  # the page is light while a figure is saved
        rules = "".join(_shades(f"{within}.q", blues)) + "".join(_shades(f"{within}.o", oranges))
        sheets.append(f"@media screen and (prefers-color-scheme:dark){{{rules}}}" if theme else rules)
    return "\n".join(sheets)


def _shades(selector: str, colours: Colormap) -> list[str]:
    rules = []
    for at in range(1, LEVELS + 1):
        colour = to_hex(colours(at / LEVELS))
        text = "#fff" if readable_on(colour) == "white" else "#000"
        rules.append(f"{selector}{at}{{background:{colour};color:{text};fill:{colour}}}")
    return rules


def _element(name: str, draw: Callable[[Axes], Axes], title: str, size: tuple[float, float]) -> Markup:
    """One figure as an SVG element without a fixed size; its ids begin with `name`."""
    with default_settings(_SETTINGS):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.add_subplot())
        buffer = io.StringIO()
        empty = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        laid_out(figure).savefig(buffer, format="svg", metadata=empty, transparent=True)
    text = buffer.getvalue()
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.S)
    for stand_in, variable in _VARIABLES.items():
        text = text.replace(stand_in, variable)
    # Numbers instead of matplotlib's hashes, which change with the last digit of a value.
    ids = dict.fromkeys(re.findall(r'\bid="([^"]*)"', text))
    numbered = {old: f"{name}-{number}" for number, old in enumerate(ids)}
    text = re.sub(r'(\bid="|url\(#|href="#)([^")]*)', lambda match: match[1] + numbered[match[2]], text)
    text = re.sub(r"(font:[^;\"]*?\d+px) [^;\"]*", r"\1 var(--sans)", text)
    head, body = text.split(">", 1)
    box = re.search(r'viewBox="([^"]*)"', head)
    width = round(size[0] * 96)
    opening = (
        f'<svg class="plot" viewBox="{box[1] if box else ""}" style="max-width:{width}px" role="img" '
        f'aria-labelledby="{name}-title" xmlns="http://www.w3.org/2000/svg" '
        'xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    body = re.sub(r"\n\s*", "\n", body).replace("</svg>", "")
    return Markup(f'{opening}{body}<title id="{name}-title">{escape(title)}</title></svg>')


def strength(value: float | None) -> str:
    """CSS class of a correlation: shade by its square, blue if positive, orange if negative."""
    if value is None or math.isnan(value):
        return "q0"
    return f"{'q' if value >= 0 else 'o'}{level(value**2)}"


def drawn(
    name: str,
    draw: Callable[[Axes], Axes],
    title: str,
    caption: str,
    *,
    size: tuple[float, float] = (4.7, 3.1),
) -> Picture:
    """An inline picture of the page; `title` is its name for screen readers."""
    return Picture(name, lambda: _element(name, draw, title, size), caption, title)
