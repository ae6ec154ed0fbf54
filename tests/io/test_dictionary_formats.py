"""Descriptions of columns as other projects write them: each with a table, from its files to a fit."""

import json
import os

import numpy as np
import pandas as pd
import pytest

from described_files import (
    CODEBOOK,
    CONTEXT,
    MOOD,
    SCALE,
    WORDS,
    answers,
    bids,
    field,
    openpsychometrics,
    reproschema,
)
from icqf import ICQF
from icqf.errors import InputError, short
from icqf.io import StudyFiles, read_questionnaire
from icqf.workflow import check_study


def fits(questionnaire):
    """The number of items of a model that fits the answers."""
    model = ICQF(2, beta=0.1, n_init=1, max_iter=50, missing_confounds="mean")
    return model.fit(questionnaire).loadings_.shape[0]


# --- ReproSchema --------------------------------------------------------------------------------------------


@pytest.fixture
def mood(tmp_path):
    reproschema(tmp_path)
    return tmp_path


@pytest.mark.parametrize("place", ["activities/mood/mood_schema", "protocols/study/study_schema", ""])
def test_reproschema(mood, place):
    study = read_questionnaire(mood / "mood.csv", codebook=mood / place)
    assert [item.name for item in study.items] == MOOD
    first = study.items[0]
    assert (first.wording, first.min, first.max, first.missing_codes) == ("Question mood_1", 0, 3, (9,))
    assert first.labels[:4] == tuple(enumerate(WORDS)) and first.subscale == "Mood scale"
    assert np.isnan(study.answers.loc["P3", "mood_2"]) and fits(study) == 6
    assert "Instrument: Mood scale, version 0.2, citation Nobody (2020)." in study.notes
    assert (study.about.instrument, study.about.instrument_version) == ("Mood scale", "0.2")
    told = any("in its folder or beside it: 'https://x.org/other_schema'." in note for note in study.notes)
    assert told is (place != "activities/mood/mood_schema")
    findings = check_study(mood / "mood.csv", codebook=mood / place)
    assert not [each for each in findings if each.severity == "error"]


def test_an_item_that_was_not_shown_was_not_asked(mood):
    schema = mood / "activities/mood/mood_schema"
    activity = json.loads(schema.read_text())
    members = activity["ui"]["addProperties"]
    members[4]["isVis"] = "mood_1 === 0 || mood_2 > 2"
    members[5]["isVis"] = "choices.includes(1)"
    schema.write_text(json.dumps(activity))
    data = pd.read_csv(mood / "mood.csv")
    shown = (data["mood_1"] == 0) | (data["mood_2"] > 2)
    data["mood_5"] = data["mood_5"].where(shown)
    data.loc[data.index[shown][0], "mood_5"] = np.nan  # shown, and left out
    data.to_csv(mood / "mood.csv", index=False)
    study = read_questionnaire(mood / "mood.csv", codebook=schema)
    assert (study.structural["mood_5"].to_numpy() > 0).tolist() == (~shown).tolist()
    assert not study.structural.drop(columns="mood_5").to_numpy().any()
    assert "The branching logic of 'mood_6' cannot be evaluated" in " ".join(study.notes)


def test_options_that_name_one_another_in_a_circle(mood):
    (mood / "activities/mood/valueConstraints").write_text('{"choices": "../mood/valueConstraints"}')
    schema = mood / "activities/mood/mood_schema"
    study = read_questionnaire(mood / "mood.csv", codebook=schema, missing_codes=[9])
    assert [item.labels for item in study.items] == [()] * 6


def test_no_file_is_read_outside_of_the_study(mood):
    schema = mood / "activities/mood/mood_schema"
    activity = json.loads(schema.read_text()) | {"@type": ["reproschema:Activity"]}
    (mood.parent / "secret").write_text(json.dumps(field("mood_2")))
    (mood / "activities/mood/items/mood_3").unlink()
    (mood / "activities/mood/items/mood_3").symlink_to(mood.parent / "secret")
    outside = ["../../../secret", str(mood.parent / "secret"), "items/mood_3", "a" * 300, "items/\0"]
    activity["ui"] = {"order": ["items/mood_1", *outside, "items/mood_4"]}
    schema.write_text(json.dumps(activity))
    study = read_questionnaire(mood / "mood.csv", codebook=schema)
    assert [item.name for item in study.items] == ["mood_1", "mood_4"]
    names = ", ".join(map(repr, [*outside[:3], short("a" * 300), outside[4]]))
    assert any(f"beside it: {names}." in note for note in study.notes)


