"""The certificate tells the truth: a slow, independent search finds no better single move than it says."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from icqf import ICQF
from icqf.core.penalties import L1, L2, L21
from icqf.datasets import make_synthetic
from reference import Plain, feasible_moves
from solving import solved_as

PENALTIES = {each.name: each for each in (L1, L2, L21)}


def likert(n=40, m=9, k=3, *, top=4, missing=0.0, seed=0):
    """Whole answers 0…top from a few factors, some of them missing."""
    rng = np.random.default_rng(seed)
    W = rng.random((n, k)) * (rng.random((n, k)) < 0.6)
    Q = top * rng.random((k, m)) * (rng.random((k, m)) < 0.5)
    answers = np.clip(np.rint(W @ Q + rng.normal(0, 0.7, (n, m))), 0, top)
    answers[rng.random((n, m)) < missing] = np.nan
    answers[0, np.isnan(answers).all(axis=0)] = 1
    answers[np.isnan(answers).all(axis=1), 0] = 1
    return answers


def solution(model, answers, *, columns=None, confounds=None, weights=None, scale=1.0):
    """The returned point as the solver certified it: (Plain, W, Q, Factorization)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        problem = model.state(answers, confounds=confounds, sample_weight=weights).problem
        found = solved_as(model, problem)
    low, high = np.asarray(model.item_range, dtype=float).T
    plain = Plain.of(
        answers,
        low,
        high,
        beta=model.beta,
        confounds=columns,
        weights=weights,
        kind=model.penalty,
        score_max=model.score_max,
        loading_max=model.loading_max,
        reconstruction_max=model.reconstruction_max,
        intercept=model.intercept,
        scale=scale,
    )
    return plain, found.factors.scores.T, found.factors.loadings.T, found


CASES = {
    "default": {},
    "single precision": {"dtype": "float32"},
    "no penalty": {"beta": 0.0},
    "strong penalty": {"beta": 3.0},
    "l2": {"penalty": "l2", "beta": 0.5},
    "l21": {"penalty": "l21", "beta": 0.5},
    "l21, single precision": {"penalty": "l21", "beta": 0.5, "dtype": "float32"},
    "admm": {"solver": "admm", "max_iter": 2000},
    "bounds off": {"score_max": None, "loading_max": None, "reconstruction_max": None, "intercept": False},
    "low ceiling": {"loading_max": 1.5, "score_max": 0.7},
    "stopped early": {"max_iter": 3},
    "l21, stopped early": {"max_iter": 3, "penalty": "l21", "beta": 0.5},
}


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("case", CASES)
def test_no_coordinate_improves_by_more_than_the_certificate_says(case, missing):
    options = {"dtype": "float64", "item_range": (0, 4), "beta": 0.2} | CASES[case]
    answers = likert(missing=missing, seed=3)
    plain, W, Q, found = solution(ICQF(3, **options), answers)
    certificate = found.certificate
    score_steps, score_gains = plain.score_steps(W, Q)
    loading_steps, loading_gains = plain.loading_steps(W, Q)

    assert plain.violation(W, Q) <= 0
    assert certificate.excess == 0
    assert found.objective == pytest.approx(plain.objective(W, Q), rel=1e-10)
    # Nothing is hidden, and nothing is exaggerated: both measure the same largest step.
    score_unit, loading_unit = plain.units(W, Q)
    score_step, loading_step = (score_steps / score_unit).max(), (loading_steps / loading_unit).max()
    assert certificate.score_step == pytest.approx(score_step, rel=1e-5, abs=1e-8)
    assert certificate.loading_step == pytest.approx(loading_step, rel=1e-5, abs=1e-8)
    gain = max(score_gains.max(), loading_gains.max())
    assert certificate.gain == pytest.approx(gain, rel=1e-5, abs=1e-9 * found.objective)
    if "early" in case:
        assert not found.converged and not certificate.holds(1e-3)
    else:
        assert found.converged
        assert max(score_step, loading_step) <= 1e-3 * (1 + 1e-5)


