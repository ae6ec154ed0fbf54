"""The summary's numbers, computed again by hand."""

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF, ICQFCV
from icqf.data.validate import ConstantItemsWarning
from icqf.datasets import make_synthetic
from icqf.errors import InputWarning
from reference import Plain

NAMES = [f"q{j:02d}" for j in range(20)]


@pytest.fixture(scope="module")
def data():
    return make_synthetic(70, 20, 3, noise=0.2, missing=0.1, confounded=True, random_state=0)


@pytest.fixture(scope="module", params=[False, True], ids=["unweighted", "weighted"])
def fitted(request, data):
    """A model with its weights; some people answered nothing, and some have weight 0."""
    weights = np.random.default_rng(0).choice([0.0, 0.5, 1, 3], 70) if request.param else None
    ends = {"confound1": (data.confounds[:, 0].min(), data.confounds[:, 0].max())}
    model = ICQF(3, item_range=(0, 100), dtype="float64", confound_ranges=ends, smallest_category=10)
    model.fit(pd.DataFrame(data.answers, columns=NAMES), confounds=data.confounds, sample_weight=weights)
    return model, np.ones(70) if weights is None else weights


def design(data):
    age, sex = data.confounds.T
    x = (age - age.min()) / (age.max() - age.min())
    return np.column_stack([x, 1 - x, sex == 0, sex == 1, np.ones(len(x))])


def parts(model, data):
    """Scores, and all loadings (m, K)."""
    W = model.transform(pd.DataFrame(data.answers, columns=NAMES), confounds=data.confounds)
    return W, model.loadings_.join(model.confound_loadings_).to_numpy()


def reconstruction(model, data):
    W, Q = parts(model, data)
    return np.concatenate([W, design(data)], axis=1) @ Q.T


def squared_errors(model, data, weights):
    """Weighted squared error of each item over its observed answers, by hand."""
    R = reconstruction(model, data)
    return (weights[:, None] * np.nan_to_num((data.answers - R) ** 2)).sum(axis=0)


def total_squares(data, weights):
    seen = ~np.isnan(data.answers)
    total = []
    for j in range(data.answers.shape[1]):
        x, w = data.answers[seen[:, j], j], weights[seen[:, j]]
        total.append((w * (x - (w * x).sum() / w.sum()) ** 2).sum())
    return np.array(total)


def test_r_squared(fitted, data):
    model, weights = fitted
    summary = model.summary()
    error, total = squared_errors(model, data, weights), total_squares(data, weights)
    assert summary.r_squared == pytest.approx(1 - error.sum() / total.sum(), abs=1e-5)
    np.testing.assert_allclose(summary.items["r_squared"], 1 - error / total, atol=1e-5)
    assert 0.5 < summary.r_squared < 1


def test_shares_are_those_of_the_slow_witness(fitted, data):
    """Of factors and confounds, of every item and of all, with missing answers, weights and weights of 0."""
    model, weights = fitted
    plain = Plain.of(data.answers, 0, 100, beta=0.1, confounds=design(data)[:, :-1], weights=weights)
    by_item, overall = plain.shares(*parts(model, data))
    summary = model.summary()
    np.testing.assert_allclose(summary.shares, by_item, atol=1e-9)
    np.testing.assert_allclose(summary.factors["variance_explained"], overall[:3], atol=1e-9)
    np.testing.assert_allclose(summary.confounds["variance_explained"], overall[3:], atol=1e-9)
    assert summary.shares.columns.tolist() == [*model.get_feature_names_out(), *model.confound_names_]
    np.testing.assert_allclose(summary.shares["Intercept"], 0, atol=1e-12)


def test_shares_add_up_to_the_covariance_of_answers_and_reconstruction(fitted, data):
    model, weights = fitted
    summary, R = model.summary(), reconstruction(model, data)
    products, squares = [], []
    for j in range(R.shape[1]):
        seen = ~np.isnan(data.answers[:, j])
        covariance = np.cov(data.answers[seen, j], R[seen, j], aweights=weights[seen])
        size = weights[seen].sum() - (weights[seen] ** 2).sum() / weights[seen].sum()
        products.append(covariance[0, 1] * size)
        squares.append(covariance[0, 0] * size)
    products, squares = np.array(products), np.array(squares)
    np.testing.assert_allclose(summary.shares.sum(axis=1), products / squares, atol=1e-9)
    np.testing.assert_allclose(summary.items["variance_explained"], products / squares, atol=1e-9)
    total = sum(table["variance_explained"].sum() for table in (summary.factors, summary.confounds))
    assert summary.variance_explained == pytest.approx(total, abs=1e-12)
    assert total == pytest.approx(products.sum() / squares.sum(), abs=1e-9)
    assert 0.4 < total < 1


def test_a_level_that_everybody_shares_explains_nothing():
    """Answers far above the lowest one: removing a factor would cost the level it carries, too."""
    rng = np.random.default_rng(0)
    answers = 3 + (rng.random((300, 12)) < 0.5 * rng.random((300, 1)) + 0.25)
    summary = ICQF(2, item_range=(0, 4), intercept=False).fit(answers).summary()
    assert 0 < summary.variance_explained < 0.5
    assert (summary.factors["variance_explained"] < summary.variance_explained + 1e-12).all()


def test_missing_counts(fitted, data):
    model, weights = fitted
    summary = model.summary()
    counted = np.isnan(data.answers[weights > 0])
    assert summary.items["n_missing"].tolist() == counted.sum(axis=0).tolist()
    assert summary.n_missing == counted.sum()
    assert summary.share_missing == pytest.approx(counted.mean())
    assert summary.n_participants == (weights > 0).sum() == model.n_participants_


