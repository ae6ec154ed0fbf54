"""Items that count alike: what weights do, what they leave alone, and that nothing hidden enters by them."""

import warnings

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF, ICQFCV, consensus
from icqf.core.problem import weighed
from icqf.data.validate import RangeWarning
from icqf.datasets import load_demo
from icqf.errors import InputError
from icqf.models import L1NMF
from icqf.resampling.bootstrap import bootstrap
from icqf.resampling.hidden import HeldOut
from reference import Plain
from solving import settled, with_answers

HIGH = np.array([1, 1, 1, 1, 3, 3, 3, 3, 10, 10, 10, 10.0])
RANGES = np.column_stack([np.zeros(12), HIGH])
KINDS = ["range", "variance", np.linspace(1, 3, 12), None]


@pytest.fixture(scope="module")
def answers():
    """80 participants, 12 items on three ranges, three factors, a tenth of the answers missing."""
    rng = np.random.default_rng(3)
    W = rng.random((80, 3)) * (rng.random((80, 3)) < 0.5)
    Q = HIGH * rng.random((3, 12)) * (rng.random((3, 12)) < 0.5)
    found = np.rint(np.clip(W @ Q + rng.normal(0, 0.35, (80, 12)) * HIGH, 0, HIGH))
    found[rng.random(found.shape) < 0.1] = np.nan
    found[np.isnan(found).all(axis=1), 0] = 0
    return found


def fitted(answers, item_weight="range", *, ranges=RANGES, **options):
    return ICQF(3, item_range=ranges, item_weight=item_weight, **options).fit(answers)


def same_bits(a, b):
    return all(
        getattr(a, name).tobytes() == getattr(b, name).tobytes()
        for name in ("components_", "confound_components_")
    )


# --- what must not change ---------------------------------------------------------------------------------


def test_with_equal_ranges_nothing_changes_to_the_bit():
    demo = load_demo()
    plain, alike = (ICQF(8, item_weight=kind).fit(demo) for kind in (None, "range"))
    assert same_bits(plain, alike) and plain.objective_ == alike.objective_
    assert plain.transform(demo).tobytes() == alike.transform(demo).tobytes()
    assert (alike.item_scale_ == 1).all()
    assert same_bits(plain, ICQF(8, item_weight=np.full(119, 7.0)).fit(demo))


def test_the_demo_has_its_golden_numbers():
    """Written when the momentum of multipliers began to grow; the objective was 11714.78826 before."""
    model = ICQF(8, beta=0.1).fit(load_demo())
    assert model.objective_ == pytest.approx(11714.7880850993, rel=1e-9)
    sums = [25.4736115858, 25.7242779806, 26.3846366182, 26.4620021358]
    sums += [26.5464750119, 26.7186775059, 26.9017816037, 27.9326924942]
    np.testing.assert_allclose(np.sort(model.components_.sum(axis=1)), sums, rtol=1e-6)


def test_none_has_the_golden_numbers_of_mixed_ranges(answers):
    """As above; 584.4497465712 at 9694a62."""
    model = fitted(answers, None)
    assert model.objective_ == pytest.approx(584.449744755535, rel=1e-9)
    sums = [10.6833815575, 10.7377557755, 14.5483360291]
    np.testing.assert_allclose(np.sort(model.components_.sum(axis=1)), sums, rtol=1e-6)


# --- what weights do --------------------------------------------------------------------------------------


def test_the_scale_by_its_definition(answers):
    deviation = np.nanstd(answers, axis=0)
    weights = {"range": 1 / HIGH, "variance": 1 / np.maximum(deviation, 0.1 * HIGH)}
    for kind, weight in weights.items():
        scale = fitted(answers, kind, max_iter=1000).item_scale_
        np.testing.assert_allclose(scale / scale[0], weight / weight[0], rtol=1e-12)
        assert (scale * HIGH).max() == pytest.approx(10, rel=1e-12)
    np.testing.assert_array_equal(fitted(answers).item_scale_, 10 / HIGH)
    twice = [fitted(answers, factor * np.linspace(1, 3, 12), max_iter=1000) for factor in (1, 2)]
    assert same_bits(*twice)


def test_an_item_that_hardly_varies_is_not_blown_up(answers):
    rare = answers.copy()
    rare[:, 8] = np.r_[1.0, np.zeros(79)]  # of 10
    scale = fitted(rare, "variance", max_iter=1000).item_scale_
    assert scale[8] * 1.0 == pytest.approx(scale[0] * np.nanstd(rare[:, 0]), rel=1e-9)  # a tenth of its range


