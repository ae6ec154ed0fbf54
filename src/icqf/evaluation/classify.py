"""How well scores predict a label: logistic regression, tuned on validation data, judged on held-out data."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression

Array = NDArray[Any]
STRENGTHS = tuple(10.0**power for power in range(-4, 5))


def classified(scores: Sequence[Array], labels: Sequence[Array]) -> float:
    """Area under the ROC curve in the held-out participants; NaN if they or the training ones are alike.

    The scores are standardised by the training participants' mean and spread; a missing score counts as that
    mean. The strength of the ℓ2 penalty is the one with the largest area in the validation participants.

    Parameters
    ----------
    scores : three arrays (n, k)
        Of the training, validation and held-out participants.
    labels : three arrays (n,)
        1, 0, or NaN for participants whose label is not known, who are left out.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> parts = [rng.normal(size=(n, 2)) for n in (200, 50, 50)]
    >>> classified(parts, [(part[:, 0] > 0).astype(float) for part in parts])
    1.0
    """
    from sklearn.metrics import roc_auc_score  # slow to import, and plots import this package

    center, spread = np.nanmean(scores[0], axis=0), np.nanstd(scores[0], axis=0)
    parts = []
    for values, label in zip(scores, labels, strict=True):
        seen = ~np.isnan(label)
        standard = (values[seen] - center) / np.where(spread > 0, spread, 1)
        parts.append((np.nan_to_num(standard), label[seen]))
    (X, y), (X_validation, y_validation), (X_held_out, y_held_out) = parts
    if not (_both(y) and _both(y_held_out)):
        return float("nan")
    models = [_regression(X, y, C) for C in (STRENGTHS if _both(y_validation) else (1.0,))]
    if len(models) > 1:
        areas = [roc_auc_score(y_validation, model.decision_function(X_validation)) for model in models]
        models = [models[int(np.argmax(areas))]]
    return float(roc_auc_score(y_held_out, models[0].decision_function(X_held_out)))


def _regression(X: Array, y: Array, C: float) -> LogisticRegression:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=C, class_weight="balanced", solver="newton-cholesky", max_iter=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def _both(label: Array) -> bool:
    return len(np.unique(label)) == 2
