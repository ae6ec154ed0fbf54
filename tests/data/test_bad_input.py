"""Every kind of bad input gets one sentence that says what, where, what was found and what to do."""

# ruff: noqa: E501  (sentences stand here whole, as the user reads them)

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from icqf import ICQF
from icqf.data.validate import EmptyRowsWarning
from icqf.errors import InputError

ITEMS = ["q1", "q2", "q3", "q4"]


@pytest.fixture
def answers():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        rng.integers(0, 5, (20, 4)).astype(float), columns=ITEMS, index=[f"P{i:02d}" for i in range(20)]
    )


@pytest.fixture
def people(answers):
    ages = np.linspace(6, 16, 20)
    return pd.DataFrame({"age": ages, "sex": ["Female", "Male"] * 10}, index=answers.index)


def model(k=2, **options):
    return ICQF(k, **({"item_range": (0, 4), "smallest_category": 10} | options))


@pytest.fixture
def fitted(answers):
    return model().fit(answers)


def refused(message, use, *args, **kwargs):
    """The whole sentence, word by word."""
    with pytest.raises(InputError) as caught:
        use(*args, **kwargs)
    assert str(caught.value) == message


# --- answers ---------------------------------------------------------------------------------------


def test_text_in_an_item(answers, fitted):
    table = answers.astype(object)
    table.loc["P03", "q2"] = "often"
    message = (
        "Item 'q2' holds text: 'often' (row 'P03'). Give answers as numbers, and missing ones as empty cells."
    )
    refused(message, model().fit, table)
    refused(message, fitted.transform, table)
    table.loc[["P07", "P09"], "q2"] = "never"
    refused(message.replace("(row 'P03')", "(row 'P03', and 2 more)"), model().fit, table)
    table = answers.assign(q4="")
    refused(
        "Item 'q4' holds text: '' (row 'P00', and 19 more). Give answers as numbers, and missing ones as empty "
        "cells.",
        model().fit,
        table,
    )


def test_text_in_other_kinds_of_tables(answers):
    table = answers.astype(object)
    table.loc["P03", "q2"] = "often"
    message = "Item 'item2' holds text: 'often' (row 3). Give answers as numbers, and missing ones as NaN."
    refused(message, model().fit, table.to_numpy())
    refused(message, model().fit, table.to_numpy().tolist())
    refused(message, model().fit, table.to_numpy().astype(str))
    strings = answers.astype(int).astype(str)
    strings.loc["P03", "q2"] = "often"
    refused(
        "Item 'q2' holds text: 'often' (row 3). Give answers as numbers, and missing ones as empty cells.",
        model().fit,
        pl.DataFrame({name: strings[name].tolist() for name in ITEMS}),
    )
    refused(
        "Item 'q3' holds text: 'a lot' (row 'P00', and 19 more). Give answers as numbers, and missing ones as "
        "empty cells.",
        model().fit,
        answers.assign(q3=pd.Categorical(["a lot"] * 20)),
    )


def test_numbers_in_a_column_of_objects_are_numbers(answers):
    usual = model().fit(answers).components_
    for columns in (ITEMS, [0, 1, 2, 3]):
        table = answers.set_axis(columns, axis=1).astype({columns[1]: object})
        found = model().fit(table)
        assert found.n_features_in_ == 4
        np.testing.assert_array_equal(found.components_, usual)


