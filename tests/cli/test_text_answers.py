"""Files with words instead of numbers: one sentence says which command proposes their order."""

import io

import numpy as np
import pandas as pd
import pyreadstat
import pytest

from icqf.io import read_codebook, read_questionnaire
from small_study import ITEMS, REVERSED, codebook, table

WORDS = ["Never", "Sometimes", "Often", "Always"]
FIT = ("--n-components", "2", "--beta", "0.1", "--no-report")


def worded(words=WORDS, silent="Prefer not to say"):
    """The small study in words; 9 was no answer."""
    frame = table()
    names = {str(at): word for at, word in enumerate(words)} | {"9": silent}
    return frame.assign(**{name: frame[name].map(names).fillna("") for name in ITEMS})


@pytest.fixture
def study(tmp_path):
    worded().to_csv(tmp_path / "study.csv", index=False)
    return tmp_path / "study.csv"


@pytest.mark.parametrize("command", ["fit", "check", "select"])
def test_one_sentence_names_the_command(run, study, tmp_path, command):
    result = run(command, study, *(() if command == "check" else ("--out", tmp_path / "out.csv")))
    said = result.stdout + result.stderr
    assert result.exit_code in (1, 2) and said.count("words") == 1
    assert "study.csv: 12 items ('q01', 'q02', 'q03', 'q04', 'q05' and 7 more) hold answers in words" in said
    assert (
        "`icqf codebook study.csv --out items.csv` proposes the order Never < Sometimes < Often < Always"
        in said
    )
    assert "add --codebook items.csv" in said and "--missing-codes" not in said


def test_the_proposed_codebook_gives_the_factors_of_the_numbers(run, study, tmp_path, files):
    out = tmp_path / "items.csv"
    result = run("codebook", study, "--out", out)
    assert result.exit_code == 0 and "confirm the labels" in result.stderr
    book = pd.read_csv(out).set_index("name")
    assert list(book.index) == ITEMS  # and neither age nor sex
    assert book["labels"].unique() == ["0=Never; 1=Sometimes; 2=Often; 3=Always"]
    assert book["missing"].unique() == ["Prefer not to say"]
    assert book["remark"].str.startswith("Please confirm: the order of the labels").all()
    assert "'Prefer not to say' read as no answer" in book["remark"].iloc[0]
    book.assign(direction=["reverse" if name == REVERSED else "" for name in ITEMS]).to_csv(out)
    run("fit", study, "--codebook", out, *FIT, "--out", tmp_path / "words")
    run("fit", files / "answers.csv", "--codebook", files / "items.csv", *FIT, "--out", tmp_path / "numbers")
    assert (tmp_path / "words" / "scores.csv").read_text() == (
        tmp_path / "numbers" / "scores.csv"
    ).read_text()
    scored = run("score", tmp_path / "words" / "model.icqf", study)
    assert scored.stdout == (tmp_path / "words" / "scores.csv").read_text()


def test_a_codebook_without_labels_is_told_which_to_write(run, study, tmp_path):
    codebook().assign(missing="prefer not to say").to_csv(tmp_path / "items.csv", index=False)
    result = run("check", study, "--codebook", tmp_path / "items.csv")
    assert result.exit_code == 1
    assert "write '0=Never; 1=Sometimes; 2=Often; 3=Always' into the labels of the codebook" in result.stdout
    assert result.stdout.count("answers in words") == 1


def test_unknown_words_are_listed_and_not_ordered(run, tmp_path):
    worded(["gar nicht", "etwas", "ziemlich", "stark"]).to_csv(tmp_path / "study.csv", index=False)
    result = run("fit", tmp_path / "study.csv", "--out", tmp_path / "out")
    assert result.exit_code == 2 and "lists them to order" in result.stderr
    assert all(word in result.stderr for word in ("gar nicht", "etwas", "ziemlich", "stark"))
    result = run("codebook", tmp_path / "study.csv")
    assert "order is not known" in result.stderr
    book = pd.read_csv(io.StringIO(result.stdout))
    assert book["labels"].isna().all() and book["min"].isna().all()
    assert book["missing"].unique() == ["Prefer not to say"]
    assert "'etwas'" in book["remark"].iloc[0] and "Prefer" not in book["remark"].iloc[0]
    (tmp_path / "items.csv").write_text(result.stdout)
    result = run("check", tmp_path / "study.csv", "--codebook", tmp_path / "items.csv")
    assert result.exit_code == 1 and "number them from the lowest to the highest" in result.stdout


@pytest.mark.parametrize(
    ("cell", "said", "unsaid"),
    [
        (
            "often",
            "give 'often' its number in the codebook's labels, such as '2=often'",
            "--missing-codes",
        ),
        ("refused", "If 'refused' marks a missing answer, add --missing-codes refused.", "labels"),
        (
            "Grmpf",
            "add --missing-codes Grmpf; if it is an answer, give its number in the codebook",
            "2=",
        ),
    ],
)
def test_a_stray_text_among_numbers_is_one_finding(run, tmp_path, cell, said, unsaid):
    frame = table()
    frame.loc[3, ITEMS] = cell
    frame.to_csv(tmp_path / "study.csv", index=False)
    codebook().to_csv(tmp_path / "items.csv", index=False)
    result = run("check", tmp_path / "study.csv", "--codebook", tmp_path / "items.csv")
    assert result.exit_code == 1 and said in result.stdout
    assert result.stdout.count(f"holds the text {cell!r}") == 1
    assert "row 5, column 'q01'" in result.stdout and "11 more cells of 12 items" in result.stdout
    assert unsaid not in result.stdout


