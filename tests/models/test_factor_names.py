"""Names of factors: what may be one, what is suggested, and whose it is."""

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF
from icqf.data.questionnaire import Item
from icqf.errors import InputError
from icqf.models.summary import checked_names, refuse_swapped, suggested_names, themes


@pytest.fixture
def model():
    rng = np.random.default_rng(0)
    answers = pd.DataFrame(rng.integers(0, 5, (40, 6)), columns=[f"q{j}" for j in range(6)])
    return ICQF(3, beta=0.01, item_range=(0, 4)).fit(answers)


def test_names_reach_everything_that_is_told_by_factor(model, tmp_path):
    model.name_factors(["Worry", "Temper", "Sleep"]).save(tmp_path / "m.icqf")
    for each in (model, ICQF.load(tmp_path / "m.icqf")):
        assert list(each.loadings_.columns) == ["Worry", "Temper", "Sleep"]
        assert list(each.summary().factors.index) == ["Worry", "Temper", "Sleep"]
        assert list(each.starts_.columns[-3:]) == ["Worry", "Temper", "Sleep"]
        assert {*each.summary().items["factor"]} <= {"Worry", "Temper", "Sleep", ""}
    model.name_factors({"Temper": "Anger", "factor3": "Rest"})
    assert model.factor_names_ == ["Worry", "Anger", "Rest"]


def test_a_new_fit_has_new_factors(model):
    model.name_factors(["Worry", "Temper", "Sleep"])
    assert model.fit(np.eye(6) * 4).factor_names_ == ["factor1", "factor2", "factor3"]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["a", "b"], "There are 2 names for 3 factors"),
        ("abc", "There is 1 name for 3 factors"),
        (["a", "A", "c"], "Two factors are named 'A'"),
        (["a", "b\x07", "c"], "cannot be shown"),
        (["a", "x" * 61, "c"], "at most 60"),
        (["a", "factor1", "c"], "was given to factor 2, which has another number"),
        ({"factor9": "a"}, "There is no factor 'factor9'"),
        ({"Wory": "a"}, "There is no factor 'Wory'"),
        (["a", "Old", "c"], "that of a confound"),
    ],
)
def test_names_that_cannot_be(names, said):
    with pytest.raises(InputError, match=said):
        checked_names(["factor1", "factor2", "factor3"], names, taken=["Old"])


def test_a_file_whose_names_cannot_be_is_refused(model, tmp_path):
    model.factor_names_ = ["a", "a", "b"]
    model.starts_ = model.starts_.set_axis([*model.starts_.columns[:4], "a", "a", "b"], axis=1)
    model.save(tmp_path / "m.icqf")
    with pytest.raises(InputError, match="damaged"):
        ICQF.load(tmp_path / "m.icqf")


def test_a_name_holds_to_its_content():
    known, tops = [["Worry", "factor1"], ["Temper", "factor2"]], [["q1"], ["q2"]]
    refuse_swapped(["worry", "Anger"], known, tops)
    refuse_swapped(["Sadness", "Temper"], known, tops)
    with pytest.raises(
        InputError, match="'Worry' was given to factor 2, whose top items are 'q2'; it goes with"
    ):
        refuse_swapped(["Anger", "Worry"], known, tops)


def test_a_textbook_factor_does_not_bridge():
    """Five items of its own and weak loadings elsewhere: that is the subscale, whatever its top ten hold."""
    shares = np.full((25, 5), 0.06)
    for r in range(5):
        shares[5 * r : 5 * r + 5, r] = 0.6
    scales = np.repeat(list("ABCDE"), 5).tolist()
    assert [theme.words for theme in themes(shares, scales)] == [f"{s} (5 of its 5 items)" for s in "ABCDE"]


def test_a_factor_of_two_subscales_bridges_them():
    scales = ["A"] * 4 + ["B"] * 4 + ["C"] * 9
    shares = np.array([[0.5, 0.0]] * 8 + [[0.3, 0.0]] * 2 + [[0.0, 0.4]] * 7)
    both, one = themes(shares, scales)
    assert both.words == "bridges A (4 of its 4 items) and B (4 of its 4 items)"
    assert one.words == "C (7 of its 9 items)"
    items = [Item(f"q{j}", subscale=scale) for j, scale in enumerate(scales)]
    assert suggested_names(pd.DataFrame(shares, [item.name for item in items]), items) == ["A / B", "C"]


def test_suggestions_differ_and_do_not_say_the_opposite():
    items = [
        Item("q1", wording="Makes friends easily", reverse=True),
        Item("q2", wording="Is left out"),
        Item("q3", wording="Is left out"),
    ]
    shares = pd.DataFrame({"a": [0.9, 0.5, 0.0], "b": [0.0, 0.0, 0.8]}, index=["q1", "q2", "q3"])
    assert suggested_names(shares, items) == ["Is left out", "Is left out (2)"]
    assert suggested_names(shares, []) == ["q1", "q3"]
    assert suggested_names(shares[["a"]].iloc[[0]], items[:1]) == ["Makes friends easily (reversed)"]
    assert suggested_names(shares[["a"]].iloc[[0]], [Item("q1", reverse=True)]) == ["q1 (reversed)"]
