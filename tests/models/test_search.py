"""The search itself: what is hidden stays hidden, and a fit does not depend on its company."""

import pickle
from dataclasses import astuple, replace

import numpy as np
import pytest

from icqf import ICQF, ICQFCV
from icqf.datasets import make_synthetic
from icqf.errors import InputError
from icqf.models.search import Plan, Task, run_task, tasks
from icqf.resampling.folds import make_folds
from icqf.resampling.hidden import HeldOut
from searches import search_for
from solving import with_answers

BETAS = (0.0, 0.05, 0.2)


@pytest.fixture(scope="module")
def data():
    return make_synthetic(60, 24, 3, noise=0.2, missing=0.05, confounded=True, random_state=0)


def plan_of(answers, *, confounds=None, weights=None, init="nndsvd", n_repeats=1, **options):
    model = ICQF(1, **({"item_range": (0, 100)} | options))
    problem = model.state(answers, confounds=confounds, sample_weight=weights).problem
    folds = tuple(
        make_folds(problem.n, problem.m, n_splits=4, rng=np.random.default_rng(seed))
        for seed in range(n_repeats)
    )
    return Plan(problem, folds, BETAS, init, 5e-3, 500, problem.m)


@pytest.fixture
def fits(monkeypatch):
    """Every fit of a search as (mask, scores, loadings), in the order in which they are judged."""
    seen = []
    judge = HeldOut.error

    def recorded(held_out, factors):
        seen.append((held_out.mask.tobytes(), factors.scores.tobytes(), factors.loadings.tobytes()))
        return judge(held_out, factors)

    monkeypatch.setattr(HeldOut, "error", recorded)
    return seen


def taken(fits):
    """What was recorded so far; the record starts anew."""
    found = list(fits)
    fits.clear()
    return found


def without_seconds(trials):
    return [astuple(replace(trial, seconds=0.0)) for trial in trials]


# --- hidden answers --------------------------------------------------------------------------------

SPOILS = {
    "within the range": lambda rng, count: rng.uniform(0, 100, count),
    "missing": lambda rng, count: np.full(count, np.nan),
    "above the range": lambda rng, count: rng.uniform(200, 1e6, count),
    "below the range": lambda rng, count: rng.uniform(-1e6, -1, count),
    "infinite": lambda rng, count: np.full(count, np.inf),
}


def spoiled(answers, mask, how):
    changed = np.array(answers, dtype=float)
    changed[mask] = SPOILS[how](np.random.default_rng(5), mask.sum())
    return changed.astype(answers.dtype)


@pytest.mark.parametrize("how", SPOILS)
@pytest.mark.parametrize("init", ["nndsvd", "rotated", "random", "thorough"])
def test_hidden_answers_reach_no_fit(data, fits, init, how):
    thorough = init == "thorough"
    plan = plan_of(data.answers, confounds=data.confounds, init="nndsvd" if thorough else init)
    plan = replace(plan, thorough=thorough)
    mask = plan.folds[0].mask(2)
    other = replace(plan, problem=with_answers(plan.problem, spoiled(plan.problem.answers, mask, how)))
    task = Task(((0, 2),), (2, 3))
    trials, before = run_task(plan, task), taken(fits)
    with np.errstate(invalid="ignore"):
        other_trials, after = run_task(other, task), taken(fits)
    assert len(before) == 2 * len(BETAS) and before == after
    assert [trial.n_iter for trial in trials] == [trial.n_iter for trial in other_trials]
    assert all(a.error != b.error for a, b in zip(trials, other_trials, strict=True))  # it was looked at


def test_visible_answers_do_reach_the_fit(data, fits):
    """Were the record blind, it would also be the same here."""
    plan = plan_of(data.answers)
    answers = spoiled(plan.problem.answers, plan.folds[0].mask(1), "within the range")
    other = replace(plan, problem=with_answers(plan.problem, answers))
    run_task(plan, Task(((0, 2),), (2,)))
    before = taken(fits)
    run_task(other, Task(((0, 2),), (2,)))
    assert all(a[1] != b[1] and a[2] != b[2] for a, b in zip(before, fits, strict=True))


UNDECLARED = {
    "within the range": lambda rng, count: rng.uniform(-1.7, 8.3, count),
    "missing": lambda rng, count: np.full(count, np.nan),
    "a wider range": lambda rng, count: rng.uniform(-77.7, 123.4, count),
    "a higher range": lambda rng, count: rng.uniform(3.3, 900.1, count),
    "a lower range": lambda rng, count: rng.uniform(-41.9, 3.3, count),
}


