"""Tables read batch by batch: the same cells as read whole, in several passes, and damage that is named."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from icqf.errors import InputError
from icqf.io import open_stream, read_table
from icqf.io.readers import table as tables

ANSWERS = pd.DataFrame(
    {
        "child_id": [f"C{i:03d}" for i in range(1, 31)],
        "q1": pd.array([0, 1, None] * 10, dtype="Int8"),
        "q2": pd.array([4, None, 2] * 10, dtype="Int8"),
        "age": np.linspace(5, 20, 30),
        "sex": ["Female", "Male", None] * 10,
    }
)


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame whose cells can be compared whatever the types of its columns."""
    return frame.astype(object).where(frame.notna(), None)


def joined(stream, columns=None) -> tuple[pd.DataFrame, np.ndarray]:
    batches = list(stream.batches(columns))
    frame = pd.concat([plain(batch.frame) for batch in batches], ignore_index=True)
    return frame, np.concatenate([batch.rows for batch in batches])


TEXTS = {
    "plain": "id,q1,q2,note\n007,1,2,a\n008,0,NA,b\n009,3,.,c\n",
    "without a last line break": "id,q1,q2\n1,0,2\n2,1,2\n3,2,2",
    "windows": "id,q1,q2\r\n1,0,2\r\n2,,2\r\n3,2,#NULL!\r\n",
    "decimal comma": "id;q1;age\n1;0;7,5\n2;1;8,25\n3;2;9\n",
    "quoted": 'id,q1,note\n1,0,"a, b"\n2,1,"two\nlines"\n\n3,2,"say ""no"""\n4,3,x\n',
    "blank lines": "id,q1,q2\n1,0,2\n\n2,1,2\n   \n3,2,2\n\n",
    "tabs": "id\tq1\tq2\n1\t0\t2\n2\t\t2\n",
    "text in the last row": "id,q1,q2\n1,0,2\n2,1,2\n3,2,2\n4,often,2\n",
    "true and false": "id,q1,q2\n1,True,2\n2,False,2\n3,True,2\n",
    "no name": ",id,q1\n1,a,0\n2,b,1\n3,c,2\n",
    "one row": "id,q1\n1,0\n",
    "stray mark": 'id,q1,note\n1,0,5" tall\n2,1,x\n3,1,y\n',
    "qualtrics": "ResponseId,Status,Finished,Q1\nResponse ID,Response Type,Finished,Calm?\nR1,0,1,2\n",
}


@pytest.mark.parametrize("batch_rows", [1, 2, 1000])
@pytest.mark.parametrize("name", TEXTS)
def test_text_in_batches_has_the_cells_and_rows_of_text_read_whole(tmp_path, name, batch_rows):
    file = tmp_path / "answers.csv"
    file.write_text(TEXTS[name], newline="")
    whole = read_table(file, text=["id"])
    frame, rows = joined(open_stream(file, batch_rows=batch_rows, text=["id"]))
    assert list(frame.columns) == list(whole.frame.columns)
    for column, cells in plain(whole.frame).items():
        texts = cells.map(type).eq(str).any()  # then numbers in some batches are texts in the whole
        got = [str(cell) if texts and cell is not None else cell for cell in frame[column]]
        assert got == cells.tolist(), column
    assert rows.tolist() == whole.rows.tolist()


@pytest.mark.parametrize(
    ("encoding", "said"), [("utf-8-sig", None), ("cp1252", "Windows-1252"), ("utf-16", "utf-16")]
)
def test_text_of_another_encoding_is_read_in_batches_as_it_is_whole(tmp_path, encoding, said):
    file = tmp_path / "answers.csv"
    lines = [f"{i},{i % 5},x" for i in range(50)] + ["50,1,fünf", "51,2,x"]
    file.write_bytes("\n".join(["id,q1,note", *lines, ""]).encode(encoding))
    whole = read_table(file)
    batches = list(open_stream(file, batch_rows=10).batches())
    frame = pd.concat([plain(batch.frame) for batch in batches], ignore_index=True)
    assert frame.equals(plain(whole.frame)[list(frame.columns)])
    assert batches[-1].notes == whole.notes == ((f"The text was read as {said}.",) if said else ())


BAD = {
    "ragged": "id,q1,q2\n" + "1,2,3\n" * 40 + "2,3\n" + "1,2,3\n" * 40,
    "second header": "id,q1,q2\n" + "1,2,3\n" * 40 + "id,q1,q2\n" + "1,2,3\n" * 40,
    "open mark": "id,q1,q2\n" + "1,2,3\n" * 40 + '"2,3,4\n' + "1,2,3\n" * 40,
    "header only": "id,q1,q2\n",
    "name twice": "id,q1,q1\n1,2,3\n",
    "one column": "id\n1\n2\n",
    "empty": "",
}


@pytest.mark.parametrize("name", BAD)
def test_bad_text_is_refused_in_batches_with_the_words_of_the_whole(tmp_path, name):
    file = tmp_path / "answers.csv"
    file.write_text(BAD[name])
    with pytest.raises(InputError) as whole:
        read_table(file)
    with pytest.raises(InputError) as batched:
        list(open_stream(file, batch_rows=8).batches())
    assert str(batched.value) == str(whole.value)


