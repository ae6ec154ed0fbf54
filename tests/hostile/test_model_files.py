"""No damaged, forged or exploding model file is taken for the model, and none takes much memory."""

import pytest

from hostile import model_files
from hostile.tally import Tally
from icqf import ICQF, InputError

SEED = 11


def held(tally):
    assert not tally.faults, "\n".join(tally.lines())
    return tally.counts


def test_a_damaged_file_is_refused_or_the_same_model(tmp_path):
    counts = held(model_files.damaged(400, SEED, tmp_path))
    assert counts["refused"] > 200 and counts["equal"] > 20


def test_a_forged_file_is_refused(tmp_path):
    assert held(model_files.forgeries(400, SEED, tmp_path))["refused"] > 350


def test_more_factors_than_participants_or_items_are_refused_at_once(tmp_path):
    """A fit has no more factors than either; a short form may have fewer items than its factors."""
    model_files.write(tmp_path / "model.icqf")
    content = (tmp_path / "model.icqf").read_bytes()
    for number in (41, 9000):
        (tmp_path / "many.icqf").write_bytes(model_files.with_factors(content, number))
        with pytest.raises(
            InputError, match=f"it has {number} factors, more than 6 items and 40 participants"
        ):
            ICQF.load(tmp_path / "many.icqf")


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
