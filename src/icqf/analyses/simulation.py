"""Participants who answer as a fitted model says: drawn from real ones, or from the model alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from icqf.core.problem import Observations, Problem
from icqf.core.start import Starts
from icqf.engines.choice import run
from icqf.models.base import FittedModel
from icqf.models.statement import NewAnswers, state
from icqf.resampling import tolerances
from icqf.resampling.matching import aligned

Array = NDArray[Any]
_LEAST_REACH = 5  # participants on either side whose answers may be taken
_LOOSEST = 0.05  # a + b of a Beta; with less, nearly all answers are the lowest or the highest
_WIDEST = 0.49  # standard deviation of scores between 0 and 1; at one half all are 0 or 1
_ROUNDS, _REFITS = 4, 2  # of the search for a population: corrections, and simulated studies for each
_STEP = 1.5  # a correction multiplies by no more than this, and by no less than its inverse


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


@dataclass(frozen=True, eq=False)
class Population:
    """Whom studies are simulated from: a model with loadings, scores and errors that may not be its own.

    Scores have a Beta distribution whose mean is its standard deviation (many with little, few with much).
    Answers have a Beta distribution about what the model expects, confounds are drawn by their shares and
    ranges, and answers are missing as often as in the fit.

    Parameters
    ----------
    loadings : array (k, m)
        In the items' own units.
    covariance : array (k, k)
        Of the scores.
    noise : array (m,)
        Standard deviation of the answers about what is expected, in the items' own units.
    """

    model: FittedModel
    loadings: Array
    covariance: Array
    noise: Array

    @classmethod
    def of(cls, model: FittedModel) -> Population:
        """The population that the model's statistics show, with the errors of its fit taken for truth."""
        counted = np.maximum(model.n_participants_ - model.fit_statistics_.missing, 1)
        noise = np.sqrt(model.fit_statistics_.sse / counted) / model.item_scale_
        return cls(model, model.components_, score_covariance(model), noise)

    def strengths(self) -> Array:
        """How much each factor moves the answers (k,): in scores alone, a scale would be arbitrary."""
        return np.asarray(np.sqrt(self.covariance.diagonal() * (self.loadings**2).sum(axis=1)))

    def draw(self, rng: np.random.Generator, n: int) -> Problem:
        """The problem of n participants."""
        model, variance = self.model, self.covariance.diagonal()
        top = model.score_max or 4 * float(np.sqrt(variance.max()))
        deviation = np.clip(np.sqrt(variance) / top, 1e-3, _WIDEST)
        root = np.linalg.cholesky(_definite(_correlation(self.covariance)))
        spread = (1 - deviation) / deviation - 1  # a + b of a Beta whose mean is its standard deviation
        uniform = stats.norm.cdf(rng.standard_normal((n, len(deviation))) @ root.T)
        scores = top * stats.beta.ppf(uniform, deviation * spread, (1 - deviation) * spread)
        confounds = _confounds(model, rng, n)
        R = scores @ self.loadings + model.confound_encoder_.transform(confounds, n_rows=n) @ (
            model.confound_components_
        )
        low, high = model.item_range_.to_numpy().T
        expected = np.clip(R / (high - low), 1e-3, 1 - 1e-3)
        widest = (expected * (1 - expected)).mean(axis=0)
        noise = np.maximum(self.noise, 1e-6 * (high - low))
        tight = np.maximum(widest * ((high - low) / noise) ** 2 - 1, _LOOSEST)  # a + b of a Beta
        answers = low + (high - low) * rng.beta(expected * tight, (1 - expected) * tight)
        gaps = model.fit_statistics_.missing / model.n_participants_
        answers[rng.random(answers.shape) < gaps] = np.nan
        table = pd.DataFrame(answers, columns=[str(name) for name in model.item_range_.index])
        named = hasattr(model, "feature_names_in_")
        return state(model, NewAnswers(model, table if named else answers, confounds)).problem


