"""A crosswalk: scores of one questionnaire predicted from the answers to another.

For participants who answered both, a score of the target is regressed on the answers to the source: on their
sum, and on single items as far as these add to it (ridge regression towards equal weights, whose strength is
chosen by generalized cross-validation). Missing answers are replaced by their expectation given the others,
and widen the interval. What predictions of held-out participants missed, at about the same predicted score
and relative to the usual error there, makes the interval.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import f as f_distribution

from icqf.data.confounds import ConfoundEncoder, category_key
from icqf.data.disclosure import SMALLEST_CATEGORY, tens
from icqf.data.questionnaire import Item, Questionnaire, StoredCodebook
from icqf.engines.threads import one_blas_thread
from icqf.errors import Advice, InputError, counted, listed
from icqf.io.model_file import damage_refused, read_crosswalk, write_crosswalk
from icqf.resampling.folds import nine_tenths

Array = NDArray[Any]
Ends = tuple[float, float, bool]  # lowest and highest score, and whether it is a whole number
LEVEL = 0.9  # of intervals
LINKABLE = 0.866  # correlation from which half of the uncertainty is gone (Dorans 2004)
WEAK = 0.5  # correlation below which a prediction is hardly better than the mean
# Root mean squared difference between groups, in standard deviations (Dorans and Holland 2000).
DIFFERENT = 0.08
FEWEST = 60  # participants who answered both questionnaires
WINDOW = 50  # fewest participants whose errors make an interval
PROBABILITIES = (0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975)  # of the errors that are kept
FOLDS = 10
SPENT = 0.5  # most degrees of freedom of a regression, per participant: beyond, its error is underestimated
_ENOUGH = 0.8  # share of the target's items that make a sum
_MOST_ROWS = 90  # of a table
_STRENGTHS = np.append(10.0 ** np.arange(-3, 3.01, 0.5), np.inf)  # candidate penalties, per mean square
_STEPS, _SETTLED = 20, 1e-4  # most steps of the iteration for missing answers, and the change that ends it
_DIGITS, _NORMAL_DIGITS, _ERROR_DIGITS, _LINK_DIGITS = 8, 5, 3, 2  # decimals that are kept


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
            before, mean = mean, filled.mean(axis=0)
            S = ((filled - mean).T @ (filled - mean) + unknown) / n
            off = (S.sum() - np.trace(S)) / max(m * (m - 1), 1)
            equal = np.full((m, m), off) + (np.trace(S) / m - off) * np.eye(m)
            S = (n * S + m * equal) / (n + m) + 1e-4 * np.eye(m)
            normal = cls(mean.round(_NORMAL_DIGITS), S.round(_NORMAL_DIGITS))
            if unknown.any() and np.abs(mean - before).max() < _SETTLED:
                break
            filled, unknown = normal.completed(X)
        return normal

    def completed(self, X: Array, weights: Array | None = None) -> tuple[Array, Array]:
        """Answers with expectations for missing ones, and the covariance (m, m) of these, summed.

        With weights (m, t), the variance (n, t) that missing answers add to weighted sums instead.
        """
        out, m = X.copy(), len(self.mean)
        added = np.zeros((m, m) if weights is None else (len(X), weights.shape[1]))
        patterns, which = np.unique(np.isnan(X), axis=0, return_inverse=True)
        for at, pattern in enumerate(patterns):
            if not pattern.any():
                continue
            rows, lacks, has = (np.flatnonzero(each) for each in (which.ravel() == at, pattern, ~pattern))
            S = self.covariance
            slopes = np.linalg.solve(S[np.ix_(has, has)], S[np.ix_(has, lacks)])
            left = S[np.ix_(lacks, lacks)] - S[np.ix_(lacks, has)] @ slopes
            out[np.ix_(rows, lacks)] = self.mean[lacks] + (X[np.ix_(rows, has)] - self.mean[has]) @ slopes
            if weights is None:
                added[np.ix_(lacks, lacks)] += len(rows) * left
            else:
                own = np.einsum("it,ij,jt->t", weights[lacks], left, weights[lacks])
                added[rows] = np.maximum(own, 0)
        return out, added


def ridge(X: Array, y: Array, total: Array, *, items: bool = True) -> tuple[float, Array]:
    """Intercept and weights (m,) for complete answers X (n, m), drawn towards those of the sum.

    `total` (m,) are the weights of the sum; without `items` the result is the regression on it.
    """
    n = len(X)
    Z = np.column_stack([np.ones(n), X @ total])
    beside = np.linalg.lstsq(Z, np.column_stack([y, X]), rcond=None)[0]
    rest, R = y - Z @ beside[:, 0], X - Z @ beside[:, 1:]
    weights = np.zeros(X.shape[1])
    if items and float(rest @ rest) > 1e-12 * float(y @ y):
        U, s, Vt = np.linalg.svd(R, full_matrices=False)
        keep = s > 1e-8 * float(np.linalg.norm(X))
        U, s, Vt = U[:, keep], s[keep], Vt[keep]
        along, square, scale = U.T @ rest, rest @ rest, (s**2).sum() / max(len(s), 1)
        errors = []
        for strength in _STRENGTHS:
            shrink = np.zeros_like(s) if np.isinf(strength) else s**2 / (s**2 + strength * scale)
            left = square - ((2 * shrink - shrink**2) * along**2).sum()
            spent = (2 + shrink.sum()) / n
            errors.append(left / (1 - spent) ** 2 if spent < SPENT else np.inf)
        best = _STRENGTHS[int(np.argmin(np.round(np.array(errors) / square, 9)))]
        if not np.isinf(best):
            weights = Vt.T @ (s / (s**2 + best * scale) * along)
    intercept, slope = beside[:, 0] - beside[:, 1:] @ weights
    return float(intercept), weights + slope * total


@dataclass(frozen=True, eq=False)
class Errors:
    """What predictions of held-out participants missed, at several predicted scores."""

    size: Array  # (3,) of errors: intercept and slope on the predicted score, and the smallest
    at: Array  # (g,)
    mean: Array  # (g,)
    spread: Array  # (g,) standard deviation
    quantiles: Array  # (g, p) at `PROBABILITIES`, of errors divided by their size

    @classmethod
    def of(cls, predicted: Array, y: Array) -> Errors:
        """From predictions of held-out participants: overlapping windows of 50 or more, in their order."""
        n = len(y)
        order = np.lexsort((y, predicted.round(_DIGITS)))
        size = min(n, max(WINDOW, -(-n // 8)))
        count = max(1 + (n > size), 2 * (n // size) - 1)  # the last one ends with the highest prediction
        starts = np.linspace(0, n - size, count).round().astype(int)
        error, rows = y - predicted, []
        usual = np.abs(error)
        line = np.linalg.lstsq(np.column_stack([np.ones(n), predicted]), usual, rcond=None)[0]
        sizes = np.append(line, max(usual.mean() / 4, 1e-6)).round(_DIGITS)
        for start in starts:
            mine = order[start : start + size]
            unit = np.sort(error[mine] / _size(sizes, predicted[mine]))
            places = np.clip(np.array(PROBABILITIES) * (size + 1) - 1, 0, size - 1)
            quantiles = np.interp(places, np.arange(size), unit)
            rows.append([predicted[mine].mean(), error[mine].mean(), error[mine].std(), *quantiles])
        table = np.array(rows).round(_ERROR_DIGITS)
        return cls(sizes, table[:, 0], table[:, 1], table[:, 2], table[:, 3:])

    def expected(self, predicted: Array) -> Array:
        """The mean error at predictions (n,)."""
        return np.interp(predicted, self.at, self.mean)

    def quantile(self, predicted: Array, probability: float) -> Array:
        """The error that a share of the participants have at most, at predictions (n,)."""
        across = [np.interp(probability, PROBABILITIES, row) for row in self.quantiles]
        return np.interp(predicted, self.at, across) * _size(self.size, predicted)


def _size(size: Array, predicted: Array) -> Array:
    """How large errors are on average, at predictions (n,)."""
    return np.maximum(size[0] + size[1] * predicted, size[2])


@dataclass(frozen=True, eq=False)
class Rule:
    """Predicts one score from complete answers, each from 0 to 1."""

    intercept: float
    weights: Array  # (m,)
    errors: Errors
    range: Ends

    def predict(self, filled: Array, variance: Array, level: float) -> Predicted:
        """Predict (n,) from completed answers (n, m) and the variance that missing ones add."""
        line, errors = self.intercept + filled @ self.weights, self.errors
        middle, spread = (np.interp(line, errors.at, each) for each in (errors.mean, errors.spread))
        wider = np.sqrt(1 + variance / np.maximum(spread**2, 1e-12))
        ends = (errors.quantile(line, p) - middle for p in ((1 - level) / 2, (1 + level) / 2))
        value, low, high = (
            np.clip(each, *self.range[:2])
            for each in (line, *(line + middle + wider * each for each in ends))
        )
        if self.range[2]:
            inside = np.ceil(low - 1e-9), np.floor(high + 1e-9)
            none, nearest = inside[0] > inside[1], np.rint((low + high) / 2)
            low, high = (np.where(none, nearest, each) for each in inside)
        return Predicted(value, low, high)


@dataclass(frozen=True, eq=False)
class Rules:
    """Predicts several scores of the target from answers to the source, each from 0 to 1."""

    normal: Normal
    rules: tuple[Rule, ...]

    @classmethod
    def fit(
        cls,
        X: Array,
        Y: Array,
        ranges: Sequence[Ends],
        *,
        total: Array,
        items: bool = True,
        groups: Array | None = None,
    ) -> Rules:
        """From answers (n, m) and scores (n, t) of participants who have both, by `ridge`."""
        normal = Normal.of(X)
        filled, _ = normal.completed(X)
        fold, missed = folds_of(X, Y, groups), np.empty(Y.shape)
        for each in np.unique(fold):
            out = fold == each
            intercepts, weights = _lines(filled[~out], Y[~out], total, items)
            missed[out] = intercepts + filled[out] @ weights
        intercepts, weights = _lines(filled, Y, total, items)
        own = zip(intercepts, weights.T, missed.T, Y.T, ranges, strict=True)
        return cls(normal, tuple(Rule(float(a), b, Errors.of(at, y), ends) for a, b, at, y, ends in own))

    def predict(self, X: Array, level: float = LEVEL) -> list[Predicted]:
        """Predict each score from answers (n, m); NaN for participants without any."""
        empty, found = np.isnan(X).all(axis=1), []
        filled, added = self.normal.completed(X, np.column_stack([rule.weights for rule in self.rules]))
        for rule, variance in zip(self.rules, added.T, strict=True):
            parts = rule.predict(filled, variance, level)
            found.append(Predicted(*(np.where(empty, np.nan, each) for each in parts)))
        return found


def _lines(filled: Array, Y: Array, total: Array, items: bool) -> tuple[Array, Array]:
    """Intercepts (t,) and weights (m, t) of the regressions."""
    found = [ridge(filled, y, total, items=items) for y in Y.T]
    return np.array([each for each, _ in found]), np.column_stack([each for _, each in found])


def folds_of(X: Array, Y: Array, groups: Array | None = None) -> Array:
    """The fold (n,) of each participant, which does not depend on their order; groups are kept together."""
    rng = np.random.default_rng(0)
    if groups is not None:
        names, member = np.unique(groups.astype(str), return_inverse=True)
        return np.asarray((rng.permutation(len(names)) % FOLDS)[member])
    order = np.lexsort(np.column_stack([np.nan_to_num(X, nan=-1), Y]).T)
    fold = np.empty(len(Y), dtype=int)
    fold[order] = rng.permutation(len(Y)) % FOLDS
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
    def of(cls, x: Array, y: Array, at: Array, ends: Ends) -> Link:
        """Link scores `at` of the source, from those of the same participants in both."""
        grid = np.linspace(*ends[:2], 801)
        share, upto = _smoothed(x, at), _smoothed(y, grid)
        return cls(at, np.clip(np.interp(share, upto, grid), *ends[:2]).round(_LINK_DIGITS))

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


@one_blas_thread()
def learn_crosswalk(
    source: Questionnaire,
    target: Questionnaire,
    *,
    names: tuple[str, str] = ("source", "target"),
    scores: pd.DataFrame | None = None,
    by: pd.DataFrame | None = None,
) -> Crosswalk:
    """Learn to predict scores of one questionnaire from the answers to another.

    Parameters
    ----------
    source, target : Questionnaire
        Answers of participants, matched by id; those who answered both are used.
    names : (str, str)
        What the two are called.
    scores : DataFrame of shape (n, k), optional
        Further scores of the target by participant id, such as those of a fitted model, from 0 to 1.
    by : DataFrame of shape (n, c), optional
        Columns by participant id, such as sex and age, by which predictions are compared.

    Returns
    -------
    Crosswalk

    Notes
    -----
    A participant's sum of the target counts if at least 80 % of its items were answered; missing answers
    are taken to be as high in their ranges as the others. Groups of `source` are held out together. A random
    tenth of the participants is left out, so that two crosswalks do not reveal who is in only one of them.

    Examples
    --------
    >>> from icqf.analyses import learn_crosswalk
    >>> from icqf.datasets import load_help_battery
    >>> parts = load_help_battery().instruments
    >>> made = learn_crosswalk(parts["SF-36"], parts["CES-D"], names=("sf36", "cesd"))
    >>> made.predict(parts["SF-36"]).columns.tolist()
    ['cesd_sum', 'cesd_sum_low', 'cesd_sum_high']
    """
    source, target = source.with_observed_ranges(), target.with_observed_ranges()
    X, total, low = _unit(source)
    sums, ends = _sums(target)
    known = source.answers.index.intersection(sums.dropna().index, sort=False)
    if scores is not None:
        known = known.intersection(scores.dropna().index, sort=False)
    known = known[np.flatnonzero(~np.isnan(X[source.answers.index.get_indexer(known)]).all(axis=1))]
    _require_enough(source, target, names, n_known := len(known))
    X = X[source.answers.index.get_indexer(known)]
    answered = (~np.isnan(X)).sum(axis=0)
    if answered.min() < SMALLEST_CATEGORY:
        raise InputError(
            f"Item {source.items[answered.argmin()].name!r} was answered by fewer than {SMALLEST_CATEGORY} "
            "of those who answered both: the crosswalk would reveal their answers.",
            code="few-answers",
            remedy="Leave the item out.",
        )
    Y = sums.loc[known].to_numpy()[:, None]
    columns, ranges = [f"{names[1]}_sum"], [ends]
    if scores is not None:
        Y = np.hstack([Y, scores.loc[known].to_numpy(dtype=float)])
        columns += [f"{names[1]}_{name}" for name in scores.columns]
        ranges += [(0.0, 1.0, False)] * scores.shape[1]
    for name, y in zip((names[0], *columns), (X @ total, *Y.T), strict=False):
        if np.nanstd(y) < 1e-9:
            raise InputError(
                f"All participants who answered both have the same score {name!r}, so nothing can be "
                "predicted from it or about it.",
                code="constant",
                remedy="Check that the right columns and missing codes were read.",
            )
    drawn = nine_tenths(np.column_stack([np.nan_to_num(X, nan=-1), Y]).round(6))
    X, Y, known = X[drawn], Y[drawn], known[drawn]
    groups = None if source.groups is None else source.groups.loc[known].to_numpy()
    if groups is not None and len({*groups}) < FOLDS:
        raise InputError(
            f"Families or sites are held out together, and there are only {len({*groups})}; a crosswalk "
            f"needs {FOLDS}.",
            code="few-groups",
            remedy=Advice("Leave out {groups}.", typed="Leave out --groups; --by compares groups."),
        )
    fitted = Rules.fit(X, Y, ranges, total=total, groups=groups)
    at = low + fitted.normal.completed(X)[0] @ total
    span = (low, low + float(total.sum()))
    r = float(np.corrcoef(at, Y[:, 0])[0, 1])
    held = held_out(X, Y, ranges, total=total, low=low, groups=groups)
    few, ordered = int(np.clip(len(at) // 50, 3, SMALLEST_CATEGORY)), np.sort(at)
    return Crosswalk(
        *names,
        items=tuple(replace(i, min=float(i.min or 0), max=float(i.max or 0)) for i in source.items),
        scores=tuple(columns),
        rules=fitted,
        by_sum=_by_sum((at - low) / total.sum(), Y, ranges, groups),
        link=Link.of(at, Y[:, 0], np.linspace(*span, 101), ends) if r >= LINKABLE else None,
        shown=(float(np.ceil(ordered[few - 1])), float(np.floor(ordered[-few]))),
        correlation=round(r, 3),
        evidence=tuple(evidence(held, Y, columns, folds_of(X, Y, groups))),
        groups=() if by is None else tuple(differences(held["answers"][0], Y[:, 0], by.reindex(known))),
        n_participants=tens(n_known),
    )


def _by_sum(share: Array, Y: Array, ranges: Sequence[Ends], groups: Array | None) -> Rules:
    """The regression of the sum, the first score, on the sum of the source, from 0 to 1."""
    return Rules.fit(share[:, None], Y[:, :1], ranges[:1], total=np.ones(1), items=False, groups=groups)


def held_out(
    X: Array, Y: Array, ranges: Sequence[Ends], *, total: Array, low: float, groups: Array | None = None
) -> dict[str, list[Predicted]]:
    """Predictions of participants who were held out of everything, by method, one for each score.

    "answers" is the crosswalk; of the sum alone, "sum" is its regression on the sum of the source, and
    "rank" equipercentile linking, without intervals.
    """
    n, fold = len(Y), folds_of(X, Y, groups)
    made = {
        name: [Predicted(*np.full((3, n), np.nan)) for _ in range(Y.shape[1] if name == "answers" else 1)]
        for name in ("answers", "sum", "rank")
    }
    for each in np.unique(fold):
        out = fold == each
        own = None if groups is None else groups[~out]
        fitted = Rules.fit(X[~out], Y[~out], ranges, total=total, groups=own)
        sums = fitted.normal.completed(X)[0] @ total
        share = sums / total.sum()
        linked = Link.of(low + sums[~out], Y[~out, 0], low + sums[out], ranges[0]).linked
        parts = {
            "answers": fitted.predict(X[out]),
            "sum": _by_sum(share[~out], Y[~out], ranges, own).predict(share[out, None]),
            "rank": [Predicted(linked, linked * np.nan, linked * np.nan)],
        }
        for name, found in parts.items():
            for whole, part in zip(made[name], found, strict=True):
                for to, values in zip(whole, part, strict=True):
                    to[out] = values
    return made


@one_blas_thread()
def evidence(
    held: Mapping[str, Sequence[Predicted]], Y: Array, columns: Sequence[str], fold: Array
) -> list[dict[str, Any]]:
    """How near held-out predictions came: one row for each score and method.

    Correlations are within folds: across folds, the mean of the others is low where a fold is high.
    """
    rows, among = [], np.bincount(fold)[fold]
    for method, found in held.items():
        for name, y, (value, low, high) in zip(columns, Y.T, found, strict=False):
            inside = np.where(np.isnan(low), np.nan, (low <= y) & (y <= high))
            thirds = np.array_split(inside[np.argsort(value, kind="stable")], 3)
            a, b = (each - np.bincount(fold, each)[fold] / among for each in (value, y))
            r = np.corrcoef(a, b)[0, 1] if min(np.ptp(a), np.ptp(b)) > 1e-9 else 0.0
            numbers = {
                "correlation": r,
                "error": np.abs(value - y).mean(),
                "usual_error": np.abs(y - np.median(y)).mean(),
                "held": inside.mean(),
                **{f"held_{third}": part.mean() for third, part in zip(_THIRDS, thirds, strict=True)},
                "width": (high - low).mean(),
            }
            rounded = {key: None if np.isnan(x) else round(float(x), 3) for key, x in numbers.items()}
            rows.append({"score": name, "method": method, **rounded})
    return rows


_THIRDS = ("low", "middle", "high")


def differences(held: Predicted, y: Array, by: pd.DataFrame) -> list[dict[str, Any]]:
    """Whether predictions of the sum err alike in groups: one row for each column.

    In each group, the error is regressed on the prediction. RMSD is the root mean squared distance of these
    lines from the line for all, in standard deviations of the sum; p is that of their F test.
    """
    rows: list[dict[str, Any]] = []
    value, error = held.value, y - held.value
    for name in by.columns:
        label = _labels(by[name])
        sizes = label.value_counts()
        large = sizes.index[sizes >= SMALLEST_CATEGORY].sort_values()
        if len(large) < 2:
            continue
        used = label.isin(large).to_numpy()
        member = (label[used].to_numpy()[:, None] == large.to_numpy()).astype(float)
        x, e = value[used], error[used]
        alike = np.column_stack([np.ones(len(x)), x])
        apart = np.hstack([member, member * x[:, None]])
        fitted = [D @ np.linalg.lstsq(D, e, rcond=None)[0] for D in (alike, apart)]
        free = (apart.shape[1] - 2, len(x) - apart.shape[1])
        left = [float(((e - each) ** 2).sum()) for each in fitted]
        F = max(left[0] - left[1], 0) / free[0] / max(left[1] / free[1], 1e-12)
        rows.append(
            {
                "column": str(name),
                "rmsd": round(float(np.sqrt(((fitted[0] - fitted[1]) ** 2).mean()) / y.std()), 3),
                "p": round(float(f_distribution.sf(F, *free)), 4),
                "errors": {str(g): round(float(e[member[:, i] > 0].mean()), 2) for i, g in enumerate(large)},
            }
        )
    return rows


def _labels(values: pd.Series) -> pd.Series:
    """Categories as texts; numbers with more than five values as below or above their median."""
    numbers = pd.to_numeric(values, errors="coerce")
    if numbers.notna().sum() == values.notna().sum() and numbers.nunique() > 5:
        middle = float(np.rint(numbers.median()))
        words = np.where(numbers < middle, f"below {middle:g}", f"from {middle:g}")
        return pd.Series(words, values.index, dtype=object).where(numbers.notna())
    return values.map(category_key, na_action="ignore")


def _unit(questionnaire: Questionnaire) -> tuple[Array, Array, float]:
    """Answers (n, m) from 0 to 1 in their direction, the widths (m,) of their ranges, and the lowest sum."""
    low, high = questionnaire.ranges().to_numpy().T
    return (
        (questionnaire.keyed_answers().to_numpy(dtype=float) - low) / (high - low),
        high - low,
        float(low.sum()),
    )


def _sums(questionnaire: Questionnaire) -> tuple[pd.Series, Ends]:
    """The sum of each participant who answered most items, its range, and whether it is a whole number."""
    X, width, low = _unit(questionnaire)
    seen = ~np.isnan(X)
    mean = np.where(seen, X, 0).sum(axis=1) / np.maximum(seen.sum(axis=1), 1)
    sums = low + np.where(seen, X, mean[:, None]) @ width
    answers, ranges = questionnaire.answers.to_numpy(dtype=float), questionnaire.ranges().to_numpy()
    whole = bool((answers[seen] == np.rint(answers[seen])).all() and (ranges == np.rint(ranges)).all())
    sums = np.where(seen.mean(axis=1) >= _ENOUGH, np.rint(sums) if whole else sums, np.nan)
    return pd.Series(sums, questionnaire.answers.index), (low, low + float(width.sum()), whole)


def _require_enough(source: Questionnaire, target: Questionnaire, names: tuple[str, str], n: int) -> None:
    if n >= FEWEST:
        return
    one, other = (listed(each.answers.index, most=3) for each in (source, target))
    who = counted(n, "participant") if n else "No participant"
    ids = f" (their ids are {one} and {other})" if n == 0 else ""
    raise InputError(
        f"{who} answered both {names[0]!r} and most items of {names[1]!r}{ids}; a crosswalk needs {FEWEST}.",
        code="few-shared",
        remedy="Use the same ids, written the same way, for both, and a study in which many answered both.",
        count=n,
    )


@dataclass(frozen=True, eq=False)
class Crosswalk:
    """Predicts scores of one questionnaire from the answers to another; made by `learn_crosswalk`.

    Parameters
    ----------
    source, target : str
        What the two are called.
    items : tuple of Item
        The items of the source, with their ranges.
    scores : tuple of str
        Names of the scores of the target; the sum comes first.
    rules : Rules
        How the scores are predicted.
    by_sum : Rules
        How the sum is predicted from the sum of the source alone, for the table.
    link : Link or None
        The sum of the same rank; None if the sums correlate below .866.
    shown : (float, float)
        Lowest and highest sum of the source in the table; few participants were beyond.
    correlation : float
        Of the two sums.
    evidence, groups : tuple of dict
        How near predictions of held-out participants came, and how they differ between groups.
    n_participants : int
        Participants who answered both, rounded to ten.

    Examples
    --------
    >>> from icqf.analyses import learn_crosswalk
    >>> from icqf.datasets import load_help_battery
    >>> parts = load_help_battery().instruments
    >>> made = learn_crosswalk(parts["SF-36"], parts["CES-D"], names=("sf36", "cesd"))
    >>> made.n_participants, made.correlation
    (470, 0.687)
    """

    source: str
    target: str
    items: tuple[Item, ...]
    scores: tuple[str, ...]
    rules: Rules
    by_sum: Rules
    link: Link | None
    shown: tuple[float, float]
    correlation: float
    evidence: tuple[dict[str, Any], ...]
    groups: tuple[dict[str, Any], ...]
    n_participants: int

    def predict(self, answers: Any, level: float = LEVEL) -> pd.DataFrame:
        """Predict all scores, each with the ends of its interval.

        Parameters
        ----------
        answers : Questionnaire or DataFrame
            Answers to the items of the source, by participant id; NaN where missing.
        level : float
            Probability of the intervals, from 0.5 to 0.95.

        Returns
        -------
        DataFrame
            For each score, ``name``, ``name_low`` and ``name_high``; NaN for participants without answers.
            ``NAME_sum_linked`` is the sum of the same rank, for participants who answered all items, if the
            two questionnaires may be linked.
        """
        if not 0.5 <= level <= 0.95:
            raise InputError(f"level must be from 0.5 to 0.95 for a crosswalk, not {level:g}.")
        names = self.item_names
        if not isinstance(answers, Questionnaire):
            absent = [name for name in names if name not in answers.columns]
            if absent:
                raise InputError(f"The answers lack items of {self.source!r}: {listed(absent)}.")
            answers = Questionnaire(answers[names], self.items)
        low, width = self._ends
        X = (answers.keyed_answers()[names].to_numpy(dtype=float) - low) / width
        out: dict[str, Array] = {}
        for name, found in zip(self.scores, self.rules.predict(X, level), strict=True):
            out |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
            if self.link is not None and name == self.scores[0]:
                out[f"{name}_linked"] = self.link(low.sum() + X @ width)
        return pd.DataFrame(out, index=answers.answers.index)

    @property
    def _ends(self) -> tuple[Array, Array]:
        """The lowest answers and the widths of the ranges (m,)."""
        low, high = np.array([(item.min, item.max) for item in self.items], dtype=float).T
        return low, high - low

    @property
    def item_names(self) -> list[str]:
        """Names of the items of the source."""
        return [item.name for item in self.items]

    def table(self, level: float = LEVEL) -> pd.DataFrame:
        """Predict the sum of the target from that of the source alone: one row for each sum.

        Sums that few participants reached are left out.
        """
        (low, width), (first, last) = self._ends, self.shown
        step = max(1.0, np.ceil((last - first + 1) / _MOST_ROWS))
        at = np.arange(first, last + 1e-9, step)
        (found,) = self.by_sum.predict(((at - low.sum()) / width.sum())[:, None], level)
        columns = {f"{self.source}_sum": at, "predicted": found.value, "low": found.low, "high": found.high}
        linked = {} if self.link is None else {"linked": self.link(at)}
        return pd.DataFrame(columns | linked).set_index(f"{self.source}_sum")

    @property
    def item_range_(self) -> pd.DataFrame:
        """The ranges of the items."""
        table = [(item.min, item.max) for item in self.items]
        return pd.DataFrame(table, index=pd.Index(self.item_names, name="item"), columns=["min", "max"])

    @property
    def codebook_(self) -> StoredCodebook:
        """The items as in a codebook."""
        return StoredCodebook(self.items)

    @property
    def confound_encoder_(self) -> ConfoundEncoder:
        """No confounds."""
        return ConfoundEncoder()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the crosswalk to a file, which holds nothing about single participants."""
        write_crosswalk(path, self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Crosswalk:
        """Read a file written by `save`."""
        content = read_crosswalk(path)
        with damage_refused(path):
            if content is None:
                raise ValueError("it is not a crosswalk")
            return cls.from_dict(content)

    def to_dict(self) -> dict[str, Any]:
        """Return the crosswalk as plain values."""
        stored: dict[str, Any] = _plain(self)
        return stored

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Crosswalk:
        """Return the crosswalk that `to_dict` described; anything else is a ValueError."""
        items = tuple(
            Item(
                **each
                | {"missing_codes": tuple(each["missing_codes"]), "labels": tuple(map(tuple, each["labels"]))}
            )
            for each in stored["items"]
        )
        made = cls(
            **dict(stored)
            | {name: tuple(stored[name]) for name in ("scores", "shown", "evidence", "groups")}
            | {"items": items, "link": None if stored["link"] is None else Link(**_arrays(stored["link"]))}
            | {"rules": _rules_in(stored["rules"], len(items)), "by_sum": _rules_in(stored["by_sum"], 1)}
        )
        texts = (made.source, made.target, *made.scores)
        right = [
            all(isinstance(each, str) and each for each in texts) and len({*made.scores}) == len(made.scores),
            len({*made.item_names}) == len(items) > 0 and all(item.declared for item in items),
            len(made.scores) == len(made.rules.rules) and len(made.by_sum.rules) == 1,
            made.link is None or made.link.scores.shape == made.link.linked.shape == (101,),
            len(made.shown) == 2 and max(map(abs, made.shown)) < 1e6 and type(made.n_participants) is int,
        ]
        if not all(right) or made.to_dict() != stored:
            raise ValueError("it does not hold a crosswalk")
        return made


def _plain(value: Any) -> Any:
    """Arrays and records as lists and dictionaries."""
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, np.ndarray):
        return np.round(value, _DIGITS).tolist()
    return list(map(_plain, value)) if isinstance(value, tuple) else value


def _arrays(stored: Mapping[str, Any]) -> dict[str, Array]:
    return {name: np.array(each, dtype=float) for name, each in stored.items()}


def _rules_in(stored: Mapping[str, Any], m: int) -> Rules:
    """The rules in a file, for m items."""
    normal, rules = Normal(**_arrays(stored["normal"])), []
    sound = bool(normal.mean.shape == (m,) and normal.covariance.shape == (m, m))
    for each in stored["rules"]:
        errors, ends = Errors(**_arrays(each["errors"])), tuple(each["range"])
        rules.append(Rule(each["intercept"], np.array(each["weights"], dtype=float), errors, ends))
        g = (len(errors.at),)
        sound &= errors.size.shape == (3,) and errors.size[2] > 0
        sound &= rules[-1].weights.shape == (m,) and g == errors.mean.shape == errors.spread.shape != (0,)
        sound &= errors.quantiles.shape == (*g, len(PROBABILITIES)) and bool((np.diff(errors.at) >= 0).all())
        sound &= len(ends) == 3 and ends[0] < ends[1] and type(ends[2]) is bool
    if not sound or not rules:
        raise ValueError("its rules are not valid")
    return Rules(normal, tuple(rules))
