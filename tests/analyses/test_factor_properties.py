"""Reliability, residuals and standardised loadings are those of the data and the model."""

import numpy as np
import pytest

from icqf import ICQF
from icqf.analyses import psychometrics
from icqf.baselines import reliability
from icqf.errors import InputError
from icqf.report import analyse, report_of


@pytest.fixture(scope="module")
def model(demo):
    return ICQF(3, beta=0.2).fit(demo)


@pytest.fixture(scope="module")
def found(model, demo):
    return psychometrics(model, demo.keyed_answers(), items=demo.items, confounds=demo.confounds)


def test_scales_are_factors_items_and_subscales(found, demo, model):
    answers = demo.keyed_answers()
    worry = [item.name for item in demo.items if item.subscale == "Worry"]
    (row,) = found.scales[found.scales["name"] == "Worry"].to_dict("records")
    assert row["alpha"] == pytest.approx(reliability(answers[worry].to_numpy(dtype=float)).alpha)
    assert row["omega_low"] < row["omega"] < row["omega_high"]
    shares = model.components_ / 2
    own = (shares >= 0.1) & (shares == shares.max(axis=0))
    factors = found.scales[found.scales["kind"] == "factor"]
    assert list(factors["n_items"]) == own.sum(axis=1).tolist()


def test_item_rest_is_the_correlation_with_the_rest_of_the_subscale(found, demo):
    answers = demo.keyed_answers().dropna()
    worry = [item.name for item in demo.items if item.subscale == "Worry"]
    rest = np.corrcoef(answers[worry[0]], answers[worry[1:]].sum(axis=1))[0, 1]
    assert found.items.loc[worry[0], "item_rest"] == pytest.approx(rest, abs=0.05)  # pairs, not complete rows


def test_residuals_are_what_the_model_leaves(found, demo, model):
    answers = demo.keyed_answers()
    scores = model.transform(answers, confounds=demo.confounds)
    left = answers - model.inverse_transform(scores, confounds=demo.confounds)
    R = left.astype(float).corr()
    sizes = np.abs(R.to_numpy()[np.tril_indices(len(R), -1)])
    np.testing.assert_allclose(np.sort(found.residuals["correlation"].abs())[::-1], np.sort(sizes)[::-1][:10])
    pair = found.residuals.iloc[0]
    assert R.loc[pair["item"], pair["other"]] == pytest.approx(pair["correlation"])


def test_standardised_loadings_are_in_deviations(found, demo, model):
    scores = model.transform(demo.keyed_answers(), confounds=demo.confounds)
    expected = (
        model.loadings_["factor1"]["q001"] * scores[:, 0].std(ddof=1) / demo.keyed_answers()["q001"].std()
    )
    assert found.standardised.loc["q001", "factor1"] == pytest.approx(expected)


def test_the_report_has_them_and_its_variance_adds_up(model, demo):
    report = report_of(analyse(model, demo, n_bootstrap=10))
    p = report.psychometrics
    assert p.variance[-1].cumulative == pytest.approx(1.0, abs=1e-9)
    assert sum(row.share for row in p.variance) == pytest.approx(1.0, abs=1e-9)
    for row, item in zip(p.items, report.items, strict=True):
        assert row.communality == item.explained and row.communality + row.uniqueness == pytest.approx(1)
        assert row.fa_loading is not None and 0 <= row.fa_communality <= 1.01
    named = [row.name for row in p.scales if row.key]
    assert named == [factor.name for factor in report.model.factors]


def test_too_many_items_are_refused(model):
    import pandas as pd

    with pytest.raises(InputError, match="at most 1000"):
        psychometrics(model, pd.DataFrame(np.zeros((3, 1001))))