def test_dates_in_an_item(answers):
    refused(
        "Item 'q2' holds dates or times; give answers as numbers, or leave it out.",
        model(item_range=None).fit,
        answers.assign(q2=pd.date_range("2020-01-01", periods=20)),
    )


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (5, "holds 5, above its highest answer 4 ({}). Correct the answer, or declare the item's true range with item_range."),
        (-0.5, "holds -0.5, below its lowest answer 0 ({}). Correct the answer, or declare the item's true range with item_range."),
        (9, "holds 9, above its highest answer 4 ({}). If 9 marks a missing answer, make these cells empty; otherwise correct item_range."),
        (-99, "holds -99, below its lowest answer 0 ({}). If -99 marks a missing answer, make these cells empty; otherwise correct item_range."),
        (np.inf, "is infinite ({}). Leave the cell empty if the answer is missing."),
        (-np.inf, "is infinite ({}). Leave the cell empty if the answer is missing."),
    ],
)  # fmt: skip
def test_an_answer_outside_the_range(answers, fitted, value, sentence):
    table = answers.copy()
    table.loc["P11", "q3"] = value
    for use in (model().fit, fitted.transform, fitted.score):
        refused(f"Item 'q3' {sentence.format(repr('P11').join(['row ', '']))}", use, table)
    table.loc[["P12", "P19"], "q3"] = value
    refused(f"Item 'q3' {sentence.format(repr('P11').join(['row ', ', and 2 more']))}", model().fit, table)
    array = answers.to_numpy().copy()
    array[11, 2] = value
    refused(f"Item 'item3' {sentence.format('row 11')}", model().fit, array)


def test_an_answer_outside_the_range_of_its_own_item(answers):
    ranges = {"q1": (0, 4), "q2": (0, 4), "q3": (0, 2), "q4": (0, 4)}
    table = answers.assign(q3=np.minimum(answers["q3"], 2))
    table.loc["P05", "q3"] = 3
    refused(
        "Item 'q3' holds 3, above its highest answer 2 (row 'P05'). Correct the answer, or declare the item's true "
        "range with item_range.",
        model(item_range=ranges).fit,
        table,
    )
    whole = table.astype(np.int8)
    with pytest.raises(InputError, match=r"Item 'q3' holds 3, above its highest answer 2 \(row 'P05'\)"):
        model(item_range=ranges).fit(whole)


def test_the_last_of_many_rows_is_checked_too():
    table = np.zeros((70_000, 3), dtype=np.int8)
    table[::2] = 1
    table[69_999, 1] = 7
    with pytest.raises(
        InputError, match=r"Item 'item2' holds 7, above its highest answer 2 \(row 69999\)\. If 7 m"
    ):
        model(1, item_range=(0, 2)).fit(table)


def test_infinite_answers_without_a_declared_range(answers):
    table = answers.copy()
    table.loc["P04", "q2"] = np.inf
    refused(
        "Item 'q2' is infinite (row 'P04'). Leave the cell empty if the answer is missing.",
        model(item_range=None).fit,
        table,
    )


def test_an_item_nobody_answered(answers):
    refused("Nobody answered item 'q3'; leave it out of the table.", model().fit, answers.assign(q3=np.nan))
    refused(
        "Nobody answered 2 items: 'q1', 'q3'; leave them out of the table.",
        model().fit,
        answers.assign(q1=np.nan, q3=pd.NA),
    )


def test_an_item_answered_only_by_people_without_weight(answers):
    table = answers.assign(q3=np.r_[1.0, 2.0, np.full(18, np.nan)])
    weights = np.r_[0.0, 0.0, np.ones(18)]
    refused(
        "Nobody answered item 'q3'; leave it out of the table.",
        model().fit,
        table,
        sample_weight=weights,
    )


def test_a_person_who_answered_nothing_is_kept_out_of_the_fit(answers, people):
    table = answers.copy()
    table.loc[["P03", "P08"]] = np.nan
    message = r"^2 participants answered nothing \('P03', 'P08'\): kept out of the fit\.$"
    few = {"confound_ranges": {"age": (6, 16)}, "smallest_category": 9}
    with pytest.warns(EmptyRowsWarning, match=message):
        found = model(**few).fit(table, confounds=people)
    without = model(**few).fit(answers.drop(["P03", "P08"]), confounds=people.drop(["P03", "P08"]))
    assert found.n_participants_ == 18
    np.testing.assert_allclose(found.components_, without.components_, atol=1e-5)


