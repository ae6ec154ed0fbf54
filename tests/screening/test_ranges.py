"""Ranges that nobody declared come from families of items, never from all items, and never from a slip."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icqf.data.questionnaire import Draft, Item, Questionnaire, range_faults
from icqf.datasets import load_demo
from icqf.errors import InputError
from icqf.screening.column_names import folded, stem
from icqf.screening.ranges import families_of
from icqf.screening.value_counts import ValueCounts


def drawn(n, low, high, names, seed=0, levels=None):
    """Answers from low to high, the high ones rarer."""
    rng = np.random.default_rng(seed)
    levels = np.arange(low, high + 1) if levels is None else np.array(levels)
    weights = np.linspace(2, 1, len(levels))
    return pd.DataFrame(
        {name: rng.choice(levels, n, p=weights / weights.sum()) for name in names}, dtype=float
    )


def families(table):
    return families_of({name: ValueCounts.of(table[name].to_numpy(float)) for name in table})


def ranges(table):
    return families(table).ends


def numbered(prefix, count):
    return [f"{prefix}{j}" for j in range(1, count + 1)]


def test_each_family_has_its_own_range():
    table = pd.concat([drawn(200, 0, 3, numbered("f", 20)), drawn(200, 0, 1, numbered("m", 30))], axis=1)
    found = ranges(table)
    assert {found[name] for name in numbered("f", 20)} == {(0, 3)}
    assert {found[name] for name in numbered("m", 30)} == {(0, 1)}


def test_names_that_begin_alike_do_not_hide_two_scales():
    table = pd.concat(
        [drawn(150, 0, 3, numbered("q", 20)), drawn(150, 0, 4, ["q21", "q22", "q23"], seed=1)], axis=1
    )
    found = ranges(table)
    assert {found[name] for name in numbered("q", 20)} == {(0, 3)}
    assert {found[name] for name in ("q21", "q22", "q23")} == {(0, 4)}


@pytest.mark.parametrize("names", [numbered("q", 9), [*"abcdefghi"]])
def test_an_item_that_misses_an_extreme_belongs_to_its_family(names):
    table = drawn(60, 0, 3, names)
    table.loc[table[names[4]] == 3, names[4]] = 0
    table.loc[table[names[4]] == 2, names[4]] = 1
    table.loc[:2, names[4]] = 2
    assert set(ranges(table).values()) == {(0, 3)}


def test_all_items_of_a_name_may_miss_an_extreme_that_their_neighbours_have():
    table = drawn(12, 1, 6, [*numbered("A", 5), *numbered("O", 5)])
    table[numbered("O", 5)] = table[numbered("O", 5)].clip(lower=2)
    assert set(ranges(table).values()) == {(1, 6)}


def test_a_constant_item_takes_the_range_of_its_family():
    table = drawn(50, 1, 5, ["a", "b", "c"]).assign(d=2.0, e=np.nan)
    assert set(ranges(table).values()) == {(1, 5)}
    assert ranges(pd.DataFrame({"alone": [3.0, 3.0]})) == {"alone": (3, 4)}


@pytest.mark.parametrize("value", [11, 22, 33, 44, 55, 66, 77, 88, 99, 555, 666, -9, 17, 100, -4])
def test_a_lone_far_value_is_a_stray_and_no_range(value):
    table = drawn(400, 1, 6, numbered("q", 10))
    table.loc[17, "q3"] = value
    found = families(table)
    assert [(stray.item, stray.value, stray.count) for stray in found.strays] == [("q3", value, 1)]
    assert set(found.ends.values()) == {(1, 6)}


@pytest.mark.parametrize("value", [9, 44, 99])
def test_a_code_in_every_item_is_a_stray_in_each(value):
    table = drawn(300, 0, 3, numbered("q", 8))
    table.iloc[:20] = value
    found = families(table)
    assert {(stray.item, stray.value) for stray in found.strays} == {(name, value) for name in table}
    assert set(found.ends.values()) == {(0, 3)}


def test_a_code_of_one_scale_is_an_answer_of_another():
    table = pd.concat([drawn(300, 0, 3, numbered("q", 8)), drawn(300, 0, 10, ["q9", "q10", "q11"])], axis=1)
    table.loc[:5, "q2"] = 9
    table["q11"] = np.repeat([0.0, 1, 2, 3, 4, 5, 9], [180, 60, 30, 20, 7, 2, 1])  # few of them go beyond 5
    found = families(table)
    assert {(stray.item, stray.value) for stray in found.strays} == {("q2", 9)}
    assert found.ends["q11"] == found.ends["q9"] == (0, 10)


def test_another_scale_among_the_items_is_no_stray():
    rng = np.random.default_rng(0)
    table = drawn(400, 1, 5, numbered("q", 12)).assign(q13=rng.integers(0, 61, 400).astype(float))
    found = families(table)
    assert not found.strays and found.ends["q13"] == (0, 60)
    assert {found.ends[name] for name in numbered("q", 12)} == {(1, 5)}


def test_one_slip_just_beyond_the_end_sets_the_range_of_its_item_alone():
    table = drawn(1000, 0, 3, numbered("q", 10))
    table.loc[3, "q4"] = 4
    found = families(table)
    assert [(stray.item, stray.value) for stray in found.doubtful] == [("q4", 4)]
    assert found.ends["q4"] == (0, 4)
    assert {found.ends[name] for name in table if name != "q4"} == {(0, 3)}


def test_few_participants_give_no_strays():
    table = pd.DataFrame({"q1": [0, 1, 2, 1], "q2": [4, 1, 0, 2], "q3": [0, 0, 9, 1]}, dtype=float)
    assert not families(table).strays


def test_sliders_have_no_codes_at_their_end():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 95, (120, 4)), columns=numbered("v", 4), dtype=float)
    table.loc[0, "v1"] = 99
    assert not families(table).strays


def test_a_questionnaire_refuses_a_stray_with_row_and_participant():
    answers = drawn(100, 1, 6, numbered("q", 5)).set_axis([f"P{i}" for i in range(100)], axis=0)
    answers.loc["P7", "q2"] = 44
    items = tuple(Item(name) for name in answers)
    draft = Draft(answers, items, file_rows=np.arange(2, 102))
    (fault,) = range_faults(draft)
    assert (fault.fields["item"], fault.fields["participant"], fault.fields["row"]) == ("q2", "P7", 9)
    assert draft.ranges().to_numpy().tolist() == [[1, 6]] * 5
    with pytest.raises(
        InputError, match=r"holds 44, far from the answers of its family of 5 items, 1 to 6 \(row 9"
    ):
        Questionnaire(**vars(draft))
    told = Questionnaire(answers, tuple(Item(name, min=1, max=44) for name in answers))
    assert told.ranges()["max"].tolist() == [44] * 5


def test_what_is_derived_keeps_the_families():
    answers = drawn(100, 1, 6, numbered("q", 5))
    whole = Questionnaire.of(answers)
    low = np.flatnonzero((answers < 6).all(axis=1))
    assert whole.take(low).ranges().equals(whole.ranges())
    assert whole.select(["q2"]).ranges().to_numpy().tolist() == [[1, 6]]
    assert [(item.min, item.max) for item in whole.with_observed_ranges().items] == [(1, 6)] * 5


def test_the_demo_without_codebook_is_one_family():
    demo = load_demo()
    bare = Draft(demo.answers, tuple(Item(name) for name in demo.answers))
    assert bare.ranges().equals(demo.ranges())


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 7), st.integers(3, 12), st.integers(5, 300))
def test_a_range_holds_all_answers_but_the_strays(seed, width, n_items, n):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.integers(0, width, (n, n_items)), columns=numbered("q", n_items), dtype=float)
    table = table.mask(rng.random(table.shape) < 0.1)
    found = families(table)
    assert sorted(name for family in found.families for name in family.items) == sorted(table)
    out = {(stray.item, stray.value) for stray in found.strays}
    for name in table:
        low, high = found.ends[name]
        kept = [value for value in table[name].dropna() if (name, value) not in out]
        assert low < high and all(low <= value <= high for value in kept)


@settings(max_examples=40, deadline=None)
@given(st.permutations(range(6)), st.integers(0, 1000))
def test_the_order_of_participants_changes_nothing(order, seed):
    table = drawn(6, 0, 3, numbered("q", 4), seed=seed)
    assert ranges(table.iloc[list(order)]) == ranges(table)


def test_stems_and_folded_names():
    assert stem("q_12b") == "q" and stem("Q5_1") == "Q5" and stem("tired") == "tired"
    assert folded(["F1A", "F1B", "F1C", "M1"]) == "F1A–F1C, M1"
    assert folded(["q9", "q10", "q11", "q13"]) == "q9–q11, q13"
    assert folded(list("abcdef"), most=2) == "a, b and 4 more"
