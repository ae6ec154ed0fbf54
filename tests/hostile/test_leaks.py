"""Results give away neither ids nor answers, and a model file no more than the docs say."""

import pytest

from hostile import leaks
from hostile.tally import Tally


def test_no_file_holds_ids_exact_confounds_or_folders(tmp_path):
    tally = leaks.written(tmp_path)
    assert not tally.faults, "\n".join(tally.lines())
    assert tally.counts["clean"] > 50


def test_no_answers_are_recovered_from_a_model_file(tmp_path):
    tally = leaks.reconstruction(tmp_path)
    assert not tally.faults, "\n".join(tally.lines())


def test_the_attack_works_where_nothing_is_refused(tmp_path):
    """One participant of another sex, with the limit switched off: all answers are found."""
    tally = Tally("switched off")
    leaks.attack(tally, tmp_path, leaks.with_others(1), "one", smallest_category=1)
    assert tally.faults == {"recovered": 1}


def test_a_lone_answer_to_an_item_is_found_and_said():
    found, chance, said = leaks.lone_answers()
    assert found > chance + leaks.BEYOND_CHANCE
    assert any("was answered by 1 participant of the category" in each for each in said)


@pytest.mark.slow
def test_who_took_part_is_hardly_known_from_a_model():
    assert 0.45 < leaks.membership(beta=0.0, k=8) < 0.65
