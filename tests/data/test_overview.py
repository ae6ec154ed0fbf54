"""What will be analysed is said once, in full, and without any participant."""

import json

import numpy as np
import pandas as pd
import pytest

from icqf.data.check import Overview, further_notes, width_sentence
from icqf.data.questionnaire import Draft, Item
from icqf.io import Table
from icqf.io.readers.questionnaires import study_table
from icqf.screening.columns import REASONS

N = 60


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 4, (N, 9)), columns=[f"q{j}" for j in range(1, 10)], dtype=float)
    frame.insert(0, "record_id", [f"SECRET{i:03d}" for i in range(N)])
    frame = frame.assign(age=rng.integers(8, 17, N), sex=["f", "m"] * 30, site="A", note="private words")
    frame["total"] = frame[[f"q{j}" for j in range(1, 10)]].sum(axis=1)
    frame.loc[5, "q1":"q9"] = np.nan
    return Table(frame, "study.csv", np.arange(2, N + 2), id="record_id")


def test_everything_is_said(table):
    draft = study_table(table, confounds=["age"], reverse=["q3"]).draft()
    overview = Overview.of(draft, n_rows=N + 2)
    lines = overview.lines
    assert lines == (
        ("Items", "9: q1–q9"),
        ("Ranges", "0 to 3, not declared: the lowest and highest answer of a family of 9 items"),
        ("Reversed", "q3 at your request"),
        ("Confounds", "age"),
        ("Left out", "as demographic columns: 'sex'"),
        ("", "because they identify sites, groups or weights: 'site'"),
        ("", "because they hold text rather than numbers: 'note'"),
        (
            "",
            "because they are sums or means of other columns: 'total' (of 9 columns, 'q1', 'q2' and 7 more)",
        ),
        (
            "Participants",
            "59 of 62 rows, with the ids in 'record_id'; left out: 2 (empty row in the file), "
            "1 (answered nothing)",
        ),
    )
    assert str(overview).startswith("What will be analysed (study.csv):\n  Items         9: q1–q9\n")


def test_who_declared_a_range_and_who_reversed(table):
    items = [Item("q1", min=0, max=3, reverse=True), Item("q2", min=0, max=3), Item("q3")]
    described = Table(**{**vars(table), "items": (Item("q3", min=0, max=4, labels=((0.0, "no"),)),)})
    overview = Overview.of(study_table(described, codebook=[*items, Item("q4")], reverse=["q2"]).draft())
    assert [(each.source, each.items) for each in overview.ranges] == [
        ("codebook", ("q1", "q2")),
        ("file", ("q3",)),
        ("family", ("q4",)),
    ]
    assert overview.reversed == (("codebook", ("q1",)), ("hand", ("q2",)))


def test_items_reversed_by_the_assistant_are_told_from_others():
    answers = pd.DataFrame({"a": [0.0, 1], "b": [1.0, 0]})
    draft = Draft(answers, (Item("a", reverse=True), Item("b")), found_reversed=("a",))
    assert Overview.of(draft).reversed == (("assistant", ("a",)),)


def test_plain_values_name_no_participant_and_no_answer(table):
    draft = study_table(table, confounds=["age"]).draft()
    plain = Overview.of(draft, n_rows=N).to_dict()
    text = json.dumps(plain) + str(Overview.of(draft))
    assert "SECRET" not in text and "private" not in text
    assert plain["participants"] == {"rows": N, "in": N - 1, "out": [{"n": 1, "why": "answered nothing"}]}
    assert {column["reason"] for column in plain["left_out"]} <= set(REASONS)
    assert plain["ranges"] == [{"low": 0.0, "high": 3.0, "from": "family", "items": plain["items"]}]


def test_notes_are_not_said_twice(table):
    draft = study_table(table, confounds=["age"], missing_codes=[2]).draft()
    rest = further_notes(draft.notes)
    assert len(rest) < len(draft.notes)
    assert any("2 was read as missing" in note for note in rest)
    assert not any(note.startswith(("Left out", "No range")) for note in rest)


def test_widths_are_a_fact():
    assert width_sentence([1, 1.9]) == "" and width_sentence([]) == ""
    assert "up to 9 times as much" in width_sentence([3.0, 1.0])