def stored(folder: Path, kind: str):
    """The answers in one of the forms that are read in batches."""
    table = pa.Table.from_pandas(ANSWERS, preserve_index=False)
    if kind == "parquet":
        pq.write_table(table, folder / "a.parquet", row_group_size=4)
        return folder / "a.parquet"
    if kind == "feather":
        feather.write_feather(ANSWERS, folder / "a.feather", chunksize=7)
        return folder / "a.feather"
    parts = folder / "cohort"
    parts.mkdir()
    (parts / "_SUCCESS").touch()
    pq.write_table(table.slice(0, 11), parts / "part-0.parquet")
    wider = table.schema.set(1, pa.field("q1", pa.int64())).remove_metadata()
    pq.write_table(table.slice(11).cast(wider), parts / "part-1.parquet")
    return parts if kind == "folder" else ds.dataset(parts, format="parquet")


@pytest.mark.parametrize("kind", ["parquet", "feather", "folder", "dataset"])
def test_arrow_tables_give_the_same_numbers_in_every_pass(tmp_path, kind):
    stream = pickle.loads(pickle.dumps(open_stream(stored(tmp_path, kind), batch_rows=8)))
    assert stream.names == tuple(ANSWERS.columns) and stream.n_rows == 30 and not stream.whole
    whole = np.array([[0, 4], [1, np.nan], [np.nan, 2]] * 10)
    for _ in range(2):
        batches = list(stream.batches())
        assert max(map(len, batches)) <= 8
        got = np.concatenate([batch.matrix(["q1", "q2"]) for batch in batches])
        assert got.flags.c_contiguous and np.array_equal(got, whole, equal_nan=True)
    frame, rows = joined(stream)
    assert frame.equals(plain(ANSWERS))
    first = 11 if kind in ("folder", "dataset") else 30
    assert rows.tolist() == [*range(1, first + 1), *range(1, 31 - first)]
    some, _ = joined(stream, ["age", "child_id"])
    assert some.equals(plain(ANSWERS[["age", "child_id"]]))


@pytest.mark.parametrize("index", ["child_id", None, "number"])
def test_an_index_that_pandas_kept_is_what_it_is_when_read_whole(tmp_path, index):
    frame = ANSWERS.drop(columns="sex")
    frame = frame.set_index("child_id") if index == "child_id" else frame.rename_axis(index)
    frame.iloc[3:].to_parquet(tmp_path / "a.parquet")
    whole = read_table(tmp_path / "a.parquet").frame
    got, _ = joined(open_stream(tmp_path / "a.parquet", batch_rows=8))
    assert got.equals(plain(whole))


def test_a_folder_may_be_named_from_where_one_is(tmp_path, monkeypatch):
    stored(tmp_path, "folder")
    monkeypatch.chdir(tmp_path)
    stream = open_stream("cohort")
    assert stream.n_rows == 30 and stream.source == "cohort"
    assert [batch.source for batch in stream.batches()] == ["cohort/part-0.parquet", "cohort/part-1.parquet"]
    monkeypatch.chdir(tmp_path / "cohort")
    assert open_stream(".").source == "cohort"


def test_folders_that_name_a_site_add_its_column(tmp_path):
    for site in ("A", "B"):
        (tmp_path / "cohort" / f"site={site}").mkdir(parents=True)
        ANSWERS.to_parquet(tmp_path / "cohort" / f"site={site}" / "0.parquet", index=False)
    frame, _ = joined(open_stream(tmp_path / "cohort"))
    assert frame["site"].tolist() == ["A"] * 30 + ["B"] * 30


def test_a_file_of_another_format_is_read_whole_and_handed_on(tmp_path):
    ANSWERS.to_excel(tmp_path / "a.xlsx", index=False, engine="xlsxwriter")
    stream = open_stream(tmp_path / "a.xlsx", batch_rows=8)
    assert stream.whole and stream.n_rows == 30
    assert joined(stream)[0].equals(plain(read_table(tmp_path / "a.xlsx").frame))


def refused(source, **options) -> str:
    with pytest.raises(InputError) as error:
        list(open_stream(source, **options).batches())
    return str(error.value)


