"""The page about one person: what it says, and hostile texts."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF
from icqf.analyses import UsualAnswers, describe_person
from icqf.data.questionnaire import Questionnaire
from icqf.datasets import load_demo
from icqf.report import person_page
from report_names import NASTY


@pytest.fixture(scope="module")
def demo():
    return load_demo().select(["q00*", "q01*"])


@pytest.fixture(scope="module")
def model(demo):
    return ICQF(2, beta=0.2, n_init=1).fit(demo).name_factors(["Mood", "Temper"])


@pytest.fixture(scope="module")
def usual(model):
    return UsualAnswers.of(model)


def ranked(**percentiles):
    """Percentiles with their likely ranges."""
    found = pd.DataFrame({"percentile": pd.Series(percentiles)})
    return found.assign(low=found["percentile"] - 9, high=found["percentile"] + 20)


def page_of(model, answers, usual, **more):
    return person_page(describe_person(model, answers, usual=usual), model, **more)


def test_the_page_says_what_the_person_holds(demo, model, usual):
    person = describe_person(model, demo.take([5]), usual=usual)
    text = person_page(person, model).as_text(2000)
    assert "Private: this page holds one person’s answers" in text and "not a diagnosis" in text
    for name, score in person.scores.items():
        assert name in text and f"{score:.2f}" in text
    top = person.raises["Mood"].idxmax()
    wording = next(item.wording for item in demo.items if item.name == top)
    assert f"“{wording}”" in text and f"+{person.raises['Mood'].max():.2f}" in text
    assert "true score of 90 in 100 people" in text and "would be listed here by chance" in text
    assert "loading" not in text and "factor" not in text.lower().replace("factorization", "")
    assert (
        "not compared with those of other people" in text
        and "Percentile" not in text
        and "Since visit" not in text
    )


def test_percentiles_come_with_their_reference(demo, model, usual):
    reference = "Reference sample: 600 children of the demo, aged 6 to 17."
    percentiles = ranked(Mood=73.2, Temper=np.nan)
    text = page_of(model, demo.take([5]), usual, percentiles=percentiles, reference=reference).as_text(2000)
    assert "not compared" not in text and reference in text and " 73 (likely 64–93)\n" in text
    assert "Half of all people are between 25 and 75" in text


def test_a_score_of_zero_says_how_many_share_it(demo, model, usual):
    """Nobody scores lower than 0: its percentile is half of the share of people who have it."""
    person = describe_person(model, demo.take([5]), usual=usual)
    person = replace(person, scores=pd.Series({"Mood": 0.0, "Temper": 0.3}))
    page = person_page(
        person,
        model,
        percentiles=ranked(Mood=21.0, Temper=60.0),
        reference="Reference sample: 600 children.",
        alike="age (9) and sex (male)",
    )
    text = page.as_text(2000)
    assert (
        "21 (42 of 100 have 0; likely 12–41)" in text
        and "of 100 people of the same age (9) and sex (male)" in text
    )


def test_change_is_told_in_words_and_signs(demo, model, usual):
    """From nothing to everything, and back; not by colour alone."""
    ends = []
    for high in (False, True):
        row = {item.name: item.max if item.reverse != high else item.min for item in demo.items}
        ends.append(
            Questionnaire(
                answers=pd.DataFrame([row], index=["one"], dtype=float),
                items=demo.items,
                confounds=demo.confounds.iloc[[0]].set_axis(["one"]),
            )
        )
    low, high = ends
    up = person_page(describe_person(model, high, before=low, usual=usual), model, visit="2", before="1")
    down = person_page(describe_person(model, low, before=high, usual=usual), model, visit="2", before="1")
    same = person_page(describe_person(model, low, before=low, usual=usual), model, visit="2", before="1")
    assert "▲ higher (" in up.as_text(2000) and "Since visit 1" in up.as_text(2000)
    assert "▼ lower (" in down.as_text(2000) and "No score reaches 0.1" in down.as_text(2000)
    assert "no clear change (0.00 → 0.00)" in same.as_text(2000)


def test_left_out(demo, model, usual):
    answers = demo.take([5])
    some = answers.answers.copy()
    some.iloc[0, 2:12] = np.nan
    text = page_of(model, replace(answers, answers=some), usual).as_text(2000)
    n = int(some.isna().sum(axis=1).iloc[0])
    assert f"{n} of {demo.n_items} questions: “" in text and f"; and {n - 6} more" in text
    some.iloc[0] = np.nan
    page = page_of(model, replace(answers, answers=some), usual)
    assert f"None of {demo.n_items} questions answered, so there are no scores" in page.as_text(2000)


@pytest.mark.parametrize("text", [NASTY, "=cmd|' /C calc'!A0", "a\u202eb", "x" * 500])
def test_hostile_texts_are_only_text(demo, model, usual, text):
    items = tuple(
        replace(item, wording=f"{text} {item.name}", labels=((0.0, text), (1.0, text), (2.0, text)))
        for item in demo.items
    )
    answers = demo.answers.iloc[[5]].set_axis([text])
    one = Questionnaire(answers=answers, items=items, confounds=demo.confounds.iloc[[5]].set_axis([text]))
    html = page_of(model, one, usual, visit=text, before=text).as_html()
    assert NASTY not in html and "<script" not in html
    assert "x" * 100 not in html
    page_of(model, one, usual).as_markdown(), page_of(model, one, usual).as_json()


def test_hostile_names_of_factors(demo, usual):
    model = ICQF(2, beta=0.2, n_init=1).fit(demo).name_factors([NASTY, "<b>Temper & more</b>"])
    html = page_of(model, demo.take([5]), usual).as_html()
    assert NASTY not in html and "<b>Temper" not in html and "&lt;b&gt;Temper &amp; more" in html


def test_same_person_same_bytes_and_nothing_loaded(demo, model, usual):
    html = page_of(model, demo.take([5]), usual).as_html()
    assert html == page_of(model, demo.take([5]), UsualAnswers.of(model)).as_html()
    assert "default-src 'none'" in html and "http://" not in html and "https://" not in html


def test_outside_the_norms_the_page_says_why(demo, model, usual):
    percentiles = ranked(Mood=np.nan, Temper=np.nan)
    why = "age is outside 6 to 18"
    page = page_of(
        model, demo.take([5]), usual, percentiles=percentiles, reference="Reference sample: 600.", unknown=why
    )
    assert f"not compared with those of other people: {why}. Reference sample" in page.as_text(2000)
    assert "Percentile" not in page.as_text(2000)


def test_who_filled_in_the_form_and_when_to_worry(demo, model, usual):
    text = page_of(model, demo.take([5]), usual, visit="2", informant="mother").as_text(2000)
    assert "questions answered at visit 2, filled in by: mother. Each score" in text
    assert "no number here says when to worry" in text
    assert "filled in by" not in page_of(model, demo.take([5]), usual).as_text(2000)


def test_reversed_items_do_not_describe_a_factor_by_its_opposite(demo):
    other = replace(demo, items=tuple(replace(item, reverse=True) for item in demo.items))
    model = ICQF(1, beta=0.2, n_init=1).fit(other)
    text = page_of(model, other.take([5]), UsualAnswers.of(model)).as_text(2000)
    assert "such as: the opposite of “" in text
