"""Simulated visits of a study with loadings that change with age, and their truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array = NDArray[Any]
TOP = 4


@dataclass(frozen=True, eq=False)
class Longitudinal:
    """Simulated visits, and the truth they were made from.

    Attributes
    ----------
    visits : DataFrame
        Columns ``participant``, ``age`` (0, 1, …) and the items, answered 0 to 4; one row per visit.
    scores : array (n, k)
    loadings : array (items, k, bins)
        True loadings at each age.
    changing : bool array (items, k)
        Which of them change.

    Examples
    --------
    >>> from icqf.datasets import make_longitudinal
    >>> data = make_longitudinal(n=50, n_items=6, n_bins=4, k=2, random_state=0)
    >>> data.loadings.shape
    (6, 2, 4)
    """

    visits: pd.DataFrame
    scores: Array
    loadings: Array
    changing: Array


def make_longitudinal(
    n: int = 400,
    n_items: int = 24,
    n_bins: int = 6,
    k: int = 3,
    *,
    seen: float = 0.5,
    drift: float = 0.5,
    noise: float = 0.7,
    unanswered: float = 0.0,
    random_state: int = 0,
) -> Longitudinal:
    """Make visits of participants with one score vector each, and loadings that slide from one age to the
    next.

    A score is 0 for four in ten and U(0, 1) for the others. An item belongs to one factor, and to a second
    one with a chance of one in five; its loading is U(1.6, 4). A share `drift` of the items slides evenly
    over the ages to loadings that are drawn anew (of the same or of another factor). Answers are rounded to
    0…4 after normal noise.

    Parameters
    ----------
    n, n_items, n_bins, k : int
        Participants, items, ages and factors.
    seen : float
        Share of visits that take place; everybody has at least one.
    drift : float
        Share of items that change.
    noise : float
        Standard deviation of the noise.
    unanswered : float
        Share of answers left open at a visit.
    random_state : int

    Examples
    --------
    >>> from icqf.datasets import make_longitudinal
    >>> make_longitudinal(n=50, n_items=6, n_bins=4, k=2, random_state=0).visits.columns[:3].tolist()
    ['participant', 'age', 'q1']
    """
    rng = np.random.default_rng(random_state)
    scores = rng.random((n, k)) * (rng.random((n, k)) < 0.6)
    early, late = _loadings(n_items, k, rng), _loadings(n_items, k, rng)
    moves = rng.permutation(n_items) < round(drift * n_items)
    late = np.where(moves[:, None], late, early)
    share = np.linspace(0, 1, n_bins)
    loadings = early[:, :, None] * (1 - share) + late[:, :, None] * share
    came = rng.random((n, n_bins)) < seen
    came[~came.any(axis=1), 0] = True
    who, when = np.nonzero(came)
    clean = np.einsum("vk,vkj->vj", scores[who], loadings.transpose(2, 1, 0)[when])
    answers = np.clip(np.rint(clean + rng.normal(0, noise, clean.shape)), 0, TOP) + 0.0  # no -0
    answers[rng.random(answers.shape) < unanswered] = np.nan
    width = len(str(n_items))
    table = pd.DataFrame(answers, columns=[f"q{j + 1:0{width}d}" for j in range(n_items)])
    table.insert(0, "participant", [f"P{i + 1:04d}" for i in who])
    table.insert(1, "age", when)
    return Longitudinal(table, scores, loadings, early != late)


def _loadings(n_items: int, k: int, rng: np.random.Generator) -> Array:
    belongs = np.arange(n_items)[:, None] % k == np.arange(k)
    belongs |= rng.random((n_items, k)) < 0.2 if k > 1 else False
    belongs = belongs[rng.permutation(n_items)]
    return rng.uniform(1.6, TOP, (n_items, k)) * belongs
