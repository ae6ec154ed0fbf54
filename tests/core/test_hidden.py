"""A missing or hidden answer's value never matters: not to the start, not to the fit, not to the last bit."""

import numpy as np
import pytest

from icqf import ICQF
from icqf.core.start import Starts
from icqf.datasets import make_synthetic
from solving import solved, with_answers


@pytest.fixture
def problem():
    data = make_synthetic(60, 30, 4, noise=0.2, random_state=0)
    return ICQF(4, item_range=(0, 100), dtype="float64").state(np.rint(data.answers)).problem


@pytest.fixture
def mask(problem):
    return np.random.default_rng(1).random((problem.n, problem.m)) < 0.2


def spoiled(problem, mask, how):
    """The same problem with other values under the mask."""
    answers = problem.answers.copy()
    rng = np.random.default_rng(2)
    answers[mask] = {
        "random": rng.uniform(0, 100, mask.sum()),
        "huge": 1e30,
        "missing": np.nan,
        "negative": -5.0,
        "infinite": np.inf,
    }[how]
    return with_answers(problem, answers)


def same(a, b):
    return a.tobytes() == b.tobytes()


SPOILS = ["random", "huge", "missing", "negative", "infinite"]


@pytest.mark.parametrize("how", SPOILS)
@pytest.mark.parametrize("solver", ["fast", "admm"])
def test_hidden_answers_never_matter(problem, mask, solver, how):
    found = solved(problem.hide(mask), 4, name=solver)
    other = solved(spoiled(problem, mask, how).hide(mask), 4, name=solver)
    assert same(found.factors.scores, other.factors.scores)
    assert same(found.factors.loadings, other.factors.loadings)
    assert found.objective == other.objective
    assert found.certificate == other.certificate
    assert same(found.fit.sse, other.fit.sse) and same(found.fit.sst, other.fit.sst)


@pytest.mark.parametrize("how", SPOILS)
@pytest.mark.parametrize("name", ["nndsvd", "rotated", "random"])
def test_no_start_sees_hidden_answers(problem, mask, name, how):
    starts = [
        Starts(p.hide(mask)).make(name, 4, np.random.default_rng(0))
        for p in (problem, spoiled(problem, mask, how))
    ]
    assert same(starts[0].scores, starts[1].scores)
    assert same(starts[0].loadings, starts[1].loadings)


def test_the_start_does_see_what_is_not_hidden(problem, mask):
    """Were the check blind, it would also pass here."""
    starts = [
        Starts(p).make("nndsvd", 4, np.random.default_rng(0))
        for p in (problem, spoiled(problem, mask, "random"))
    ]
    assert not np.allclose(starts[0].loadings, starts[1].loadings, rtol=0.01)


def test_hiding_is_the_same_as_missing(problem, mask):
    missing = spoiled(problem, mask, "missing")
    hidden_fit = solved(problem.hide(mask), 4)
    missing_fit = solved(missing, 4)
    assert same(hidden_fit.factors.loadings, missing_fit.factors.loadings)


def test_hiding_twice_hides_both_and_leaves_the_first_alone(problem, mask):
    other = np.roll(mask, 7, axis=0)
    once = problem.hide(mask)
    twice = once.hide(other)
    assert problem.hidden is None
    assert (once.hidden == mask).all()
    assert (twice.hidden == (mask | other)).all()


def test_hidden_answers_in_a_table_of_small_integers(problem, mask):
    """Integers are decoded block by block; 0 under the mask must not be taken for an answer."""
    whole = with_answers(problem, problem.answers.astype(np.int8))
    zeroed = with_answers(whole, np.where(mask, 0, whole.answers).astype(np.int8))
    found = [solved(p.hide(mask), 4) for p in (whole, zeroed)]
    assert same(found[0].factors.loadings, found[1].factors.loadings)


def test_the_filling_of_a_table_with_gaps_never_matters():
    """Seen from outside: NaN, pandas NA and a masked table's filling are one and the same."""
    import pandas as pd

    data = make_synthetic(60, 30, 4, noise=0.2, missing=0.2, random_state=0)
    answers = pd.DataFrame(np.rint(data.answers))
    nullable = answers.astype("Int64")
    model = ICQF(4, item_range=(0, 100))
    plain = model.fit(answers.rename(columns=str)).components_.copy()
    nulls = model.fit(nullable.rename(columns=str)).components_
    assert same(plain, nulls)
