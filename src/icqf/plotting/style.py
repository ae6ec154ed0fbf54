"""What all plots share: colour-blind safe colours and plain Axes; neutral ones are matplotlib's settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize, to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatterSciNotation, MaxNLocator

from icqf.errors import InputError, did_you_mean, shortened

_WIDE_CELL = 0.28  # inches, above which every correlation is written
BESIDE: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}  # of a legend: not over data
_RAISED = str.maketrans("-−0123456789", "⁻⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
Names = Sequence[str] | Mapping[str, str] | None

# Okabe and Ito's colours without yellow and black, which vanish on white or dark backgrounds.
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
MARKERS = ("o", "s", "^", "D", "v", "P")
FACTOR = SERIES[0]
CHOSEN = "#D55E00"

BLUES = LinearSegmentedColormap.from_list(
    "icqf_blue", ["#f7fafd", "#cfe1f2", "#93c0e0", "#4f97cb", "#1f6cb0", "#0b3f7e"]
)
ORANGES = LinearSegmentedColormap.from_list(
    "icqf_orange", ["#fdf9f4", "#fbdcb8", "#f3b27a", "#dd8238", "#b5560f", "#7a3403"]
)
BOTH_WAYS = LinearSegmentedColormap.from_list(
    "icqf_both", ["#8a3b04", "#d07a2c", "#f3c595", "#f8f8f8", "#a3c9e6", "#4f97cb", "#0b3f7e"]
)


@contextmanager
def default_settings(changes: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Draw and save with matplotlib's defaults and these changes, whatever a ``matplotlibrc`` contains."""
    with mpl.rc_context():
        settings: Any = mpl.rcParams
        dict.update(settings, _matplotlibs_own())  # valid, and to check them takes milliseconds
        mpl.rcParams.update(changes or {})  # type: ignore[arg-type]
        yield


@cache
def _matplotlibs_own() -> dict[str, Any]:
    """Matplotlib's defaults, without its choice of a backend, which is not of style."""
    with mpl.rc_context():
        mpl.rcdefaults()
        return {name: value for name, value in dict.items(mpl.rcParams) if not name.startswith("backend")}


def laid_out(figure: Figure) -> Figure:
    """The figure with its layout computed and fixed, so that matplotlib does not draw it twice."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine(None)
    return figure


class PowersOfTen(LogFormatterSciNotation):
    """Labels of a logarithmic axis as plain text; matplotlib's formulas are slow."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        text = super().__call__(x, pos)
        match = re.search(r"(?:([\d.]+)\\times)?10\^\{(.*?)\}", text)
        if match is None:
            return text
        factor = f"{match[1]}×" if match[1] else ""
        return f"{factor}10{match[2].translate(_RAISED)}"


def ink() -> str:
    """Colour of text and main lines."""
    return str(mpl.rcParams["text.color"])


def muted() -> str:
    """Colour of secondary text and lines."""
    return str(mpl.rcParams["xtick.color"])


def faint() -> str:
    """Colour of lines that only guide the eye."""
    return str(mpl.rcParams["grid.color"])


def axes_or_new(ax: Axes | None, *, size: tuple[float, float] = (6.4, 4.0)) -> Axes:
    """The Axes given, or those of a new figure."""
    return Figure(figsize=size, layout="constrained").add_subplot() if ax is None else ax


def require_columns(table: Any, columns: Sequence[str], what: str, such_as: str) -> None:
    """Refuse anything but a table with these columns."""
    if not isinstance(table, pd.DataFrame):
        raise InputError(f"{what} must be a table, such as {such_as}, not {type(table).__name__}.")
    absent = [name for name in columns if name not in table.columns]
    if absent:
        raise InputError(f"{what} has no column {absent[0]!r}; give a table such as {such_as}.")


def hide_frame(ax: Axes, *, keep: Sequence[str] = ("left", "bottom")) -> None:
    """Hide the frame except for some sides."""
    for side, spine in ax.spines.items():
        spine.set_visible(side in keep)


def guides(ax: Axes, axis: str = "y") -> None:
    """Faint lines behind the data."""
    ax.grid(axis=axis, color=faint(), linewidth=0.6, alpha=0.6)  # type: ignore[arg-type]
    ax.set_axisbelow(True)


