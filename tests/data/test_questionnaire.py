"""Laws of the questionnaire: ranges hold, reversing twice changes nothing, selection keeps order."""

from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icqf.data import questionnaire
from icqf.data.questionnaire import Item, Questionnaire
from icqf.datasets import load_demo
from icqf.errors import InputError


def tables(lo=0, hi=4):
    cell = st.one_of(st.none(), st.integers(lo, hi))
    return st.integers(1, 5).flatmap(
        lambda m: st.lists(st.lists(cell, min_size=m, max_size=m), min_size=1, max_size=8)
    )


def make(rows, *, lo=0, hi=4, reverse=()):
    answers = pd.DataFrame(rows, dtype=float, index=[f"P{i}" for i in range(len(rows))])
    answers.columns = [f"q{j}" for j in range(answers.shape[1])]
    items = tuple(Item(name, min=lo, max=hi, reverse=name in reverse) for name in answers.columns)
    return Questionnaire(answers, items)


@given(tables())
def test_reversing_keeps_gaps_and_range_and_undoes_itself(rows):
    once = make(rows, reverse=("q0",))
    keyed = once.keyed_answers()
    assert keyed.isna().equals(once.answers.isna())
    assert keyed.drop(columns="q0").equals(once.answers.drop(columns="q0"))
    again = Questionnaire(keyed, once.items).keyed_answers()
    pd.testing.assert_frame_equal(again, once.answers)


@given(tables(), st.integers(5, 99))
def test_an_answer_outside_its_range_is_named(rows, value):
    rows[-1][0] = value
    with pytest.raises(InputError) as error:
        make(rows)
    message = str(error.value)
    assert f"Item 'q0' holds {value}, above its highest answer 4 (participant 'P{len(rows) - 1}')" in message
    assert f"missing_codes=[{value}]" in message
    assert error.value.code == "outside-range"
    assert error.value.fields == {
        **{"item": "q0", "value": value, "low": 0, "high": 4},
        **{"participant": f"P{len(rows) - 1}", "row": None, "count": 1},
    }


def test_the_message_counts_the_others():
    with pytest.raises(InputError, match=r"\(participant 'P0', and 2 more\)"):
        make([[9], [9], [9]])
    with pytest.raises(InputError, match="holds -1, below its lowest answer 0"):
        make([[-1]])
    with pytest.raises(InputError, match="infinite"):
        make([[np.inf]])


def test_undeclared_items_share_the_observed_range():
    answers = pd.DataFrame({"a": [1.0, 5.0], "b": [2.0, np.nan], "c": [0.0, 1.0]}, index=["x", "y"])
    ranges = Questionnaire(answers, (Item("a"), Item("b"), Item("c", min=0, max=1))).ranges()
    assert ranges.to_numpy().tolist() == [[1, 5], [1, 5], [0, 1]]


def test_select_by_name_and_glob():
    made = make([[0, 1, 2], [1, 2, 3]])
    assert list(made.select(["q2", "q0"]).answers) == ["q0", "q2"]
    assert list(made.select(["q[12]"]).answers) == ["q1", "q2"]
    with pytest.raises(InputError, match="Did you mean 'q1'"):
        made.select(["Q1"])


def test_it_is_frozen_and_consistent():
    made = make([[0, 1]])
    with pytest.raises(FrozenInstanceError):
        made.items = ()
    answers, items = made.answers, made.items
    with pytest.raises(InputError, match="same participants"):
        Questionnaire(answers, items, confounds=pd.DataFrame({"age": [3]}, index=["other"]))
    with pytest.raises(InputError, match="'P0' appears twice"):
        Questionnaire(pd.concat([answers, answers]), items)
    with pytest.raises(InputError, match="not the items in their order"):
        Questionnaire(answers, items[:1])
    with pytest.raises(InputError, match="not numeric"):
        Questionnaire(answers.astype({"q0": object}), items)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"min": 0}, "only one end"),
        ({"min": 2, "max": 2}, "must be below"),
        ({"min": 0, "max": np.inf}, "infinite"),
        ({"min": 0, "max": 9, "missing_codes": (9,)}, "inside the item's range"),
    ],
)
def test_an_item_that_makes_no_sense(options, words):
    with pytest.raises(InputError, match=words):
        Item("q", **options)


def test_tables_in_memory_make_a_questionnaire():
    answers = pd.DataFrame({1: [0.0, 2.0], 2: [1.0, np.nan]}, index=["P1", "P2"])
    people = pd.DataFrame({"age": [9, 10]}, index=["P1", "P2"])
    made = Questionnaire.of(answers, item_range=(0, 3), subscales={"1": "mood"}, confounds=people)
    assert [(item.name, item.max, item.subscale) for item in made.items] == [("1", 3, "mood"), ("2", 3, "")]
    assert made.confounds is people
    assert not Questionnaire.of(answers).items[0].declared
    with pytest.raises(InputError, match="Item '1' holds 2, above its highest answer 1"):
        Questionnaire.of(answers, item_range=(0, 1))


def test_some_participants_are_taken_by_position():
    demo = load_demo()
    part = demo.take([5, 2])
    assert list(part.answers.index) == [demo.answers.index[5], demo.answers.index[2]]
    assert part.confounds.equals(demo.confounds.iloc[[5, 2]])
    assert part.items == demo.items


def test_what_is_derived_is_not_checked_again(monkeypatch):
    demo = load_demo()
    monkeypatch.setattr(questionnaire, "range_faults", lambda draft: pytest.fail("checked again"))
    part = demo.select(["q00*"]).take([4, 0]).with_observed_ranges().with_confounds(None)
    assert isinstance(part, Questionnaire) and part.answers.shape == (2, 9)
    assert list(part.file_rows) == [6, 2] and part.confounds is None
    with pytest.raises(InputError, match="same participants"):
        part.with_confounds(demo.confounds)


def test_weights_go_with_their_participants():
    answers = pd.DataFrame({"a": [0, 1, 2]}, index=["x", "y", "z"])
    weights = pd.Series([1.0, 0.0, 2.5], index=answers.index)
    part = Questionnaire(answers, (Item("a"),), weights=weights).take([2, 0])
    assert part.weights.to_dict() == {"z": 2.5, "x": 1.0}
    with pytest.raises(InputError, match="weights and the answers must be for the same participants"):
        Questionnaire(answers, (Item("a"),), weights=weights.iloc[::-1])
