"""Every format gives the same questionnaire; labels and user-missing values are kept."""

import json

import numpy as np
import pandas as pd
import pyreadstat
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from icqf.errors import InputError
from icqf.io import codebook_from, read_questionnaire, read_table
from icqf.io.readers.table import largest_file
from icqf.screening.answer_words import means_no_answer, no_answer_values

WRITERS = {
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "xlsx": lambda frame, path: frame.to_excel(path, index=False, engine="xlsxwriter"),
    "parquet": lambda frame, path: frame.to_parquet(path, index=False),
    "sav": lambda frame, path: pyreadstat.write_sav(frame, str(path)),
    "zsav": lambda frame, path: pyreadstat.write_sav(frame, str(path), compress=True),
    "dta": lambda frame, path: pyreadstat.write_dta(frame, str(path)),
    "xpt": lambda frame, path: pyreadstat.write_xport(frame, str(path), file_format_version=8),
}


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(*[st.sampled_from([0.0, 1.0, 2.0, None])] * 3), min_size=3, max_size=15))
@pytest.mark.parametrize("ending", WRITERS)
def test_the_same_answers_from_every_format(tmp_path, ending, rows):
    frame = pd.DataFrame([(0.0, 1.0, 2.0), *rows], columns=["q1", "q2", "q3"], dtype=float)
    frame.insert(0, "id", [f"{i:03d}" for i in range(len(frame))])
    frame["age"] = np.arange(len(frame)) + 6.5
    path = tmp_path / f"answers.{ending}"
    WRITERS[ending](frame, path)
    study = read_questionnaire(path, confounds=["age"], items=["q*"])
    assert list(study.answers.index) == list(frame["id"])
    np.testing.assert_array_equal(study.answers.to_numpy(), frame[["q1", "q2", "q3"]].to_numpy())
    assert study.confounds is not None
    assert study.confounds["age"].tolist() == frame["age"].tolist()


@pytest.fixture
def labelled(tmp_path):
    frame = pd.DataFrame(
        {
            "id": [1.0, 2.0, 3.0, 4.0],
            "q1": [0.0, 2.0, 9.0, 1.0],
            "q2": [1.0, 97.0, 98.0, 0.0],
            "sex": [1.0, 2.0, 2.0, 1.0],
            "comment": ["", "fine", "=1+1", ""],
        }
    )
    path = tmp_path / "answers.sav"
    answers = {0: "never", 1: "sometimes", 2: "often", 9: "refused"}
    pyreadstat.write_sav(
        frame,
        str(path),
        column_labels=["", "Sleeps badly", "Worries", "Sex", ""],
        variable_value_labels={"q1": answers, "q2": {0: "never", 2: "often"}, "sex": {1: "boy", 2: "girl"}},
        missing_ranges={"q2": [{"lo": 97, "hi": 99}]},
    )
    return path


def test_spss_labels_and_user_missing(labelled):
    study = read_questionnaire(labelled, confounds=["sex"])
    assert [item.name for item in study.items] == ["q1", "q2"]
    q1, q2 = study.items
    assert (q1.wording, q1.min, q1.max, q1.missing_codes) == ("Sleeps badly", 0, 2, (9,))
    assert q1.labels[0] == (0, "never")
    assert (q2.min, q2.max, q2.missing_codes) == (0, 2, (97, 98))
    assert list(study.answers.index) == ["1", "2", "3", "4"]
    assert study.answers.isna().sum().tolist() == [1, 2]
    assert study.confounds is not None
    assert study.confounds["sex"].tolist() == ["boy", "girl", "girl", "boy"]
    assert any("'comment'" in note for note in study.notes)
    assert [item.name for item in codebook_from(read_table(labelled))] == ["q1", "q2"]


def test_a_sav_with_strings(labelled, tmp_path):
    with pytest.raises(InputError, match=r"'comment'\) holds answers in words, first in row 2: 'fine'"):
        read_questionnaire(labelled, items=["q1", "comment"])
    digits = tmp_path / "digits.sav"
    pyreadstat.write_sav(pd.DataFrame({"id": ["a", "b"], "q1": ["0", "2"], "q2": ["1", ""]}), str(digits))
    study = read_questionnaire(digits, items=["q1", "q2"])
    assert study.answers["q1"].tolist() == [0, 2]
    assert any("stored as text" in note for note in study.notes)


def test_value_labels_that_do_not_fit_the_values(tmp_path):
    path = tmp_path / "shifted.sav"
    frame = pd.DataFrame({"id": [1.0, 2.0], "q1": [11.0, 12.0], "q2": [0.0, 1.0]})
    labels = {0: "no", 1: "yes"}
    pyreadstat.write_sav(frame, str(path), variable_value_labels={"q1": labels, "q2": labels})
    with pytest.raises(
        InputError, match=r"shifted.sav: Item 'q1' holds 11, above its highest answer 1 \(row 1"
    ):
        read_questionnaire(path)


