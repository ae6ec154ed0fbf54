"""A second table of participants: joined by id, whatever the order, and clear where it cannot be."""

import numpy as np
import pandas as pd
import pytest

from icqf.errors import InputError
from icqf.io.codebook import read_codebook, read_instruments
from icqf.io.readers.questionnaires import joined_by_id
from icqf.io.readers.table import Table


def made(frame, source, id="id"):
    return Table(pd.DataFrame(frame), source, np.arange(2, 2 + len(next(iter(frame.values())))), id=id)


ANSWERS = {"id": ["P2", "P1", "P3"], "q1": [0, 1, 2]}


def test_values_follow_the_ids():
    with pytest.warns(
        UserWarning, match=r"a.csv: 1 participant not found in p.csv, so 'age' is missing for them."
    ):
        found = joined_by_id(
            made(ANSWERS, "a.csv"), made({"id": ["P1", "P2", "P9"], "age": [9, 11, 12]}, "p.csv"), ["age"]
        )
    assert found.frame["age"].tolist()[:2] == [11, 9] and np.isnan(found.frame["age"].iloc[2])
    assert "age added from p.csv by participant id." in found.notes


def test_a_column_that_is_there_stays():
    answers = made({**ANSWERS, "age": [1, 2, 3]}, "a.csv")
    assert joined_by_id(answers, made({"id": ["P1"], "age": [9]}, "p.csv"), ["age"]) is answers


def test_numbers_and_texts_are_the_same_ids():
    found = joined_by_id(
        made({"id": [1.0, 2.0], "q1": [0, 1]}, "a.csv"),
        made({"id": ["2", " 1 "], "age": [5, 6]}, "p.csv"),
        ["age"],
    )
    assert found.frame["age"].tolist() == [6, 5]


def test_an_empty_column_is_filled_from_other_rows_of_an_export_with_visits():
    """As in REDCap, where only the row of the first event has age and sex."""
    visits = made(
        {"id": ["P1", "P1", "P2", "P2", "P3"], "age": [9, np.nan, 11, 11, np.nan], "q1": [0, 1, 2, 2, 2]},
        "a.csv",
    )
    later = made({**ANSWERS, "age": [np.nan] * 3, "sex": [1, 2, 1]}, "a.csv")
    found = joined_by_id(later, visits, ["age", "sex"])
    assert found.frame["age"].tolist()[:2] == [11, 9] and np.isnan(found.frame["age"].iloc[2])
    assert found.frame["sex"].tolist() == [1, 2, 1]


@pytest.mark.parametrize(
    ("people", "id", "said"),
    [
        ({"id": ["P1", "P1"], "age": [1, 2]}, "id", "'P1' appears in several rows, which differ in 'age'"),
        ({"id": ["X1", "X2"], "age": [1, 2]}, "id", "Write the ids the same way"),
        ({"id": ["P1", "P2"], "aeg": [1, 2]}, "id", "no column 'age' here, nor in a.csv. Did you mean 'aeg'"),
        ({"code": ["P1", "P2"], "age": [1, 2]}, None, "no column of participant ids"),
    ],
)
def test_tables_that_cannot_be_joined(people, id, said):
    with pytest.raises(InputError, match=said):
        joined_by_id(made(ANSWERS, "a.csv"), made(people, "p.csv", id), ["age"])


def test_the_codebook_says_which_instrument_an_item_belongs_to(tmp_path):
    (tmp_path / "items.csv").write_text("item,questionnaire,min,max\nq1,mood,0,3\nq2,,0,3\nq3,sleep,0,3\n")
    assert read_instruments(tmp_path / "items.csv") == {"q1": "mood", "q3": "sleep"}
    assert len(read_codebook(tmp_path / "items.csv")) == 3
    (tmp_path / "items.toml").write_text('[[item]]\nname = "q1"\ninstrument = "mood"\n')
    assert read_instruments(tmp_path / "items.toml") == {"q1": "mood"}
    (tmp_path / "plain.csv").write_text("name,min,max\nq1,0,3\n")
    assert read_instruments(tmp_path / "plain.csv") == {}