def test_a_person_who_answered_nothing_scores_nan_in_place(answers, fitted):
    table = answers.copy()
    table.loc["P03"] = np.nan
    with pytest.warns(
        EmptyRowsWarning, match=r"^1 participant answered nothing \('P03'\): their scores are NaN\.$"
    ):
        scores = fitted.set_output(transform="pandas").transform(table)
    assert scores.index.tolist() == answers.index.tolist()
    assert scores.loc["P03"].isna().all()
    others = scores.drop("P03")
    assert others.notna().all(axis=None)
    np.testing.assert_allclose(others, fitted.transform(answers).drop("P03"), atol=1e-5)


def test_many_people_who_answered_nothing_are_cut_short(answers, fitted):
    table = answers.copy()
    table.iloc[:7] = np.nan
    with pytest.warns(
        EmptyRowsWarning, match=r"7 participants answered nothing \('P00', .*'P04' and 2 more\)"
    ):
        fitted.transform(table)


def test_nobody_answered_anything(answers, fitted):
    with pytest.warns(EmptyRowsWarning, match="20 participants"):
        assert np.isnan(fitted.transform(answers * np.nan)).all()
    with (
        pytest.warns(EmptyRowsWarning, match="20 participants"),
        pytest.raises(InputError, match="nothing to score"),
    ):
        fitted.score(answers * np.nan)
    with pytest.warns(EmptyRowsWarning), pytest.raises(InputError, match="Nobody answered 4 items"):
        model().fit(answers * np.nan)


def test_a_constant_item_is_kept_and_named(answers):
    message = (
        r"^1 item with the same answer from everybody: 'q2'\. Such an item carries no information about the "
        r"factors; it is kept, but you can leave it out\.$"
    )
    with pytest.warns(UserWarning, match=message):
        found = model().fit(answers.assign(q2=2))
    assert found.loadings_.index.tolist() == ITEMS


def test_a_table_without_variation_or_range():
    refused(
        "The table holds only the answer 3, so its range is unknown; declare item_range=(lowest, highest).",
        model(1, item_range=None).fit,
        np.full((5, 3), 3.0),
    )
    refused(
        "The table holds only missing answers, so its range is unknown; declare item_range=(lowest, "
        "highest).",
        model(1, item_range=None).fit,
        np.full((5, 3), np.nan),
    )


# --- shapes and names ------------------------------------------------------------------------------


def test_more_factors_than_the_table_can_carry(answers):
    refused(
        "n_components=5 is more than this table can carry: it has 20 sample(s) with answers and 4 feature(s); ask for "
        "4 or fewer.",
        model(5).fit,
        answers,
    )
    table = answers.copy()
    table.iloc[2:] = np.nan
    with (
        pytest.warns(EmptyRowsWarning, match="18 participants"),
        pytest.raises(InputError, match=r"2 sample.*2 or few"),
    ):
        model(3).fit(table)


def test_no_number_of_factors(answers):
    refused(
        "Set n_components, as in n_components=8, or let ICQFCV choose.",
        model(None).fit,
        answers,
    )


def test_rows_that_do_not_match(answers, people, fitted):
    short = "There are 20 rows of answers but 19 rows of confounds; give one row per participant, in the same order."
    refused(short, model().fit, answers, confounds=people.iloc[:-1])
    found = model().fit(answers, confounds=people)
    refused(short, found.transform, answers, confounds=people.iloc[:-1])
    refused(short, found.inverse_transform, np.zeros((20, 2)), confounds=people.iloc[:-1])
    refused(
        "There are 20 rows of answers but 21 sample weights; give one weight per participant, in the same order.",
        model().fit,
        answers,
        sample_weight=np.ones(21),
    )
    refused(
        "Row 1 of the answers is labelled 'P00', but row 1 of confounds 'P19': both must have the same row "
        "labels in the same order. Use confounds.loc[answers.index], or confounds.to_numpy() if the rows "
        "already correspond.",
        model().fit,
        answers,
        confounds=people.iloc[::-1],
    )


