"""Scoring batch by batch says and writes what scoring the whole table does."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icqf.workflow.score as score
from icqf import ICQF
from icqf.errors import InputError
from icqf.io import read_questionnaire, read_table
from icqf.workflow import score_file, write_scores
from icqf.workflow.new_answers import ModelledBatches
from small_study import codebook, table

ALL = 10**6


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model with two confounds, far from the files it was fitted to."""
    folder = tmp_path_factory.mktemp("fitted")
    table().drop(index=5).to_csv(folder / "answers.csv", index=False)
    codebook().assign(labels="0=never; 1=rarely; 2=often; 3=always").to_csv(folder / "items.csv", index=False)
    study = read_questionnaire(
        folder / "answers.csv", codebook=folder / "items.csv", confounds=["age", "sex"]
    )
    ICQF(2, smallest_category=1).fit(study).save(folder / "model.icqf")
    return folder / "model.icqf"


@pytest.fixture
def scored(model, tmp_path, monkeypatch):
    """What is written, said and warned of, or the error, for batches of so many rows."""

    def run(source, rows, *, ending="csv", **options):
        monkeypatch.setattr(score, "ROWS_AT_A_TIME", rows)
        out = tmp_path / f"scores{rows}.{ending}"
        out.unlink(missing_ok=True)
        with warnings.catch_warnings(record=True, action="always") as said:
            try:
                done = write_scores(model, source, out, **options)
            except InputError as error:
                assert not out.exists()
                return str(error)
        content = out.read_bytes() if ending == "csv" else pq.read_table(out).to_pandas()
        return content, done.notes, done.n_participants, done.n_silent, [str(w.message) for w in said]

    return run


def changed(**cells):
    """The table with cells changed: column = {row: cell}."""
    frame = table().astype(object)
    for column, values in cells.items():
        for row, cell in values.items():
            frame.loc[row, column] = cell
    return frame


EMPTY = dict.fromkeys((3, 40, 41), np.nan)
CASES = {
    "as it is": table(),
    "texts in some batches": changed(q01={50: "Often", 51: "3 "}, q02={70: "never"}),
    "codes in some batches": changed(q05={60: 9, 61: 9}, q06={30: 9}),
    "empty rows": changed(**dict.fromkeys(table(), EMPTY)),
    "true and false": table().assign(q01=[True, False] * 40, q02=["True"] * 80),
    "confounds outside the fitted range": changed(age={2: 40.0, 44: 41.0, 79: 1.0}),
    "no ids": table().drop(columns="record_id"),
    "other ids": table().rename(columns={"record_id": "seqn"}),
    "numbers as ids": table().assign(record_id=np.arange(1001, 1081)),
    "quoted": table().assign(remark=['a, "b"\nc'] * 80),
    "answer outside its range": changed(q05={50: 7}, q04={61: 8, 62: 8}),
    "stray text": changed(q05={50: "perhaps"}, q04={61: "maybe", 70: "maybe"}),
    "unknown category": changed(sex={50: "x", 60: "x"}),
    "missing confound": changed(age={50: np.nan, 51: np.nan}),
    "id twice in one batch": changed(record_id={50: "052"}),
    "id twice, far apart": changed(record_id={70: "002", 71: "003"}),
    "id missing": changed(record_id={50: np.nan}),
    "true in some batches": table().assign(q01=[True] * 40 + [2] * 40),
    "visits": pd.concat([table().assign(wave=1), table(1).assign(wave=2)]),
    "no item": table().drop(columns="q04"),
    "infinite": changed(q05={50: "inf"}),
}


IN_PARQUET = (
    *("texts in some batches", "codes in some batches", "true and false", "no ids", "other ids"),
    *("answer outside its range", "stray text", "missing confound", "id twice, far apart", "id missing"),
)


@pytest.mark.parametrize(
    ("name", "kind"), [*((name, "csv") for name in CASES), *((name, "parquet") for name in IN_PARQUET)]
)
def test_batches_say_and_write_what_the_whole_does(scored, tmp_path, name, kind):
    file = tmp_path / f"new.{kind}"
    frame = CASES[name]
    if kind == "csv":
        frame.to_csv(file, index=False)
    else:  # numbers where all cells are numbers, as other programs write them
        frame.apply(lambda cells: _numbers(cells)).to_parquet(file, index=False, row_group_size=5)
    whole = scored(file, ALL)
    assert scored(file, 16) == whole


def _numbers(cells: pd.Series) -> pd.Series:
    if cells.name == "record_id":
        return cells.astype("string")
    filled = cells.replace("", np.nan)
    numbers = pd.to_numeric(filled, errors="coerce")
    if numbers.notna().eq(filled.notna()).all() and not filled.map(type).eq(bool).any():
        return numbers
    return cells if filled.map(type).eq(bool).all() else filled.astype("string")


VISITS = [("wave", "2"), {"wave": "1", "place": "home"}, ("wave", "3"), ("hour", "1")]


