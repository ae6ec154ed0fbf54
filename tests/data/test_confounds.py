"""Confounds become columns between 0 and 1, by what was learned at fit and nothing else."""

import json
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icqf import ICQF
from icqf.data.confounds import ConfoundEncoder
from icqf.errors import InputError

Encoder = partial(ConfoundEncoder, smallest_category=1)  # so that a handful of participants will do


@pytest.fixture
def people():
    return pd.DataFrame(
        {"age": [6.0, 8.5, 11.0, 16.0], "sex": ["Male", "Female", "Female", "Male"]},
        index=["P1", "P2", "P3", "P4"],
    )


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=30),
    st.lists(st.sampled_from(["a", "b", "c"]), min_size=3, max_size=30),
    st.booleans(),
)
def test_every_column_is_between_0_and_1_and_partitions_add_up(numbers, groups, intercept):
    n = min(len(numbers), len(groups))
    frame = pd.DataFrame({"x": numbers[:n], "group": groups[:n]})
    if frame["x"].nunique() < 3:
        return
    encoder = Encoder(intercept=intercept).fit(frame)
    design = encoder.transform(frame)
    assert design.shape == (n, len(encoder.names))
    assert design.min() >= 0 and design.max() <= 1
    for partition in encoder.partitions:
        np.testing.assert_allclose(design[:, partition].sum(axis=1), 1)
    assert len(set(encoder.names)) == len(encoder.names)
    if intercept:
        assert encoder.names[-1] == "Intercept" and (design[:, -1] == 1).all()


def test_the_design(people):
    encoder = Encoder(ranges={"age": (6, 16)}).fit(people)
    assert encoder.names == ("Old", "Young", "Female", "Male", "Intercept")
    assert encoder.partitions == ((0, 1), (2, 3))
    assert encoder.transform(people).tolist() == [
        [0.0, 1.0, 0.0, 1.0, 1.0],
        [0.25, 0.75, 1.0, 0.0, 1.0],
        [0.5, 0.5, 1.0, 0.0, 1.0],
        [1.0, 0.0, 0.0, 1.0, 1.0],
    ]


def test_a_known_range_is_used_instead_of_the_observed_one(people):
    encoder = Encoder(ranges={"age": (1, 21)}).fit(people)
    np.testing.assert_allclose(encoder.transform(people)[:, 0], [0.25, 0.375, 0.5, 0.75])
    assert Encoder().fit(people).transform(people)[:, 0].tolist() == [0, 0.25, 0.5, 1]


def test_what_was_learned_is_reused(people):
    """The same person has the same design in any company."""
    encoder = Encoder().fit(people)
    whole = encoder.transform(people)
    for i in range(4):
        assert encoder.transform(people.iloc[[i]]).tolist() == whole[[i]].tolist()
    reordered = people[["sex", "age"]].assign(more=1)
    assert encoder.transform(reordered).tolist() == whole.tolist()


def test_names():
    frame = pd.DataFrame(
        {
            "Age": [1.0, 2, 3],
            "iq": [90.0, 100, 110],
            "adopted": [True, False, True],
            "site": [1, 2, 1],
            "mother": ["yes", "no", "yes"],
            "father": ["yes", "no", "no"],
            "grade": pd.Categorical(["Old", "b", "b"]),
        }
    )
    assert Encoder().fit(frame).names == (
        *("Age: Old", "Young"),
        *("iq: high", "iq: low"),
        *("adopted: 0", "adopted: 1"),
        *("site: 1", "site: 2"),
        *("mother: no", "mother: yes"),
        *("father: no", "father: yes"),
        *("grade: Old", "b"),
        "Intercept",
    )


@pytest.mark.parametrize("kind", ["pandas", "polars", "mapping", "series", "array", "nullable"])
def test_every_kind_of_table(people, kind):
    age = people["age"]
    given_as = {
        "pandas": people[["age"]],
        "polars": pl.DataFrame({"age": age.to_list()}),
        "mapping": {"age": age.to_list()},
        "series": age,
        "array": age.to_numpy(),
        "nullable": people[["age"]].astype("Float64"),
    }[kind]
    encoder = Encoder().fit(given_as)
    assert encoder.transform(given_as)[:, 0].tolist() == [0, 0.25, 0.5, 1]
    assert encoder.names[:2] == (
        ("confound1: high", "confound1: low") if kind == "array" else ("Old", "Young")
    )


def test_two_numbers_are_categories_and_three_are_not():
    two, three = ({"x": values} for values in ([0, 1, 1, 0], [0, 1, 2, 0]))
    assert Encoder().fit(two).names == ("x: 0", "x: 1", "Intercept")
    assert Encoder().fit(three).names == ("x: high", "x: low", "Intercept")
    floats = Encoder().fit(two).transform({"x": [1.0, 0.0]})
    assert floats.tolist() == [[0, 1, 1], [1, 0, 1]]


