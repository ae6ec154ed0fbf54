"""Loadings with any number of factors and penalty within a second, before a fit or beside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from icqf.core.result import Iterated
from icqf.data.settings import parameter_error
from icqf.engines.base import NamedStart
from icqf.engines.choice import run
from icqf.models.icqf import ICQF
from icqf.models.statement import StatedProblem
from icqf.models.summary import default_names, suggested_names
from icqf.resampling.matching import correlations, paired
from icqf.workflow.fit import model_of
from icqf.workflow.naming import suggestions
from icqf.workflow.options import StudyOptions
from icqf.workflow.read import read_study

MOST_FACTORS = 40
_TOL = 3e-3
_MAX_ITER = 60
_MOST_STARTS = 8
_WORK = 1.2e8  # iterations times answers times factors, after which no other start begins
_ALIKE = 0.8


@dataclass(frozen=True, eq=False)
class Preview:
    """Loadings from the best of some starts, ended early.

    `loadings` (m, k) are in points of an item's own range, and `shares` (m, k) in shares of it; `names` are
    suggested by the items, empty for a factor without one; `settled` is whether more iterations would hardly
    change the loadings.
    """

    loadings: pd.DataFrame
    shares: pd.DataFrame
    names: tuple[str, ...]
    n_participants: int
    settled: bool


def preview_problem(options: StudyOptions) -> StatedProblem:
    """Read a study and state its problem, from which previews are made."""
    return model_of(options).state(read_study(options).questionnaire)


def most_factors(stated: StatedProblem) -> int:
    """The largest number of factors that a preview shows."""
    return max(min(MOST_FACTORS, stated.problem.m - 1, stated.problem.n - 1), 1)


def preview(stated: StatedProblem, n_components: int, beta: float) -> Preview:
    """Iterate from some starts, as many as take less than a second, and keep the best.

    Factors are ordered by the sum of their loadings.

    Examples
    --------
    >>> from icqf.datasets import demo_paths
    >>> from icqf.workflow import StudyOptions
    >>> from icqf.workflow.preview import preview, preview_problem
    >>> answers, codebook = demo_paths()
    >>> stated = preview_problem(StudyOptions.of({"answers": answers, "codebook": codebook}))
    >>> preview(stated, 3, 0.1).loadings.shape
    (119, 3)
    """
    most = most_factors(stated)
    if not 1 <= n_components <= most:
        raise parameter_error("n_components", f" must be from 1 to {most} in a preview.")
    if not 0 <= beta < np.inf:
        raise parameter_error("beta", " must be a number of at least 0.")
    problem = stated.problem.with_beta(float(beta))
    found: list[Iterated] = []
    rng, work = np.random.default_rng(0), 0.0
    while not found or (len(found) < _MOST_STARTS and work < _WORK):
        begin = NamedStart("random" if found else "nndsvd", n_components, rng)
        found += run(problem, begin, tol=_TOL, max_iter=_MAX_ITER, exact=False)
        work += found[-1].n_iter * problem.n * problem.m * n_components
    best = min(found, key=lambda each: each.trace.objective[-1])
    own = problem.own_loadings(best.factors.loadings)[:n_components]
    spans = np.ptp(stated.ranges, axis=1)
    order = np.argsort(-(own / spans).sum(axis=1), kind="stable")
    columns = default_names(n_components)
    loadings = pd.DataFrame(own[order].T, index=list(stated.items), columns=columns)
    shares = loadings.div(spans, axis=0)
    names = tuple(suggested_names(shares, stated.codebook.items))
    return Preview(loadings, shares, names, problem.n, best.converged)


def named_like(found: Preview, model: ICQF) -> dict[str, str]:
    """Return the names of a fitted model's factors for the factors of a preview that are much like them.

    Factors without a name have the suggested one.
    """
    theirs = pd.DataFrame(model.components_, columns=list(model.feature_names_in_))
    items = [name for name in found.loadings.index if name in theirs.columns]
    if len(items) < 2:
        return {}
    similar = correlations(found.loadings.loc[items].to_numpy().T, theirs[items].to_numpy())
    rows, columns = paired(similar)
    given = zip(model.factor_names_, default_names(len(model.factor_names_)), suggestions(model), strict=True)
    names = [suggested if name == default and suggested else name for name, default, suggested in given]
    return {
        str(found.loadings.columns[row]): str(names[column])
        for row, column in zip(rows, columns, strict=True)
        if similar[row, column] >= _ALIKE
    }
