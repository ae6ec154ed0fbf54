"""Codebooks come back as they were written; mistakes in them are named by row and column."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from icqf.data.questionnaire import Item
from icqf.errors import InputError
from icqf.io import Table, codebook_from, read_codebook, read_questionnaire, write_codebook

words = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Zl", "Zp")), max_size=15).map(
    str.strip
)
wordings = words
items = st.builds(
    Item,
    name=st.from_regex(r"\A[a-z=+@-][a-z0-9_]{1,8}\Z").filter(lambda s: s not in ("nan", "null", "none")),
    wording=wordings,
    min=st.just(0.0),
    max=st.sampled_from([1.0, 2.5, 4.0]),
    reverse=st.booleans(),
    subscale=st.sampled_from(["", "Mood", "-odd", "=1+1"]),
    missing_codes=st.sampled_from([(), (9.0,), (-9.0, 99.0), ("refused",)]),
    labels=st.sampled_from([(), ((0.0, "never"), (1.0, "often"))]),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(st.lists(items, min_size=1, max_size=5, unique_by=lambda item: item.name))
@pytest.mark.parametrize("ending", ["csv", "toml"])
def test_round_trip(tmp_path, ending, written):
    path = tmp_path / f"items.{ending}"
    write_codebook(written, path)
    assert read_codebook(path) == tuple(written)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("item_name,min,max\nq1,0,1\n", "no column 'name'"),
        ("name,min,max\nq1,zero,1\n", "row 2, column 'min' holds the text 'zero'"),
        ("name,min,max\nq1,0,1\nq2,3,1\n", "row 3: Item 'q2'"),
        ("name,min,max\nq1,0,1\nq1,0,1\n", "row 3 describes the item 'q1' a second time"),
        ("name,min,max\n,0,1\n", "row 2 has no item name"),
        ("name,direction\nq1,sideways\n", "row 2, column 'direction' holds 'sideways'"),
        ("name,labels\nq1,never; often\n", "row 2, column 'labels' holds the label 'never' without a value"),
    ],
)
def test_mistakes(tmp_path, text, words):
    path = tmp_path / "items.csv"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_codebook(path)
    assert str(error.value).startswith("items.csv: ") and words in str(error.value)


def test_toml_mistakes(tmp_path):
    path = tmp_path / "items.toml"
    for text, words in (
        ("[[item]]\nname = 'q1'\nmini = 0\n", "Did you mean 'min'"),
        ("[[item]\n", "not valid TOML"),
        ("item = 3\n", "[[item]]"),
        ("\n# nothing\n", "no item"),
    ):
        path.write_text(text)
        with pytest.raises(InputError) as error:
            read_codebook(path)
        assert words in str(error.value)
    path.write_text(
        '[[item]]\nname = "q1"\nmin = 0\nmax = 2\nmissing = [9, "refused"]\nlabels = {0 = "no", 2 = "yes"}\n'
    )
    assert read_codebook(path)[0].missing_codes == (9.0, "refused")


def test_a_guessed_codebook():
    frame = pd.DataFrame(
        {
            "id": ["a", "b", "c", "d"],
            "m1": [0, 1, 1, 0],
            "m2": [1, 0, 99, 1],
            "f1": [0, 3, 2, 1],
            "age": [6.5, 7.1, 8.2, 9.9],
            "name": ["x", "y", "z", "w"],
        }
    )
    guessed = codebook_from(Table(frame, "t", np.arange(4), id="id"))
    assert [(item.name, item.min, item.max, item.missing_codes) for item in guessed] == [
        ("m1", 0, 1, ()),
        ("m2", 0, 1, (99.0,)),
        ("f1", 0, 3, ()),
    ]


def test_codebook_over_file_and_shared_codes(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("id,fam,age,q1,q2,q3\n1,007,9,0,9,refused\n2,007,8,9,4,1\n")
    book = [
        Item("q1", min=0, max=4, missing_codes=(9,)),
        Item("q2", min=0, max=10),
        Item("q3", min=0, max=2, reverse=True),
    ]
    study = read_questionnaire(
        path,
        codebook=[*book, Item("age", missing_codes=(9,))],
        confounds="age",
        groups="fam",
        missing_codes=[9, "refused"],
    )
    assert study.answers["q1"].isna().tolist() == [False, True]
    assert study.answers["q2"].tolist() == [9, 4]
    assert study.answers["q3"].isna().tolist() == [True, False]
    assert study.confounds is not None and study.confounds["age"].isna().tolist() == [True, False]
    assert study.groups is not None and study.groups.tolist() == ["007", "007"]
    text = " ".join(study.notes)
    for words in (
        "9 was read as missing in 1 answer of 1 item",
        "9 is an answer",
        "text declared as missing",
        "reverse-keyed",
    ):
        assert words in text
    with pytest.raises(InputError, match="codebook's item 'q4' is no column"):
        read_questionnaire(path, codebook=[*book, Item("q4")], missing_codes=["refused"])
    with pytest.raises(InputError, match="'age' is named as an item and as"):
        read_questionnaire(path, items=["age", "q1"], confounds=["age"])
    with pytest.raises(
        InputError, match=r"Item 'q2' holds 9, above its highest answer 4 \(row 2, participant '1'\)"
    ):
        read_questionnaire(path, codebook=[Item("q2", min=0, max=4)])


def test_observed_ranges_are_said(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("q1,q2,age\n0,3,7.5\n1,2,8.25\n")
    study = read_questionnaire(path)
    assert study.ranges().to_numpy().tolist() == [[0, 3], [0, 3]]
    assert any("0 to 3" in note for note in study.notes)
    assert any("'age'" in note for note in study.notes)
    assert any("numbered" in note for note in study.notes)
    assert list(study.answers.index) == ["1", "2"]
