"""A full search (k = 2…16 × 5 penalties × 10 folds, 750 fits, 1 335 × 119) with two jobs.

Against 60 plain scikit-learn NMF fits of that size, one after another on one thread; and the same search
with one job; the final fit from its starts, and stability and consensus, against the search itself. At last,
the choice that looks at resamples against the search alone, as `icqf fit` runs them, at 1 335 and 11 681
participants.
"""

from __future__ import annotations

import time

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from _measure import best_of, heading, report, run_script, sklearn_nmf
from icqf import ICQF, ICQFCV, consensus
from icqf.datasets.simulated import make_cohort

KS, BETAS = range(2, 17), (0.01, 0.05, 0.1, 0.2, 0.5)


def main() -> None:
    heading("750 cross-validation fits at 1 335 × 119 (simulated care-seeking cohort)")
    study = make_cohort("hbn", 1_335).questionnaire
    answers, confounds = study.keyed_answers(), study.confounds
    complete = answers.fillna(0).to_numpy(np.float32)
    ten, _ = best_of(2, lambda: [sklearn_nmf(8, 0.1, *complete.shape, 2.0).fit(complete) for _ in range(10)])
    sixty = 6 * ten

    def search(n_jobs: int, **more: object) -> ICQFCV:
        base = ICQF(item_range=(0, 2))
        model = ICQFCV(base, n_components=KS, betas=BETAS, n_jobs=n_jobs, random_state=0, **more)
        return model.fit(answers, confounds=confounds)

    # The worker processes start, and import the package, before the clock does.
    Parallel(n_jobs=2)(delayed(exec)("import icqf.models.search") for _ in range(4))
    two, found = best_of(3, lambda: search(2))
    one, _ = best_of(2, lambda: search(1))
    print(f"  60 NMF fits {sixty:.2f} s; search with 2 jobs {two:.2f} s, with 1 job {one:.2f} s")
    print(f"  chosen: {found.n_components_} factors, beta {found.beta_}; {found.choice_}")
    report("  search with two jobs against 60 NMF fits", two / sixty, 1.0)
    report("  two jobs against one", two / one, 1 / 1.7)
    final, model = best_of(2, lambda: clone(found.best_estimator_).fit(answers, confounds=confounds))
    print(f"  the final fit alone, from {len(model.starts_)} starts: {final:.2f} s")
    report("  the final fit against the search with one job", final / one, 0.1)

    clock = time.perf_counter()
    stable = search(2, stability=True)
    extra = time.perf_counter() - clock - two
    clock = time.perf_counter()
    consensus(stable.best_estimator_, answers, confounds=confounds, n_jobs=2)
    extra += time.perf_counter() - clock
    print(f"  stability of k = 2…16 and consensus: {extra:.2f} s")
    report("  stability and consensus against the search", extra / two, 1.0)
    for name, n in (("hbn", 1_335), ("abcd", 11_681)):
        _with_resamples(name, n)


def _with_resamples(name: str, n: int) -> None:
    heading(f"The choice with its resamples against the search alone, {n:,} × 119".replace(",", " "))
    study = make_cohort(name, n).questionnaire
    seconds = {}
    for rule in ("min", "replicable"):
        model = ICQFCV(ICQF(), rule=rule, n_jobs=2, random_state=0)
        seconds[rule], found = best_of(2 if n < 5_000 else 1, lambda model=model: model.fit(study))
        print(f"  {rule}: {seconds[rule]:.1f} s; {found.n_components_} factors, beta {found.beta_:g}")
    report(
        "  search, resamples and final fit against search and final fit",
        seconds["replicable"] / seconds["min"],
        2.0,
    )


if __name__ == "__main__":
    run_script(main)
