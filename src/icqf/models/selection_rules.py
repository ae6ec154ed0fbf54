"""From cross-validated errors to a choice, and how certain it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from icqf.data.settings import RULES
from icqf.errors import InputError

if TYPE_CHECKING:
    from icqf.baselines.retention import FactorCount

_DRAWS = 2000
# Errors vary between divisions into folds about 0.4 times as much (in variance) as independent folds would,
# as those of one division hide every answer once (median of simulated populations and public studies).
# That counts as three divisions when the variance between them is estimated.
_BETWEEN_DIVISIONS, _PRIOR = 0.4, 3
# Errors vary more between samples than the participants of one tell, as the fits differ as well: in variance
# 1.5 times, learned by `icqf reproduce calibration --statement samples`. The ratio itself is uncertain, hence
# the degrees of freedom.
_BETWEEN_SAMPLES, _FREEDOM = 1.5, 8
# Of the lowest error: fits that are compared are iterated no further, so that errors this close are the same.
# In pure noise all numbers of factors come to the same model, and the largest could win by rounding.
SAME = 1e-4


@dataclass(frozen=True)
class SelectionRule:
    """A rule that chooses the number of factors."""

    # what the chosen number does, to follow "the number of factors that": messages, reports and the
    # Methods text use it
    description: str
    # called with the errors of all candidates (times, candidates), each line a choice of its own, their
    # numbers of factors, the error (times, 1) that still counts as close to the lowest, and what else the
    # rule looks at (of each candidate; None where it looks at nothing); returns numbers of factors (times,)
    number: Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None], np.ndarray]
    # the table ("stability" or "replicable") and its column that the rule needs in addition to the errors
    looks_at: tuple[str, str] | None = None


def _lowest(errors: np.ndarray, ks: np.ndarray, close: np.ndarray, merit: np.ndarray | None) -> np.ndarray:
    return _smallest(ks, errors <= errors.min(axis=1, keepdims=True) * (1 + SAME))


def _fewest(errors: np.ndarray, ks: np.ndarray, close: np.ndarray, merit: np.ndarray | None) -> np.ndarray:
    return _smallest(ks, errors <= close)


def _best_close(
    errors: np.ndarray, ks: np.ndarray, close: np.ndarray, merit: np.ndarray | None
) -> np.ndarray:
    return _most(ks, merit, errors <= close)


def _best_below(
    errors: np.ndarray, ks: np.ndarray, close: np.ndarray, merit: np.ndarray | None
) -> np.ndarray:
    return _most(ks, merit, ks <= ks[errors.argmin(axis=1)][:, None])


def _smallest(ks: np.ndarray, among: np.ndarray) -> np.ndarray:
    return np.where(among, ks, ks.max()).min(axis=1)


def _most(ks: np.ndarray, merit: np.ndarray | None, among: np.ndarray) -> np.ndarray:
    """The largest number of factors among those with the highest merit."""
    worth = np.where(among, np.asarray(merit, dtype=float), np.nan)
    return np.where(worth == np.nanmax(worth, axis=1, keepdims=True), ks, 0).max(axis=1)


MIN = SelectionRule("predicts hidden answers best (lowest mean squared error)", _lowest)
ONE_SE = SelectionRule(
    "is the smallest whose mean squared error of hidden answers is within one standard error of the lowest",
    _fewest,
)
STABLE = SelectionRule(
    "gives the best agreement between halves of the sample, among those whose mean squared error of hidden "
    "answers is within one standard error of the lowest",
    _best_close,
    ("stability", "agreement"),
)
REPLICABLE = SelectionRule(
    "has the most factors that an independent study is expected to find again (predicted from fits to "
    "resampled participants), each factor costing 0.3, among those up to the one with the lowest mean "
    "squared error of hidden answers",
    _best_below,
    ("replicable", "gain"),
)


@dataclass(frozen=True, eq=False)
class Noise:
    """How far the errors of some candidates would differ elsewhere, from those of the best one."""

    columns: np.ndarray  # positions of the candidates
    covariance: np.ndarray  # of their errors, less that of the best one
    freedom: float  # degrees of freedom from which it is known


class Evidence:
    """What the fits of a search say about its candidates: errors by fold and by block of participants.

    Candidates may have been fitted in some of the folds only. They are then compared where they were: the
    pooled error of a candidate is that of the best one in all folds, plus their mean difference in the folds
    of the candidate.

    Parameters
    ----------
    results : DataFrame
        One row per fit, such as `ICQFCV.cv_results_`.
    blocks : mapping, optional
        By (repeat, fold, n_components, beta): sums of squared errors and of weights (2, blocks) by block of
        participants. Without it, standard errors come from how folds differ.
    """

    def __init__(self, results: pd.DataFrame, blocks: Mapping[Any, np.ndarray] | None = None) -> None:
        results = results[results["weight"] > 0]  # a fold that hides no observed answer tells nothing
        places, row = np.unique(results[["repeat", "fold"]].to_numpy(int), axis=0, return_inverse=True)
        candidates, column = np.unique(
            results[["n_components", "beta"]].to_numpy(float), axis=0, return_inverse=True
        )
        self.folds = [(int(repeat), int(fold)) for repeat, fold in places]
        self.ks, self.betas = candidates[:, 0].astype(int), candidates[:, 1]
        self._errors = np.full((len(places), len(candidates)), np.nan)  # NaN where one was not fitted
        row, column = row.ravel(), column.ravel()  # NumPy 2.0 gives them two dimensions
        self._errors[row, column] = results["error"]
        self._weights = np.empty(len(places))
        self._weights[row] = results["weight"]
        self._blocks = blocks
        self._seen = ~np.isnan(self._errors)
        self.n_folds = self._seen.sum(axis=0)
        self.most = self.n_folds == self.n_folds.max()  # the candidates that were fitted in all folds
        means = np.where(self.most, self._pooled(np.arange(len(self.ks))), np.inf)
        self.best = int(means.argmin())
        differences = self._errors - self._errors[:, [self.best]]
        self._differences = np.where(self._seen, differences, 0.0)
        self.errors = means[self.best] + self._weights @ self._differences / (self._weights @ self._seen)

    def _pooled(self, columns: np.ndarray) -> np.ndarray:
        """Mean errors of candidates over their own folds, which count by weight."""
        seen = self._seen[:, columns]
        return self._weights @ np.where(seen, self._errors[:, columns], 0.0) / (self._weights @ seen)

    @cached_property
    def standard_errors(self) -> np.ndarray:
        """Standard error of each candidate's error: how participants differ, or folds where that is unknown.

        Repeats divide the same answers anew, so that they add no participants: it is their mean variance.
        """
        variances = np.zeros((0, len(self.ks)))
        for rows in self._repeats:
            variance = np.full(len(self.ks), np.nan)
            for column in np.flatnonzero(self._seen[rows].any(axis=0)):
                mine = rows[self._seen[rows, column]]
                sums = self._sums(mine, np.array([column]))
                if sums is not None:
                    variance[column] = sums[0, 0]
                else:
                    variance[column] = self._errors[mine, column].var(ddof=len(mine) > 1) / len(mine)
            variances = np.vstack([variances, variance])
        known = ~np.isnan(variances)
        return np.sqrt(np.where(known, variances, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1))

    @property
    def _repeats(self) -> list[np.ndarray]:
        """The positions of each repeat's folds."""
        number = np.array([repeat for repeat, _ in self.folds])
        return [np.flatnonzero(number == repeat) for repeat in np.unique(number)]

    def _sums(self, rows: np.ndarray, columns: np.ndarray, less: int | None = None) -> np.ndarray | None:
        """Covariance of candidates' errors in folds of one repeat, from how blocks of participants differ.

        With `less`, of what they exceed that candidate's by. None where blocks are not known.
        """
        if self._blocks is None:
            return None
        found = []
        for column in (*columns, *([] if less is None else [less])):
            candidate = self.ks[column], self.betas[column]
            keys = [(*self.folds[row], *candidate) for row in rows]
            if any(key not in self._blocks for key in keys):
                return None
            squares, weights = np.sum([self._blocks[key] for key in keys], axis=0)
            found.append((squares - weights * squares.sum() / weights.sum()) / weights.sum())
        gaps = np.array(found)
        gaps = gaps if less is None else gaps[:-1] - gaps[-1]
        n = gaps.shape[1]
        return gaps @ gaps.T * n / max(n - 1, 1)

    def table(self) -> pd.DataFrame:
        """Of each candidate: error, standard error and number of folds."""
        return pd.DataFrame(
            {
                "n_components": self.ks,
                "beta": self.betas,
                "error": self.errors,
                "standard_error": self.standard_errors,
                "n_folds": self.n_folds,
            }
        )

    def between_divisions(self) -> Noise:
        """Errors of the candidates fitted in all folds, had the answers been divided anew, as often."""
        columns = np.flatnonzero(self.most)
        parts = [self._differences[rows][:, columns] for rows in self._repeats]
        sizes = [self._weights[rows] for rows in self._repeats]
        means = np.array(
            [np.average(part, axis=0, weights=size) for part, size in zip(parts, sizes, strict=True)]
        )
        own = [part - part.mean(axis=0) for part in parts]
        free = sum(len(part) - 1 for part in own)
        within = sum(part.T @ part for part in own) / max(free, 1) / np.mean([len(part) for part in own])
        apart = means - means.mean(axis=0)
        one = (_PRIOR * _BETWEEN_DIVISIONS * within + apart.T @ apart) / (_PRIOR + len(means) - 1)
        return Noise(columns, one / len(means), _PRIOR + len(means) - 1)

    def between_samples(self, ratio: float = _BETWEEN_SAMPLES) -> Noise:
        """Errors of the candidates fitted in all folds of the first repeat, had as many others been asked."""
        noise = self.between_participants()
        return replace(noise, covariance=ratio * noise.covariance)

    def between_participants(self) -> Noise:
        """The same, had the fits nevertheless been those found here."""
        rows = self._repeats[0]
        columns = np.flatnonzero(self._seen[rows].all(axis=0))
        found = self._sums(rows, columns, self.best)
        if found is None:
            own = self._differences[rows][:, columns]
            own = own - own.mean(axis=0)
            found = own.T @ own / max(len(own) - 1, 1) / len(own)
        return Noise(columns, found, _FREEDOM)


