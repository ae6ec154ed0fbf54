"""Previews of the loadings."""

import numpy as np
import pytest

from icqf import ICQF, InputError
from icqf.datasets import demo_paths
from icqf.resampling.matching import aligned
from icqf.workflow import StudyOptions
from icqf.workflow.preview import most_factors, named_like, preview, preview_problem


@pytest.fixture(scope="module")
def stated():
    answers, codebook = demo_paths()
    options = {"answers": answers, "codebook": codebook, "items": ["q00*", "q01*", "q02*"]}
    return preview_problem(StudyOptions.of(options))


@pytest.mark.parametrize(("k", "beta"), [(2, 0.05), (3, 0.2)])
def test_a_preview_is_close_to_the_fit(stated, k, beta):
    found = preview(stated, k, beta)
    model = ICQF(k, beta=beta, random_state=0)
    fitted = stated.problem.own_loadings(model.solve(stated).factors.loadings)[:k]
    shown = found.loadings.to_numpy().T
    order, similar = aligned(fitted, shown)
    spans = np.ptp(stated.ranges, axis=1)
    assert found.settled and similar > 0.99
    assert np.abs(shown[order] - fitted).max() < 0.1 * spans.max()
    assert (found.shares.to_numpy() >= 0).all() and (found.shares.to_numpy() <= 1).all()
    sums = found.shares.sum().to_numpy()
    assert (np.diff(sums) <= 0).all() and all(found.names)


def test_the_same_preview_comes_back(stated):
    assert preview(stated, 4, 0.1).loadings.equals(preview(stated, 4, 0.1).loadings)


def test_factors_like_those_of_a_model_have_their_names(stated):
    model = ICQF(2, beta=0.1, random_state=0)
    model.keep(model.state(stated), model.solve(stated)).name_factors(["Worry", "Anger"])
    assert sorted(named_like(preview(stated, 2, 0.1), model).values()) == ["Anger", "Worry"]


def test_numbers_that_cannot_be_shown_are_refused(stated):
    for k, beta in ((0, 0.1), (most_factors(stated) + 1, 0.1), (2, -1.0), (2, np.inf), (2, np.nan)):
        with pytest.raises(InputError, match=r"n_components|beta"):
            preview(stated, k, beta)
