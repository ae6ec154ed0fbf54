"""Histograms of columns."""

import numpy as np
import pandas as pd

from icqf.screening.columns import bars_of


def test_whole_numbers_have_a_bar_each_and_gaps_too():
    assert bars_of(pd.Series([1, 1, 4, np.nan])) == (("1", 2), ("2", 0), ("3", 0), ("4", 1))


def test_every_number_is_in_one_bin():
    ages = pd.Series(np.random.default_rng(0).normal(40, 9, 500))
    assert len(bars_of(ages)) == 12 and sum(n for _, n in bars_of(ages)) == 500


def test_texts_are_counted_unless_there_are_very_many():
    cells = pd.Series([f"site {j}" for j in range(10) for _ in range(10 - j)])
    bars = bars_of(cells)
    assert bars[0] == ("site 0", 10) and bars[-1] == ("2 others", 3) and sum(n for _, n in bars) == 55
    assert bars_of(pd.Series([f"P{j}" for j in range(50)])) == ()
    assert bars_of(pd.Series([None, None], dtype=object)) == ()
