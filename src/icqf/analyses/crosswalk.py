"""A crosswalk: scores of one questionnaire predicted from the answers to another.

For participants who answered both, a score of the target is regressed on the answers to the source: on their
sum, and on single items as far as these add to it (ridge regression towards equal weights, whose strength is
chosen by generalized cross-validation). Missing answers are replaced by their expectation given the others,
and widen the interval. What predictions of held-out participants missed, at about the same predicted score,
corrects the prediction and makes its interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Array = NDArray[Any]
FEWEST = 100  # participants who answered both questionnaires
WINDOW = 100  # fewest participants whose errors make an interval
PROBABILITIES = (0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975)  # of the errors that are kept
FOLDS = 10
_STRENGTHS = np.append(10.0 ** np.arange(-3, 3.01, 0.5), np.inf)  # candidate penalties, per mean square
_STEPS = 10  # of the iteration for missing answers
_DIGITS = 6  # of stored numbers


class Predicted(NamedTuple):
    """Predictions (n,) with their intervals."""

    value: Array
    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class Normal:
    """Mean and covariance of answers, which say what a missing answer would be given the others."""

    mean: Array  # (m,)
    covariance: Array  # (m, m)

    @classmethod
    def of(cls, X: Array) -> Normal:
        """Estimate them from answers (n, m), NaN where missing, by the EM algorithm.

        Covariances are drawn towards equal ones, the more the fewer participants there are.
        """
        n, m = X.shape
        seen = ~np.isnan(X)
        mean = np.where(seen, X, 0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
        filled, unknown = np.where(seen, X, mean), np.zeros((m, m))
        for _ in range(1 if seen.all() else _STEPS):
            mean = filled.mean(axis=0)
            S = ((filled - mean).T @ (filled - mean) + unknown) / n
            off = (S.sum() - np.trace(S)) / max(m * (m - 1), 1)
            equal = np.full((m, m), off) + (np.trace(S) / m - off + 1e-6) * np.eye(m)
            normal = cls(mean, (n * S + m * equal) / (n + m))
            filled, unknown = normal.completed(X)[0], normal.unknown(X)
        return normal

    def completed(self, X: Array, weights: Array | None = None) -> tuple[Array, Array]:
        """Answers with expectations for missing ones, and the variance (n,) these add to a weighted sum."""
        out, variance = X.copy(), np.zeros(len(X))
        for rows, missing, given, slopes, left in self._patterns(X):
            out[np.ix_(rows, missing)] = (
                self.mean[missing] + (X[np.ix_(rows, given)] - self.mean[given]) @ slopes
            )
            if weights is not None:
                variance[rows] = weights[missing] @ left @ weights[missing]
        return out, variance

    def unknown(self, X: Array) -> Array:
        """The covariance (m, m) of missing answers given the others, summed over participants."""
        total = np.zeros_like(self.covariance)
        for rows, missing, _, _, left in self._patterns(X):
            total[np.ix_(missing, missing)] += len(rows) * left
        return total

    def _patterns(self, X: Array) -> Any:
        """Participants with the same missing answers: rows, what is missing and given, slopes, covariance."""
        patterns, which = np.unique(np.isnan(X), axis=0, return_inverse=True)
        for at, pattern in enumerate(patterns):
            if pattern.any():
                missing, given = np.flatnonzero(pattern), np.flatnonzero(~pattern)
                S = self.covariance
                slopes = np.linalg.solve(S[np.ix_(given, given)], S[np.ix_(given, missing)])
                left = S[np.ix_(missing, missing)] - S[np.ix_(missing, given)] @ slopes
                yield np.flatnonzero(which.ravel() == at), missing, given, slopes, left


def ridge(X: Array, y: Array, total: Array, *, items: bool = True) -> tuple[float, Array]:
    """Intercept and weights (m,) for complete answers X (n, m), drawn towards those of the sum.

    `total` (m,) are the weights of the sum; without `items` the result is the regression on it.
    """
    n = len(X)
    Z = np.column_stack([np.ones(n), X @ total])
    beside = np.linalg.lstsq(Z, np.column_stack([y, X]), rcond=None)[0]
    rest, R = y - Z @ beside[:, 0], X - Z @ beside[:, 1:]
    weights = np.zeros(X.shape[1])
    if items and rest @ rest > 1e-12 * max(y @ y, 1e-12):
        U, s, Vt = np.linalg.svd(R, full_matrices=False)
        keep = s > 1e-8 * max(s.max(initial=0), 1e-12)
        U, s, Vt = U[:, keep], s[keep], Vt[keep]
        along, square = U.T @ rest, rest @ rest
        errors = []
        for strength in _STRENGTHS:
            shrink = np.zeros_like(s) if np.isinf(strength) else s**2 / (s**2 + strength * (s**2).mean())
            left = square - ((2 * shrink - shrink**2) * along**2).sum()
            errors.append(left / max(1 - (2 + shrink.sum()) / n, 1e-3) ** 2)
        best = _STRENGTHS[int(np.argmin(np.round(np.array(errors) / square, 9)))]
        if not np.isinf(best):
            weights = Vt.T @ (s / (s**2 + best * (s**2).mean()) * along)
    intercept, slope = beside[:, 0] - beside[:, 1:] @ weights
    return float(intercept), weights + slope * total


@dataclass(frozen=True, eq=False)
class Errors:
    """What predictions of held-out participants missed, at several predicted scores."""

    at: Array  # (g,)
    mean: Array  # (g,)
    spread: Array  # (g,) standard deviation
    quantiles: Array  # (g, p) at `PROBABILITIES`

    @classmethod
    def of(cls, predicted: Array, y: Array) -> Errors:
        """From predictions of held-out participants: overlapping windows of 100 or more, in their order."""
        n = len(y)
        order = np.lexsort((y, predicted))
        size = min(n, max(WINDOW, -(-n // 8)))
        starts = np.linspace(0, n - size, max(1, 2 * (n // size) - 1)).round().astype(int)
        rows = []
        for start in starts:
            mine = order[start : start + size]
            error = np.sort(y[mine] - predicted[mine])
            places = np.clip(np.array(PROBABILITIES) * (size + 1) - 1, 0, size - 1)
            quantiles = np.interp(places, np.arange(size), error)
            rows.append([predicted[mine].mean(), error.mean(), error.std(), *quantiles])
        table = np.array(rows)
        return cls(table[:, 0], table[:, 1], table[:, 2], table[:, 3:])

    def expected(self, predicted: Array) -> Array:
        """The mean error at predictions (n,)."""
        return np.interp(predicted, self.at, self.mean)

    def quantile(self, predicted: Array, probability: float) -> Array:
        """The error that a share of the participants have at most, at predictions (n,)."""
        across = [np.interp(probability, PROBABILITIES, row) for row in self.quantiles]
        return np.interp(predicted, self.at, across)


@dataclass(frozen=True, eq=False)
class Rule:
    """Predicts one score of the target from answers to the source, each from 0 to 1."""

    normal: Normal
    intercept: float
    weights: Array  # (m,)
    errors: Errors
    range: tuple[float, float]
    whole: bool = False  # whether the score is a whole number

    @classmethod
    def fit(
        cls,
        X: Array,
        y: Array,
        *,
        total: Array,
        range: tuple[float, float],
        whole: bool = False,
        items: bool = True,
        groups: Array | None = None,
    ) -> Rule:
        """From answers (n, m) and scores (n,) of participants who have both."""
        fold = folds_of(X, y, groups)
        held_out = np.empty(len(y))
        for each in np.unique(fold):
            out = fold == each
            normal, intercept, weights = _line(X[~out], y[~out], total, items)
            held_out[out] = intercept + normal.completed(X[out])[0] @ weights
        normal, intercept, weights = _line(X, y, total, items)
        return cls(normal, intercept, weights, Errors.of(held_out, y), range, whole)

    def predict(self, X: Array, level: float = 0.9) -> Predicted:
        """Predict from answers (n, m); NaN for participants without any."""
        filled, variance = self.normal.completed(X, self.weights)
        line = self.intercept + filled @ self.weights
        value = line + self.errors.expected(line)
        spread = np.interp(line, self.errors.at, self.errors.spread)
        wider = np.sqrt(1 + variance / np.maximum(spread**2, 1e-12))
        low, high = (
            value + wider * (self.errors.quantile(line, p) - self.errors.expected(line))
            for p in ((1 - level) / 2, (1 + level) / 2)
        )
        ends = [np.clip(each, *self.range) for each in (value, low, high)]
        if self.whole:
            ends[1:] = _whole(ends[1], ends[2], self.range)
        empty = np.isnan(X).all(axis=1)
        return Predicted(*(np.where(empty, np.nan, each) for each in ends))


def _line(X: Array, y: Array, total: Array, items: bool) -> tuple[Normal, float, Array]:
    normal = Normal.of(X)
    return normal, *ridge(normal.completed(X)[0], y, total, items=items)


def _whole(low: Array, high: Array, range: tuple[float, float]) -> list[Array]:
    """The whole numbers in an interval; the nearest one where there is none."""
    inside = [np.ceil(low - 1e-9), np.floor(high + 1e-9)]
    none = inside[0] > inside[1]
    middle = np.clip(np.rint((low + high) / 2), *range)
    return [np.where(none, middle, each) for each in inside]


def folds_of(X: Array, y: Array, groups: Array | None = None) -> Array:
    """The fold (n,) of each participant, which does not depend on their order; groups are kept together."""
    rng = np.random.default_rng(0)
    if groups is not None:
        names, member = np.unique(groups.astype(str), return_inverse=True)
        return (rng.permutation(len(names)) % FOLDS)[member]
    order = np.lexsort(np.column_stack([np.nan_to_num(X, nan=-1), y]).T)
    fold = np.empty(len(y), dtype=int)
    fold[order] = rng.permutation(len(y)) % FOLDS
    return fold


@dataclass(frozen=True, eq=False)
class Link:
    """Equipercentile linking: the score of the target with the same rank, by kernel equating.

    Both distributions are smoothed by a normal kernel that keeps mean and variance (von Davier, Holland and
    Thayer 2004).
    """

    scores: Array
    linked: Array

    @classmethod
    def of(cls, x: Array, y: Array, at: Array, range: tuple[float, float]) -> Link:
        """Link scores `at` of the source, from those of the same participants in both."""
        grid = np.linspace(*range, 801)
        share, upto = _smoothed(x, at), _smoothed(y, grid)
        return cls(at, np.clip(np.interp(share, upto, grid), *range))

    def __call__(self, x: Array) -> Array:
        return np.interp(x, self.scores, self.linked)


def _smoothed(values: Array, at: Array) -> Array:
    """The share of smoothed values at or below each of some scores."""
    kinds, counts = np.unique(values, return_counts=True)
    mean, sd = values.mean(), max(float(values.std()), 1e-9)
    width = 0.9 * sd * len(values) ** -0.2
    keep = np.sqrt(sd**2 / (sd**2 + width**2))
    z = (at[:, None] - keep * kinds - (1 - keep) * mean) / (keep * width)
    return ndtr(z) @ (counts / len(values))
