"""ℓ1-regularised non-negative matrix factorization: ICQF's solver with the bounds off."""

from __future__ import annotations

from typing import Any, Literal

from icqf.engines.base import Callback
from icqf.models.icqf import ICQF


class L1NMF(ICQF):
    """Non-negative matrix factorization with ℓ1 penalties, missing answers left out.

    The paper's main baseline: the same objective and solver as `ICQF`, without bounds on scores,
    loadings and reconstructed answers, without confounds and without an intercept. On complete data
    the objective is that of scikit-learn's NMF with ``alpha_W = beta / m``, ``alpha_H = beta * b / m``
    (b the answers' range) and ``l1_ratio = 1``.

    Parameters
    ----------
    n_components, beta, item_range, item_weight, n_init, engine, tol, max_iter, init, dtype, random_state,
    callback
        As for `ICQF`. The range only sets the zero point and scales the penalty and, where ranges differ, the
        items.

    Examples
    --------
    >>> from icqf.models import L1NMF
    >>> from icqf.datasets import make_synthetic
    >>> answers = make_synthetic(n=100, m=40, k=4, noise=0.1, random_state=0).answers
    >>> L1NMF(4, item_range=(0, 100)).fit(answers).loadings_.shape
    (40, 4)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        beta: float = 0.1,
        item_range: Any = None,
        item_weight: Any = "range",
        n_init: int | Literal["auto"] = "auto",
        engine: Any = "local",
        tol: float = 1e-3,
        max_iter: int = 500,
        init: Literal["nndsvd", "rotated", "random"] | tuple[Any, Any] = "nndsvd",
        dtype: Any = "auto",
        random_state: Any = 0,
        callback: Callback | None = None,
    ) -> None:
        self.n_components = n_components
        self.beta = beta
        self.item_range = item_range
        self.item_weight = item_weight
        self.n_init = n_init
        self.engine = engine
        self.tol = tol
        self.max_iter = max_iter
        self.init = init
        self.dtype = dtype
        self.random_state = random_state
        self.callback = callback

    confound_ranges = None
    intercept = False
    penalty = "l1"
    score_max = None
    loading_max = None
    reconstruction_max = None
    solver = "fast"
    inner = "cd"
    rho = 3.0
    missing_confounds = "error"
    smallest_category = 1
