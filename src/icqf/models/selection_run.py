"""The search: candidates tried fold by fold, in parallel, with what an earlier run finished."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from joblib import effective_n_jobs
from numpy.typing import NDArray

from icqf.baselines.retention import FactorCount, parallel_analysis
from icqf.core.problem import Problem
from icqf.engines.base import Engine
from icqf.engines.choice import engine_of
from icqf.engines.parallel import Progress, ended_quietly, started
from icqf.errors import InputError, counted
from icqf.models.consensus import best_fits, resampled_agreement
from icqf.models.search import COLUMNS, End, Place, Plan, SearchJournal, Task, Trial, run_task, tasks
from icqf.models.selection_rules import best_row, error_table
from icqf.resampling.replication import CURVE, ChanceCurve

Array = NDArray[Any]
COST = 0.3  # a factor must be this likely to be found again to be worth having
Callback = Callable[[Progress], object]
RANDOM_SETS = 20  # of parallel analysis
_REACH = 4  # numbers of factors tried beyond that of parallel analysis
_WIDEN = 3  # how many more are tried when the best lies at the edge
_TASKS_PER_JOB = 4
_TRIES = 3  # of work that a cluster has lost
STRONGEST = 8.0  # penalty that is tried of its own accord
MOST_KEPT = 2**28  # bytes of scores from which fits with a stronger penalty can start


def replicable_curve(
    problem: Problem,
    candidates: Sequence[tuple[int, float]],
    *,
    n_resamples: int,
    groups: Array | None = None,
    n_jobs: int | None = None,
    engine: str | Engine = "local",
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Fit each (k, beta) to all participants and to resamples, and say what a second study would find."""
    fits = best_fits(problem, candidates, engine=engine)
    models = [(beta, loadings[:k]) for (k, beta), loadings in zip(candidates, fits, strict=True)]
    found = resampled_agreement(
        problem, models, n_resamples=n_resamples, groups=groups, n_jobs=n_jobs, engine=engine, rng=rng
    )
    table = replicable_table([k for k, _ in candidates], found)
    table.insert(1, "beta", [beta for _, beta in candidates])
    return table


def replicable_table(
    ks: Sequence[int], agreement: Sequence[Array], *, curve: ChanceCurve = CURVE
) -> pd.DataFrame:
    """What resamples say about each number of factors."""
    rows = []
    for k, values in zip(ks, agreement, strict=True):
        by_factor = np.mean(values, axis=0)
        chance = curve(by_factor)
        rows.append(
            {
                "n_components": k,
                "agreement": by_factor.mean(),
                "weakest": by_factor.min(),
                "found": chance.sum(),
                "gain": (chance - COST).sum(),
            }
        )
    return pd.DataFrame(rows)


def run_search(
    plan: Plan,
    ks: Sequence[int],
    *,
    widen: bool,
    strengthen: bool,
    journal: SearchJournal | None,
    n_jobs: int | None,
    callback: Callback | None,
) -> list[Trial]:
    """All trials for these numbers of factors and the plan's penalties.

    With `widen`, for more numbers of factors while the best lies at their edge; with `strengthen`, for
    stronger penalties while the best is the strongest of them.
    """
    trials: list[Trial] = []
    ends: dict[Place, End] = {}
    highest = min(plan.problem.n, plan.problem.m)
    while True:
        trials = _run(
            plan, ks, journal=journal, before=trials, n_jobs=n_jobs, callback=callback,
            ends=ends if strengthen and _kept_size(plan, ks) <= MOST_KEPT else None,
        )  # fmt: skip
        further = _further(trials, ks, highest=highest) if widen else []
        stronger = _stronger(trials, max(plan.betas)) if strengthen else None
        if not further and stronger is None:
            return trials
        ks = sorted({*ks, *further})
        plan = plan if stronger is None else replace(plan, betas=(*plan.betas, stronger))


def _kept_size(plan: Plan, ks: Sequence[int]) -> int:
    """Bytes of the scores of one fit for each fold and number of factors."""
    return len(plan.every_fold) * plan.problem.n * sum(ks) * int(np.dtype(plan.problem.dtype).itemsize)


