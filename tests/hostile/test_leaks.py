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


def test_a_lone_answer_to_an_item_is_left_out_and_said():
    found, chance, said = leaks.lone_answers()
    assert found < chance + leaks.BEYOND_CHANCE
    assert any("was answered by fewer than 20 participants of the category" in each for each in said)
    found, chance, _ = leaks.lone_answers(smallest_category=1)
    assert found > chance + leaks.BEYOND_CHANCE  # the attack works where nothing is left out


def test_lone_answers_of_a_visit_are_not_found():
    counts = {
        limit: [leaks.lone_visits(seed, smallest_category=limit) for seed in range(3)] for limit in (1, 20)
    }
    found, usual, number = (sum(each) for each in zip(*counts[20], strict=True))
    assert found <= usual + leaks.BEYOND_CHANCE * number
    found, usual, number = (sum(each) for each in zip(*counts[1], strict=True))
    assert found > usual + leaks.BEYOND_CHANCE * number  # the attack works where nothing is left out


@pytest.mark.parametrize("size", [19, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 5))])
def test_no_byte_of_a_model_file_depends_on_answers_of_a_few(tmp_path, size):
    tally = leaks.cells_of_few(tmp_path, sizes=(size,))  # the limit is 20
    assert not tally.faults, "\n".join(tally.lines())


def test_model_files_depend_on_answers_of_a_few_where_nothing_is_left_out(tmp_path):
    assert set(leaks.cells_of_few(tmp_path, sizes=(5,), smallest_category=1).counts) == {"recovered"}


def test_a_few_of_an_age_far_from_all_others_are_refused_in_any_sample():
    tally = leaks.lone_ages()
    assert not tally.faults, "\n".join(tally.lines())


def test_how_scores_are_distributed_does_not_tell_who_took_part():
    stored, exact = leaks.near_stored_scores()
    assert 0.42 < stored < 0.58
    assert exact > 0.9  # the attack works on the scores themselves


def test_the_highest_scores_are_not_in_a_model_file():
    found, number = leaks.one_among_the_highest()
    assert found == 0 and number == 4


@pytest.mark.slow
def test_who_took_part_is_hardly_known_from_a_model():
    assert 0.45 < leaks.membership(beta=0.0, k=8) < 0.65


@pytest.mark.long
def test_two_models_tell_whom_they_differ_by_as_the_docs_say():
    found, usual = leaks.two_models()
    assert 0.6 < found < 0.8 and 0.3 < usual < 0.5
