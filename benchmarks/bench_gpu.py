"""One GPU: the whole search (k = 2…16 × 5 penalties × 10 folds, 750 fits), and halves of participants.

The search of 1 335 × 119 and of 11 681 × 119 simulated answers, to the search's own tolerance, against the
seconds it may take, and its choice against the processor's; the agreement of halves of 11 681 × 119 likewise;
1 000 bootstrap resamples, which the processor does beside a GPU; and what the participants' pass moves and
computes in a second, against what the device can. Everything is run once before it is timed. Without a GPU
nothing is measured.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch
from joblib import cpu_count

from _measure import heading, report, run_script
from icqf import ICQF, ICQFCV
from icqf.core.problem import Problem
from icqf.core.start import Starts
from icqf.data.questionnaire import Questionnaire
from icqf.datasets.simulated import make_cohort
from icqf.engines.choice import run
from icqf.engines.torch_batch import packed, packed_starts
from icqf.models.search import Plan, Race, as_table
from icqf.models.selection_rules import Evidence, best_row
from icqf.resampling import tolerances
from icqf.resampling.bootstrap import bootstrap, stability_curve
from icqf.resampling.folds import folds_of, halves_of

KS, BETAS = list(range(2, 17)), (0.01, 0.05, 0.1, 0.2, 0.5)
SECONDS = {1_335: 0.6, 11_681: 2.5}  # of the search alone
SECONDS_WITH_FIT = {1_335: 0.3, 11_681: 0.8}
RESAMPLES, DIVISIONS = 1_000, 20
_PASSES = 20


def main() -> None:
    if not torch.cuda.is_available():
        print("No GPU: nothing is measured.")
        return
    heading(f"Batches on {torch.cuda.get_device_name()}, torch {torch.__version__}")
    for name, n in (("hbn", 1_335), ("abcd", 11_681)):
        study = make_cohort(name, n).questionnaire
        model = ICQF(item_range=(0, 2))
        problem = model.state(study.keyed_answers(), confounds=study.confounds).problem
        _search(problem)
        _whole(study)
    _halves(problem)
    _resamples(problem)
    _ceiling(problem)


def timed(times: int, work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Shortest and middle of several runs in seconds, after one that does not count, and the result."""
    result, seconds = work(), []
    for _ in range(times):
        torch.cuda.synchronize()
        clock = time.perf_counter()
        result = work()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - clock)
    return min(seconds), float(np.median(seconds)), result


def _search(problem: Problem) -> None:
    folds = folds_of(problem, n_splits=10, rng=np.random.default_rng(0))

    def search(engine: str) -> pd.DataFrame:
        plan = Plan(problem.with_beta(0.0), (folds,), BETAS, "nndsvd", tolerances.SEARCH, 500, engine=engine)
        race = Race(plan, KS, widen=False, strengthen=False, journal=None, n_jobs=cpu_count(), callback=None)
        return as_table(race.run_all())

    shortest, middle, found = timed(5, lambda: search("torch"))
    clock = time.perf_counter()
    expected = search("local")
    local = time.perf_counter() - clock
    choice, here = (best_row(Evidence(table).table())[:2] for table in (found, expected))
    apart = (found["error"] / expected["error"] - 1).abs()
    alike = (found["n_iter"] == expected["n_iter"]).mean()
    print(f"\n750 fits at {problem.n} × {problem.m}: {shortest:.3f} s (middle of five {middle:.3f} s)")
    print(f"  the processor with {cpu_count()} jobs: {local:.1f} s")
    print(f"  choice (k, beta): {choice}, the processor's {here}")
    print(f"  errors apart: median {apart.median():.1e}, most {apart.max():.1e}")
    print(f"  fits that took as many iterations: {alike:.1%}")
    limit = SECONDS[problem.n]
    report(f"  search of {problem.n} participants, seconds against {limit}", middle / limit, 1.0)
    report("  choices that differ from the processor's", float(choice != here), 0.0)


