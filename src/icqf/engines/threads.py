"""How many threads the linear algebra library (BLAS) uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from threading import Lock
from typing import TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")
_ALONE = ContextVar("_ALONE", default=False)


class OneBlasThread:
    """BLAS on one thread while any thread of the process is inside: faster, and the same digits everywhere.

    Matrices are small here: threads of BLAS would wait for each other, spinning, at every product. Their
    number belongs to the whole process: the first to enter sets it, and the last to leave restores it. Use it
    in a `with` statement or as a decorator.
    """

    def __init__(self) -> None:
        self._lock, self._inside, self._limits, self._outside = Lock(), 0, None, 1

    @cached_property
    def libraries(self) -> ThreadpoolController:
        """The linear algebra libraries of this process; to find them takes as long as many an iteration."""
        import scipy.linalg  # noqa: F401  # SciPy brings its own

        return ThreadpoolController().select(user_api="blas")

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Enter, and leave."""
        with self._lock:
            if self._inside == 0:
                self._outside = self._now()
                self._limits = self.libraries.limit(limits=1)
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0 and self._limits is not None:
                    self._limits.restore_original_limits()

    def allowed(self) -> int:
        """Threads to start instead: as many as BLAS has outside, and one inside `on_one_thread`."""
        if _ALONE.get():
            return 1
        with self._lock:
            return self._outside if self._inside else self._now()

    def _now(self) -> int:
        return max((each.num_threads for each in self.libraries.lib_controllers), default=1)


one_blas_thread = OneBlasThread()


def on_one_thread(work: Callable[..., T], *arguments: object) -> T:
    """The result of `work` without threads of BLAS or of ours, as other processes run."""
    token = _ALONE.set(True)
    try:
        with one_blas_thread():
            return work(*arguments)
    finally:
        _ALONE.reset(token)
