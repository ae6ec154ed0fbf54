"""The sections on the number of factors, the fit, and the comparison with factor analysis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from icqf.baselines.rules import RuleTable
from icqf.evaluation.counterparts import Counterparts
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
from icqf.started import AS_WELL, COUNTERPART, doubtful_factors

CLOSE = 0.8  # correlation of loadings from which two factors are counterparts
METHOD = "exploratory factor analysis (minimum residual, promax rotation)"
_REASONS = {
    "min": "This number predicts answers that were hidden from the model best.",
    "one_se": "It is the fewest factors that predict hidden answers about as well as the best number does "
    "(within one standard error).",
    "stable": "Of the numbers that predict hidden answers about as well as the best, it is the one whose "
    "factors agree best between halves of the sample.",
    "replicable": "Of the numbers up to the one that predicts hidden answers best, it has the most factors "
    "that a second study is expected to find again, less those that it is not.",
}


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
            _REASONS[search.rule],
        ]
        others = [f"{other} ({words.percent(share)})" for other, share in search.shares.items() if other != k]
        if others:
            said.append(f"Other numbers that would have been chosen: {words.joined(others[:4])}.")
        tried = search.tried
        if len(tried) > 1 and k in (tried[0], tried[-1]):
            said.append(
                f"The choice lies at the edge of the numbers tried ({tried[0]} to {tried[-1]}); try others "
                "beyond it before relying on it."
            )
        penalties = search.penalties
        if len(penalties) > 1 and beta == penalties[-1]:
            said.append(
                f"The penalty lies at the upper end of those tried (β up to {penalties[-1]:g}); try stronger "
                "ones before relying on it."
            )
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
    variance: float,
    r_squared: float,
    hidden: float | None,
    n_splits: int | None,
    converged: bool,
    n_iter: int,
    objective: float,
    tol: float,
    score_step: float,
    loading_step: float,
    trace: Sequence[float],
    starts: pd.DataFrame,
    names: Mapping[str, str],
    n_averaged: int,
) -> FitQuality:
    """How well the model describes the answers, and whether the fit converged."""
    said = [
        f"The model explains {words.percent(variance, 1)} of the variance of the answers it was fitted to: "
        "the shares of factors and confounds add up to this, for every item and for all of them together.",
        f"Its squared error is {words.percent(r_squared, 1)} smaller than that of the items' means (R²)."
        + (
            ""
            if hidden is None
            else f" For answers that were hidden from it, R² is {words.percent(hidden, 1)}; it is usually "
            "lower there, because a fit also describes what is chance in the answers it has seen."
        ),
    ]
    iterations = words.count_of(n_iter, "iteration")
    if n_averaged:
        said.append(
            f"The loadings are averages over {n_averaged} fits to resampled participants, and the scores "
            "were solved for under the constraints. Averages describe these answers a little less closely "
            "than the best fit does; in small samples another study finds them again more often."
        )
    elif converged:
        said.append(f"The fit converged after {iterations}.")
    else:
        said.append(f"The fit had not converged after {iterations}: allow more before relying on it.")
    said += start_words(starts, names)
    return FitQuality(
        words=tuple(said),
        r_squared=r_squared,
        r_squared_hidden=hidden,
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
    )


def start_words(starts: pd.DataFrame, names: Mapping[str, str]) -> list[str]:
    """How far fits from other starts agree with the kept one; `names` are the shown names of the factors."""
    if len(starts) < 2:
        return []
    agreement = starts[list(names)]
    alike = agreement.min(axis=1) >= COUNTERPART
    doubtful = [names[name] for name in doubtful_factors(starts)]
    number = words.count_of(len(starts), "start")
    if alike.all():
        lowest = words.number(float(agreement.to_numpy().min()))
        return [
            f"The fit was run from {number}, and all of them ended with the same factors (correlation of "
            f"loadings {lowest} or more)."
        ]
    kept = f"The fit was run from {number}, and the best one was kept."
    if doubtful:
        them = "this factor" if len(doubtful) == 1 else "these factors"
        return [
            f"{kept} At least one other describes the answers as well (objective within "
            f"{words.percent(AS_WELL, 1)}) without a counterpart of {words.joined(doubtful)}: the answers do "
            f"not settle {them}, so read with care."
        ]
    apart = float(starts.loc[~alike, "objective"].min() / starts["objective"].min() - 1)
    return [
        f"{kept} {words.spelled(int((~alike).sum())).capitalize()} of them ended with other factors that "
        f"describe the answers less well (objective higher by {words.percent(apart, 2)} or more)."
    ]


def comparison_section(
    found: Counterparts | str, names: Mapping[str, str], *, r_squared: float
) -> Comparison:
    """The same answers by factor analysis; `found` may be the reason why it could not be run.

    `names` are the shown names of the factors, `r_squared` the R² of the model.
    """
    k = len(names)
    if isinstance(found, str):
        why = f"Factor analysis of the same answers could not be run: {found}"
        return Comparison((why,), METHOD, k)
    columns = ["factor_a", "factor_b", "pearson"]
    pairs = tuple(
        Pair(names[str(a)], str(b), float(value))
        for a, b, value in found.pairs[columns].itertuples(index=False)
    )
    apart = [pair.factor for pair in pairs if pair.correlation < CLOSE]
    extent = f"all {k} factors." if not apart else f"{k - len(apart)} of the {k} factors, but not for "
    said = (
        "With the same number of factors, factor analysis finds a close counterpart (correlation of loadings "
        f"{CLOSE} or more) for {extent if k > 1 or apart else 'the factor.'}"
        + (f"{words.joined(apart)}." if apart else ""),
        f"Its squared error is {words.percent(found.r_squared)} smaller than that of the items' means in "
        f"this sample (R²); that of this model is {words.percent(r_squared)} smaller, with confounds and "
        "within all bounds.",
        f"{words.percent(found.negative)} of its loadings are negative; this model has no negative loadings, "
        f"so that a factor only ever adds to answers. {words.percent(found.small_here)} of this model's "
        "loadings are close to zero (below a tenth of the factor's largest), against "
        f"{words.percent(found.small)} there.",
    )
    return Comparison(
        words=said,
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
