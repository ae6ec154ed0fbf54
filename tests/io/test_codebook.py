"""Codebooks come back as they were written; mistakes in them are named by row and column."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from icqf.data.questionnaire import Item
from icqf.errors import InputError, InputWarning
from icqf.io import Table, codebook_from, format_codebook, read_codebook, read_questionnaire, write_codebook

words = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Zl", "Zp")), max_size=15).map(
    str.strip
)
wordings = words
items = st.builds(
    Item,
    name=st.from_regex(r"\A[a-z=+@-][a-z0-9_]{1,8}\Z").filter(lambda s: s not in ("nan", "null", "none")),
    wording=wordings,
    min=st.just(0.0),
    max=st.sampled_from([1.0, 2.5, 4.0]),
    reverse=st.booleans(),
    subscale=st.sampled_from(["", "Mood", "-odd", "=1+1"]),
    missing_codes=st.sampled_from([(), (9.0,), (-9.0, 99.0), ("refused",)]),
    labels=st.sampled_from([(), ((0.0, "never"), (1.0, "often"))]),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(st.lists(items, min_size=1, max_size=5, unique_by=lambda item: item.name))
@pytest.mark.parametrize("ending", ["csv", "toml"])
def test_round_trip(tmp_path, ending, written):
    path = tmp_path / f"items.{ending}"
    write_codebook(written, path)
    assert read_codebook(path) == tuple(written)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nam,min,max\nq1,0,1\n", "no column 'name'. Did you mean 'nam'"),
        ("name,min,max\nq1,zero,1\n", "row 2, column 'min' holds the text 'zero'"),
        ("name,min,max\nq1,0,1\nq2,3,1\n", "row 3: Item 'q2'"),
        ("name,min,max\nq1,0,1\nq1,0,1\n", "row 3 describes the item 'q1' a second time"),
        ("name,min,max\n,0,1\n", "row 2 has no item name"),
        ("name,direction\nq1,sideways\n", "row 2, column 'direction' holds 'sideways'"),
        ("name,reverse\nq1,-1\n", "row 2, column 'reverse' holds '-1'; write 1 or 'yes' for a reversed item"),
        ("name,reverse,direction\nq1,1,+\n", "row 2: the columns 'direction' and 'reverse' contradict"),
        ("field_name,field_type\nq1,radio\n", "this is a REDCap data dictionary"),
        ("name,labels\nq1,never; often\n", "row 2, column 'labels' holds the label 'never' without a value"),
    ],
)
def test_mistakes(tmp_path, text, words):
    path = tmp_path / "items.csv"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_codebook(path)
    assert str(error.value).startswith("items.csv: ") and words in str(error.value)


@pytest.mark.parametrize(
    ("heading", "reversed_", "forward"),
    [
        ("reverse", ["1", "1.0", "yes", "TRUE", "x", "r", "Reversed"], ["0", "no", "false", "", "N"]),
        ("Reverse-coded", ["1", "y"], ["0", ""]),
        ("direction", ["-", "-1", "reverse", "R"], ["+", "1", "", "forward"]),
        ("keying", ["-", "-1"], ["+", "1", "+1"]),
    ],
)
def test_what_a_direction_means_follows_from_the_heading(tmp_path, heading, reversed_, forward):
    path, cells = tmp_path / "items.csv", [*reversed_, *forward]
    path.write_text(f"name,{heading}\n" + "".join(f"q{i},{cell}\n" for i, cell in enumerate(cells)))
    assert [item.reverse for item in read_codebook(path)] == [True] * len(reversed_) + [False] * len(forward)


def test_remarks_are_written_and_change_nothing(tmp_path):
    items = (Item("q1", min=0, max=2), Item("q2", min=0, max=2, reverse=True))
    for ending in ("csv", "toml"):
        path = tmp_path / f"items.{ending}"
        path.write_text(format_codebook(items, format=ending, remarks={"q2": "=Runs, against the others"}))
        assert "Runs, against the others" in path.read_text() and read_codebook(path) == items
    assert "remark" not in format_codebook(items)


def test_toml_keeps_labels_and_codes_that_hold_separators(tmp_path):
    item = Item("q1", missing_codes=("don't know; refused",), labels=((0.0, "no; never"), (1.0, "a|b=c")))
    write_codebook([item], tmp_path / "items.toml")
    assert read_codebook(tmp_path / "items.toml") == (item,)


def test_a_codebook_in_a_workbook(tmp_path):
    """Its first sheet, or one called codebook, with numbers as a spreadsheet has them and "NA" as a name."""
    book = pd.DataFrame(
        {
            "Item": ["NA", "q2", None],
            "Lowest": [0, 1.5, None],
            "Highest": [3, 5, None],
            "Missing codes": [9, "9; 99", None],
        }
    )
    answers = pd.DataFrame({"age": [7, 8, 9], "q2": [1.5, 5, 99]})
    expected = (
        Item("NA", min=0, max=3, missing_codes=(9,)),
        Item("q2", min=1.5, max=5, missing_codes=(9, 99)),
    )
    with pd.ExcelWriter(tmp_path / "both.xlsx") as writer:
        answers.to_excel(writer, sheet_name="data", index=False)
        book.to_excel(writer, sheet_name=" Codebook", index=False)
    book.to_excel(tmp_path / "alone.xlsx", index=False)
    with pd.ExcelWriter(tmp_path / "first.xlsx") as writer:
        book.to_excel(writer, sheet_name="codebook", index=False)
        answers.to_excel(writer, sheet_name="data", index=False)
    assert {read_codebook(tmp_path / f"{name}.xlsx") for name in ("both", "alone", "first")} == {expected}
    for name in ("both", "first"):
        path = tmp_path / f"{name}.xlsx"
        assert read_questionnaire(path, codebook=path, items="q2").answers["q2"].isna().sum() == 1


@pytest.mark.parametrize(
    ("heading", "said"),
    [
        (
            "revers",
            "'revers' is not a heading of a codebook, so the column is not used. Did you mean 'reverse'",
        ),
        ("Minimun", "Did you mean 'minimum'"),
        ("mising", "Did you mean 'missing'"),
        ("author", "are not used: 'author'. Its headings are name, wording"),
    ],
)
def test_unknown_columns_are_named(tmp_path, heading, said):
    path = tmp_path / "items.csv"
    path.write_text(f"name,{heading}\nq1,1\n")
    with pytest.warns(InputWarning, match=re.escape(said)):
        assert read_codebook(path) == (Item("q1"),)


def test_toml_mistakes(tmp_path):
    path = tmp_path / "items.toml"
    for text, words in (
        ("[[item]]\nname = 'q1'\nmini = 0\n", "Did you mean 'min'"),
        ("[[item]\n", "not valid TOML"),
        ("item = 3\n", "[[item]]"),
        ("\n# nothing\n", "no item"),
    ):
        path.write_text(text)
        with pytest.raises(InputError) as error:
            read_codebook(path)
        assert words in str(error.value)
    path.write_text(
        '[[item]]\nname = "q1"\nmin = 0\nmax = 2\nmissing = [9, "refused"]\nlabels = {0 = "no", 2 = "yes"}\n'
    )
    assert read_codebook(path)[0].missing_codes == (9.0, "refused")


def test_a_guessed_codebook():
    frame = pd.DataFrame(
        {
            "id": ["a", "b", "c", "d"],
            "m1": [0, 1, 1, 0],
            "m2": [1, 0, 99, 1],
            "f1": [0, 3, 2, 1],
            "age": [6.5, 7.1, 8.2, 9.9],
            "name": ["x", "y", "z", "w"],
        }
    )
    guessed = codebook_from(Table(frame, "t", np.arange(4), id="id"))
    assert [(item.name, item.min, item.max, item.missing_codes) for item in guessed] == [
        ("m1", 0, 1, ()),
        ("m2", 0, 1, (99.0,)),
        ("f1", 0, 3, ()),
    ]


def test_codebook_over_file_and_shared_codes(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("id,fam,age,q1,q2,q3\n1,007,9,0,9,refused\n2,007,8,9,4,1\n")
    book = [
        Item("q1", min=0, max=4, missing_codes=(9,)),
        Item("q2", min=0, max=10),
        Item("q3", min=0, max=2, reverse=True),
    ]
    study = read_questionnaire(
        path,
        codebook=[*book, Item("age", missing_codes=(9,))],
        confounds="age",
        groups="fam",
        missing_codes=[9, "refused"],
    )
    assert study.answers["q1"].isna().tolist() == [False, True]
    assert study.answers["q2"].tolist() == [9, 4]
    assert study.answers["q3"].isna().tolist() == [True, False]
    assert study.confounds is not None and study.confounds["age"].isna().tolist() == [True, False]
    assert study.groups is not None and study.groups.tolist() == ["007", "007"]
    text = " ".join(study.notes)
    for words in (
        "9 was read as missing in 1 answer of 1 item",
        "9 is an answer",
        "Texts declared as missing",
        "reverse-keyed",
    ):
        assert words in text
    with pytest.raises(InputError, match="codebook's item 'q4' is not a column"):
        read_questionnaire(path, codebook=[*book, Item("q4")], missing_codes=["refused"])
    with pytest.raises(InputError, match="'age' is named as an item and as"):
        read_questionnaire(path, items=["age", "q1"], confounds=["age"])
    with pytest.raises(
        InputError, match=r"Item 'q2' holds 9, above its highest answer 4 \(row 2, participant '1'\)"
    ):
        read_questionnaire(path, codebook=[Item("q2", min=0, max=4)])


def test_observed_ranges_are_said(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("q1,q2,age\n0,3,7.5\n1,2,8.25\n")
    study = read_questionnaire(path)
    assert study.ranges().to_numpy().tolist() == [[0, 3], [0, 3]]
    assert any("0 to 3" in note for note in study.notes)
    assert any("'age'" in note for note in study.notes)
    assert any("numbered" in note for note in study.notes)
    assert list(study.answers.index) == ["1", "2"]


def test_a_codebook_of_names_alone(tmp_path):
    path = tmp_path / "items.csv"
    path.write_text("name\nq1\nq2\n")
    assert read_codebook(path) == (Item("q1"), Item("q2"))
    path.write_text("nam\nq1\nq2\n")
    with pytest.raises(InputError, match=r"the codebook has no column 'name'\. Did you mean 'nam'"):
        read_codebook(path)
