"""Paired tests against SciPy's, and the false discovery rate against Benjamini and Hochberg's rule."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from icqf.analyses import compare_methods
from icqf.errors import InputError


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    rows = [
        {"split": split, "size": size, "method": method, "auc": 0.7 + gain + 0.02 * rng.normal()}
        for split in range(30)
        for size in (0.8, 0.2)
        for method, gain in (("ICQF", 0.02), ("FA", 0.0), ("sums", 0.02), ("items", 0.06))
    ]
    return pd.DataFrame(rows)


def test_each_test_is_scipys(table):
    tests = compare_methods(table, "auc")
    assert len(tests) == 6
    for row in tests.to_dict("records"):
        part = table[table["size"] == row["size"]].pivot(index="split", columns="method", values="auc")
        gain = part["ICQF"] - part[row["against"]]
        assert row["p_better"] == stats.wilcoxon(gain, alternative="greater").pvalue
        assert row["p_worse"] == stats.wilcoxon(gain, alternative="less").pvalue
        assert row["difference"] == pytest.approx(gain.mean())


def test_adjusted_values_follow_benjamini_and_hochberg(table):
    tests = compare_methods(table, "auc")
    p = tests["p_better"].to_numpy()
    order = np.argsort(p)
    adjusted = np.minimum.accumulate((p[order] * len(p) / np.arange(1, len(p) + 1))[::-1])[::-1]
    np.testing.assert_allclose(tests["q_better"].to_numpy()[order], adjusted)


def test_wins_ties_and_losses_are_told_apart(table):
    verdicts = compare_methods(table, "auc").set_index(["size", "against"])["verdict"]
    assert verdicts[(0.8, "FA")] == "better"
    assert verdicts[(0.8, "items")] == "worse"
    assert verdicts[(0.8, "sums")] == "no difference"


def test_equal_values_and_missing_ones_are_no_difference():
    splits = np.repeat(range(7), 2)
    table = pd.DataFrame({"split": splits, "method": ["ICQF", "FA"] * 7, "auc": 0.7, "size": 0.8})
    assert compare_methods(table, "auc")["verdict"].tolist() == ["no difference"]
    gappy = table.assign(auc=[0.7, np.nan, *[0.8, 0.7] * 6])
    assert compare_methods(gappy, "auc")["n_splits"].tolist() == [6]


def test_few_splits_cannot_tell_a_difference():
    """Six wins of six have p = 1/64, seven of seven p = 1/128."""
    fa = pd.DataFrame({"split": range(7), "method": "FA", "auc": 0.7, "size": 0.8})
    both = pd.concat([fa.assign(method="ICQF", auc=0.8), fa])
    assert compare_methods(both, "auc")["verdict"].tolist() == ["better"]
    assert compare_methods(both[both["split"] < 6], "auc")["verdict"].tolist() == ["too few splits"]


def test_an_unknown_method_is_refused(table):
    with pytest.raises(InputError, match="no method 'ICA' in the table"):
        compare_methods(table, "auc", method="ICA")