def test_sample_weights(answers):
    bad = "sample_weight must not hold negative numbers, and not all weights may be zero."
    refused(bad, model().fit, answers, sample_weight=np.r_[-1, np.ones(19)])
    refused(bad, model().fit, answers, sample_weight=np.zeros(20))
    refused(
        "sample_weight is nan in row 3; give every participant a weight.",
        model().fit,
        answers,
        sample_weight=np.r_[1, 1, 1, np.nan, np.ones(16)],
    )
    with pytest.raises(
        InputError, match=r"^sample_weight must hold numbers, one per participant \(.*'heavy'\)\.$"
    ):
        model().fit(answers, sample_weight=["heavy"] * 20)
    refused(
        "sample_weight has the shape (20, 1); give one weight per participant, in one column.",
        model().fit,
        answers,
        sample_weight=np.ones((20, 1)),
    )
    same = model().fit(answers, sample_weight=2.0).loadings_
    pd.testing.assert_frame_equal(same, model().fit(answers, sample_weight=np.full(20, 2.0)).loadings_)


def test_columns_are_named_by_texts_or_by_numbers(answers):
    refused(
        "Some columns of the table are named by text, such as 'q2', and others by numbers, such as 7; rename "
        "them, as in table.columns = table.columns.astype(str).",
        model().fit,
        answers.rename(columns={"q1": 7}),
    )
    numbered = answers.set_axis(range(answers.shape[1]), axis=1)
    assert model().fit(numbered).loadings_.index[0] == "item1"


def test_doubled_column_names(answers, fitted):
    message = "Item 'q1' appears twice among the columns; give each item its own name."
    doubled = answers[["q1", "q2", "q1", "q4"]]
    refused(message, model().fit, doubled)
    refused(message, fitted.transform, doubled)


def test_other_columns_at_transform(answers, fitted):
    advice = (
        "\nGive the table exactly the model's items, in their order, as in table[model.feature_names_in_]."
    )
    start = "The feature names should match those that were passed during fit.\n"
    refused(
        f"{start}Feature names unseen at fit time:\n- q9\nFeature names seen at fit time, yet now missing:\n- q2{advice}",
        fitted.transform,
        answers.rename(columns={"q2": "q9"}),
    )
    refused(
        f"{start}Feature names unseen at fit time:\n- q5{advice}", fitted.transform, answers.assign(q5=1.0)
    )
    refused(
        f"{start}Feature names must be in the same order as they were in fit.{advice}",
        fitted.transform,
        answers[["q2", "q1", "q3", "q4"]],
    )
    refused(
        f"{start}Feature names seen at fit time, yet now missing:\n- q4{advice}",
        fitted.score,
        answers[ITEMS[:3]],
    )
    array = model().fit(answers.to_numpy())
    with pytest.raises(ValueError, match="X has 3 features, but ICQF is expecting 4 features as input"):
        array.transform(answers.to_numpy()[:, :3])


def test_no_items(answers):
    refused("The table has no items: it has rows but no columns.", model().fit, answers[[]])


def test_scores_of_another_shape(fitted):
    refused(
        "The scores have the shape (3, 5); the model has 2 factors, so give (participants, 2).",
        fitted.inverse_transform,
        np.ones((3, 5)),
    )
    with pytest.raises(InputError, match=r"^The scores must be numbers \("):
        fitted.inverse_transform([["high", "low"]])


# --- confounds -------------------------------------------------------------------------------------


def test_an_unseen_confound_category(answers, people):
    found = model().fit(answers, confounds=people)
    changed = people.copy()
    changed.loc["P07", "sex"] = "Diverse"
    refused(
        "Confound 'sex' is 'Diverse' for participant 'P07', but the model was fitted with 'Female', 'Male'. "
        "Recode it as one of these, or leave the participant out.",
        found.transform,
        answers,
        confounds=changed,
    )


def test_a_missing_confound(answers, people):
    changed = people.copy()
    changed.loc["P07", "age"] = np.nan
    message = (
        "Confound 'age' is missing for participant 'P07'. Fill it in, leave these participants out, or fit the model with "
        "missing_confounds='mean' to use the sample mean."
    )
    refused(message, model().fit, answers, confounds=changed)
    refused(message, model().fit(answers, confounds=people).transform, answers, confounds=changed)
    scores = model(missing_confounds="mean").fit_transform(answers, confounds=changed)
    assert np.isfinite(scores).all()


