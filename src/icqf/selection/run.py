"""The search itself: candidates tried fold by fold, in parallel, with what an earlier run finished."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, effective_n_jobs

from icqf.baselines.retention import parallel_analysis
from icqf.errors import InputError
from icqf.jobs.parallel import Progress, ended_quietly, on_one_thread, started
from icqf.selection.journal import SearchJournal
from icqf.selection.rules import best_row, error_table
from icqf.selection.search import Plan, Trial, run_task, tasks
from icqf.solvers.problem import Problem

Callback = Callable[[Progress], object]
_REACH = 4  # numbers of factors tried beyond that of parallel analysis
_WIDEN = 3  # how many more are tried when the best lies at the edge
_TASKS_PER_JOB = 4


def run_search(
    plan: Plan,
    ks: Sequence[int],
    *,
    widen: bool,
    journal: SearchJournal | None,
    n_jobs: int | None,
    callback: Callback | None,
) -> list[Trial]:
    """All trials for these numbers of factors; with `widen`, for more while the best lies at their edge."""
    trials: list[Trial] = []
    more: Sequence[int] = ks
    while more:
        ks = sorted({*ks, *more})
        trials = _run(plan, ks, journal=journal, before=trials, n_jobs=n_jobs, callback=callback)
        more = _further(trials, ks, highest=min(plan.problem.n, plan.problem.m)) if widen else ()
    return trials


def _run(
    plan: Plan,
    ks: Sequence[int],
    *,
    journal: SearchJournal | None,
    before: Sequence[Trial],
    n_jobs: int | None,
    callback: Callback | None,
) -> list[Trial]:
    """All trials for these numbers of factors: from the journal, from before, or run now."""
    wanted = set(ks)
    earlier = [*(journal.trials if journal else ()), *before]
    known = {_key(trial): trial for trial in earlier if trial.n_components in wanted}
    jobs, n_folds = effective_n_jobs(n_jobs), len(plan.every_fold)
    pieces = max(1, -(-_TASKS_PER_JOB * jobs // n_folds)) if jobs > 1 else 1

    def missing(k: int, folds: Sequence[tuple[int, int]]) -> bool:
        return any((*fold, k, beta) not in known for fold in folds for beta in plan.betas)

    left = [
        replace(task, ks=tuple(k for k in task.ks if missing(k, task.folds)))
        for task in tasks(plan, ks, pieces=pieces)
    ]
    todo = [task for task in left if task.ks]
    total = len(ks) * len(plan.betas) * n_folds
    done = total - sum(len(task.ks) * len(task.folds) for task in todo) * len(plan.betas)
    _tell(callback, done, total, known)
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    work = (delayed(on_one_thread)(run_task, plan, task) for task in todo)
    with ended_quietly(started(parallel, work)) as results:
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


def _key(trial: Trial) -> tuple[int, int, int, float]:
    return trial.repeat, trial.fold, trial.n_components, trial.beta


def _tell(callback: Callback | None, done: int, total: int, known: Mapping[Any, Trial]) -> None:
    if callback is None:
        return
    best = ""
    if known:
        k, beta, error = best_row(error_table(as_table(list(known.values()))))
        best = f"{k} factors, beta {beta:g} (error {error:.4g})"
    callback(Progress(done, total, best))
