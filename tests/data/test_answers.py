"""Answers and confounds in numbers."""

import numpy as np
import pandas as pd
import pytest

from icqf.data.answers import describe_answers, describe_confound, missing_bands


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
