"""The report of an 11 681 x 119 fit: seconds without the bootstrap, and the bootstrap in plain fits.

Processor seconds of one run, on one thread; the fit is the best of three, bootstrap and report of two.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from _measure import heading, least_cpu, report, run_script
from icqf import ICQF
from icqf.datasets.simulated import make_cohort
from icqf.report import analyse, report_of, write_report
from icqf.resampling.bootstrap import bootstrap

RESAMPLES, FITS, SECONDS, MEGABYTES = 100, 15.0, 4.0, 2.0


def main() -> None:
    """Print the ratios."""
    questionnaire = make_cohort("abcd", random_state=0).questionnaire
    answers, confounds = questionnaire.keyed_answers(), questionnaire.confounds
    heading(f"report of {len(answers)} x {questionnaire.n_items}, k = 8, beta = 0.1")
    model = ICQF(8, beta=0.1, item_range=questionnaire.ranges())
    fit, _ = least_cpu(3, lambda: model.fit(answers, confounds=confounds))

    problem = model.state(answers, confounds=confounds).problem
    scores = model.transform(answers, confounds=confounds).T
    solution = np.concatenate([model.components_, model.confound_components_])

    def resample() -> object:
        rng = np.random.default_rng(0)
        return bootstrap(problem, scores, solution, n_resamples=RESAMPLES, rng=rng)

    spent, _ = least_cpu(2, resample)
    print(f"  a plain fit takes {fit:.2f} s, {RESAMPLES} warm-started resamples {spent:.2f} s")
    report(f"bootstrap of {RESAMPLES} resamples, in plain fits", spent / fit, FITS)

    with tempfile.TemporaryDirectory() as folder:

        def build() -> list[Path]:
            built = report_of(analyse(model, questionnaire, n_bootstrap=0))
            return write_report(Path(folder) / "report.html", built)

        seconds, files = least_cpu(2, build)
        size = files[0].stat().st_size / 1e6
    print(f"  the report without bootstrap takes {seconds:.2f} s and {size:.2f} MB")
    report(f"report without bootstrap, against {SECONDS:g} s", seconds / SECONDS, 1.0)
    report("size of the page, against 2 MB", size / MEGABYTES, 1.0)


if __name__ == "__main__":
    run_script(main)
