"""Jobs in parallel, each saved when finished, so that an interrupted run can be continued."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from itertools import pairwise
from multiprocessing import parent_process
from typing import Any, TypeVar

from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from joblib.parallel import LokyBackend, get_active_backend

from icqf.engines.base import Engine
from icqf.engines.journal import WorkJournal, fingerprint
from icqf.engines.progress import Progress
from icqf.engines.threads import on_one_thread

Work = Callable[..., dict[str, Any]]
T = TypeVar("T")
_PIECES_PER_JOB = 4
_WORTH_PROCESSES = 2e7  # answers fitted, from which on processes save more than it takes to start them
_SECONDS_TO_START = 1.0
_BYTES_OF_ANSWER, _MEMORY_SHARE = 32, 2  # of a fit in one process, within half of the memory
_SECONDS_BETWEEN_LOOKS = 1.0


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
    """Call `work` with each job's arguments, on one BLAS thread, and return the results by job.

    Results are plain JSON and depend on the arguments only. With `checkpoint`, finished results are read from
    a journal, in which each has a fingerprint of the work and its arguments. A journal with results of this
    work, but of none of these jobs, is refused as that of another run, unless `mixed`. The callback is told
    `what` is being done.
    """
    journal = WorkJournal.at(checkpoint)
    keys = {} if journal is None else _keys(work, jobs)
    known = {} if journal is None else journal.finished(work.__qualname__, keys, mixed=mixed)
    results = dict(known)
    _report(callback, len(results), len(jobs), what)
    todo = ((_named, name, work, job) for name, job in jobs.items() if name not in known)

    def keep(name: str, result: dict[str, Any]) -> None:
        if journal is not None:
            journal.append([{"work": work.__qualname__, "key": keys[name], "result": result}])
        results[name] = result
        _report(callback, len(results), len(jobs), what)

    for call in _first_second(todo) if n_jobs == -1 and _is_ours() else ():
        keep(*on_one_thread(*call))
    if len(results) < len(jobs):
        with closing_quietly(start_calls(todo, n_jobs=n_jobs, ordered=False)) as finished:
            for name, result in finished:
                keep(name, result)
    return {name: results[name] for name in jobs}


def _first_second(calls: Iterator[T]) -> Iterator[T]:
    """Calls to make here, before processes are started, which takes as long."""
    began = time.monotonic()
    while time.monotonic() - began < _SECONDS_TO_START:
        call = next(calls, None)
        if call is None:
            return
        yield call


def _is_ours() -> bool:
    """Whether processes of this machine would be started."""
    return isinstance(get_active_backend()[0], LokyBackend)


def in_parallel(
    work: Callable[..., T], tasks: Iterable[tuple[Any, ...]], *, n_jobs: int | None = None
) -> list[T]:
    """The results of `work` for each task's arguments, in order; one BLAS thread per process."""
    with closing_quietly(start_calls(((work, *task) for task in tasks), n_jobs=n_jobs)) as results:
        return list(results)


def processes_for(n_jobs: int, answers: int, fits: int) -> int:
    """How many processes `fits` fits of a table with this many answers deserve.

    A number that was asked for is kept. All processors (-1) become one where the work would not take longer
    than to start processes, and fewer where their copies of the answers would not fit in memory.
    """
    if n_jobs != -1:
        return n_jobs
    if answers * fits < _WORTH_PROCESSES:
        return 1
    fitting = int(_memory() / _MEMORY_SHARE / (_BYTES_OF_ANSWER * max(answers, 1)))
    return max(1, min(int(effective_n_jobs(-1)), fitting))


def _memory() -> float:
    """Bytes of memory that this machine has; unlimited where it does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


@contextmanager
def workers(n_jobs: int | None, *modules: str) -> Iterator[None]:
    """Start processes now, and let them import what they will need while this one does something else."""
    jobs = int(effective_n_jobs(n_jobs))
    if jobs == 1:
        yield
        return
    with closing_quietly(start_calls([(_import_all, modules)] * jobs, n_jobs=jobs)) as started:
        yield
        list(started)


def _import_all(modules: tuple[str, ...]) -> None:
    for name in modules:
        import_module(name)


@contextmanager
def spread_over(engine: Engine, n_jobs: int | None, *, shared: Sequence[Any] = ()) -> Iterator[int | None]:
    """Run calls in this context in the processes of an engine, if it has its own.

    Yields the number of processes to use: `n_jobs`, or all that the engine has. What the calls have in common
    (`shared`) is sent there once.
    """
    backend = engine.processes(shared)
    if backend is None:
        yield n_jobs
        return
    with parallel_config(**backend):
        yield -1


def start_calls(calls: Iterable[tuple[Any, ...]], *, n_jobs: int | None, ordered: bool = True) -> Any:
    """Start calls, each a function and its arguments, with BLAS on one thread.

    Returns a generator of the results, in order or as they finish. The calls run in processes of this
    machine, or wherever `spread_over` sends them. Our processes ignore Ctrl-C and other signals to end: the
    parent process handles these and ends them; they would only print tracebacks.
    """
    ours = _is_ours()
    parallel = Parallel(
        n_jobs=n_jobs,
        return_as="generator" if ordered else "generator_unordered",
        **({"initializer": _watch_parent} if ours else {}),
    )
    tasks = (delayed(on_one_thread)(*call) for call in calls)
    if not ours or threading.current_thread() is not threading.main_thread():
        return parallel(tasks)  # only the main thread may set signal handlers
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    # A process inherits ignored signals.
    before = [(number, signal.signal(number, signal.SIG_IGN)) for number in numbers]
    try:
        return parallel(tasks)
    finally:
        for number, handler in before:
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _watch_parent() -> None:
    """End this worker when its parent process ends."""
    parent = parent_process()
    if parent is not None and parent.pid is not None:
        _end_with(parent.pid)


def pieces(things: Sequence[T], n_jobs: int | None) -> list[list[T]]:
    """Split a list into a few equal pieces per process; one piece for a single process."""
    jobs = effective_n_jobs(n_jobs)
    number = min(len(things), _PIECES_PER_JOB * jobs) if jobs > 1 else 1
    size, longer = divmod(len(things), number)
    edges = [at * size + min(at, longer) for at in range(number + 1)]
    return [list(things[start:stop]) for start, stop in pairwise(edges)]


@contextmanager
def closing_quietly(results: Any) -> Iterator[Any]:
    """Stop the remaining calls on an error, without joblib's warning about it."""
    try:
        yield results
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results.close()


@cache
def _end_with(parent: int) -> None:
    """End this worker soon after its parent, which may be killed without notice."""

    def watch() -> None:
        # A process whose parent has ended gets another one.
        while os.getppid() == parent:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def _keys(work: Work, jobs: Mapping[str, tuple[Any, ...]]) -> dict[str, str]:
    """A fingerprint of each job; arguments that several jobs share are hashed once."""
    shared: dict[int, str] = {}

    def of(argument: Any) -> str:
        place = id(argument)  # unique, as the jobs keep their arguments alive
        if place not in shared:
            shared[place] = fingerprint(argument)
        return shared[place]

    return {name: fingerprint(work, *map(of, job)) for name, job in jobs.items()}


def _named(name: str, work: Work, job: tuple[Any, ...]) -> tuple[str, dict[str, Any]]:
    return name, work(*job)


def _report(callback: Callable[[Progress], object] | None, done: int, total: int, what: str) -> None:
    if callback is not None:
        callback(Progress(done, total, what=what))
