"""The synthetic questionnaire of the paper, with its truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
HIGHEST = 100.0


@dataclass(frozen=True, eq=False)
class Synthetic:
    """Synthetic answers, and the truth they were made from.

    Attributes
    ----------
    answers : array (n, m)
        Noisy answers between 0 and 100; NaN where missing.
    scores : array (n, k)
        True scores.
    loadings : array (m, k)
        True loadings.
    clean : array (n, m)
        Answers before noise.
    confounds : array (n, 2) or None
        Age (6 to 18) and sex (0 or 1), when asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from icqf.datasets import make_synthetic
    >>> data = make_synthetic(noise=0, random_state=0)
    >>> np.allclose(data.answers, np.clip(data.scores @ data.loadings.T, 0, 100))
    True
    """

    answers: Array
    scores: Array
    loadings: Array
    clean: Array
    confounds: Array | None = None


def make_synthetic(
    n: int = 200,
    m: int = 100,
    k: int = 10,
    *,
    noise: float = 0.3,
    missing: float = 0.0,
    confounded: bool = False,
    random_state: int = 0,
) -> Synthetic:
    """Make the paper's synthetic questionnaire.

    Each factor is alone for about n/k participants and shared with the next for half as many; present
    scores are U(0.5, 1), and one in ten is set to 0. Loadings are U(0, 100), and seven in ten are set to 0.
    A share `noise` of the answers is moved by U(−100, 100), and everything is clipped to 0…100.

    Parameters
    ----------
    n, m, k : int
        Participants, items and factors.
    noise : float
        Share of answers with noise (the paper's δ).
    missing : float
        Share of answers to remove at random.
    confounded : bool
        Whether a third of the items also rise by up to 20 with age and a third by up to 20 with sex.
    random_state : int

    Examples
    --------
    >>> from icqf.datasets import make_synthetic
    >>> data = make_synthetic(noise=0.1, random_state=0)
    >>> data.answers.shape, data.scores.shape, data.loadings.shape
    ((200, 100), (200, 10), (100, 10))
    """
    rng = np.random.default_rng(random_state)
    present = np.zeros((n, k), dtype=bool)
    edges = np.linspace(0, n, k + 1)
    for r in range(k):
        end = edges[r + 1] + (edges[r + 1] - edges[r]) / 2
        present[round(edges[r]) : round(min(end, n)), r] = True
    scores = present * rng.uniform(0.5, 1.0, (n, k)) * (rng.random((n, k)) < 0.9)
    loadings = rng.uniform(0.0, HIGHEST, (m, k)) * (rng.random((m, k)) < 0.3)
    clean = scores @ loadings.T
    moved = rng.random((n, m)) < noise
    shift = rng.uniform(-HIGHEST, HIGHEST, (n, m))
    confounds = None
    if confounded:
        confounds = np.column_stack([rng.uniform(6, 18, n), rng.integers(0, 2, n)])
        by_age = rng.uniform(0, 20, m) * (rng.random(m) < 1 / 3)
        by_sex = rng.uniform(0, 20, m) * (rng.random(m) < 1 / 3)
        clean = clean + np.outer((confounds[:, 0] - 6) / 12, by_age) + np.outer(confounds[:, 1], by_sex)
    clean = np.clip(clean, 0.0, HIGHEST)
    answers = np.clip(clean + moved * shift, 0.0, HIGHEST)
    if missing:
        answers[rng.random((n, m)) < missing] = np.nan
    return Synthetic(answers, scores, loadings, clean, confounds)