def best_row(table: pd.DataFrame) -> tuple[int, float, float]:
    """(n_components, beta, error) with the lowest error."""
    table = _most_fitted(table)
    at = int(table["error"].to_numpy().argmin())
    row = table.iloc[at]
    return int(row["n_components"]), float(row["beta"]), float(row["error"])


def best_by_k(table: pd.DataFrame) -> pd.DataFrame:
    """For each number of factors, the row of its best penalty, of those fitted in most folds."""
    most = pd.concat([_most_fitted(part) for _, part in table.groupby("n_components")])
    return table.loc[most.groupby("n_components")["error"].idxmin()].reset_index(drop=True)


def _most_fitted(table: pd.DataFrame) -> pd.DataFrame:
    """The candidates that were fitted in most folds; the others were given up on the way."""
    return table[table["n_folds"] == table["n_folds"].max()] if "n_folds" in table else table


def best_of_each(table: pd.DataFrame) -> list[tuple[int, float]]:
    """Each number of factors with its best penalty."""
    rows = best_by_k(table)
    return list(zip(rows["n_components"].tolist(), rows["beta"].tolist(), strict=True))


def choose(
    table: pd.DataFrame,
    rule: str,
    *,
    stability: pd.DataFrame | None = None,
    replicable: pd.DataFrame | None = None,
    within: float | None = None,
) -> tuple[int, float]:
    """The (n_components, beta) a rule of `RULES` picks.

    Close to the lowest error is what lies within one standard error of it, or within the share `within`.
    """
    table = _most_fitted(table)
    ks, spread = table["n_components"].to_numpy(), table["standard_error"].to_numpy()
    merit = _merit(rule, ks, stability, replicable)
    errors = table["error"].to_numpy()
    (at,) = _picks(errors[None], spread[[errors.argmin()]], ks, RULES.load(rule), merit, within)
    return int(ks[at]), float(table["beta"].iloc[at])


