"""The engine of this machine: threads over blocks of participants."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from threadpoolctl import threadpool_info, threadpool_limits

from icqf.core.observations import Observations
from icqf.core.problem import Problem
from icqf.core.rows import Pass, Rows, RowsHere, total
from icqf.engines.base import Engine


class Local(Engine):
    """This machine, with as many threads as its BLAS library may use (`OMP_NUM_THREADS` and so on).

    Every thread works on its own blocks with a single-threaded BLAS. Their number does not change the result.
    """

    @contextmanager
    def participants(self, problem: Problem) -> Iterator[Rows]:
        """The participants of a problem, in this process."""
        rows = RowsHere(problem.observations)
        threads = 1 if rows.n_groups == 1 else min(_threads(), rows.n_groups)
        if threads == 1:
            yield rows
            return
        with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
            yield ThreadedRows(problem.observations, pool)


class ThreadedRows(RowsHere):
    """All participants in this process, groups of blocks in several threads."""

    def __init__(self, observations: Observations, pool: Executor) -> None:
        super().__init__(observations)
        self._pool = pool

    def apply(self, step: Pass) -> Any:
        return total(list(self._pool.map(lambda blocks: self._together(step, blocks), self._groups())))


def _threads() -> int:
    """Threads that BLAS may use now; one inside a worker process."""
    return max([pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"], default=1)


LOCAL = Local()
