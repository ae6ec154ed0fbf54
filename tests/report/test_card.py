"""The card of a model."""

import json
import re

import pandas as pd
import pytest

from icqf import ICQF
from icqf.data import Item, Questionnaire
from icqf.report import model_card
from icqf.report.card import front_matter
from small_study import table

STATED = {
    "instrument": "Mood Scale",
    "instrument_version": "2nd edition",
    "instrument_licence": "ask the publisher",
    "language": "en-GB",
    "sample": "pupils of two schools",
    "licence": "cc-by-4.0",
    "citation": "Doe (2026)",
    "contact": "a@b.org",
}


def study(n=150, *, names=lambda name: name, wording="Question {}", sex=("f", "m")):
    answers = pd.concat([table(seed=seed) for seed in range(9)], ignore_index=True).head(n)
    items = [name for name in answers.columns if name.startswith("q")]
    confounds = pd.DataFrame({"age": [8 + i % 9 for i in range(n)], "sex": [sex[i % 2] for i in range(n)]})
    described = [Item(names(q), wording=wording.format(q), min=0, max=3, reverse=q == "q03") for q in items]
    values = answers[items].apply(pd.to_numeric, errors="coerce").clip(0, 3).fillna(1)
    values = values.set_axis([names(q) for q in items], axis=1)
    return Questionnaire(values, tuple(described), confounds=confounds)


@pytest.fixture(scope="module")
def model():
    return ICQF(2, n_init=1).fit(study())


def section(text, heading):
    return re.search(rf"\n## {heading}\n(.*?)(\n## |\nMade by)", text, re.DOTALL)[1]


def test_what_the_program_knows_is_filled_in_and_the_rest_not_stated(model):
    text = model_card(model).as_markdown()
    assert text.startswith("# 2 factors behind 12 items\n")
    who = section(text, "Who was studied")
    assert "150 participants; survey weights were not used" in who and "answers from 0 to 3" in who
    assert "**age**: 8 to 16, mean about 12" in who and "**sex**: f 50%, m 50%" in who
    assert who.count("not stated") == 3
    assert "was set, not chosen by cross-validation" in section(text, "How it was made")
    assert "whether another study would find them was not estimated" in text
    limits = section(text, "What it must not be used for")
    assert "whose age is outside 8 to 16" in limits and "whose sex is something other than f and m" in limits
    assert (
        "which one was used is not stated" in limits and "share one model file per sample" in limits.lower()
    )
    assert "Question q03 (reversed)" in model_card(model, top=12).as_markdown()


def test_what_people_state_is_shown(model):
    text = model_card(model.set_about(**STATED)).as_markdown()
    model.set_about(**dict.fromkeys(STATED, ""))
    assert text.startswith("# Mood Scale: 2 factors behind 12 items\n") and "not stated" not in text
    assert "(Mood Scale, 2nd edition, en-GB)" in section(text, "What it must not be used for")
    rights = section(text, "Licence and citation")
    assert "[CC-BY-4.0](https://spdx.org/licenses/CC-BY-4.0.html)" in rights and "Doe (2026)" in rights
    assert "ask the publisher. The model's licence does not cover the instrument." in rights
    assert "wordings of 12 items" in rights


def test_front_matter_is_valid_for_any_licence(model):
    heads = {}
    for licence in ("cc-by-4.0", "MIT OR Apache-2.0", "mine: 'no'\n---\n# x", "LicenseRef-own", ""):
        card = model_card(model.set_about(licence=licence, language="no"))
        heads[licence] = front_matter(card)
        model.set_about(licence="", language="")
    assert heads["cc-by-4.0"].splitlines()[:3] == ["---", "license: cc-by-4.0", 'language: "no"']
    assert "license: other" in heads["MIT OR Apache-2.0"] and "license" not in heads[""]
    assert heads["mine: 'no'\n---\n# x"] == heads["MIT OR Apache-2.0"] == heads["LicenseRef-own"]


def test_shares_of_a_few_and_ranges_of_single_participants_are_not_shown():
    answers = study()
    rare = answers.confounds.assign(sex=["x" if i < 5 else "f" if i % 2 else "m" for i in range(150)])
    fitted = ICQF(2, n_init=1, smallest_category=5).fit(answers.with_confounds(rare))
    card = model_card(fitted)
    who = section(card.as_markdown(), "Who was studied")
    assert "**sex**: f, m, x\n" in who and "**age**: not shown" in who
    assert "beyond the sample's range" in card.as_markdown() and " 16" not in who
    assert "Do not share it." in card.cautions[0]
    assert "%" not in str(
        [each["what"] for each in json.loads(card.as_json())["models"]["model"]["confounds"]]
    )


@pytest.mark.parametrize(
    ("n", "items", "cautioned"), [(19, 12, True), (20, 12, False), (60, 3, True), (60, 4, False)]
)
def test_models_that_reveal_answers_are_cautioned_about(n, items, cautioned):
    answers = study(n).with_confounds(None).select([f"q{i:02d}" for i in range(1, items + 1)])
    cautions = model_card(ICQF(1, n_init=1).fit(answers)).cautions
    assert any("Do not share it." in each for each in cautions) == cautioned


EVIL = "a|b <script>alert(1)</script>\n# x \u202egnirts \x1b[31m [y](javascript:z) `c`"


def test_names_and_texts_cannot_change_the_page():
    names = {f"q{i:02d}": f"{EVIL}{i}" for i in range(1, 13)}
    fitted = ICQF(2, n_init=1).fit(study(names=names.get, wording=EVIL + "{}", sex=(EVIL, "m")))
    fitted.set_about(**{name: EVIL for name in STATED if name != "language"})
    card = model_card(fitted, file="my model`|<b>.icqf")
    text = card.as_markdown()
    plain, tables = re.sub(r"`[^`\n]*`", "", text), [row for row in text.splitlines() if row.startswith("|")]
    assert not any(sign in text for sign in ("<script", "\u202e", "\x1b"))
    assert not re.search(r"(?<!\\)\[y", plain)
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in tables} == {4}
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert len(headings) == 1 + 6 + 2  # title, sections, factors
    assert json.loads(card.as_json())["about"]["sample"] == " ".join(re.sub("[\u202e\x1b]", "", EVIL).split())
    assert "<script>alert" not in card.as_html()
