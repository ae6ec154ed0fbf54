"""A longitudinal run continued with another number of factors uses nothing of the first one."""

import pandas as pd
import pytest

from icqf.datasets import make_longitudinal
from icqf.workflow.longitudinal import fit_visits
from icqf.workflow.options import LongitudinalOptions

ASKED = {"beta": [0.1], "n_splits": 3, "n_repeats": 1, "permutations": 99, "bootstrap": 0}


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    file = tmp_path_factory.mktemp("visits") / "visits.csv"
    make_longitudinal(n=60, n_items=9, n_bins=3, k=3, random_state=3).visits.to_csv(file, index=False)
    return file


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_fits_of_another_number_of_factors_are_not_used(visits, tmp_path):
    def run(k, journal=None):
        options = LongitudinalOptions.of({"answers": visits, "n_components": [k], **ASKED})
        return fit_visits(options, checkpoint=journal)

    journal = tmp_path / "journal"
    first, continued, plain = run(1, journal), run(2, journal), run(2)
    ours, theirs = continued.search.smoothness_errors_, plain.search.smoothness_errors_
    assert not first.search.smoothness_errors_.equals(theirs)  # or nothing would be shown
    pd.testing.assert_frame_equal(ours, theirs)
    pd.testing.assert_frame_equal(continued.scores, plain.scores)
