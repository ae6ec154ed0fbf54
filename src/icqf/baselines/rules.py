"""Every rule for the number of factors side by side, in one table, with what each of them counts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from icqf.baselines.correlation import CorrelationKind
from icqf.baselines.retention import (
    FactorCount,
    bic_factor_analysis,
    comparison_data,
    empirical_kaiser,
    hull_method,
    nest,
    parallel_analysis,
    read_answers,
    velicer_map,
)
from icqf.errors import InputError, counted


class Rule(NamedTuple):
    """A rule: its name within a sentence, what it counts, where it was published, and how it is run."""

    name: str
    counts: str
    family: str
    reference: str
    # from answers, the number of random data sets, the kind of correlations and random numbers of its own
    run: Callable[[npt.ArrayLike, int, CorrelationKind, np.random.Generator], FactorCount] | None = None


# What the rules of a family count; the verb follows the rules' names, in the singular or the plural.
PREDICTS = "the factors that help predict hidden answers; a small dimension may be real and still not help"
BEYOND_CHANCE = (
    "any dimension beyond chance, including small ones, of which more show the more participants there are"
)
ONE_ITEM = "the dimensions worth more than one item, of which long questionnaires have many"
SHARED = "only what many items have in common, and may merge factors that go together"
RULES = {
    "Blockwise cross-validation": Rule(
        "cross-validation",
        "The factors that help predict answers hidden from the model.",
        PREDICTS,
        "Lam et al. (2026)",
    ),
    "Parallel analysis": Rule(
        "parallel analysis",
        "Every dimension stronger than in unrelated answers, small ones included.",
        BEYOND_CHANCE,
        "Horn (1965), Psychometrika 30, 179-185",
        lambda X, n, kind, rng: parallel_analysis(X, n_iter=n, correlation=kind, random_state=rng),
    ),
    "NEST": Rule(
        "NEST",
        "Every dimension that the ones before it, and chance, do not explain; small ones included.",
        BEYOND_CHANCE,
        "Achim (2017), The Quantitative Methods for Psychology 13, 64-74",
        lambda X, n, kind, rng: nest(X, n_iter=n, correlation=kind, random_state=rng),
    ),
    "Comparison data": Rule(
        "comparison data",
        "The factors without which simulated answers of the same skew look less like these.",
        BEYOND_CHANCE,
        "Ruscio & Roche (2012), Psychological Assessment 24, 282-292",
        lambda X, n, kind, rng: comparison_data(X, n_samples=n, correlation=kind, random_state=rng),
    ),
    "BIC": Rule(
        "BIC",
        "The factors that improve the fit by more than the price of their parameters, small ones included if "
        "there are many participants.",
        BEYOND_CHANCE,
        "Preacher et al. (2013), Multivariate Behavioral Research 48, 28-56",
        lambda X, n, kind, rng: bic_factor_analysis(X, correlation=kind),
    ),
    "Empirical Kaiser criterion": Rule(
        "the empirical Kaiser criterion",
        "The dimensions that carry more than one item's worth, corrected for the number of participants.",
        ONE_ITEM,
        "Braeken & van Assen (2017), Psychological Methods 22, 450-466",
        lambda X, n, kind, rng: empirical_kaiser(X, correlation=kind),
    ),
    "Velicer's MAP": Rule(
        "Velicer's MAP",
        "The dimensions that many items share; one that few items share does not count.",
        SHARED,
        "Velicer (1976), Psychometrika 41, 321-327",
        lambda X, n, kind, rng: velicer_map(X, correlation=kind),
    ),
    "Hull method": Rule(
        "the Hull method",
        "The factors before the elbow, after which more of them hardly add to what the items have in common.",
        SHARED,
        "Lorenzo-Seva, Timmerman & Kiers (2011), Multivariate Behavioral Research 46, 340-364",
        lambda X, n, kind, rng: hull_method(X, n_iter=n, correlation=kind, random_state=rng),
    ),
}


@dataclass(frozen=True, eq=False)
class RuleTable:
    """What every rule for the number of factors says.

    Attributes
    ----------
    counts : tuple of FactorCount
        The rules that could be run, each with its number, curve and reason.
    refused : tuple of (rule, why)
        The rules that could not.

    Examples
    --------
    >>> import numpy as np
    >>> from icqf.baselines import every_rule
    >>> rng = np.random.default_rng(0)
    >>> loadings = np.kron(np.eye(3), np.full((1, 5), 0.7))
    >>> X = rng.normal(size=(400, 3)) @ loadings + 0.7 * rng.normal(size=(400, 15))
    >>> found = every_rule(X, n_iter=50, random_state=0)
    >>> found.table["n_components"].tolist()
    [3, 3, 3, 3, 3, 3, 3]
    >>> found.explanation
    ('All 7 rules keep 3 factors.',)
    """

    counts: tuple[FactorCount, ...]
    refused: tuple[tuple[str, str], ...] = ()

    @property
    def table(self) -> pd.DataFrame:
        """One row per rule: `rule`, `n_components`, `reason`, `counts` and `reference`.

        The number of a rule that could not be run is missing, and its reason says why.
        """
        rows: list[tuple[str, Any, str]] = [
            (each.method, each.n_components, each.reason) for each in self.counts
        ]
        rows += [(rule, pd.NA, f"Could not be run: {why}") for rule, why in self.refused]
        table = pd.DataFrame(rows, columns=["rule", "n_components", "reason"])
        table["n_components"] = table["n_components"].astype("Int64")
        table["counts"] = [_rule(rule).counts for rule in table["rule"]]
        table["reference"] = [_rule(rule).reference for rule in table["rule"]]
        return table

    @property
    def explanation(self) -> tuple[str, ...]:
        """Whether the rules agree, and what it means where they do not, in sentences."""
        if not self.counts:
            return ("No rule could be run on these answers.",)
        if len(self.counts) == 1:
            only = self.counts[0]
            return (
                f"Only one rule could be run: {only.method} keeps {counted(only.n_components, 'factor')}.",
            )
        chosen = sorted({each.n_components for each in self.counts})
        if len(chosen) == 1:
            return (f"All {len(self.counts)} rules keep {counted(chosen[0], 'factor')}.",)
        most_often = max(chosen, key=lambda k: (sum(each.n_components == k for each in self.counts), -k))
        said = [
            f"The rules keep between {chosen[0]} ({self._who(chosen[0])}) and {chosen[-1]} factors "
            f"({self._who(chosen[-1])}); the most frequent answer is {most_often}.",
            "They answer different questions, so disagreement is not an error.",
        ]
        for family in (PREDICTS, BEYOND_CHANCE, ONE_ITEM, SHARED):
            who = [each.method for each in self.counts if _rule(each.method).family == family]
            if who:
                names = _joined([_rule(method).name for method in who])
                verb = "counts" if len(who) == 1 and who != ["Comparison data"] else "count"
                said.append(f"{names[0].upper()}{names[1:]} {verb} {family}.")
        said.append(
            "Where the numbers differ, look at the factors in question: whether halves of the sample show "
            "them again says more than a further rule."
        )
        return tuple(said)

    def with_first(self, count: FactorCount) -> RuleTable:
        """Return the table with one more count in front, such as that of the cross-validation."""
        return replace(self, counts=(count, *self.counts))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        rules = self.table.astype(object).where(self.table.notna(), None).to_dict("records")
        curves = {each.method: each.curve for each in self.counts}
        for rule in rules:
            curve = curves.get(rule["rule"])
            rule["curve"] = [] if curve is None else _plain(curve)
        return {"explanation": list(self.explanation), "rules": rules}

    def _who(self, k: int) -> str:
        return _joined([_rule(each.method).name for each in self.counts if each.n_components == k])


def _rule(name: str) -> Rule:
    """What is known about a rule; of one that is not listed here, its name."""
    return RULES.get(name, Rule(name, "", "", ""))


def _plain(curve: pd.DataFrame) -> list[dict[str, Any]]:
    """A curve as records, with None where a value does not exist."""
    return [
        {str(name): None if pd.isna(value) else value for name, value in row.items()}
        for row in curve.to_dict("records")
    ]


def _joined(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def every_rule(
    X: npt.ArrayLike,
    *,
    n_iter: int = 100,
    correlation: CorrelationKind = "pairwise",
    random_state: int | None = 0,
) -> RuleTable:
    """Ask every rule of factor analysis how many factors there are.

    Parallel analysis, NEST, comparison data, BIC, the empirical Kaiser criterion, Velicer's MAP and the Hull
    method, each with its own defaults. A rule that cannot be run on these answers is listed with the reason.

    Parameters
    ----------
    X : array-like of shape (n_participants, n_items)
        Answers; NaN is a missing answer.
    n_iter : int, default=100
        Random data sets of parallel analysis and of the Hull method, and samples for each number of factors
        of NEST (whose author takes 1000) and of comparison data (500). The time is nearly proportional to it.
    correlation : {"pairwise", "em", "polychoric"}, default="pairwise"
        See `icqf.baselines.item_moments`.
    random_state : int or None
        Seed; each rule has random numbers of its own.

    Returns
    -------
    RuleTable

    Examples
    --------
    >>> from icqf.baselines import every_rule
    >>> from icqf.datasets import load_demo
    >>> answers = load_demo().select(["q00*", "q01*"]).keyed_answers()
    >>> found = every_rule(answers, n_iter=10)
    >>> int(found.table.set_index("rule").loc["BIC", "n_components"])
    3
    """
    if n_iter < 2:
        raise InputError(f"n_iter is {n_iter}; at least two random data sets are needed.")
    read_answers(X, correlation)  # answers that no rule can use are refused, not listed seven times
    runs = {name: rule.run for name, rule in RULES.items() if rule.run is not None}
    seeds = np.random.SeedSequence(random_state).spawn(len(runs))
    counts, refused = [], []
    for (name, run), seed in zip(runs.items(), seeds, strict=True):
        try:
            with warnings.catch_warnings():
                # A factor model that has not settled is one of many here, and none of them is reported.
                warnings.simplefilter("ignore", ConvergenceWarning)
                counts.append(run(X, n_iter, correlation, np.random.default_rng(seed)))
        except InputError as error:
            refused.append((name, str(error)))
    return RuleTable(tuple(counts), tuple(refused))