def test_damaged_schemas(mood):
    schema, item = mood / "activities/mood/mood_schema", mood / "activities/mood/items/mood_1"

    def said():
        with pytest.raises(InputError) as error:
            read_questionnaire(mood / "mood.csv", codebook=schema)
        return str(error.value)

    whole = item.read_text()
    item.write_text('{"@id": "mood_1",\n "question": "x" "ui": 1}')
    assert "mood_1: this is not valid JSON" in said() and "line 2" in said()
    item.write_text('{"question": "x", "question": "y"}')
    assert "mood_1: the name 'question' occurs twice" in said()
    item.write_text('{"a":' * 100_000)
    assert "mood_1: the JSON is nested too deeply" in said()
    item.write_text("[1]")
    assert "mood_1: this must be a JSON object" in said()
    os.truncate(item, 2**24 + 1)
    assert "mood_1: the file has 16 MB" in said()
    item.write_text(whole)
    activity = json.loads(schema.read_text())
    activity["ui"]["order"] = activity["ui"]["addProperties"] = []
    schema.write_text(json.dumps(activity))
    assert "no item of an activity was found" in said()
    activity["ui"]["order"] = ["/etc/hostname", "../../../../../../etc/hostname"]
    schema.write_text(json.dumps(activity))
    assert "files that are not in its folder or beside it: '/etc/hostname'" in said()
    activity["ui"]["order"] = [{"@id": "items/mood_1"}]
    item.write_text(json.dumps(field("other_1")))
    schema.write_text(json.dumps(activity))
    assert "mood_schema: none of its fields ('other_1') is a column of mood.csv" in said()
    schema.write_text(json.dumps({"@type": "reproschema:ResponseOption", "@context": CONTEXT}))
    assert "not an activity, a protocol or an item, but of the type 'ResponseOption'" in said()
    schema.write_text('{"ui": 1}')
    assert "not an activity, a protocol or an item, but has no type" in said()


# --- openpsychometrics.org ----------------------------------------------------------------------------------


@pytest.fixture
def personality(tmp_path):
    openpsychometrics(tmp_path)
    return tmp_path


def test_openpsychometrics(personality):
    data, codebook = personality / "data.csv", personality / "codebook.txt"
    study = read_questionnaire(data, codebook=codebook, confounds=["gender"])
    assert [item.name for item in study.items] == SCALE
    assert {(item.min, item.max, item.missing_codes) for item in study.items} == {(1, 5, (0,))}
    assert [item.name for item in study.items if item.reverse] == ["X4"]
    assert study.items[3].wording == "Statement X4; it's so."
    assert dict(study.items[0].labels) == {0: "missed", 1: "Disagree", 3: "Neutral", 5: "Agree"}
    assert np.isnan(study.answers["X1"].iloc[2]) and fits(study) == 8
    assert set(study.confounds["gender"].dropna()) == {"Male", "Female", "Other"}
    findings = check_study(data, codebook=codebook)
    assert not [each for each in findings if each.severity == "error"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "cp1252", "utf-16"])
def test_a_text_in_other_encodings_with_other_line_ends(personality, encoding):
    codebook = personality / "codebook.txt"
    codebook.write_bytes(CODEBOOK.replace("\n", "\r\n").encode(encoding))
    study = read_questionnaire(personality / "data.csv", codebook=codebook)
    assert study.items[0].wording == "Statement X1; it's so." and study.items[0].max == 5


def test_answers_in_later_sentences_and_in_lines(tmp_path):
    """As in a codebook whose questions Q1 are the columns Q1A, with their times and positions."""
    lines = "\n".join(f"Q{j}\tQuestion {j}." for j in range(1, 5))
    others = "\n".join(f"T{j}\tWord {j}." for j in range(1, 4))
    choices = "\n".join(f"N{j}\t1=I like being {j}, 2=I do not (0=none chosen)" for j in range(1, 4))
    text = f"A test was given.\n\nThe following items were in it:\n\n{lines}\n\nThe scale of each was\n\n"
    text += "1 = Not at all \n2 = Somewhat\n3 = Very much, or most of the time\n\nIt is in A (e.g. Q1A).\n\n"
    text += f"elapse\t\tthe time spent\n\nThen followed these words:\n\n{others}\n\nrated such that\n\n"
    text += f"1 = No\n7 = Yes\n\nThen a choice between two:\n\n{choices}\n\nmarried\t1=Never, 2=Now\n"
    (tmp_path / "codebook.txt").write_text(text)
    frame = answers([f"Q{j}A" for j in range(1, 5)], 1, 3)
    frame = frame.join(answers(["T1", "T2", "T3"], 1, 7)).join(answers(["N1", "N2", "N3"], 1, 2))
    frame = frame.assign(Q1E=900, Q1I=np.arange(80) % 3 + 1, married=1, elapse=np.arange(80))
    frame.to_csv(tmp_path / "data.csv", sep="\t", index=False)
    study = read_questionnaire(tmp_path / "data.csv", codebook=tmp_path / "codebook.txt")
    ranges = {item.name: (item.min, item.max) for item in study.items}
    assert ranges == {f"Q{j}A": (1, 3) for j in range(1, 5)} | {f"T{j}": (1, 7) for j in range(1, 4)} | {
        f"N{j}": (1, 2) for j in range(1, 4)
    }
    assert dict(study.items[0].labels)[3] == "Very much, or most of the time"
    assert study.items[-1].labels[1:] == ((1, "I like being 3"), (2, "I do not"))


