"""The paper's settings: the authors' program iteration by iteration, explicit in every parameter."""

import numpy as np
import pytest
from sklearn.base import clone

from icqf import ICQF, ICQFCV
from icqf.datasets import make_synthetic
from icqf.errors import InputError
from icqf.resampling.folds import make_folds
from icqf.resampling.hidden import HeldOut

# Objective and iterations of the authors' algorithm (github.com/jefferykclam/ICQF, commit 12244e1, its loop
# with the compiled sweep written out in NumPy) on make_synthetic(noise, random_state): k = 10, β = 0.1,
# ρ = 3, W ≤ 1, Q and M ≤ 100, no confounds, tol = 1e-3.
AUTHORS = {
    (0.1, 0): (1756934, 64),
    (0.1, 1): (1714049, 89),
    (0.2, 0): (3064759, 77),
    (0.3, 0): (4241920, 86),
    (0.3, 2): (4375806, 85),
}


@pytest.mark.parametrize(("noise", "seed"), AUTHORS)
def test_the_objective_is_that_of_the_authors(noise, seed):
    answers = make_synthetic(noise=noise, random_state=seed).answers
    model = ICQF.paper(10, item_range=(0, 100), intercept=False).fit(answers)
    objective, iterations = AUTHORS[noise, seed]
    assert model.trace_["objective"].iloc[-1] == pytest.approx(objective, rel=1e-3)
    assert model.n_iter_ == iterations and model.converged_
    # Scores are then solved for exactly: a little lower, and every bound holds.
    assert 0.997 * objective < model.objective_ < objective
    assert model.inverse_transform(model.transform(answers)).max() <= 100


def test_the_settings_are_explicit_and_survive_cloning():
    model = clone(ICQF.paper(3, beta=0.2, confound_ranges={"age": (5, 21)}))
    expected = {
        "solver": "admm",
        "rho": 3.0,
        "stop": "objective",
        "tol": 1e-3,
        "n_init": 1,
        "item_weight": None,
    }
    assert expected.items() <= model.get_params().items() and model.beta == 0.2
    assert "stop='objective'" in repr(model)
    search = clone(ICQFCV.paper(n_components=[2, 3]))
    assert search.betas == (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
    assert (search.n_repeats, search.row_blocks, search.col_blocks, search.rule) == (1, 10, 10, "min")


def test_what_contradicts_the_paper_is_refused():
    with pytest.raises(InputError, match=r"rho=5.0 contradicts the paper, which has 3.0; leave it out"):
        ICQF.paper(3, rho=5.0)
    with pytest.raises(InputError, match="rule='one_se' contradicts the paper"):
        ICQFCV.paper(rule="one_se")
    assert ICQF.paper(3, rho=3.0).rho == 3.0


def test_candidates_are_fitted_with_the_bounds_and_from_their_own_start():
    answers = make_synthetic(40, 20, 2, noise=0.3, random_state=0).answers
    both = [
        ICQFCV.paper(ICQF.paper(item_range=(0, 100)), n_components=[2], betas=betas, random_state=0)
        for betas in ([0.1], [0.01, 0.1])
    ]
    alone, among = (search.fit(answers).errors_ for search in both)
    same = among[among["beta"] == 0.1].reset_index(drop=True)
    np.testing.assert_array_equal(same["error"], alone["error"])  # no start from the last penalty's end


def test_bounded_folds_see_nothing_of_hidden_answers():
    """Neither through the bounds, where the range is not declared, nor through the start."""
    answers = make_synthetic(40, 20, 2, noise=0.1, random_state=0).answers
    hidden = make_folds(40, 20, row_blocks=10, col_blocks=10, rng=np.random.default_rng(0)).mask(0)
    fits = []
    for spoiled in (answers, np.where(hidden, 137.0, answers)):
        model = ICQF.paper(2)
        with pytest.warns(UserWarning, match="range"):
            stated = model.state(spoiled)
        held = HeldOut(stated.problem, hidden, given=stated.given, bounded=True)
        assert held.visible.bounds.reconstruction is not None
        from icqf.engines.base import NamedStart
        from icqf.engines.choice import run
        from icqf.models.multistart import solver_of

        start = NamedStart("nndsvd", 2, np.random.default_rng(0))
        (fit,) = run(held.visible, start, tol=1e-3, solver=solver_of(model), exact=False)
        fits.append(fit.factors)
    np.testing.assert_array_equal(fits[0].scores, fits[1].scores)
    np.testing.assert_array_equal(fits[0].loadings, fits[1].loadings)


@pytest.mark.parametrize("solver", ["fast", "admm"])
def test_loadings_may_have_a_penalty_of_their_own(solver):
    answers = make_synthetic(60, 30, 3, noise=0.2, random_state=1).answers
    common = {"item_range": (0, 100), "solver": solver, "n_init": 1, "max_iter": 3000}
    usual = ICQF(3, beta=0.5, **common).fit(answers)
    same = ICQF(3, beta=0.5, loading_beta=0.5, **common).fit(answers)
    np.testing.assert_allclose(same.components_, usual.components_, atol=1e-9)
    sparse = ICQF(3, beta=0.5, loading_beta=2.0, **common).fit(answers)
    assert sparse.components_.sum() < usual.components_.sum()
    problem = sparse.state(answers).problem
    W, Q = sparse.transform(answers).T, np.vstack([sparse.components_, sparse.confound_components_])
    squares = 0.5 * ((answers - np.vstack([W, np.ones(60)]).T @ Q) ** 2).sum()
    assert sparse.objective_ == pytest.approx(squares + 0.5 * W.sum() + 2 * problem.gamma * Q.sum(), rel=1e-6)
