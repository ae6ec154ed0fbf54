"""Any input is answered or refused with one message; small files take little memory."""

import pytest

from hostile import inputs

SEED = 11


def test_a_damaged_input_is_answered_or_refused_with_one_message(tmp_path):
    tally = inputs.run(80, SEED, tmp_path)
    assert not tally.faults, "\n".join(tally.lines())
    assert tally.counts["answered"] > 20 and tally.counts["refused"] > 40


@pytest.mark.slow
def test_a_small_workbook_takes_little_memory(tmp_path):
    tally = inputs.bombed(tmp_path)
    assert not tally.faults, "\n".join(tally.lines())