@pytest.mark.parametrize("visit", VISITS)
def test_one_visit_of_several_is_kept_in_batches(scored, tmp_path, visit):
    frame = pd.concat([table().assign(wave=1, place="Home"), table(1).assign(wave=2, place="Ward")])
    frame.sort_values("record_id").to_csv(tmp_path / "new.csv", index=False)
    whole = scored(tmp_path / "new.csv", ALL, visit=visit)
    assert scored(tmp_path / "new.csv", 16, visit=visit) == whole
    assert isinstance(whole, tuple) == (visit in VISITS[:2])


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8-sig", "utf-16"])
def test_other_encodings_are_scored_in_batches(scored, tmp_path, encoding):
    file = tmp_path / "new.csv"
    table().assign(note=["x"] * 60 + ["fünf"] * 20).to_csv(file, index=False, encoding=encoding)
    whole = scored(file, ALL)
    assert scored(file, 16) == whole
    assert any("text was read as" in note for note in whole[1]) == (encoding != "utf-8-sig")


def test_a_folder_is_scored_as_one_table(scored, tmp_path):
    folder = tmp_path / "cohort"
    folder.mkdir()
    frame = table().apply(_numbers)
    frame.to_parquet(tmp_path / "new.parquet", index=False)
    for part, rows in enumerate((slice(0, 33), slice(33, 60), slice(60, 80))):
        frame[rows].to_parquet(folder / f"{part}.parquet", index=False)
    assert scored(folder, 16) == scored(tmp_path / "new.parquet", ALL)
    frame[:3].to_parquet(folder / "3.parquet", index=False)
    assert scored(folder, 16) == (
        "cohort: the id '001' in column 'record_id' appears twice (cohort/0.parquet, row 1, and "
        "cohort/3.parquet, row 1), and 2 more rows repeat an id. Keep one row per participant."
    )


def test_scores_in_parquet_are_those_in_memory(scored, model, tmp_path):
    table().to_csv(tmp_path / "new.csv", index=False)
    written, *_ = scored(tmp_path / "new.csv", 16, ending="parquet")
    scores = score_file(model, tmp_path / "new.csv").scores
    pd.testing.assert_frame_equal(written.set_index("record_id"), scores, check_index_type=False)


@pytest.mark.parametrize("ending", ["xlsx", "sav"])
def test_formats_that_are_written_whole_take_the_same_way(model, tmp_path, monkeypatch, ending):
    monkeypatch.setattr(score, "ROWS_AT_A_TIME", 16)
    table().to_csv(tmp_path / "new.csv", index=False)
    write_scores(model, tmp_path / "new.csv", tmp_path / f"scores.{ending}")
    scores = score_file(model, tmp_path / "new.csv").scores
    written = read_table(tmp_path / f"scores.{ending}").frame
    np.testing.assert_allclose(written["factor1"].astype(float), scores["factor1"], equal_nan=True)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("answer outside its range", "Item 'q04' holds 8, above its highest answer 3 (row 63, participant "),
        ("stray text", "row 52, column 'q05' holds the text 'perhaps'"),
        ("id twice, far apart", "(new.csv, row 3, and new.csv, row 72), and 1 more rows repeat an id. Keep"),
    ],
)
def test_what_is_wrong_with_a_file_too_large_to_read_whole_is_still_named(
    scored, tmp_path, monkeypatch, name, said
):
    monkeypatch.setattr(ModelledBatches, "fits_in_memory", lambda _: False)
    CASES[name].to_csv(tmp_path / "new.csv", index=False)
    error = scored(tmp_path / "new.csv", 16)
    assert said in error and error.startswith("new.csv: ")
    assert ("were not read." in error) == ("id twice" not in name)


def test_a_damaged_file_leaves_no_scores(scored, tmp_path):
    file = tmp_path / "new.parquet"
    big = pa.Table.from_pandas(table().apply(_numbers), preserve_index=False)
    pq.write_table(big, file, row_group_size=5)
    content = bytearray(file.read_bytes())
    half = len(content) // 2
    content[half : half + 200] = bytes(200)
    file.write_bytes(content)
    assert scored(file, 16).startswith("new.parquet: this cannot be read as a Parquet file (")
    assert not [path for path in tmp_path.iterdir() if "scores" in path.name]


def test_a_table_without_participants_is_refused(scored, tmp_path):
    frame = table().apply(_numbers)
    frame[:0].to_parquet(tmp_path / "new.parquet", index=False)
    said = "the table has no rows of answers. Give a table with one row per participant."
    assert scored(tmp_path / "new.parquet", 16) == f"new.parquet: {said}"
    blank = ",".join([""] * frame.shape[1])
    (tmp_path / "new.csv").write_text("\n".join([",".join(frame.columns), blank, blank, ""]))
    assert scored(tmp_path / "new.csv", 16) == f"new.csv: {said}"
