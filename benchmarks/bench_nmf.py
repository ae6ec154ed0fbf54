"""Bounds off, complete data, 11 681 × 119, k = 8: time to come within 0.1 % of the best objective.

Against scikit-learn's NMF (coordinate descent, float32, the same ℓ1 penalties). Each side is timed from
the call to the first iterate within 0.1 % of the lowest objective that either side finds.
"""

from __future__ import annotations

import time

from _measure import best_of, heading, report, sklearn_nmf

import numpy as np

from icqf.datasets.cohort import make_cohort
from icqf.solvers import start as starts
from icqf.solvers.fast import FastIteration
from icqf.solvers.problem import Bounds, Penalty, Problem

K, WIDTH, WITHIN = 8, 2.0, 1e-3
SKLEARN_STEPS = (5, 10, 20, 40, 80, 120, 180, 270, 400, 600, 900, 1400, 2000, 3000, 4500, 7000)


def objective(X: np.ndarray, W: np.ndarray, H: np.ndarray, beta: float) -> float:
    n, m = X.shape
    gamma = n / m * WIDTH
    misfit = 0.5 * float(((X - W.astype(np.float64) @ H.astype(np.float64)) ** 2).sum())
    return misfit + beta * (float(W.sum(dtype=float)) + gamma * float(H.sum(dtype=float)))


def ours(X: np.ndarray, beta: float, iterations: int) -> tuple[float, float]:
    """Seconds and objective after some iterations, the start included."""
    n, m = X.shape
    clock = time.perf_counter()
    problem = Problem(
        X,
        np.zeros((0, n), np.float32),
        np.full(m, WIDTH),
        Bounds(),
        Penalty("l1", beta, n / m * WIDTH),
    )
    start = starts.settle(problem, starts.nndsvd(starts.Spectrum(problem, centred=False), K))
    iteration = FastIteration(problem, start)
    for _ in range(iterations):
        iteration.advance()
    seconds = time.perf_counter() - clock
    factors = iteration.factors()
    return seconds, objective(X, factors.scores.T, factors.loadings, beta)


def theirs(X: np.ndarray, beta: float, iterations: int) -> tuple[float, float]:
    model = sklearn_nmf(K, beta, *X.shape, WIDTH, tol=0.0, max_iter=iterations)
    clock = time.perf_counter()
    W = model.fit_transform(X)
    return time.perf_counter() - clock, objective(X, W, model.components_, beta)


def first_within(run, X: np.ndarray, beta: float, steps, goal: float) -> tuple[float, int]:
    for iterations in steps:
        _, value = run(X, beta, iterations)
        if value <= goal * (1 + WITHIN):
            seconds = min(run(X, beta, iterations)[0] for _ in range(3))
            return seconds, iterations
    return float("inf"), iterations


def main() -> None:
    heading("Bounds off against scikit-learn's NMF, 11 681 × 119, k = 8, float32, one thread")
    answers = make_cohort("abcd", 11_681).questionnaire.oriented()
    X = answers.fillna(0).to_numpy(np.float32)
    for beta, limit in ((0.1, 1 / 30), (0.0, 1.0)):
        goal = min(ours(X, beta, 150)[1], theirs(X, beta, 3000)[1])
        mine, n_mine = first_within(ours, X, beta, range(1, 151), goal)
        other, n_other = first_within(theirs, X, beta, SKLEARN_STEPS, goal)
        if not np.isfinite(other):
            other = best_of(1, lambda: theirs(X, beta, SKLEARN_STEPS[-1]))[0]  # noqa: B023
            print(f"  scikit-learn is not within 0.1 % after {n_other} iterations; timed there (a lower limit)")
        print(f"  beta {beta}: icqf {mine:.3f} s ({n_mine} iterations), NMF {other:.3f} s ({n_other})")
        report(f"  beta {beta}, time to 0.1 %", mine / other, limit)


if __name__ == "__main__":
    main()
