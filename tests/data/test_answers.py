"""Answers and confounds in numbers."""

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF, ICQFCV, replication_probability
from icqf.data.answers import copied_sheets, describe_answers, describe_confound, missing_bands, together
from icqf.resampling.folds import units_of
from small_study import weak_study


def test_nullable_whole_numbers_and_a_single_answer():
    answers = pd.DataFrame({"a": [0, 2, None], "b": [1, None, None]}, dtype="Int64")
    ranges = pd.DataFrame({"min": [0, 0], "max": [2, 3]}, index=["a", "b"])
    found = describe_answers(answers, ranges)
    assert found.loc["a"].tolist() == [2, pytest.approx(1 / 3), 1, pytest.approx(2**0.5), 0.5, 0.5]
    assert found.loc["b"].tolist() == [1, pytest.approx(2 / 3), 1, 0, 0, 0]


@pytest.mark.parametrize(
    ("n_missing", "label"),
    [
        (0, "none"),
        (1, "up to 1%"),
        (5, "1–5%"),
        (10, "5–10%"),
        (20, "10–20%"),
        (50, "20–50%"),
        (51, "over half"),
    ],
)
def test_bands_hold_their_upper_end(n_missing, label):
    answers = pd.DataFrame(np.ones((3, 100)))
    answers.iloc[0, :n_missing] = np.nan
    bands = missing_bands(answers).set_index("label")
    assert bands["n"].sum() == 3 and bands["share"].sum() == pytest.approx(1)
    assert bands.loc[label, "n"] == (3 if label == "none" else 1)


def test_two_numbers_are_categories_and_three_are_not():
    assert describe_confound(pd.Series([1.0, 2.0, 2.0, None])).to_dict() == {"1.0": 1, "2.0": 2}
    assert describe_confound(pd.Series([True, False, True])).to_dict() == {"False": 1, "True": 2}
    assert describe_confound(pd.Series([1.0, 2.0, 3.0])).name != "n"


# --- participants who are in a table several times are found, and everywhere else nobody is -----------


def copies(values):
    return copied_sheets(values, ~np.isnan(values))


def test_everybody_four_times():
    sheets = copies(np.tile(weak_study(150), (4, 1)))
    np.testing.assert_array_equal(sheets, np.tile(sheets[:150], 4))
    assert len(np.unique(sheets)) == 150


def test_missing_answers_are_part_of_a_sheet():
    answers = weak_study(100)
    answers[:, 3] = np.where(np.arange(100) < 50, np.nan, answers[:, 3])
    assert copies(answers) is None
    again = np.concatenate([answers, answers[[7, 60]]])
    sheets = copies(again)
    assert sheets[100] == sheets[7] and sheets[101] == sheets[60] and len(np.unique(sheets)) == 100


@pytest.mark.parametrize(
    "answers",
    [
        weak_study(3000, m=10),
        (weak_study(2000, m=12) > 2).astype(float),  # yes or no: many are alike by chance
        np.repeat(weak_study(400, m=1), 30, axis=1),  # straight lines
        (np.random.default_rng(0).random((2000, 40)) < 0.03).astype(float),  # hardly any symptom
    ],
)
def test_sheets_that_are_alike_by_chance_are_not_copies(answers):
    assert copies(answers) is None


def test_a_group_and_a_copy_make_one_unit():
    np.testing.assert_array_equal(
        together(np.array([0, 0, 1, 2, 3]), np.array([0, 1, 1, 2, 3])), [0, 0, 0, 1, 2]
    )
    assert together(None, None) is None


def test_copies_do_not_raise_the_chance_of_replication():
    """The same draws of the same sheets: four copies say as much as one."""
    answers = weak_study(150)
    model = ICQF(3, item_range=(0, 4), random_state=0)
    once = replication_probability(model.fit(answers), answers, n_halves=10)["probability"].to_numpy()
    four = np.tile(answers, (4, 1))
    again = replication_probability(model.fit(four), four, n_halves=10)["probability"].to_numpy()
    assert (once < 0.95).any()
    np.testing.assert_allclose(again, once, atol=0.05)


def test_folds_never_part_copies():
    four = np.tile(weak_study(60), (4, 1))
    stated = ICQF(2, item_range=(0, 4)).state(four)
    units = units_of(stated.problem, None, stated.kept)
    np.testing.assert_array_equal(units, np.tile(np.arange(60), 4))
    model = ICQF(item_range=(0, 4), random_state=0)
    search = ICQFCV(model, n_components=[1, 2, 3], betas=[0.1], n_splits=5).fit(four)
    once = ICQFCV(model, n_components=[1, 2, 3], betas=[0.1], n_splits=5).fit(four[:60])
    # Were a copy seen, its hidden answers would be known.
    assert search.errors_["error"].min() > 0.95 * once.errors_["error"].min()
