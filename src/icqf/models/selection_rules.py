"""From cross-validated errors to a choice, and how sure it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from icqf.baselines.retention import FactorCount
from icqf.data.settings import RULES
from icqf.errors import InputError

_RESAMPLES = 2000


@dataclass(frozen=True)
class SelectionRule:
    """A rule that chooses the number of factors."""

    # what the chosen number does, to follow "the number of factors that": messages, reports and the
    # Methods text use it
    description: str
    # called with the errors of all candidates, their numbers of factors, the error that still counts as
    # close to the lowest, and what the rule looks at beside them (of each candidate; None where it
    # looks at nothing); returns a number of factors
    number: Callable[[np.ndarray, np.ndarray, float, np.ndarray | None], int]
    # the table ("stability" or "replicable") and its column that the rule needs beside the errors
    looks_at: tuple[str, str] | None = None


def _lowest(errors: np.ndarray, ks: np.ndarray, close: float, merit: np.ndarray | None) -> int:
    return int(ks[errors.argmin()])


def _fewest(errors: np.ndarray, ks: np.ndarray, close: float, merit: np.ndarray | None) -> int:
    return int(ks[errors <= close].min())


def _best_close(errors: np.ndarray, ks: np.ndarray, close: float, merit: np.ndarray | None) -> int:
    return _most(ks, merit, errors <= close)


def _best_below(errors: np.ndarray, ks: np.ndarray, close: float, merit: np.ndarray | None) -> int:
    return _most(ks, merit, ks <= ks[np.argmin(errors)])


def _most(ks: np.ndarray, merit: np.ndarray | None, among: np.ndarray) -> int:
    """The largest number of factors among those with the highest merit."""
    worth = np.where(among, np.asarray(merit, dtype=float), np.nan)
    return int(ks[worth == np.nanmax(worth)].max())


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


def error_table(results: pd.DataFrame) -> pd.DataFrame:
    """Mean error and its standard error of each (n_components, beta), over folds and repeats.

    Folds count by the number of answers they hide, or by the weights of those who gave them.
    """
    folds = _that_hide(results).assign(weighted=results["error"] * results["weight"])
    grouped = folds.groupby(["n_components", "beta"])
    mean = grouped["weighted"].sum() / grouped["weight"].sum()
    spread: pd.Series = grouped["error"].std(ddof=1) / np.sqrt(grouped.size())
    table = pd.DataFrame({"error": mean, "standard_error": spread.fillna(0.0)})
    return table.reset_index()


def _that_hide(results: pd.DataFrame) -> pd.DataFrame:
    """Without the folds that hide no observed answer, and so say nothing."""
    return results[results["weight"] > 0]


def best_row(table: pd.DataFrame) -> tuple[int, float, float]:
    """(n_components, beta, error) with the lowest error."""
    at = int(table["error"].to_numpy().argmin())
    row = table.iloc[at]
    return int(row["n_components"]), float(row["beta"]), float(row["error"])


def best_by_k(table: pd.DataFrame) -> pd.DataFrame:
    """For each number of factors, the row of its best penalty."""
    return table.loc[table.groupby("n_components")["error"].idxmin()].reset_index(drop=True)


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
    ks, spread = table["n_components"].to_numpy(), table["standard_error"].to_numpy()
    merit = _merit(rule, ks, stability, replicable)
    errors = table["error"].to_numpy()
    at = _pick(errors, spread[errors.argmin()], ks, RULES.load(rule), merit, within)
    return int(ks[at]), float(table["beta"].iloc[at])


@dataclass(frozen=True, eq=False)
class Choice:
    """How often each candidate would be chosen if the folds were drawn again."""

    shares: pd.DataFrame  # columns n_components, beta and share, most frequent first

    def by_k(self) -> pd.Series:
        """Share of each number of factors, whatever its penalty, most frequent first."""
        return self.shares.groupby("n_components")["share"].sum().sort_values(ascending=False)

    def __str__(self) -> str:
        parts = [f"{k} in {share:.0%}" for k, share in self.by_k().items() if share >= 0.005]
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
    curve = best_by_k(errors)
    if stability is not None:
        curve = curve.merge(stability[["n_components", "agreement"]], on="n_components")
    if replicable is not None:
        curve = curve.merge(replicable[["n_components", "found", "gain"]], how="left")
    return FactorCount(
        "Blockwise cross-validation",
        k,
        curve,
        f"this number {RULES.load(rule).description}; if the folds were drawn again: {choice}.",
        value="error",
        better="lower",
        spread="standard_error",
    )


def resampled_choice(
    results: pd.DataFrame,
    rule: str,
    *,
    rng: np.random.Generator,
    stability: pd.DataFrame | None = None,
    replicable: pd.DataFrame | None = None,
    within: float | None = None,
) -> Choice:
    """Draw the folds with replacement many times, and apply the rule each time."""
    results = _that_hide(results)
    wide = results.pivot_table(index=["repeat", "fold"], columns=["n_components", "beta"], values="error")
    hidden = results.groupby(["repeat", "fold"])["weight"].first().reindex(wide.index).to_numpy(float)
    errors = wide.to_numpy()
    ks = wide.columns.get_level_values("n_components").to_numpy()
    betas = wide.columns.get_level_values("beta").to_numpy()
    merit, chosen_by = _merit(rule, ks, stability, replicable), RULES.load(rule)
    drawn = rng.integers(0, len(errors), (_RESAMPLES, len(errors)))
    counts = np.zeros(drawn.shape)
    np.add.at(counts, (np.arange(_RESAMPLES)[:, None], drawn), hidden[drawn])
    means = counts @ errors / counts.sum(axis=1, keepdims=True)
    of_best = errors[drawn, means.argmin(axis=1)[:, None]]
    spreads = of_best.std(axis=1, ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else np.zeros(_RESAMPLES)
    picks = [
        _pick(mean, spread, ks, chosen_by, merit, within) for mean, spread in zip(means, spreads, strict=True)
    ]
    share = np.bincount(picks, minlength=len(ks)) / _RESAMPLES
    shares = pd.DataFrame({"n_components": ks, "beta": betas, "share": share})
    shares = shares[shares["share"] > 0].sort_values("share", ascending=False, kind="stable")
    return Choice(shares.reset_index(drop=True))


def _merit(
    rule: str, ks: np.ndarray, stability: pd.DataFrame | None, replicable: pd.DataFrame | None
) -> np.ndarray | None:
    """Of each candidate, what the rule looks at beside the error; NaN where that is not known."""
    looks_at = RULES.load(rule).looks_at
    if looks_at is None:
        return None
    name, column = looks_at
    table = stability if name == "stability" else replicable
    if table is None:
        raise InputError(f"rule={rule!r} needs resamples for each number of factors.")
    return table.set_index("n_components")[column].reindex(ks).to_numpy()


def _pick(
    errors: np.ndarray,
    spread: float,
    ks: np.ndarray,
    rule: SelectionRule,
    merit: np.ndarray | None,
    within: float | None,
) -> int:
    """The candidate a rule picks, from the errors of all (ks sorted); `spread` is that of the lowest."""
    lowest = errors.min()
    close = lowest * (1 + within) if within is not None else lowest + spread
    same_k = (ks == rule.number(errors, ks, close, merit)).nonzero()[0]
    return int(same_k[errors[same_k].argmin()])
