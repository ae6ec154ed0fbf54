"""Where a table begins: the header that is taken is named, and another can be chosen."""

import pandas as pd
import pytest

from icqf.errors import InputError
from icqf.io import StudyFiles, read_questionnaire, read_table
from icqf.io.readers.files import first_rows

NAMES = ["id", "age", "q1", "q2", "q3", "q4", "q5"]
ROWS = [[f"P{i}", 8 + i % 5, *((i + j) % 4 for j in range(5))] for i in range(12)]
BODY = "".join(",".join(map(str, row)) + "\n" for row in ROWS)
HEAD = ",".join(NAMES) + "\n"


@pytest.fixture
def read(tmp_path):
    def call(text, name="a.csv", **options):
        (tmp_path / name).write_text(text)
        return read_table(tmp_path / name, **options)

    return call


@pytest.mark.parametrize(
    ("above", "first"),
    [
        ("Study of children\nexported 3 March\n\n", 5),
        ("Study of children,,,,,,\n,,,,,,\n", 4),
        ("Kinder; Angst\n", 3),
        ('"A title\nin two lines"\n', 4),
        ("\n\n", 4),
    ],
)
def test_titles_above_the_header_are_left_out(read, above, first):
    table = read(above + HEAD + BODY)
    assert list(table.frame.columns) == NAMES and len(table.frame) == 12 and table.id == "id"
    assert list(table.rows) == list(range(first, first + 12))
    assert any(f"Row {first - 1} was read as the header" in note for note in table.notes) == bool(
        above.strip()
    )


def test_a_plain_table_has_no_note(read):
    assert read(HEAD + BODY).notes == () and read(HEAD + BODY).rows[0] == 2


NUMBERED = [*NAMES[:2], "Fear 1", "Fear 2", "Fear 3", "Mood 1", "Mood 2"]
LETTERED = [*NAMES[:2], "Fear a", "Fear b", "Fear c", "Mood a", "Mood b"]


@pytest.mark.parametrize(
    ("head", "names"),
    [
        (",,Fear,,,Mood,\n" + HEAD, NAMES),
        ("id,age,Fear,,,Mood,\n,,1,2,3,1,2\n", NUMBERED),
        ("id,age,Fear,Fear,Fear,Mood,Mood\n,,a,b,c,a,b\n", LETTERED),
        (",,Fear,,,Mood,\nid,age,a,b,c,a,b\n", LETTERED),
    ],
)
def test_two_header_rows(read, head, names):
    table = read(head + BODY)
    assert list(table.frame.columns) == names and table.rows[0] == 3


def test_texts_of_the_questions_below_the_names(read):
    texts = 'Code,Age,I cry,"I fear,\nyes",I hide,I run,I hope\n'
    table = read(HEAD + texts + BODY)
    assert list(table.frame.columns) == NAMES and table.described["q2"].wording == "I fear,\nyes"
    assert "Row 2 was read as the texts of the questions." in table.notes and table.rows[0] == 4
    with_gap = BODY.replace("P0,8,0,1,2,3,0", "P0,8,NA,NA,NA,NA,NA")
    assert len(read(HEAD + with_gap).frame) == 12  # a first row of gaps is no header


def test_another_row_can_be_chosen(read):
    table = read("a,b,c,d,e,f,g\n" + HEAD + BODY, header_row=2)
    assert list(table.frame.columns) == NAMES and table.rows[0] == 3
    with pytest.raises(InputError, match=r"header_row is 3000, but a.csv has no such row with names"):
        read(HEAD + BODY, header_row=3000)
    for row in (1.5, 0, "x"):
        with pytest.raises(InputError, match="header_row must be a whole number of at least 1"):
            StudyFiles.of({"answers": "a.csv", "header_row": row})


def test_workbooks(tmp_path):
    path = tmp_path / "a.xlsx"
    cells = [["Study"], [], [None, None, "Fear", None, None, "Mood"], NAMES, *ROWS]
    width = 7
    with pd.ExcelWriter(path, engine="xlsxwriter") as book:
        pd.DataFrame([["About"], ["us"]]).to_excel(book, sheet_name="Info", index=False, header=False)
        frame = pd.DataFrame([[*row, *[None] * (width - len(row))] for row in cells])
        frame.to_excel(book, sheet_name="Data", index=False, header=False)
        pd.DataFrame(ROWS, columns=NAMES).to_excel(book, sheet_name="Later", index=False)
    table = read_table(path)
    assert list(table.frame.columns) == NAMES and table.rows[0] == 5
    assert "Sheet 'Data' was read; the workbook also has 'Info', 'Later'." in table.notes
    assert read_table(path, sheet="later").rows[0] == read_table(path, sheet="3").rows[0] == 2
    assert read_questionnaire(path, sheet="Later").n_participants == 12
    with pytest.raises(InputError, match=r"sheet is 'Latr', but a.xlsx has 'Info', 'Data', 'Later'. Did you"):
        read_table(path, sheet="Latr")
    seen = first_rows(path)
    assert seen.header_row == 4 and seen.rows[3] == tuple(NAMES) and seen.sheet == "Data"
    assert seen.other_sheets == ("Info", "Later")


