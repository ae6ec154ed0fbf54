"""A battery joins by participant id, and says what stands in the way of factors across instruments."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from icqf.data import Battery, Item, Questionnaire, by_instrument
from icqf.errors import InputError, InputWarning


def table(ids, prefix="q", m=4, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        rng.integers(0, 3, (len(ids), m)), index=list(ids), columns=[f"{prefix}{j}" for j in range(m)]
    )


def first_problem(battery):
    return next(iter(battery.problems()))


def test_participants_are_joined_by_id_in_the_order_they_are_met():
    battery = Battery.of({"a": table(["P2", "P1"]), "b": table(["P3", "P1"])})
    assert list(battery.ids) == ["P2", "P1", "P3"]
    assert battery.rows("b").tolist() == [2, 1]
    assert battery.answered.to_numpy().tolist() == [[True, False], [True, True], [False, True]]


def test_who_answered_nothing_of_an_instrument_is_missing_there():
    silent = table(["P1", "P2"]).astype(float)
    silent.loc["P2"] = np.nan
    battery = Battery.of({"a": silent, "b": table(["P1", "P2"])})
    assert battery.answered["a"].to_dict() == {"P1": True, "P2": False}


def test_a_list_is_named_by_its_sources():
    made = [Questionnaire.of(table(["P1"]), item_range=(0, 2)) for _ in range(2)]
    assert Battery.of(made).names == ["instrument1", "instrument2"]
    named = [
        Questionnaire(each.answers, each.items, source=f"{name}.csv")
        for each, name in zip(made, "xy", strict=True)
    ]
    assert Battery.of(named).names == ["x", "y"]


def test_confounds_are_taken_from_the_first_instrument_that_knows_them():
    one = Questionnaire.of(
        table(["P1", "P2"]),
        item_range=(0, 2),
        confounds=pd.DataFrame({"age": [9.0, 10.0]}, index=["P1", "P2"]),
    )
    two = Questionnaire.of(
        table(["P2", "P3"]),
        item_range=(0, 2),
        confounds=pd.DataFrame({"age": [99.0, 11.0]}, index=["P2", "P3"]),
    )
    battery = Battery.of({"one": one, "two": two})
    assert battery.confounds["age"].to_dict() == {"P1": 9.0, "P2": 10.0, "P3": 11.0}


def test_one_table_of_confounds_serves_all_instruments():
    ages = pd.DataFrame({"age": [9.0, 10.0, 11.0]}, index=["P1", "P2", "P3"])
    battery = Battery.of({"a": table(["P3", "P1"]), "b": table(["P2"])}, confounds=ages)
    assert battery.instruments["a"].confounds["age"].tolist() == [11.0, 9.0]
    with pytest.raises(InputError, match=r"no row for 1 participant: 'P2'"):
        Battery.of({"a": table(["P1"]), "b": table(["P2"])}, confounds=ages.loc[["P1", "P3"]])


def test_the_flat_questionnaire_holds_every_item_once_and_keeps_directions():
    items = (Item("q0", min=0, max=2, reverse=True), *(Item(f"q{j}", min=0, max=2) for j in (1, 2, 3)))
    one = Questionnaire(table(["P1", "P2"]), items)
    flat = Battery.of({"a": one, "b": table(["P2"])}).flat()
    assert flat.answers.shape == (2, 8) and flat.items[0].reverse and flat.items[0].subscale == "a"
    assert flat.answers.loc["P1"].isna().tolist() == [False] * 4 + [True] * 4


def test_an_instrument_of_two_items_is_named():
    battery = Battery.of({"long": table(["P1"]), "short": table(["P1"], m=2)})
    assert "'short' has 2 items" in str(first_problem(battery))


def test_an_instrument_that_nobody_answered_is_named():
    battery = Battery.of({"a": table(["P1"]), "b": table(["P1"]).astype(float) * np.nan})
    assert str(first_problem(battery)).startswith("Instrument 'b' was answered by nobody")


def test_one_instrument_is_too_few():
    assert "only one instrument ('mood')" in str(first_problem(Battery.of({"mood": table(["P1"])})))


def test_instruments_without_a_participant_in_common_show_their_ids():
    said = str(first_problem(Battery.of({"a": table(["P1", "P2"]), "b": table([1, 2])})))
    assert "no participant in common" in said and "'P1'" in said and "'1'" in said


def test_instruments_are_joined_by_a_chain_of_participants():
    chain = {"a": table(["P1", "P2"]), "b": table(["P2", "P3"]), "c": table(["P3", "P4"])}
    assert all(isinstance(each, InputWarning) for each in Battery.of(chain).problems())


def test_few_shared_participants_are_warned_of():
    many = [f"P{i}" for i in range(60)]
    battery = Battery.of({"a": table(many), "b": table([*many[:5], *(f"X{i}" for i in range(50))])})
    assert [each.fields["instrument"] for each in battery.problems()] == ["a", "b"]


def test_an_instrument_that_runs_against_the_others_is_named():
    ids, rng = [f"P{i}" for i in range(80)], np.random.default_rng(0)
    level = rng.uniform(0, 4, (80, 1))

    def made(sign, prefix):
        answers = np.clip(np.rint(2 + sign * (level - 2) + rng.normal(0, 0.5, (80, 4))), 0, 4)
        frame = pd.DataFrame(answers, index=ids, columns=[f"{prefix}{j}" for j in range(4)])
        return Questionnaire.of(frame, item_range=(0, 4))

    bad = Battery.of({"low mood": made(1, "a"), "worry": made(1, "b"), "support": made(-1, "c")})
    (said,) = bad.problems()
    assert said.code == "runs-against" and said.fields["instrument"] == "support"
    items = tuple(replace(item, reverse=True) for item in bad.instruments["support"].items)
    good = Questionnaire(bad.instruments["support"].answers, items)
    assert list(Battery.of({**bad.instruments, "support": good}).problems()) == []


def test_an_id_that_is_there_twice_names_the_instrument():
    with pytest.raises(InputError, match=r"Instrument 'a': Participant 'P1' appears twice"):
        Battery.of({"a": table(["P1", "P1"]), "b": table(["P1"])})


def test_rows_that_are_only_counted_are_not_joined_by_their_number():
    counted = table(range(5)).reset_index(drop=True)
    with pytest.raises(InputError, match="no participant ids"):
        Battery.of({"a": counted, "b": counted.head(3)})
    assert Battery.of({"a": counted, "b": counted}).n_participants == 5


@pytest.mark.parametrize("what", [table(["P1"]), 3, "mood"])
def test_a_single_table_is_no_battery(what):
    with pytest.raises(InputError, match="several questionnaires by name"):
        Battery.of(what)


def test_a_wide_questionnaire_is_cut_by_instrument():
    wide = Questionnaire.of(table(["P1", "P2"], m=6).astype(float), item_range=(0, 2))
    battery = by_instrument(wide, {"q0": "a", "q1": "a", "q2": "a", "q3": "b", "q4": "b", "q5": "b"})
    assert {name: [item.name for item in each.items] for name, each in battery.instruments.items()} == {
        "a": ["q0", "q1", "q2"],
        "b": ["q3", "q4", "q5"],
    }
    with pytest.raises(InputError, match=r"no item 'q9'"):
        by_instrument(wide, {"q9": "a"})
    with pytest.raises(InputError, match="No item has a subscale"):
        by_instrument(wide)
