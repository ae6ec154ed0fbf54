"""What the factors of a fit have in common: scores, a model with one factor, and ω hierarchical."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from icqf.baselines.factor_analysis import FactorAnalysis, SchmidLeiman, schmid_leiman
from icqf.data.questionnaire import Questionnaire
from icqf.errors import InputError
from icqf.models.icqf import ICQF
from icqf.models.selection_rules import best_by_k
from icqf.models.statement import StatedProblem
from icqf.resampling.matching import correlations

Array = NDArray[Any]
_MOST_ITEMS = 2000  # of a factor analysis, which needs all pairs
ONE = "The model has one factor, so there is nothing that several factors could have in common."


@dataclass(frozen=True, eq=False)
class GeneralFactor:
    """What the factors of a model have in common.

    Attributes
    ----------
    factors : DataFrame
        By factor: mean correlation of its scores ``with_others``, and their correlation ``with_one``, the
        score of a model with one factor.
    mean, low, high : float
        Correlations between scores of different factors: mean, lowest and highest.
    variance, variance_one : float
        Share of the answers' variance that the factors explain, and that one factor would.
    error, error_one : float
        Cross-validated errors of both numbers of factors; NaN where the search did not try one factor.
    hierarchy : SchmidLeiman or None
        The general factor of a factor analysis with as many factors (minimum residual, oblimin rotation).
    reason : str
        Why there is none; empty otherwise.
    """

    factors: pd.DataFrame
    mean: float
    low: float
    high: float
    variance: float
    variance_one: float
    error: float = np.nan
    error_one: float = np.nan
    hierarchy: SchmidLeiman | None = None
    reason: str = ""


def general_factor(
    model: ICQF,
    questionnaire: Questionnaire,
    *,
    stated: StatedProblem | None = None,
    scores: Any = None,
    search: Any = None,
) -> GeneralFactor:
    """Compare the factors of a fit with a general factor; the model does not change.

    Parameters
    ----------
    model : fitted ICQF
        With two or more factors.
    questionnaire : Questionnaire
        The answers that it was fitted to.
    stated : StatedProblem, optional
        The problem that it was fitted to (`ICQF.state`).
    scores : array (n, k), optional
        The participants' scores, if already computed.
    search : fitted ICQFCV, optional
        The cross-validation that chose the model.

    Notes
    -----
    The one-factor model has the same penalties. ω hierarchical is the share of the variance of the sum of all
    items that the general factor of a Schmid-Leiman solution explains (`icqf.baselines.schmid_leiman`).

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.analyses import general_factor
    >>> from icqf.datasets import load_demo
    >>> demo = load_demo().select(["q00*", "q01*", "q02*"])
    >>> found = general_factor(ICQF(3).fit(demo), demo)
    >>> 0 < found.hierarchy.omega_hierarchical < found.hierarchy.omega_total < 1
    True
    """
    k = len(model.components_)
    if k < 2:
        raise InputError(ONE)
    stated = model.state(questionnaire) if stated is None else stated
    W = model.solve_scores(stated.problem) if scores is None else _kept(scores, stated)
    one = clone(model).set_params(n_components=1, n_init=1, init="nndsvd", callback=None)
    with warnings.catch_warnings(action="ignore"):  # whether one factor settles is no news about the model
        solution = one.solve(stated)
        one.keep(stated, solution)
    between = correlations(W, W)
    off = between[~np.eye(k, dtype=bool)]
    hierarchy, reason = _hierarchy(k, questionnaire.keyed_answers()[stated.kept])
    return GeneralFactor(
        pd.DataFrame(
            {
                "factor": list(model.get_feature_names_out()),
                "with_others": (between.sum(axis=1) - np.diag(between)) / (k - 1),
                "with_one": correlations(W, np.asarray(solution.factors.scores, dtype=float))[:, 0],
            }
        ),
        float(off.mean()),
        float(off.min()),
        float(off.max()),
        float(model.summary().variance_explained),
        float(one.summary().variance_explained),
        *_errors(search, k),
        hierarchy=hierarchy,
        reason=reason,
    )


def _kept(scores: Any, stated: StatedProblem) -> Array:
    return np.asarray(scores, dtype=float)[stated.kept].T


def _errors(search: Any, k: int) -> tuple[float, float]:
    """Cross-validated errors of k factors and of one; NaN where they were not tried."""
    if search is None:
        return np.nan, np.nan
    best = best_by_k(search.errors_).set_index("n_components")["error"]
    return float(best.get(k, np.nan)), float(best.get(1, np.nan))


def _hierarchy(k: int, answers: pd.DataFrame) -> tuple[SchmidLeiman | None, str]:
    """The Schmid-Leiman solution of a factor analysis, or why there is none."""
    if answers.shape[1] > _MOST_ITEMS:
        return None, f"There are more than {_MOST_ITEMS} items, too many for a factor analysis."
    varied = answers.loc[:, answers.nunique() > 1]
    try:
        if k < 3:
            schmid_leiman(np.zeros((1, k)), np.eye(k), np.eye(1))
        with warnings.catch_warnings(action="ignore"):  # of the factor analysis, which is not the model
            rival = FactorAnalysis(k, rotation="oblimin").fit(varied.to_numpy(dtype=float, na_value=np.nan))
            return schmid_leiman(rival.loadings_, rival.factor_correlations_, rival.correlation_), ""
    except InputError as error:
        return None, str(error)