@dataclass(frozen=True, eq=False)
class Choice:
    """How often each candidate would be chosen, if the folds or the participants were others."""

    shares: pd.DataFrame  # columns n_components, beta and share, most frequent first

    def by_k(self) -> pd.Series:
        """Share of each number of factors, whatever its penalty, most frequent first."""
        return self.shares.groupby("n_components")["share"].sum().sort_values(ascending=False)

    def __str__(self) -> str:
        parts = [f"{k} in {round(share, 2):.0%}" for k, share in self.by_k().items() if share >= 0.005]
        return "k = " + ", ".join(parts)

    __repr__ = __str__


def count_of(
    errors: pd.DataFrame,
    rule: str,
    k: int,
    choice: Choice,
    stability: pd.DataFrame | None,
    replicable: pd.DataFrame | None,
) -> FactorCount:
    """The number of factors that a rule chose, with its curve and reason."""
    from icqf.baselines.retention import FactorCount

    curve = best_by_k(errors)
    if stability is not None:
        curve = curve.merge(stability[["n_components", "agreement"]], on="n_components")
    if replicable is not None:
        curve = curve.merge(replicable[["n_components", "found", "gain"]], how="left")
    return FactorCount(
        "Blockwise cross-validation",
        k,
        curve,
        f"this number {RULES.load(rule).description}; other samples of this size: {choice}.",
        value="error",
        better="lower",
        spread="standard_error",
    )


