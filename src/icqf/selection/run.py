"""The search itself: candidates tried fold by fold, in parallel, with what an earlier run finished."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd
from joblib import effective_n_jobs

from icqf.baselines.retention import parallel_analysis
from icqf.engines.choice import engine_of
from icqf.errors import InputError, counted
from icqf.jobs.parallel import Progress, ended_quietly, started
from icqf.selection.journal import SearchJournal
from icqf.selection.rules import best_row, error_table
from icqf.selection.search import Plan, Trial, run_task, tasks
from icqf.solvers.problem import Problem

Callback = Callable[[Progress], object]
_REACH = 4  # numbers of factors tried beyond that of parallel analysis
_WIDEN = 3  # how many more are tried when the best lies at the edge
_TASKS_PER_JOB = 4
STRONGEST = 8.0  # penalty that is tried of its own accord


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
    plans = [plan]  # with penalties that are tried one after the other, each from where the last ended
    highest = min(plan.problem.n, plan.problem.m)
    while True:
        trials = _run(plans, ks, journal=journal, before=trials, n_jobs=n_jobs, callback=callback)
        further = _further(trials, ks, highest=highest) if widen else []
        stronger = _stronger(trials, max(plans[-1].betas)) if strengthen else None
        if not further and stronger is None:
            return trials
        ks = sorted({*ks, *further})
        plans += [] if stronger is None else [replace(plan, betas=(stronger,))]


def _run(
    plans: Sequence[Plan],
    ks: Sequence[int],
    *,
    journal: SearchJournal | None,
    before: Sequence[Trial],
    n_jobs: int | None,
    callback: Callback | None,
) -> list[Trial]:
    """All trials for these numbers of factors: from the journal, from before, or run now."""
    wanted = {(k, beta) for k in ks for plan in plans for beta in plan.betas}
    earlier = [*(journal.trials if journal else ()), *before]
    known = {_key(trial): trial for trial in earlier if (trial.n_components, trial.beta) in wanted}
    if engine_of(plans[0].engine).batches(plans[0].problem):
        n_jobs = 1
    jobs, n_folds = effective_n_jobs(n_jobs), len(plans[0].every_fold)
    pieces = max(1, -(-_TASKS_PER_JOB * jobs // n_folds)) if jobs > 1 else 1

    def missing(k: int, plan: Plan, folds: Sequence[tuple[int, int]]) -> bool:
        return any((*fold, k, beta) not in known for fold in folds for beta in plan.betas)

    left = [
        (plan, replace(task, ks=tuple(k for k in task.ks if missing(k, plan, task.folds))))
        for plan in plans
        for task in tasks(plan, ks, pieces=pieces)
    ]
    todo = [(plan, task) for plan, task in left if task.ks]
    total = len(ks) * n_folds * sum(len(plan.betas) for plan in plans)
    done = total - sum(len(task.ks) * len(task.folds) * len(plan.betas) for plan, task in todo)
    _tell(callback, done, total, known)
    work = ((run_task, plan, task) for plan, task in todo)
    with ended_quietly(started(work, n_jobs=n_jobs, ordered=False)) as results:
        for finished in results:
            if journal is not None:
                journal.add(finished)
            known |= {_key(trial): trial for trial in finished}
            done += len(finished)
            _tell(callback, done, total, known)
    return [known[key] for key in sorted(known)]


def as_table(trials: Sequence[Trial]) -> pd.DataFrame:
    """Trials as a table, one row per fit."""
    table = pd.DataFrame([asdict(trial) for trial in trials])
    return table.sort_values(["repeat", "fold", "n_components", "beta"], ignore_index=True)


def first_candidates(problem: Problem, seed: int) -> list[int]:
    """The numbers of factors from 1 to a few more than parallel analysis suggests.

    Small numbers cost little, and a second study may confirm no more than those.
    """
    answers = np.where(problem.answers >= 0, problem.answers.astype(float), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of an item that nobody answered
        varying = np.nanstd(answers, axis=0) > 0
    highest = min(problem.n, problem.m)
    try:
        centre = max(1, parallel_analysis(answers[:, varying], n_iter=20, random_state=seed).n_components)
    except InputError as error:
        centre = 1 + _REACH
        warnings.warn(
            f"Parallel analysis, which suggests where to begin, is not possible ({str(error).rstrip('.')}); "
            f"up to {min(centre + _REACH, highest)} factors are tried.",
            stacklevel=2,
        )
    return list(range(1, min(centre + _REACH, highest) + 1))


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
    best = ""
    if known:
        k, beta, error = best_row(error_table(as_table(list(known.values()))))
        best = f"{counted(k, 'factor')}, beta {beta:g} (error {error:.4g})"
    callback(Progress(done, total, best))
