"""Everything on (bounds, intercept, age and sex, 10 % missing) against a plain NMF of the complete table."""

from __future__ import annotations

import numpy as np

from _measure import best_of, heading, report, run_script, sklearn_nmf
from icqf import ICQF
from icqf.datasets.simulated import make_cohort


def main() -> None:
    heading("A converged ICQF fit with everything on against NMF(tol=1e-4, max_iter=400), one thread")
    for name, n in (("abcd", 11_681), ("hbn", 1_335)):
        questionnaire = make_cohort(name, n).questionnaire
        answers = questionnaire.keyed_answers()
        complete = answers.fillna(0).to_numpy(np.float32)
        hidden = np.random.default_rng(0).random(complete.shape) < 0.1
        X = np.where(hidden | answers.isna(), np.nan, complete).astype(np.float32)
        model = ICQF(8, beta=0.1, item_range=(0, 2), n_init=1)
        confounds = questionnaire.confounds
        mine, model = best_of(7, lambda: model.fit(X, confounds=confounds))  # noqa: B023
        other, nmf = best_of(5, lambda: sklearn_nmf(8, 0.1, *complete.shape, 2.0).fit(complete))  # noqa: B023
        print(
            f"  {n} × 119 ({name}): icqf {mine * 1e3:.0f} ms ({model.n_iter_} iterations, "
            f"converged {model.converged_}), NMF {other * 1e3:.0f} ms ({nmf.n_iter_} iterations)"
        )
        report(f"  {n} × 119", mine / other, 0.5)


if __name__ == "__main__":
    run_script(main)
