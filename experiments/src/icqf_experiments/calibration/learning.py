"""Learn what is said from the cases of other studies, and choose between candidates by one rule.

The rule was committed before the cases were drawn that it was applied to (docs/results/calibration.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import minimize

from icqf.report.blocks import Block, Grid
from icqf_experiments.calibration.frame import SIMULATED, off_bins

Array = NDArray[Any]
N_FOLDS = 10  # of simulated populations
CLOSE = 0.005  # of the lowest Brier score: a smaller difference does not tell candidates apart
NOISE = 1 / 20  # of studies of independent items that may be told of a factor
RULE = f"""The rule was settled before these cases were drawn. Candidates within {CLOSE} of the lowest Brier
score (in studies left out; simulations and public studies count alike) are taken to predict equally well:
between studies the score varies by more than that. Of these, the one with the fewest bins off is used,
because a reader relies on a probability meaning what it says; of equals, the one with the fewest
predictors, then the one with the lowest score. Where noise is among the cases, a candidate must not take
more than 1 in 20 such studies for a factor."""


@dataclass(frozen=True)
class Candidate:
    """A logistic model of what is said."""

    features: tuple[str, ...] = ()  # names of its predictors
    # column of log odds that are taken as they are; the model then has no intercept
    offset: str | None = None
    # whether the rule may choose it: not where it needs fits that a default analysis does not make
    open: bool = True

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of what is learned."""
        return self.features if self.offset else ("intercept", *self.features)


@dataclass(frozen=True)
class Candidates:
    """What may be said, and what it may be predicted from (columns of the table of cases)."""

    features: Mapping[str, Callable[[pd.DataFrame], Any]]
    named: Mapping[str, Candidate]

    def _matrix(self, table: pd.DataFrame, one: Candidate) -> tuple[Array, Array]:
        fixed = np.zeros(len(table)) if one.offset is None else table[one.offset].to_numpy(dtype=float)
        columns = [self.features[name](table) for name in one.features]
        if one.offset is None:
            columns.insert(0, np.ones(len(table)))
        return np.column_stack(columns) if columns else np.zeros((len(table), 0)), fixed

    def learned(self, table: pd.DataFrame, name: str) -> Array:
        """Coefficients; simulations and public studies count alike, and so do public studies."""
        one = self.named[name]
        X, fixed = self._matrix(table, one)
        if not X.shape[1]:
            return np.zeros(0)
        y, weight = table["happened"].to_numpy(dtype=float), weights(table)
        ridge = np.full(X.shape[1], 1e-3) if one.offset else np.r_[0, np.full(X.shape[1] - 1, 1e-3)]

        def loss(b: Array) -> tuple[float, Array]:
            t = X @ b + fixed
            value = weight @ (np.logaddexp(0, t) - y * t) + ridge @ b**2 / 2
            return float(value), X.T @ (weight * (1 / (1 + np.exp(-t)) - y)) + ridge * b

        found = minimize(loss, np.zeros(X.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9})
        return np.asarray(found.x)

    def predicted(self, table: pd.DataFrame, name: str) -> Array:
        """What a model learned without a case's study says about it."""
        said, together = np.zeros(len(table)), left_out(table)
        for each in np.unique(together):
            out = together == each
            rest = table[~out] if not out.all() else table
            X, fixed = self._matrix(table[out], self.named[name])
            said[out] = 1 / (1 + np.exp(-X @ self.learned(rest, name) - fixed))
        return said

    def compared(self, table: pd.DataFrame) -> pd.DataFrame:
        """Of all candidates in studies left out: Brier score, bins off, and noise taken for a factor."""
        weight, happened, rows = weights(table), table["happened"].to_numpy(), []
        for name, one in self.named.items():
            said = self.predicted(table, name)
            row: dict[str, Any] = {"candidate": name, "predictors": len(one.features), "open": one.open}
            row |= {"brier": weight @ (said - happened) ** 2, "off": len(off_bins(table.assign(said=said)))}
            rows.append({**row, "noise": told_of_noise(table.assign(said=said))[0]})
        return pd.DataFrame(rows)

    def blocks(self, table: pd.DataFrame, used: str | None = None) -> list[Block]:
        """The rule, all candidates, and what is used (by default the rule's choice), from all cases."""
        scores = self.compared(table)
        ruled = best_candidate(scores, told_of_noise(table)[1])
        best = used or ruled
        rows = [
            [
                f"{row['candidate']}{' (used)' * (row['candidate'] == best)}"
                f"{'' if row['open'] else ' (needs further fits: not open to the rule)'}",
                str(row["predictors"]),
                f"{row['brier']:.4f}",
                str(row["off"]),
                *([str(row["noise"])] if "signal" in table else []),
            ]
            for row in scores.to_dict("records")
        ]
        head = ["predicted from", "predictors", "Brier score", "bins off"]
        head += ["noise taken for a factor"] * ("signal" in table)
        found: list[Block] = [
            " ".join(RULE.split()),
            Grid("All that were tried, in studies left out", head, rows),
        ]
        if best != ruled:
            found.append(f"The rule takes “{ruled}”. icqf does not use it yet: it says “{best}”, as before.")
        terms = self.named[best].terms
        if terms:
            numbers = [f"{value:.2f}" for value in self.learned(table, best)]
            found.append(Grid("What is used, learned from all cases", list(terms), [numbers]))
        return found


def best_candidate(scores: pd.DataFrame, n_noise: int = 0) -> str:
    """The candidate that the rule takes; `n_noise` is the number of studies of independent items."""
    near = scores[scores["open"] & (scores["noise"] <= NOISE * n_noise)]
    near = near if len(near) else scores[scores["open"]]
    near = near[near["brier"] <= near["brier"].min() + CLOSE]
    return str(near.sort_values(["off", "predictors", "brier"])["candidate"].iloc[0])


def weights(table: pd.DataFrame) -> Array:
    """Weights of the cases, which sum to 1: half for simulations; public studies share the other half."""
    simulated = (table["source"] == SIMULATED).to_numpy()
    sizes = table.groupby("study")["happened"].transform("size").to_numpy(dtype=float)
    weight = np.where(simulated, 1.0, 1 / sizes)
    for part in (simulated, ~simulated):
        weight[part] /= max(weight[part].sum(), 1e-12)
    return np.asarray(weight / weight.sum())


def left_out(table: pd.DataFrame) -> Array:
    """What is left out together: a public study, or a tenth of the simulated populations."""
    simulated = table["source"] == SIMULATED
    number = table["study"].where(simulated, "0").str.extract(r"(\d+)$")[0].astype(int)
    return np.where(simulated, "tenth " + (number % N_FOLDS).astype(str), table["study"])


def told_of_noise(table: pd.DataFrame) -> tuple[int, int]:
    """How many studies of independent items are told of a factor (above one half), and how many there are."""
    if "signal" not in table:
        return 0, 0
    noise = table[table["signal"] == "none"]
    told = noise[noise["said"] > 0.5] if "said" in noise else noise[:0]
    return len(told.groupby(["study", "which"])), len(noise.groupby(["study", "which"]))
