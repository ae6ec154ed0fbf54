"""Resampled fits: warm starts end where cold ones do, and the seed decides everything."""

import numpy as np

from icqf.core.result import Factors
from icqf.resampling.bootstrap import bootstrap
from solving import settled


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
            if each.low is None:  # an intercept near its bound has none
                assert each.high is None and each.value < 0.03 * 2
            else:
                assert 0 <= each.low <= each.value <= each.high <= 2
    assert all(each.low is not None for column in report.model.factors for each in column.loadings)