def test_confounds_forgotten_or_not_asked_for(answers, people, fitted):
    refused(
        "The model was fitted with the confounds 'age', 'sex'; give confounds= with them.",
        model().fit(answers, confounds=people).transform,
        answers,
    )
    refused(
        "The model was fitted without confounds, but confounds were given; leave them out, or fit the model with them.",
        fitted.transform,
        answers,
        confounds=people,
    )


# --- parameters ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beta": -1}, "beta must be a number of at least 0, not -1."),
        ({"beta": np.nan}, "beta must be a number of at least 0, not nan."),
        ({"beta": np.inf}, "beta must be a number of at least 0, not inf."),
        ({"beta": "0.1"}, "beta must be a number of at least 0, not '0.1'."),
        ({"n_components": 0}, "n_components must be a whole number of at least 1, not 0."),
        ({"n_components": 2.5}, "n_components must be a whole number of at least 1, not 2.5."),
        ({"n_components": True}, "n_components must be a whole number of at least 1, not True."),
        ({"tol": 0}, "tol must be a number above 0, not 0."),
        ({"max_iter": 0}, "max_iter must be a whole number of at least 1, not 0."),
        ({"n_init": 0}, "n_init must be a whole number of at least 1, not 0."),
        ({"rho": 0.0}, "rho must be a number above 0, not 0.0."),
        ({"rho": "adaptiv"}, "rho must be a number above 0, not 'adaptiv'."),
        ({"score_max": 0}, "score_max must be a number above 0, not 0."),
        ({"loading_max": -1}, "loading_max must be a number above 0, not -1."),
        ({"penalty": "l3"}, "penalty='l3' is not known; choose one of 'l1', 'l2', 'l21'."),
        ({"solver": "quick"}, "solver='quick' is not known; choose one of 'fast', 'admm'."),
        ({"inner": "newton"}, "inner='newton' is not known; choose one of 'cd', 'fista', 'admm', 'sweep'."),
        ({"init": "svd"}, "init='svd' is not known; choose one of 'nndsvd', 'rotated', 'random'."),
        ({"dtype": "int8"}, "dtype='int8' is not known; choose one of 'auto', 'float32', 'float64'."),
        ({"dtype": "floaty"}, "dtype='floaty' is not known; choose one of 'auto', 'float32', 'float64'."),
        ({"reconstruction_max": 3}, "reconstruction_max=3 is not known; choose one of 'item_range', None."),
        (
            {"missing_confounds": "drop"},
            "missing_confounds='drop' is not known; choose one of 'error', 'mean'.",
        ),
        (
            {"penalty": "l21", "solver": "admm", "inner": "fista"},
            "penalty='l21' needs inner='cd', not inner='fista'.",
        ),
        (
            {"item_range": (4, 0)},
            "item_range gives item 'q1' the range 4 to 0; the first number must be the lowest answer and the second "
            "the highest.",
        ),
        (
            {"item_range": (0, np.inf)},
            "item_range gives item 'q1' the range 0 to inf; the first number must be the lowest answer and the second "
            "the highest.",
        ),
        (
            {"item_range": (0, 1, 2)},
            "item_range has the shape (3,); give (lowest, highest) for all items, one such pair for each of the 4 "
            "items, or a table with the items' names.",
        ),
        (
            {"item_range": "0-4"},
            "item_range='0-4' is not a pair of numbers; give (lowest, highest), such as (0, 4), or one such pair for "
            "each item.",
        ),
        (
            {"item_range": {"q1": (0, 4), "Q2": (0, 4), "q3": (0, 4), "q4": (0, 4)}},
            "item_range has no entry for item 'q2'. Did you mean 'Q2'?",
        ),
        (
            {"init": (np.ones((20, 3)), np.ones((4, 2)))},
            "init must be a name or two arrays of the shapes (20, 2) (scores) and (4, 2) (loadings); it has (20, 3) "
            "and (4, 2).",
        ),
        (
            {"init": (-np.ones((20, 2)), np.ones((4, 2)))},
            "init must not hold negative, infinite or missing numbers.",
        ),
        (
            {"init": 3},
            "init must be a name or two arrays of the shapes (20, 2) (scores) and (4, 2) (loadings), not int.",
        ),
    ],
)
def test_parameters_that_make_no_sense(answers, options, message):
    refused(message, model().set_params(**options).fit, answers)


