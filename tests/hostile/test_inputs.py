"""Any input is answered or refused with one message; small files take little memory."""

import numpy as np
import pytest

from hostile import inputs
from hostile.tally import Memory
from icqf.workflow.check import check_study
from icqf.workflow.options import StudyOptions

SEED = 11


def test_a_damaged_input_is_answered_or_refused_with_one_message(tmp_path):
    tally = inputs.run(50, SEED, tmp_path)
    assert not tally.faults, "\n".join(tally.lines())
    assert tally.counts["answered"] > 10 and tally.counts["refused"] > 20


@pytest.mark.slow
@pytest.mark.long
def test_a_small_workbook_takes_little_memory(tmp_path):
    tally = inputs.bombed(tmp_path)
    assert not tally.faults, "\n".join(tally.lines())


def test_a_check_takes_four_times_the_memory_of_the_numbers_at_most(tmp_path):
    n, m = 60_000, 200
    cells = np.full((n, 2 * m), ord(","), dtype=np.uint8)
    cells[:, ::2] = ord("0") + np.random.default_rng(0).integers(0, 5, (n, m))
    cells[:, -1] = ord("\n")
    head = ",".join(f"q{j}" for j in range(m)) + "\n"
    (tmp_path / "large.csv").write_bytes(head.encode() + cells.tobytes())
    del cells
    options = StudyOptions.of({"answers": tmp_path / "large.csv"})
    check_study(StudyOptions.of({"answers": inputs.csv(tmp_path)[0]}))  # imports what is needed
    with Memory() as memory:
        check_study(options)
    assert memory.peak < 4 * 8 * n * m
