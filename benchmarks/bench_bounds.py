"""What the bounds cost at a tight tolerance, and what a fit without them costs against scikit-learn's NMF.

Everything on (all bounds, intercept, age and sex, 10 % missing) against all bounds off, both from the same
start to a certificate of 1e-5. And bounds off, complete answers, the whole fit, against scikit-learn's NMF
stopped at the first of some numbers of iterations at which it is within 0.01 % of the same objective.
Processor time, one thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from _measure import heading, least_cpu, report, run_script, sklearn_nmf
from bench_nmf import objective
from icqf import ICQF
from icqf.core.problem import Problem
from icqf.datasets.simulated import make_cohort
from icqf.engines.base import NamedStart
from icqf.engines.choice import run

K, TIGHT, WIDTH = 8, 1e-5, 2.0
FREE = {"score_max": None, "loading_max": None, "reconstruction_max": None}
NMF_STEPS = (10, 20, 30, 40, 60, 80, 100, 140, 200, 300, 400, 600, 800, 1200)


def model(**options: Any) -> ICQF:
    return ICQF(K, beta=0.1, item_range=(0, 2), n_init=1, **options)


def tight(problem: Problem) -> tuple[float, int]:
    """Seconds of one start to the tight tolerance, and iterations."""
    start = NamedStart("nndsvd", K, np.random.default_rng(0))
    seconds, (found,) = least_cpu(5, lambda: run(problem, start, tol=TIGHT, max_iter=3000))
    if not found.converged:
        raise SystemExit("A fit did not reach the tight tolerance.")
    return seconds, found.n_iter


def same_objective(X: np.ndarray, goal: float) -> tuple[float, int]:
    """Seconds of scikit-learn's NMF until it is as good, and iterations."""
    for iterations in NMF_STEPS:
        nmf = sklearn_nmf(K, 0.1, *X.shape, WIDTH, tol=0.0, max_iter=iterations)
        if objective(X, nmf.fit_transform(X), nmf.components_, 0.1, WIDTH) <= goal * (1 + 1e-4):
            break
    return least_cpu(5, lambda: nmf.fit_transform(X))[0], iterations


def main() -> None:
    heading("Bounds at a tight tolerance, and a fit without bounds, one thread")
    for name, n in (("abcd", 11_681), ("hbn", 1_335)):
        questionnaire = make_cohort(name, n).questionnaire
        answers, confounds = questionnaire.keyed_answers(), questionnaire.confounds
        complete = answers.fillna(0).to_numpy(np.float32)
        hidden = np.random.default_rng(0).random(complete.shape) < 0.1
        X = np.where(hidden | answers.isna(), np.nan, complete).astype(np.float32)
        on, n_on = tight(model().state(X, confounds=confounds).problem)
        off, n_off = tight(model(**FREE).state(X, confounds=confounds).problem)
        print(f"  {n} × 119 ({name}) to {TIGHT:g}: all on {on * 1e3:.0f} ms ({n_on} iterations), ", end="")
        print(f"off {off * 1e3:.0f} ms ({n_off})")
        report(f"  {n} × 119, all bounds against none at {TIGHT:g}", on / off, 4.0)
        plain = model(**FREE, intercept=False)
        mine, fitted = least_cpu(5, lambda plain=plain, complete=complete: plain.fit(complete))
        other, steps = same_objective(complete, fitted.objective_)
        print(f"    without bounds: icqf {mine * 1e3:.0f} ms, NMF {other * 1e3:.0f} ms ({steps} iterations)")
        report(f"  {n} × 119, without bounds against NMF", mine / other, 0.5)


if __name__ == "__main__":
    run_script(main)
