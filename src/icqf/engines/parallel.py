"""Many jobs in parallel, each on disk when finished, so that an interrupted run can be continued."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from multiprocessing import parent_process
from typing import Any, TypeVar

from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from joblib.parallel import LokyBackend, get_active_backend
from threadpoolctl import threadpool_limits

from icqf.engines.base import Engine
from icqf.engines.journal import WorkJournal, fingerprint

Work = Callable[..., dict[str, Any]]
T = TypeVar("T")
_PIECES_PER_JOB = 4
_SECONDS_BETWEEN_LOOKS = 1.0


@dataclass(frozen=True)
class Progress:
    """How far a piece of work is, which callbacks are told.

    Attributes
    ----------
    done, total : int
        Jobs finished and jobs planned.
    best : str
        The best candidate so far, in words; empty where there is none.
    stage : str
        Which of several pieces of work it is, such as the instrument of a battery; empty where there is one.
    what : str
        What is being done; empty where whoever asked for it knows.

    Examples
    --------
    >>> from icqf.engines import Progress
    >>> progress = Progress(done=3, total=12)
    >>> f"{progress.done / progress.total:.0%}"
    '25%'
    """

    done: int
    total: int
    best: str = ""
    stage: str = ""
    what: str = ""


def run_all(
    jobs: Mapping[str, tuple[Any, ...]],
    work: Work,
    *,
    n_jobs: int | None = None,
    checkpoint: Any = None,
    callback: Callable[[Progress], object] | None = None,
    what: str = "",
    mixed: bool = False,
) -> dict[str, dict[str, Any]]:
    """Call `work` with each job's arguments, on one BLAS thread; the results by the jobs' names.

    Results are plain JSON, and the arguments are all that decides them. With `checkpoint`, what an earlier
    run finished is taken from the journal, where each result is known by a fingerprint of the work and its
    arguments. One that has results of this work, but of none of these jobs, is refused as that of another
    run, unless `mixed`. The callback is told `what` is being done.
    """
    journal = WorkJournal.at(checkpoint)
    keys = {} if journal is None else _keys(work, jobs)
    known = {} if journal is None else journal.finished(work.__qualname__, keys, mixed=mixed)
    results = dict(known)
    _tell(callback, len(results), len(jobs), what)
    todo = ((_named, name, work, job) for name, job in jobs.items() if name not in known)
    with ended_quietly(started(todo, n_jobs=n_jobs, ordered=False)) as finished:
        for name, result in finished:
            if journal is not None:
                journal.append([{"work": work.__qualname__, "key": keys[name], "result": result}])
            results[name] = result
            _tell(callback, len(results), len(jobs), what)
    return {name: results[name] for name in jobs}


def in_parallel(
    work: Callable[..., T], tasks: Iterable[tuple[Any, ...]], *, n_jobs: int | None = None
) -> list[T]:
    """What `work` gives for each task's arguments, in their order; one BLAS thread per process."""
    with ended_quietly(started(((work, *task) for task in tasks), n_jobs=n_jobs)) as results:
        return list(results)


@contextmanager
def spread_over(engine: Engine, n_jobs: int | None, *, shared: Sequence[Any] = ()) -> Iterator[int | None]:
    """Let calls that are started meanwhile go to the processes of an engine, if it has any of its own.

    Gives the number of processes to ask for: `n_jobs`, or all that the engine has. What calls have in common
    (`shared`) is sent there once.
    """
    backend = engine.processes(shared)
    if backend is None:
        yield n_jobs
        return
    with parallel_config(**backend):
        yield -1


def started(calls: Iterable[tuple[Any, ...]], *, n_jobs: int | None, ordered: bool = True) -> Any:
    """Start calls, each a function and its arguments, with BLAS on one thread.

    Returns a generator of what they give, in their order or as they finish. They run in processes of this
    machine, or wherever `spread_over` sends them. Processes of ours do not hear Ctrl-C or an end that is
    asked for: the process that started them hears it, and ends them; they would only write their own
    tracebacks.
    """
    backend, _ = get_active_backend()
    ours = isinstance(backend, LokyBackend)
    parallel = Parallel(
        n_jobs=n_jobs,
        return_as="generator" if ordered else "generator_unordered",
        **({"initializer": _watch_parent} if ours else {}),
    )
    tasks = (delayed(on_one_thread)(*call) for call in calls)
    if not ours or threading.current_thread() is not threading.main_thread():
        return parallel(tasks)  # only the main thread may say what signals do
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    # A process ignores from its beginning what is ignored where it is started.
    before = [(number, signal.signal(number, signal.SIG_IGN)) for number in numbers]
    try:
        return parallel(tasks)
    finally:
        for number, handler in before:
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def on_one_thread(work: Callable[..., T], *arguments: Any) -> T:
    """What `work` gives with BLAS on one thread: matrices are small, and other processes use the others."""
    with threadpool_limits(limits=1):
        return work(*arguments)


def _watch_parent() -> None:
    """Let this worker end with the process that started it."""
    parent = parent_process()
    if parent is not None and parent.pid is not None:
        _end_with(parent.pid)


def pieces(things: Sequence[T], n_jobs: int | None) -> list[list[T]]:
    """Cut a list into a few pieces per process, which end at about the same time; one for one process."""
    jobs = effective_n_jobs(n_jobs)
    number = min(len(things), _PIECES_PER_JOB * jobs) if jobs > 1 else 1
    size, longer = divmod(len(things), number)
    edges = [at * size + min(at, longer) for at in range(number + 1)]
    return [list(things[start:stop]) for start, stop in pairwise(edges)]


@contextmanager
def ended_quietly(results: Any) -> Iterator[Any]:
    """End work under way when an error comes, without joblib's warning that it did: the error says why."""
    try:
        yield results
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results.close()


@cache
def _end_with(parent: int) -> None:
    """Ends this worker soon after the process that started it, which may be killed and cannot tell."""

    def watch() -> None:
        # Another process adopts this one as soon as its own has ended, although that may still be listed.
        while os.getppid() == parent:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def _keys(work: Work, jobs: Mapping[str, tuple[Any, ...]]) -> dict[str, str]:
    """A fingerprint of each job; arguments that several jobs share are looked at once."""
    shared: dict[int, str] = {}

    def of(argument: Any) -> str:
        place = id(argument)  # the jobs hold their arguments, so no other one comes to lie there
        if place not in shared:
            shared[place] = fingerprint(argument)
        return shared[place]

    return {name: fingerprint(work, *map(of, job)) for name, job in jobs.items()}


def _named(name: str, work: Work, job: tuple[Any, ...]) -> tuple[str, dict[str, Any]]:
    return name, work(*job)


def _tell(callback: Callable[[Progress], object] | None, done: int, total: int, what: str) -> None:
    if callback is not None:
        callback(Progress(done, total, what=what))
