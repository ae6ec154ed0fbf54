"""Tables come back as they were written, and no cell becomes a formula."""

import csv
import errno
import os
import re
import zipfile

import numpy as np
import pandas as pd
import pyreadstat
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from icqf.errors import InputError
from icqf.io import write_table
from icqf.io.write import csv_text, harmless, unharmed

risky = st.text(st.characters(codec="utf-8", exclude_categories=("C",)), min_size=1, max_size=8)
texts = st.one_of(risky, st.tuples(st.sampled_from("=+-@\t\r'"), risky).map("".join))


@given(st.text())
def test_harmless_can_be_undone(text):
    if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text):
        assert unharmed(harmless(text)) == text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(st.lists(texts, min_size=1, max_size=6), st.lists(st.floats(-9, 9), min_size=1, max_size=6))
def test_csv_has_no_formula_and_the_same_numbers(tmp_path, cells, values):
    n = min(len(cells), len(values))
    frame = pd.DataFrame({"=name": cells[:n], "score": values[:n]}, index=pd.Index(range(n), name="id"))
    path = tmp_path / "out.csv"
    write_table(frame, path)
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == ["id", "'=name", "score"]
    for row, cell, value in zip(rows, cells, values, strict=False):
        is_number = re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", row[1])
        assert is_number or row[1][:1] not in tuple("=+-@\t\r")
        assert unharmed(row[1]) == cell
        assert float(row[2]) == value


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=15)
@given(st.lists(texts, min_size=1, max_size=6))
def test_excel_keeps_text_as_text(tmp_path, cells):
    cells = [cell.replace("\r", " ") for cell in cells]
    path = tmp_path / "out.xlsx"
    write_table(pd.DataFrame({"=cmd": cells, "score": -1.5}), path)
    with zipfile.ZipFile(path) as book:
        sheet = book.read("xl/worksheets/sheet1.xml").decode()
    assert "<f>" not in sheet and "<f " not in sheet
    back = pd.read_excel(path, engine="calamine", dtype={"=cmd": str}, keep_default_na=False)
    assert list(back["=cmd"]) == cells
    assert back["score"].tolist() == [-1.5] * len(cells)


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx", "sav"])
def test_round_trip_and_same_bytes(tmp_path, ending):
    index = pd.Index(["P1", "-P2", "P3"], name="id")
    frame = pd.DataFrame(
        {"Factor 1": [0.25, np.nan, 1.0], "1st": [1, 2, 3], "yes": [True, False, True]}, index=index
    )
    path = tmp_path / f"out.{ending}"
    write_table(frame, path)
    first = path.read_bytes()
    if ending != "sav":
        write_table(frame, path, format=ending)
        assert path.read_bytes() == first
    readers = {
        "csv": pd.read_csv,
        "parquet": pd.read_parquet,
        "xlsx": lambda p: pd.read_excel(p, engine="calamine"),
        "sav": lambda p: pyreadstat.read_sav(str(p))[0],
    }
    back = readers[ending](path)
    assert list(back.iloc[:, 0]) == ["P1", "'-P2" if ending == "csv" else "-P2", "P3"]
    np.testing.assert_array_equal(back.iloc[:, 1].to_numpy(float), frame["Factor 1"].to_numpy())
    assert back.iloc[:, 2].tolist() == [1, 2, 3]
    if ending == "sav":
        meta = pyreadstat.read_sav(str(path))[1]
        assert meta.column_labels == ["id", "Factor 1", "1st", "yes"]


def test_sav_names_that_collide(tmp_path):
    frame = pd.DataFrame([[1.0, 2.0, 3.0]], columns=["a b", "a_b", "A-b"])
    write_table(frame, tmp_path / "out.sav")
    assert len({name.lower() for name in pyreadstat.read_sav(str(tmp_path / "out.sav"))[0].columns}) == 3


def test_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(InputError, match="csv, parquet, xlsx, sav"):
        write_table(pd.DataFrame({"a": [1]}), tmp_path / "out.doc")


@given(
    st.lists(
        st.lists(st.one_of(st.just(float("nan")), st.floats(-1, 12)), min_size=2, max_size=2), min_size=1
    ),
    st.integers(1, 8),
)
def test_decimals_are_those_of_format(rows, decimals):
    table = pd.DataFrame(
        rows, columns=["a", "b"], index=pd.Index([f"P{i}" for i in range(len(rows))], name="id")
    )
    lines = csv_text(table, decimals=decimals).splitlines()
    assert lines[0] == "id,a,b"
    for line, row in zip(lines[1:], rows, strict=True):
        for cell, value in zip(line.split(",")[1:], row, strict=True):
            if np.isnan(value):
                assert cell == ""
            else:
                assert abs(float(cell) - value) <= 0.500001 * 10.0**-decimals
                assert len(cell.split(".")[1]) == decimals


def test_an_spss_file_that_cannot_be_written_is_a_full_disk_only_where_the_disk_is_full(
    tmp_path, monkeypatch
):
    def refused(*_, **__):
        raise pyreadstat.ReadstatError("A provided string value was longer than the storage size.")

    def silent(frame, path, **_):
        real(frame.iloc[:1], path)

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    real, frame, path = pyreadstat.write_sav, pd.DataFrame({"q1": [1.0, 2.0]}), tmp_path / "scores.sav"
    for fault, said in ((refused, "longer than the storage size"), (silent, "the file is incomplete")):
        monkeypatch.setattr(pyreadstat, "write_sav", fault)
        with pytest.raises(InputError, match=f"cannot be written as an SPSS file .*{said}") as caught:
            write_table(frame, path)
        assert "room" not in str(caught.value) and list(tmp_path.iterdir()) == []
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(InputError, match="the disk is full"):
                write_table(frame, path)