@pytest.mark.parametrize(
    "line", ["*" * 100_000, f"1=Never{' ,;(' * 20_000}, 2=x", "1" * 100_000, "1=" + "(" * 50_000]
)
def test_a_codebook_of_many_signs_is_read(personality, line):
    (personality / "codebook.txt").write_text(f"{CODEBOOK}\n\n{line}\n\nlast\tA text.\n")
    study = read_questionnaire(personality / "data.csv", codebook=personality / "codebook.txt")
    assert [item.name for item in study.items] == SCALE


def test_scales_of_neighbouring_questionnaires(tmp_path):
    """Interests, pairs of traits and a list of words, each with its own scale, and columns that are none."""
    text = "\n".join(
        [
            *("Interests were rated from 1=Dislike to 5=Enjoy:", ""),
            *(f"R{j}\tTask {j}" for j in range(1, 5)),
            *("", "introelapse\tseconds on the first page", "", "Then came pairs of traits:", ""),
            *(f"TIPI{j}\tPair {j}." for j in range(1, 5)),
            *("", "They were rated such that", "1 = Disagree strongly", "7 = Agree strongly", ""),
            *("These words were offered as a check-list (1=checked, 0=not):", ""),
            *(f"VCL{j}\tword{j}" for j in range(1, 4)),
            *("", "Two more were on a scale with 1=No, 3=Yes:", "", "H1\tHonest?", "H2\tTrue?", "", "lag\ts"),
        ]
    )
    (tmp_path / "codebook.txt").write_text(text)
    frame = answers([f"R{j}" for j in range(1, 5)], 1, 5).join(answers(["H1", "H2"], 1, 3))
    frame = frame.join(answers([f"TIPI{j}" for j in range(1, 5)], 1, 7))
    frame = frame.join(answers([f"VCL{j}" for j in range(1, 4)], 0, 1)).assign(lag=2, introelapse=1)
    frame.to_csv(tmp_path / "data.csv", sep="\t", index=False)
    study = read_questionnaire(tmp_path / "data.csv", codebook=tmp_path / "codebook.txt")
    ranges = {item.name: (item.min, item.max) for item in study.items}
    expected = {f"R{j}": (1, 5) for j in range(1, 5)} | {"H1": (1, 3), "H2": (1, 3)}
    assert ranges == expected | {f"TIPI{j}": (1, 7) for j in range(1, 5)}


def test_a_dictionary_in_place_of_the_answers(personality, mood):
    for path in (personality / "codebook.txt", mood / "activities/mood/mood_schema"):
        with pytest.raises(InputError, match=r"which describes columns; it holds no answers"):
            read_questionnaire(path)


def test_names_in_quotation_marks(personality):
    codebook = personality / "codebook.txt"
    codebook.write_text(CODEBOOK.replace("X2\tStatement", '"X2" : "Statement'), encoding="utf-8")
    study = read_questionnaire(personality / "data.csv", codebook=codebook)
    assert [item.name for item in study.items] == SCALE
    assert study.items[1].wording == "Statement X2; it's so."


def test_a_line_that_occurs_twice(personality):
    codebook = personality / "codebook.txt"
    codebook.write_text(CODEBOOK + "\nX1\tOnce more.\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"'X1' appears twice \(line 7 and line 24\)"):
        read_questionnaire(personality / "data.csv", codebook=codebook)


def test_a_codebook_with_tabs_is_still_a_codebook(personality):
    (personality / "codebook.txt").write_text("name\twording\tmin\tmax\n" + "X1\tOne two three\t1\t5\n" * 1)
    files = StudyFiles(personality / "data.csv", codebook=personality / "codebook.txt")
    assert files.dictionary is None and files.codebook is not None


# --- BIDS ---------------------------------------------------------------------------------------------------


@pytest.fixture
def dataset(tmp_path):
    bids(tmp_path)
    return tmp_path / "phenotype" / "sleep.tsv"


def test_bids_phenotype(dataset):
    study = read_questionnaire(dataset)
    assert [item.max for item in study.items] == [4] * 5 and np.isnan(study.answers["sleep_1"].iloc[1])
    assert "Instrument: Sleep scale, short form; https://x.org/sleep." in study.notes
    assert fits(study) == 5 and study.confounds is None
    assert study.about.instrument == "Sleep scale, short form"


def test_confounds_come_from_the_participants_of_the_dataset(dataset):
    study = read_questionnaire(dataset, confounds=["age", "hand"])
    assert study.confounds["age"].iloc[3] == 11 and study.confounds["hand"].isna().sum() == 40
    assert "age, hand added from participants.tsv by participant id." in study.notes
    with pytest.raises(InputError, match="there is no column 'weight' here"):
        read_questionnaire(dataset, confounds=["weight"])


def test_two_dictionaries_are_one_too_many(dataset, mood):
    with pytest.raises(InputError, match=r"this is a BIDS sidecar, and .* is given as another one"):
        StudyFiles(dataset, codebook=dataset.with_suffix(".json"), dictionary=mood)
