"""The sections on the number of factors, the fit, and the comparison with factor analysis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from icqf.baselines.rules import RuleTable
from icqf.evaluation.factors import Counterparts
from icqf.models.multistart import doubtful_factors
from icqf.report import words
from icqf.report.schema import (
    Agreement,
    Candidate,
    Comparison,
    Count,
    Eigenvalue,
    FitQuality,
    Pair,
    RuleRow,
    Start,
)
from icqf.resampling.hidden import HiddenFit
from icqf.selection.rules import RULES

METHOD = "exploratory factor analysis (minimum residual, promax rotation)"


@dataclass(frozen=True, eq=False)
class SearchTables:
    """What a cross-validation found.

    `errors` has the columns ``n_components``, ``beta``, ``error`` and ``standard_error``; `shares` says how
    often each number of factors would win; `halves`, where the agreement of halves was worked out, has the
    columns ``n_components``, ``agreement``, ``low`` and ``high``.
    """

    errors: pd.DataFrame
    shares: Mapping[int, float]
    halves: pd.DataFrame | None
    rule: str
    n_splits: int
    n_repeats: int

    @property
    def tried(self) -> list[int]:
        """The numbers of factors tried."""
        return sorted({int(k) for k in self.errors["n_components"]})

    @property
    def penalties(self) -> list[float]:
        """The penalties tried."""
        return sorted({float(beta) for beta in self.errors["beta"]})


def count_section(
    k: int,
    beta: float,
    search: SearchTables | None,
    parallel: int | None,
    curve: pd.DataFrame | None,
    rules: RuleTable | None = None,
) -> Count:
    """How many factors there are, and why; `parallel` and `curve` are those of parallel analysis."""
    candidates: tuple[Candidate, ...] = ()
    halves: tuple[Agreement, ...] = ()
    if search is not None:
        columns = ["n_components", "beta", "error", "standard_error"]
        candidates = tuple(
            Candidate(int(number), penalty, error, spread, (number, penalty) == (k, beta))
            for number, penalty, error, spread in search.errors[columns].itertuples(index=False)
        )
        if search.halves is not None:
            columns = ["n_components", "agreement", "low", "high"]
            halves = tuple(
                Agreement(int(number), *map(float, values))
                for number, *values in search.halves[columns].itertuples(index=False)
            )
    eigenvalues: tuple[Eigenvalue, ...] = ()
    if curve is not None:
        columns = ["n_components", "eigenvalue", "random_eigenvalue"]
        eigenvalues = tuple(
            Eigenvalue(int(factor), float(observed), float(unrelated))
            for factor, observed, unrelated in curve[columns].itertuples(index=False)
        )
    return Count(
        words=tuple(_count_words(k, beta, search, parallel)),
        n_components=k,
        beta=beta,
        chosen_by="given" if search is None else f"cross-validation, rule {search.rule}",
        candidates=candidates,
        shares=() if search is None else tuple(search.shares.items()),
        halves=halves,
        parallel=parallel,
        eigenvalues=eigenvalues,
        rules=() if rules is None else tuple(_rule_rows(rules)),
        rules_words=() if rules is None else rules.explanation,
    )


def _rule_rows(rules: RuleTable) -> list[RuleRow]:
    return [
        RuleRow(rule, None if pd.isna(k) else int(k), reason, counts, reference)
        for rule, k, reason, counts, reference in rules.table.itertuples(index=False)
    ]


def _count_words(k: int, beta: float, search: SearchTables | None, parallel: int | None) -> list[str]:
    """The sentences of the section; the first is also part of the headline."""
    if search is None:
        said = [f"The number of factors ({k}) was set in advance, not chosen from these answers."]
    else:
        again = search.shares.get(k, 0.0)
        said = [
            f"Cross-validation chose {words.count_of(k, 'factor')}; had the folds been drawn again, it would "
            f"have chosen the same number {words.percent(again)} of the time.",
            f"This number {RULES[search.rule].description}.",
        ]
        others = [f"{other} ({words.percent(share)})" for other, share in search.shares.items() if other != k]
        if others:
            said.append(f"Other numbers that would have been chosen: {words.joined(others[:4])}.")
    if beta == 0:
        said.append(
            "β = 0 means that there is no penalty: scores and loadings are not drawn towards 0, and only "
            "their bounds keep them in place."
        )
        if search is not None and len(search.penalties) > 1:
            said.append("With this number of factors, no penalty tried predicted hidden answers better.")
    if parallel is not None:
        same = "the same number" if parallel == k else words.count_of(parallel, "factor")
        said.append(
            f"Parallel analysis, the usual rule in factor analysis, would keep {same}. It asks which factors "
            "are stronger than those of unrelated answers, which is a different question: in a large sample "
            "it keeps even small factors."
        )
    return said


def fit_section(
    *,
    r_squared: float,
    hidden: HiddenFit | None,
    n_splits: int | None,
    converged: bool,
    n_iter: int,
    objective: float,
    tol: float,
    score_step: float,
    loading_step: float,
    trace: Sequence[float],
    starts: pd.DataFrame,
    keys: Mapping[str, str],
    n_averaged: int,
) -> FitQuality:
    """How well the model describes the answers, and whether the fit converged; `keys` are of the factors."""
    return FitQuality(
        r_squared=r_squared,
        r_squared_hidden=None if hidden is None else hidden.overall,
        no_structure=hidden is not None and hidden.no_better_than_means,
        n_splits=n_splits,
        converged=converged,
        n_iter=n_iter,
        objective=objective,
        tol=tol,
        score_step=score_step,
        loading_step=loading_step,
        trace=tuple(trace),
        starts=tuple(
            Start(str(start), float(objective), bool(converged), float(min(agreement)))
            for start, objective, _, converged, *agreement in starts.itertuples(index=False)
        ),
        doubtful=tuple(keys[name] for name in doubtful_factors(starts)),
        n_averaged=n_averaged,
    )


def comparison_section(
    found: Counterparts | str, names: Mapping[str, str], *, r_squared: float
) -> Comparison:
    """The same answers by factor analysis; `found` may be the reason why it could not be run.

    `names` are the shown names of the factors, `r_squared` the R² of the model.
    """
    k = len(names)
    if isinstance(found, str):
        return Comparison(METHOD, k, failed=found)
    columns = ["factor_a", "factor_b", "pearson"]
    pairs = tuple(
        Pair(names[str(a)], str(b), float(value))
        for a, b, value in found.pairs[columns].itertuples(index=False)
    )
    return Comparison(
        method=METHOD,
        n_components=k,
        pairs=pairs,
        matrix=tuple(tuple(float(value) for value in row) for row in found.similarities.to_numpy()),
        r_squared=found.r_squared,
        r_squared_here=r_squared,
        negative=found.negative,
        small=found.small,
        small_here=found.small_here,
    )
