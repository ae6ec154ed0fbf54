"""No damaged, forged or exploding model file is taken for the model, and none takes much memory."""

import pytest

from hostile import model_files
from hostile.tally import Tally
from icqf import ICQF

SEED = 11


def held(tally):
    assert not tally.faults, "\n".join(tally.lines())
    return tally.counts


def test_a_damaged_file_is_refused_or_the_same_model(tmp_path):
    counts = held(model_files.damaged(400, SEED, tmp_path))
    assert counts["refused"] > 200 and counts["equal"] > 20


def test_a_forged_file_is_refused(tmp_path):
    assert held(model_files.forgeries(400, SEED, tmp_path))["refused"] > 350


@pytest.mark.long
def test_a_bomb_is_refused_in_little_memory(tmp_path):
    counts = held(model_files.bombed(tmp_path))
    assert set(counts) == {"refused"}


def test_the_comparison_can_fail(tmp_path):
    """A well-formed file of another model is found to be silently different."""
    tries = model_files.Tries(tmp_path, "other")
    questionnaire = model_files.study()
    ICQF(model_files.K, beta=0.3).fit(questionnaire).save(tmp_path / "other.icqf", id="code")
    tries.one((tmp_path / "other.icqf").read_bytes(), "another model")
    assert tries.tally.faults == {"silently different": 1}


def test_a_fault_is_counted_and_shown():
    tally = Tally("some")
    tally.add("refused")
    tally.add("leak", "an id")
    assert tally.faults == {"leak": 1} and "leak: an id" in tally.lines()[1]