def test_options_of_other_formats_are_refused(tmp_path):
    pd.DataFrame(ROWS, columns=NAMES).to_parquet(tmp_path / "a.parquet")
    for name in ("header_row", "sheet"):
        with pytest.raises(InputError, match=f"{name} applies to"):
            read_table(tmp_path / "a.parquet", **{name: 1})
    assert first_rows(tmp_path / "a.parquet") is None


LETTER = """Dear Dr Smith,

thank you for the data, which we have read.
We shall see, and then, if you agree, go on.
The children, as you know, are small.

With kind regards,
Jane
"""


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            LETTER,
            "looks like running text, such as a letter, not like a table: it begins with 'Dear",
        ),
        (
            "%PDF-1.7 x,y\n1,2\n",
            "this is a PDF document, not a text file. Save the table of answers",
        ),
        ("{\\rtf1 x,y\n1,2\n", "a formatted text, such as a letter (.rtf)"),
        ("<!DOCTYPE html>\n<p>x</p>\n", "this is a web page"),
        ("\u00d0\u00cf\u0011\u00e0 Word", "an old Excel workbook or Word document (.xls, .doc)"),
    ],
)
def test_a_letter_is_no_table(tmp_path, content, words):
    (tmp_path / "letter.csv").write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError) as error:
        read_table(tmp_path / "letter.csv")
    assert words in str(error.value)


# --- names of rows ----------------------------------------------------------------------------------------


def test_row_names_are_ids(read, tmp_path):
    numbers = pd.DataFrame([row[1:] for row in ROWS], columns=NAMES[1:], index=[f"x{i}" for i in range(12)])
    table = read(numbers.to_csv())
    assert table.id == "rowname" and table.frame["rowname"].iloc[3] == "x3"
    for id in (None, "", "rowname"):
        assert read_questionnaire(tmp_path / "a.csv", id=id).answers.index[3] == "x3"
    assert read(numbers.to_csv(sep=" ", index_label=False, header=True), "b.dat").id == "rowname"
    assert StudyFiles("a.csv", id="").id == "rowname"


def test_other_ids_come_before_row_names(read):
    table = read(pd.DataFrame(ROWS, columns=NAMES).to_csv())
    assert table.id == "id" and "rowname" in table.frame
    assert [item.name for item in read_questionnaire(table, id="").items] == NAMES[2:]


def test_an_unnamed_column_is_called_by_its_number(read):
    table = read(HEAD.replace("q3", "") + BODY)
    assert "column5" in table.frame and "1 column without a name is called 'column5' here." in table.notes


def test_ids_of_two_columns(read, tmp_path):
    rows = [f"{site},{i},{i % 3},{(i + 1) % 3},{i % 2}" for site in ("A", "B") for i in range(1, 9)]
    table = read("site,subject,q1,q2,q3\n" + "\n".join(rows) + "\n")
    study = read_questionnaire(tmp_path / "a.csv", id=["site", "subject"])
    assert (
        list(study.answers.index[[0, 8]]) == ["A-1", "B-1"] and study.answers.index.name == "site + subject"
    )
    assert [item.name for item in study.items] == ["q1", "q2", "q3"]
    kept = read_questionnaire(tmp_path / "a.csv", id=["site", "subject"], groups="site")
    assert list(kept.groups[:2]) == ["A", "A"]
    ages = [f"{site},{i},{20 + i}" for site in ("B", "A") for i in range(1, 9)]
    (tmp_path / "people.csv").write_text("site,subject,age\n" + "\n".join(ages) + "\n")
    roles = {"id": ["site", "subject"], "participants": tmp_path / "people.csv", "confounds": "age"}
    assert list(read_questionnaire(tmp_path / "a.csv", **roles).confounds["age"][:3]) == [21, 22, 23]
    with pytest.raises(InputError, match=r"Use both as ids with id=\['site', 'subject'\]"):
        read_questionnaire(table)
    with pytest.raises(InputError, match=r"no column 'ste' to use as the id. Did you mean 'site'"):
        read_questionnaire(tmp_path / "a.csv", id=["ste", "subject"])