def _run(
    plan: Plan,
    ks: Sequence[int],
    *,
    journal: SearchJournal | None,
    before: Sequence[Trial],
    n_jobs: int | None,
    callback: Callback | None,
    ends: dict[Place, End] | None,
) -> list[Trial]:
    """All trials for these numbers of factors and the plan's penalties: from the journal, from before, or run
    now.

    A penalty starts from where the last ended: from `ends`, to which new ones are added, or else all weaker
    ones are fitted again.
    """
    every_fold, betas = plan.every_fold, plan.betas
    wanted = {(*fold, k, beta) for fold in every_fold for k in ks for beta in betas}
    earlier = [*(journal.trials if journal else ()), *before]
    known = {_key(trial): trial for trial in earlier if _key(trial) in wanted}
    if engine_of(plan.engine).batches:
        n_jobs = 1
    jobs = effective_n_jobs(n_jobs)
    pieces = max(1, -(-_TASKS_PER_JOB * jobs // len(every_fold))) if jobs > 1 else 1
    _tell(callback, len(known), len(wanted), known)
    for tries_left in reversed(range(_TRIES)):
        todo = [
            part
            for task in tasks(plan, ks, pieces=pieces)
            for part in _parts_left(task, betas, known, ends or {})
        ]
        work = ((_task_with_ends, plan, task, ends is not None) for task in todo)
        try:
            with ended_quietly(started(work, n_jobs=n_jobs, ordered=False)) as results:
                for finished, ended in results:
                    new = [trial for trial in finished if _key(trial) not in known]
                    if journal is not None:
                        journal.add(new)
                    known |= {_key(trial): trial for trial in new}
                    if ends is not None:
                        ends |= ended
                    _tell(callback, len(known), len(wanted), known)
            break
        except CancelledError:  # a cluster may forget work of a worker that it lost
            if not tries_left:
                raise
    return [known[key] for key in sorted(known)]


def _parts_left(
    task: Task, betas: Sequence[float], known: Mapping[Any, Trial], ends: Mapping[Place, End]
) -> list[Task]:
    """What is left to do of a task: numbers of factors that begin anew, and those that continue."""
    left = [k for k in task.ks if any((*f, k, beta) not in known for f in task.folds for beta in betas)]
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
    """What parallel analysis says of the answers, without items that everybody answered alike."""
    answers = np.where(problem.answers >= 0, problem.answers.astype(float), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of an item that nobody answered
        varying = np.nanstd(answers, axis=0) > 0
    return parallel_analysis(answers[:, varying], n_iter=RANDOM_SETS, random_state=random_state)


def suggested_count(problem: Problem, seed: int) -> FactorCount | None:
    """What parallel analysis says of where to begin; None, with a warning, where it is not possible."""
    try:
        return parallel_count(problem, seed)
    except InputError as error:
        warnings.warn(
            f"Parallel analysis, which suggests where to begin, is not possible ({str(error).rstrip('.')}); "
            f"up to {first_candidates(problem, None)[-1]} factors are tried.",
            stacklevel=2,
        )
    return None


def first_candidates(problem: Problem, suggested: FactorCount | None) -> list[int]:
    """The numbers of factors from 1 to a few more than parallel analysis suggests.

    Small numbers cost little, and a second study may confirm no more than those.
    """
    centre = 1 + _REACH if suggested is None else max(1, suggested.n_components)
    return list(range(1, min(centre + _REACH, problem.n, problem.m) + 1))


def _further(trials: Sequence[Trial], ks: Sequence[int], *, highest: int) -> list[int]:
    """More numbers of factors to try when the best of those tried lies at their edge."""
    best = best_row(error_table(as_table(trials)))[0]
    more: list[int] = []
    if best == max(ks):
        more += range(best + 1, min(highest, best + _WIDEN) + 1)
    return more


def _stronger(trials: Sequence[Trial], strongest: float) -> float | None:
    """The next penalty to try when the best is the strongest of those tried."""
    best = best_row(error_table(as_table(trials)))[1]
    return 2 * strongest if best == strongest < STRONGEST else None


def _key(trial: Trial) -> tuple[int, int, int, float]:
    return trial.repeat, trial.fold, trial.n_components, trial.beta


def _tell(callback: Callback | None, done: int, total: int, known: Mapping[Any, Trial]) -> None:
    if callback is None:
        return
    sums: dict[tuple[int, float], tuple[float, float]] = {}  # as `error_table`, which takes longer than a fit
    for trial in known.values():
        at = trial.n_components, trial.beta
        error, weight = sums.get(at, (0.0, 0.0))
        sums[at] = error + trial.error * trial.weight, weight + trial.weight
    means = ((error / weight, at) for at, (error, weight) in sums.items() if weight > 0)
    error, (k, beta) = min(means, default=(0.0, (0, 0.0)))
    best = f"{counted(k, 'factor')}, beta {beta:g} (error {error:.4g})" if k else ""
    callback(Progress(done, total, best))