def choice_frequencies(
    evidence: Evidence, noise: Noise, rule: str, *, rng: np.random.Generator, **looked_at: Any
) -> Choice:
    """How often each candidate would be chosen in other folds, or by another sample."""
    picks, _ = draws(evidence, noise, rule, rng=rng, **looked_at)
    share = np.bincount(picks, minlength=len(evidence.ks)) / len(picks)
    shares = pd.DataFrame({"n_components": evidence.ks, "beta": evidence.betas, "share": share})
    shares = shares[shares["share"] > 0].sort_values("share", ascending=False, kind="stable")
    return Choice(shares.reset_index(drop=True))


def draws(
    evidence: Evidence,
    noise: Noise,
    rule: str,
    *,
    rng: np.random.Generator,
    stability: pd.DataFrame | None = None,
    replicable: pd.DataFrame | None = None,
    within: float | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """What a rule would pick elsewhere, many times: the candidates picked, and those with the lowest error.

    Errors found elsewhere differ from those found here by the noise of both.
    """
    columns = noise.columns
    values, vectors = np.linalg.eigh(noise.covariance)
    apart = rng.normal(size=(_DRAWS, len(columns))) @ (vectors * np.sqrt(np.maximum(2 * values, 0))).T
    apart /= np.sqrt(rng.chisquare(noise.freedom, (_DRAWS, 1)) / noise.freedom)
    errors, ks = np.maximum(evidence.errors[columns] + apart, 0.0), evidence.ks[columns]
    lowest = errors.argmin(axis=1)
    spreads = evidence.standard_errors[columns][lowest]
    merit, chosen_by = _merit(rule, ks, stability, replicable), RULES.load(rule)
    picks = _picks(errors, spreads, ks, chosen_by, merit, within)
    return columns[picks], columns[lowest]


def level_with(evidence: Evidence, k: int) -> tuple[int, ...]:
    """The numbers of factors next to k whose error differs from that of k by less than its standard error."""
    noise, found = evidence.between_samples(), []
    best = {
        int(each): own[evidence.errors[own].argmin()]
        for each in np.unique(evidence.ks[noise.columns])
        for own in [noise.columns[evidence.ks[noise.columns] == each]]
    }
    for other in (k - 1, k + 1):
        if k in best and other in best:
            pair = np.searchsorted(noise.columns, [best[k], best[other]])
            (a, b), (_, c) = noise.covariance[np.ix_(pair, pair)]
            if abs(evidence.errors[best[other]] - evidence.errors[best[k]]) < np.sqrt(max(a + c - 2 * b, 0)):
                found.append(other)
    return tuple(found)


def _merit(
    rule: str, ks: np.ndarray, stability: pd.DataFrame | None, replicable: pd.DataFrame | None
) -> np.ndarray | None:
    """Of each candidate, what the rule looks at besides the error; NaN where that is not known."""
    looks_at = RULES.load(rule).looks_at
    if looks_at is None:
        return None
    name, column = looks_at
    table = stability if name == "stability" else replicable
    if table is None:
        raise InputError(f"rule={rule!r} needs resamples for each number of factors.")
    return table.set_index("n_components")[column].reindex(ks).to_numpy()


def _picks(
    errors: np.ndarray,
    spreads: np.ndarray,
    ks: np.ndarray,
    rule: SelectionRule,
    merit: np.ndarray | None,
    within: float | None,
) -> np.ndarray:
    """The candidate a rule picks for each line of errors (ks sorted); `spreads` are those of the lowest."""
    lowest = errors.min(axis=1, keepdims=True)
    close = lowest * (1 + within) if within is not None else lowest + spreads[:, None]
    number = rule.number(errors, ks, close, merit)
    return np.where(ks == number[:, None], errors, np.inf).argmin(axis=1)
