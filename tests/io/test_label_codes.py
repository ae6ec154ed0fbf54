"""A labelled value is a missing code only where its label, as a whole, says so, whatever the file."""

import json

import numpy as np
import pandas as pd
import pyreadstat
import pytest

from icqf.io import read_questionnaire
from icqf.screening.answer_words import means_no_answer, no_answer_values

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