@pytest.mark.parametrize("kind", ["range", "variance"])
def test_another_unit_of_an_item_changes_its_loadings_alone(answers, kind):
    """Answers and range times c: the same scores, and that item's loadings times c."""
    unit = np.array([3.0, 0.1, 1, 7, 2, 0.3, 1, 1, 1, 0.5, 1, 1])  # no range becomes the widest
    options = {"dtype": "float64", "tol": 1e-4, "max_iter": 5000}
    weights = np.random.default_rng(0).uniform(0.5, 2, len(answers))
    models = []
    for c in (np.ones(12), unit):
        model = ICQF(3, item_range=RANGES * c[:, None], item_weight=kind, **options)
        models.append(model.fit(answers * c, sample_weight=weights))
    one, other = models
    np.testing.assert_allclose(other.transform(answers * unit), one.transform(answers), atol=1e-9)
    for name in ("loadings_", "confound_loadings_"):
        np.testing.assert_allclose(
            getattr(other, name), getattr(one, name).mul(unit, axis=0), rtol=1e-8, atol=1e-10
        )
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-12)
    assert other.score(answers * unit) == pytest.approx(one.score(answers), rel=1e-10)
    np.testing.assert_allclose(other.summary().shares, one.summary().shares, atol=1e-9)


def test_counting_by_range_is_a_fit_to_shares_of_the_range(answers):
    """Answers divided by hand, with the penalty that belongs to their unit, give the same factors."""
    by_hand = ICQF(3, item_range=(0, 10), dtype="float64").fit(answers / HIGH * 10)
    model = fitted(answers, dtype="float64")
    np.testing.assert_allclose(model.loadings_.to_numpy() / HIGH[:, None], by_hand.loadings_ / 10, atol=1e-9)
    np.testing.assert_allclose(model.transform(answers), by_hand.transform(answers / HIGH * 10), atol=1e-9)
    assert model.objective_ == pytest.approx(by_hand.objective_, rel=1e-12)
    np.testing.assert_allclose(model.weighted_loadings_, by_hand.loadings_, atol=1e-9)


def test_wide_items_no_longer_decide():
    """Two factors of 0/1 items beside one of 0–10 items: point for point, the narrow ones are not seen."""
    rng = np.random.default_rng(0)
    W = rng.random((300, 3)) < 0.4
    high = np.r_[np.ones(12), np.full(6, 10.0)]
    member = np.repeat([0, 1, 2], 6)
    answers = np.where(W[:, member], rng.random((300, 18)) < 0.8, rng.random((300, 18)) < 0.1) * high
    ranges = np.column_stack([np.zeros(18), high])
    found = {}
    for kind in ("range", None):
        model = ICQFCV(ICQF(item_range=ranges, item_weight=kind), betas=[0.1, 0.5], random_state=0)
        found[kind] = model.fit(answers).best_estimator_.summary().shares.iloc[:12, :-1].max(axis=1).mean()
    assert found["range"] > 2 * found[None]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("model", [ICQF, L1NMF])
def test_what_is_reported_is_in_the_items_own_units(answers, kind, model):
    model = model(3, item_range=RANGES, item_weight=kind, max_iter=3000, dtype="float64").fit(answers)
    W = model.transform(answers)
    columns = np.ones((len(W), len(model.confound_names_)))
    R = np.concatenate([W, columns], axis=1) @ model.loadings_.join(model.confound_loadings_).to_numpy().T
    seen = ~np.isnan(answers)
    error = (np.where(seen, answers - R, 0) * model.item_scale_) ** 2
    np.testing.assert_allclose(model.fit_statistics_.sse, error.sum(axis=0), rtol=1e-9)
    assert model.score(answers) == pytest.approx(-error.sum() / seen.sum(), rel=1e-9)
    np.testing.assert_allclose(np.minimum(R, HIGH), np.minimum(model.inverse_transform(W), HIGH), atol=1e-12)
    assert model.fit_transform(answers).tobytes() == W.tobytes()
    if isinstance(model, L1NMF):
        return
    assert (W <= 1).all() and (model.loadings_.to_numpy() <= HIGH[:, None]).all() and (R <= HIGH).all()
    plain = Plain.of(answers, 0, HIGH, beta=0.1, scale=model.item_scale_)
    Q = model.loadings_.join(model.confound_loadings_).mul(model.item_scale_, axis=0).to_numpy()
    assert model.objective_ == pytest.approx(plain.objective(W, Q), rel=1e-10)


