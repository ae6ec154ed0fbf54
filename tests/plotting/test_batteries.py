"""Figures of batteries: a line for each loading, a bar for each instrument."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import PathPatch

from icqf.errors import InputError
from icqf.plotting import battery_overview, three_levels

FACTORS = pd.MultiIndex.from_tuples(
    [("A", "factor1"), ("A", "factor2"), ("B", "factor1")], names=["instrument", "factor"]
)
LOADINGS = pd.DataFrame([[0.9, 0.0], [0.05, 0.6], [0.4, 0.3]], index=FACTORS, columns=["meta1", "meta2"])
ITEMS = pd.DataFrame(
    [("A", "factor1", "Sad (reversed)", 0.9), ("A", "factor2", "Angry", 0.5), ("B", "factor1", "Tired", 0.7)],
    columns=["instrument", "factor", "label", "share"],
)


def lines(ax):
    return [patch for patch in ax.patches if isinstance(patch, PathPatch)]


def test_a_line_for_each_loading_of_a_tenth_or_more_and_each_item():
    ax = three_levels(LOADINGS, ITEMS)
    assert len(lines(ax)) == int((LOADINGS >= 0.1).sum().sum()) + len(ITEMS)
    widths = sorted(line.get_linewidth() for line in lines(ax))
    assert widths[-1] == pytest.approx(7.0 * 0.9)


def test_names_are_shown_and_long_labels_still_say_that_they_are_reversed():
    ax = three_levels(
        LOADINGS, ITEMS.replace("Sad (reversed)", "Sad " * 30 + " (reversed)"), names=["Mood", "Anger"]
    )
    texts = [text.get_text() for text in ax.texts]
    assert texts[:2] == ["Mood", "Anger"] and "A · 2" in texts
    assert any(text.endswith("… (reversed)") for text in texts)


def test_factors_of_no_meta_factor_and_one_meta_factor_are_drawn():
    nothing = pd.DataFrame(np.zeros((3, 1)), index=FACTORS, columns=["meta1"])
    assert len(lines(three_levels(nothing, ITEMS))) == len(ITEMS)
    many = pd.DataFrame(np.eye(3, 9), index=FACTORS, columns=[f"meta{r}" for r in range(1, 10)])
    places = {text.get_text(): text.get_position()[1] for text in three_levels(many, ITEMS).texts}
    metas = sorted(y for text, y in places.items() if text.startswith("Meta"))
    assert np.diff(metas).min() > 0.3


def test_other_tables_are_refused():
    with pytest.raises(InputError, match="instrument, factor"):
        three_levels(LOADINGS.reset_index(drop=True), ITEMS)
    with pytest.raises(InputError, match="'share'"):
        three_levels(LOADINGS, ITEMS.drop(columns="share"))
    with pytest.raises(InputError, match="'found_again'"):
        battery_overview(pd.DataFrame({"name": ["a"], "k": [1]}))


def test_a_bar_for_each_instrument_also_without_resamples():
    rows = [["mood", 3, 2, 0.5], ["sleep", 2, 2, 0.4]]
    table = pd.DataFrame(rows, columns=["name", "k", "found_again", "explained"])
    assert [bar.get_width() for bar in battery_overview(table).patches] == [3, 2, 2, 2]
    assert len(battery_overview(table.assign(found_again=None)).patches) == 2
