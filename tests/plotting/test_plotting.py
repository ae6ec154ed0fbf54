"""Plots show the numbers they were given, in the Axes they were given."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from icqf import ICQF, ICQFCV
from icqf import plotting as plots
from icqf.baselines import FactorAnalysis, parallel_analysis
from icqf.datasets import load_demo, make_synthetic
from icqf.errors import InputError
from icqf.plotting.style import BLUES, BOTH_WAYS, ORANGES, readable_on


@pytest.fixture(scope="module")
def demo():
    return load_demo().select(["q00*", "q01*", "q02*"])


@pytest.fixture(scope="module")
def models(demo):
    answers, ranges = demo.keyed_answers(), demo.ranges()
    return [ICQF(k, item_range=ranges).fit(answers, confounds=demo.confounds) for k in (2, 3, 4)]


@pytest.fixture(scope="module")
def model(models):
    return models[1]


@pytest.fixture(scope="module")
def scores(model, demo):
    return model.transform(demo.keyed_answers(), confounds=demo.confounds)


@pytest.fixture
def ax():
    return Figure(layout="constrained").add_subplot()


def test_every_plot_takes_and_returns_an_axes(ax, model, models, demo, scores):
    errors = pd.DataFrame({"n_components": [2, 3], "beta": 0.1, "error": [0.5, 0.4], "standard_error": 0.01})
    auc = pd.DataFrame({"method": "ICQF", "size": [0.2, 0.2, 1.0, 1.0], "auc": [0.6, 0.7, 0.7, 0.8]})
    calls = [
        lambda ax: plots.loading_heatmap(model, items=demo.items, ax=ax),
        lambda ax: plots.loading_heatmap(model, items=demo.items, form="wide", ax=ax),
        lambda ax: plots.top_items(model, 1, items=demo.items, ax=ax),
        lambda ax: plots.cv_curve(errors, chosen=(3, 0.1), ax=ax),
        lambda ax: plots.scree(parallel_analysis(demo.keyed_answers(), n_iter=3, random_state=0), ax=ax),
        lambda ax: plots.convergence(model, ax=ax),
        lambda ax: plots.score_distributions(scores, ax=ax),
        lambda ax: plots.score_correlations(scores, ax=ax),
        lambda ax: plots.missingness_map(demo.answers, items=demo.items, ax=ax),
        lambda ax: plots.auc_by_sample_size(auc, ax=ax),
        lambda ax: plots.factor_match(model, models[2], ax=ax),
        lambda ax: plots.split_tree(models, ax=ax),
    ]
    for call in calls:
        mine = Figure(layout="constrained").add_subplot()
        assert call(mine) is mine
        mine.figure.canvas.draw()
    made = plots.triptych(scores, model.loadings_, demo.keyed_answers())
    made[0].figure.canvas.draw()


def test_no_window_is_opened(model):
    from matplotlib import pyplot

    plots.top_items(model)
    assert pyplot.get_fignums() == []


def test_heatmap_shows_shares_of_the_range_by_subscale(ax, model, demo):
    plots.loading_heatmap(model, items=demo.items, wording=False, ax=ax)
    factors, confounds = (np.asarray(mesh.get_array()) for mesh in ax.collections)
    order = [label.get_text() for label in ax.get_yticklabels()]
    np.testing.assert_allclose(factors, model.loadings_.loc[order] / 2)
    np.testing.assert_allclose(confounds, model.confound_loadings_.loc[order] / 2)
    scales = pd.Series({item.name: item.subscale for item in demo.items})[order]
    assert (scales != scales.shift()).sum() == scales.nunique()


def test_reversed_items_are_marked(model, demo):
    labels = [label.get_text() for label in plots.loading_heatmap(model, items=demo.items).get_yticklabels()]
    assert "Makes friends easily (reversed)" in labels


def test_loadings_of_factor_analysis_are_drawn_in_two_colours(demo):
    analysis = FactorAnalysis(3).fit(demo.keyed_answers())
    ax = plots.loading_heatmap(analysis, items=demo.items)
    assert ax.collections[0].get_cmap() is BOTH_WAYS
    np.testing.assert_allclose(
        sorted(np.ravel(ax.collections[0].get_array())), sorted(analysis.loadings_.ravel())
    )


def test_top_items_come_in_order(ax, model, demo):
    low, high = model.components_[0] * 0.9, model.components_[0] * 1.1
    plots.top_items(model, 1, items=demo.items, n=5, intervals=(low, high), ax=ax)
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == sorted(model.components_[0])[::-1][:5]
    names = plots.top_items(model, "Old", n=3).get_yticklabels()
    assert [name.get_text() for name in names] == list(model.confound_loadings_["Old"].nlargest(3).index)
    with pytest.raises(InputError, match="factors 1 to 3"):
        plots.top_items(model, 4)
    with pytest.raises(InputError, match="Did you mean 'Old'"):
        plots.top_items(model, "old")


def test_cv_curve_rings_the_choice(ax):
    errors = pd.DataFrame(
        {
            "n_components": [2, 3] * 2,
            "beta": [0.1, 0.1, 0.5, 0.5],
            "error": [4.0, 3, 2, 1],
            "standard_error": 0.1,
        }
    )
    plots.cv_curve(errors, chosen=(3, 0.5), ax=ax)
    ring = next(line for line in ax.lines if str(line.get_label()).startswith("chosen"))
    assert ring.get_ydata() == [1.0]


def test_match_puts_pairs_on_the_diagonal(ax):
    rng = np.random.default_rng(0)
    loadings = rng.random((30, 4))
    plots.factor_match(loadings, loadings[:, [2, 0, 3, 1]], ax=ax)
    values = np.asarray(ax.collections[0].get_array())
    np.testing.assert_allclose(np.diag(values), 1.0)


def test_auc_bands_are_t_intervals():
    values = [0.70, 0.74, 0.78]
    table = pd.DataFrame({"method": "ICQF", "size": 0.5, "auc": values})
    band = plots.auc_by_sample_size(table).collections[0].get_paths()[0].vertices[:, 1]
    half = 4.302652729911275 * np.std(values, ddof=1) / np.sqrt(3)
    assert (band.min(), band.max()) == (pytest.approx(0.74 - half), pytest.approx(0.74 + half))


def test_constant_scores_have_no_correlation(ax):
    scores = np.column_stack([np.zeros(20), np.linspace(0, 1, 20)])
    plots.score_correlations(scores, ax=ax)
    assert [text.get_text() for text in ax.texts] == ["1"]


def test_wrong_input_is_explained(model, models):
    with pytest.raises(InputError, match="'tall' or 'wide'"):
        plots.loading_heatmap(model, form="long")
    with pytest.raises(InputError, match="at least two"):
        plots.split_tree(models[:1])
    with pytest.raises(InputError, match="lacks the column 'auc'"):
        plots.auc_by_sample_size(pd.DataFrame({"method": [], "size": []}))
    data = make_synthetic(n=20, m=10, k=2)
    with pytest.raises(InputError, match="do not fit together"):
        plots.triptych(data.scores, data.loadings, data.answers.T)


def test_text_on_every_shade_is_readable():
    from matplotlib.colors import to_rgb

    def luminance(colour):
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
        return np.dot(parts, [0.2126, 0.7152, 0.0722])

    for colours in (BLUES, ORANGES, BOTH_WAYS):
        for at in np.linspace(0, 1, 41):
            light, dark = sorted([luminance(colours(at)), luminance(readable_on(colours(at)))])[::-1]
            assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_error_and_stability_draws_both_curves_and_the_choice(ax):
    answers = make_synthetic(n=80, m=30, k=3, noise=0.1, random_state=0).answers
    search = ICQFCV(
        [2, 3, 4], betas=[0.1], n_splits=4, stability=True, n_halves=2, item_range=(0, 100), random_state=0
    ).fit(answers)
    plots.error_and_stability(search, ax=ax)
    (right,) = [other for other in ax.figure.axes if other is not ax]
    np.testing.assert_allclose(right.lines[0].get_ydata(), search.stability_["agreement"])
    assert f"chosen: {search.n_components_} factors" in [
        text.get_text() for text in ax.get_legend().get_texts()
    ]
    search.stability_ = None
    with pytest.raises(InputError, match="fit it with stability=True"):
        plots.error_and_stability(search)
