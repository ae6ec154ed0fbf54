"""Participants who answer as a fitted model says: drawn from real ones, or from the model alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from icqf.core.problem import Observations, Problem
from icqf.models.base import FittedModel
from icqf.models.statement import NewAnswers, state

Array = NDArray[Any]
_LEAST_REACH = 5  # participants on either side whose answers may be taken
_LOOSEST = 0.05  # a + b of a Beta; with less, nearly all answers are the lowest or the highest
_WIDEST = 0.49  # standard deviation of scores between 0 and 1; at one half all are 0 or 1


def drawn_from(
    model: FittedModel, problem: Problem, scores: Array, rng: np.random.Generator, n: int, *, gaps: bool
) -> Problem:
    """The problem of n simulated participants: the scores of one, and the answers of others like it.

    An item's answer is that of a participant for whom the model expects about the same answer to it, each
    item of another one, so that all that goes together in the answers goes by the factors and confounds.
    """
    own = problem.unscaled()
    expected = scores.T @ model.components_ + own.design.T @ model.confound_components_
    drawn = rng.integers(0, own.n, n)
    answers = like_others(own.answers, expected, expected[drawn], rng)
    if gaps:
        given = (own.answers >= 0).mean(axis=0)
        answers[rng.random(answers.shape) >= given] = np.nan
    design = np.ascontiguousarray(own.design[:, drawn])
    observations = Observations(answers, design, dtype=np.dtype(np.float64))
    return replace(own, observations=observations).scaled(model.item_scale_)


def like_others(answers: Array, expected: Array, wanted: Array, rng: np.random.Generator) -> Array:
    """Answers (n, m), each of a participant with about the same expected answer; NaN where none answered."""
    n, m = wanted.shape
    found = np.full((n, m), np.nan)
    for item in range(m):
        given = np.flatnonzero(answers[:, item] >= 0)
        if not len(given):
            continue
        given = given[np.argsort(expected[given, item], kind="stable")]
        reach = max(_LEAST_REACH, len(given) // 20)
        place = np.searchsorted(expected[given, item], wanted[:, item]) + rng.integers(-reach, reach + 1, n)
        found[:, item] = answers[given[np.clip(place, 0, len(given) - 1)], item]
    return found


def drawer_of(model: FittedModel) -> Callable[[np.random.Generator, int], Problem]:
    """What draws participants from a model alone, which holds nobody's scores.

    Variances and correlations of the scores are worked out from what each factor explains of each item;
    their distribution is taken to be a Beta whose mean is its standard deviation (many with little, few with
    much). Answers have a Beta distribution about what the model expects, with the variance that it left of
    each item, confounds are drawn by their shares and ranges, and answers are missing as often as in the fit.
    """
    covariance = score_covariance(model)
    top = model.score_max or 4 * float(np.sqrt(covariance.diagonal().max()))
    deviation = np.clip(np.sqrt(covariance.diagonal()) / top, 1e-3, _WIDEST)
    correlation = covariance / np.sqrt(np.outer(covariance.diagonal(), covariance.diagonal()))
    root = np.linalg.cholesky(_definite(correlation))
    spread = (1 - deviation) / deviation - 1  # a + b of a Beta whose mean is its standard deviation
    low, high = model.item_range_.to_numpy().T
    counted = np.maximum(model.n_participants_ - model.fit_statistics_.missing, 1)
    noise = np.maximum(np.sqrt(model.fit_statistics_.sse / counted) / model.item_scale_, 1e-6 * (high - low))
    gaps = model.fit_statistics_.missing / model.n_participants_

    def draw(rng: np.random.Generator, n: int) -> Problem:
        uniform = stats.norm.cdf(rng.standard_normal((n, len(deviation))) @ root.T)
        scores = top * stats.beta.ppf(uniform, deviation * spread, (1 - deviation) * spread)
        confounds = _confounds(model, rng, n)
        R = scores @ model.components_ + model.confound_encoder_.transform(confounds, n_rows=n) @ (
            model.confound_components_
        )
        expected = np.clip(R / (high - low), 1e-3, 1 - 1e-3)
        widest = (expected * (1 - expected)).mean(axis=0)
        tight = np.maximum(widest * ((high - low) / noise) ** 2 - 1, _LOOSEST)  # a + b of a Beta
        answers = low + (high - low) * rng.beta(expected * tight, (1 - expected) * tight)
        answers[rng.random(answers.shape) < gaps] = np.nan
        table = pd.DataFrame(answers, columns=[str(name) for name in model.item_range_.index])
        named = hasattr(model, "feature_names_in_")
        return state(model, NewAnswers(model, table if named else answers, confounds)).problem

    return draw


def score_covariance(model: FittedModel) -> Array:
    """Covariance (k, k) of the scores that the model was fitted with, as far as its statistics tell.

    A factor r explains Σ_i (x_ij − x̄_j)(w_ir − w̄_r) q_jr of an item j, which divided by q_jr n is the
    covariance of answers and scores, and so, but for the errors, Σ_s q_js cov(w_s, w_r).
    """
    scale, k = model.item_scale_, len(model.components_)
    Q, n = model.components_ * scale, model.n_participants_
    found = np.zeros((k, k))
    for r in range(k):
        loaded = Q[r] > 1e-3 * max(Q[r].max(), 1e-12)
        together = model.fit_statistics_.explained[r, loaded] / (Q[r, loaded] * n)
        weight = np.sqrt(Q[r, loaded])  # small loadings tell little
        found[:, r] = np.linalg.lstsq(Q[:, loaded].T * weight[:, None], together * weight, rcond=1e-6)[0]
    found = (found + found.T) / 2
    least = 1e-4 * max(float(found.diagonal().max()), 1e-4)
    found[np.diag_indices(k)] = np.maximum(found.diagonal(), least)
    return found


def _definite(correlation: Array) -> Array:
    """The nearest correlations, roughly, that some scores could have."""
    values, vectors = np.linalg.eigh(np.clip(correlation, -0.99, 0.99) + np.eye(len(correlation)) * 1e-9)
    fixed = (vectors * np.maximum(values, 1e-3)) @ vectors.T
    size = np.sqrt(fixed.diagonal())
    return fixed / np.outer(size, size)


def _confounds(model: FittedModel, rng: np.random.Generator, n: int) -> pd.DataFrame | None:
    columns: dict[str, Any] = {}
    for column in model.confound_encoder_.columns:
        if column.categories is None:
            columns[column.name] = rng.uniform(column.low, column.high, n)
        else:
            shares = np.asarray(column.shares) / np.sum(column.shares)
            at = rng.choice(len(shares), n, p=shares)
            columns[column.name] = pd.Series([column.categories[each] for each in at], dtype=object)
    return pd.DataFrame(columns) if columns else None