def test_a_start_resamples_and_averages_are_in_own_units(answers):
    model = fitted(answers, dtype="float64")
    scores = model.transform(answers)
    again = ICQF(3, item_range=RANGES, dtype="float64", init=(scores, model.loadings_.to_numpy())).fit(
        answers
    )
    assert again.n_iter_ < model.n_iter_ / 2
    np.testing.assert_allclose(again.loadings_, model.loadings_, atol=2e-3 * HIGH.max())
    stable = consensus(model, answers, n_resamples=8)
    assert (stable.loadings_.to_numpy() <= HIGH[:, None]).all()
    np.testing.assert_allclose(stable.loadings_ / HIGH[:, None], model.loadings_ / HIGH[:, None], atol=0.35)
    problem = model.state(answers).problem
    solution = np.concatenate([model.components_, model.confound_components_])
    found = bootstrap(problem, scores.T, solution, n_resamples=30, rng=np.random.default_rng(0))
    assert (found.loadings <= HIGH).all() and (found.agreement.mean(axis=0) > 0.7).all()
    inside = np.abs(found.loadings.mean(axis=0) - solution) <= 3 * found.loadings.std(axis=0) + 1e-3 * HIGH
    assert inside.mean() > 0.9


# --- nothing hidden ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_hidden_answers_do_not_come_in_by_the_scale(answers, kind, declared):
    mask = np.random.default_rng(1).random(answers.shape) < 0.2
    visible = []
    for hidden in (answers, np.where(mask & ~np.isnan(answers), 10.0 if not declared else HIGH, answers)):
        with warnings.catch_warnings(action="ignore", category=RangeWarning):
            model = ICQF(3, item_range=RANGES if declared else None, item_weight=kind, dtype="float64")
            stated = model.state(hidden)
        held_out = HeldOut(stated.problem, mask, given=stated.given)
        visible.append(settled(held_out.visible, held_out.starts.make("nndsvd", 3)).factors)
    assert visible[0].loadings.tobytes() == visible[1].loadings.tobytes()
    assert visible[0].scores.tobytes() == visible[1].scores.tobytes()


def test_the_scale_does_see_what_is_not_hidden(answers):
    problem = ICQF(3, item_range=RANGES, item_weight="variance").state(answers).problem
    other = weighed(with_answers(problem, np.where(answers == 0, HIGH, answers)).unscaled(), "variance")
    assert not np.allclose(problem.scaling.scale, other.scaling.scale, rtol=0.01)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_errors_on_hidden_answers_are_those_of_own_units_times_the_scale(answers, kind):
    model = ICQF(3, item_range=RANGES, item_weight=kind, dtype="float64")
    problem = model.state(answers).problem
    mask = np.random.default_rng(1).random(answers.shape) < 0.2
    held_out = HeldOut(problem, mask)
    factors = settled(held_out.visible, held_out.starts.make("nndsvd", 3)).factors
    R = np.concatenate([factors.scores, problem.design]).T @ held_out.visible.own_loadings(factors.loadings)
    hidden = mask & ~np.isnan(answers)
    scale = np.ones(12) if problem.scaling is None else problem.scaling.scale
    squares = (np.where(hidden, answers - np.minimum(R, HIGH), 0) * scale) ** 2
    np.testing.assert_allclose(held_out.error(factors).squares, squares.sum(axis=0), rtol=1e-9)
    means = np.array([answers[~mask[:, j] & ~np.isnan(answers[:, j]), j].mean() for j in range(12)])
    squares = (np.where(hidden, answers - means, 0) * scale) ** 2
    np.testing.assert_allclose(held_out.error_of_means().squares, squares.sum(axis=0), rtol=1e-9)


# --- words and files --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("width", "'width' is not known; choose one of 'range', 'variance', None"),
        ([1.0, 2.0], r"one positive number per item; there are 12 items, and it has the shape \(2,\)"),
        ([1.0] * 11 + [0.0], "that of 'item12' is 0"),
        ([1.0] * 11 + [np.nan], "that of 'item12' is nan"),
        ([1.0] * 11 + [1e5], "a ratio of more than 10000,"),
        ({"a": 1}, "not dict"),
    ],
)
def test_weights_that_mean_nothing_are_refused(answers, kind, said):
    with pytest.raises(InputError, match=said):
        fitted(answers, kind)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_stored_model_scores_alike(answers, kind, tmp_path):
    table = pd.DataFrame(answers, columns=[f"q{j}" for j in range(12)])
    model = fitted(table, kind, max_iter=3000)
    model.save(tmp_path / "model.icqf")
    again = ICQF.load(tmp_path / "model.icqf")
    assert again.item_scale_.tobytes() == model.item_scale_.tobytes()
    assert again.transform(table).tobytes() == model.transform(table).tobytes()
