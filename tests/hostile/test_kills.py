"""Commands that are ended at random moments leave nothing half-written, and go on from there."""

import subprocess
import sys
import time

import pytest

from hostile import kills

SEED = 12


@pytest.mark.slow
@pytest.mark.long
def test_a_run_that_is_ended_is_made_whole_by_the_next(tmp_path):
    tally = kills.run(4, SEED, tmp_path)
    assert not tally.faults, "\n".join(tally.lines())


def test_workers_end_with_the_process_that_started_them(tmp_path):
    code = (
        "import sys, time\n"
        "from icqf.engines.parallel import in_parallel\n"
        "in_parallel(time.sleep, [(60,), (60,)], n_jobs=2)\n"
    )
    program = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    deadline = time.monotonic() + 60
    while len(kills.alive(program.pid)) < 5 and time.monotonic() < deadline:  # with its two trackers
        time.sleep(0.1)
    time.sleep(1)
    program.kill()
    assert kills.orphans(program.pid) == []  # although nobody has yet asked how the program ended
    program.wait()
