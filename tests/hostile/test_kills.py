"""Commands that are ended at random moments leave nothing half-written, and go on from there."""

import pytest

from hostile import kills

SEED = 12


@pytest.mark.slow
def test_a_run_that_is_ended_is_made_whole_by_the_next(tmp_path):
    tally = kills.run(4, SEED, tmp_path, jobs=(1,))
    assert not tally.faults, "\n".join(tally.lines())
