"""Plots show the numbers they were given, in the Axes they were given."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from icqf import ICQF, ICQFCV
from icqf import plotting as plots
from icqf.analyses import factor_lineage
from icqf.baselines import FactorAnalysis, parallel_analysis
from icqf.datasets import make_synthetic
from icqf.errors import InputError
from icqf.plotting.style import BLUES, BOTH_WAYS, ORANGES, laid_out, readable_on
from icqf.resampling import match_factors


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


@pytest.fixture(scope="module")
def items(demo):
    return demo.item_table()


@pytest.fixture
def ax():
    return Figure(layout="constrained").add_subplot()


def heatmap(model, **options):
    return plots.loading_heatmap(
        model.loadings_, confounds=model.confound_loadings_, ranges=model.item_range_, **options
    )


def test_every_plot_takes_and_returns_an_axes(model, models, demo, items, scores):
    errors = pd.DataFrame({"n_components": [2, 3], "beta": 0.1, "error": [0.5, 0.4], "standard_error": 0.01})
    auc = pd.DataFrame({"method": "ICQF", "size": [0.2, 1.0], "auc": [0.6, 0.7], "low": 0.5, "high": 0.8})
    halves = errors[["n_components", "beta"]].assign(agreement=0.9, low=0.8, high=1.0)
    lengths = pd.DataFrame({"n_items": [1, 2], "correlation": 0.8, "top_loading": 0.7, "factor1": 0.8})
    two = pd.DataFrame({"factor": "factor1", "item": "q1", "group": ["a", "b"], "loading": 1.0}).assign(
        low=0.5, high=1.5
    )
    planned = pd.DataFrame({"n": [50, 100], "mean": [0.5, 1.0], "every": [0.5, 1.0], "factor1": [0.5, 1.0]})
    tested = pd.DataFrame({"factor": ["factor1"], "p": [0.01], "flagged": [True]}, index=["q1"])
    answers, loadings = demo.keyed_answers(), [each.loadings_ for each in models]
    match = match_factors(loadings[1], loadings[2])
    battery = pd.DataFrame({"name": ["mood"], "k": [2], "found_again": [1], "explained": [0.5]})
    meta = pd.DataFrame({"meta1": [0.5]}, index=pd.MultiIndex.from_tuples([("mood", "factor1")]))
    strongest = pd.DataFrame({"instrument": ["mood"], "factor": "factor1", "label": "Sad", "share": 0.9})
    courses = pd.DataFrame(
        {"item": "q1", "factor": "factor1", "bin": ["a", "b"], "age": [1, 2], "loading": 0.5}
    )
    by_visit = pd.DataFrame({"factor": "factor1", "bin": ["a", "b"], "mean": 0.5, "low": 0.4, "high": 0.6})
    calls = [
        lambda ax: heatmap(model, items=items, ax=ax),
        lambda ax: heatmap(model, items=items, form="wide", ax=ax),
        lambda ax: plots.top_items(loadings[1]["factor1"], ranges=model.item_range_, items=items, ax=ax),
        lambda ax: plots.cv_curve(errors, chosen=(3, 0.1), ax=ax),
        lambda ax: plots.count_curve(errors, chosen=3, value="error", ax=ax),
        lambda ax: plots.error_and_stability(errors, halves, chosen=3, ax=ax),
        lambda ax: plots.scree(parallel_analysis(answers, n_iter=3, random_state=0).curve, ax=ax),
        lambda ax: plots.convergence(model.trace_, tol=model.tol, ax=ax),
        lambda ax: plots.score_distributions(scores, ax=ax),
        lambda ax: plots.score_histograms(
            pd.DataFrame({"factor1": [3, 1]}),
            pd.DataFrame({"median": [0.2], "none": [0.1]}, ["factor1"]),
            ax=ax,
        ),
        lambda ax: plots.score_correlations(pd.DataFrame(scores).corr(), ax=ax),
        lambda ax: plots.missingness_map(demo.answers, items=items, ax=ax),
        lambda ax: plots.by_sample_size(auc, "auc", ax=ax),
        lambda ax: plots.by_method(auc, "auc", ax=ax),
        lambda ax: plots.factor_match(match.similarities, pairs=match.pairs, ax=ax),
        lambda ax: plots.split_tree(factor_lineage(loadings), ax=ax),
        lambda ax: plots.short_form_curve(lengths, ax=ax),
        lambda ax: plots.battery_overview(battery, ax=ax),
        lambda ax: plots.three_levels(meta, strongest, ax=ax),
        lambda ax: plots.loading_courses(courses, "factor1", ax=ax),
        lambda ax: plots.group_loadings(two, tested, ax=ax),
        lambda ax: plots.found_again(planned, ax=ax),
        lambda ax: plots.score_courses(by_visit, ax=ax),
        lambda ax: plots.factor_diagram(model.loadings_, ranges=model.item_range_, ax=ax),
    ]
    assert len(calls) == len(plots.__all__) - 1  # one of them twice; triptych and percentile_curves below
    for call in calls:
        mine = Figure(layout="constrained").add_subplot()
        assert call(mine) is mine
        mine.figure.canvas.draw()
    made = plots.triptych(scores, model.loadings_, answers)
    made[0].figure.canvas.draw()
    norms, own = pd.DataFrame({"age": [6, 18], "p25": [0.1, 0.2], "p75": [0.4, 0.6]}), Figure()
    assert plots.percentile_curves(norms, across="age", figure=own) is own
    own.canvas.draw()


def test_plots_need_no_model():
    """What plots import, and what they take, are tables: nothing of the package but errors."""
    folder = Path(plots.__file__).parent
    imports = [line for path in folder.glob("*.py") for line in path.read_text().splitlines()]
    found = {line.split()[1] for line in imports if re.match(r"\s*from icqf", line)}
    assert {name for name in found if not name.startswith("icqf.plotting")} == {"icqf.errors"}


def test_no_window_is_opened(model):
    from matplotlib import pyplot

    plots.top_items(model.loadings_["factor1"])
    assert pyplot.get_fignums() == []


def test_heatmap_shows_shares_of_the_range_by_subscale(ax, model, items):
    heatmap(model, items=items.assign(wording=""), ax=ax)
    factors, confounds = (np.asarray(mesh.get_array()) for mesh in ax.collections)
    order = [label.get_text().removesuffix(" (reversed)") for label in ax.get_yticklabels()]
    np.testing.assert_allclose(factors, model.loadings_.loc[order] / 2)
    np.testing.assert_allclose(confounds, model.confound_loadings_.loc[order] / 2)
    scales = items["subscale"][order]
    assert (scales != scales.shift()).sum() == scales.nunique()


def test_heatmap_in_a_given_order(ax, model, items):
    order = list(model.loadings_.index[::-1])
    heatmap(model, items=items.assign(wording=""), order=order, ax=ax)
    marked = [name + " (reversed)" * bool(items["reverse"][name]) for name in order]
    assert [label.get_text() for label in ax.get_yticklabels()] == marked
    np.testing.assert_allclose(np.asarray(ax.collections[0].get_array()), model.loadings_.loc[order] / 2)
    with pytest.raises(InputError, match="every item of the loadings once"):
        heatmap(model, order=order[1:])


def test_reversed_items_are_marked(model, items):
    labels = [label.get_text() for label in heatmap(model, items=items).get_yticklabels()]
    assert "Makes friends easily (reversed)" in labels
    wide = heatmap(model, items=items, form="wide").get_xticklabels()
    marked = [text for each in wide if (text := each.get_text()).endswith("(reversed)")]
    assert sorted(marked) == ["q004 (reversed)", "q006 (reversed)"]


def test_loadings_of_factor_analysis_are_drawn_in_two_colours(demo, items):
    analysis = FactorAnalysis(3).fit(demo.keyed_answers())
    ax = plots.loading_heatmap(analysis.loadings_, items=items)
    assert ax.collections[0].get_cmap() is BOTH_WAYS
    np.testing.assert_allclose(
        sorted(np.ravel(ax.collections[0].get_array())), sorted(analysis.loadings_.ravel())
    )


def test_top_items_come_in_order(ax, model, items):
    first, ranges = model.loadings_["factor1"], model.item_range_
    plots.top_items(first, ranges=ranges, items=items, n=5, intervals=(first * 0.9, first * 1.1), ax=ax)
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == sorted(model.components_[0])[::-1][:5]
    old = model.confound_loadings_["Old"]
    names = plots.top_items(old, ranges=ranges, n=3, confound=True).get_yticklabels()
    assert [name.get_text() for name in names] == list(old.nlargest(3).index)
    with pytest.raises(InputError, match="loadings of one factor"):
        plots.top_items(model.loadings_)


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
    match = match_factors(loadings, loadings[:, [2, 0, 3, 1]], method="optimal")
    plots.factor_match(match.similarities, pairs=match.pairs, ax=ax)
    values = np.asarray(ax.collections[0].get_array())
    np.testing.assert_allclose(np.diag(values), 1.0)
    assert sorted((patch.get_x(), patch.get_y()) for patch in ax.patches) == [(r, r) for r in range(4)]


def test_bands_are_drawn_as_given():
    table = pd.DataFrame({"method": "ICQF", "size": 0.5, "auc": [0.74], "low": 0.6, "high": 0.9})
    band = plots.by_sample_size(table, "auc").collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == (0.6, 0.9)


def test_split_tree_draws_every_link(ax, models):
    links = factor_lineage([each.loadings_ for each in models])
    plots.split_tree(links, names=["a", "b", "c", "d"], ax=ax)
    assert len(ax.lines) == len(links)
    assert [text.get_text() for text in ax.texts[-4:]] == ["a", "b", "c", "d"]
    assert len({(x, y) for points in ax.collections for x, y in points.get_offsets()}) == 2 + 3 + 4


@pytest.mark.parametrize("spread", [None, "se"])
@pytest.mark.parametrize("reference", [None, "chance"])
def test_count_curve(ax, spread, reference):
    curve = pd.DataFrame({"n_components": [1, 2], "error": [0.9, 0.4], "se": 0.1, "chance": [0.8, 0.5]})
    options = {"spread": spread, "reference": reference, "better": "lower", "title": "CV"}
    plots.count_curve(curve, chosen=1, **options, ax=ax)
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "chosen: 1 factor" in words and ("chance" in words) == (reference is not None)
    assert ax.get_ylabel() == "error (lower is better)" and ax.get_title(loc="left") == "CV: 1 factor"
    none = plots.count_curve(curve, chosen=0, title="CV")
    assert none.get_title(loc="left") == "CV: 0 factors"
    assert not any(text.get_text().startswith("chosen") for text in none.get_legend().get_texts())


def test_constant_scores_have_no_correlation(ax):
    scores = np.column_stack([np.zeros(20), np.linspace(0, 1, 20)])
    plots.score_correlations(pd.DataFrame(scores).corr(), ax=ax)
    assert [text.get_text() for text in ax.texts] == ["1"]


def test_wrong_input_is_explained(model):
    with pytest.raises(InputError, match="'tall' or 'wide'"):
        plots.loading_heatmap(model.loadings_, form="long")
    with pytest.raises(InputError, match="at least two"):
        plots.split_tree(pd.DataFrame(columns=["k", "factor", "next_k", "next_factor", "correlation"]))
    with pytest.raises(InputError, match="has no column 'auc'"):
        plots.by_sample_size(pd.DataFrame({"method": [], "size": [], "low": [], "high": []}), "auc")
    with pytest.raises(InputError, match="no random eigenvalues"):
        plots.scree(pd.DataFrame({"eigenvalue": [1.0]}))
    with pytest.raises(InputError, match="no trace"):
        plots.convergence(model.trace_.iloc[:0])
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
        ICQF(item_range=(0, 100)),
        n_components=[2, 3, 4],
        betas=[0.1, 0.5],
        n_splits=4,
        n_repeats=1,
        stability=True,
        n_halves=2,
        random_state=0,
    ).fit(answers)
    plots.error_and_stability(search.errors_, search.stability_, chosen=search.n_components_, ax=ax)
    (right,) = [other for other in ax.figure.axes if other is not ax]
    np.testing.assert_allclose(right.lines[0].get_ydata(), search.stability_["agreement"])
    best = search.errors_.groupby("n_components")["error"].min()
    np.testing.assert_allclose(np.asarray(ax.lines[0].get_ydata(), dtype=float), best)
    assert f"chosen: {search.n_components_} factors" in [
        text.get_text() for text in ax.get_legend().get_texts()
    ]
    with pytest.raises(InputError, match="fit the search with stability=True"):
        plots.error_and_stability(search.errors_, None)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (
            lambda p: p.cv_curve(pd.DataFrame({"n_components": [1], "beta": [0.1]})),
            "no column 'error'.*errors_",
        ),
        (lambda p: p.cv_curve([1, 2]), "must be a table.*not list"),
        (lambda p: p.score_correlations(pd.DataFrame(np.zeros((5, 2)))), r"5 rows and 2 columns.*corr\(\)"),
        (
            lambda p: p.loading_heatmap(pd.DataFrame({"factor1": [1.0, 0.5]}), items={"a": 1}),
            "items must be a",
        ),
    ],
)
def test_another_table_than_the_plot_needs_is_refused_in_one_sentence(draw, message):
    with pytest.raises(InputError, match=message):
        draw(plots)


def test_a_search_s_curve_is_drawn_by_its_error():
    curve = pd.DataFrame({"n_components": [2, 3], "beta": [0.1, 0.1], "error": [0.5, 0.4]})
    assert plots.count_curve(curve, chosen=3).get_ylabel() == "error"


def test_loading_courses_draw_the_strongest_items_with_bands_and_stars():
    ages = [0.0, 1.0, 2.0]
    rows = [
        (f"q{j}", "factor1", str(int(age)), age, j / 10, j / 10 - 0.05, j / 10 + 0.05)
        for j in range(9)
        for age in ages
    ]
    courses = pd.DataFrame(rows, columns=["item", "factor", "bin", "age", "loading", "low", "high"])
    index = pd.MultiIndex.from_tuples([("factor1", "q8"), ("factor1", "q7")])
    changes = pd.DataFrame({"changes": [True, False]}, index)
    items = pd.DataFrame(
        {"wording": [f"Question {j}" for j in range(9)], "reverse": False}, courses["item"].unique()
    )
    ax = plots.loading_courses(courses, "factor1", items=items, changes=changes, n_items=4, names=["Mood"])
    assert ax.get_title(loc="left") == "Mood"
    assert [text.get_text() for text in ax.texts] == [
        "Question 8 *",
        "Question 7",
        "Question 6",
        "Question 5",
    ]
    assert len(ax.lines) == 4 and len(ax.collections) == 4
    assert ax.lines[0].get_linewidth() > ax.lines[1].get_linewidth()
    with pytest.raises(InputError, match="no factor 'factor9'"):
        plots.loading_courses(courses, "factor9")
    with pytest.raises(InputError, match="has no column 'age'"):
        plots.loading_courses(courses.drop(columns="age"), "factor1")


def test_the_band_of_a_correlation_ends_at_1(ax):
    rows = [("a", 0.2, 0.8, 0.3, 1.35), ("a", 0.8, 0.9, 0.8, 1.02)]
    table = pd.DataFrame(rows, columns=["method", "size", "agreement", "low", "high"])
    plots.by_sample_size(table, "agreement", ax=ax)
    assert ax.collections[0].get_paths()[0].vertices[:, 1].max() == 1.0
    wide = table.assign(agreement=[3.0, 4.0], high=[5.0, 6.0])
    free = plots.by_sample_size(wide, "agreement")
    assert free.collections[0].get_paths()[0].vertices[:, 1].max() == 6.0


def test_a_long_wording_never_loses_that_it_was_reversed(model, items):
    long = items.assign(wording="Says of himself or herself that other children like to play with him or her")
    labels = [
        label.get_text()
        for label in heatmap(model, items=long.assign(reverse=True), most=30).get_yticklabels()
    ]
    assert all(label.endswith("… (reversed)") and len(label) <= 31 for label in labels)


def test_powers_of_ten_are_plain_letters():
    def labels(*steps):
        ax = plots.convergence(pd.DataFrame({"step": steps}))
        ax.figure.draw_without_rendering()
        return [text.get_text() for minor in (False, True) for text in ax.get_yticklabels(minor=minor)]

    assert {"10⁻³", "10⁻²", "10⁻¹"} <= set(labels(0.3, 0.1, 0.01, 0.001))
    assert {"10⁻¹", "2×10⁻¹"} <= set(labels(0.3, 0.25, 0.2))  # less than a decade


def test_a_figure_is_laid_out_and_drawn_once(monkeypatch, tmp_path):
    draws = []
    draw = Figure.draw
    monkeypatch.setattr(Figure, "draw", lambda self, renderer: draws.append(1) or draw(self, renderer))
    figure = plots.convergence(pd.DataFrame({"step": [0.1, 0.01]})).figure
    box = figure.axes[0].get_position().bounds
    laid_out(figure).savefig(tmp_path / "figure.svg")
    assert len(draws) == 1
    assert figure.axes[0].get_position().bounds != box


# --- factors and their items ---


def diagram_texts(ax):
    return [text.get_text() for text in ax.texts]


def test_a_diagram_shows_every_item_once_at_its_strongest_factor(model, demo, items):
    ax = plots.factor_diagram(model.loadings_, ranges=model.item_range_, items=items, most=200)
    shares = model.loadings_.to_numpy() / 2
    drawn = shares.max(axis=1) >= 0.2
    assert len(ax.lines) == drawn.sum() and len(ax.patches) == 3
    texts = diagram_texts(ax)
    for wording in items["wording"]:
        assert sum(text.startswith(wording) for text in texts) == 1
    widths = sorted(line.get_linewidth() for line in ax.lines)
    assert widths == pytest.approx(sorted(0.3 + 2.2 * shares.max(axis=1)[drawn]))
    crossed = ((shares >= 0.2).sum(axis=1) > 1).sum()
    assert sum(text.startswith("also ") for text in texts) == crossed


def test_a_diagram_counts_what_does_not_fit(model, items):
    ax = plots.factor_diagram(model.loadings_, ranges=model.item_range_, items=items, rows=18)
    assert ax.get_ylim()[0] <= 18
    left_out = sum(int(text.split()[1]) for text in diagram_texts(ax) if re.fullmatch(r"and \d+ more", text))
    assert left_out > 0 and len(ax.lines) + left_out >= (model.loadings_.max(axis=1) >= 0.4).sum()


def test_a_diagram_in_columns_keeps_the_order_of_factors():
    table = pd.DataFrame(np.kron(np.eye(6), np.ones((4, 1))), columns=[f"factor{r}" for r in range(1, 7)])
    ax = plots.factor_diagram(table, columns=2)
    boxes = [patch.get_x() for patch in ax.patches]
    assert boxes == sorted(boxes) and ax.get_xlim() == (0, 2) and sum(x < 1 for x in boxes) == 3
