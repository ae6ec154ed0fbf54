"""Two threads against one: iterations of one fit to 1 000 000 participants x 100 items, eight factors.

Both sides run the same iterations on the same answers (which are kept as whole numbers and unpacked block by
block), turn and turn about; the loadings must come out the same to the bit.
"""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from _measure import best_of_each, report, run_script
from _simulated import answers, problem_of
from icqf.core.problem import Problem
from icqf.engines.base import NamedStart
from icqf.engines.choice import run

PARTICIPANTS, ITEMS, FACTORS, ITERATIONS = 1_000_000, 100, 8, 4
LIMIT = 1.7  # times as fast


def iterate(problem: Problem, threads: int) -> np.ndarray:
    """Loadings after a few iterations with this many threads."""
    with threadpool_limits(threads, user_api="blas"):
        start = NamedStart("nndsvd", FACTORS, np.random.default_rng(0))
        (found,) = run(problem, start, tol=1e-12, max_iter=ITERATIONS, exact=False)
    return found.factors.loadings


def main() -> None:
    """Print the ratio."""
    problem = problem_of(answers(PARTICIPANTS, ITEMS, FACTORS))
    kept: dict[int, np.ndarray] = {}

    def timed(threads: int) -> None:
        kept[threads] = iterate(problem, threads)

    one, two = best_of_each(lambda: timed(1), lambda: timed(2), times=3)
    if not np.array_equal(kept[1], kept[2]):
        raise SystemExit("The number of threads changed the loadings.")
    print(f"one thread {one:.1f} s, two threads {two:.1f} s (start and {ITERATIONS} iterations)")
    report(f"two threads ({one / two:.2f} times as fast) against one", two / one, 1 / LIMIT)


if __name__ == "__main__":
    run_script(main)
