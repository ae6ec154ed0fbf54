"""Resampled fits: warm starts end where cold ones do, and the seed decides everything."""

import numpy as np

from icqf.resampling.bootstrap import _hidden_sums, bootstrap, predict_hidden
from icqf.solvers.result import Factors
from solving import settled, with_answers


def _pieces(model, questionnaire):
    answers, confounds = questionnaire.keyed_answers(), questionnaire.confounds
    problem = model.state(answers, confounds=confounds).problem
    scores = model.transform(answers, confounds=confounds).T
    return problem, scores, np.concatenate([model.components_, model.confound_components_])


def test_the_same_seed_gives_the_same_numbers_whatever_n_jobs(model, questionnaire):
    problem, scores, solution = _pieces(model, questionnaire)
    runs = [
        bootstrap(problem, scores, solution, n_resamples=4, n_jobs=jobs, rng=np.random.default_rng(5))
        for jobs in (None, 2)
    ]
    np.testing.assert_array_equal(runs[0].loadings, runs[1].loadings)


def test_loose_refits_are_close_to_tight_ones(model, questionnaire):
    problem, scores, solution = _pieces(model, questionnaire)
    found = bootstrap(problem, scores, solution, n_resamples=6, rng=np.random.default_rng(1))
    rng = np.random.default_rng(1)
    for refit in found.loadings:
        counts = rng.multinomial(problem.n, np.full(problem.n, 1 / problem.n))
        rows = np.repeat(np.arange(problem.n), counts)
        drawn = problem.of_rows(rows)
        tight = settled(drawn, Factors(scores[:, rows], solution), tol=1e-4, max_iter=2000).factors
        gap = np.abs(refit - tight.loadings) / problem.span
        assert gap.max() < 0.05
    spread = found.loadings.std(axis=0)
    assert spread.mean() > 0


def test_whole_groups_are_drawn(model, questionnaire):
    problem, scores, solution = _pieces(model, questionnaire)
    alone = np.arange(problem.n)
    one = bootstrap(problem, scores, solution, n_resamples=3, rng=np.random.default_rng(2))
    grouped = bootstrap(problem, scores, solution, n_resamples=3, groups=alone, rng=np.random.default_rng(2))
    np.testing.assert_array_equal(one.loadings, grouped.loadings)


def test_intervals_hold_the_loading_and_keep_to_the_range(report):
    for column in (*report.model.factors, *report.model.confounds):
        for each in column.loadings:
            assert 0 <= each.low <= each.value <= each.high <= 2


def test_hidden_answers_do_not_leak(model, questionnaire):
    """Predictions do not move with hidden answers, so the error is a plain parabola in a shift of these."""
    problem, _, _ = _pieces(model, questionnaire)
    mask = np.random.default_rng(3).random((problem.n, problem.m)) < 0.1
    errors = []
    for shift in (0.0, 1.0, 2.0):
        answers = np.where(mask, problem.answers + shift, problem.answers)
        errors.append(_hidden_sums(with_answers(problem, answers), mask, 2, "nndsvd", 0))
    hidden = (mask & (problem.answers >= 0)).sum(axis=0)
    for first, second, third in zip(*errors, strict=True):
        np.testing.assert_allclose(first - 2 * second + third, 2 * hidden, rtol=1e-4)


def test_unrelated_answers_are_not_predicted(model, questionnaire):
    problem, _, _ = _pieces(model, questionnaire)
    shuffled = with_answers(problem, np.random.default_rng(3).permuted(problem.answers, axis=0))
    assert predict_hidden(problem, 2, rng=np.random.default_rng(0)).overall > 0.1
    assert predict_hidden(shuffled, 2, rng=np.random.default_rng(0)).overall < 0.05
