"""A file that cannot be used gives one message with its name, exit code 2, and nothing half-written."""

import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pyreadstat
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from icqf.io import read_table
from small_study import ITEMS, table

FIT = ("--n-components", "2", "--beta", "0.1", "--missing-codes", "9")


def text_of(frame, sep=","):
    return frame.to_csv(index=False, sep=sep)


def with_line(text, position, line):
    lines = text.splitlines()
    return "\n".join([*lines[:position], line, *lines[position:]]) + "\n"


def with_cell(row, column, cell):
    frame = table()
    frame.loc[row, column] = cell
    return text_of(frame)


BAD_TEXT = {
    "delimiter": (text_of(table()).replace(",", "^"), ("only one column",)),
    "header twice": (with_line(text_of(table()), 40, ",".join(table().columns)), ("row 41", "header")),
    "name twice": (text_of(table()).replace("q02", "q01", 1), ("row 1", "'q01'", "twice")),
    "long row": (with_line(text_of(table()), 3, "x," * 30), ("row 4", "31 cells")),
    "short row": (with_line(text_of(table()), 3, "x,1"), ("row 4", "2 cells")),
    "text": (with_cell(4, "q05", "often"), ("row 6", "'q05'", "'often'", "labels, such as '2=often'")),
    "id twice": (with_cell(4, "record_id", "001"), ("rows 2 and 6", "'001'", "'record_id'")),
    "no id": (with_cell(4, "record_id", ""), ("row 6", "'record_id'")),
    "empty": ("", ("empty",)),
    "blank": ("\n\n\n", ("empty",)),
    "header only": (text_of(table()).splitlines()[0] + "\n", ("no answers below",)),
    "open quote": (with_line(text_of(table()), 3, '"x,1'), ("row 4",)),
}


@pytest.mark.parametrize("name", BAD_TEXT)
def test_bad_text_files(run, tmp_path, left_behind, name):
    text, said = BAD_TEXT[name]
    (tmp_path / "study.csv").write_text(text)
    refused(run("fit", tmp_path / "study.csv", *FIT, "--out", tmp_path / "out"), "study.csv", *said)
    assert left_behind() == ["study.csv"]


def refused(result, *said):
    assert result.exit_code == 2
    assert result.stdout == ""
    (error,) = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    for words in said:
        assert words in error


def test_mixed_encodings(run, tmp_path):
    text = with_line(text_of(table()), 3, ",".join(["é"] * 16))
    path = tmp_path / "study.csv"
    path.write_bytes(text.encode() + ",".join(["ü"] * 16).encode("latin-1"))
    refused(run("fit", path, *FIT, "--out", tmp_path / "out"), "study.csv", "row 4", "row 83", "encodings")


def test_a_folder(run, files, tmp_path):
    refused(run("fit", files, *FIT, "--out", tmp_path / "out"), "folder", "answers.csv")


def test_a_missing_file_suggests_the_nearest(run, files):
    refused(run("check", files / "answer.csv"), "no such file", "Did you mean 'answers.csv'?")


def test_a_huge_file_is_refused_before_it_is_read(run, tmp_path):
    path = tmp_path / "huge.csv"
    with path.open("wb") as stream:
        stream.write(b"id,q1,q2\n")
        stream.truncate(2 * 2**30)
    refused(run("fit", path, *FIT, "--out", tmp_path / "out"), "huge.csv", "2.0 GB")


def test_a_sav_with_strings(run, tmp_path):
    frame = table()[["record_id", *ITEMS]].replace("", "0")
    frame["q07"] = "never"
    pyreadstat.write_sav(frame, str(tmp_path / "study.sav"))
    result = run("fit", tmp_path / "study.sav", "--items", "q*", *FIT, "--out", tmp_path / "out")
    refused(result, "study.sav", "row 1", "'q07'", "'never'")


def test_value_labels_without_values(run, files, tmp_path):
    pd.DataFrame({"name": ITEMS, "labels": "never; often"}).to_csv(tmp_path / "items.csv", index=False)
    words = ("fit", files / "answers.csv", "--codebook", tmp_path / "items.csv", *FIT)
    refused(run(*words, "--out", tmp_path / "out"), "items.csv", "row 2", "'labels'", "'never'")


def test_a_damaged_workbook(run, tmp_path):
    (tmp_path / "study.xlsx").write_bytes(b"PK\x03\x04 no workbook")
    refused(run("fit", tmp_path / "study.xlsx", *FIT, "--out", tmp_path / "out"), "study.xlsx")


def test_a_formula_stays_text(run, tmp_path):
    frame = table().assign(record_id=[f"=1+{i}" for i in range(80)])
    frame.to_csv(tmp_path / "study.csv", index=False)
    for format in ("csv", "xlsx"):
        out = tmp_path / format
        words = ("fit", tmp_path / "study.csv", "--items", "q*", *FIT, "--format", format, "--out", out)
        assert run(*words).exit_code == 0
    assert (tmp_path / "csv" / "scores.csv").read_text().splitlines()[1].startswith("'=1+0,")
    book = tmp_path / "xlsx" / "scores.xlsx"
    assert read_table(book).frame.iloc[0, 0] == "=1+0"
    with zipfile.ZipFile(book) as archive:
        assert b"<f>" not in archive.read("xl/worksheets/sheet1.xml")