@pytest.mark.filterwarnings("ignore::icqf.data.validate.RangeWarning")
@pytest.mark.parametrize("how", UNDECLARED)
@pytest.mark.parametrize("options", [{}, {"dtype": "float64"}, {"loading_max": 50.0}, {"weighted": True}])
def test_hidden_answers_reach_no_fit_through_an_undeclared_range(data, fits, options, how):
    """Seen from outside, with answers whose differences are not exact."""
    options = dict(options)
    answers = data.answers / 10.0 - 1.7
    weights = np.linspace(0.5, 2.5, len(answers)) if options.pop("weighted", False) else None

    def searched(table):
        model = search_for([2, 3], betas=[0.0, 0.1], n_splits=3, random_state=0, max_iter=2000, **options)
        return model.fit(table, sample_weight=weights).cv_results_, taken(fits)

    results, before = searched(answers)
    first = before[0][0]
    mask = np.frombuffer(first, dtype=bool).reshape(answers.shape)
    changed = answers.copy()
    changed[mask] = UNDECLARED[how](np.random.default_rng(5), mask.sum())
    other, after = searched(changed)
    own = [at for at, fit in enumerate(before) if fit[0] == first]
    rest = [at for at, fit in enumerate(before) if fit[0] != first]
    assert len(own) == 4 and len(rest) == 8
    assert [before[at] for at in own] == [after[at] for at in own]
    assert all(before[at][2] != after[at][2] for at in rest)  # the other folds do see them
    same_fold = results["fold"] == 0
    assert (results["n_iter"][same_fold] == other["n_iter"][same_fold]).all()


@pytest.mark.filterwarnings("ignore::icqf.data.validate.RangeWarning")
@pytest.mark.parametrize("loading_max", ["item_range", 7.0, 150.0])
def test_the_problem_of_a_fold_is_the_same_whatever_is_hidden(data, loading_max):
    """Range, γ, bounds and answers, to the last bit, for many lowest and highest hidden answers."""
    rng = np.random.default_rng(0)
    answers = data.answers / 10.0 - 1.7
    mask = make_folds(*answers.shape, n_splits=4, rng=rng).mask(0)
    seen = ~mask & ~np.isnan(answers)
    problems = []
    for _ in range(40):
        table = answers.copy()
        table[mask] = rng.uniform(*np.sort(rng.uniform(-90, 90, 2)), mask.sum())
        problem = ICQF(1, loading_max=loading_max, dtype="float64").state(table).problem
        problems.append(HeldOut(problem, mask, given=table).visible)
    low, high = answers[seen].min(), answers[seen].max()
    for problem in problems:
        assert (problem.hidden == ~seen).all()
        assert problem.answers[seen].tobytes() == (answers[seen] - low).tobytes()
        assert (problem.span == high - low).all()
        assert problem.gamma == 60 / 24 * (high - low)
        assert (problem.bounds.loading == problems[0].bounds.loading).all()
        assert (problem.bounds.loading <= high - low).all()


@pytest.mark.filterwarnings("ignore::icqf.data.validate.RangeWarning")
@pytest.mark.parametrize("dtype", [np.int8, np.int64])
def test_hidden_whole_numbers_reach_no_fit_through_an_undeclared_range(fits, dtype):
    rng = np.random.default_rng(0)
    answers = rng.integers(-90, 60, (40, 12)).astype(dtype)
    model = search_for([1, 2], betas=[0.1], n_splits=3, random_state=0, max_iter=2000)
    model.fit(answers)
    before = taken(fits)
    mask = np.frombuffer(before[0][0], dtype=bool).reshape(answers.shape)
    changed = answers.copy()
    changed[mask] = rng.choice([-128, -100, 127], mask.sum())
    model.fit(changed)
    own = [at for at, fit in enumerate(before) if fit[0] == before[0][0]]
    assert len(own) == 2 and [before[at] for at in own] == [fits[at] for at in own]


@pytest.mark.filterwarnings("ignore::icqf.data.validate.RangeWarning")
def test_an_undeclared_range_does_not_move_the_choice(data):
    """The same search, but for the range of a fold: the errors stay in the answers' own units."""
    answers = np.nan_to_num(data.answers, nan=50.0)
    options = {"betas": [0.1], "n_splits": 3, "random_state": 0}
    declared = search_for([2, 3, 4], item_range=(0, 100), **options).fit(answers)
    found = search_for([2, 3, 4], **options).fit(answers)
    np.testing.assert_allclose(found.cv_results_["error"], declared.cv_results_["error"], rtol=1e-5)
    shifted = search_for([2, 3, 4], **options).fit(answers + 7)
    np.testing.assert_allclose(shifted.cv_results_["error"], declared.cv_results_["error"], rtol=1e-3)


