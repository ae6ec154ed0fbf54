"""The same answers by factor analysis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from icqf.baselines import FactorAnalysis, parallel_analysis
from icqf.estimator import ICQF
from icqf.report import words
from icqf.report.tree import Comparison, Eigenvalue, Pair
from icqf.resampling.halves import correlations
from icqf.resampling.matching import match_factors

_RANDOM_SETS = 20
_CLOSE = 0.8
_SMALL = 0.1  # of the factor's largest loading
METHOD = "exploratory factor analysis (minimum residual, promax rotation)"


def _varying(answers: pd.DataFrame) -> pd.DataFrame:
    return answers.loc[:, answers.std() > 0]


def with_factor_analysis(
    model: ICQF, answers: pd.DataFrame, names: Sequence[str]
) -> tuple[Comparison, np.ndarray | None]:
    """Factor analysis with as many factors, matched with the model's; and its fit of every item (m,)."""
    k = len(model.components_)
    varying = _varying(answers)
    try:
        analysis = FactorAnalysis(k).fit(varying)
        fit = _variance_by_item(analysis, varying)
    except (ValueError, np.linalg.LinAlgError) as error:
        return Comparison(
            (f"Factor analysis of the same answers could not be run: {error}",), METHOD, k
        ), None
    columns = [f"FA {r + 1}" for r in range(k)]
    theirs = pd.DataFrame(analysis.loadings_, index=[str(name) for name in varying], columns=columns)
    ours = pd.DataFrame(model.components_.T, index=[str(name) for name in answers], columns=range(k)).loc[
        theirs.index
    ]
    matrix = correlations(ours.to_numpy().T, theirs.to_numpy().T)
    found = match_factors(ours, theirs, method="optimal").pairs
    pairs = tuple(
        Pair(names[int(a)], str(b), float(value))
        for a, b, value in zip(found["factor_a"], found["factor_b"], found["pearson"], strict=True)
    )
    close = sum(pair.correlation >= _CLOSE for pair in pairs)
    sst = model.fit_statistics_.sst[np.isin(answers.columns, varying.columns)]
    variance = float(np.average(fit, weights=np.maximum(sst, 1e-300)))
    here = model.summary().variance_explained
    small, small_here = _share_small(analysis.loadings_), _share_small(model.components_.T)
    negative = float((analysis.loadings_ < 0).mean())
    apart = [pair.factor for pair in pairs if pair.correlation < _CLOSE]
    said = [
        f"With as many factors, factor analysis finds a close counterpart (correlation of loadings {_CLOSE} "
        f"or more) "
        + (
            f"of all {k} factors."
            if close == k
            else f"of {close} of the {k} factors; not of {words.joined(apart)}."
        ),
        f"It explains {words.percent(variance)} of the variance of the answers in this sample, this model "
        f"{words.percent(here)} with confounds and every bound kept.",
        f"{words.percent(negative)} of its loadings are negative; this model has none, so that a factor "
        f"only ever adds "
        f"to answers. {words.percent(small_here)} of this model's loadings are next to nothing (below a "
        f"tenth of the "
        f"factor's largest), against {words.percent(small)} there.",
    ]
    every = np.full(len(answers.columns), np.nan)
    every[np.isin(answers.columns, varying.columns)] = fit
    return (
        Comparison(
            words=tuple(said),
            method=METHOD,
            n_components=k,
            pairs=pairs,
            matrix=tuple(tuple(float(value) for value in row) for row in matrix),
            variance=variance,
            variance_here=float(here),
            negative=negative,
            small=small,
            small_here=small_here,
        ),
        every,
    )


def _share_small(loadings: np.ndarray) -> float:
    largest = np.maximum(np.abs(loadings).max(axis=0), 1e-300)
    return float((np.abs(loadings) < _SMALL * largest).mean())


def _variance_by_item(analysis: FactorAnalysis, answers: pd.DataFrame) -> np.ndarray:
    """Share of each item's variance that the regression scores and loadings reproduce."""
    table = answers.to_numpy(dtype=float, na_value=np.nan)
    scores = np.asarray(analysis.transform(answers))
    rebuilt = analysis.mean_ + analysis.scale_ * (scores @ analysis.loadings_.T)
    around = np.nansum((table - np.nanmean(table, axis=0)) ** 2, axis=0)
    result: np.ndarray = 1 - np.nansum((table - rebuilt) ** 2, axis=0) / around
    return result


def eigenvalues(answers: pd.DataFrame, rng: np.random.Generator) -> tuple[int, tuple[Eigenvalue, ...]] | None:
    """What parallel analysis keeps, and the eigenvalues behind it; None where it cannot be run."""
    try:
        found = parallel_analysis(_varying(answers), n_iter=_RANDOM_SETS, random_state=rng)
    except (ValueError, np.linalg.LinAlgError):
        return None
    curve = found.curve.head(max(10, int(1.5 * found.n_components) + 2))
    return found.n_components, tuple(
        Eigenvalue(int(factor), float(observed), float(unrelated))
        for factor, observed, unrelated in curve[
            ["n_components", "eigenvalue", "random_eigenvalue"]
        ].to_numpy()
    )
