"""FactorCount: what it accepts and says."""

import dataclasses

import pandas as pd
import pytest

from icqf.baselines.retention import FactorCount

CURVE = pd.DataFrame(
    {"n_components": [1, 2, 3], "error": [0.9, 0.4, 0.5], "se": [0.1, 0.1, 0.1], "chance": [0.8, 0.5, 0.6]}
)


def test_words():
    count = FactorCount("BIC", 1, CURVE, "One is enough.", better="lower")
    assert repr(count) == "FactorCount(method='BIC', n_components=1)"
    assert str(count) == "BIC: 1 factor. One is enough."
    assert count.value == "error"


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        FactorCount("BIC", 1, CURVE, "One.").n_components = 2


@pytest.mark.parametrize(
    ("curve", "options", "message"),
    [
        (CURVE[["error"]], {}, "needs 'n_components'"),
        (CURVE[["n_components"]], {}, "needs 'n_components'"),
        (CURVE, {"value": "bic"}, "no column 'bic'"),
        (CURVE, {"reference": "random"}, "no column 'random'"),
        (CURVE, {"better": "up"}, "choose 'lower', 'higher' or None"),
    ],
)
def test_errors(curve, options, message):
    with pytest.raises(ValueError, match=message):
        FactorCount("CV", 2, curve, "Two.", **options)
