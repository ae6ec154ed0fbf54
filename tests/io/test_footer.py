"""What is below the answers is named and left out, and a column that a file holds twice is read once."""

import numpy as np
import pandas as pd
import pytest

from icqf.errors import InputError
from icqf.io import open_stream, read_questionnaire, read_table

FRAME = pd.DataFrame(np.arange(60).reshape(15, 4) % 5, columns=["q1", "q2", "q3", "q4"])
FRAME.insert(0, "id", [f"P{i}" for i in range(15)])
TEXT = FRAME.to_csv(index=False)
TOTAL = "Total,28,31,29,32\n"


def save(folder, text, name="a.csv"):
    (folder / name).write_bytes(text.encode("cp1252"))
    return folder / name


@pytest.mark.parametrize(
    ("footer", "said"),
    [
        (
            "Exported on 2026-11-18, 2 800 records\n",
            "The last row was left out, as a footer or total: 'Exported",
        ),
        ('"Created by Jürgen, 15 cases",,,,\n', "'Created by Jürgen, 15 cases'"),
        (f"{TOTAL}Mean,1.9,2.1,1.9,2.1", "The last 2 rows were left out, as a footer or total: 'Total 28 31"),
        (f"\n{TOTAL}\r\n\r\nn = 15\r\n", "'Total 28 31 29 32', 'n = 15'."),
        ("Total number of participants: 15", "'Total number of participants: 15'"),
    ],
)
def test_a_footer_is_left_out_and_named(tmp_path, footer, said):
    path = save(tmp_path, TEXT + footer)
    table = read_table(path)
    pd.testing.assert_frame_equal(table.frame, FRAME, check_dtype=False)
    assert said in " ".join(table.notes) and list(table.rows) == list(range(2, 17))
    parts = pd.concat([batch.frame for batch in open_stream(path).batches()])
    pd.testing.assert_frame_equal(parts.reset_index(drop=True), FRAME, check_dtype=False)


@pytest.mark.parametrize("last", ["P15,3,2", "P15", "Ann Smith", "Mean,1.9,x,1,1,1", "the end, of it, all"])
def test_a_damaged_last_row_is_refused(tmp_path, last):
    with pytest.raises(InputError, match="row 17 has"):
        read_table(save(tmp_path, TEXT + last))


@pytest.mark.parametrize(
    "last", ["Meander,1,2,3,4", "Total,many,2,3,4", "Export,1,2,3,4", "15 cases,1,2,3,4"]
)
def test_a_participant_with_a_strange_name_stays(tmp_path, last):
    assert len(read_table(save(tmp_path, f"{TEXT}{last}\n")).frame) == 16


def test_a_footer_of_a_workbook(tmp_path):
    frame = FRAME.astype(object)
    frame.loc[15] = ["Total", 28, 31, 29, 32]
    frame.loc[16] = ["Exported on Monday, 15 records", *[None] * 4]
    frame.to_excel(tmp_path / "a.xlsx", index=False)
    table = read_table(tmp_path / "a.xlsx")
    pd.testing.assert_frame_equal(table.frame, FRAME, check_dtype=False)
    assert "'Total 28 31 29 32', 'Exported on Monday, 15 records'" in " ".join(table.notes)


def test_the_same_column_twice_is_read_once(tmp_path):
    same = FRAME.assign(again=FRAME["q2"])
    path = save(tmp_path, same.to_csv(index=False).replace("again", "q2", 1))
    table = read_table(path)
    pd.testing.assert_frame_equal(table.frame, FRAME)
    assert "Read once, because the file holds the same column twice: 'q2'." in table.notes
    same.set_axis([*FRAME.columns, "q2"], axis=1).to_excel(tmp_path / "a.xlsx", index=False)
    pd.testing.assert_frame_equal(read_table(tmp_path / "a.xlsx").frame, FRAME)
    assert list(next(open_stream(path).batches()).frame.columns) == list(FRAME.columns)


def test_two_columns_with_one_name_are_refused_if_they_differ(tmp_path):
    other = FRAME["q2"].where(FRAME.index != 3, 9)
    text = FRAME.assign(again=other).to_csv(index=False).replace("again", "q2", 1)
    said = r"row 1 names the column 'q2' twice \(columns 3 and 6\), and they differ: '3' and '9' in row 5"
    with pytest.raises(InputError, match=said):
        read_table(save(tmp_path, text))


def test_a_german_workbook(tmp_path):
    """Title, an empty row, decimal commas stored as text, and a line of means."""
    rows = [["Erhebung Klinik Süd", *[None] * 4], [None] * 5, ["Nr", "Angst 1", "Angst 2", "VAS", "Wahl"]]
    rows += [[f"P-{i}", i % 4, (i // 4) % 4, f"{i},5", ["1,2", "1,2,3"][i % 2]] for i in range(30)]
    rows += [["Mittelwert", "1,5", "1,4", "15,0", None]]
    pd.DataFrame(rows).to_excel(tmp_path / "a.xlsx", index=False, header=False)
    table = read_table(tmp_path / "a.xlsx")
    assert table.frame["VAS"].tolist() == [i + 0.5 for i in range(30)]
    assert table.frame["Wahl"].iloc[0] == "1,2"  # answers to a question with several choices
    assert "Decimal commas were read as decimal points in 'VAS'." in table.notes
    assert any("as a footer or total: 'Mittelwert" in note for note in table.notes)


def test_a_decimal_comma_is_no_missing_code(tmp_path):
    rows = [[f"P{i}", i % 4, (i // 4) % 4, i % 3] for i in range(30)]
    rows[4][2] = "2,1"
    pd.DataFrame(rows, columns=["id", "q1", "q2", "q3"]).to_excel(tmp_path / "a.xlsx", index=False)
    with pytest.raises(InputError, match=r"holds the text '2,1'.*write it with a decimal point"):
        read_questionnaire(tmp_path / "a.xlsx")
