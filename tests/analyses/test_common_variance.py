"""A general factor: against plain correlations and fits, without influence on the model."""

import numpy as np
import pytest

from icqf import ICQF
from icqf.analyses import general_factor
from icqf.errors import InputError


@pytest.fixture(scope="module")
def model(demo):
    return ICQF(3, n_init=1).fit(demo)


def test_it_repeats_what_can_be_computed_otherwise(demo, model):
    before = model.components_.copy()
    found = general_factor(model, demo)
    scores = model.transform(demo)
    between = np.corrcoef(scores.T)
    off = between[~np.eye(3, dtype=bool)]
    assert [found.mean, found.low, found.high] == pytest.approx([off.mean(), off.min(), off.max()], abs=1e-6)
    assert found.factors["with_others"].tolist() == pytest.approx((between.sum(axis=0) - 1) / 2, abs=1e-6)
    one = ICQF(1, n_init=1).fit(demo)
    assert found.variance_one == pytest.approx(one.summary().variance_explained, abs=1e-6)
    with_one = [np.corrcoef(each, one.transform(demo)[:, 0])[0, 1] for each in scores.T]
    assert found.factors["with_one"].tolist() == pytest.approx(with_one, abs=1e-4)
    assert found.variance > found.variance_one and found.reason == "" and np.isnan(found.error_one)
    assert np.array_equal(model.components_, before)


def test_what_is_not_defined_is_said(demo):
    two = general_factor(ICQF(2, n_init=1).fit(demo), demo)
    assert two.hierarchy is None and "three factors or more, and there are 2" in two.reason
    with pytest.raises(InputError, match="has one factor"):
        general_factor(ICQF(1, n_init=1).fit(demo), demo)


def test_errors_come_from_the_search(demo, model):
    class Search:
        import pandas as pd

        errors_ = pd.DataFrame({"n_components": [1, 3], "beta": 0.1, "error": [0.4, 0.3], "n_folds": 5})

    found = general_factor(model, demo, search=Search())
    assert (found.error, found.error_one) == (0.3, 0.4)
