"""The search over numbers of factors and penalties: the fits of all candidates on all folds."""

from __future__ import annotations

import os
import time
import warnings
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from joblib import effective_n_jobs

from icqf.core.problem import Array, Problem
from icqf.core.result import Factors, Iterated
from icqf.core.start import Starts, settle
from icqf.data.settings import RULES
from icqf.engines.base import Engine, NamedStart, Solver
from icqf.engines.choice import engine_of, run
from icqf.engines.journal import WorkJournal
from icqf.engines.parallel import closing_quietly, start_calls
from icqf.engines.progress import Progress
from icqf.errors import InputError, counted
from icqf.models.selection_rules import Evidence, Noise, best_row, draws
from icqf.models.summary import default_names
from icqf.resampling.bootstrap import agreement_of, best_fits
from icqf.resampling.folds import Folds
from icqf.resampling.hidden import HeldOut, HiddenFit
from icqf.resampling.replication import replication_table

if TYPE_CHECKING:
    from icqf.baselines.retention import FactorCount

_ITERATIONS = 20  # of the fit with each number of factors, before the next factor is added
_POWER_STEPS = 15  # towards the strongest pattern of what is left; a rough one will do
Place = tuple[int, int, int]  # repeat, fold and number of factors
_WORK = "search"


class Growth:
    """Starts of one problem for every number of factors, each grown from the one before.

    The first factor is that of NNDSVD. Further on, the strongest non-negative pattern of the residuals is
    added, and all factors settle for a few iterations. What is found for k factors does not depend on
    the other numbers tried.
    """

    def __init__(self, problem: Problem, *, tol: float) -> None:
        self.problem, self.tol = problem, tol
        self._grown: list[Factors] = []

    def start(self, k: int) -> Factors:
        """The start with k factors."""
        while len(self._grown) < k:
            first = not self._grown
            start = Starts(self.problem).make("nndsvd", 1) if first else self._with_one_more(self._grown[-1])
            (fit,) = run(self.problem, start, tol=self.tol, max_iter=_ITERATIONS, exact=False)
            self._grown.append(fit.factors)
        return self._grown[k - 1]

    def _with_one_more(self, factors: Factors) -> Factors:
        k = len(factors.scores)
        scores, loadings = self._strongest_pattern(factors)
        return settle(
            self.problem,
            Factors(
                np.concatenate([factors.scores, scores[None]]),
                np.concatenate([factors.loadings[:k], loadings[None]]),
            ),
        )

    def _strongest_pattern(self, factors: Factors) -> tuple[Array, Array]:
        """Of the residuals' leading singular pair, the heavier of its two signed halves: (n,) and (m,)."""
        residuals = self._residuals(factors)
        weights = np.ones(self.problem.n) if self.problem.weights is None else self.problem.weights
        v = np.zeros(self.problem.m)
        v[int(np.argmax(sum((E**2).sum(axis=0) for E in residuals)))] = 1.0
        for _ in range(_POWER_STEPS):
            u = np.concatenate([E @ v for E in residuals])
            v = _row_sums(residuals, weights * u)
            v /= max(float(np.linalg.norm(v)), 1e-300)
        u = np.concatenate([E @ v for E in residuals])
        halves = [(np.maximum(sign * u, 0), np.maximum(sign * v, 0)) for sign in (1.0, -1.0)]
        return max(halves, key=lambda half: float(weights @ half[0] ** 2) * float(half[1] @ half[1]))

    def _residuals(self, factors: Factors) -> list[Array]:
        """Residuals of the observed answers, block by block."""
        A, Q = self.problem.with_confounds(factors.scores), factors.loadings
        return [block.masked(block.X - A[:, block.rows].T @ Q) for block in self.problem.blocks()]


def _row_sums(residuals: list[Array], u: Array) -> Array:
    """Σ_i u_i e_i over the rows of all blocks."""
    total, first = np.zeros(residuals[0].shape[1]), 0
    for E in residuals:
        total += u[first : first + len(E)] @ E
        first += len(E)
    return total


