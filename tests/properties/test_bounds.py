"""Whatever the data: every bound holds exactly, and the certificate hides nothing."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from icqf import ICQF
from icqf.data.validate import EmptyRowsWarning
from reference import Plain
from solving import solved_as

SEEDS = st.integers(0, 2**32 - 1)


@dataclass
class Case:
    """A drawn table with its model; `design` is written out here, independently of the package."""

    model: ICQF
    answers: np.ndarray
    low: np.ndarray
    high: np.ndarray
    confounds: Any
    design: np.ndarray | None
    weights: np.ndarray | None


@st.composite
def cases(draw, *, everybody=False, **fixed):
    rng = np.random.default_rng(draw(SEEDS))
    n, m = draw(st.integers(3, 25)), draw(st.integers(2, 9))
    k = draw(st.integers(1, min(n, m, 4)))
    width = {
        "one": np.full(m, 4.0),
        "mixed": rng.choice([1.0, 2.0, 4.0, 10.0, 100.0], m),
        "odd": rng.uniform(0.3, 7.0, m),
    }[draw(st.sampled_from(["one", "mixed", "odd"]))]
    low = draw(st.sampled_from([0.0, 1.0, -3.0, 0.1])) * np.ones(m)
    share = rng.random((n, m)) ** draw(st.sampled_from([0.2, 1.0, 4.0]))  # high, even or low answers
    if draw(st.booleans()):
        share = np.rint(share)  # only the two ends of the range
    answers = np.clip(low + share * width, low, low + width)
    if draw(st.booleans()):
        answers[:, 0] = (low + width)[0]  # an item at its top for everybody
    answers[rng.random((n, m)) < draw(st.sampled_from([0.0, 0.2, 0.6]))] = np.nan
    answers[rng.integers(n, size=m), np.arange(m)] = low  # somebody answered every item
    answers[:k, 0] = low[0] + share[:k, 0] * width[0]  # and k people answered something
    if everybody:
        answers[np.isnan(answers).all(axis=1), 0] = low[0]
    table, columns = {}, []
    for kind in draw(st.sampled_from([[], ["age"], ["sex"], ["age", "site"]])):
        if kind == "age":
            table["age"] = age = np.r_[0.0, 1.0, rng.random(n - 2)] * 13.7 + 5.1
            x = (age - 5.1) / (18.8 - 5.1)
            columns += [x, 1 - x]
        else:
            names = np.array(["a", "b", "c"][: 2 if kind == "sex" else 3])
            table[kind] = group = np.r_[names, rng.choice(names, n - len(names))]
            columns += [(group == name).astype(float) for name in names]
    weights = rng.choice([0.5, 1.0, 2.0, 3.7], n) if draw(st.booleans()) else None
    options = {
        "beta": draw(st.sampled_from([0.0, 0.01, 0.1, 1.0, 10.0])),
        "penalty": draw(st.sampled_from(["l1", "l2", "l21"])),
        "solver": draw(st.sampled_from(["fast", "fast", "admm"])),
        "init": draw(st.sampled_from(["nndsvd", "rotated", "random"])),
        "intercept": draw(st.booleans()),
        "item_weight": draw(st.sampled_from(["range", "variance", None])),
        "dtype": draw(st.sampled_from(["float32", "float64"])),
        "max_iter": draw(st.sampled_from([1, 5, 60])),
        "n_init": draw(st.sampled_from([1, 1, 2])),
    }
    if options["solver"] == "admm" and options["penalty"] == "l21":
        options["max_iter"] = min(options["max_iter"], 5)  # its iterations take seconds
    model = ICQF(
        k,
        item_range=np.column_stack([low, low + width]),
        confound_ranges={"age": (5.1, 18.8)} if "age" in table else None,
        random_state=0,
        smallest_category=1,
        **(options | fixed),
    )
    design = np.column_stack(columns) if columns else None
    return Case(model, answers, low, low + width, pd.DataFrame(table) if table else None, design, weights)


def quiet_fit(case):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", EmptyRowsWarning)
        warnings.filterwarnings("ignore", message=".*same answer from everybody|All loadings are 0")
        return case.model.fit(case.answers, confounds=case.confounds, sample_weight=case.weights)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(cases())
def test_bounds_hold_exactly(case):
    model = quiet_fit(case)
    with warnings.catch_warnings(action="ignore", category=EmptyRowsWarning):
        scores = model.transform(case.answers, confounds=case.confounds)
    filled = ~np.isnan(case.answers).all(axis=1)
    assert np.isnan(scores[~filled]).all()
    W, span = scores[filled], case.high - case.low
    assert W.min() >= 0 and W.max() <= 1
    for loadings in (model.loadings_.to_numpy(), model.confound_loadings_.to_numpy()):
        assert (loadings >= 0).all() and (loadings <= span[:, None]).all()
    R = W @ model.components_
    if case.design is not None:
        names = len(case.design[0])
        R = R + case.design[filled] @ model.confound_loadings_.to_numpy()[:, :names].T
    if model.intercept:
        R = R + model.confound_loadings_["Intercept"].to_numpy()
    assert R.min() >= 0
    assert np.less_equal(R, span).all()  # added up in another order than the model's, and no tolerance
    back = model.inverse_transform(W, confounds=None if case.confounds is None else case.confounds[filled])
    assert (back >= case.low).all() and (back <= case.high).all()
    assert np.isfinite(model.objective_)


@settings(max_examples=60, deadline=None)
@given(cases(everybody=True, dtype="float64"))
def test_the_certificate_hides_nothing(case):
    model = case.model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message=".*same answer from everybody|All loadings are 0")
        problem = model.state(case.answers, confounds=case.confounds, sample_weight=case.weights).problem
        found = solved_as(model, problem)
    plain = Plain.of(
        case.answers,
        case.low,
        case.high,
        beta=model.beta,
        confounds=case.design,
        weights=case.weights,
        kind=model.penalty,
        intercept=model.intercept,
        scale=1.0 if problem.scaling is None else problem.scaling.scale,
    )
    W, Q = found.factors.scores.T, found.factors.loadings.T
    assert plain.violation(W, Q) <= 0
    assert found.objective == pytest.approx(plain.objective(W, Q), rel=1e-9, abs=1e-9)
    score_steps, score_gains = plain.score_steps(W, Q)
    loading_steps, loading_gains = plain.loading_steps(W, Q)
    # The certificate's arithmetic is double precision: 1e-6 of a step is far above its rounding.
    assert score_steps.max() <= found.certificate.score_step * (1 + 1e-6) + 1e-7
    assert (loading_steps / plain.b[:, None]).max() <= found.certificate.loading_step * (1 + 1e-6) + 1e-7
    gain = max(score_gains.max(), loading_gains.max())
    assert gain <= found.certificate.gain * (1 + 1e-6) + 1e-10 * max(found.objective, 1.0)
