"""Made studies as ReproSchema, openpsychometrics.org and BIDS write them: answers and their description."""

import json

import numpy as np
import pandas as pd

CONTEXT = "https://raw.githubusercontent.com/ReproNim/reproschema/1.0.0/contexts/reproschema"
WORDS = ("Never", "Some days", "Most days", "Daily")
MOOD = [f"mood_{i}" for i in range(1, 7)]
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


def answers(names, low, high, n=80):
    """Answers that two factors explain."""
    rng = np.random.default_rng(0)
    factors = rng.random((n, 2))
    cells = [low + (high - low) * (0.8 * factors[:, j % 2] + 0.2 * rng.random(n)) for j in range(len(names))]
    return pd.DataFrame(np.rint(np.transpose(cells)).astype(int), columns=names)


def field(name, **more):
    """An item of ReproSchema."""
    content = {"@context": CONTEXT, "@type": "reproschema:Field", "@id": name}
    question = {"question": {"es": f"Pregunta {name}", "en": f"<b>Question</b> {name}"}}
    return (
        content | question | {"ui": {"inputType": "radio"}, "responseOptions": "../valueConstraints"} | more
    )


def reproschema(folder):
    """A protocol with one activity, and its answers in mood.csv."""
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
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(content))
    frame = answers(MOOD, 0, 3).assign(mood_total=0, comment="", age=30)
    frame.insert(0, "record_id", [f"P{i}" for i in range(len(frame))])
    frame.loc[3, "mood_2"] = 9
    frame.to_csv(folder / "mood.csv", index=False)


def openpsychometrics(folder):
    """The answers in data.csv, with times, and codebook.txt."""
    frame = answers(SCALE, 1, 5)
    frame.loc[2, "X1"] = 0
    times = {f"{name}_E": np.arange(len(frame)) * 7 + 400 for name in SCALE}
    more = {"race": 3, "age": np.arange(len(frame)) % 40 + 18, "gender": np.arange(len(frame)) % 4}
    frame.assign(**more, country="DE", **times).to_csv(folder / "data.csv", sep="\t", index=False)
    (folder / "codebook.txt").write_text(CODEBOOK, encoding="utf-8")


def bids(folder):
    """A dataset with phenotype/sleep.tsv and participants.tsv, and their sidecars."""
    (folder / "phenotype").mkdir()
    frame = answers([f"sleep_{j}" for j in range(1, 6)], 0, 4).astype(object)
    frame.insert(0, "participant_id", [f"sub-{i:02}" for i in range(len(frame))])
    levels = {str(value): {"Description": word} for value, word in enumerate((*WORDS, "Always"))}
    described = {name: {"Description": f"Item {name}", "Levels": levels} for name in frame.columns[1:]}
    frame.loc[1, "sleep_1"] = "n/a"
    frame.to_csv(folder / "phenotype" / "sleep.tsv", sep="\t", index=False)
    tool = {"Description": "Sleep scale, short form.", "TermURL": "https://x.org/sleep"}
    content = {"MeasurementToolMetadata": tool} | described
    (folder / "phenotype" / "sleep.json").write_text(json.dumps(content))
    at = np.arange(len(frame))
    people = pd.DataFrame({"participant_id": frame["participant_id"], "age": at % 9 + 8})
    people = people.assign(sex=np.where(at % 2, "M", "F"), hand=np.where(at % 2, "right", "n/a"))
    people.to_csv(folder / "participants.tsv", sep="\t", index=False)
    sex = {"Description": "Sex", "Levels": {"M": "male", "F": "female"}}
    (folder / "participants.json").write_text(json.dumps({"age": {"Units": "years"}, "sex": sex}))
