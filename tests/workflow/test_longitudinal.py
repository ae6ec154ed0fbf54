"""A longitudinal run that is continued with another choice uses nothing that belongs to the first one."""

import pandas as pd
import pytest

from icqf.datasets import make_longitudinal
from icqf.workflow import LongitudinalOptions, fit_visits

ASKED = {"beta": [0.1], "smoothness": [10], "n_splits": 3, "permutations": 9, "bootstrap": 0}


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    file = tmp_path_factory.mktemp("visits") / "visits.csv"
    visits = make_longitudinal(n=60, n_items=9, n_bins=3, k=3, random_state=3).visits
    visits.to_csv(file, index=False)
    return file


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_permutations_of_another_rule_are_not_used(visits, tmp_path):
    def run(rule, journal=None):
        asked = {"answers": visits, "n_components": [1, 2, 3], "rule": rule, **ASKED}
        told = []
        fit = fit_visits(LongitudinalOptions.of(asked), checkpoint=journal, callback=told.append)
        return fit, told

    journal = tmp_path / "journal"
    first, _ = run("min", journal)
    continued, told = run("one_se", journal)
    plain, _ = run("one_se")
    assert first.search.n_components_ != plain.search.n_components_  # or nothing would be shown
    assert told[0].done == told[0].total  # the folds are the same ones, and are not fitted again
    assert [each.done for each in told if each.what] == [0, 1]  # the permutations are not
    pd.testing.assert_frame_equal(continued.changes.factors, plain.changes.factors)
    pd.testing.assert_frame_equal(continued.changes.items, plain.changes.items)
    again, told = run("one_se", journal)
    assert all(each.done == each.total for each in told)
    pd.testing.assert_frame_equal(again.changes.items, plain.changes.items)