@dataclass(frozen=True)
class Trial:
    """One fit with some answers hidden."""

    repeat: int  # what was fitted
    fold: int
    n_components: int
    beta: float
    error: float  # mean squared error of the hidden answers
    n_hidden: int  # hidden answers
    # sum of their participants' weights, by which folds are pooled; without weights, their number
    weight: float
    n_iter: int  # iterations of the fit
    # the fit's equal share of the time of its batch: the fits of one number of factors in one task,
    # with their starts and without their judging
    seconds: float
    # squared error of the hidden answers by item, packed to be small in a journal (`unpacked`);
    # empty if the engine evaluates the fits itself
    squares: str = ""
    # squared errors and weights (2, blocks) by block of participants, packed as well
    blocks: str = ""


# of a table of trials
COLUMNS = tuple(each.name for each in fields(Trial) if each.name not in ("squares", "blocks"))


def packed(numbers: Array) -> str:
    """Numbers in single precision as a text."""
    return b64encode(numbers.astype("<f4").tobytes()).decode()


def unpacked(text: str) -> Array:
    """The numbers of a text that `packed` made, in one row."""
    return np.frombuffer(b64decode(text), "<f4").astype(float)


@dataclass(frozen=True)
class End:
    """Where the fits with all penalties, each from where the last ended, have come: to this one."""

    beta: float
    factors: Factors


@dataclass(frozen=True)
class Task:
    """Fits that run together: folds (repeat, fold), and numbers of factors, each with all penalties.

    With `ends`, of each fold and number of factors, only with the penalties that come after those; with
    `strongest`, of each number of factors, with penalties up to that one.
    """

    folds: tuple[tuple[int, int], ...]
    ks: tuple[int, ...]
    ends: Mapping[Place, End] | None = None
    strongest: Mapping[int, float] | None = None

    def betas(self, plan: Plan, k: int) -> list[float]:
        """The penalties that fits with k factors go through, weaker ones first."""
        most = max(plan.betas) if self.strongest is None else self.strongest[k]
        return sorted(beta for beta in plan.betas if beta <= most)


@dataclass(frozen=True)
class Plan:
    """What all tasks share."""

    problem: Problem
    folds: tuple[Folds, ...]  # one per repeat
    betas: tuple[float, ...]
    init: str
    tol: float
    max_iter: int
    seed: int = 0  # of random starts
    given: Array | None = None  # the answers in their own units, when their range is not declared
    engine: Any = "local"  # where the fits run
    thorough: bool = False  # whether fits also begin at a start that has grown, and the better one counts
    # The estimator's own solver, for fits with all its bounds, each from its start; None is the fast one, for
    # fits without the bound on reconstructed answers that begin where the last penalty's ended.
    solver: Solver | None = None

    @property
    def every_fold(self) -> list[tuple[int, int]]:
        """(repeat, fold) of all folds."""
        return [(repeat, fold) for repeat, cut in enumerate(self.folds) for fold in range(cut.n_splits)]


def tasks(
    plan: Plan, candidates: Mapping[int, float], folds: Sequence[tuple[int, int]], *, pieces: int
) -> list[Task]:
    """Numbers of factors, each with its strongest penalty, in some folds, the costliest first.

    Each fold is cut into `pieces` of about equal cost. An engine that solves many problems at once is given
    all of them.
    """
    ks = tuple(sorted(candidates))
    if engine_of(plan.engine).batches:
        return [Task(tuple(folds), ks, strongest=candidates)]
    groups = [ks[at::pieces] for at in range(min(pieces, len(ks)))]
    return [Task((fold,), group, strongest=candidates) for group in groups for fold in folds]


