"""The report of an 11 681 x 119 fit: seconds without the bootstrap, and the bootstrap in plain fits.

Everything is timed in one run, on one thread; the fit and the bootstrap are the best of three and of two.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from _measure import best_of, heading, report, run_script
from icqf import ICQF
from icqf.datasets.simulated import make_cohort
from icqf.report import analyse, report_of, write_report
from icqf.resampling.bootstrap import bootstrap

RESAMPLES, FITS, SECONDS, MEGABYTES = 100, 15.0, 10.0, 2.0


def main() -> None:
    """Print the ratios."""
    questionnaire = make_cohort("abcd", random_state=0).questionnaire
    answers, confounds = questionnaire.keyed_answers(), questionnaire.confounds
    heading(f"report of {len(answers)} x {questionnaire.n_items}, k = 8, beta = 0.1")
    model = ICQF(8, beta=0.1, item_range=questionnaire.ranges())
    fit, _ = best_of(3, lambda: model.fit(answers, confounds=confounds))

    problem = model.state(answers, confounds=confounds).problem
    scores = model.transform(answers, confounds=confounds).T
    solution = np.concatenate([model.components_, model.confound_components_])

    def resample() -> object:
        rng = np.random.default_rng(0)
        return bootstrap(problem, scores, solution, n_resamples=RESAMPLES, rng=rng)

    spent, _ = best_of(2, resample)
    print(f"  a plain fit takes {fit:.2f} s, {RESAMPLES} warm-started resamples {spent:.2f} s")
    report(f"bootstrap of {RESAMPLES} resamples, in plain fits", spent / fit, FITS)

    with tempfile.TemporaryDirectory() as folder:
        clock = time.perf_counter()
        built = report_of(analyse(model, questionnaire, n_bootstrap=0))
        files = write_report(Path(folder) / "report.html", built)
        seconds, size = time.perf_counter() - clock, files[0].stat().st_size / 1e6
    print(f"  the report without bootstrap takes {seconds:.2f} s and {size:.2f} MB")
    report("report without bootstrap, against 10 s", seconds / SECONDS, 1.0)
    report("size of the page, against 2 MB", size / MEGABYTES, 1.0)


if __name__ == "__main__":
    run_script(main)
