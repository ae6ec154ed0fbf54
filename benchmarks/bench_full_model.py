"""Everything on (bounds, intercept, age and sex, 10 % missing) against a plain NMF of the complete table.

Processor time of stating the problem with one start to its certificate, and of the whole fit, which also
tests whether the solution comes back after an exchange of loadings.
"""

from __future__ import annotations

import numpy as np

from _measure import heading, least_cpu, report, run_script, sklearn_nmf
from icqf import ICQF
from icqf.datasets.simulated import make_cohort
from icqf.engines.base import NamedStart
from icqf.engines.choice import run

K = 8


def main() -> None:
    heading("A converged ICQF fit with everything on against NMF(tol=1e-4, max_iter=400), one thread")
    for name, n, limit in (("abcd", 11_681, 0.3), ("hbn", 1_335, 0.45)):
        questionnaire = make_cohort(name, n).questionnaire
        answers, confounds = questionnaire.keyed_answers(), questionnaire.confounds
        complete = answers.fillna(0).to_numpy(np.float32)
        hidden = np.random.default_rng(0).random(complete.shape) < 0.1
        X = np.where(hidden | answers.isna(), np.nan, complete).astype(np.float32)
        model = ICQF(K, beta=0.1, item_range=(0, 2), n_init=1)

        def once(model: ICQF = model, X: np.ndarray = X, confounds: object = confounds) -> object:
            problem = model.state(X, confounds=confounds).problem
            return run(problem, NamedStart("nndsvd", K, np.random.default_rng(0)), tol=model.tol)

        one, _ = least_cpu(7, once)
        mine, model = least_cpu(7, lambda: model.fit(X, confounds=confounds))  # noqa: B023
        other, nmf = least_cpu(5, lambda: sklearn_nmf(K, 0.1, *complete.shape, 2.0).fit(complete))  # noqa: B023
        print(
            f"  {n} × 119 ({name}): icqf {mine * 1e3:.0f} ms, one start of it {one * 1e3:.0f} "
            f"({model.n_iter_} iterations, converged {model.converged_}), "
            f"NMF {other * 1e3:.0f} ms ({nmf.n_iter_} iterations)"
        )
        report(f"  {n} × 119, one start", one / other, limit)
        report(f"  {n} × 119, the whole fit", mine / other, limit)


if __name__ == "__main__":
    run_script(main)