def test_without_confounds_there_is_the_intercept():
    assert Encoder().fit(None).transform(None, n_rows=3).tolist() == [[1], [1], [1]]
    assert Encoder(intercept=False).fit(None).transform(None, n_rows=3).shape == (3, 0)


# --- missing and unusual values --------------------------------------------------------------------


def test_a_missing_confound_is_the_mean_of_the_fitted_sample(people):
    """Of the fitted sample, not of whoever is scored together with that person."""
    encoder = Encoder(missing="mean").fit(people)
    new = pd.DataFrame({"age": [np.nan, 16.0, 16.0], "sex": [None, "Male", "Male"]})
    design = encoder.transform(new)
    x = (people["age"].mean() - 6) / 10
    np.testing.assert_allclose(design[0], [x, 1 - x, 0.5, 0.5, 1])
    np.testing.assert_allclose(encoder.transform(new.iloc[[0]])[0], design[0])
    restored = ConfoundEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    np.testing.assert_array_equal(restored.transform(new), design)


def test_the_shares_of_unequal_groups(people):
    encoder = Encoder(missing="mean").fit(people.assign(sex=["Male", "Female", "Female", None]))
    np.testing.assert_allclose(encoder.transform(people.assign(sex=None))[:, 2:4], [[2 / 3, 1 / 3]] * 4)


def test_a_missing_confound_is_refused(people):
    encoder = Encoder().fit(people)
    message = (
        r"Confound 'age' is missing for participant 'P2', and 1 more\. Fill it in, leave these participants "
        r"out, or fit the model with missing_confounds='mean' to use the sample mean\."
    )
    with pytest.raises(InputError, match=message):
        encoder.transform(people.assign(age=[6, None, None, 16]))
    with pytest.raises(InputError, match=r"Confound 'sex' is missing for participant 'P3'\. Fill"):
        encoder.transform(people.assign(sex=["Male", "Male", pd.NA, "Male"]))


def test_a_value_outside_the_range_is_clipped_with_a_warning(people):
    encoder = Encoder().fit(people)
    message = (
        r"Confound 'age' is outside the fitted range 6 to 16 for 2 participants, first 'P1' "
        r"with 5; the nearest end of the range is used\."
    )
    with pytest.warns(UserWarning, match=message):
        design = encoder.transform(people.assign(age=[5, 8, 9, 40]))
    assert design[[0, 3], 0].tolist() == [0, 1]


def test_an_unseen_category_is_refused(people):
    encoder = Encoder().fit(people)
    message = (
        r"Confound 'sex' is 'female' for participant 'P2', but the model was fitted with 'Female', 'Male'\. "
        r"Recode it as one of these, or leave the participant out\."
    )
    with pytest.raises(InputError, match=message):
        encoder.transform(people.replace("Female", "female"))


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"age": [None] * 4}, {}, r"Confound 'age' is missing for everybody; leave it out\."),
        ({"age": 7}, {}, r"Confound 'age' has the same value 7 for everybody, .* leave it out\."),
        (
            {"age": [6, 7, np.inf, 9]},
            {},
            r"Confound 'age' is infinite in row 'P3'; correct it or leave it out\.",
        ),
        (
            {"born": pd.date_range("2010", periods=4)},
            {},
            r"Confound 'born' holds 2010-01-01 .*neither a number nor text; give a number, such as an age",
        ),
        ({}, {"ranges": {"agee": (5, 20)}}, r"names 'agee', .* \('age', 'sex'\)\. Did you mean 'age'\?"),
        (
            {},
            {"ranges": {"age": (20, 5)}},
            r"gives 'age' the range 20 to 5; the first number must be the lower",
        ),
        ({}, {"ranges": {"age": 20}}, r"confound_ranges gives 'age' 20; give \(lowest, highest\)"),
        ({}, {"ranges": {"age": (5, np.inf)}}, r"gives 'age' the range 5 to inf"),
        (
            {},
            {"ranges": {"sex": (0, 1)}},
            r"'sex' has a range .* but holds 'Male' \(row 'P1'\); give numbers\.",
        ),
    ],
)
def test_confounds_that_cannot_be_used(people, change, options, message):
    with pytest.raises(InputError, match=message):
        Encoder(**options).fit(people.assign(**change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"age": ["6", "7", "old", "9"]}, r"was numeric .* but now holds 'old' \(row 'P3'\); give numbers\."),
        (
            {"age": pd.date_range("2010", periods=4)},
            r"'age' was numeric .* but now holds Timestamp.* give numbers",
        ),
        ({"age": [6, 7, np.inf, 9]}, r"Confound 'age' is infinite in row 'P3'; correct it\."),
    ],
)
def test_confounds_that_have_changed(people, change, message):
    encoder = Encoder().fit(people)
    change = {name: pd.Series(values, index=people.index) for name, values in change.items()}
    with pytest.raises(InputError, match=message):
        encoder.transform(people.assign(**change))


