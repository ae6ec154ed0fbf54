"""How many processes work deserves, and that results do not depend on it."""

import numpy as np
import pytest

from icqf import ICQF
from icqf.datasets import load_demo
from icqf.engines.parallel import effective_n_jobs, processes_for, run_all, workers
from icqf.report import analyse, as_json, report_of
from icqf.report.gallery import drawing


def test_a_number_that_was_asked_for_is_kept():
    assert processes_for(3, 10, 10) == 3 and processes_for(1, 10**9, 10**3) == 1


def test_all_processors_are_for_work_that_takes_longer_than_to_start_them(monkeypatch):
    monkeypatch.setattr("icqf.engines.parallel._WORTH_PROCESSES", 2e7)  # as it is outside of tests
    assert processes_for(-1, 300 * 20, 500) == 1
    assert processes_for(-1, 2800 * 25, 500) == effective_n_jobs(-1)
    monkeypatch.setattr("icqf.engines.parallel.effective_n_jobs", lambda _: 64)
    monkeypatch.setattr("icqf.engines.parallel._memory", lambda: 16e9)
    assert 1 < processes_for(-1, 10**7, 500) < 64  # copies of the answers fit in memory
    assert processes_for(-1, 10**10, 500) == 1


@pytest.mark.parametrize("seconds", [0.0, 10.0])
def test_jobs_begun_here_and_continued_in_processes_give_the_same(monkeypatch, seconds):
    monkeypatch.setattr("icqf.engines.parallel._SECONDS_TO_START", seconds)
    jobs = {str(value): ({"value": value},) for value in range(5)}
    assert run_all(jobs, dict, n_jobs=-1) == {str(value): {"value": value} for value in range(5)}


def test_a_report_and_its_figures_do_not_depend_on_the_processes(tmp_path):
    demo = load_demo().select(["q00*", "q01*"])
    model = ICQF(2, beta=0.1, n_init=1).fit(demo)
    with workers(2, "icqf.resampling.bootstrap"):
        alone = report_of(analyse(model, demo, n_bootstrap=9))
    together = report_of(analyse(model, demo, n_bootstrap=9, n_jobs=2))
    assert as_json(together) == as_json(alone)
    with drawing(tmp_path / "alone", alone) as write:
        figures = write()
    with drawing(tmp_path / "together", together, n_jobs=2) as write:
        again = write()
    assert len(figures) > 4 and [path.name for path in again] == [path.name for path in figures]
    for one, other in zip(figures, again, strict=True):
        np.testing.assert_array_equal(np.fromfile(one, np.uint8), np.fromfile(other, np.uint8))
