"""How well a fitted model predicts answers that are hidden from it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from icqf.models.icqf import ICQF
from icqf.models.statement import StatedProblem
from icqf.resampling.hidden import HiddenFit, predict_hidden

FOLDS = 10


def hidden_fit(
    model: ICQF,
    stated: StatedProblem,
    *,
    groups: NDArray[Any] | None = None,
    n_jobs: int | None = None,
    random_state: int = 0,
) -> HiddenFit | None:
    """Predict answers that are hidden in ten folds, by fits with the model's number of factors and penalty.

    Parameters
    ----------
    model : fitted ICQF
    stated : StatedProblem
        The data it was fitted to (`ICQF.state`).
    groups : int array (n,), optional
        Participants whose answers are hidden together (`icqf.resampling.units_of`).
    n_jobs : int, optional
        Processes; the result does not depend on it.
    random_state : int
        Seed of the folds.

    Returns
    -------
    HiddenFit or None
        None where participants or items are fewer than the folds.

    Examples
    --------
    >>> import numpy as np
    >>> from icqf import ICQF
    >>> noise = np.random.default_rng(0).integers(0, 4, (100, 20))
    >>> model = ICQF(1, item_range=(0, 3)).fit(noise)
    >>> hidden_fit(model, model.state(noise)).no_better_than_means
    True
    """
    problem = stated.problem
    if min(problem.n, problem.m) < FOLDS:
        return None
    return predict_hidden(
        problem,
        len(model.components_),
        init=model.init if isinstance(model.init, str) else "nndsvd",
        n_splits=FOLDS,
        groups=groups,
        n_jobs=n_jobs,
        engine=model.engine,
        rng=np.random.default_rng([random_state, 1]),
    )