def run_task(plan: Plan, task: Task, ends: dict[Place, End] | None = None) -> list[Trial]:
    """Fit every candidate of a task with its folds' answers hidden, and judge it by them.

    Where the fits with the strongest penalty ended is added to `ends`, if given; an engine that compares
    candidates itself does not tell.
    """
    held_out = [
        HeldOut(
            plan.problem,
            plan.folds[repeat].mask(fold, plan.problem),
            given=plan.given,
            bounded=plan.solver is not None,
        )
        for repeat, fold in task.folds
    ]
    batches = engine_of(plan.engine).batches
    if batches and plan.init == "nndsvd" and not plan.thorough and task.ends is None and plan.solver is None:
        trials = _compared_by_engine(plan, task, held_out)
        if trials is not None:
            return trials
    first = min(plan.betas)
    grown = [Growth(each.visible.with_beta(first), tol=plan.tol) for each in held_out if plan.thorough]
    return [trial for k in task.ks for trial in _trials(plan, task, held_out, grown, k, ends)]


def hidden_fit_of(plan: Plan, trials: Iterable[Trial], k: int, beta: float) -> HiddenFit | None:
    """How well one candidate predicted hidden answers, and the items' means, in the first repeat's folds.

    None if participants or items are fewer than the folds, or if the engine returned only means.
    """
    of_fold = {
        trial.fold: trial.squares
        for trial in trials
        if (trial.repeat, trial.n_components, trial.beta) == (0, k, beta)
    }
    problem, cut = plan.problem, plan.folds[0]
    if min(problem.n, problem.m) < cut.n_splits or not all(of_fold.values()):
        return None
    means = (
        HeldOut(problem, cut.mask(fold, problem), given=plan.given).error_of_means()
        for fold in range(cut.n_splits)
    )
    return HiddenFit(
        np.array([unpacked(of_fold[fold]) for fold in range(cut.n_splits)]),
        np.array([each.squares for each in means]),
    )


def _compared_by_engine(plan: Plan, task: Task, held_out: Sequence[HeldOut]) -> list[Trial] | None:
    """The trials of a task by an engine that compares candidates itself; None where it does not."""
    clock = time.perf_counter()
    problems = [each.visible for each in held_out]
    answers = [
        each.hidden_answers(plan.folds[repeat].row_block)
        for each, (repeat, _) in zip(held_out, task.folds, strict=True)
    ]
    betas = task.betas(plan, max(task.ks, key=lambda k: task.betas(plan, k)[-1]))
    found = engine_of(plan.engine).search(
        problems, answers, task.ks, betas, tol=plan.tol, max_iter=plan.max_iter
    )
    if found is None:
        return None
    seconds = (time.perf_counter() - clock) / len(found)
    by_row = [np.count_nonzero(each.hidden, axis=1) for each in answers]
    weights = np.ones(plan.problem.n) if plan.problem.weights is None else plan.problem.weights
    hidden = [(int(each.sum()), float(each @ weights)) for each in by_row]
    return [
        Trial(
            *(
                *task.folds[each.fold],
                each.k,
                each.beta,
                each.error,
                *hidden[each.fold],
                each.n_iter,
                seconds,
            ),
            blocks=packed(each.blocks),
        )
        for each in found
    ]


def _trials(
    plan: Plan,
    task: Task,
    held_out: Sequence[HeldOut],
    grown: Sequence[Growth],
    k: int,
    ends: dict[Place, End] | None,
) -> Iterator[Trial]:
    """The trials of one number of factors: for each penalty one batch of folds, from where the last ended."""
    clock = time.perf_counter()
    betas = task.betas(plan, k)
    if task.ends is None:
        # A generator for each fold and k: a start does not depend on what else the task tries.
        rngs = [np.random.default_rng([plan.seed, *place, k]) for place in task.folds]
        factors: list[Any] = [
            each.starts.make(plan.init, k, rng) if plan.solver is None else NamedStart(plan.init, k, rng)
            for each, rng in zip(held_out, rngs, strict=True)
        ]
    else:
        before = [task.ends[*place, k] for place in task.folds]
        factors = [end.factors for end in before]
        betas = [beta for beta in betas if beta > before[0].beta]
    found: list[tuple[float, list[Iterated]]] = []
    settings: dict[str, Any] = {"tol": plan.tol, "max_iter": plan.max_iter, "engine": plan.engine}
    if plan.solver is not None:
        settings["solver"] = plan.solver
    for beta in betas:
        problems = [each.visible.with_beta(beta) for each in held_out]
        fits = run(problems, factors, exact=False, **settings)
        if grown and not found and task.ends is None:
            starts = [growth.start(k) for growth in grown]
            others = run(problems, starts, exact=False, **settings)
            fits = [
                min(both, key=partial(_reached, problem))
                for problem, *both in zip(problems, fits, others, strict=True)
            ]
        if plan.solver is None:
            factors = [fit.factors for fit in fits]
        found.append((beta, fits))
    seconds = (time.perf_counter() - clock) / (len(found) * len(held_out))
    for beta, fits in found:
        for (repeat, fold), each, fit in zip(task.folds, held_out, fits, strict=True):
            error, row_block = each.error(fit.factors), plan.folds[repeat].row_block
            blocks = np.array(
                [np.bincount(row_block, weights=sums) for sums in (error.by_row, each.weights_by_row)]
            )
            counts = error.count, each.weight, fit.n_iter, seconds
            yield Trial(repeat, fold, k, beta, error.mean, *counts, packed(error.squares), packed(blocks))
    if ends is not None:
        for place, fit in zip(task.folds, found[-1][1], strict=True):
            ends[*place, k] = End(betas[-1], fit.factors)


