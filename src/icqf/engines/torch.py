"""The engine of many problems at once: batches of tensors, on a GPU where there is one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from icqf.engines.base import FAST, MARGIN, Begin, Callback, Onward, Solver, Start, paired
from icqf.engines.judging import Judge, Judged
from icqf.engines.local import Local
from icqf.errors import InputError
from icqf.solvers.finish import Finished, finish, score_tolerance
from icqf.solvers.problem import Problem
from icqf.solvers.result import Factorization, Factors
from icqf.solvers.start import Starts

try:
    import torch
except ImportError as error:
    raise InputError(
        "The engine 'torch' needs PyTorch, which is not installed.",
        code="missing-torch",
        remedy="Install it with pip install 'icqf[gpu]', or use engine='local'.",
    ) from error

from icqf.engines.torch_batch import Batchable, kind, packed, packed_multipliers, packed_starts, room
from icqf.engines.torch_course import Course
from icqf.engines.torch_kernels import KernelCourse, usable
from icqf.engines.torch_memory import device, in_batches, memory
from icqf.engines.torch_search import searchable, searched

Pair = tuple[Problem, Factors]
_TABLES, _TABLES_BOUNDED = 8, 14  # (n, m) numbers that one problem needs at a time while it is iterated
_FACTORS = 10  # (k, n) numbers


class Torch(Local):
    """Batches of problems by PyTorch, on the first CUDA device or, where there is none, on the processor.

    Problems that share answers and differ in mask, weights, penalty, start or number of factors are solved
    together. What a batch cannot hold (tables of visits or not in memory, with more than half of the answers
    missing, the penalty l21), and ADMM, the local engine solves.

    Examples
    --------
    >>> from icqf import ICQF
    >>> ICQF(1, item_range=(0, 2), engine="torch").fit([[0, 1], [2, 2], [0, 0]]).converged_
    True
    """

    def batches(self, problem: Problem) -> bool:
        return Batchable()(problem)

    def searched(
        self,
        problems: Sequence[Problem],
        judges: Sequence[Judge],
        ks: Sequence[int],
        betas: Sequence[float],
        *,
        tol: float,
        max_iter: int,
    ) -> list[Judged] | None:
        if not searchable(problems):
            return None
        try:
            return searched(problems, judges, ks, betas, tol=tol, max_iter=max_iter)
        except torch.OutOfMemoryError:
            return None  # all folds' answers do not fit there together: fit by fit they may

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
        """Factorize each problem from its start, many at a time; see `Engine.run`.

        The callback is told about a batch: the lowest objective, and the largest excess and step.
        """
        pairs = list(paired(problems, starts))
        settings: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "exact": exact, "callback": callback}
        found: list[Any] = [None] * len(pairs)
        batchable = Batchable()
        groups: dict[Any, list[tuple[int, Pair]]] = {}
        shared: dict[int, Starts] = {}
        for at, (problem, start) in enumerate(pairs):
            if solver.name != "fast" or isinstance(start, Onward) or not batchable(problem):
                (found[at],) = super().run(problem, start, solver=solver, **settings)
                continue
            if isinstance(start, Begin):
                ready = shared.setdefault(id(problem), Starts(problem))
                start = ready.make(start.name, start.k, start.rng)
            # The problems of a batch all have room for the most factors of any.
            place = (*kind(problem), room(len(start.loadings)))
            groups.setdefault(place, []).append((at, (problem, start)))
        for group in groups.values():

            def solve(part: Sequence[tuple[int, Pair]]) -> None:
                for (at, _), fit in zip(part, _solved([pair for _, pair in part], **settings), strict=True):
                    found[at] = fit

            in_batches(group, _fitting([pair for _, pair in group], exact=exact), solve)
        return found


def _fitting(pairs: Sequence[Pair], *, exact: bool) -> int:
    """How many of these problems are solved at a time."""
    problem = pairs[0][0]
    n, k = max(problem.n for problem, _ in pairs), max(len(start.scores) for _, start in pairs)
    tables = _TABLES if problem.bounds.reconstruction is None else _TABLES_BOUNDED
    if not exact and usable(problem, k, device()):
        tables = 0
    numbers = n * (tables * problem.m + _FACTORS * (k + problem.c))
    return max(1, memory() // (numbers * np.dtype(problem.dtype).itemsize))


def _solved(
    pairs: Sequence[Pair], *, tol: float, max_iter: int, exact: bool, callback: Callback | None
) -> list[Any]:
    """One batch."""
    problems, starts = [problem for problem, _ in pairs], [start for _, start in pairs]
    batch = packed(problems, [len(start.scores) for start in starts], device())
    W, Q = packed_starts(batch, starts)
    course: Course | KernelCourse
    if exact:
        course = Course(batch, W, Q, max_iter=max_iter, pressed=packed_multipliers(batch, starts))
        return _certified(course, tol, callback)
    if callback is None and usable(batch.first, batch.k, W.device):
        course = KernelCourse(batch, W, Q, max_iter=max_iter)
        course.run(tol)
    else:
        course = Course(batch, W, Q, max_iter=max_iter, pressed=packed_multipliers(batch, starts))
        course.run(tol, callback=callback)
    return course.found()


def _certified(course: Course, tol: float, callback: Callback | None) -> list[Factorization]:
    """Each fit is finished and certified on the processor; what does not hold yet goes on."""
    finished: dict[int, Finished] = {}

    def holds(b: int, factors: Factors) -> bool:
        finished[b] = finish(course.batch.problems[b], factors.loadings, tol=score_tolerance(tol))
        return finished[b].certificate.holds(tol)

    course.run(tol / MARGIN, certified=holds, callback=callback)
    return [
        each.factorization(course.traces[b], each.certificate.holds(tol), int(course.n_iter[b]))
        for b, each in sorted(finished.items())
    ]


TORCH = Torch()
