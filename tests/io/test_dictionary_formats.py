"""Descriptions of columns as other projects write them: each with a table, from its files to a fit."""

import json
import os

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF
from icqf.errors import InputError
from icqf.io import StudyFiles, read_questionnaire
from icqf.workflow import check_study

CONTEXT = "https://raw.githubusercontent.com/ReproNim/reproschema/1.0.0/contexts/reproschema"
WORDS = ("Never", "Some days", "Most days", "Daily")
MOOD = [f"mood_{i}" for i in range(1, 7)]


def answers(names, low, high, n=80):
    rng = np.random.default_rng(0)
    factors = rng.random((n, 2))
    cells = [low + (high - low) * (0.8 * factors[:, j % 2] + 0.2 * rng.random(n)) for j in range(len(names))]
    return pd.DataFrame(np.rint(np.transpose(cells)).astype(int), columns=names)


def fits(questionnaire):
    """The number of items of a model that fits the answers."""
    model = ICQF(2, beta=0.1, n_init=1, max_iter=50, missing_confounds="mean")
    return model.fit(questionnaire).loadings_.shape[0]


# --- ReproSchema --------------------------------------------------------------------------------------------


def field(name, **more):
    content = {"@context": CONTEXT, "@type": "reproschema:Field", "@id": name}
    question = {"question": {"es": f"Pregunta {name}", "en": f"<b>Question</b> {name}"}}
    return (
        content | question | {"ui": {"inputType": "radio"}, "responseOptions": "../valueConstraints"} | more
    )


@pytest.fixture
def mood(tmp_path):
    """A protocol with one activity, and the answers to it."""
    folder = tmp_path / "activities" / "mood"
    (folder / "items").mkdir(parents=True)
    (tmp_path / "protocols" / "study").mkdir(parents=True)
    members = [{"isAbout": f"items/{name}", "variableName": name, "isVis": True} for name in MOOD]
    members += [{"isAbout": "items/mood_total", "variableName": "mood_total", "isVis": False}]
    members += [{"isAbout": "items/comment", "variableName": "comment", "isVis": True}]
    order = [f"items/{name}" for name in (*MOOD, "comment")]
    activity = {"@context": CONTEXT, "@type": "reproschema:Activity", "@id": "mood_schema", "version": "0.2"}
    activity |= {"prefLabel": {"en": "Mood scale"}, "citation": "Nobody (2020)"}
    activity["compute"] = [{"variableName": "mood_total", "jsExpression": "mood_1 + mood_2"}]
    activity["ui"] = {"addProperties": members, "order": order, "shuffle": False}
    choices = [{"name": {"en": text}, "value": value} for value, text in enumerate(WORDS)]
    choices += [{"schema:name": "Prefer not to say", "schema:value": 9}]
    options = {"@type": "reproschema:ResponseOption", "schema:minValue": 0, "choices": choices}
    place = "../../activities/mood/mood_schema"
    protocol = {"@context": CONTEXT, "@type": "reproschema:Protocol", "@id": "study_schema"}
    protocol["ui"] = {"addProperties": [{"isAbout": place}], "order": [place, "https://x.org/other_schema"]}
    files = {
        "activities/mood/mood_schema": activity,
        "activities/mood/valueConstraints": options | {"multipleChoice": False},
        "activities/mood/items/mood_total": field("mood_total", responseOptions={"minValue": 0}),
        "activities/mood/items/comment": field("comment", ui={"inputType": "text"}, responseOptions={}),
        "protocols/study/study_schema": protocol,
    } | {f"activities/mood/items/{name}": field(name) for name in MOOD}
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    frame = answers(MOOD, 0, 3).assign(mood_total=0, comment="", age=30)
    frame.insert(0, "record_id", [f"P{i}" for i in range(len(frame))])
    frame.loc[3, "mood_2"] = 9
    frame.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("place", ["activities/mood/mood_schema", "protocols/study/study_schema", ""])
def test_reproschema(mood, place):
    study = read_questionnaire(mood / "data.csv", codebook=mood / place)
    assert [item.name for item in study.items] == MOOD
    first = study.items[0]
    assert (first.wording, first.min, first.max, first.missing_codes) == ("Question mood_1", 0, 3, (9,))
    assert first.labels[:4] == tuple(enumerate(WORDS)) and first.subscale == "Mood scale"
    assert np.isnan(study.answers.loc["P3", "mood_2"]) and fits(study) == 6
    assert "Instrument: Mood scale, version 0.2, citation Nobody (2020)." in study.notes
    assert (study.about.instrument, study.about.instrument_version) == ("Mood scale", "0.2")
    told = "1 file that" in " ".join(study.notes) and "'https://x.org/other_schema'" in " ".join(study.notes)
    assert told is (place != "activities/mood/mood_schema")
    findings = check_study(mood / "data.csv", codebook=mood / place)
    assert not [each for each in findings if each.severity == "error"]


def test_an_item_that_was_not_shown_was_not_asked(mood):
    schema = mood / "activities/mood/mood_schema"
    activity = json.loads(schema.read_text())
    members = activity["ui"]["addProperties"]
    members[4]["isVis"] = "mood_1 === 0 || mood_2 > 2"
    members[5]["isVis"] = "choices.includes(1)"
    schema.write_text(json.dumps(activity))
    data = pd.read_csv(mood / "data.csv")
    shown = (data["mood_1"] == 0) | (data["mood_2"] > 2)
    data["mood_5"] = data["mood_5"].where(shown)
    data.loc[data.index[shown][0], "mood_5"] = np.nan  # shown, and left out
    data.to_csv(mood / "data.csv", index=False)
    study = read_questionnaire(mood / "data.csv", codebook=schema)
    assert (study.structural["mood_5"].to_numpy() > 0).tolist() == (~shown).tolist()
    assert not study.structural.drop(columns="mood_5").to_numpy().any()
    assert "The branching logic of 'mood_6' cannot be evaluated" in " ".join(study.notes)