def _reached(problem: Problem, fit: Iterated) -> float:
    """The objective on the answers that a fit was shown, at the point that it returns."""
    return problem.objective(fit.factors.scores, fit.factors.loadings)


class SearchJournal:
    """The trials of one search in a journal, which other searches and other work may share."""

    def __init__(self, checkpoint: str | os.PathLike[str] | WorkJournal, identity: str) -> None:
        journal = checkpoint if isinstance(checkpoint, WorkJournal) else WorkJournal(checkpoint)
        journal.recognise(_WORK, [identity])
        self.trials: list[Trial] = []
        self._journal, self._identity = journal, identity
        for number, record in enumerate(journal.records, start=2):
            try:
                if record["key"] == identity:
                    self.trials.append(Trial(**record["result"]))
            except (TypeError, KeyError):
                raise journal.damaged(number) from None

    def add(self, trials: Iterable[Trial]) -> None:
        """Write finished fits and make sure that they are on disk."""
        common = {"work": _WORK, "key": self._identity}
        self._journal.append({**common, "result": asdict(trial)} for trial in trials)


COST = 0.3  # smallest replication probability of a worthwhile factor
Callback = Callable[[Progress], object]
RANDOM_SETS = 20  # of parallel analysis
_REACH = 4  # numbers of factors tried beyond that of parallel analysis
_WIDEN = 3  # how many more are tried when the best lies at the edge
_TASKS_PER_JOB = 4
_TRIES = 3  # of work that a cluster has lost
STRONGEST = 8.0  # penalty that is tried of its own accord
_FIRST = 0.3  # share of a division's folds in which all candidates are fitted
_HOPELESS, _SETTLED = 0.01, 0.95  # shares of draws by which a candidate is given up, and has won
# Rules that look at resamples, which are drawn later: what their candidates race for.
_RACED_AS = {"stable": "one_se", "replicable": "min"}
MOST_KEPT = 2**28  # bytes of scores from which fits with a stronger penalty can start