def test_confounds_that_are_not_there(people):
    encoder = Encoder().fit(people)
    with pytest.raises(
        InputError, match=r"'sex' is not among the columns given \('age', 'Sex'\)\. Did you mean 'Sex'"
    ):
        encoder.transform(people.rename(columns={"sex": "Sex"}))
    with pytest.raises(
        InputError, match=r"fitted with the confounds 'age', 'sex'; give confounds= with them\."
    ):
        encoder.transform(None)
    with pytest.raises(
        InputError, match=r"fitted without confounds, but confounds were given; leave them out"
    ):
        Encoder().fit(None).transform(people)
    with pytest.raises(InputError, match=r"Confound 'age' is given twice; keep one column of that name\."):
        Encoder().fit(people[["age", "sex", "age"]])
    with pytest.raises(InputError, match=r"The confounds have the shape \(2, 2, 2\); give a table"):
        Encoder().fit(np.zeros((2, 2, 2)))


def test_what_was_learned_survives_json(people):
    people = people.assign(adopted=[True, False, True, True], site=[3, 4, 3, 4])
    encoder = Encoder(ranges={"age": (5, 20)}, missing="mean").fit(people)
    restored = ConfoundEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert restored.names == encoder.names
    np.testing.assert_array_equal(restored.transform(people), encoder.transform(people))


# --- in the model ----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:All loadings are 0")
def test_what_goes_with_a_confound_is_found_there():
    """Answers that differ by sex and age alone are explained by the confounds, and not by factors."""
    rng = np.random.default_rng(0)
    n = 300
    people = pd.DataFrame({"age": rng.uniform(6, 18, n), "sex": rng.choice(["F", "M"], n)})
    x = (people["age"] - 6) / 12
    answers = np.column_stack([3 * x, 1 + 2 * (people["sex"] == "F"), 4 - 3 * x, np.full(n, 2.0)])
    answers = np.clip(answers + rng.normal(0, 0.05, answers.shape), 0, 4)
    model = ICQF(1, item_range=(0, 4), beta=0.01, confound_ranges={"age": (6, 18)}).fit(
        answers, confounds=people
    )
    found = model.confound_loadings_
    assert found.columns.tolist() == ["Old", "Young", "F", "M", "Intercept"]
    assert found["Old"].to_numpy() == pytest.approx([3, 0, 0, 0], abs=0.2)
    assert found["F"].to_numpy() == pytest.approx([0, 2, 0, 0], abs=0.2)
    assert found["Young"].to_numpy() == pytest.approx([0, 0, 3, 0], abs=0.2)
    summary = model.summary()
    assert summary.variance_explained > 0.95 and summary.factors["variance_explained"].sum() < 0.01


def test_no_intercept():
    rng = np.random.default_rng(0)
    answers = rng.integers(0, 5, (30, 6))
    model = ICQF(2, item_range=(0, 4), intercept=False).fit(answers)
    assert model.confound_names_ == [] and model.confound_loadings_.shape == (6, 0)
    model.fit(answers, confounds={"x": rng.random(30)})
    assert model.confound_names_ == ["x: high", "x: low"]


@pytest.mark.parametrize("other", [[1, 2, 1, 2], [1.0, 2.0, 1.0, 2.0], ["01", "02", "01", "02"]])
def test_categories_that_are_numbers_are_the_same_whatever_their_type(other):
    texts = Encoder().fit(pd.DataFrame({"gender": ["1", "2", "2", "1"]}))
    assert texts.names[:2] == Encoder().fit(pd.DataFrame({"gender": [1, 2, 2, 1]})).names[:2]
    np.testing.assert_array_equal(texts.transform(pd.DataFrame({"gender": other}))[:, 0], [1, 0, 1, 0])
    mixed = Encoder().fit(pd.DataFrame({"gender": [1, "1", 2, "2"]}, dtype=object))
    assert mixed.columns[0].categories == (1, 2)


def test_codes_that_differ_only_in_zeros_stay_apart():
    encoder = Encoder().fit(pd.DataFrame({"site": ["1", "01", "2"]}))
    assert len(encoder.columns[0].categories) == 3
    design = encoder.transform(pd.DataFrame({"site": ["01", "1", "02"]}))
    np.testing.assert_array_equal(design[:, :3].argmax(axis=1), [2, 0, 1])
    with pytest.raises(InputError, match="'001'"):
        encoder.transform(pd.DataFrame({"site": ["001"]}))
