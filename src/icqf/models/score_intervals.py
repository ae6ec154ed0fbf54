"""How sure a score is: an interval for every score, its information, and reliable change between visits.

A fit keeps how its scores are distributed (`ScoreDistribution`), without any single participant's. From that
and the loadings, participants are simulated with a fixed seed: scores like those fitted, answers given the
scores, and the scores of these answers. The assumed distribution is first corrected until simulated fits look
like the real one (scores, their correlations, and residuals), because fitted scores vary more, and residuals
less, than true ones. What is kept of it (`ScoreTable`) is the probability of every observed score for every
true score, at several amounts of information.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from sklearn.utils.validation import check_is_fitted

from icqf.data.frames import AnswersInParts, as_pandas, is_dask_array
from icqf.data.questionnaire import Questionnaire
from icqf.data.settings import parameter_error
from icqf.engines.threads import one_blas_thread
from icqf.errors import Advice, InputError
from icqf.models.statement import NewAnswers, state

if TYPE_CHECKING:
    from icqf.core.problem import Problem
    from icqf.core.result import Fit
    from icqf.models.icqf import ICQF

Array = NDArray[Any]

GROUP = 20  # fewest participants of whom a mean score is kept
N_QUANTILES = 40
FEWEST = 100  # participants of a fit that gives intervals

DISTRIBUTION = ("zeros", "quantiles", "correlation", "residual", "variance")
N_CELLS = 40  # of scores, after one of exact zeros
_FRACTIONS = np.array([0.03, 0.1, 0.25, 0.5, 1.0])  # of the information of all items
_CORRECTIONS, _N_CORRECTING, _N_COMPLETE, _N_INCOMPLETE = 3, 1500, 4000, 4000
_SHARES = (0.05, 0.6)  # of items answered by simulated participants with incomplete answers, log-uniform
_ROUNDS = 25  # of deconvolution
_LEVELS = 21  # of answers on a continuous scale
_PRECISION = np.array([-8.0, -4, -2, -1, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256])
_MEANS = np.linspace(0, 1, 33)
_LOWEST_MEAN = 0.005  # of an item's range
_SEED = 28


@dataclass(frozen=True, eq=False)
class ScoreDistribution:
    """How the scores of a fit are distributed, as kept in a model file: no single participant's score."""

    zeros: Array  # (k,), share of scores that are 0
    # (k, 40) of the scores above 0, interpolated between means of at least 20 participants with similar ones
    quantiles: Array
    correlation: Array  # (k, k) of the scores
    # (m,), variance of the answers around the reconstructed ones, in units of each item's range
    residual: Array
    variance: Array  # (m,), variance of the answers, in the same units
    of_more_items: bool = False  # whether they are of a fit to more items than the model now has

    def arrays(self) -> dict[str, Array]:
        """The numbers as arrays of a model file."""
        return {f"score_{name}": getattr(self, name) for name in DISTRIBUTION}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, Array], k: int, m: int, of_more_items: bool
    ) -> ScoreDistribution:
        """The distribution from the arrays of a model file, refused if it is not valid."""
        values = [arrays[f"score_{name}"] for name in DISTRIBUTION]
        zeros, quantiles, correlation, residual, variance = values
        shapes = [(k,), (k, N_QUANTILES), (k, k), (m,), (m,)]
        if [value.shape for value in values] != shapes or not all(
            np.isfinite(value).all() for value in values
        ):
            raise ValueError("the distribution of scores is not valid")
        valid = (zeros >= 0).all() and (zeros <= 1).all() and (quantiles >= 0).all()
        valid = valid and (np.diff(quantiles, axis=1) >= 0).all() and (residual >= 0).all()
        valid = valid and (variance >= 0).all() and (np.abs(correlation) <= 1).all()
        if not valid or (np.diag(correlation) != 1).any() or (correlation != correlation.T).any():
            raise ValueError("the distribution of scores is not valid")
        return cls(zeros, quantiles, correlation, residual, variance, of_more_items)

    @classmethod
    def of(cls, problem: Problem, scores: Array, fit: Fit) -> ScoreDistribution | None:
        """Of a fit with these scores (k, n); None where there are too few of them."""
        if scores.shape[1] < FEWEST:
            return None
        spread = scores.std(axis=1) > 1e-9
        correlation = np.eye(len(scores))
        if spread.sum() > 1:
            correlation[np.ix_(spread, spread)] = np.corrcoef(scores[spread])
        answers = problem.observations.answer_counts()
        weight = problem.gamma * problem.m / problem.span.max() / problem.n  # of a participant, on average
        unit = np.maximum(answers * weight, 1e-300) * problem.span**2
        return cls(
            np.round((scores <= 0).mean(axis=1), 2),
            np.round([_quantiles(each[each > 0]) for each in scores], 3),
            _symmetric(np.round(correlation, 2)),
            np.round(fit.sse / unit, 4),
            np.round(fit.sst / unit, 4),
        )


def _symmetric(correlation: Array) -> Array:
    np.fill_diagonal(correlation, 1.0)
    return (correlation + correlation.T) / 2


