"""Missing answers: whether leaving out depends on scores or confounds, and what it could change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from icqf.core.certificate import score_tolerance, solve_scores_inside
from icqf.core.problem import Problem
from icqf.core.result import Factors
from icqf.data.missing_answers import (
    FEWEST,
    N_PERMUTATIONS,
    confound_tests,
    count_left_out,
    independent_rows,
    share_left_out,
)
from icqf.data.questionnaire import Questionnaire
from icqf.engines.choice import run
from icqf.models.icqf import ICQF
from icqf.models.statement import StatedProblem
from icqf.resampling import tolerances
from icqf.resampling.bootstrap import settled
from icqf.resampling.folds import units_of
from icqf.resampling.matching import correlations

Array = NDArray[Any]
DELTAS = (0.25, 0.5, 1.0)
MOST_REFITTED = 5000  # participants; of more, as many are drawn at random
MOST_PAIRS = 5000
FEWEST_PAIRS = 6  # with which a sign-flip test can reach p < 0.05
# What counts as robust: similarities of at least this, and moves of at most this.
SIMILAR = 0.95  # Tucker's congruence (Lorenzo-Seva and ten Berge, 2006: as good as equal), correlation
LOADING_MOVE = 0.1  # of the item's range
SCORE_MOVE = 0.05  # of the highest score, on average


@dataclass(frozen=True, eq=False)
class MissingAnswers:
    """What is known about answers that participants left out.

    Attributes
    ----------
    n_missing, n_asked : int
        Answers left out by participants who answered something, and all that they were asked for; items not
        shown to them do not count.
    n_participants : int
        Participants who left something out.
    confounds : DataFrame
        Tests of the confounds (`icqf.data.missing_answers.confound_tests`).
    scores : DataFrame
        By factor: ``difference`` (mean score of participants who left out more, minus that of those who left
        out less), ``p`` and ``p_adjusted`` (for all factors together). Empty where too few pairs differ.
    n_pairs : int
        Pairs of participants that were compared.
    sensitivity : DataFrame
        By ``delta``, in standard deviations of each item's answers: lowest ``congruence`` of a factor's
        loadings with those of the fit, largest ``loading_move`` (share of the item's range), lowest
        ``score_correlation`` of a factor, and ``score_move``, the mean absolute change of the scores of
        those who left something out (share of the highest score).
    n_refitted : int
        Participants of these refits.
    """

    n_missing: int
    n_asked: int
    n_participants: int
    confounds: pd.DataFrame
    scores: pd.DataFrame
    n_pairs: int
    sensitivity: pd.DataFrame
    n_refitted: int

    @property
    def robust_up_to(self) -> float | None:
        """The largest delta up to which loadings and scores hardly change; None if not even at 0."""
        table = self.sensitivity
        kept = (
            (table["congruence"] >= SIMILAR)
            & (table["score_correlation"] >= SIMILAR)
            & (table["loading_move"] <= LOADING_MOVE)
            & (table["score_move"] <= SCORE_MOVE)
        )
        best = None
        for size in (0.0, *DELTAS):
            if not kept[table["delta"].abs() == size].all():
                break
            best = size
        return best


def missing_answers(
    model: ICQF,
    questionnaire: Questionnaire,
    *,
    stated: StatedProblem | None = None,
    scores: Any = None,
    random_state: int = 0,
) -> MissingAnswers | None:
    """Examine the answers that participants of a fit left out; the model does not change.

    Whether leaving out depends on *scores* is tested in pairs: a participant who left out more, and one drawn
    at random from those who left out less, both scored on the items that both answered (a score from fewer
    answers is shrunk, so other comparisons would find a difference where there is none). Under the
    null hypothesis, the differences' signs are random; the statistic is Wilcoxon's, and p-values are adjusted
    for the number of factors by its largest value over all of them.

    What missing answers *could change* is tried by pattern-mixture delta adjustment: each is filled in with
    the answer that the model expects, moved by delta standard deviations of the item's answers and kept in
    the range, and the model is refitted from its solution with the same number of factors and penalties.

    Parameters
    ----------
    questionnaire : Questionnaire
        The answers that it was fitted to.
    stated : StatedProblem, optional
        The problem that it was fitted to (`ICQF.state`).
    scores : array (n, k), optional
        The participants' scores, if already computed.
    random_state : int
        Seed of pairs and permutations.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.analyses import missing_answers
    >>> from icqf.datasets import load_demo
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> found = missing_answers(ICQF(2).fit(demo), demo)
    >>> found.n_participants, found.robust_up_to
    (189, 1.0)
    """
    stated = model.state(questionnaire) if stated is None else stated
    problem, kept = stated.problem, stated.kept
    if not problem.observations.here or problem.observations.repeats > 1:
        return None
    answered = questionnaire.answers.notna().to_numpy()[kept]
    asked = None
    if questionnaire.structural is not None:
        asked = ~questionnaire.structural.to_numpy(dtype=bool)[kept]
    left_out = ~answered if asked is None else ~answered & asked
    if (left_out.any(axis=1)).sum() < FEWEST:
        return None
    units = units_of(problem, questionnaire.groups, kept)
    share = share_left_out(answered, asked)
    confounds = questionnaire.confounds
    table = pd.DataFrame(index=range(len(share))) if confounds is None else confounds[kept]
    tests = confound_tests(share, table, units=units, random_state=random_state)
    values = model.solve_scores(problem) if scores is None else np.asarray(scores, dtype=float)[kept].T
    by_score, n_pairs = score_tests(model, problem, share, units=units, random_state=random_state)
    sensitivity, n_refitted = _sensitivity(model, problem, left_out, values, random_state)
    counts = *count_left_out(answered, asked), int(left_out.any(axis=1).sum())
    return MissingAnswers(*counts, tests, by_score, n_pairs, sensitivity, n_refitted)


def score_tests(
    model: ICQF,
    problem: Problem,
    share: Array,
    *,
    units: Array | None = None,
    n_permutations: int = N_PERMUTATIONS,
    random_state: int = 0,
) -> tuple[pd.DataFrame, int]:
    """Test whether the share of answers left out (n,) depends on scores; see `missing_answers`.

    Returns the table of factors, and the number of pairs.
    """
    rng = np.random.default_rng([random_state, 8])
    more, less = _pairs(share, units, rng)
    seen = problem.observations.observed
    shared = seen[more] & seen[less]
    some = shared.any(axis=1)
    more, less, hidden = more[some], less[some], ~shared[some]
    if len(more) < FEWEST_PAIRS:
        return pd.DataFrame(columns=["factor", "difference", "p", "p_adjusted"]), len(more)
    both = problem.of_rows(np.concatenate([more, less])).hide(np.concatenate([hidden, hidden]))
    scores = model.solve_scores(both)
    differences = scores[:, : len(more)] - scores[:, len(more) :]
    ranks = np.zeros_like(differences)
    for row, values in zip(ranks, differences, strict=True):
        nonzero = np.abs(values) > 1e-9
        row[nonzero] = np.sign(values[nonzero]) * rankdata(np.abs(values[nonzero]))
    ranks /= np.maximum(np.linalg.norm(ranks, axis=1, keepdims=True), 1e-300)
    observed = np.abs(ranks.sum(axis=1))
    signs = rng.choice(np.array([-1.0, 1.0]), size=(n_permutations, len(more)))
    drawn = np.abs(signs @ ranks.T)
    p = (1 + (drawn >= observed - 1e-12).sum(axis=0)) / (1 + n_permutations)
    adjusted = (1 + (drawn.max(axis=1)[:, None] >= observed - 1e-12).sum(axis=0)) / (1 + n_permutations)
    columns = {
        "factor": list(model.get_feature_names_out()),
        "difference": differences.mean(axis=1),
        "p": p,
        "p_adjusted": adjusted,
    }
    return pd.DataFrame(columns), len(more)


def _pairs(share: Array, units: Array | None, rng: np.random.Generator) -> tuple[Array, Array]:
    """Participants who left out more, each with one who left out less, everybody in at most one pair."""
    rows, stratum = independent_rows(units, len(share), rng)
    more, less = [], []
    for number in np.unique(stratum):
        mine = rows[stratum == number]
        mine = mine[np.lexsort((rng.random(len(mine)), share[mine]))]
        half = len(mine) // 2
        upper, lower = mine[len(mine) - half :], rng.permutation(mine[:half])
        differ = share[upper] > share[lower]
        more.append(upper[differ])
        less.append(lower[differ])
    upper, lower = np.concatenate(more), np.concatenate(less)
    if len(upper) > MOST_PAIRS:
        chosen = np.sort(rng.choice(len(upper), MOST_PAIRS, replace=False))
        return upper[chosen], lower[chosen]
    return upper, lower


def _sensitivity(
    model: ICQF, problem: Problem, left_out: Array, scores: Array, random_state: int
) -> tuple[pd.DataFrame, int]:
    """Refit with missing answers filled in, for each delta; participants beyond the limit are left out."""
    if problem.n > MOST_REFITTED:
        rng = np.random.default_rng([random_state, 9])
        rows = np.sort(rng.choice(problem.n, MOST_REFITTED, replace=False))
        problem, left_out, scores = problem.of_rows(rows), left_out[rows], scores[:, rows]
    loadings = np.concatenate([model.components_, model.confound_components_])
    present = settled(problem, Factors(scores, problem.scaled_loadings(loadings)))
    k, tol = len(scores), score_tolerance(model.tol)
    before = solve_scores_inside(problem, present.loadings, tol=tol)
    filled = _Filled.of(problem, present, before, left_out)
    deltas = (*(-delta for delta in reversed(DELTAS)), 0.0, *DELTAS)
    top = model.score_max or max(float(before.max()), 1e-12)
    gappy = left_out.any(axis=1)
    rows_ = []
    for delta in deltas:
        other = filled.problem(delta)
        (fit,) = run(other, present, tol=tolerances.SETTLE, max_iter=tolerances.MAX_ITER, exact=False)
        Q = fit.factors.loadings.astype(np.float64)
        after = solve_scores_inside(other, Q, tol=tol)
        move = np.abs(after - before)[:, gappy]
        rows_.append(
            {
                "delta": delta,
                "congruence": _lowest(present.loadings[:k], Q[:k], centred=False),
                "loading_move": float((np.abs(Q[:k] - present.loadings[:k]) / problem.span).max()),
                "score_correlation": _lowest(before, after, centred=True),
                "score_move": float(move.mean() / top),
            }
        )
    return pd.DataFrame(rows_), problem.n


def _lowest(a: Array, b: Array, *, centred: bool) -> float:
    """Lowest similarity of a row of `a` with its row in `b`; rows without a direction are left out."""
    with_values = [row for row in range(len(a)) if np.ptp(a[row]) > 0]
    values = [correlations(a[[r]], b[[r]], centred=centred)[0, 0] for r in with_values]
    return float(min(values, default=np.nan))


@dataclass(frozen=True, eq=False)
class _Filled:
    """A problem with the answers that the model expects where participants left some out."""

    own: Problem  # with answers as floats, in the items' own units
    expected: Array  # (n, m), in the same units
    spread: Array  # (m,), standard deviations of the answers
    top: Array  # (m,), the items' ranges
    left_out: Array

    @classmethod
    def of(cls, problem: Problem, present: Factors, scores: Array, left_out: Array) -> _Filled:
        observations = problem.observations
        scale = np.ones(problem.m) if observations.scale is None else observations.scale
        A = problem.with_confounds(scores, np.float64)
        expected = A.T @ np.asarray(present.loadings, dtype=np.float64) / scale
        seen = observations.observed
        given = np.where(seen, observations.answers.astype(np.float64), np.nan)
        few = seen.sum(axis=0) < 2
        given[:2, few] = 0.0  # no spread where hardly anybody answered
        return cls(problem, expected, np.nanstd(given, axis=0), problem.span / scale, left_out)

    def problem(self, delta: float) -> Problem:
        """The problem in which missing answers are `delta` standard deviations above those expected."""
        observations = self.own.observations
        moved = np.clip(self.expected + delta * self.spread, 0, self.top)
        answers = np.where(self.left_out, moved, observations.answers.astype(np.float64))
        hidden = None if observations.hidden is None else observations.hidden & ~self.left_out
        return replace(self.own, observations=replace(observations, answers=answers, hidden=hidden))


def sensitivity_sentence(missing: MissingAnswers) -> str:
    """Whether loadings and scores are robust to what the missing answers might have been.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"delta": [-1.0, -0.5, -0.25, 0, 0.25, 0.5, 1], "congruence": 0.99,
    ...                       "loading_move": 0.01, "score_correlation": 0.99, "score_move": 0.01})
    >>> found = MissingAnswers(9, 99, 9, pd.DataFrame(), pd.DataFrame(), 0, table, 100)
    >>> sensitivity_sentence(found).split(":")[0]
    'Robust'
    """
    largest, robust = max(DELTAS), missing.robust_up_to
    size = "" if robust is None else f"{robust:g}"
    if robust == largest:
        verdict = f"Robust: were the missing answers up to {largest:g} SD higher or lower than expected"
    elif robust:
        verdict = (
            f"Robust only up to {size} SD: were the missing answers {size} SD higher or lower than "
            "expected, but not more"
        )
    else:
        verdict = f"Not robust: were the missing answers only {DELTAS[0]:g} SD higher or lower than expected"
    change = "would hardly change" if robust else "would change"
    return (
        f"{verdict}, loadings and scores {change} (criterion: every factor's congruence and "
        f"correlation of scores {SIMILAR:g} or more, no loading moved by more than {LOADING_MOVE:g} of its "
        f"item's range, scores of those who left something out by {SCORE_MOVE:g} or less on average)."
    )