def _whole(study: Questionnaire) -> None:
    """All that a user waits for: the search, and the final fit from its starts with its certificate."""
    seconds, objectives, n = {}, {}, len(study.answers)
    for engine in ("torch", "local"):
        search = ICQFCV(ICQF(engine=engine), n_components=KS, betas=BETAS, n_jobs=cpu_count(), random_state=0)
        seconds[engine], _, _ = timed(3, lambda search=search: search.fit(study))
        objectives[engine] = search.best_estimator_.objective_
        print(f"  search and final fit, {engine}: {seconds[engine]:.2f} s; {search.n_components_} factors")
    limit, apart = SECONDS_WITH_FIT[n], abs(objectives["torch"] / objectives["local"] - 1)
    report(
        f"  search and final fit of {n} participants, seconds against {limit}", seconds["torch"] / limit, 1.0
    )
    report("  objectives apart, relative to 1e-5", apart / 1e-5, 1.0)


def _halves(problem: Problem) -> None:
    """Halves of the participants, fitted for several numbers of factors from two starts each."""
    rng = np.random.default_rng(0)
    halves = [halves_of(problem, rng=rng) for _ in range(DIVISIONS)]
    candidates = [(k, 0.1) for k in (4, 8, 12)]

    def curve(engine: str) -> pd.DataFrame:
        return stability_curve(problem, candidates, halves, engine=engine, n_jobs=cpu_count())

    clock = time.perf_counter()
    expected = curve("local")
    local = time.perf_counter() - clock
    seconds, _, found = timed(1, lambda: curve("torch"))
    apart = float((found["agreement"] - expected["agreement"]).abs().max())
    print(f"\n{DIVISIONS} divisions into halves at {problem.n} × {problem.m}: {seconds:.2f} s")
    print(f"  the processor with {cpu_count()} jobs: {local:.1f} s; agreement apart by {apart:.1e} at most")


def _resamples(problem: Problem) -> None:
    problem = problem.with_beta(0.1)
    (fit,) = run(problem, Starts(problem).make("nndsvd", 8), tol=1e-3)
    W, Q = fit.factors.scores, problem.own_loadings(fit.factors.loadings)
    clock = time.perf_counter()
    with warnings.catch_warnings(action="ignore"):  # that it runs on the processor
        rng = np.random.default_rng(0)
        bootstrap(problem, W, Q, n_resamples=RESAMPLES, n_jobs=cpu_count(), engine="torch", rng=rng)
    seconds = time.perf_counter() - clock
    print(f"\n{RESAMPLES} resamples at {problem.n} × {problem.m}, k = 8, all bounds: {seconds:.1f} s,")
    print(f"  on the processor with {cpu_count()} jobs")


def _ceiling(problem: Problem) -> None:
    """What a pass over the participants moves and computes, against a copy and a matrix product."""
    from icqf.engines.torch_kernels import KernelCourse  # where there is a GPU

    pair = torch.empty((2, 2**30), device="cuda")
    seconds, _, _ = timed(5, lambda: pair[0].copy_(pair[1]))
    bandwidth = pair.numel() * pair.element_size() / seconds
    for k in (8, 16):
        start = Starts(problem).make("nndsvd", k)
        batch = packed([problem.without_reconstruction_bound()] * 150, [k] * 150, torch.device("cuda"))
        course = KernelCourse(batch, *packed_starts(batch, [start] * 150), max_iter=_PASSES)
        seconds, _, _ = timed(3, lambda course=course: (course.begin(), course.run(0.0)))
        n, m, K = problem.n, problem.m, k + problem.c
        once = 150 * (4 * 9 * k * n + 4 * 3 * n) + course.sums.numel() * 8  # scores in and out, weights, sums
        shared = 150 * n * course.MP * 2  # answers of one byte, in both passes, which the cache may hold
        flops = 150 * n * (2 * 3 * m * K + 2 * 3 * K * K)
        moved, read = _PASSES * once / seconds, _PASSES * (once + shared) / seconds
        print(f"\nOne pass of 150 problems at {n} × {m}, k = {k}: {seconds / _PASSES * 1000:.2f} ms")
        print(f"  a copy: {bandwidth / 1e12:.2f} TB/s")
        print(f"  scores, weights and sums: {moved / 1e12:.2f} TB/s = {moved / bandwidth:.0%}")
        print(f"  with answers, mostly from cache: {read / 1e12:.2f} TB/s = {read / bandwidth:.0%}")
        print(f"  arithmetic {_PASSES * flops / seconds / 1e12:.1f} TFLOP/s in single precision")


if __name__ == "__main__":
    run_script(main)
