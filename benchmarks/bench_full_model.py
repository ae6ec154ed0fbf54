"""Everything on (bounds, intercept, age and sex, 10 % missing) against a plain NMF of the complete table.

Processor time of stating the problem with one start to its certificate, and of the whole fit, which also
tests whether the solution comes back after an exchange of loadings. Both sides end within 3e-6 of the
objective that they reach at tighter tolerances; NMF's problem has no missing answers, confounds or bounds.

Where a start's time goes (ms, busy machine): 1 335 participants: stating 3.5, start 1.8, iterations 26, exact
scores and certificate 8; 11 681: 9, 7, 80 and 28. Three products of matrices, which an iteration needs at
least, are 4 and 33 of the iterations. Tried for fewer or cheaper iterations and dropped; iterations at 1 335
and 11 681, where 30 and 28 were needed ("no end": not settled after 60 or 150):

| tried | 1 335 | 11 681 |
|---|---|---|
| exact scores and multipliers at the bound in every iteration | no end | no end |
| the same, with the curvature that follows from them | no end | no end |
| exact scores and multipliers once, when the bound first counts | 34 | 27 |
| multipliers moved within an iteration, by 0.1, 0.6, 1 of a step | 31, 29, 78 | 26, 44, no end |
| σ times 0.3, 0.6, 1.5, 2, 3 | 32, 30, 32, 40, no end | 28, 27, 28, no end, no end |
| Anderson acceleration of loadings; other studies took up to three times as many | 29 to 42 | 21 to 27 |
| restarts by the augmented Lagrangian, not by F; one study took half as many more | 30 | 26 |
| no restarts where F rises, momentum up to 0.5, 0.6, 0.7; other studies: no end | 32, 39, 50 | 23, 24, 23 |
| one Gram matrix for both rounds at the bound; another study: no end | 29 | 26 |
| two sweeps of scores | 29 | 28 |
| one, two, five sweeps of loadings (where today's rule needs 30 and 24) | 49, 36, 29 | 32, 23, 24 |

First iterations with 1 000 to 4 000 of 11 681 participants, until the loadings move by less than 0.005, leave
12 to 15 for all of them, and 0.86 of the time; at 1 335, no time is saved. With 600, one of two studies ended
in another minimum (0.7 % higher).
Compiled with Numba: what is not a product of matrices in an iteration (residuals, their checks and sums, what
concerns the bound, sweeps of loadings and of participants at the bound). A start then takes 0.87 of the time
at 1 335, and 1.01 at 11 681, where a fused loop gains nothing over NumPy's.
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
