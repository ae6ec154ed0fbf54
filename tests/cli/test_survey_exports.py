"""Exports of Qualtrics and Google Forms as they come: what the programs add is left out, and said."""

import io
import json

import pandas as pd
import pytest

from icqf.io import read_table
from small_study import ITEMS, table

WORDS = ["Strongly disagree", "Disagree", "Agree", "Strongly agree"]
OWN = ["StartDate", "EndDate", "Status", "IPAddress", "Progress", "Finished", "RecordedDate", "ResponseId"]
TITLES = [
    "Start Date",
    "End Date",
    "Response Type",
    "IP Address",
    "Progress",
    "Finished",
    "Recorded Date",
    "Response ID",
]
FIT = ("--n-components", "2", "--beta", "0.1", "--no-report")


def in_words():
    frame = table()[ITEMS].replace({"9": ""})
    return frame.map(lambda cell: cell and WORDS[int(cell)])


def qualtrics():
    """Names in row 1, question texts (one over two lines) in row 2, import ids in row 3."""
    answers = in_words()
    frame = pd.DataFrame(dict.fromkeys(OWN, "2024-03-01 10:00:00"), index=answers.index)
    frame["Status"], frame["Progress"], frame["Finished"] = "IP Address", "100", "True"
    frame["ResponseId"] = [f"R_{i:03d}" for i in range(80)]
    frame = pd.concat([frame, answers], axis=1)
    texts = [*TITLES, *(f"How much do you agree?\n- I am, or was, number {name}" for name in ITEMS)]
    ids = [json.dumps({"ImportId": f"QID{at}"}) for at in range(len(texts))]
    return pd.concat([pd.DataFrame([texts, ids], columns=frame.columns), frame], ignore_index=True)


@pytest.fixture(params=["csv", "xlsx", "tsv"])
def export(request, tmp_path):
    path = tmp_path / f"survey.{request.param}"
    if request.param == "xlsx":
        qualtrics().to_excel(path, index=False)
    else:
        qualtrics().to_csv(
            path, index=False, sep="," if request.param == "csv" else "\t", lineterminator="\r\n"
        )
    return path


def test_qualtrics(run, export, tmp_path):
    result = run("check", export, "--items", "q*")
    said = result.stdout
    assert result.exit_code == 1
    assert "Rows 2 and 3 were left out: question texts and ids that Qualtrics writes" in said
    assert "The file is an export of Qualtrics; the columns that it adds are not items." in said
    assert (
        "12 items" in said
        and "proposes the order Strongly disagree < Disagree < Agree < Strongly agree" in said
    )
    book = pd.read_csv(io.StringIO(run("codebook", export).stdout))
    assert book["name"].tolist() == ITEMS
    assert book["wording"].tolist() == [
        f"How much do you agree? - I am, or was, number {name}" for name in ITEMS
    ]
    book.to_csv(tmp_path / "items.csv", index=False)
    result = run("fit", export, "--codebook", tmp_path / "items.csv", *FIT, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    scores = pd.read_csv(tmp_path / "out" / "scores.csv")
    assert scores["ResponseId"].tolist() == [f"R_{i:03d}" for i in range(80)]


def test_an_export_of_numbers_needs_nothing(run, tmp_path):
    frame = qualtrics().replace({word: str(at) for at, word in enumerate(WORDS)})
    frame["Duration (in seconds)"] = [
        "Duration (in seconds)",
        '{"ImportId":"duration"}',
        *map(str, range(80)),
    ]
    frame.to_csv(tmp_path / "survey.csv", index=False)
    result = run("check", tmp_path / "survey.csv")
    assert result.exit_code == 0
    assert "  Items         12: q01–q12\n  Ranges        0 to 3, not declared" in result.stdout
    assert "adds them to every export: 'StartDate', 'EndDate', 'Status', 'IPAddress'" in result.stdout


def test_rows_are_counted_as_the_spreadsheet_does(run, tmp_path):
    frame = qualtrics()
    frame.loc[6, "q05"] = "Grmpf"
    frame.to_excel(tmp_path / "survey.xlsx", index=False)
    assert read_table(tmp_path / "survey.xlsx").rows[:2].tolist() == [4, 5]
    pd.DataFrame(
        {"name": ITEMS, "labels": "0=Strongly disagree; 1=Disagree; 2=Agree; 3=Strongly agree"}
    ).to_csv(tmp_path / "items.csv", index=False)
    result = run("check", tmp_path / "survey.xlsx", "--codebook", tmp_path / "items.csv")
    assert "row 8, column 'q05' holds the text 'Grmpf'" in result.stdout


def test_qualtrics_with_its_ids_deleted_or_test_runs_left_in(run, tmp_path):
    frame = qualtrics().drop(index=1)
    frame.loc[5, "Status"] = "Survey Preview"
    frame.to_csv(tmp_path / "survey.csv", index=False)
    said = run("check", tmp_path / "survey.csv", "--items", "q*").stdout
    assert "Row 2 was left out" in said and "12 items" in said
    assert "1 test run ('Survey Preview' in the column 'Status')" in said


def test_google_forms(run, tmp_path):
    answers = in_words()
    answers.columns = [f"How much do you agree? [I am, or was, number {name}]" for name in ITEMS]
    answers.insert(0, "Timestamp", "2024/05/01 9:12:33 AM GMT+2")
    answers.insert(1, "Email Address", [f"p{i}@example.org" for i in range(80)])
    answers["Anything else?"] = [f"thought {i}" for i in range(80)]
    answers.to_csv(tmp_path / "form.csv", index=False)
    result = run("check", tmp_path / "form.csv")
    assert result.exit_code == 2 and "12 items" in result.stderr
    assert "proposes the order Strongly disagree < Disagree < Agree < Strongly agree" in result.stderr
    run("codebook", tmp_path / "form.csv", "--out", tmp_path / "items.csv")
    result = run("check", tmp_path / "form.csv", "--codebook", tmp_path / "items.csv")
    assert result.exit_code == 0
    assert "The file is an export of Google Forms" in result.stdout and "'Timestamp'" in result.stdout
    assert "@example.org" not in result.stdout
    words = ("--codebook", tmp_path / "items.csv", *FIT, "--out", tmp_path / "out")
    assert run("fit", tmp_path / "form.csv", *words).exit_code == 0
    assert len(pd.read_csv(tmp_path / "out" / "loadings.csv")) == 12


def test_a_column_of_that_name_alone_is_no_export(tmp_path):
    table().assign(Status=1).to_csv(tmp_path / "study.csv", index=False)
    assert read_table(tmp_path / "study.csv").metadata == ()
    table().rename(columns={"record_id": "Timestamp"}).to_csv(tmp_path / "other.csv", index=False)
    assert read_table(tmp_path / "other.csv").metadata == ()
