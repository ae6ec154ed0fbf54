"""Tables with one row per answer become tables with one row per participant, and nothing is lost."""

import numpy as np
import pandas as pd
import pyreadstat
import pytest

from icqf.errors import InputError
from icqf.io import StudyFiles, read_questionnaire

ITEMS = ["mood", "sleep", "food", "work"]


def wide(visits=1, n=12):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": np.repeat([f"P{i}" for i in range(n)], visits)})
    frame = frame.assign(age=np.repeat(rng.integers(8, 20, n), visits))
    if visits > 1:
        frame = frame.assign(wave=np.tile(np.arange(1, visits + 1), n))
    frame[ITEMS] = rng.integers(0, 4, (len(frame), 4))
    return frame


def long(frame, item="item", answer="answer"):
    keys = [name for name in frame.columns if name not in ITEMS]
    return frame.melt(keys, ITEMS, var_name=item, value_name=answer)


@pytest.fixture
def save(tmp_path):
    def call(frame, name="a.csv"):
        frame.to_csv(tmp_path / name, index=False)
        return tmp_path / name

    return call


def same(path, frame, **options):
    read = read_questionnaire(path, confounds=["age"], **options)
    np.testing.assert_array_equal(read.answers[ITEMS].to_numpy(), frame[ITEMS].to_numpy())
    assert list(read.answers.index) == list(frame["id"]) and list(read.answers.columns) == ITEMS
    np.testing.assert_array_equal(read.confounds["age"], frame["age"])
    return read


def test_it_is_recognised_whatever_the_order_of_rows(save):
    read = same(save(long(wide())), wide())
    assert "Each of the 48 rows is one answer: the 4 items in 'item' became columns" in " ".join(read.notes)
    shuffled = long(wide()).sample(frac=1, random_state=1)
    frame = wide().set_index("id").loc[shuffled["id"].unique()].reset_index()
    order = shuffled["item"].unique()
    read = read_questionnaire(save(shuffled))
    np.testing.assert_array_equal(read.answers[order].to_numpy(), frame[order].to_numpy())


def test_other_names_are_told(save):
    path = save(long(wide(), "what", "how_much"))
    same(path, wide(), long=("what", "how_much"))
    with pytest.raises(InputError, match="no column 'wht' to use as the items"):
        read_questionnaire(path, long=("wht", "how_much"))
    with pytest.raises(InputError, match="long must be the columns of items and of answers"):
        StudyFiles.of({"answers": "a.csv", "long": ["item"]})


def test_visits_stay_visits(save):
    path = save(long(wide(visits=3)))
    with pytest.raises(InputError, match="'wave' holds 1"):
        read_questionnaire(path)
    same(path, wide(visits=3).query("wave == 2"), visit="wave=2")


def test_unanswered_items_are_missing_and_columns_of_answers_left_out(save):
    frame = long(wide()).assign(seconds=np.arange(48), text="x").drop(index=[5, 17])
    read = read_questionnaire(save(frame))
    assert int(read.answers.isna().sum().sum()) == 2
    assert "differ between answers of one participant: 'seconds'" in " ".join(read.notes)


def test_doubled_answers_are_named_and_a_choice_is_offered(save):
    frame = long(wide())
    again = frame.iloc[[3]].assign(answer=(frame["answer"].iloc[3] + 1) % 4)
    path = save(pd.concat([frame, again]))
    with pytest.raises(InputError) as error:
        read_questionnaire(path)
    first, last = frame["answer"].iloc[3], again["answer"].iloc[0]
    said = f"'P3' answered 'mood' with {first} in row 5, and with {last} in row 50"
    assert said in str(error.value) and "doubled='first'" in str(error.value)
    values = {
        how: read_questionnaire(path, doubled=how).answers.loc["P3", "mood"]
        for how in ("first", "last", "leave-out")
    }
    assert values["first"] == first and values["last"] == last and np.isnan(values["leave-out"])
    same(save(pd.concat([frame, frame.iloc[[3]]])), wide())  # the same answer twice says nothing new


def test_items_that_are_numbered_get_names(save):
    frame = long(wide())
    numbered = frame.assign(item=frame["item"].map({name: j for j, name in enumerate(ITEMS, 1)}))
    assert list(read_questionnaire(save(numbered)).answers.columns) == ["item1", "item2", "item3", "item4"]


def test_labels_of_the_answers_are_those_of_every_item(tmp_path):
    frame = long(wide()).drop(columns="age")
    labels = {"answer": {0: "never", 1: "rarely", 2: "often", 3: "always", 9: "Refused"}}
    pyreadstat.write_sav(frame, str(tmp_path / "a.sav"), variable_value_labels=labels)
    read = read_questionnaire(tmp_path / "a.sav")
    assert [(item.min, item.max, item.missing_codes) for item in read.items] == [(0, 3, (9,))] * 4


def irw(n=30, low=0, high=3):
    """A table of the Item Response Warehouse."""
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.integers(low, high + 1, (n, 4)), columns=ITEMS).assign(id=np.arange(1, n + 1))
    return wide.melt("id", ITEMS, var_name="item", value_name="resp")


