"""FactorCount: what it accepts, says and draws."""

import dataclasses

import matplotlib
import pandas as pd
import pytest
from matplotlib.figure import Figure

from icqf.selection.count import FactorCount

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


@pytest.mark.parametrize("spread", [None, "se"])
@pytest.mark.parametrize("reference", [None, "chance"])
def test_plot_takes_and_returns_axes(spread, reference):
    ax = Figure().add_subplot()
    count = FactorCount("CV", 2, CURVE, "Two.", better="lower", spread=spread, reference=reference)
    assert count.plot(ax) is ax
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "chosen" in words and ("chance" in words) == (reference is not None)
    assert ax.get_ylabel() == "error (lower is better)"


def test_plot_without_axes_makes_some_and_shows_nothing(monkeypatch):
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    monkeypatch.setattr(plt, "show", lambda *_, **__: pytest.fail("show was called"))
    ax = FactorCount("CV", 0, CURVE, "None.").plot()
    assert ax.get_title() == "CV: 0 factors"
    assert "chosen" not in [text.get_text() for text in ax.get_legend().get_texts()]
    plt.close(ax.figure)


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
