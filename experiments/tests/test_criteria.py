"""BIC, cophenetic correlation and dispersion, each against a plain and slow version of itself."""

import numpy as np
import pandas as pd
import pytest
from scipy.cluster.hierarchy import cophenet, linkage

from hostile import degenerate
from icqf import ICQF
from icqf.core.start import Starts
from icqf.datasets import make_synthetic
from icqf.errors import InputError
from icqf_experiments.criteria import bic, consensus_curve, cophenetic, dispersion
from solving import settled

MODEL = ICQF(item_range=(0, 100), dtype="float64")


@pytest.fixture(scope="module")
def data():
    return make_synthetic(80, 30, 3, noise=0.1, random_state=0)


@pytest.fixture(scope="module")
def small():
    return make_synthetic(14, 10, 3, noise=0.4, missing=0.1, random_state=0).answers


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_bic_is_its_formula(missing):
    answers = make_synthetic(40, 20, 3, noise=0.2, missing=missing, random_state=0).answers
    found = bic(MODEL, answers, [1, 3, 4])
    problem = MODEL.state(answers).problem
    observed = int((~np.isnan(answers)).sum())
    for _, row in found.curve.iterrows():
        k = int(row["n_components"])
        fit = settled(problem, Starts(problem).make("nndsvd", k)).factors
        R = problem.with_confounds(fit.scores).T @ fit.loadings
        squares = sum(
            (answers[i, j] - R[i, j]) ** 2
            for i in range(40)
            for j in range(20)
            if not np.isnan(answers[i, j])
        )
        price = k * (20 + 40) / observed * np.log(observed / (20 + 40))
        assert row["squared_error"] == pytest.approx(squares, rel=1e-9)
        assert row["bic"] == pytest.approx(np.log(squares) + price, rel=1e-9)
    assert found.n_components == found.curve.loc[found.curve["bic"].idxmin(), "n_components"]
    assert found.better == "lower" and found.value == "bic"


def test_bic_finds_the_number_of_factors(data):
    confounded = make_synthetic(80, 30, 3, noise=0.1, missing=0.1, confounded=True, random_state=0)
    assert bic(MODEL, data.answers, range(1, 7)).n_components == 3
    assert bic(MODEL, confounded.answers, range(1, 7), confounds=confounded.confounds).n_components == 3


def consensus_of_starts(answers, k, *, n_starts, random_state=0):
    """Share of the starts in which two participants belong together, in plain loops."""
    problem = MODEL.state(answers).problem
    seed = np.random.RandomState(random_state).randint(2**31 - 1)
    rng = np.random.default_rng([seed, k])
    together = np.zeros((problem.n, problem.n))
    for _ in range(n_starts):
        fit = settled(problem, Starts(problem).make("random", k, rng)).factors
        belongs = []
        for i in range(problem.n):
            sizes = [fit.scores[r, i] * np.sqrt((fit.loadings[r] ** 2).sum()) for r in range(k)]
            belongs.append(max(range(k), key=lambda r, sizes=sizes: sizes[r]))
        for i in range(problem.n):
            for j in range(problem.n):
                together[i, j] += belongs[i] == belongs[j]
    return together / n_starts


@pytest.mark.parametrize("k", [2, 3, 5])
def test_consensus_measures_are_their_definitions(small, k):
    together = consensus_of_starts(small, k, n_starts=4)
    assert 0 < together.mean() < 1
    n = len(together)
    spread = sum(4 * (together[i, j] - 0.5) ** 2 for i in range(n) for j in range(n)) / n**2
    distances = 1 - together[np.triu_indices(n, 1)]
    expected = cophenet(linkage(distances, "average"), distances)[0]
    row = consensus_curve(MODEL.state(small).problem, [k], n_starts=4).iloc[0]
    assert row["dispersion"] == pytest.approx(spread, abs=1e-12)
    assert row["cophenetic"] == pytest.approx(expected, abs=1e-12)
    for method, name in ((cophenetic, "cophenetic"), (dispersion, "dispersion")):
        assert method(MODEL, small, [k], n_starts=4).curve[name][0] == row[name]


def test_starts_that_agree_give_one(monkeypatch, small):
    """All-or-nothing consensus: dispersion and cophenetic correlation are both 1."""
    problem = MODEL.state(small).problem
    one_start = Starts(problem).make("random", 3, np.random.default_rng(0))
    monkeypatch.setattr(Starts, "make", lambda *_: one_start)
    row = consensus_curve(problem, [3], n_starts=4).iloc[0]
    assert row["dispersion"] == 1 and row["cophenetic"] == pytest.approx(1)


@pytest.mark.parametrize("method", [cophenetic, dispersion])
def test_the_most_consistent_number_is_chosen(method, data):
    found = method(MODEL, data.answers, [2, 3, 4, 5], n_starts=5)
    value = found.curve[found.value]
    assert value.between(-1, 1).all()
    assert found.n_components == found.curve["n_components"][value >= value.max() - 1e-9].max()
    assert found.better == "higher" and "5 random starts" in found.reason


def test_same_seed_same_curve_whatever_the_jobs(small):
    problem = MODEL.state(small).problem
    one, two = (consensus_curve(problem, [2, 3], n_starts=3, n_jobs=jobs) for jobs in (1, 2))
    pd.testing.assert_frame_equal(one, two, check_exact=True)
    pd.testing.assert_frame_equal(
        one.iloc[1:], consensus_curve(problem, [3], n_starts=3).set_index(pd.Index([1]))
    )
    other = consensus_curve(problem, [2, 3], n_starts=3, random_state=1)
    assert (other["dispersion"] != one["dispersion"]).any()
    first, second = (bic(MODEL, small, [1, 2], n_jobs=jobs).curve for jobs in (1, 2))
    pd.testing.assert_frame_equal(first, second, check_exact=True)


def test_the_model_is_left_alone(small):
    model = ICQF(item_range=(0, 100))
    bic(model, small, [1])
    assert not hasattr(model, "item_range_") and model.n_components is None


@pytest.mark.parametrize("method", [cophenetic, dispersion])
def test_one_factor_puts_everybody_together(method, small):
    with pytest.raises(InputError, match="does not separate participants; try numbers of factors from 2"):
        method(MODEL, small, [1, 2, 3])


@pytest.mark.parametrize("method", [bic, cophenetic, dispersion])
@pytest.mark.parametrize("ks", [[], [0, 2], [2, 11]])
def test_numbers_that_cannot_be_tried(method, small, ks):
    with pytest.raises(InputError, match="must be between 1 and 10"):
        method(MODEL, small, ks)


def curve_of(method, column, **more):
    def call(table, weights=None, **settings):
        model = ICQF(**({"item_range": degenerate.RANGE} | settings))
        return [method(model, table, [2], **more).curve[column].to_numpy()]

    return call


@pytest.mark.parametrize("scenario", degenerate.SCENARIOS)
def test_degenerate_tables_are_answered_or_refused(scenario, monkeypatch):
    calls = {
        "bic": curve_of(bic, "bic"),
        "cophenetic": curve_of(cophenetic, "cophenetic", n_starts=2),
        "dispersion": curve_of(dispersion, "dispersion", n_starts=2),
    }
    monkeypatch.setattr(degenerate, "CALLS", calls)
    tally = degenerate.run([scenario])
    assert not tally.faults, "\n".join(tally.lines())
