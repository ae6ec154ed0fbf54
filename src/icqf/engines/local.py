"""The engine of this machine: threads over blocks of participants."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
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


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Products by one thread each, whose last digits do not depend on the number of threads."""
    with _blas().limit(limits=1):
        yield


def _threads() -> int:
    """Threads that BLAS may use now; one inside a worker process."""
    return max((each.num_threads for each in _blas().lib_controllers), default=1)


@cache
def _blas() -> ThreadpoolController:
    """The linear algebra libraries of this process; to find them takes as long as many an iteration."""
    return ThreadpoolController().select(user_api="blas")


LOCAL = Local()
