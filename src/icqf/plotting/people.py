"""Scores of the participants, and which answers are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap, Normalize

from icqf.plotting.style import (
    BOTH_WAYS,
    FACTOR,
    axes_or_new,
    bare,
    factor_names,
    faint,
    guides,
    ink,
    muted,
    readable_on,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Names = Sequence[str] | Mapping[str, str] | None


def _scores(scores: Any) -> pd.DataFrame:
    if isinstance(scores, pd.DataFrame):
        return scores.dropna()
    array = np.asarray(scores, dtype=float)
    columns = [f"factor{r + 1}" for r in range(array.shape[1])]
    return pd.DataFrame(array, columns=columns).dropna()


def score_distributions(
    scores: Any, *, names: Names = None, top: float = 1.0, bins: int = 40, ax: Axes | None = None
) -> Axes:
    """Draw how the scores of each factor are spread, a row a factor.

    The share of people at exactly 0 is written at the left: a spike there would flatten all else.

    Parameters
    ----------
    scores : DataFrame or array (n, k)
    names : sequence or mapping, optional
        Names of the factors.
    top : float
        Highest possible score.
    bins : int
    ax : Axes, optional

    Examples
    --------
    >>> import numpy as np
    >>> from icqf.plotting import score_distributions
    >>> ax = score_distributions(np.random.default_rng(0).random((100, 3)))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['Factor 1', 'Factor 2', 'Factor 3']
    """
    table = _scores(scores)
    k = table.shape[1]
    ax = axes_or_new(ax, size=(6.4, 0.9 + 0.52 * k))
    edges = np.linspace(0, max(top, float(table.to_numpy().max(initial=top))), bins + 1)
    for row, column in enumerate(table.columns):
        values = table[column].to_numpy()
        above = values[values > 0]
        heights = np.histogram(above, edges)[0].astype(float)
        heights *= 0.82 / max(heights.max(initial=0.0), 1.0)
        base = row + 0.42
        ax.fill_between(
            np.repeat(edges, 2)[1:-1],
            base,
            base - np.repeat(heights, 2),
            color=FACTOR,
            alpha=0.75,
            linewidth=0,
        )
        ax.axhline(base, color=faint(), linewidth=0.8, zorder=0)
        if len(above):
            middle = float(np.median(values))
            ax.plot([middle, middle], [base, base - 0.82], color=ink(), linewidth=1.4)
        ax.annotate(
            f"{np.mean(values <= 0):.0%} at 0", (1.01, base - 0.3), xycoords=("axes fraction", "data"),
            fontsize=8, color=muted(), va="center", annotation_clip=False,
        )  # fmt: skip
    ax.set_yticks(np.arange(k), factor_names(table.columns, names))
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(k - 0.45, -0.6)
    ax.set_xlim(0, edges[-1])
    ax.set_xlabel("score (the line is the median person)")
    bare(ax, keep=("bottom",))
    return ax


def score_correlations(scores: Any, *, names: Names = None, ax: Axes | None = None) -> Axes:
    """Draw the Pearson correlations between the participants' scores.

    They describe these scores in this sample; they are not parameters of the model, as the factor
    correlations of a factor analysis are.

    Parameters
    ----------
    scores : DataFrame or array (n, k)
    names : sequence or mapping, optional
    ax : Axes, optional

    Examples
    --------
    >>> import numpy as np
    >>> from icqf.plotting import score_correlations
    >>> score_correlations(np.random.default_rng(0).random((100, 3))).get_title(loc="left")
    'Correlations between scores'
    """
    table = _scores(scores)
    k = table.shape[1]
    ax = axes_or_new(ax, size=(1.9 + 0.5 * k, 1.5 + 0.46 * k))
    values = correlation_matrix(table.to_numpy())
    shown = np.where(np.tri(k, dtype=bool), values, np.nan)
    mesh = ax.pcolormesh(shown, cmap=BOTH_WAYS, norm=Normalize(-1, 1), edgecolors="face", linewidth=0.2)
    for i in range(k):
        for j in range(i + 1):
            if np.isfinite(values[i, j]):
                text = "1" if i == j else f"{values[i, j]:.2f}".replace("0.", ".", 1)
                colour = readable_on(mesh.cmap(mesh.norm(values[i, j])))
                ax.text(j + 0.5, i + 0.5, text, ha="center", va="center", fontsize=8, color=colour)
    labels = factor_names(table.columns, names)
    ax.set_xticks(np.arange(k) + 0.5, labels, rotation=45, ha="right", rotation_mode="anchor")
    ax.set_yticks(np.arange(k) + 0.5, labels)
    ax.tick_params(length=0)
    ax.set_ylim(k, 0)
    ax.set_aspect("equal")
    bare(ax, keep=())
    ax.set_title("Correlations between scores", loc="left")
    return ax


def correlation_matrix(values: np.ndarray) -> np.ndarray:
    """Pearson correlations between columns (k, k); NaN where a column does not vary.

    Examples
    --------
    >>> correlation_matrix(np.array([[0.0, 1, 5], [1, 2, 5], [2, 3, 5]]))[0].round(1).tolist()
    [1.0, 1.0, nan]
    """
    centred = values - values.mean(axis=0)
    length = np.linalg.norm(centred, axis=0)
    sizes = np.outer(length, length)
    result = np.full(sizes.shape, np.nan)
    np.divide(centred.T @ centred, sizes, out=result, where=sizes > 1e-24)
    np.fill_diagonal(result, np.where(length > 0, 1.0, np.nan))
    return np.clip(result, -1, 1)


def missingness_map(answers: Any, *, items: Any = None, ax: Axes | None = None) -> Axes:
    """Draw which answers are missing, a row a participant, those with most missing at the top.

    Parameters
    ----------
    answers : DataFrame or array (n, m)
        NaN is missing.
    items : sequence of Item, optional
        When given, items stand in the order of their subscales.
    ax : Axes, optional

    Examples
    --------
    >>> import numpy as np
    >>> from icqf.plotting import missingness_map
    >>> answers = np.ones((50, 10))
    >>> answers[:5, 2] = np.nan
    >>> missingness_map(answers).get_title(loc="left")
    '1.0% of the answers are missing'
    """
    table = pd.DataFrame(answers)
    missing = table.isna().to_numpy()
    groups: list[tuple[str, int, int]] = []
    if items is not None:
        from icqf.plotting.loadings import grouped_order

        names = [str(name) for name in table.columns]
        order, groups = grouped_order(names, items, np.zeros((len(names), 1)))
        missing = missing[:, order]
    by_person = np.argsort(-missing.sum(axis=1), kind="stable")
    ax = axes_or_new(ax)
    image = missing[by_person].astype(float)
    colours = ListedColormap(["#f0f2f5", FACTOR])
    ax.imshow(image, aspect="auto", interpolation="none", cmap=colours, vmin=0, vmax=1)
    for _, first, last in groups:
        if first:
            ax.axvline(first - 0.5, color=muted(), linewidth=0.6)
        ax.annotate(
            str(groups.index((_, first, last)) + 1), ((first + last - 1) / 2, 0), (0, 3), fontsize=7,
            textcoords="offset points", ha="center", va="bottom", annotation_clip=False, color=ink(),
        )  # fmt: skip
    ax.set_xticks([])
    ax.set_xlabel(
        "items by subscale: " + ", ".join(f"{at} {name}" for at, (name, *_) in enumerate(groups, 1))
        if groups
        else "items",
        wrap=True,
        fontsize=8 if groups else None,
    )
    ax.set_ylabel("participants, most missing first")
    ax.set_title(f"{missing.mean():.1%} of the answers are missing", loc="left", pad=14 if groups else None)
    bare(ax, keep=())
    return ax


def shares(values: Sequence[float], labels: Sequence[str], *, label: str, ax: Axes | None = None) -> Axes:
    """Draw shares of people as bars, with the numbers on them.

    Examples
    --------
    >>> shares([0.25, 0.75], ["none", "some"], label="people").get_ylabel()
    'people'
    """
    ax = axes_or_new(ax)
    x = np.arange(len(values))
    ax.bar(x, values, width=0.72, color=FACTOR)
    for at, value in zip(x, values, strict=True):
        text = "0" if value == 0 else f"{value:.0%}" if value >= 0.005 else "<1%"
        ax.annotate(text, (at, value), (0, 3), textcoords="offset points", ha="center", fontsize=8)
    ax.set_xticks(x, labels)
    ax.tick_params(axis="x", length=0)
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    ax.set_ylabel(label)
    ax.set_ylim(0, max(0.05, 1.12 * max(values, default=0.0)))
    bare(ax)
    guides(ax)
    return ax
