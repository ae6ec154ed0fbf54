"""Many jobs in parallel, each finished one on disk, so that a broken run goes on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from joblib import Parallel, delayed

from icqf.journal import Journal


@dataclass(frozen=True)
class Progress:
    """What a callback is told: jobs done, jobs in all, and a word on the last one."""

    done: int
    total: int
    best: str = ""


def run_all(
    jobs: Sequence[tuple[Any, ...]],
    work: Callable[..., dict[str, Any]],
    *,
    name: str,
    settings: str,
    n_jobs: int | None = None,
    checkpoint: Any = None,
    callback: Callable[[Progress], object] | None = None,
) -> list[dict[str, Any]]:
    """Call `work` with each job's arguments; the results in the order of the jobs.

    Results are plain JSON. With `checkpoint`, those of an earlier, broken run of the same jobs and
    settings are taken from the journal.
    """
    identity = hashlib.sha256(f"{name} {settings} {len(jobs)}".encode()).hexdigest()
    journal = None if checkpoint is None else Journal(checkpoint, identity)
    results = {int(record["job"]): record["result"] for record in (journal.records if journal else [])}
    todo = [at for at in range(len(jobs)) if at not in results]
    _tell(callback, len(results), len(jobs))
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    for at, result in parallel(delayed(_one)(at, work, jobs[at]) for at in todo):
        if journal is not None:
            journal.append([{"job": at, "result": result}])
        results[at] = result
        _tell(callback, len(results), len(jobs))
    return [results[at] for at in range(len(jobs))]


def _one(at: int, work: Callable[..., dict[str, Any]], job: tuple[Any, ...]) -> tuple[int, dict[str, Any]]:
    return at, work(*job)


def _tell(callback: Callable[[Progress], object] | None, done: int, total: int) -> None:
    if callback is not None:
        callback(Progress(done, total))
