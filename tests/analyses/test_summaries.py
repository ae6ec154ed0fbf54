"""Means with their intervals over repetitions, and how factors descend from one another."""

import numpy as np
import pandas as pd
import pytest

from icqf.analyses import bands, factor_lineage
from icqf.errors import InputError


def test_bands_are_t_intervals():
    values = [0.70, 0.74, 0.78]
    found = bands(pd.DataFrame({"method": "ICQF", "size": 0.5, "auc": values}), "auc").iloc[0]
    half = 4.302652729911275 * np.std(values, ddof=1) / np.sqrt(3)
    assert (found["low"], found["high"]) == (pytest.approx(0.74 - half), pytest.approx(0.74 + half))


def test_every_factor_has_its_closest_predecessor():
    rng = np.random.default_rng(0)
    fits = [rng.random((12, k)) for k in (5, 2, 3)]
    links = factor_lineage(fits, least=0.9)
    assert list(links.groupby(["k", "next_k"]).groups) == [(2, 3), (3, 5)]
    for k, next_k, first, second in ((2, 3, fits[1], fits[2]), (3, 5, fits[2], fits[0])):
        values = np.corrcoef(first.T, second.T)[:k, k:]
        here = links[(links["k"] == k) & (links["next_k"] == next_k)]
        expected = {(r, s) for s in range(next_k) for r in range(k) if values[r, s] in (values[:, s].max(),)}
        expected |= set(map(tuple, np.argwhere(values >= 0.9)))
        assert set(zip(here["factor"] - 1, here["next_factor"] - 1, strict=True)) == expected
        np.testing.assert_allclose(
            here["correlation"], values[here["factor"] - 1, here["next_factor"] - 1], atol=1e-12
        )


def test_a_lineage_needs_fits_of_the_same_items():
    with pytest.raises(InputError, match="at least two"):
        factor_lineage([np.eye(3)])
    with pytest.raises(InputError, match="different items"):
        factor_lineage([np.eye(3), np.eye(4)])
