"""The engine of this machine: threads over blocks of participants."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

from icqf.core.observations import Observations
from icqf.core.problem import Problem
from icqf.core.rows import Pass, Rows, RowsHere, total
from icqf.engines.base import Engine


class Local(Engine):
    """This machine, with as many threads as its BLAS library may use (`OMP_NUM_THREADS` and so on).

    Every thread works on its own blocks with a single-threaded BLAS, and small tables have one: threads of
    BLAS wait for each other at every product. Their number does not change the result.
    """

    @contextmanager
    def participants(self, problem: Problem) -> Iterator[Rows]:
        """The participants of a problem, in this process."""
        rows = RowsHere(problem.observations)
        threads = min(_threads(), rows.n_groups)
        with one_blas_thread():
            if threads == 1:
                yield rows
                return
            with ThreadPoolExecutor(threads) as pool:
                yield ThreadedRows(problem.observations, pool)


class ThreadedRows(RowsHere):
    """All participants in this process, groups of blocks in several threads."""

    def __init__(self, observations: Observations, pool: Executor) -> None:
        super().__init__(observations)
        self._pool = pool

    def apply(self, step: Pass) -> Any:
        return total(list(self._pool.map(lambda blocks: self._together(step, blocks), self._groups())))


class OneBlasThread:
    """BLAS on one thread while any thread of the process is inside: faster, and the same digits everywhere.

    The number of BLAS threads belongs to the whole process: the first to enter sets it, and the last to leave
    restores it.
    """

    def __init__(self) -> None:
        self._lock, self._inside, self._limits = Lock(), 0, None

    @cached_property
    def libraries(self) -> ThreadpoolController:
        """The linear algebra libraries of this process; to find them takes as long as many an iteration."""
        return ThreadpoolController().select(user_api="blas")

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Enter, and leave."""
        with self._lock:
            if self._inside == 0:
                self._limits = self.libraries.limit(limits=1)
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0 and self._limits is not None:
                    self._limits.restore_original_limits()


one_blas_thread = OneBlasThread()


def _threads() -> int:
    """Threads that BLAS may use now; one inside a worker process."""
    return max((each.num_threads for each in one_blas_thread.libraries.lib_controllers), default=1)


LOCAL = Local()