@pytest.mark.parametrize(
    ("item_weight", "scale"),
    [(None, 1.0), ("range", np.array([10, 10, 10, 1, 1, 40, 40, 10, 10.0])), (np.arange(1.0, 10), None)],
    ids=["own units", "range", "array"],
)
def test_with_confounds_weights_and_mixed_ranges(item_weight, scale):
    rng = np.random.default_rng(8)
    answers = likert(missing=0.2, seed=5) * np.array([1, 1, 1, 10, 10, 0.25, 0.25, 1, 1]) - 2
    high = np.array([4, 4, 4, 40, 40, 1, 1, 4, 4]) - 2.0
    scale = np.arange(1.0, 10) * 40 / (5 * 40) if scale is None else scale  # the fifth becomes the widest
    age, weights = rng.integers(6, 19, len(answers)), rng.integers(1, 5, len(answers)).astype(float)
    sex = rng.integers(0, 2, len(answers))
    age[:2], sex[:2] = (6, 18), (0, 1)
    x = (age - 6) / 12
    columns = np.column_stack([x, 1 - x, sex == 0, sex == 1])
    model = ICQF(
        3,
        dtype="float64",
        beta=0.3,
        item_range=np.column_stack([np.full(9, -2.0), high]),
        item_weight=item_weight,
        smallest_category=1,
        max_iter=2000,
    )
    plain, W, Q, found = solution(
        model, answers, columns=columns, confounds={"age": age, "sex": sex}, weights=weights, scale=scale
    )
    score_steps, score_gains = plain.score_steps(W, Q)
    loading_steps, loading_gains = plain.loading_steps(W, Q)
    assert plain.violation(W, Q) <= 0
    assert found.objective == pytest.approx(plain.objective(W, Q), rel=1e-10)
    assert found.certificate.score_step == pytest.approx(score_steps.max(), rel=1e-5, abs=1e-8)
    assert found.certificate.loading_step == pytest.approx(
        (loading_steps / plain.b[:, None]).max(), rel=1e-5, abs=1e-8
    )
    gain = max(score_gains.max(), loading_gains.max())
    assert found.certificate.gain == pytest.approx(gain, rel=1e-5, abs=1e-9 * found.objective)


@pytest.mark.parametrize("penalty", ["l1", "l2", "l21"])
def test_on_the_papers_data_no_random_move_gains_more_than_the_certificate(penalty):
    data = make_synthetic(60, 30, 5, noise=0.3, missing=0.1, random_state=1)
    model = ICQF(5, item_range=(0, 100), dtype="float64", penalty=penalty, beta=0.5, max_iter=2000)
    plain, W, Q, found = solution(model, data.answers)
    assert found.converged
    F = plain.objective(W, Q)
    rng = np.random.default_rng(0)
    for W_new, Q_new in feasible_moves(plain, W, Q, rng, 300):
        assert plain.objective(W_new, Q_new) >= F - found.certificate.gain - 1e-9 * F


def test_the_reference_itself_sees_a_spoiled_solution():
    """Were the check blind, it would also pass here."""
    answers = likert(seed=3)
    plain, W, Q, found = solution(ICQF(3, dtype="float64", item_range=(0, 4), beta=0.2), answers)
    i, r = np.argwhere((W > 0.2) & (W < 0.8))[0]
    spoiled = W.copy()
    spoiled[i, r] += 0.1
    steps, gains = plain.score_steps(spoiled, Q)
    assert steps[i, r] == pytest.approx(0.1, abs=5e-3)
    assert gains[i, r] > found.certificate.gain
    assert plain.violation(W + 0.5, Q) > 0 and plain.violation(W, Q + 4) > 0


def coordinate(kind, h, p, others):
    """The exact step for λ = 1, and the function it minimises over w ≥ 0."""

    def value(w):
        penalty = {"l1": w, "l2": w**2 / 2, "l21": np.sqrt(w**2 + others)}[kind]
        return h * w**2 / 2 - p * w + penalty

    return float(
        PENALTIES[kind](1.0).coordinate(np.array([h]), np.array([p]), np.array([others]), scale=1.0)[0]
    ), value


@pytest.mark.parametrize("kind", ["l1", "l2", "l21"])
@pytest.mark.parametrize("h", [0.01, 1.0, 40.0])
@pytest.mark.parametrize("others", [0.0, 1e-20, 0.01, 4.0])
def test_the_exact_step(kind, h, others):
    for p in (-0.5, 0.0, 1e-9, 0.5, 0.99, 1.0, 1.01, 3.0):
        found, value = coordinate(kind, h, p, others)
        assert value(found) <= value(np.linspace(0, max(1.0, 2 * p / h), 20001)).min() + 1e-12


@pytest.mark.parametrize("kind", ["l2", "l21"])
def test_the_exact_step_without_curvature(kind):
    """½w² − ½w is least at ½, and √(w² + 1) − ½w at 1/√3."""
    found, value = coordinate(kind, 1e-13, 0.5, 1.0)
    assert value(found) <= value(np.linspace(0, 1, 20001)).min() + 1e-9


def test_the_fitted_attributes_are_those_of_the_certified_point():
    data = make_synthetic(60, 30, 5, noise=0.2, random_state=2)
    model = ICQF(5, item_range=(0, 100), dtype="float64").fit(data.answers)
    plain = Plain.of(data.answers, 0, 100, beta=0.1)
    W, Q = (
        model.transform(data.answers),
        np.concatenate([model.loadings_.to_numpy(), model.confound_loadings_.to_numpy()], axis=1),
    )
    assert model.objective_ == pytest.approx(plain.objective(W, Q), rel=1e-7)
    assert (plain.loading_steps(W, Q)[0] / 100).max() <= model.certificate_.loading_step + 1e-4
    assert plain.violation(W, Q) <= 0
