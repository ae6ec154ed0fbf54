"""A model fitted to labels scores codes, and the other way round, when it is said which is which."""

import pandas as pd
import pyreadstat
import pytest

from icqf import ICQF
from icqf.data import Item
from icqf.io import read_questionnaire
from small_study import ITEMS, codebook, table

FIT = ("--confounds", "age", "sex", "--n-components", "2", "--beta", "0.1", "--no-report")
NAMES = {"f": "Female", "m": "Male"}
CODES = {"f": 2, "m": 1}


def study(sex):
    return table().assign(sex=lambda frame: frame["sex"].map(sex))


def book(labels=""):
    entry = pd.DataFrame({"name": ["sex"], "labels": [labels], "missing": ["-9; not told"]})
    return pd.concat([codebook(), entry]) if labels else codebook()


@pytest.fixture
def fitted(run, tmp_path):
    """A model of the study with these values of sex and these labels, and its scores."""

    def fit(sex, labels="", name="model"):
        study(sex).to_csv(tmp_path / f"{name}.csv", index=False)
        book(labels).to_csv(tmp_path / f"{name}-items.csv", index=False)
        words = ("--codebook", tmp_path / f"{name}-items.csv", *FIT, "--out", tmp_path / name)
        result = run("fit", tmp_path / f"{name}.csv", *words)
        assert result.exit_code == 0, result.stderr
        return tmp_path / name / "model.icqf", (tmp_path / name / "scores.csv").read_text()

    return fit


def test_codes_are_scored_by_the_labels_of_a_codebook(run, fitted, tmp_path):
    model, scores = fitted(NAMES)
    study(CODES).to_csv(tmp_path / "new.csv", index=False)
    result = run("score", model, tmp_path / "new.csv")
    assert result.exit_code == 2
    assert (
        "Confound 'sex' holds '1', '2' in new.csv (80 participants), but the model's categories are "
        "'Female', 'Male'. Declare what each value means: add --codebook with an entry whose name is 'sex' "
        "and whose labels have the form '1=...; 2=...'."
    ) in result.stderr
    book("1=male; 2=female").to_csv(tmp_path / "new-items.csv", index=False)
    result = run("score", model, tmp_path / "new.csv", "--codebook", tmp_path / "new-items.csv")
    assert result.exit_code == 0 and result.stdout == scores
    assert "Confound 'sex': 1 is Male; 2 is Female, according to the labels." in result.stderr


@pytest.mark.parametrize(("at_fit", "later"), [(NAMES, CODES), (CODES, NAMES), (CODES, CODES)])
def test_a_model_keeps_the_labels_of_its_confounds(run, fitted, tmp_path, at_fit, later):
    model, scores = fitted(at_fit, "1=Male; 2=Female")
    study(later).to_csv(tmp_path / "new.csv", index=False)
    result = run("score", model, tmp_path / "new.csv")
    assert result.exit_code == 0 and result.stdout == scores, result.stderr
    known = ICQF.load(model).codebook_.confounds
    assert known == (Item("sex", missing_codes=(-9, "not told"), labels=((1, "Male"), (2, "Female"))),)
    ICQF.load(model).save(tmp_path / "again.icqf")
    assert (tmp_path / "again.icqf").read_bytes() == model.read_bytes()


def test_a_model_of_codes_scores_labels(run, fitted, tmp_path):
    model, scores = fitted(CODES)
    study(NAMES).to_csv(tmp_path / "new.csv", index=False)
    result = run("score", model, tmp_path / "new.csv")
    assert result.exit_code == 2 and "the model's categories are '1', '2'" in result.stderr
    assert "entry whose name is 'sex' and whose labels have the form '1=...; 2=...'." in result.stderr
    book("1=Male; 2=Female").to_csv(tmp_path / "items.csv", index=False)
    result = run("score", model, tmp_path / "new.csv", "--codebook", tmp_path / "items.csv")
    assert result.stdout == scores


def test_the_labels_of_an_spss_file_count(run, fitted, tmp_path):
    """Also where its codes are the other way round."""
    model, scores = fitted(NAMES, "1=Male; 2=Female")
    frame = study({"f": 1.0, "m": 2.0})
    frame[ITEMS] = frame[ITEMS].apply(pd.to_numeric)
    labels = {"sex": {1.0: "Female", 2.0: "Male"}}
    pyreadstat.write_sav(frame, str(tmp_path / "new.sav"), variable_value_labels=labels)
    assert run("score", model, tmp_path / "new.sav").stdout == scores