@dataclass(frozen=True, eq=False)
class Populations:
    """The populations that a model's sample may have come from.

    Parameters
    ----------
    centre : Population
        Whose samples, fitted afresh, show the spread of scores and the errors that the model shows.
    errors : array (k, m)
        Mean squared error of loadings in such fits, in the items' own units.
    """

    centre: Population
    errors: Array

    @classmethod
    def behind(cls, model: FittedModel, rng: np.random.Generator) -> Populations:
        """Find them by fitting simulated studies of the model's own size.

        Fitted scores and loadings hold some of the sample's errors: scores vary more than true ones, and
        answers lie closer to what is expected. So the spread of scores and errors is corrected until fits to
        simulated studies show what the model shows.
        """
        shown = centre = Population.of(model)
        wanted, squares = shown.strengths(), []
        for number in range(_ROUNDS):
            fits = [_refit(centre, rng) for _ in range(_REFITS)]
            if number:  # the first ones come from errors that are too small
                squares += [(fit.loadings - model.components_) ** 2 for fit in fits]
            found = np.mean([fit.strengths() for fit in fits], axis=0)
            together = np.mean([_correlation(fit.covariance) for fit in fits], axis=0)
            left = np.sqrt(np.mean([fit.noise**2 for fit in fits], axis=0))
            step = 1 / (number + 1)  # ever smaller ones, so that the chance in the fits averages out
            size = np.sqrt(centre.covariance.diagonal()) * _within(wanted / np.maximum(found, 1e-12)) ** step
            related = _correlation(centre.covariance) + step * (_correlation(shown.covariance) - together)
            related[np.diag_indices(len(size))] = 1
            centre = replace(
                centre,
                covariance=_definite(related) * np.outer(size, size),
                noise=centre.noise * _within(shown.noise / np.maximum(left, 1e-12)) ** step,
            )
        return cls(centre, np.mean(squares, axis=0))

    def draw(self, rng: np.random.Generator) -> Population:
        """One of them: loadings shrunken by what is error in their differences, and drawn about that."""
        Q, mean = self.centre.loadings, self.centre.loadings.mean(axis=1, keepdims=True)
        varying = np.maximum(Q.var(axis=1, keepdims=True), 1e-12)
        real = np.clip(1 - self.errors.mean(axis=1, keepdims=True) / varying, 0, 1)
        drawn = mean + real * (Q - mean) + np.sqrt(real * self.errors) * rng.standard_normal(Q.shape)
        spans = np.ptp(self.centre.model.item_range_.to_numpy(), axis=1)
        return replace(self.centre, loadings=np.clip(drawn, 0, spans))


def _refit(population: Population, rng: np.random.Generator) -> Population:
    """What a fit to a new sample shows."""
    model, k = population.model, len(population.loadings)
    problem = population.draw(rng, model.n_participants_).without_reconstruction_bound()
    start = Starts(problem).make("nndsvd", k)
    settings: dict[str, Any] = {"tol": tolerances.RESAMPLE, "max_iter": tolerances.MAX_ITER, "exact": False}
    (fit,) = run([problem], [start], **settings)
    scores, loadings = fit.factors.scores.astype(float), fit.factors.loadings.astype(float)
    order, _ = aligned(problem.scaled_loadings(model.components_), loadings[:k])
    covariance = np.atleast_2d(np.cov(scores[order]))
    observed = problem.answers >= 0
    expected = problem.with_confounds(scores).T @ loadings / model.item_scale_
    squares = np.where(observed, problem.answers - expected, 0) ** 2
    noise = np.sqrt(squares.sum(axis=0) / np.maximum(observed.sum(axis=0), 1))
    return Population(model, loadings[:k][order] / model.item_scale_, covariance, noise)


def _within(factor: Array) -> Array:
    return np.clip(factor, 1 / _STEP, _STEP)


def _correlation(covariance: Array) -> Array:
    size = np.sqrt(np.maximum(covariance.diagonal(), 1e-12))
    return np.asarray(covariance / np.outer(size, size))


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