def test_options_that_name_one_another_in_a_circle(mood):
    (mood / "activities/mood/valueConstraints").write_text('{"choices": "../mood/valueConstraints"}')
    schema = mood / "activities/mood/mood_schema"
    study = read_questionnaire(mood / "data.csv", codebook=schema, missing_codes=[9])
    assert [item.labels for item in study.items] == [()] * 6


def test_damaged_schemas(mood):
    schema, item = mood / "activities/mood/mood_schema", mood / "activities/mood/items/mood_1"

    def said():
        with pytest.raises(InputError) as error:
            read_questionnaire(mood / "data.csv", codebook=schema)
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
    assert "these files are not on this computer: '/etc/hostname'" in said()
    activity["ui"]["order"] = [{"@id": "items/mood_1"}]
    item.write_text(json.dumps(field("other_1")))
    schema.write_text(json.dumps(activity))
    assert "mood_schema: none of its fields ('other_1') is a column of data.csv" in said()
    schema.write_text(json.dumps({"@type": "reproschema:ResponseOption", "@context": CONTEXT}))
    assert "not an activity, a protocol or an item, but of the type 'ResponseOption'" in said()
    schema.write_text('{"ui": 1}')
    assert "not an activity, a protocol or an item, but has no type" in said()


# --- openpsychometrics.org ----------------------------------------------------------------------------------

SCALE = [f"{letter}{j}" for letter in "XY" for j in range(1, 5)]
LINES = "\n".join(f"{name}{'*' * (name == 'X4')}\tStatement {name}; it&#39;s so." for name in SCALE)
CODEBOOK = f"""These answers were made up to try how such a file is read.

All statements were rated on a five point scale where 1=Disagree, 3=Neutral, 5=Agree (0=missed). On one page.

Note: the statement with a '*' is inverted when the scale is scored.

{LINES}

The variables ending in _E hold the time in milliseconds.

race\tChosen from a menu. 1=First, 2=Second (other), 13=Other (0=missed)
age\tentered as text
gender\t1=Male, 2=Female, 3=Other (0=missed)

country\tISO code; a café’s, for example.
"""


@pytest.fixture
def personality(tmp_path):
    frame = answers(SCALE, 1, 5)
    frame.loc[2, "X1"] = 0
    times = {f"{name}_E": np.arange(len(frame)) * 7 + 400 for name in SCALE}
    more = {"race": 3, "age": np.arange(len(frame)) % 40 + 18, "gender": np.arange(len(frame)) % 4}
    frame.assign(**more, country="DE", **times).to_csv(tmp_path / "data.csv", sep="\t", index=False)
    (tmp_path / "codebook.txt").write_text(CODEBOOK, encoding="utf-8")
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
    (tmp_path / "phenotype").mkdir()
    frame = answers([f"sleep_{j}" for j in range(1, 6)], 0, 4).astype(object)
    frame.insert(0, "participant_id", [f"sub-{i:02}" for i in range(len(frame))])
    levels = {str(value): {"Description": word} for value, word in enumerate((*WORDS, "Always"))}
    described = {name: {"Description": f"Item {name}", "Levels": levels} for name in frame.columns[1:]}
    frame.loc[1, "sleep_1"] = "n/a"
    frame.to_csv(tmp_path / "phenotype" / "sleep.tsv", sep="\t", index=False)
    tool = {"Description": "Sleep scale, short form.", "TermURL": "https://x.org/sleep"}
    content = {"MeasurementToolMetadata": tool} | described
    (tmp_path / "phenotype" / "sleep.json").write_text(json.dumps(content))
    people = pd.DataFrame(
        {"participant_id": frame["participant_id"], "age": np.arange(80) % 9 + 8, "sex": "F"}
    )
    people["sex"] = np.where(np.arange(80) % 2, "M", "n/a")
    people.to_csv(tmp_path / "participants.tsv", sep="\t", index=False)
    sex = {"Description": "Sex", "Levels": {"M": "male", "F": "female"}}
    (tmp_path / "participants.json").write_text(json.dumps({"age": {"Units": "years"}, "sex": sex}))
    return tmp_path / "phenotype" / "sleep.tsv"


def test_bids_phenotype(dataset):
    study = read_questionnaire(dataset)
    assert [item.max for item in study.items] == [4] * 5 and np.isnan(study.answers["sleep_1"].iloc[1])
    assert "Instrument: Sleep scale, short form; https://x.org/sleep." in study.notes
    assert fits(study) == 5 and study.confounds is None
    assert study.about.instrument == "Sleep scale, short form"


def test_confounds_come_from_the_participants_of_the_dataset(dataset):
    study = read_questionnaire(dataset, confounds=["age", "sex"])
    assert study.confounds["age"].iloc[3] == 11 and study.confounds["sex"].isna().sum() == 40
    assert "age, sex added from participants.tsv by participant id." in study.notes
    with pytest.raises(InputError, match="there is no column 'weight' here"):
        read_questionnaire(dataset, confounds=["weight"])


def test_two_dictionaries_are_one_too_many(dataset, mood):
    with pytest.raises(InputError, match=r"this is a BIDS sidecar, and .* is given as another one"):
        StudyFiles(dataset, codebook=dataset.with_suffix(".json"), dictionary=mood)