def test_damaged_parquet_is_named(tmp_path):
    file = stored(tmp_path, "parquet")
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    said = refused(file)
    assert said.startswith("a.parquet: this cannot be read as a Parquet file (")
    assert said.endswith("Is the file damaged or misnamed?")
    file.write_bytes(content[:4] + bytes(len(content) // 3) + content[4 + len(content) // 3 :])
    assert refused(file).startswith("a.parquet: this cannot be read as a Parquet file (")
    file.write_bytes(b"")
    assert refused(file) == "a.parquet: the file is empty."
    assert "there is no such file" in refused(tmp_path / "b.parquet")


def test_a_damaged_file_of_a_folder_is_named(tmp_path):
    folder = stored(tmp_path, "folder")
    part = folder / "part-1.parquet"
    part.write_bytes(part.read_bytes()[:-20])
    assert refused(folder).startswith("part-1.parquet: this cannot be read as a Parquet file (")


def test_a_folder_of_different_tables_is_refused(tmp_path):
    folder = stored(tmp_path, "folder")
    ANSWERS.drop(columns=["q2", "age"]).to_parquet(folder / "part-2.parquet", index=False)
    assert refused(folder) == (
        "cohort: the files are not parts of one table: part-0.parquet has the column 'q2' and 1 more, "
        "part-2.parquet does not. Give all files of the folder the same columns, or move the others "
        "elsewhere."
    )
    ANSWERS.assign(q2="often").to_parquet(folder / "part-2.parquet", index=False)
    assert "cohort: the column 'q2' is of the type int8 in part-0.parquet, but " in refused(folder)


def test_a_folder_without_parquet_files_says_what_it_holds(tmp_path):
    assert "the folder holds no Parquet file; it is empty. Name a file, or a folder" in refused(tmp_path)
    (tmp_path / "notes.txt").write_text("x")
    assert "the folder holds no Parquet file; it holds 'notes.txt'." in refused(tmp_path)


def test_without_pyarrow_one_sentence_says_what_to_install(tmp_path, monkeypatch):
    file = stored(tmp_path, "parquet")
    monkeypatch.setattr(tables, "find_spec", lambda name: None)
    assert refused(file) == "a.parquet: a .parquet file needs the package pyarrow; pip install 'icqf[io]'."


def test_what_is_no_table_is_refused():
    assert "from a file, a folder of Parquet files or an Arrow dataset, not from 'DataFrame'" in refused(
        ANSWERS
    )


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_text_among_numbers_is_refused(tmp_path, ending):
    file = tmp_path / f"a.{ending}"
    frame = pd.DataFrame({"id": ["a", "b"], "q1": ["often", None]})
    frame.to_parquet(file) if ending == "parquet" else frame.to_csv(file, index=False)
    (batch,) = open_stream(file).batches()
    with pytest.raises(InputError, match="'q1' holds 'often', which is not a number"):
        batch.matrix(["q1"])


def test_any_number_is_a_double_with_nan_for_missing(tmp_path):
    frame = pd.DataFrame({"id": ["a", "b"], "q1": [0.5, None], "q2": [True, False], "q3": [None, None]})
    frame.to_parquet(tmp_path / "a.parquet")
    (batch,) = open_stream(tmp_path / "a.parquet").batches()
    expected = [[0.5, 1.0, np.nan], [np.nan, 0.0, np.nan]]
    np.testing.assert_array_equal(batch.matrix(["q1", "q2", "q3"]), expected)


def test_columns_that_another_program_changed_are_read_as_they_are(tmp_path):
    answers = pa.Table.from_pandas(ANSWERS, preserve_index=False)
    words = answers["q1"].cast(pa.string()).dictionary_encode()  # pandas noted Int8 for them
    pq.write_table(answers.set_column(1, "q1", words), tmp_path / "a.parquet")
    frame, _ = joined(open_stream(tmp_path / "a.parquet", batch_rows=8))
    assert frame["q1"].tolist() == ["0", "1", None] * 10


@pytest.mark.parametrize(
    ("cells", "shown"),
    [
        (pa.array([[1, 2], None]), "array([1, 2])"),
        (pa.array([0, 1], pa.timestamp("us")), "Timestamp('1970-01-01 00:00:00')"),
        (pa.array([0, 1], pa.date32()), "datetime.date(1970, 1, 1)"),
        (pa.array(["1", "often"]), "'often'"),
        (pa.array(["1", "2"]), "'1'"),
        (pa.array(["x" * 10**5, "2"]), "'" + "x" * 58 + "…"),
    ],
)
def test_the_cell_that_is_no_number_is_named(tmp_path, cells, shown):
    pq.write_table(pa.table({"q1": cells}), tmp_path / "a.parquet")
    (batch,) = open_stream(tmp_path / "a.parquet").batches()
    with pytest.raises(InputError) as caught:
        batch.matrix(["q1"])
    assert caught.value.message == f"a.parquet: the column 'q1' holds {shown}, which is not a number."


KINDS = [pa.string(), pa.binary(), pa.list_(pa.int8()), pa.timestamp("us"), pa.null()]


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_without_any_cell_is_missing_whatever_its_type(tmp_path, kind):
    pq.write_table(pa.table({"q1": pa.array([None, None], kind)}), tmp_path / "a.parquet")
    (batch,) = open_stream(tmp_path / "a.parquet").batches()
    assert np.isnan(batch.matrix(["q1"])).all()


@pytest.mark.parametrize(
    "note", [b"no json", b'"x"', b'{"index_columns": 5}', b'{"index_columns": null}', b"[" * 10**5]
)
def test_a_damaged_note_of_pandas_does_not_keep_cells_from_being_read(tmp_path, note):
    table = pa.table({"q1": [1, 2]}).replace_schema_metadata({b"pandas": note})
    pq.write_table(table, tmp_path / "a.parquet")
    (batch,) = open_stream(tmp_path / "a.parquet").batches()
    assert batch.matrix(["q1"]).ravel().tolist() == [1, 2]
