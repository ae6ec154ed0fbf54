"""Participants who are in a table several times are found, and everywhere else nobody is."""

import numpy as np
import pytest

from icqf import ICQF, ICQFCV, replication_chance
from icqf.data.answers import copied_sheets, together
from icqf.resampling.folds import units_of
from small_study import weak_study


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
    once = replication_chance(model.fit(answers), answers, n_resamples=10)["chance"].to_numpy()
    four = np.tile(answers, (4, 1))
    again = replication_chance(model.fit(four), four, n_resamples=10)["chance"].to_numpy()
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