def replicable_curve(
    problem: Problem,
    candidates: Sequence[tuple[int, float]],
    *,
    n_halves: int,
    groups: Array | None = None,
    n_jobs: int | None = None,
    engine: str | Engine = "local",
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Fit each (k, beta) to everybody and to halves, and predict what another study finds."""
    fits = best_fits(problem, candidates, engine=engine)
    models = [(beta, loadings[:k]) for (k, beta), loadings in zip(candidates, fits, strict=True)]
    found = agreement_of(
        problem, models, n_halves=n_halves, groups=groups, n_jobs=n_jobs, engine=engine, rng=rng
    )
    tables = [
        replication_table(agreement.halves, loadings, default_names(len(loadings)))
        for agreement, (_, loadings) in zip(found, models, strict=True)
    ]
    table = replicable_table([table["probability"] for table in tables])
    table.insert(1, "beta", [beta for _, beta in candidates])
    return table


def replicable_table(probabilities: Sequence[Any]) -> pd.DataFrame:
    """How many factors another study finds, for each number of them, by the factors' probabilities."""
    return pd.DataFrame(
        [
            {
                "n_components": len(each),
                "weakest": float(np.min(each)),
                "found": float(np.sum(each)),
                "gain": float(np.sum(np.asarray(each) - COST)),
            }
            for each in probabilities
        ]
    )


class Race:
    """Candidates fitted fold by fold, and given up as soon as they are out of the running.

    All are fitted in the first few folds, those that another sample might choose in all folds of the first
    division, and those that another division might choose in further divisions, until the number of factors
    is settled or that has cost as much as a whole division with all candidates. A fit always comes through
    all weaker penalties, so that it does not depend on which other candidates are left. With `widen`, more
    numbers of factors are tried while the best lies at their edge; with `strengthen`, stronger penalties
    while the best is the strongest.
    """

    def __init__(
        self,
        plan: Plan,
        ks: Sequence[int],
        *,
        widen: bool,
        strengthen: bool,
        journal: SearchJournal | None,
        n_jobs: int | None,
        callback: Callback | None,
    ) -> None:
        self.plan, self.widen, self.strengthen = plan, widen, strengthen
        self.journal, self.callback = journal, callback
        self.n_jobs = 1 if engine_of(plan.engine).batches else n_jobs
        self.tried = dict.fromkeys(ks, max(plan.betas))  # by number of factors, the strongest penalty
        self.ends: dict[Place, End] = {}
        self.known: dict[Any, Trial] = {}
        self._earlier = {} if journal is None else {_key(trial): trial for trial in journal.trials}

    def run_all(self) -> list[Trial]:
        """All candidates in all folds."""
        self._run_and_extend(self.tried, self.plan.every_fold)
        return self._trials()

    def run(self, rule: str, within: float | None = None) -> list[Trial]:
        """A race for the choice by a rule."""
        rule = rule if RULES.load(rule).looks_at is None else _RACED_AS.get(rule, "one_se")
        self._rule, self._within = rule, within
        first = [fold for fold in self.plan.every_fold if fold[0] == 0]
        few = first[: max(2, round(_FIRST * len(first)))]
        left = self._run_and_extend(self.tried, few, then=first[len(few) :])
        whole = _cost(self.plan, self.tried, first)
        if few != first:
            evidence = self._evidence()
            left, _ = self._still(evidence, evidence.between_participants(), neighbours=True)
            left = self._run_and_extend(left, first, then=first)
        spent = 0.0
        for repeat in range(1, len(self.plan.folds)):
            evidence = self._evidence()
            left, settled = self._still(evidence, evidence.between_divisions())
            folds = [fold for fold in self.plan.every_fold if fold[0] == repeat]
            spent += _cost(self.plan, left, folds)
            if settled or spent > whole:
                break
            self._run(left, folds, then=folds)
        _report_progress(self.callback, len(self.known), len(self.known), self.known)
        return self._trials()

    def _evidence(self) -> Evidence:
        trials = self._trials()
        return Evidence(as_table(trials), blocks_of(trials))

    def _trials(self) -> list[Trial]:
        return [self.known[key] for key in sorted(self.known)]

    def _still(
        self, evidence: Evidence, noise: Noise, *, neighbours: bool = False
    ) -> tuple[dict[int, float], bool]:
        """Numbers of factors that may still be chosen, or be the best, with the strongest penalty of each.

        With `neighbours`, those next to the best as well. And whether the choice is settled.
        """
        rng, columns = np.random.default_rng([self.plan.seed, 5]), noise.columns
        picks, lowest = draws(evidence, noise, self._rule, rng=rng, within=self._within)
        share = np.bincount(np.concatenate([picks, lowest]), minlength=len(evidence.ks)) / len(picks)
        best = evidence.ks[evidence.best]
        left: dict[int, float] = {}
        for k in np.unique(evidence.ks[columns]).tolist():
            own = columns[evidence.ks[columns] == k]
            if share[own].sum() >= _HOPELESS or (neighbours and abs(k - best) <= 1):
                running = own[share[own] >= _HOPELESS / len(own)]
                running = running if len(running) else own[[evidence.errors[own].argmin()]]
                left[k] = float(evidence.betas[running].max())
        return left, bool(np.bincount(evidence.ks[picks]).max() >= _SETTLED * len(picks))

    def _run_and_extend(
        self,
        candidates: Mapping[int, float],
        folds: Sequence[tuple[int, int]],
        *,
        then: Sequence[tuple[int, int]] = (),
    ) -> dict[int, float]:
        """Fit candidates, and further ones while the best lies at the edge; returns all of them."""
        now = dict(candidates)
        highest = min(self.plan.problem.n, self.plan.problem.m)
        while True:
            self._run(now, folds, then=then)
            k, beta, _ = best_row(self._evidence().table())
            more, stronger = [], max(self.plan.betas)
            if self.widen and k == max(self.tried):
                more = list(range(k + 1, min(highest, k + _WIDEN) + 1))
            if self.strengthen and beta == stronger < STRONGEST:
                stronger *= 2
                self.plan = replace(self.plan, betas=(*self.plan.betas, stronger))
                now = {each: stronger if most == beta else most for each, most in now.items()}
            elif not more:
                return now
            now |= dict.fromkeys(more, max(now.values()))
            self.tried |= now

    def _run(
        self,
        candidates: Mapping[int, float],
        folds: Sequence[tuple[int, int]],
        *,
        then: Sequence[tuple[int, int]] = (),
    ) -> None:
        """Fit what is not known yet of these candidates in these folds; `then` are folds likely to follow.

        A penalty starts from where the last ended: from `ends`, to which new ones are added, or else all
        weaker ones are fitted again.
        """
        known, ends = self.known, self.ends if self._keeps_ends() else None
        wanted = {
            (*fold, k, beta)
            for k, most in candidates.items()
            for beta in self.plan.betas
            if beta <= most
            for fold in folds
        }
        known |= {key: self._earlier[key] for key in wanted if key in self._earlier}
        penalties = sum(beta <= most for most in candidates.values() for beta in self.plan.betas)
        total = len(known) + len(wanted - known.keys()) + penalties * len(then)
        jobs = effective_n_jobs(self.n_jobs)
        pieces = max(1, -(-_TASKS_PER_JOB * jobs // len(folds))) if jobs > 1 else 1
        _report_progress(self.callback, len(known), total, known)
        for tries_left in reversed(range(_TRIES)):
            todo = [
                part
                for task in tasks(self.plan, candidates, folds, pieces=pieces)
                for part in _parts_left(self.plan, task, known, ends or {})
            ]
            work = ((_task_with_ends, self.plan, task, ends is not None) for task in todo)
            try:
                with closing_quietly(start_calls(work, n_jobs=self.n_jobs, ordered=False)) as results:
                    for finished, ended in results:
                        new = [trial for trial in finished if _key(trial) in wanted - known.keys()]
                        if self.journal is not None:
                            self.journal.add(new)
                        known |= {_key(trial): trial for trial in new}
                        if ends is not None:
                            ends |= ended
                        _report_progress(self.callback, len(known), total, known)
                break
            except CancelledError:  # a cluster may forget work of a worker that it lost
                if not tries_left:
                    raise

    def _keeps_ends(self) -> bool:
        """Whether the scores of one fit for each fold and number of factors are small enough to be kept."""
        problem, n_folds = self.plan.problem, len([fold for fold in self.plan.every_fold if fold[0] == 0])
        size = n_folds * problem.n * sum(self.tried) * int(np.dtype(problem.dtype).itemsize)
        return self.strengthen and size <= MOST_KEPT


def _cost(plan: Plan, candidates: Mapping[int, float], folds: Sequence[Any]) -> float:
    """What fits cost, in proportion: each iteration by the number of factors and confounds."""
    columns = plan.problem.c
    fits = ((k + columns) * sum(beta <= most for beta in plan.betas) for k, most in candidates.items())
    return len(folds) * sum(fits)


def blocks_of(trials: Iterable[Trial]) -> dict[Any, Array] | None:
    """Squared errors and weights (2, blocks) of each trial by block of participants; None where untold."""
    found = {_key(trial): unpacked(trial.blocks).reshape(2, -1) for trial in trials if trial.blocks}
    return found or None


def _parts_left(plan: Plan, task: Task, known: Mapping[Any, Trial], ends: Mapping[Place, End]) -> list[Task]:
    """The unfinished part of a task: numbers of factors that begin, and those that continue."""
    left = [
        k
        for k in task.ks
        if any((*fold, k, beta) not in known for fold in task.folds for beta in task.betas(plan, k))
    ]
    places = {k: [(*fold, k) for fold in task.folds] for k in left}
    reached = {k: {ends[place].beta if place in ends else None for place in places[k]} for k in left}
    onward = [k for k in left if len(reached[k]) == 1 and None not in reached[k]]
    mine = {place: ends[place] for k in onward for place in places[k]}
    parts = [
        replace(task, ks=tuple(k for k in left if k not in onward)),
        replace(task, ks=tuple(onward), ends=mine),
    ]
    return [part for part in parts if part.ks]


def _task_with_ends(plan: Plan, task: Task, keep: bool) -> tuple[list[Trial], dict[Place, End]]:
    ends: dict[Place, End] = {}
    return run_task(plan, task, ends if keep else None), ends


def as_table(trials: Sequence[Trial]) -> pd.DataFrame:
    """Trials as a table, one row per fit."""
    table = pd.DataFrame({name: [getattr(trial, name) for trial in trials] for name in COLUMNS})
    return table.sort_values(["repeat", "fold", "n_components", "beta"], ignore_index=True)


def parallel_count(problem: Problem, random_state: Any) -> FactorCount:
    """Parallel analysis of the answers, without items that do not vary."""
    from icqf.baselines.retention import parallel_analysis

    answers = np.where(problem.answers >= 0, problem.answers.astype(float), np.nan)
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # of an item that nobody answered
        varying = np.nanstd(answers, axis=0) > 0
    return parallel_analysis(answers[:, varying], n_iter=RANDOM_SETS, random_state=random_state)


def suggested_count(problem: Problem, seed: int) -> FactorCount | None:
    """Parallel analysis as a starting point; None, with a warning, if it is not possible."""
    try:
        return parallel_count(problem, seed)
    except InputError:
        warnings.warn(
            "Parallel analysis, which suggests where to begin, is not possible, because too few participants "
            "answered some two items, or gave the same answer to one of them; up to "
            f"{first_candidates(problem, None)[-1]} factors are tried.",
            stacklevel=2,
        )
    return None


def first_candidates(problem: Problem, suggested: FactorCount | None) -> list[int]:
    """The numbers of factors from 1 to a few more than parallel analysis suggests.

    Small numbers cost little, and a second study may confirm no more than those.
    """
    centre = 1 + _REACH if suggested is None else max(1, suggested.n_components)
    return list(range(1, min(centre + _REACH, problem.n, problem.m) + 1))


def _key(trial: Trial) -> tuple[int, int, int, float]:
    return trial.repeat, trial.fold, trial.n_components, trial.beta


def _report_progress(callback: Callback | None, done: int, total: int, known: Mapping[Any, Trial]) -> None:
    if callback is None:
        return
    sums: dict[tuple[int, float], tuple[float, float]] = {}  # as `Evidence`, which takes longer than a fit
    for trial in known.values():
        at = trial.n_components, trial.beta
        error, weight = sums.get(at, (0.0, 0.0))
        sums[at] = error + trial.error * trial.weight, weight + trial.weight
    most = max((weight for _, weight in sums.values()), default=0.0)  # not those that were given up early
    means = ((error / weight, at) for at, (error, weight) in sums.items() if weight > most / 2)
    error, (k, beta) = min(means, default=(0.0, (0, 0.0)))
    best = f"{counted(k, 'factor')}, beta {beta:g} (error {error:.4g})" if k else ""
    callback(Progress(done, total, best))
