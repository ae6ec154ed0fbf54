"""Codebooks as researchers have them: from Excel, with their own headings, and with mistakes."""

import pandas as pd
import pytest

from small_study import ITEMS, REVERSED, codebook


def scores(run, files, book, out):
    words = ("--codebook", book, "--n-components", "2", "--beta", "0.1", "--no-report", "--out", out)
    result = run("fit", files / "answers.csv", *words)
    assert result.exit_code == 0, result.stderr
    return (out / "scores.csv").read_text(), result.stderr


def test_a_workbook_with_a_column_reverse_means_the_same(run, files, tmp_path):
    expected, said = scores(run, files, files / "items.csv", tmp_path / "csv")
    assert f"\n  Reversed      {REVERSED} by the codebook\n" in said
    book = codebook().drop(columns="direction").assign(reverse=[int(name == REVERSED) for name in ITEMS])
    book.to_excel(tmp_path / "items.xlsx", index=False, sheet_name="Codebook")
    assert scores(run, files, tmp_path / "items.xlsx", tmp_path / "xlsx") == (expected, said)


def test_a_misspelt_heading_is_named(run, files, tmp_path):
    codebook().rename(columns={"direction": "direktion", "wording": "author"}).to_csv(
        tmp_path / "items.csv", index=False
    )
    result = run("check", files / "answers.csv", "--codebook", tmp_path / "items.csv")
    assert (
        "Note: items.csv: 'direktion' is not a heading of a codebook, so the column is not used."
        in result.stderr
    )
    assert "Did you mean 'direction'?" in result.stderr
    assert "these columns are not part of a codebook and are not used: 'author'." in result.stderr


@pytest.mark.parametrize(
    ("book", "said"),
    [
        (
            codebook().assign(direction="").assign(reverse=-1),
            "signs such as -1 belong in a column 'direction'",
        ),
        (codebook().rename(columns={"name": "field_name"}), "the codebook has no column 'name'"),
    ],
)
def test_what_cannot_be_meant_is_refused(run, files, tmp_path, book, said):
    pd.DataFrame(book).to_excel(tmp_path / "items.xlsx", index=False)
    result = run("check", files / "answers.csv", "--codebook", tmp_path / "items.xlsx")
    assert result.exit_code == 2 and said in result.stderr