def test_stata_letters_become_missing_with_a_note(tmp_path):
    frame = pd.DataFrame({"id": ["x", "y", "z"], "q1": [1, "a", 0], "q2": [0, 1, 2]})
    path = tmp_path / "answers.dta"
    pyreadstat.write_dta(frame, str(path), missing_user_values={"q1": ["a"]})
    study = read_questionnaire(path)
    assert study.answers["q1"].isna().tolist() == [False, True, False]
    assert any(".a (1)" in note for note in study.notes)


@pytest.mark.parametrize("ending", ["sav", "dta", "sas7bdat", "xpt", "xlsx", "parquet"])
def test_a_damaged_file(tmp_path, ending):
    path = tmp_path / f"broken.{ending}"
    path.write_bytes(b"this is not what it says it is" * 10)
    with pytest.raises(InputError, match=rf"^broken.{ending}: .*cannot be read as"):
        read_table(path)


def test_excel_names_sheet_row_and_repeated_column(tmp_path):
    path = tmp_path / "book.xlsx"
    with pd.ExcelWriter(path, engine="xlsxwriter") as writer:
        pd.DataFrame({"id": ["a", "b"], "q1": [0, "x"], "q2": [1, 1]}).to_excel(
            writer, sheet_name="first", index=False
        )
        pd.DataFrame({"other": [1]}).to_excel(writer, sheet_name="second", index=False)
    with pytest.raises(InputError, match=r"book.xlsx: row 3, column 'q1' holds the text 'x'"):
        read_questionnaire(path, items=["q*"])
    assert any("'second'" in note for note in read_table(path).notes)
    pd.DataFrame([[1, 2, 3]], columns=["id", "q1", "q1"]).to_excel(path, index=False, engine="xlsxwriter")
    with pytest.raises(InputError, match="'q1' twice"):
        read_table(path)


def test_the_largest_file_is_at_most_one_gigabyte():
    assert 0 < largest_file() <= 2**30


def test_an_absent_package_is_named(monkeypatch, labelled):
    monkeypatch.setattr("icqf.io.readers.table.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pyreadstat; pip install 'icqf\[io\]'"):
        read_table(labelled)


# --- ids under other names, and failed formulas ------------------------------------------------------