@pytest.mark.long
def test_a_bad_file_through_the_installed_command(tmp_path, left_behind):
    text, said = BAD_TEXT["short row"]
    (tmp_path / "study.csv").write_text(text)
    words = [sys.executable, "-m", "icqf", "fit", "study.csv", *FIT, "--out", "out"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stdout == "" and "Traceback" not in done.stderr
    assert all(words in done.stderr for words in ("study.csv", *said))
    assert left_behind() == ["study.csv"]


@pytest.mark.slow
def test_a_full_run_through_the_installed_command(files, tmp_path):
    study = [str(files / "answers.csv"), "--codebook", str(files / "items.csv")]
    fit = [sys.executable, "-m", "icqf", "fit", *study, "--confounds", "age", "sex", *FIT]
    fit += ["--no-figures", "--bootstrap", "5", "--out", "out"]
    done = subprocess.run(fit, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "Results are in out/" in done.stdout
    score = [sys.executable, "-m", "icqf", "score", "out/model.icqf", study[0], "--quiet"]
    scored = subprocess.run(score, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert scored.stdout == (tmp_path / "out" / "scores.csv").read_text()
    assert scored.stderr == ""


cell = st.one_of(
    st.sampled_from(
        ["", "0", "1", "2", "3", "9", "999", "-9", "NA", ".", "yes", "1,5", '"', "=1+1", "1e999", "é"]
    ),
    st.text(max_size=3),
)
names = st.lists(
    st.one_of(st.sampled_from([*ITEMS, "id", "age"]), st.text(max_size=3)), min_size=1, max_size=6
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=names, rows=st.lists(st.lists(cell, max_size=6), max_size=8), data=st.data())
def test_any_text_file_is_fitted_or_refused(run, tmp_path_factory, names, rows, data):
    folder = tmp_path_factory.mktemp("any")
    sep = data.draw(st.sampled_from([",", ";", "\t"]))
    encoding = data.draw(st.sampled_from(["utf-8", "utf-16", "latin-1"]))
    text = "\n".join(sep.join(row) for row in [names, *rows])
    (folder / "any.csv").write_bytes(text.encode(encoding, errors="replace"))
    fitted_or_refused(run, folder, folder / "any.csv")


def fitted_or_refused(run, folder, path):
    result = run("fit", path, "--n-components", "1", "--beta", "0.1", "--out", folder / "out")
    assert result.exit_code in (0, 2)
    assert (folder / "out").exists() == (result.exit_code == 0)
    assert not list(folder.glob(".*"))
    if result.exit_code == 2:
        assert result.stdout == "" and "Error: " in result.stderr
    assert run("check", path).exit_code in (0, 1, 2)
    assert run("codebook", path).exit_code in (0, 2)


values = st.one_of(st.sampled_from([0.0, 1.0, 2.0, 9.0, np.nan]), st.floats(allow_nan=True, width=32))


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(values, min_size=3, max_size=3), min_size=1, max_size=8),
    st.sampled_from(["sav", "dta", "parquet", "xlsx"]),
    st.booleans(),
)
def test_any_table_of_numbers_is_fitted_or_refused(run, tmp_path_factory, rows, ending, labelled):
    folder = tmp_path_factory.mktemp("any")
    path = folder / f"any.{ending}"
    frame = pd.DataFrame(rows, columns=["q1", "q2", "q3"]).astype(float)
    labels = {"q1": {0: "never", 2: "often"}, "q2": {0: "never", 2: "often"}} if labelled else {}
    if ending == "sav":
        pyreadstat.write_sav(frame, str(path), variable_value_labels=labels)
    elif ending == "dta":
        frame = frame.mask(frame.abs() > 1e30)  # more than the format can hold
        pyreadstat.write_dta(frame, str(path), variable_value_labels=labels)
    elif ending == "parquet":
        frame.to_parquet(path)
    else:
        frame.replace([np.inf, -np.inf], "inf").to_excel(path, index=False)
    fitted_or_refused(run, folder, path)


def test_ids_beyond_all_whole_numbers(run, tmp_path):
    table = pd.DataFrame({"subject": [1e308, 2.0, 3.0], "q1": [0, 1, 2], "q2": [1, 0, 2]})
    table.to_parquet(tmp_path / "answers.parquet")
    result = run("check", tmp_path / "answers.parquet", "--id", "subject")
    assert result.exit_code == 0 and "2: q1, q2" in result.stdout


def test_a_battery_with_an_instrument_of_one_row_is_refused(run, tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "battery").mkdir()
    for name, n in (("mood", 40), ("sleep", 40), ("pain", 1)):
        table = pd.DataFrame(rng.integers(0, 4, (n, 6)), columns=[f"{name}{j}" for j in range(6)])
        table.insert(0, "id", [f"P{i}" for i in range(n)])
        table.to_csv(tmp_path / "battery" / f"{name}.csv", index=False)
    words = ("--id", "id", "--n-components", "1", "--beta", "0.1", "--out", tmp_path / "out")
    result = run("meta", tmp_path / "battery", *words)
    assert result.exit_code == 2
    assert "Error: Instrument 'pain' was answered by 1 participant; factors of its own" in result.stderr


def test_a_short_form_from_missing_answers_alone_is_refused(run, usual, results, tmp_path):
    table = pd.read_csv(usual[0])
    items = [name for name in table if name.startswith("q")]
    table[items] = 9
    table.to_csv(tmp_path / "silent.csv", index=False)
    words = ("--missing-codes", "9", "--out", tmp_path / "out")
    result = run("shortform", results / "model.icqf", tmp_path / "silent.csv", *words)
    assert result.exit_code == 2 and "of the model's items, so no short form can be tried" in result.stderr
