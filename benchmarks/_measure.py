"""What the benchmark scripts share: pinned threads, best of several, and a line with the ratio."""

from __future__ import annotations

import platform
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn
from sklearn.decomposition import NMF
from threadpoolctl import threadpool_limits

warnings.simplefilter("ignore")
ONE_THREAD = threadpool_limits(limits=1)  # for both sides, as long as the script runs


def best_of(times: int, work: Callable[[], Any]) -> tuple[float, Any]:
    """Shortest of several runs in seconds, and what the last one returned."""
    shortest, result = float("inf"), None
    for _ in range(times):
        clock = time.perf_counter()
        result = work()
        shortest = min(shortest, time.perf_counter() - clock)
    return shortest, result


def least_cpu(times: int, work: Callable[[], Any]) -> tuple[float, Any]:
    """Least processor time of several runs, which a busy machine changes less, and what the last returned."""
    least, result = float("inf"), None
    for _ in range(times):
        clock = time.process_time()
        result = work()
        least = min(least, time.process_time() - clock)
    return least, result


def best_of_each(*works: Callable[[], object], times: int = 5) -> list[float]:
    """Shortest time of each of several works, done in turn, so that all meet the same machine."""
    spent: list[list[float]] = [[] for _ in works]
    for _ in range(times):
        for work, times_of_work in zip(works, spent, strict=True):
            times_of_work.append(best_of(1, work)[0])
    return [min(times_of_work) for times_of_work in spent]


missed: list[str] = []


def report(claim: str, ratio: float, limit: float) -> None:
    """Say the ratio and whether the claim holds."""
    if not ratio <= limit:
        missed.append(claim.strip())
    verdict = "reached" if ratio <= limit else "NOT reached"
    print(f"{claim}: ratio {ratio:.3f} (limit {limit:g}) {verdict}")


def run_script(main: Callable[[], object]) -> None:
    """Run a whole script, then exit with 1 when any of its claims did not hold."""
    main()
    sys.exit(f"not reached: {'; '.join(missed)}" if missed else 0)


def heading(text: str) -> None:
    """Name the run and the versions it is taken with."""
    print(f"{text}\n  numpy {np.__version__}, scikit-learn {sklearn.__version__}, {platform.machine()}")


def sklearn_nmf(
    k: int, beta: float, n: int, m: int, width: float, *, tol: float = 1e-4, max_iter: int = 400
) -> NMF:
    """scikit-learn's NMF with the same ℓ1 penalties β‖W‖ and βγ‖Q‖, γ = n/m · width."""
    return NMF(
        k,
        init="nndsvd",
        solver="cd",
        tol=tol,
        max_iter=max_iter,
        alpha_W=beta / m,
        alpha_H=beta * width / m,
        l1_ratio=1.0,
    )