@pytest.mark.parametrize("name", ["patient_id", "study_id", "pid", "MRN", "subjid", "Patient-ID", "code"])
@pytest.mark.parametrize("ending", ["xlsx", "sav", "parquet"])
def test_a_text_column_of_ids_is_no_item(tmp_path, name, ending):
    """Whatever it is called: a name that is known makes it the id, and so does a number for each row."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: [str(i) for i in range(300)]})
    frame[["q1", "q2", "q3"]] = rng.integers(0, 4, (300, 3))
    path = tmp_path / f"answers.{ending}"
    WRITERS[ending](frame.rename(columns={"Patient-ID": "Patient_ID"}) if ending == "sav" else frame, path)
    read = read_questionnaire(path)
    assert list(read.answers) == ["q1", "q2", "q3"]
    assert read.ranges().to_numpy().tolist() == [[0, 3]] * 3
    assert read.answers.index.name == ("Patient_ID" if (name, ending) == ("Patient-ID", "sav") else name)


def test_rows_numbered_through_are_no_item(tmp_path):
    path = tmp_path / "answers.csv"
    pd.DataFrame({"nr": range(1, 16), "q1": [0, 1, 2] * 5, "q2": [2, 2, 1] * 5}).to_csv(path, index=False)
    assert list(read_questionnaire(path).answers) == ["q1", "q2"]


def test_a_failed_formula_in_excel_is_noted(tmp_path):
    path = tmp_path / "answers.xlsx"
    with pd.ExcelWriter(path, engine="xlsxwriter") as writer:
        pd.DataFrame({"id": list("abc"), "q1": [0, 1, 2], "q2": [1, 1, 0]}).to_excel(writer, index=False)
        writer.sheets["Sheet1"].write_formula("B3", "=1/0", None, "#DIV/0!")
    read = read_questionnaire(path)
    assert np.isnan(read.answers.loc["b", "q1"])
    said = "1 cell of the workbook with a formula error, such as #DIV/0!, was read as missing."
    assert said in read.notes


# --- A labelled value is a missing code only where its label, as a whole, says so, whatever the file --


NO_ANSWER = """
Missing | -99 missing | -99 = Missing | Missing value | System missing | No answer | No response | N/A | n.a.
Refused | Refused to answer | Refused (RF) | [9] Refused | Participant refused | Prefer not to say | Skipped
Don't know | DK | I don't know | (Don't know) | Don't know or refused | Don't know/can't say | Unknown
Not applicable | Not applicable: no children | Missing - form not returned | Not ascertained
"""
ANSWERS = """
Missing school often | Often missing | Missing people | Refuses to go to school | Refused food | Skipped meals
Don't know anybody I can trust | Don't know what to do | Don't want to go | Unknown people frighten me
No response to others | Not applicable to me at all | Does not apply | Did not apply to me at all
Not answered back | No answer helps | No | Never | None
"""


def texts(table):
    return [text.strip() for line in table.strip().splitlines() for text in line.split("|")]


@pytest.mark.parametrize("text", texts(NO_ANSWER))
def test_labels_that_say_no_answer(text):
    assert means_no_answer(text)


@pytest.mark.parametrize("text", texts(ANSWERS))
def test_labels_that_only_contain_such_words_are_answers(text):
    assert not means_no_answer(text)


def test_of_two_neighbouring_values_both_are_answers():
    assert no_answer_values({0: "Not done", 1: "Done"}) == []
    assert no_answer_values({1: "Fully available", 2: "Partly available", 3: "Not available"}) == []
    assert no_answer_values({1: "Agree", 2: "Disagree", 9: "Not available"}) == [9]
    assert no_answer_values({0: "Not done", 1: "Done", 9: "Not done"}) == [9]
    assert no_answer_values({1: "Yes", 9: "Unknown"}) == [9]


LABELS = {0: "Never", 1: "Sometimes", 2: "Missing school often", 9: "Refused to answer"}


@pytest.fixture
def frame():
    return pd.DataFrame({f"q{j}": [0.0, 1.0, 2.0, 9.0, 2.0, 1.0] for j in range(3)})


def _sav(frame, folder):
    pyreadstat.write_sav(frame, str(folder / "a.sav"), variable_value_labels=dict.fromkeys(frame, LABELS))
    return read_questionnaire(folder / "a.sav")


def _dta(frame, folder):
    whole = frame.astype("int32")
    pyreadstat.write_dta(whole, str(folder / "a.dta"), variable_value_labels=dict.fromkeys(frame, LABELS))
    return read_questionnaire(folder / "a.dta")


def _redcap(frame, folder):
    choices = " | ".join(f"{value}, {text}" for value, text in LABELS.items())
    head = "field_name,form_name,field_type,field_label,select_choices_or_calculations\n"
    rows = ["record_id,school,text,Id,\n"]
    rows += [f'{name},school,radio,Item {name},"{choices}"\n' for name in frame]
    (folder / "fields.csv").write_text(head + "".join(rows))
    frame.assign(record_id=range(len(frame))).to_csv(folder / "a.csv", index=False)
    return read_questionnaire(folder / "a.csv", dictionary=folder / "fields.csv")


def _bids(frame, folder):
    frame.assign(participant_id=[f"sub-{i}" for i in range(len(frame))]).to_csv(
        folder / "a.tsv", sep="\t", index=False
    )
    levels = {str(value): text for value, text in LABELS.items()}
    (folder / "a.json").write_text(json.dumps({name: {"Levels": levels} for name in frame}))
    return read_questionnaire(folder / "a.tsv")


def _codebook(frame, folder):
    frame.to_csv(folder / "a.csv", index=False)
    labels = "; ".join(f"{value}={text}" for value, text in LABELS.items())
    (folder / "items.csv").write_text("name,labels\n" + "".join(f"{name},{labels}\n" for name in frame))
    return read_questionnaire(folder / "a.csv", codebook=folder / "items.csv")


@pytest.mark.parametrize("written", [_sav, _dta, _redcap, _bids, _codebook])
def test_every_format_reads_labels_alike(frame, tmp_path, written):
    study = written(frame, tmp_path)
    np.testing.assert_array_equal(study.answers["q1"], [0, 1, 2, np.nan, 2, 1])
    assert set(study.ranges()["max"]) == {2.0}
    assert {item.missing_codes for item in study.items} == {(9.0,)}


def test_a_code_that_the_codebook_declares_inside_the_range_stays_an_answer(tmp_path):
    """Where the range says that a value is an answer, a label does not make it missing."""
    pd.DataFrame({"q1": [0, 1, 2], "q2": [2, 1, 0]}).to_csv(tmp_path / "a.csv", index=False)
    (tmp_path / "items.csv").write_text(
        "name,min,max,labels\nq1,0,2,0=no; 1=yes; 2=Don't know\nq2,0,2,0=no; 1=yes\n"
    )
    study = read_questionnaire(tmp_path / "a.csv", codebook=tmp_path / "items.csv")
    assert study.answers["q1"].tolist() == [0, 1, 2]
