"""The PyTorch engine: many problems at once on a GPU."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from icqf.core.problem import Problem
from icqf.core.result import Factors, Iterated
from icqf.core.rows import Rows
from icqf.core.start import begin
from icqf.engines.base import (
    FAST,
    Callback,
    Engine,
    FoldError,
    HiddenAnswers,
    NamedStart,
    Solver,
    Start,
    paired,
)
from icqf.engines.local import LOCAL, Local
from icqf.errors import Advice, InputError, InputWarning

try:
    import torch
except ImportError as error:
    raise InputError(
        "The engine 'torch' needs PyTorch, which is not installed.",
        code="missing-torch",
        remedy=Advice("Install it with pip install 'icqf[gpu]', or use {engine=}.", engine="local"),
    ) from error

from icqf.engines.torch_batch import device, in_batches, kind, memory, obstacle, packed, packed_starts, room
from icqf.engines.torch_rows import DeviceRows, fits_on_device

Pair = tuple[Problem, Factors]
_KEPT = 10  # (k, n) arrays that one problem needs during its iterations


class Torch(Local):
    """Batches of problems by kernels on the first CUDA device.

    Problems that share answers and differ in mask, weights, penalty, start or number of factors are iterated
    together. Final fits with exact scores and a certificate run one by one on the device (`DeviceRows`), and
    what the kernels cannot do (see `obstacle`) on the processor.
    """

    batches = True
    _last: tuple[weakref.ref[Problem], DeviceRows] | None = None  # while that problem is there

    @contextmanager
    def participants(self, problem: Problem) -> Iterator[Rows]:
        """The participants of a problem: on the device, unless they are few or cannot be there."""
        if not fits_on_device(problem):
            with super().participants(problem) as rows:
                yield rows
            return
        last, self._last = self._last, None
        known = last is not None and last[0]() is problem
        there = last[1] if known and last else DeviceRows(problem, _device())
        yield there
        self._last = weakref.ref(problem, self._forget), there

    def _forget(self, gone: weakref.ref[Problem]) -> None:
        if self._last is not None and self._last[0] is gone:
            self._last = None

    def here(self) -> Engine:
        if device() is not None:
            return self
        _warn("PyTorch and Triton find no CUDA GPU, so the engine 'torch' runs on the processor.", "no-gpu")
        return LOCAL

    def for_many(self, problem: Problem) -> Engine:
        cannot = obstacle(problem)
        if cannot is None:
            return self
        _warn_obstacle(cannot)
        return LOCAL

    def search(
        self,
        problems: Sequence[Problem],
        hidden: Sequence[HiddenAnswers],
        ks: Sequence[int],
        betas: Sequence[float],
        *,
        tol: float,
        max_iter: int,
    ) -> list[FoldError] | None:
        from icqf.engines.torch_search import search, searchable

        if not searchable(problems, ks):
            return None
        try:
            return search(problems, hidden, ks, betas, device=_device(), tol=tol, max_iter=max_iter)
        except torch.OutOfMemoryError:
            return None  # the answers of all folds do not fit together; fit by fit they may

    def run(
        self,
        problems: Problem | Iterable[Problem],
        starts: Start | Iterable[Start],
        *,
        tol: float,
        max_iter: int = 500,
        solver: Solver = FAST,
        exact: bool = True,
        callback: Callback | None = None,
    ) -> list[Any]:
        """Factorize each problem from its start; fits that are compared with each other, many at a time."""
        settings: dict[str, Any] = {"tol": tol, "max_iter": max_iter}
        other: dict[str, Any] = {"solver": solver, "exact": exact, "callback": callback, **settings}
        if exact or callback is not None or solver.name != "fast":
            return super().run(problems, starts, **other)
        pairs = list(self._begun(paired(problems, starts)))
        results: list[Any] = [None] * len(pairs)
        groups: dict[Any, list[tuple[int, Pair]]] = {}
        for at, (problem, start) in enumerate(pairs):
            if isinstance(start, NamedStart):
                (results[at],) = LOCAL.run(problem, start, **other)
                continue
            cannot = obstacle(problem, len(start.scores)) if isinstance(start, Factors) else "such starts"
            if cannot is None and isinstance(start, Factors):
                # All problems of a batch have the shape of the largest.
                place = (*kind(problem), room(len(start.loadings)))
                groups.setdefault(place, []).append((at, (problem, start)))
                continue
            _warn_obstacle(str(cannot))
            (results[at],) = LOCAL.run(problem, start, **other)
        for group in groups.values():

            def solve(part: Sequence[tuple[int, Pair]]) -> None:
                fits = self._iterated([pair for _, pair in part], **settings)
                for (at, _), fit in zip(part, fits, strict=True):
                    results[at] = fit

            in_batches(group, _batch_size([pair for _, pair in group]), solve)
        return results

    def _begun(self, pairs: Iterable[tuple[Problem, Start]]) -> Iterator[tuple[Problem, Start]]:
        """The same with named starts made where the kernels can go on from them."""
        with ExitStack() as stack:
            of, rows = None, None
            for problem, start in pairs:
                if isinstance(start, NamedStart) and obstacle(problem, start.k) is None:
                    if rows is None or problem is not of:
                        of, rows = problem, stack.enter_context(self.participants(problem))
                    loadings = begin(problem, rows, start.name, start.k, start.rng)
                    yield problem, rows.factors(loadings)
                else:
                    yield problem, start

    def _iterated(self, pairs: Sequence[Pair], *, tol: float, max_iter: int) -> list[Iterated]:
        """Iterate one batch."""
        from icqf.engines.torch_kernels import KernelCourse

        problems, starts = [problem for problem, _ in pairs], [start for _, start in pairs]
        batch = packed(problems, [len(start.scores) for start in starts], _device())
        course = KernelCourse(batch, *packed_starts(batch, starts), max_iter=max_iter)
        course.run(tol)
        return course.results()


def _batch_size(pairs: Sequence[Pair]) -> int:
    """How many of these problems are iterated at a time."""
    numbers = max(problem.n * (len(start.scores) + problem.c) for problem, start in pairs)
    return max(1, memory() // (4 * _KEPT * numbers))


def _device() -> torch.device:
    available = device()
    if available is None:
        raise InputError(
            "PyTorch and Triton find no CUDA GPU.", remedy=Advice("Use {engine=}.", engine="local")
        )
    return available


def _warn_obstacle(cannot: str) -> None:
    _warn(f"The GPU kernels do not support {cannot}, so these fits run on the processor.", "not-on-gpu")


def _warn(sentence: str, code: str) -> None:
    warnings.warn(InputWarning(sentence, code=code), stacklevel=1)  # at one place, so that it is shown once


TORCH = Torch()