def test_numbers_inside_the_answers(run, tmp_path):
    """As forms with two labelled ends give them."""
    worded(["0 - not at all", "1", "2", "3 - fully"]).to_csv(tmp_path / "study.csv", index=False)
    result = run("check", tmp_path / "study.csv", "--items", "q*")
    assert "12 items" in result.stdout and "the order 0 - not at all < 3 - fully" in result.stdout
    run("codebook", tmp_path / "study.csv", "--out", tmp_path / "items.csv")
    items = read_codebook(tmp_path / "items.csv")
    assert items[0].labels[0] == (0, "0 - not at all") and items[0].labels[3] == (3, "3 - fully")
    study = read_questionnaire(tmp_path / "study.csv", codebook=items)
    expected = table()[ITEMS].replace({"9": "", "": np.nan}).replace("", np.nan).astype(float)
    np.testing.assert_array_equal(study.answers.to_numpy(), expected.to_numpy())


def test_words_beside_numbers_are_left_out_with_a_note(run, tmp_path, files):
    frame = table().assign(smoker=["yes", "no"] * 40, drinker=["no", "yes"] * 40)
    frame.to_csv(tmp_path / "study.csv", index=False)
    result = run("check", tmp_path / "study.csv", "--missing-codes", "9")
    assert result.exit_code == 0
    assert "because their answers are words ('no', 'yes'): 'smoker', 'drinker'" in result.stdout
    assert "'sex'" not in next(line for line in result.stdout.splitlines() if "words" in line)


def test_missing_codes_are_proposed_for_all_items_with_that_range(run, tmp_path):
    frame = pd.DataFrame({f"q{j}": [0, 1, 2, 3] * 10 for j in range(5)}).astype(object)
    frame.loc[3, "q0"], frame.loc[4, ["q1", "q2", "q3"]] = 9, "Don't know"
    frame.to_csv(tmp_path / "study.csv", index=False)
    book = pd.read_csv(io.StringIO(run("codebook", tmp_path / "study.csv").stdout))
    assert book["name"].tolist() == list(frame)
    assert book["missing"].unique() == ["9; Don't know"] and book["max"].unique() == [3]
    assert book["remark"].str.contains("'9', \"Don't know\" read as no answer").all()


def test_labels_and_codes_may_be_mixed_in_one_file(run, tmp_path):
    """SPSS keeps numbers with labels; what somebody typed as text beside them means the same."""
    frame = pd.DataFrame({"id": [str(i) for i in range(8)], "q1": [0.0, 1, 2, 0, 1, 2, 0, 1]})
    frame["q2"] = frame["q1"].map({0: "No", 1: "perhaps", 2: "Yes"})
    frame["q3"] = ["0", "perhaps", "2", "no", "1", "YES", "0", "1"]
    labels = {"q1": {0: "no", 1: "perhaps", 2: "yes"}}
    pyreadstat.write_sav(frame, str(tmp_path / "study.sav"), variable_value_labels=labels)
    book = pd.DataFrame({"name": ["q1", "q2", "q3"], "labels": "0=no; 1=perhaps; 2=yes"})
    book.to_csv(tmp_path / "items.csv", index=False)
    study = read_questionnaire(tmp_path / "study.sav", codebook=tmp_path / "items.csv")
    assert (study.answers.eq(study.answers["q1"], axis=0)).all(axis=None)
    assert study.ranges().to_numpy().tolist() == [[0, 2]] * 3
    result = run("check", tmp_path / "study.sav", "--codebook", tmp_path / "items.csv")
    assert "Answers in words were read as the numbers of their labels in 'q2', 'q3'" in result.stdout


def test_a_redcap_export_of_labels_is_read_by_its_dictionary(run, tmp_path):
    frame = worded(silent="")[["record_id", *ITEMS]]
    frame.to_csv(tmp_path / "export.csv", index=False)
    choices = " | ".join(f"{at}, {word}" for at, word in enumerate(WORDS))
    fields = pd.DataFrame({"Variable / Field Name": ["record_id", *ITEMS]})
    fields["Field Type"] = ["text"] + ["radio"] * 12
    fields["Field Label"] = fields["Variable / Field Name"]
    fields["Choices, Calculations, OR Slider Labels"] = [""] + [choices] * 12
    fields.to_csv(tmp_path / "dictionary.csv", index=False)
    result = run("check", tmp_path / "export.csv", "--dictionary", tmp_path / "dictionary.csv")
    assert result.exit_code == 0 and "Answers in words were read" in result.stdout


def test_a_fit_says_the_same_of_one_stray_text(run, tmp_path):
    frame = table()
    frame.loc[4, "q05"] = "often"
    frame.to_csv(tmp_path / "study.csv", index=False)
    result = run("fit", tmp_path / "study.csv", "--missing-codes", "9", *FIT, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "row 6, column 'q05' holds the text 'often', not a number. " in result.stderr
    assert "--missing-codes" not in result.stderr


def test_an_item_without_middle_answers_belongs_to_the_others(run, tmp_path):
    frame = pd.DataFrame({f"q{j}": ["no", "perhaps", "yes", "no"] * 5 for j in range(3)})
    frame.assign(q3=["no", "yes"] * 10, q4="no", sex=["f", "m"] * 10).to_csv(tmp_path / "s.csv", index=False)
    book = pd.read_csv(io.StringIO(run("codebook", tmp_path / "s.csv").stdout))
    assert book["name"].tolist() == ["q0", "q1", "q2", "q3", "q4"] and book["max"].unique() == [2]