@pytest.mark.filterwarnings("ignore::icqf.data.validate.RangeWarning")
def test_a_fold_that_leaves_one_answer_says_what_to_do():
    answers = np.zeros((6, 6))
    answers[0, 0] = 1.0
    search_of_two = search_for([1], betas=[0.1], n_splits=2, random_state=0)
    with (
        pytest.warns(UserWarning, match="same answer from everybody"),
        pytest.raises(InputError, match="all equal, so their range cannot be determined; declare item_range"),
    ):
        search_of_two.fit(answers)


# --- company ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("init", ["nndsvd", "rotated", "random"])
def test_a_fit_does_not_depend_on_which_others_run_beside_it(data, init):
    plan = plan_of(data.answers, confounds=data.confounds, init=init)
    folds = ((0, 1), (0, 3), (0, 0))
    together = without_seconds(run_task(plan, Task(folds, (2, 3, 4))))
    apart = [run_task(plan, Task((fold,), (k,))) for k in (2, 3, 4) for fold in folds]
    assert sorted(together) == sorted(trial for trials in apart for trial in without_seconds(trials))
    assert len({trial[4] for trial in together}) == len(together)


def test_random_starts_follow_the_seed(data):
    plan = plan_of(data.answers, init="random")
    task = Task(((0, 1),), (3,))
    first, again, other = (run_task(replace(plan, seed=seed), task) for seed in (1, 1, 2))
    assert without_seconds(first) == without_seconds(again)
    assert first[0].error != other[0].error


def test_warm_starts_along_beta_change_nothing_that_matters():
    """Up to the true number of factors the answers determine the fit; beyond it, basins may differ."""
    data = make_synthetic(150, 60, 5, noise=0.2, missing=0.05, random_state=0)
    plan = replace(plan_of(data.answers), tol=1e-4, max_iter=3000)
    for k in (4, 5):
        for trial in run_task(plan, Task(((0, 1),), (k,))):
            cold = run_task(replace(plan, betas=(trial.beta,)), Task(((0, 1),), (k,)))[0]
            assert cold.error == pytest.approx(trial.error, rel=2e-3)


@pytest.mark.parametrize("pieces", [1, 2, 3, 7])
def test_tasks_cover_every_fit_once(data, pieces):
    plan = plan_of(data.answers, n_repeats=2)
    ks = [2, 3, 5, 8, 9]
    found = [
        (*fold, k)
        for task in tasks(plan, dict.fromkeys(ks, 0.5), plan.every_fold, pieces=pieces)
        for fold in task.folds
        for k in task.ks
    ]
    assert sorted(found) == [(repeat, fold, k) for repeat in range(2) for fold in range(4) for k in ks]


def test_the_numbers_of_hidden_answers_add_up_to_the_observed_ones(data):
    plan = plan_of(data.answers, n_repeats=2)
    todo = tasks(plan, {2: 0.0}, plan.every_fold, pieces=1)
    trials = [trial for task in todo for trial in run_task(plan, task)]
    for repeat in range(2):
        hidden = sum(t.n_hidden for t in trials if t.repeat == repeat and t.beta == 0.0)
        assert hidden == (~np.isnan(data.answers)).sum()


def test_what_is_sent_to_a_process_is_the_answers_and_little_else():
    """Masks travel as fold numbers, and floats are decoded where they are needed."""
    answers = np.random.default_rng(0).integers(0, 5, (800, 60)).astype(np.int8)
    plan = plan_of(answers, item_range=(0, 4), n_repeats=3)
    before = len(pickle.dumps(plan))
    run_task(plan, Task(((0, 1),), (2,)))
    assert len(pickle.dumps(plan)) == before < answers.nbytes + 4 * 800 * 8 + 3 * 100 * 60 * 2 + 10_000


def test_the_estimators_own_number_of_factors_and_penalty_are_not_looked_at(data):
    options = {"n_components": [2, 3], "betas": [0.0, 0.2], "n_splits": 3, "random_state": 0}
    first, second = (
        ICQFCV(ICQF(k, beta=beta, item_range=(0, 100)), **options).fit(data.answers).cv_results_
        for k, beta in ((None, 0.1), (5, 3.0))
    )
    assert first.drop(columns="seconds").equals(second.drop(columns="seconds"))
