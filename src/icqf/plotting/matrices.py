"""The matrices of the model side by side: scores, loadings and answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from icqf.errors import InputError
from icqf.plotting.style import BLUES, bare

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def triptych(
    scores: Any,
    loadings: Any,
    answers: Any,
    *,
    titles: Sequence[str] = ("Scores W", "Loadings Q", "Answers M"),
    axes: Sequence[Axes] | None = None,
) -> Sequence[Axes]:
    """Draw the three matrices of the model: scores, loadings and answers.

    Parameters
    ----------
    scores : array (n, k)
    loadings : array (m, k)
    answers : array (n, m)
        Missing answers stay white.
    titles : sequence of three str
    axes : sequence of three Axes, optional
        Where to draw; a new figure's by default.

    Returns
    -------
    sequence of three Axes

    Examples
    --------
    >>> from icqf.datasets import make_synthetic
    >>> from icqf.plotting import triptych
    >>> data = make_synthetic()
    >>> [ax.get_title() for ax in triptych(data.scores, data.loadings, data.answers)]
    ['Scores W', 'Loadings Q', 'Answers M']
    """
    tables = [np.asarray(table, dtype=float) for table in (scores, loadings, answers)]
    (n, k), (m, k_again), shape = (table.shape for table in tables)
    if k != k_again or shape != (n, m):
        raise InputError(
            f"scores {tables[0].shape}, loadings {tables[1].shape} and answers {shape} do not fit together: "
            "they must be (n, k), (m, k) and (n, m)."
        )
    if axes is None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9.6, 4.2), layout="constrained")
        axes = list(figure.subplots(1, 3, width_ratios=(1, 1, 2.2)))
    if len(axes) != 3:
        raise InputError(f"triptych draws into three Axes, not {len(axes)}.")
    words = (("factors", "participants"), ("factors", "items"), ("items", "participants"))
    for ax, table, title, (across, down) in zip(axes, tables, titles, words, strict=True):
        image = ax.imshow(
            table, aspect="auto", interpolation="none", cmap=BLUES, vmin=min(0.0, np.nanmin(table))
        )
        ax.set_title(title)
        ax.set_xlabel(across)
        ax.set_ylabel(down)
        if across == "factors":
            step = max(1, -(-k // 12))
            ax.set_xticks(np.arange(0, k, step), [str(r + 1) for r in range(0, k, step)])
        ax.tick_params(length=0, labelsize=8)
        bare(ax, keep=())
        if ax.figure is not None:
            bar = ax.figure.colorbar(image, ax=ax, location="bottom", shrink=0.8, aspect=18, pad=0.03)
            bar.outline.set_visible(False)
            bar.ax.tick_params(labelsize=7)
    return axes