def _quantiles(scores: Array) -> Array:
    """Quantiles of scores, between means of groups of neighbours; zeros where there are too few."""
    if len(scores) < 2 * GROUP:
        return np.zeros(N_QUANTILES)
    size, larger = divmod(len(scores), number := min(N_QUANTILES, len(scores) // GROUP))
    first = np.arange(number) * size + np.minimum(np.arange(number), larger)
    means = np.add.reduceat(np.sort(scores), first) / np.diff(first, append=len(scores))
    return np.interp(_middles(N_QUANTILES), _middles(len(means)), means)


def _middles(n: int) -> Array:
    return (np.arange(n) + 0.5) / n


# --- answers of simulated participants --------------------------------------------------------------------


@lru_cache(maxsize=32)
def _answer_distributions(n_levels: int) -> tuple[Array, Array]:
    """Distributions (precision, mean, level) of answers between 0 and 1, and their variances.

    p(z) ∝ exp(az − cz²): of all distributions with this mean and variance the least informative; of yes/no
    items, there is one for each mean.
    """
    z = np.linspace(0, 1, n_levels)
    means = np.clip(_MEANS, _LOWEST_MEAN, 1 - _LOWEST_MEAN)
    low = np.full((len(_PRECISION), len(means)), -1200.0)
    high = -low
    for _ in range(60):
        a = (low + high) / 2
        exponent = a[:, :, None] * z - _PRECISION[:, None, None] * z**2
        p = np.exp(exponent - exponent.max(axis=2, keepdims=True))
        p /= p.sum(axis=2, keepdims=True)
        above = p @ z > means
        low, high = np.where(above, low, a), np.where(above, a, high)
    return p, p @ z**2 - (p @ z) ** 2


@dataclass(frozen=True, eq=False)
class _Items:
    """The items of a model in units of their ranges: what simulated participants answer to."""

    lowest: Array  # (m,)
    span: Array  # (m,)
    levels: Array  # (m,), possible answers
    loadings: Array  # (k, m)
    confound_loadings: Array  # (c, m)
    missing: Array  # (m,), shares in the fit

    @classmethod
    def of(cls, model: ICQF) -> _Items:
        lowest, highest = model.item_range_.to_numpy(dtype=float).T
        span = highest - lowest
        whole = (lowest % 1 == 0) & (span % 1 == 0) & (span < _LEVELS)
        return cls(
            lowest,
            span,
            np.where(whole, span + 1, _LEVELS).astype(int),
            model.components_ / span,
            model.confound_components_ / span,
            np.clip(model.fit_statistics_.missing / model.n_participants_, 0, 0.95),
        )

    def answers(self, scores: Array, design: Array, residual: Array, rng: np.random.Generator) -> Array:
        """Answers (n, m) in their own units, given scores (k, n), with residuals of this variance (m,)."""
        expected = self.loadings.T @ scores + self.confound_loadings.T @ design.T  # (m, n)
        at = np.clip(expected, 0, 1) * (len(_MEANS) - 1)
        cell = np.minimum(at + rng.random(at.shape), len(_MEANS) - 1).astype(np.intp)
        uniform, answers = rng.random(at.shape), np.zeros_like(at)
        for j, chances in enumerate(self.chances(cell.T, residual)):
            for below in np.cumsum(chances, axis=1).T[:-1]:
                answers[j] += uniform[j] > below.take(cell[j])
        return self.lowest + answers.T / (self.levels - 1) * self.span

    def chances(self, cell: Array, residual: Array) -> Iterator[Array]:
        """For each item, probabilities (33, levels) of its answers by expected answer.

        `cell` (n, m) are expected answers of participants, among whom residuals have this variance (m,).
        """
        for j, n_levels in enumerate(self.levels):
            p, variances = _answer_distributions(int(n_levels))
            average = variances @ (np.bincount(cell[:, j], minlength=len(_MEANS)) / len(cell))
            place = np.interp(-residual[j], -average, np.arange(len(average)))  # variances fall
            first = min(int(place), len(average) - 2)
            yield (first + 1 - place) * p[first] + (place - first) * p[first + 1]

    def drawn_confounds(self, model: ICQF, n: int, rng: np.random.Generator) -> pd.DataFrame | None:
        """Confounds with the shares and means of the fit, independent of each other."""
        table: dict[str, Any] = {}
        for column in model.confound_encoder_.columns:
            if column.categories is not None:
                chosen = rng.choice(len(column.categories), n, p=np.array(column.shares) / sum(column.shares))
                table[column.name] = pd.Series([column.categories[at] for at in chosen], dtype=object)
            else:
                mean = np.clip((column.mean - column.low) / (column.high - column.low), 0.05, 0.95)
                width = column.high - column.low
                table[column.name] = column.low + width * rng.beta(3 * mean, 3 * (1 - mean), n)
        return pd.DataFrame(table) if table else None


# --- the table --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """What observed scores say about true ones, for each factor and several amounts of information.

    Scores are in cells: exact zeros first, then 40 of equal width up to `top`.
    """

    top: Array  # (k,), the highest score of each factor's cells
    prior: Array  # (k, 41), distribution of true scores
    # (k, 5, 41, 41), probability of each observed score, for fractions of information and true scores
    likelihood: Array
    information: Array  # (k, 5), share of the variance of true scores that observed ones resolve
    precision: Array  # (k, k), inverse of the variances of true scores, on the diagonal
    weights: Array  # (k, m), loadings in units of the items' residuals
    # (k,), information of complete answers in the linear approximation, a signal-to-noise ratio
    complete: Array

    def same_as(self, other: ScoreTable) -> bool:
        """Whether the other table is of the same model."""
        return self is other or all(
            np.array_equal(a, b) for a, b in zip(vars(self).values(), vars(other).values(), strict=True)
        )

    def fractions(self, answered: Array) -> Array:
        """The information (n, k) in the items answered (n, m), as a fraction of that of all items."""
        fractions = np.ones((len(answered), len(self.prior)))
        rows = np.flatnonzero(~answered.all(axis=1))
        if len(rows):
            found = _signal(self.precision, self.weights, answered[rows]) / np.maximum(self.complete, 1e-12)
            fractions[rows] = np.clip(found, 0, 1)
        return fractions

    def informations(self, fractions: Array) -> Array:
        """The share of variance (n, k) that is resolved at these fractions; 0 for none."""
        found = np.empty_like(fractions)
        for r, known in enumerate(self.information):
            ends = np.concatenate([[0], _FRACTIONS]), np.concatenate([[0], known])
            found[:, r] = np.interp(fractions[:, r], *ends)
        return found

    def posterior(self, factor: int) -> Array:
        """The distribution (5, observed, true) of true scores for each observed score."""
        joint = self.prior[factor][:, None] * self.likelihood[factor]
        return np.swapaxes(joint / joint.sum(axis=1, keepdims=True), 1, 2)

    def again(self, factor: int, true: Array, fractions: Array) -> Array:
        """The distribution (41, n) of a new observed score, from that of the true one (41, n)."""
        level = _level(fractions)
        first = np.minimum(level.astype(int), 3)
        found = np.einsum(
            "tn,fto->fon", np.broadcast_to(true, (len(true), len(level))), self.likelihood[factor]
        )
        people, along = np.arange(len(level)), level - first
        return (1 - along) * found[first, :, people].T + along * found[first + 1, :, people].T

    def ends(self, factor: int, level: float) -> Array:
        """Both ends (2, 5, observed) of the interval of the true score: for those between, it is usual.

        So the interval holds any true score with this probability, whether common or rare.
        """
        tail, true = (1 - level) / 2, np.concatenate([[0], _middles(N_CELLS), [1]])
        ends = np.empty((2, len(_FRACTIONS), N_CELLS + 1))
        for at, likelihood in enumerate(self.likelihood[factor]):
            low, high = (np.maximum.accumulate(each) for each in usual(likelihood, level))
            # true scores of which this observed one is unusually high (or low) end where it is just usual
            steps = 1e-9 * np.arange(len(true))
            ends[0, at] = np.interp(true[:-1], np.append(high, 1) + steps, true, left=0)
            ends[1, at] = np.interp(true[:-1], np.append(low, low[-1]) + steps, true, right=1)
            ends[1, at, 0] = np.interp(-tail, -np.minimum.accumulate(np.append(likelihood[:, 0], 0)), true)
        ends[1] = np.maximum.accumulate(np.maximum(ends[0], ends[1]), axis=1)
        return ends * self.top[factor]

    def cells(self, factor: int, scores: Array) -> tuple[Array, Array]:
        """The cell of each score, and how far the score is through it."""
        through = scores / self.top[factor] * N_CELLS
        cells = np.where(scores > 0, np.clip(np.ceil(through), 1, N_CELLS), 0).astype(int)
        return cells, np.clip(through - (cells - 1), 0, 1)

    def at(self, factor: int, values: Array, scores: Array, fractions: Array) -> Array:
        """Interpolate values (..., 5, observed) at these scores and fractions (n,)."""
        place = np.clip(scores / self.top[factor] * N_CELLS + 0.5, 1, N_CELLS)
        place = np.where(scores > 0, place, 0)
        found = np.empty((*values.shape[:-2], len(place)))
        whole = fractions >= 1
        if whole.any():
            for each in np.ndindex(values.shape[:-2]):
                found[(*each, whole)] = np.interp(place[whole], np.arange(N_CELLS + 1), values[each][-1])
        if not whole.all():
            place, level = place[~whole], _level(fractions[~whole])
            low, first = np.minimum(place.astype(int), N_CELLS - 1), np.minimum(level.astype(int), 3)
            across, along = place - low, level - first
            flat = values.reshape(*values.shape[:-2], -1)
            at = first * (N_CELLS + 1) + low
            found[..., ~whole] = (1 - along) * (
                (1 - across) * flat[..., at] + across * flat[..., at + 1]
            ) + along * ((1 - across) * flat[..., at + N_CELLS + 1] + across * flat[..., at + N_CELLS + 2])
        return found


def _level(fractions: Array) -> Array:
    """The place of fractions of information in the table, from 0 to 4."""
    return np.interp(np.log(np.maximum(fractions, 1e-9)), np.log(_FRACTIONS), np.arange(len(_FRACTIONS)))


def _signal(precision: Array, weights: Array, answered: Array) -> Array:
    """Signal-to-noise ratio (n, k) of each score for these items (n, m), in the linear approximation."""
    k = len(weights)
    scale = np.sqrt(np.diag(precision))  # single precision will do for scores of like size
    weights, precision = weights / scale[:, None], precision / (scale * scale[:, None])
    products = np.einsum("rj,sj->rsj", weights, weights).reshape(k * k, -1).astype(np.float32)
    variance = np.diag(np.linalg.inv(precision))
    after = np.empty((len(answered), k))
    for start in range(0, len(answered), 2048):
        gram = products @ answered[start : start + 2048].T.astype(np.float32)
        A = gram.reshape(k, k, -1) + precision[:, :, None].astype(np.float32)
        for j in range(k):  # the inverse in place, of all participants at once
            column, pivot = A[:, j].copy(), A[j, j].copy()
            row = A[j] / pivot
            A -= column[:, None] * row
            A[j], A[:, j] = row, -column / pivot
            A[j, j] = 1 / pivot
        after[start : start + 2048] = np.diagonal(A)
    return np.maximum(variance / after - 1, 0)


def quantiles_of(distributions: Array, probabilities: Array) -> Array:
    """Quantiles (probabilities, ...) of distributions (..., 41), as shares of the highest score."""
    below = np.cumsum(distributions, axis=-1)
    found = []
    for probability in probabilities:
        cell = np.minimum((below < probability - 1e-12).sum(axis=-1), N_CELLS)
        reached = np.take_along_axis(below, np.maximum(cell - 1, 0)[..., None], -1)[..., 0]
        mass = np.take_along_axis(distributions, cell[..., None], -1)[..., 0]
        inside = np.clip((probability - reached) / np.maximum(mass, 1e-300), 0, 1)
        edge = 0.0 if probability < 0.5 else 1.0  # exact zeros and highest scores are common
        inside = np.where((cell == 1) & (edge == 0) | (cell == N_CELLS), edge, inside)
        found.append(np.where(cell == 0, 0.0, (cell - 1 + inside) / N_CELLS))
    return np.array(found)


def usual(distributions: Array, level: float) -> tuple[Array, Array]:
    """The ends of usual scores in distributions (..., 41), as shares of the highest score.

    Half of what `level` leaves is unusually low, and half unusually high; where scores at the lowest
    (highest) end are usual themselves, all of it is high (low).
    """
    tail = (1 - level) / 2
    lowest, highest = distributions[..., 0] > tail, distributions[..., -1] > tail
    one, both, most, all_but_one = quantiles_of(distributions, np.array([tail, 2 * tail, level, 1 - tail]))
    return np.where(highest & ~lowest, both, one), np.where(lowest & ~highest, most, all_but_one)


def score_table(model: ICQF) -> ScoreTable:
    """The table of a fitted model, simulated with a fixed seed when it is first needed."""
    check_is_fitted(model)
    known = model.__dict__.get("_score_table")
    if known is not None and known[0] is model.components_:
        table: ScoreTable = known[1]
        return table
    with warnings.catch_warnings(action="ignore"):
        table = _Simulation(model).table()
    model.__dict__["_score_table"] = (model.components_, table)
    return table


class _Simulation:
    """Simulated participants of a model, and the distribution of true scores that makes them look real."""

    def __init__(self, model: ICQF) -> None:
        fitted = model.score_distribution_
        if fitted is None:
            raise InputError(
                "This model does not know how its scores are distributed, so they have no intervals: it was "
                f"saved by an earlier icqf, fitted to fewer than {FEWEST} participants or on a cluster, or "
                "it is an average of models.",
                code="no-intervals",
                remedy=Advice("Fit it again, to answers in memory or in a file."),
            )
        self.model, self.fitted, self.items = model, fitted, _Items.of(model)
        highest = np.maximum(1.25 * fitted.quantiles[:, -1], 1e-6)
        self.top = highest if model.score_max is None else np.full(len(highest), float(model.score_max))
        self.k = len(self.top)
        self.observed = np.array([self._histogram(r) for r in range(self.k)])
        self.prior, self.correlation = self.observed.copy(), fitted.correlation.copy()
        Q = self.items.loadings
        own = np.clip(np.einsum("rj,rs,sj->j", Q, np.linalg.pinv(Q @ Q.T, hermitian=True), Q), 0, 1)
        # an item that makes up a factor by itself is described without error: it has as much as other items
        residual = fitted.residual / (1 - np.minimum(own, 0.9))
        share = np.median(np.minimum(residual / np.maximum(fitted.variance, 1e-4), 1))
        self.residual = np.maximum(residual, own**2 * share * fitted.variance)
        self.share_of_error = 1 - own  # of the residuals, which also hold what one item alone explains
        if fitted.of_more_items:  # scores and residuals are those of more answers
            self.residual = fitted.residual.copy()
        self.rng = np.random.default_rng(_SEED)

    def _histogram(self, r: int) -> Array:
        """The distribution (41,) of fitted scores."""
        zero = self.fitted.zeros[r]
        middles = _middles(20 * N_CELLS)
        values = np.interp(middles, _middles(N_QUANTILES), self.fitted.quantiles[r])
        if not values.any():
            return np.eye(1, N_CELLS + 1)[0]
        cells = np.clip(np.ceil(values / self.top[r] * N_CELLS).astype(int), 1, N_CELLS)
        positive = np.bincount(cells, minlength=N_CELLS + 1) / len(values)
        return zero * np.eye(1, N_CELLS + 1)[0] + (1 - zero) * positive

    def draw(self, n: int) -> tuple[Array, Array]:
        """True scores (k, n), and the factor of each participant whose score is spread evenly, or −1.

        Half of the participants have one: high scores are rare, and what they look like must be known, too.
        """
        values, vectors = np.linalg.eigh(self.correlation)
        root = vectors * np.sqrt(np.maximum(values, 1e-6))
        root /= np.sqrt((root**2).sum(axis=1, keepdims=True))
        normal = root @ self.rng.normal(size=(self.k, n))
        chosen = np.where(np.arange(n) % 2 == 0, -1, np.arange(n) // 2 % self.k)
        uniform = ndtr(normal)
        scores = np.array([_inverse_one(p, u) for p, u in zip(self.prior, uniform, strict=True)])
        even = np.zeros((self.k, N_CELLS + 1))
        for r in range(self.k):
            reach = np.flatnonzero(self.prior[r] > 1e-4)
            even[r, : min(reach.max(initial=0) + 3, N_CELLS + 1)] = 1
            even[r] /= even[r].sum()
            rows = np.flatnonzero(chosen == r)
            if not len(rows):
                continue
            flat = _inverse_one(even[r], self.rng.random(len(rows)))
            # the other factors given this score: its normal deviate, and what the rest varies around it
            deviate = ndtri(np.clip(_distribution(self.prior[r], flat), 1e-4, 1 - 1e-4))
            along = (root @ root[r])[:, None]
            others = normal[:, rows] + along * (deviate - normal[r, rows])
            for s in range(self.k):
                if s != r:
                    scores[s, rows] = _inverse_one(self.prior[s], ndtr(others[s]))
            scores[r, rows] = flat
        return scores * self.top[:, None], chosen

    def scored(self, scores: Array, answered: Array) -> tuple[Array, Array]:
        """Observed scores (k, n) of simulated participants, and their answers (n, m), NaN where missing."""
        n = scores.shape[1]
        confounds = self.items.drawn_confounds(self.model, n, self.rng)
        design = self.model.confound_encoder_.transform(confounds, n_rows=n)
        answers = self.items.answers(scores, design, self.residual, self.rng)
        answers[~answered] = np.nan
        observed = np.asarray(self.model.transform(answers, confounds=confounds)).T
        expected = np.clip(
            np.nan_to_num(observed).T @ self.items.loadings + design @ self.items.confound_loadings, 0, 1
        )
        return observed, ((answers - self.items.lowest) / self.items.span - expected) ** 2

    def correct(self) -> None:
        """Change true scores and residuals until simulated fits look like the real one."""
        for _ in range(_CORRECTIONS):
            scores, chosen = self.draw(2 * _N_CORRECTING)
            answered = self.rng.random((scores.shape[1], len(self.items.span))) >= self.items.missing
            answered[~answered.any(axis=1), 0] = True
            observed, squares = self.scored(scores, answered)
            like = chosen < 0
            ratio = self.fitted.residual / np.maximum(np.nanmean(squares[like], axis=0), 1e-6)
            self.residual = self.residual * np.clip(ratio, 0.6, 1.7) ** self.share_of_error
            seen = np.corrcoef(observed[:, like]) if self.k > 1 else np.eye(1)
            change = np.nan_to_num(self.fitted.correlation - seen)
            self.correlation = np.clip(self.correlation + change, -0.95, 0.95)
            np.fill_diagonal(self.correlation, 1)
            for r in range(self.k):
                own = like | (chosen == r)
                likelihood = self.likelihood(r, scores[r, own], observed[r, own], np.ones(own.sum()))
                self.prior[r] = _deconvolved(self.observed[r], likelihood)

    def likelihood(self, r: int, true: Array, observed: Array, weights: Array) -> Array:
        """Probability (true, observed) of observed scores, from simulated participants of these weights."""
        true, observed = true / self.top[r] * N_CELLS, observed / self.top[r] * N_CELLS
        cells = np.ceil(true).astype(int)
        counts = np.zeros((N_CELLS + 1, N_CELLS + 1))
        for shift, share in zip(range(-2, 3), np.array([1, 2, 3, 2, 1]) / 9, strict=True):
            # participants with nearly this score stand in for those with exactly this one
            to = np.where(cells > 0, cells + shift, 0)
            inside = (to >= (cells > 0)) & (to <= N_CELLS)
            moved = np.where((observed > 0) & (cells > 0), observed + to - cells, observed)
            place = np.where(observed > 0, np.clip(np.ceil(moved), 1, N_CELLS), 0).astype(int)
            flat = to[inside] * (N_CELLS + 1) + place[inside]
            counts += np.bincount(flat, share * weights[inside], (N_CELLS + 1) ** 2).reshape(counts.shape)
        steps = np.arange(N_CELLS + 1)
        nearby = np.exp(-np.abs(steps[:, None] - steps) / 2.0)
        counts[:, 1:] = _smoothed(counts[:, 1:])
        counts += 0.2 * nearby / nearby.sum(axis=1, keepdims=True)
        return counts / counts.sum(axis=1, keepdims=True)

    def table(self) -> ScoreTable:
        """The table of the corrected simulation."""
        if not self.fitted.of_more_items:
            self.correct()
        middles = np.concatenate([[0], (np.arange(N_CELLS) + 0.5) / N_CELLS])
        mean = self.prior @ middles * self.top
        variance = np.maximum(self.prior @ middles**2 * self.top**2 - mean**2, 1e-9)
        precision = np.diag(1 / variance)  # what other scores say about this one is not in the score
        weights = self.items.loadings / np.sqrt(np.maximum(self.residual, 1e-4))
        m = len(self.items.span)
        complete = _signal(precision, weights, np.ones((1, m), dtype=bool))[0]

        n = _N_COMPLETE + _N_INCOMPLETE
        scores, chosen = self.draw(n)
        low, high = np.log(_SHARES)
        share = np.where(np.arange(n) < _N_COMPLETE, 1.0, np.exp(self.rng.uniform(low, high, n)))
        answered = self.rng.random((n, m)) < share[:, None]
        answered[np.arange(n), self.rng.integers(0, m, n)] = True
        observed, _ = self.scored(scores, answered)
        fraction = np.ones((n, self.k))
        some = np.arange(n) >= _N_COMPLETE
        fraction[some] = _signal(precision, weights, answered[some]) / np.maximum(complete, 1e-12)
        level = _level(fraction)
        likelihood = np.empty((self.k, 5, N_CELLS + 1, N_CELLS + 1))
        information = np.empty((self.k, 5))
        for r in range(self.k):
            own = (chosen < 0) | (chosen == r)
            for at in range(5):
                weight = np.maximum(1 - np.abs(level[own, r] - at), 0.01)  # some items leave gaps
                likelihood[r, at] = self.likelihood(r, scores[r, own], observed[r, own], weight)
            joint = self.prior[r][:, None] * likelihood[r]
            seen = joint.sum(axis=1)
            centred = middles - self.prior[r] @ middles
            spread = seen @ middles**2 - (seen @ middles) ** 2
            together = np.einsum("fto,t,o->f", joint, centred, middles)
            information[r] = together**2 / np.maximum(spread * (self.prior[r] @ centred**2), 1e-12)
        information = np.minimum.accumulate(information[:, ::-1], axis=1)[:, ::-1]
        information[variance <= 1e-8] = 0
        return ScoreTable(self.top, self.prior, likelihood, information, precision, weights, complete)


@dataclass(frozen=True, eq=False)
class SimulatedParticipants:
    """Participants simulated from a model and the distribution of its scores, as of `score_intervals`."""

    scores: Array  # (k, n), true scores
    answers: Array  # (n, m), between 0 and 1, the lowest and the highest answer
    confounds: pd.DataFrame | None
    design: Array  # (n, c), columns of the confounds
    chances: tuple[Array, ...]  # probability of each answer at expected answers from 0 to 1


def simulate_participants(model: ICQF, n: int) -> SimulatedParticipants:
    """Simulate participants who answer every item, always the same ones for the same model."""
    check_is_fitted(model)
    with warnings.catch_warnings(action="ignore"):
        simulation = _Simulation(model)
        if not simulation.fitted.of_more_items:
            simulation.correct()
    items, (drawn, chosen) = simulation.items, simulation.draw(2 * n)
    scores = drawn[:, chosen < 0]
    confounds = items.drawn_confounds(model, n, simulation.rng)
    design = model.confound_encoder_.transform(confounds, n_rows=n)
    answers = items.answers(scores, design, simulation.residual, simulation.rng)
    expected = np.clip(scores.T @ items.loadings + design @ items.confound_loadings, 0, 1)
    cells = np.round(expected * (len(_MEANS) - 1)).astype(int)
    chances = tuple(items.chances(cells, simulation.residual))
    shares = (answers - items.lowest) / items.span
    return SimulatedParticipants(scores, shares, confounds, design, chances)


def _smoothed(counts: Array) -> Array:
    """Counts smoothed over neighbouring observed scores."""
    padded = np.pad(counts, ((0, 0), (1, 1)), mode="edge")
    return padded[:, :-2] / 4 + padded[:, 1:-1] / 2 + padded[:, 2:] / 4


def _inverse_one(distribution: Array, uniform: Array) -> Array:
    """Scores, as shares of the highest, at these values (n,) of a distribution function."""
    below = np.cumsum(distribution)
    below[-1] = max(below[-1], 1.0)
    cell = np.searchsorted(below, uniform, side="left")
    start = below[np.maximum(cell - 1, 0)]
    inside = (uniform - start) / np.maximum(distribution[cell], 1e-300)
    return np.where(cell == 0, 0.0, (cell - 1 + np.clip(inside, 1e-6, 1)) / N_CELLS)


def _distribution(distribution: Array, scores: Array) -> Array:
    """The distribution function, in the middle of its step at 0, at scores as shares of the highest."""
    below = np.cumsum(distribution)
    cell = np.ceil(scores * N_CELLS).astype(int)
    inside = scores * N_CELLS - (cell - 1)
    return np.where(
        cell == 0, below[0] / 2, below[np.maximum(cell - 1, 0)] + np.clip(inside, 0, 1) * distribution[cell]
    )


def _deconvolved(observed: Array, likelihood: Array) -> Array:
    """The smooth distribution of true scores that gives these observed ones (EM with smoothing)."""
    prior = observed + 1e-3 / len(observed)
    prior /= prior.sum()
    for _ in range(_ROUNDS):
        expected = np.maximum(prior @ likelihood, 1e-12)
        prior = prior * (likelihood @ (observed / expected))
        prior[1:] = _smoothed(prior[None, 1:])[0]
        prior /= prior.sum()
    return prior


LEAST_INFORMATION = 0.1  # below this share of the variance, a score is left out
NOTHING_ANSWERED = "no answers"
TOO_LITTLE = "the answers given say next to nothing about this factor"
NOT_MEASURED = "the items say next to nothing about this factor"
RELIABLE = 0.05  # p-value of a reliable change


@dataclass(frozen=True, eq=False)
class ScoreIntervals:
    """Scores with their intervals; one row per participant, one column per factor.

    Attributes
    ----------
    scores, low, high : DataFrame
        Each score and the ends of its interval; NaN where the answers say next to nothing.
    information : DataFrame
        Share of the variance of true scores that the answers given resolve, between 0 and 1: the reliability
        of the score for these answers.
    reasons : DataFrame of str
        Why a score is missing; empty where there is one.
    level : float
        Probability that the interval holds the true score.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> study = load_demo()
    >>> scored = ICQF(4).fit(study).score_intervals(study)
    >>> width = scored.high - scored.low
    >>> width.shape, scored.level
    ((600, 4), 0.9)
    """

    scores: pd.DataFrame
    low: pd.DataFrame
    high: pd.DataFrame
    information: pd.DataFrame
    reasons: pd.DataFrame
    level: float
    model_table: ScoreTable = field(repr=False)
    fractions: Array = field(repr=False)

    def rows(self, ids: Sequence[Any]) -> ScoreIntervals:
        """The intervals of these participants, whose ids are unique."""
        at = self.scores.index.get_indexer(pd.Index(ids))
        names = ("scores", "low", "high", "information", "reasons")
        parts = {name: getattr(self, name).iloc[at] for name in names}
        return replace(self, **parts, fractions=self.fractions[at])

    def table(self) -> pd.DataFrame:
        """All numbers in one table: mood, mood_low, mood_high, mood_information and so on."""
        parts = {"": self.scores, "_low": self.low, "_high": self.high, "_information": self.information}
        columns = {
            f"{name}{ending}": part.iloc[:, at].to_numpy()
            for at, name in enumerate(self.scores.columns)
            for ending, part in parts.items()
        }
        return pd.DataFrame(columns, index=self.scores.index)


@one_blas_thread()
def score_intervals(model: ICQF, X: Any, *, confounds: Any = None, level: float = 0.9) -> ScoreIntervals:
    """Scores of participants with their intervals; see `ICQF.score_intervals`."""
    if isinstance(level, bool) or not isinstance(level, (int, float)) or not 0.5 <= level < 1:
        raise parameter_error("level", f"={level!r} is not a probability from 0.5 to below 1, such as 0.9.")
    if is_dask_array(X) or isinstance(X, (str, os.PathLike)) or AnswersInParts.of(X) is not None:
        raise InputError(
            "Intervals of scores need the answers in memory.",
            remedy=Advice("Give a table; `icqf score` writes them for files of any size."),
        )
    table = score_table(model)
    stated = state(model, NewAnswers(model, X, confounds))
    names = model.get_feature_names_out()
    shape = (len(stated.kept), len(names))
    scores, low, high, fractions = (np.full(shape, np.nan) for _ in range(4))
    fractions[:] = 0
    if stated.kept.any():
        scores[stated.kept] = model.solve_scores(stated.problem).T
        answered = np.concatenate(
            [block.observed().astype(bool) for block in stated.problem.observations.blocks()]
        )
        fractions[stated.kept] = table.fractions(answered)
    information = table.informations(fractions)
    known = stated.kept[:, None] & (information >= LEAST_INFORMATION)
    for r in range(shape[1]):
        rows = known[:, r]
        low[rows, r], high[rows, r] = table.at(r, table.ends(r, level), scores[rows, r], fractions[rows, r])
    scores[~known] = np.nan
    reasons = np.full(shape, "", dtype=object)
    reasons[~known] = TOO_LITTLE
    reasons[:, table.information[:, -1] < LEAST_INFORMATION] = NOT_MEASURED
    reasons[~stated.kept] = NOTHING_ANSWERED
    frame = as_pandas(X.answers if isinstance(X, Questionnaire) else X)
    index = frame.index if isinstance(frame, pd.DataFrame) else None
    parts = [pd.DataFrame(each, index, names) for each in (scores, low, high, information)]
    parts.append(pd.DataFrame(reasons, index, names, dtype=object))
    return ScoreIntervals(parts[0], parts[1], parts[2], parts[3], parts[4], float(level), table, fractions)


def reliable_change(before: ScoreIntervals, after: ScoreIntervals) -> pd.DataFrame:
    """How far the scores of the same participants have changed between two visits.

    Parameters
    ----------
    before, after : ScoreIntervals
        Of the same model and the same participants, in any order. The level of the intervals is that of
        `after`.

    Returns
    -------
    DataFrame
        One row per participant and factor: `difference` of the scores; `low` and `high`, the interval of the
        true difference (from the two intervals, after Zou and Donner, 2008); `probability` of a change, if
        half of all participants did not change and the scores of the others were drawn anew; and `p_value`:
        how often chance gives so unusual a second score where nothing changed, given the first, which allows
        for regression to the mean. A change is reliable where it is below 0.05. NaN where either score is
        missing.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.models import reliable_change
    >>> study = load_demo()
    >>> scored = ICQF(4).fit(study).score_intervals(study)
    >>> change = reliable_change(scored, scored)
    >>> list(change.columns), bool((change["difference"].dropna() == 0).all())
    (['difference', 'low', 'high', 'probability', 'p_value'], True)
    """
    table, names = after.model_table, after.scores.columns
    if not before.scores.columns.equals(names) or not table.same_as(before.model_table):
        raise InputError(
            "The scores before and after come from different models; score both visits with one."
        )
    ids = after.scores.index
    if not ids.is_unique or not before.scores.index.is_unique:
        raise InputError("A participant appears twice in one visit; give one row per participant.")
    at = before.scores.index.get_indexer(ids)
    if len(ids) != len(before.scores) or (at < 0).any():
        alone = ids[at < 0].union(before.scores.index.difference(ids)).tolist()
        raise InputError(f"Participant {alone[0]!r} has only one of the two visits; give both, or neither.")
    first, second = before.scores.to_numpy()[at], after.scores.to_numpy()
    found = np.full((*second.shape, 5), np.nan)
    for r in range(len(names)):
        rows = np.flatnonzero(~np.isnan(first[:, r]) & ~np.isnan(second[:, r]))
        old = (first[rows, r], before.fractions[at][rows, r])
        new = (second[rows, r], after.fractions[rows, r])
        found[rows, r] = _changed(table, r, old, new, after.level)
    whole = [(name, factor) for name in ids for factor in names]
    index = pd.MultiIndex.from_tuples(whole, names=[str(ids.name or "participant"), "factor"])
    columns = ["difference", "low", "high", "probability", "p_value"]
    return pd.DataFrame(found.reshape(-1, 5), index, columns)


def _changed(
    table: ScoreTable, r: int, old: tuple[Array, Array], new: tuple[Array, Array], level: float
) -> Array:
    """Difference, its interval, probability and p-value (n, 5), of scores and fractions of information."""
    before = table.at(r, np.moveaxis(table.posterior(r), 2, 0), *old)
    # What the second score would be if nothing had changed (given the first), or if everything had.
    same, anew = table.again(r, before, new[1]), table.again(r, table.prior[r][:, None], new[1])
    cell, through = table.cells(r, new[0])
    mass, other = (np.take_along_axis(part, cell[None], 0)[0] for part in (same, anew))
    below = np.take_along_axis(np.cumsum(same, axis=0), cell[None], 0)[0] - mass
    at_end = (cell == 0) | (cell == N_CELLS)  # many scores share the lowest or the highest value
    down, up = below + mass * np.where(at_end, 1, through), 1 - below - mass * np.where(at_end, 0, through)
    # The other tail counts as well, unless scores at its end are so common that it is never that small.
    down, up = down + np.where(same[-1] <= down, down, 0), up + np.where(same[0] <= up, up, 0)
    ends = table.ends(r, level)
    (low, high), (new_low, new_high) = table.at(r, ends, *old), table.at(r, ends, *new)
    less = np.hypot(np.maximum(new[0] - new_low, 0), np.maximum(high - old[0], 0))
    more = np.hypot(np.maximum(new_high - new[0], 0), np.maximum(old[0] - low, 0))
    difference, probability = new[0] - old[0], other / np.maximum(other + mass, 1e-300)
    # Only in the direction of the change: a score that stays where most would fall has not changed.
    p_value = np.clip(np.where(difference > 0, up, np.where(difference < 0, down, 1.0)), 0, 1)
    return np.column_stack([difference, difference - less, difference + more, probability, p_value])
