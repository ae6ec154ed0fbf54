"""Text files: what was written is what is read, whatever the delimiter and encoding; damage is named."""

import csv
import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icqf.errors import InputError
from icqf.io import read_questionnaire, read_table

names = st.lists(
    st.text("abcdefghijklmnopqrstuvwxyzäéß_ 0123456789", min_size=1, max_size=8).map(
        lambda s: f"q{s}".strip()
    ),
    min_size=2,
    max_size=6,
    unique_by=lambda s: s,
)
cells = st.one_of(st.none(), st.integers(-3, 999), st.sampled_from([0.5, 2.25]))


@st.composite
def frames(draw):
    columns = draw(names)
    rows = draw(
        st.lists(st.lists(cells, min_size=len(columns), max_size=len(columns)), min_size=1, max_size=12)
    )
    frame = pd.DataFrame(rows, columns=columns, dtype=float)
    frame.insert(0, "id", [f"P,{i};\té" if i % 3 == 0 else f"{i:03d}" for i in range(len(frame))])
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("text")


@settings(max_examples=60, deadline=None)
@given(
    frames(),
    st.sampled_from(",;\t|"),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252", "utf-16-le"]),
    st.booleans(),
)
def test_round_trip(folder, frame, delimiter, encoding, windows):
    path = folder / "answers.csv"
    text = frame.to_csv(index=False, sep=delimiter, lineterminator="\r\n" if windows else "\n")
    path.write_bytes(text.encode(encoding))
    read = read_table(path).frame
    assert list(read["id"]) == list(frame["id"])
    assert list(read.columns) == list(frame.columns)
    np.testing.assert_array_equal(
        read.drop(columns="id").to_numpy(float), frame.drop(columns="id").to_numpy(float)
    )


@settings(max_examples=40, deadline=None)
@given(frames(), st.data())
def test_a_ragged_row_is_named(folder, frame, data):
    path = folder / "ragged.csv"
    rows = list(csv.reader(io.StringIO(frame.to_csv(index=False))))
    bad = data.draw(st.integers(1, len(rows) - 1))
    rows[bad] = rows[bad] + ["7"] if data.draw(st.booleans()) else rows[bad][:-1]
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    with pytest.raises(InputError, match=rf"ragged.csv: row {bad + 1} has {len(rows[bad])} cells"):
        read_table(path)


def write(tmp_path, text, name="answers.csv", encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding) if isinstance(text, str) else text)
    return path


def fails(path, words, **options):
    with pytest.raises(InputError) as error:
        read_questionnaire(path, **options)
    message = str(error.value)
    assert message.startswith(path.name), message
    for word in [words] if isinstance(words, str) else words:
        assert word in message, message
    assert "\n" not in message


def test_bad_files(tmp_path):
    fails(write(tmp_path, ""), "empty")
    fails(write(tmp_path, " \n\n"), "empty")
    fails(write(tmp_path, "id,q1,q2\n"), "no answers below it")
    fails(write(tmp_path, "id:q1:q2\n1:0:1\n"), ["row 1", "one column"])
    fails(write(tmp_path, "id,q1,q1\n1,0,1\n"), ["row 1", "'q1'", "columns 2 and 3"])
    fails(write(tmp_path, "id,q1,q2\n1,0,1\n2,1,1\nid,q1,q2\n3,0,0\n"), "header is repeated in row 4")
    fails(write(tmp_path, "id,q1,q2\n1,0,1\n2,0,1,5\n"), ["row 3", "4 cells", "3 columns"])
    fails(write(tmp_path, "id,q1,q2\n1,0,1\n2,0\n"), ["row 3", "2 cells"])
    fails(write(tmp_path, 'id,q1,q2\n1,"0,1\n2,0,1\n'), "answers.csv")
    fails(write(tmp_path, "id,q1,q2\n1,0,1\n2,often,1\n3,1,1\n"), ["row 3", "'q1'", "'often'"])
    fails(write(tmp_path, "id,q1,q2\n1,0,1\n1,0,2\n"), ["'1'", "rows 2 and 3"])
    fails(write(tmp_path, "id,q1,q2\n1,0,1\n,0,2\n"), ["row 3", "'id'"])
    fails(write(tmp_path, b"PK\x03\x04rest"), "Excel workbook")
    fails(write(tmp_path, bytes(range(256)) * 40), "not a text file")
    fails(write(tmp_path, "q1", name="answers.docx"), "'.docx'")


def test_mixed_encodings_name_both_rows(tmp_path):
    mixed = "id,q1,note\n1,0,é\n".encode() + "2,1,ü\n".encode("cp1252")
    fails(write(tmp_path, mixed), ["row 2 is UTF-8", "row 3 is not"])


def test_directory_and_absent_file(tmp_path):
    path = write(tmp_path, "id,q1\n1,0\n")
    with pytest.raises(InputError, match=r"folder.*'answers.csv'"):
        read_questionnaire(tmp_path)
    with pytest.raises(InputError, match=r"no such file.*Did you mean 'answers.csv'"):
        read_questionnaire(path.with_name("answer.csv"))


def test_two_gigabytes_are_refused_before_reading(tmp_path):
    path = tmp_path / "huge.csv"
    with path.open("wb") as file:
        file.truncate(2 * 2**30)
    fails(path, "2.0 GB")


def test_a_column_that_is_not_there(tmp_path):
    path = write(tmp_path, "id,age,q1,q2\n1,9,0,1\n2,8,1,1\n")
    fails(path, ["'agee'", "to use as a confound", "Did you mean 'age'"], confounds=["agee"])
    fails(path, ["'idd'", "Did you mean 'id'"], id="idd")
    fails(path, ["'famly'"], groups="famly")
    fails(path, ["'x*'"], items=["x*"])


def test_blank_lines_do_not_shift_row_numbers(tmp_path):
    fails(write(tmp_path, "id,q1,q2\n\n1,0,1\n\n2,x,1\n3,0,0\n4,0,0\n"), "row 5")
    fails(write(tmp_path, 'id,q1,why\n1,0,"a\nb"\n2,x,c\n3,0,d\n4,0,d\n'), "row 4", items=["q1"])


def test_decimal_comma_leading_zeros_and_usual_gaps(tmp_path):
    table = read_table(write(tmp_path, "id;q1;q2\n007;0,5;1\n008;.;NA\n"))
    assert list(table.frame["id"]) == ["007", "008"]
    assert table.frame["q1"].iloc[0] == 0.5
    assert table.frame.iloc[1, 1:].isna().all()


def test_empty_rows_and_columns_are_left_out_with_a_note(tmp_path):
    study = read_questionnaire(write(tmp_path, "id,q1,q2,\n1,0,1,\n,,,\n2,1,0,\n"))
    assert list(study.answers.index) == ["1", "2"]
    assert any("row 3" in note for note in study.notes)
    assert any("without a name" in note for note in study.notes)


def test_the_encoding_is_noted(tmp_path):
    study = read_questionnaire(write(tmp_path, "id,q1,q2\né,0,1\n", encoding="cp1252"))
    assert list(study.answers.index) == ["é"]
    assert any("Windows-1252" in note for note in study.notes)