def labelled(
    ax: Axes, across: str, up: str, *, whole: bool = False, legend: dict[str, Any] | None = None
) -> Axes:
    """The Axes with labels, faint guides and a small legend; `whole` for whole numbers across."""
    if whole:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel(across)
    ax.set_ylabel(up)
    hide_frame(ax)
    guides(ax)
    if legend is not None:
        ax.legend(**{"frameon": False, "fontsize": 8, **BESIDE, **legend})
    return ax


def readable_on(colour: Any) -> str:
    """Black or white, whichever is read more easily on a colour."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "white" if 1.05 / (luminance + 0.05) >= (luminance + 0.05) / 0.05 else "black"


def palette(n: int) -> list[Any]:
    """n colours for the lines of an ordered series, such as β."""
    if n <= len(SERIES):
        return list(SERIES[:n])
    return [mpl.colormaps["cividis"](0.9 * at / (n - 1)) for at in range(n)]


def colormap_for(low: float) -> Colormap:
    """The blue map for loadings from 0 up, the diverging map if some are negative."""
    return BOTH_WAYS if low < 0 else BLUES


def factor_names(keys: Iterable[Any], names: Names) -> list[str]:
    """Names to show for factors: those given, or else "Factor 1" for "factor1"."""
    own = [str(key) for key in keys]
    shown = ["Factor " + key[6:] if key.startswith("factor") and key[6:].isdigit() else key for key in own]
    if names is None:
        return shown
    if isinstance(names, Mapping):
        strange = [str(key) for key in names if str(key) not in own]
        if strange:
            raise InputError(
                f"names has {strange[0]!r}, which is not a factor.{did_you_mean(strange[0], own)}"
            )
        return [str(names.get(key) or text) for key, text in zip(own, shown, strict=True)]
    if isinstance(names, str) or len(names) != len(own):
        raise InputError(f"names must hold one name for each of the {len(own)} factors.")
    return [str(name) if name else text for name, text in zip(names, shown, strict=True)]


def factor_table(values: Any) -> pd.DataFrame:
    """A table with one column per factor; rows and columns of an array are numbered."""
    if isinstance(values, pd.DataFrame):
        return values
    array = np.asarray(values, dtype=float)
    return pd.DataFrame(
        array,
        index=[f"item{j + 1}" for j in range(len(array))],
        columns=[f"factor{r + 1}" for r in range(array.shape[1])],
    )


def item_label(name: str, wording: str = "", reverse: bool = False, *, most: int | None = None) -> str:
    """Wording of an item (or its name) and whether it was reversed, in about `most` characters."""
    end = " (reversed)" if reverse else ""
    text = wording or name
    return (text if most is None else shortened(text, max(most - len(end), 8))) + end


def correlation_cells(
    ax: Axes, values: np.ndarray, rows: Sequence[str], columns: Sequence[str], *, weak: float = 0.0
) -> None:
    """Draw correlations as coloured squares with numbers (not those below `weak` if squares are narrow)."""
    mesh = ax.pcolormesh(values, cmap=BOTH_WAYS, norm=Normalize(-1, 1), edgecolors="face", linewidth=0.2)
    figure = ax.get_figure(root=True)
    wide = 6.4 if figure is None else figure.get_figwidth() * ax.get_position().width
    cell = wide / max(len(columns), 1)  # inches; a number is two and a half times as wide as its size
    size = min(8.0, 72 * cell / 2.9)
    written = np.isfinite(values) & ((np.abs(values) >= weak) | (cell > _WIDE_CELL))
    for i, j in np.argwhere(written):
        colour = readable_on(mesh.cmap(mesh.norm(values[i, j])))
        text = "1" if values[i, j] == 1 else f"{values[i, j]:.2f}".replace("0.", ".", 1)
        text = ".00" if text == "-.00" else text.replace("-", "−")
        ax.text(j + 0.5, i + 0.5, text, ha="center", va="center", fontsize=size, color=colour)
    ax.set_xticks(np.arange(len(columns)) + 0.5, columns)
    if max(map(len, columns), default=0) * 0.07 > cell:
        ax.tick_params(axis="x", labelrotation=45)
        for label in ax.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    ax.set_yticks(np.arange(len(rows)) + 0.5, rows)
    ax.tick_params(length=0)
    ax.set_ylim(len(rows), 0)
    ax.set_aspect("equal")
    hide_frame(ax, keep=())