def test_item_response_warehouse(save):
    table = irw().assign(rt=np.linspace(0.5, 9, 120), date=1.2e9 + np.arange(120))
    table["cov_age"], table["cov_sex"] = table["id"] % 7 + 20, np.where(table["id"] % 2, "m", "f")
    table["itemcov_words"] = table["item"].str.len()
    table["resp"] = table["resp"].astype(object).where(table.index != 5, "NA")
    read = read_questionnaire(save(table), confounds=["cov_age"])
    assert list(read.answers.columns) == ITEMS and np.isnan(read.answers.loc["6", "mood"])
    notes = " ".join(read.notes)
    assert "can be confounds: 'cov_age', 'cov_sex'." in notes and "describe items: 'itemcov_words'" in notes
    assert "differ between answers of one participant: 'rt', 'date'" in notes
    assert read.confounds["cov_age"].iloc[0] == 21


def test_item_texts_of_the_warehouse_are_a_codebook(save):
    texts = pd.DataFrame([(item, word, code) for item in ITEMS for code, word in enumerate("abcd")])
    texts = texts.set_axis(["item", "option_text", "resp"], axis=1).assign(instrument="Scale", table="t")
    texts["item_text"] = "About " + texts["item"]
    read = read_questionnaire(save(irw()), codebook=save(texts, "texts.csv"))
    assert [(item.name, item.wording, item.min, item.max) for item in read.items] == [
        (name, f"About {name}", 0, 3) for name in ITEMS
    ]
    assert read.items[0].labels == tuple(enumerate("abcd")) and read.about.instrument == "Scale"


def test_raters_and_repeated_answers_are_told_apart(save):
    both = pd.concat([irw().assign(rater="parent"), irw(low=1).assign(rater="teacher")])
    path = save(both)
    with pytest.raises(InputError, match=r"'rater' holds parent .* and teacher .* distinguishes raters"):
        read_questionnaire(path)
    teacher = read_questionnaire(path, visit="rater=teacher")
    assert len(teacher.answers) == 30 and teacher.answers.to_numpy().min() == 1
    with pytest.raises(InputError, match="28 participants have different answers to one item: '3' answered"):
        read_questionnaire(save(both.drop(columns="rater")))


def crossed(n=400):
    """Students who rate some of many lecturers, under names that say nothing."""
    rng = np.random.default_rng(0)
    pairs = [(s, d) for s in range(n // 8) for d in rng.choice(40, 8, replace=False)]
    table = pd.DataFrame(pairs, columns=["s", "d"])
    return table.assign(year=table["s"] % 4, y=rng.integers(1, 6, n), service=rng.integers(0, 2, n))


def test_answers_under_names_that_say_nothing(save):
    path = save(crossed())
    with pytest.raises(InputError, match=r"'s' has 50 values and 'd' 40.* id='s' long=\['d', 'y'\]"):
        read_questionnaire(path)
    read = read_questionnaire(path, id="s", long=("d", "y"))
    assert read.answers.shape == (50, 40) and int(read.answers.notna().to_numpy().sum()) == 400
    assert read_questionnaire(path, long="no", items=["y"]).answers.shape == (400, 1)


def test_items_that_happen_not_to_repeat_together_are_items(save):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 101, (250, 4)), columns=["a", "b", "c", "d"]).assign(e=1)
    table["e"] = rng.integers(0, 5, 250)
    assert read_questionnaire(save(table), items=["a", "b"]).answers.shape == (250, 2)


def test_few_of_many_items_answered(save):
    kept = irw(n=200).sample(frac=0.2, random_state=0).sort_values("id")
    assert read_questionnaire(save(kept)).answers.notna().to_numpy().sum() == len(kept)


def test_a_table_of_items_as_columns_is_left_alone(save):
    frame = wide().assign(value=1, item=[f"x{j}" for j in range(12)])
    assert read_questionnaire(save(frame), items=ITEMS).answers.shape == (12, 4)
    with pytest.raises(InputError, match="the id 'P0' in column 'id' appears in rows 2 and 14"):
        read_questionnaire(save(long(wide())), long="no", items="answer")


def test_items_are_in_the_order_of_their_numbers(save):
    """Somebody who left out an item may be the first in the file."""
    rows = [(f"P{i}", f"Q{j}", (i + j) % 4) for i in range(12) for j in (10, 9, 2, 1, 3) if (i, j) != (0, 2)]
    read = read_questionnaire(save(pd.DataFrame(rows, columns=["id", "item", "resp"])))
    assert list(read.answers.columns) == ["Q1", "Q2", "Q3", "Q9", "Q10"]
    assert read.answers.loc["P1"].tolist() == [2, 3, 0, 2, 3] and np.isnan(read.answers.loc["P0", "Q2"])


def test_answers_in_fractions(save):
    frame = long(wide(), answer="resp").assign(resp=lambda table: table["resp"] / 3)
    read = read_questionnaire(save(frame))
    assert list(read.answers.columns) == ITEMS and read.items[0].max is None
    np.testing.assert_allclose(read.answers.to_numpy(), wide()[ITEMS].to_numpy() / 3)


def test_an_empty_answer_beside_another_is_none(save):
    rows = long(wide()).astype({"answer": float})
    empty = rows.iloc[:2].assign(answer=np.nan)
    same(save(pd.concat([empty, rows])), wide())


def test_answers_without_ids_are_not_a_table_of_participants(save):
    path = save(long(wide()).drop(columns="id"))
    with pytest.raises(InputError, match="looks like one answer, by the columns 'item' and 'answer', but no"):
        read_questionnaire(path)
    assert len(read_questionnaire(path, long="no", items=["answer", "age"]).answers) == 48
