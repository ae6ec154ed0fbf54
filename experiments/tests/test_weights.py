"""Weights of items: what is compared, and the page of a quick run."""

import numpy as np
import pandas as pd
import pytest

from icqf.data.questionnaire import Item, Questionnaire
from icqf.workflow.evaluation import Design
from icqf_experiments.weights import WEIGHTS, by_scale, carried_by, own_k, rows_of, simulated, weights_page


def test_items_of_one_range_share_a_weight():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"a": rng.integers(0, 2, 90), "b": rng.integers(0, 5, 90), "c": rng.integers(0, 5, 90)}
    )
    study = Questionnaire(
        table.astype(float), (Item("a", min=0, max=1), Item("b", min=0, max=4), Item("c", min=0, max=4))
    )
    a, b, c = by_scale(study)
    assert b == c == pytest.approx(1 / np.sqrt(table[["b", "c"]].var(ddof=0).mean()))
    assert a == pytest.approx(1 / table["a"].std(ddof=0))


def test_how_many_items_carry_a_factor():
    np.testing.assert_allclose(carried_by(np.array([[1.0, 0, 0, 0], [2, 2, 2, 2], [1, 1, 0, 0]])), [1, 4, 2])


def test_factors_of_one_item_do_not_count_as_found():
    loadings = [[1.0, 0, 0, 0], [0, 1, 1, 1]]
    fit = {"loadings": [loadings], "sse": [[1.0] * 4], "sst": [[2.0] * 4]}
    (row,) = rows_of("a study", "range", [fit, fit], np.array([1.0, 4, 4, 4]), None, [2])
    assert row["found"] == 1 and row["several_found"] == row["single"] == 0.5
    assert row["points"] == row["ranges"] == row["deviations"] == 0.5


def test_simulated_answers_are_mixed():
    study, loadings = simulated(0.5, own=True, rare=True)
    highest = np.array([item.max for item in study.items])
    assert (highest == 1).sum() == 20 and (highest == 4).sum() == 20 and loadings.shape == (4, 40)
    answers = study.answers.to_numpy()
    assert answers[:, highest == 1].max() == 1 and answers[:, highest == 1].mean() < 0.3


def test_the_page_of_a_quick_run(tmp_path):
    page = weights_page(Design(tmp_path, command="icqf reproduce weights --quick").quickly())
    table = pd.read_csv(tmp_path / "weights.csv")
    assert set(table["weight"]) == {*WEIGHTS} and set(table["k"]) == {2, 4}
    assert (own_k(table)["k"] == 4).all() and (table.loc[table["k"] == 4, "recovered"] == 1).all()
    text = page.read_text(encoding="utf-8")
    assert "| variance | " in text and "draws" in text