def test_people_who_answered_nothing_are_not_counted(data):
    answers = data.answers.copy()
    answers[[3, 9]] = np.nan
    with pytest.warns(UserWarning, match="2 participants answered nothing"):
        summary = ICQF(3, item_range=(0, 100)).fit(answers).summary()
    kept = np.delete(answers, [3, 9], axis=0)
    assert summary.n_participants == 68 and summary.n_missing == np.isnan(kept).sum()


def test_loaded_and_top_items():
    """By hand: three items on scales of different width, moved by one factor each way."""
    rng = np.random.default_rng(0)
    present = rng.random((200, 2)) * (rng.random((200, 2)) < 0.5)
    Q = np.array([[4, 0], [0, 10], [2, 10], [0.2, 0], [0, 0.5]])  # of 4, 10, 10, 4, 10
    high = np.array([4, 10, 10, 4, 10.0])
    answers = pd.DataFrame(np.minimum(present @ Q.T, high), columns=["a", "b", "c", "d", "e"])
    ranges = {name: (0, top) for name, top in zip(answers, high, strict=True)}
    model = ICQF(2, item_range=ranges, beta=0.0, intercept=False, tol=1e-4, max_iter=3000).fit(answers)
    summary = model.summary(n_top=2)
    share = model.loadings_.div(high, axis=0)
    for name, row in summary.factors.iterrows():
        assert row["n_items"] == (share[name] > 0.1).sum()
        assert row["top_items"] == ", ".join(share[name].sort_values(ascending=False).index[:2])
    assert summary.items["factor"].tolist() == share.idxmax(axis=1).tolist()


def test_it_is_tables_inside(fitted):
    summary = fitted[0].summary()
    assert summary.factors.index.tolist() == ["factor1", "factor2", "factor3"]
    assert summary.factors.columns.tolist() == ["variance_explained", "n_items", "top_items"]
    assert summary.items.index.tolist() == NAMES
    assert summary.items.columns.tolist() == ["variance_explained", "r_squared", "n_missing", "factor"]
    assert summary.factors["variance_explained"].is_monotonic_decreasing
    assert set(summary.items["factor"]) <= {"factor1", "factor2", "factor3", ""}


def test_it_prints_well(data):
    model = ICQF(3, item_range=(0, 100)).fit(pd.DataFrame(data.answers, columns=NAMES))
    summary = model.summary()
    text = str(summary)
    assert repr(summary) == text
    lines = text.splitlines()
    missing = int(np.isnan(data.answers).sum())
    assert lines[0] == (
        f"3 factors behind 20 items, from 70 participants; {missing} answers missing ({missing / 1400:.1%})."
    )
    assert lines[1] == (
        f"The model explains {summary.variance_explained:.1%} of the variance of the answers; the shares "
        "of its parts add up to this."
    )
    assert not any(line.startswith("confounds") for line in lines)  # the intercept explains nothing
    assert lines[-4].split() == ["total", f"{summary.variance_explained:.1%}"]
    best = summary.items["variance_explained"].sort_values(ascending=False)
    assert lines[-2].startswith(f"Best described items: {best.index[0]} ({best.iloc[0]:.0%}), ")
    assert lines[-1].endswith(f"{best.index[-1]} ({round(best.iloc[-1], 2) + 0.0:.0%}).")
    assert "-0%" not in text and "nan" not in text
    for name, row in summary.factors.iterrows():
        line = next(line for line in lines if line.startswith(name))
        assert f"{row['variance_explained']:.1%}" in line and row["top_items"] in line
    assert max(map(len, lines)) <= 120


@pytest.mark.filterwarnings("ignore:.*same answer from everybody")
@pytest.mark.parametrize("answer", [0.0, 0.1, 3.3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_item_without_variance_has_no_share(data, answer, dtype):
    """A constant item has nothing to explain: its share is missing, and not a huge number."""
    answers = pd.DataFrame(data.answers, columns=NAMES).assign(q05=answer)
    summary = ICQF(3, item_range=(0, 100), dtype=dtype).fit(answers).summary()
    assert np.isnan(summary.items.loc["q05", "variance_explained"])
    assert "q05" not in str(summary).splitlines()[-1]
    assert 0 < summary.variance_explained < 1


def test_an_item_no_factor_moves_has_no_factor():
    rng = np.random.default_rng(0)
    answers = np.column_stack([rng.integers(0, 5, (60, 4)), np.r_[np.zeros(59), 1]])
    with pytest.warns(InputWarning, match="All loadings are 0"):
        summary = ICQF(1, item_range=(0, 4), beta=1.0).fit(answers).summary()
    assert summary.items["factor"].iloc[4] == ""


def test_nothing_is_explained_where_nothing_varies():
    with pytest.warns(ConstantItemsWarning):
        summary = ICQF(2, item_range=(0, 4)).fit(np.full((40, 5), 4.0)).summary()
    assert summary.variance_explained == 0 and (summary.factors["variance_explained"] == 0).all()
    assert "explains 0.0% of the variance" in str(summary) and "nan" not in str(summary)


def test_a_penalty_above_everything_is_said():
    answers = np.random.default_rng(0).integers(0, 5, (40, 5))
    message = r"All loadings are 0: the penalty beta=1000 outweighs .*\. Lower beta\."
    with pytest.warns(InputWarning, match=message):
        model = ICQF(2, beta=1000, item_range=(0, 4)).fit(answers)
    assert not model.transform(answers).any() and np.isfinite(model.objective_)
    with pytest.warns(InputWarning, match=message):
        ICQFCV(ICQF(item_range=(0, 4)), n_components=[1], betas=[1000], n_splits=3).fit(answers)