def test_spelling_does_not_matter_and_missing_codes_do(run, fitted, tmp_path):
    model, scores = fitted(NAMES, "1=Male; 2=Female")
    frame = study({"f": "FEMALE ", "m": "male"})
    frame.to_csv(tmp_path / "new.csv", index=False)
    assert run("score", model, tmp_path / "new.csv").stdout == scores
    frame.loc[3, "sex"] = "Not told"
    frame.to_csv(tmp_path / "new.csv", index=False)
    result = run("score", model, tmp_path / "new.csv")
    assert result.exit_code == 2 and "Confound 'sex' is missing for participant '004'" in result.stderr
    frame.loc[3, "sex"] = "robot"
    frame.to_csv(tmp_path / "new.csv", index=False)
    result = run("score", model, tmp_path / "new.csv")
    assert (
        "Confound 'sex' holds 'robot' in new.csv (1 participant), but the model's categories" in result.stderr
    )
    assert "Recode them as these categories, or leave these participants out." in result.stderr


def test_from_python_the_questionnaire_knows_what_its_confounds_mean(tmp_path):
    study(NAMES).to_csv(tmp_path / "study.csv", index=False)
    book("1=Male; 2=Female").to_csv(tmp_path / "items.csv", index=False)
    read = read_questionnaire(tmp_path / "study.csv", codebook=tmp_path / "items.csv", confounds=["sex"])
    read = read.take(range(5))
    assert [item.name for item in read.confound_entries] == ["sex"]
    assert read.take([0, 1]).confound_entries == read.confound_entries
    assert ICQF(1, smallest_category=1).fit(read).describe().codebook.confounds == read.confound_entries
    assert ICQF(1, smallest_category=1).fit(read.with_confounds(None)).describe().codebook.confounds == ()


def test_a_suggestion_is_never_an_item_that_is_there(run, fitted, tmp_path):
    model, _ = fitted(NAMES)
    study(NAMES).drop(columns="q05").to_csv(tmp_path / "new.csv", index=False)
    result = run("score", model, tmp_path / "new.csv")
    assert "the model's item 'q05' is not a column" in result.stderr and "Did you mean" not in result.stderr
    study(NAMES).rename(columns={"q05": "Q_05"}).to_csv(tmp_path / "new.csv", index=False)
    assert "Did you mean 'Q_05'?" in run("score", model, tmp_path / "new.csv").stderr
    words = ("--codebook", tmp_path / "model-items.csv")
    study(NAMES).drop(columns="q05").to_csv(tmp_path / "new.csv", index=False)
    result = run("check", tmp_path / "new.csv", *words)
    assert (
        "the codebook's item 'q05' is not a column" in result.stdout and "Did you mean" not in result.stdout
    )


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            "answers.csv",
            b"id,q1\n1,2\n",
            "not an icqf model file, but a table by its name. Give the",
        ),
        ("notes.txt", b"hello", "not an icqf model file"),
        ("model.icqf", b"PK and no more", "or it is damaged or incomplete. Save the model again."),
    ],
)
def test_files_that_are_no_models(run, files, tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    result = run("score", tmp_path / name, files / "answers.csv")
    assert result.exit_code == 2 and said in result.stderr and "zip" not in result.stderr


@pytest.mark.parametrize("at_fit", [{"f": "01", "m": "02"}, {"f": 1, "m": 2}, {"f": "1.0", "m": "2.0"}])
@pytest.mark.parametrize("later", [{"f": "1", "m": "2"}, {"f": 1.0, "m": 2.0}, {"f": "01", "m": "02"}])
def test_codes_are_the_same_whatever_their_type(run, fitted, tmp_path, at_fit, later):
    model, scores = fitted(at_fit)
    study(later).to_csv(tmp_path / "new.csv", index=False)
    result = run("score", model, tmp_path / "new.csv")
    assert result.exit_code == 0 and result.stdout == scores
    assert "according to the labels" not in result.stderr
