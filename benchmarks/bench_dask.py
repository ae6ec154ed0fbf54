"""A Dask cluster of two worker processes against two threads: one fit to 2 000 000 participants x 100 items.

Eight factors. Both engines read the same answers from the same file, so that what is compared is where the
iterations run; sending answers to a cluster is no part of it. Both make the start, four iterations, the exact
scores and the certificate, turn and turn about, and must end at the same objective. The cluster is started,
and its workers have imported what they need, before the clock runs.
"""

from __future__ import annotations

import logging
import os
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster
from threadpoolctl import threadpool_limits

from _measure import best_of_each, report, run_script
from _simulated import parts, problem_of
from icqf.core.problem import Problem
from icqf.core.result import Factorization
from icqf.engines import Dask
from icqf.engines.base import Engine, NamedStart
from icqf.engines.local import LOCAL
from icqf.models.sources import StoredAnswers, StoredObservations

PARTICIPANTS, ITEMS, FACTORS = 2_000_000, 100, 8
ITERATIONS, TIMES = 4, 3
LIMIT, AGREEMENT = 1.3, 1e-6


def stored(folder: Path) -> Problem:
    """The problem of a fit to answers in a file."""
    path = folder / "answers"
    with path.open("wb") as file:
        for codes in parts(PARTICIPANTS, ITEMS, FACTORS):
            codes.tofile(file)
    answers = StoredAnswers(str(path), (PARTICIPANTS, ITEMS), np.dtype(np.int8))
    problem = problem_of(answers.read(slice(0, 1000)))
    design = np.ones((1, PARTICIPANTS))
    return replace(problem, observations=StoredObservations(answers, design, dtype=problem.dtype))


def fit(problem: Problem, engine: Engine, iterations: int) -> Factorization:
    """A fit of so many iterations."""
    start = NamedStart("nndsvd", FACTORS, np.random.default_rng(0))
    return engine.run(problem, start, tol=1e-12, max_iter=iterations)[0]


def main() -> None:
    """Print the ratio."""
    found: dict[str, float] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=logging.ERROR
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        problem, engine = stored(Path(folder)), Dask(client)
        small = replace(problem, observations=problem.observations.part(slice(0, 20_000)))
        fit(small, Dask(client, chunk=5_000), 1)

        def here() -> None:
            with threadpool_limits(2, user_api="blas"):
                found["here"] = fit(problem, LOCAL, ITERATIONS).objective

        def there() -> None:
            found["there"] = fit(problem, engine, ITERATIONS).objective

        print(f"load of the machine: {os.getloadavg()[0]:.1f}")
        threads, workers = best_of_each(here, there, times=TIMES)
        print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    difference = abs(found["there"] / found["here"] - 1)
    print(f"two threads {threads:.1f} s, two workers {workers:.1f} s; objectives differ by {difference:.1e}")
    report("objective on the cluster against here", difference, AGREEMENT)
    report("two workers against two threads", workers / threads, LIMIT)


if __name__ == "__main__":
    run_script(main)
