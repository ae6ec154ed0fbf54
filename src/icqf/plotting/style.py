"""What all plots share: colours that colour-blind readers can tell apart, and plain Axes.

Neutral colours come from matplotlib's settings (`text.color`, `xtick.color`, `grid.color`), so that a caller
who sets those gets plots that suit a dark page as well as a light one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.figure import Figure

from icqf.data.questionnaire import Item
from icqf.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours without the yellow and the black, which vanish on white or on dark paper.
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
MARKERS = ("o", "s", "^", "D", "v", "P")
FACTOR, CONFOUND = SERIES[0], SERIES[1]
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


def ink() -> str:
    """Colour of text and of what matters most."""
    return str(mpl.rcParams["text.color"])


def muted() -> str:
    """Colour of what is said in passing."""
    return str(mpl.rcParams["xtick.color"])


def faint() -> str:
    """Colour of lines that only guide the eye."""
    return str(mpl.rcParams["grid.color"])


def axes_or_new(ax: Axes | None, *, size: tuple[float, float] = (6.4, 4.0)) -> Axes:
    """The Axes given, or those of a new figure that no window shows."""
    return Figure(figsize=size, layout="constrained").add_subplot() if ax is None else ax


def bare(ax: Axes, *, keep: Sequence[str] = ("left", "bottom")) -> None:
    """Take away the sides of the frame that carry no scale."""
    for side, spine in ax.spines.items():
        spine.set_visible(side in keep)


def guides(ax: Axes, axis: str = "y") -> None:
    """Faint lines behind the data."""
    ax.grid(axis=axis, color=faint(), linewidth=0.6, alpha=0.6)  # type: ignore[arg-type]
    ax.set_axisbelow(True)


def readable_on(colour: Any) -> str:
    """Black or white, whichever is read more easily on a colour.

    Examples
    --------
    >>> readable_on("#0b3f7e"), readable_on("#f7fafd")
    ('white', 'black')
    """
    from matplotlib.colors import to_rgb

    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "white" if 1.05 / (luminance + 0.05) >= (luminance + 0.05) / 0.05 else "black"


def palette(n: int) -> list[Any]:
    """n colours for lines of a series that has an order (such as β), light to dark but never pale."""
    if n <= len(SERIES):
        return list(SERIES[:n])
    return [mpl.colormaps["cividis"](0.9 * at / (n - 1)) for at in range(n)]


def map_for(low: float) -> Colormap:
    """The blue map for loadings from 0 up, the two-sided one when some are negative."""
    return BOTH_WAYS if low < 0 else BLUES


def factor_names(
    keys: Iterable[Any], names: Sequence[str] | Mapping[str, str] | None, *, short: bool = False
) -> list[str]:
    """Names to show for factors: those given, and "Factor 1" for "factor1" where none is.

    Parameters
    ----------
    keys : iterable
        The factors' own names, such as ``model.get_feature_names_out()``.
    names : sequence, mapping or None
        One name a factor, or names by the factors' own names.
    short : bool
        Whether to write "F1" instead of "Factor 1".

    Examples
    --------
    >>> factor_names(["factor1", "factor2"], {"factor2": "Temper"})
    ['Factor 1', 'Temper']
    """
    own = [str(key) for key in keys]
    head = "F" if short else "Factor "
    shown = [head + key[6:] if key.startswith("factor") and key[6:].isdigit() else key for key in own]
    if names is None:
        return shown
    if isinstance(names, Mapping):
        strange = [str(key) for key in names if str(key) not in own]
        if strange:
            raise InputError(f"names has {strange[0]!r}, which is no factor.{did_you_mean(strange[0], own)}")
        return [str(names.get(key) or text) for key, text in zip(own, shown, strict=True)]
    if isinstance(names, str) or len(names) != len(own):
        raise InputError(f"names must hold one name for each of the {len(own)} factors.")
    return [str(name) if name else text for name, text in zip(names, shown, strict=True)]


def shortened(text: str, most: int) -> str:
    """A text cut at a word's end, with an ellipsis where something is missing.

    Examples
    --------
    >>> shortened("Lies awake thinking about tomorrow", 20)
    'Lies awake thinking…'
    """
    if len(text) <= most:
        return text
    cut = text[: most - 1]
    return (cut[: cut.rfind(" ")] if cut.rfind(" ") > most // 2 else cut).rstrip(" ,;:") + "…"


def item_label(name: str, item: Item | None) -> str:
    """What an item is called in a plot: its wording, and whether its answers were turned round.

    Examples
    --------
    >>> item_label("q1", Item("q1", wording="Makes friends easily", reverse=True))
    'Makes friends easily (reversed)'
    >>> item_label("q2", None)
    'q2'
    """
    if item is None:
        return name
    return (item.wording or name) + (" (reversed)" if item.reverse else "")