def test_a_refused_fit_leaves_the_old_one_as_it_was(answers, fitted):
    """Nothing is half changed."""
    before = fitted.transform(answers)
    for bad in (answers.assign(q2=9.0), answers.assign(q3=np.nan), answers[["q1", "q2", "q1"]]):
        with pytest.raises(InputError):
            fitted.fit(bad)
    np.testing.assert_array_equal(fitted.transform(answers), before)


def test_a_range_too_wide_for_a_questionnaire():
    with pytest.raises(
        InputError, match="'item1' would have the range 0 to 1e\\+12, wider than any questionnaire's"
    ):
        ICQF(1, item_range=(0, 1e12)).fit([[0.0, 1e12], [5.0, 3.0]])


# --- extremes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [1e10, 1e38, 1e308])
@pytest.mark.parametrize("name", ["beta", "score_max", "loading_max", "rho"])
def test_parameters_without_measure(answers, name, value):
    message = f"{name} must be a number of at most 1e+09, not {value!r}."
    refused(message, model(**{name: value}).fit, answers)


@pytest.mark.parametrize("heavy", [1e10, 1e30, 1e300, 1e308])
@pytest.mark.filterwarnings("error")
def test_weights_without_measure(answers, heavy):
    refused(
        f"sample_weight ranges from 1 to {heavy:g}, a ratio of more than 1e+09, which leaves the lightest "
        "participants without influence; correct the weights, or set these to 0.",
        model().fit,
        answers,
        sample_weight=np.r_[heavy, heavy, np.ones(18)],
    )
    refused(
        "sample_weight holds 1e-300; divide all weights by their mean, which changes nothing else.",
        model().fit,
        answers,
        sample_weight=np.full(20, 1e-300),
    )


@pytest.mark.filterwarnings("error")
def test_weights_may_be_far_apart_and_large(answers):
    weights = np.r_[100.0, np.ones(19)]
    with pytest.raises(
        InputError, match=r"^Item 'q1' was answered by fewer than 10 participants, by their weights"
    ):
        model().fit(answers, sample_weight=weights)  # it would tell the answers of the first
    mine = model(dtype="float64", smallest_category=1)
    scaled = [clone(mine).fit(answers, sample_weight=weights * factor) for factor in (1, 1e5)]
    np.testing.assert_allclose(scaled[0].components_, scaled[1].components_, atol=1e-3)


@pytest.mark.parametrize("width", [1e7, 1e100, 1e300])
@pytest.mark.filterwarnings("error")
def test_ranges_without_measure(answers, width):
    with pytest.raises(InputError, match="wider than any questionnaire's"):
        ICQF(2, item_range=(0, width)).fit(answers)


def test_rows_are_named_as_python_writes_their_labels():
    """Not as np.int64(7)."""
    labels = np.arange(7, 37)
    X = pd.DataFrame(np.tile([0.0, 1, 2, 3], (30, 3)), labels, [f"q{j}" for j in range(12)])
    for bad in (np.inf, np.nan):
        confounds = pd.DataFrame({"age": np.linspace(6, 12, 30)}, labels)
        confounds.iloc[2] = bad
        with pytest.raises(
            InputError, match=r"Confound 'age' is (infinite in row|missing for participant) 9[;.]"
        ):
            ICQF(1, item_range=(0, 3)).fit(X, confounds=confounds)
    texts = X.astype(object)
    texts.loc[8, "q0"] = "many"
    with pytest.raises(InputError, match=r"'many' \(row 8\)"):
        ICQF(1, item_range=(0, 3)).fit(texts)
