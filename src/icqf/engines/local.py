"""The engine of this machine: threads over blocks of participants."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from icqf.core.observations import Observations
from icqf.core.problem import Problem
from icqf.core.rows import Pass, Rows, RowsHere, total
from icqf.engines.base import Engine
from icqf.engines.threads import one_blas_thread


class Local(Engine):
    """This machine, with as many threads as its BLAS library may use (`OMP_NUM_THREADS` and so on).

    Every thread works on its own blocks with a single-threaded BLAS, and small tables have one. Their
    number does not change the result.
    """

    @contextmanager
    def participants(self, problem: Problem) -> Iterator[Rows]:
        """The participants of a problem, in this process."""
        rows = RowsHere(problem.observations)
        threads = min(one_blas_thread.allowed(), rows.n_groups)
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


LOCAL = Local()
