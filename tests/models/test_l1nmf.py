"""L1NMF: scikit-learn's objective on complete data, gaps allowed, and a model that can be stored."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from icqf import ICQF
from icqf.datasets import make_synthetic
from icqf.errors import InputError
from icqf.models import L1NMF


@pytest.fixture(scope="module")
def answers():
    return make_synthetic(100, 40, 4, noise=0.2, random_state=0).answers


def objective(X, W, H, beta, b=100.0):
    """Half the squared error and the two penalties, in scikit-learn's terms."""
    n, m = X.shape
    seen = ~np.isnan(X)
    error = 0.5 * ((np.where(seen, X, 0) - W @ H)[seen] ** 2).sum()
    return error + beta * W.sum() + beta * b * n / m * H.sum()


@pytest.mark.parametrize("k", [2, 4, 6])
@pytest.mark.parametrize("beta", [0.01, 0.1, 1.0])
def test_it_reaches_scikit_learns_objective(answers, k, beta):
    """From the same kind of start, so in the same basin: ours may be lower, but is not 0.1 % above."""
    m = answers.shape[1]
    other = NMF(
        k, init="nndsvd", alpha_W=beta / m, alpha_H=beta * 100 / m, l1_ratio=1, tol=1e-6, max_iter=3000
    )
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        W = other.fit_transform(answers)
    theirs = objective(answers, W, other.components_, beta)
    model = L1NMF(k, beta=beta, item_range=(0, 100), tol=1e-4, max_iter=5000)
    scores = model.fit_transform(answers)
    ours = objective(answers, scores, model.components_, beta)
    assert model.objective_ == pytest.approx(ours, rel=1e-6)
    assert ours <= 1.001 * theirs


@pytest.mark.parametrize("k", [2, 4])
def test_scikit_learn_cannot_go_on_from_where_it_ends(answers, k):
    """Started from our solution, scikit-learn's iterations find next to nothing: the objectives are one."""
    m, beta = answers.shape[1], 0.1
    model = L1NMF(k, beta=beta, item_range=(0, 100), dtype="float64", tol=1e-5, max_iter=20000)
    scores = model.fit_transform(answers)
    other = NMF(
        k, init="custom", alpha_W=beta / m, alpha_H=beta * 100 / m, l1_ratio=1, tol=1e-9, max_iter=300
    )
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        W = other.fit_transform(answers, W=scores.copy(), H=model.components_.copy())
    assert objective(answers, W, other.components_, beta) == pytest.approx(model.objective_, rel=1e-4)


def test_no_bound_holds_it_back(answers):
    """The same objective as ICQF with every bound lifted; with the bounds it is higher."""
    model = L1NMF(4, item_range=(0, 100), max_iter=3000).fit(answers)
    free = ICQF(
        4,
        item_range=(0, 100),
        intercept=False,
        score_max=None,
        loading_max=None,
        reconstruction_max=None,
        max_iter=3000,
    ).fit(answers)
    assert model.components_.tobytes() == free.components_.tobytes()
    bounded = ICQF(4, item_range=(0, 100), intercept=False, max_iter=3000).fit(answers)
    assert model.objective_ < bounded.objective_
    assert model.components_.min() >= 0 and model.transform(answers).min() >= 0
    assert model.transform(answers).max() > 1
    assert model.confound_names_ == []


def test_gaps_are_left_out(answers):
    holed = answers.copy()
    gaps = np.random.default_rng(0).random(holed.shape) < 0.2
    holed[gaps] = np.nan
    model = L1NMF(4, item_range=(0, 100), tol=1e-4, max_iter=5000)
    scores = model.fit_transform(holed)
    assert model.converged_ and np.isfinite(scores).all()
    assert model.objective_ == pytest.approx(objective(holed, scores, model.components_, 0.1), rel=1e-6)
    truth = make_synthetic(100, 40, 4, noise=0.2, random_state=0).clean
    errors = [
        (guess - truth)[gaps].std() for guess in (scores @ model.components_, np.nanmean(holed, axis=0))
    ]
    assert errors[0] < 0.7 * errors[1]  # it says something about what was not asked


def test_parameters_and_clone():
    model = L1NMF(3, beta=0.5, item_range=(0, 4), random_state=2)
    names = {
        "n_components",
        "beta",
        "item_range",
        "item_weight",
        "n_init",
        "engine",
        "tol",
        "max_iter",
        "init",
        "dtype",
        "random_state",
        "callback",
    }
    assert set(model.get_params()) == names
    copy = clone(model)
    assert type(copy) is L1NMF and copy.get_params() == model.get_params()
    assert copy.set_params(beta=1.0).beta == 1.0 and model.beta == 0.5
    with pytest.raises(ValueError, match="Invalid parameter 'score_max'"):
        model.set_params(score_max=2.0)
    defaults = ICQF().get_params()
    assert all(L1NMF().get_params()[name] == defaults[name] for name in names)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("kind", [L1NMF, ICQF])
def test_a_stored_model_comes_back_as_it_was(answers, tmp_path, named, kind):
    """As an ℓ1-NMF, or as what that is: an ICQF without bounds."""
    table = pd.DataFrame(answers, columns=[f"q{j}" for j in range(40)]) if named else answers
    model = L1NMF(4, beta=0.2, item_range=(0, 100), init="rotated").fit(table)
    model.save(tmp_path / "model.icqf")
    again = kind.load(tmp_path / "model.icqf")
    assert type(again) is kind
    scores = model.transform(table)
    assert scores.max() > 1  # a model with bounds would score differently
    np.testing.assert_array_equal(again.transform(table), scores)
    np.testing.assert_array_equal(again.inverse_transform(scores), model.inverse_transform(scores))
    changed = {"item_range", "random_state", "callback"}
    kept = {name: value for name, value in model.get_params().items() if name not in changed}
    assert kept.items() <= again.get_params().items()
    assert again.describe().header["certificate"] == model.describe().header["certificate"]
    again.save(tmp_path / "again.icqf")
    assert (tmp_path / "again.icqf").read_bytes() == (tmp_path / "model.icqf").read_bytes()


def test_a_model_with_bounds_is_not_read_as_one_without(answers, tmp_path):
    model = ICQF(4, item_range=(0, 100), max_iter=2000).fit(answers)
    model.save(tmp_path / "model.icqf")
    assert type(ICQF.load(tmp_path / "model.icqf")) is ICQF
    with pytest.raises(InputError, match=r"it has .*, and every L1NMF has .*: use ICQF\.load"):
        L1NMF.load(tmp_path / "model.icqf")
