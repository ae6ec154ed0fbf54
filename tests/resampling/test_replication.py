"""How likely another study finds a factor."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF, InputError, replication_probability
from icqf.datasets import make_synthetic
from icqf.resampling.replication import (
    COEFFICIENTS,
    FRAGILE,
    HIGHEST,
    NOT_REPLICABLE,
    no_factor_replicates,
    probability_of,
    replication_in_words,
    replication_table,
    stepped_up,
)
from small_study import weak_study

PAGE = Path(__file__).parents[2] / "docs" / "results" / "calibration.md"
LOADINGS = np.kron(np.eye(2), np.ones((1, 6))) + 0.05


def table_of_halves(*halves, loadings=LOADINGS):
    agreement = np.tile(halves, (10, 1))
    return replication_table(agreement, loadings, [f"factor{r + 1}" for r in range(len(halves))])


@pytest.fixture(scope="module")
def answers():
    return make_synthetic(n=150, m=30, k=3, noise=0.1, random_state=0).answers


def test_the_probability_grows_with_the_agreement_of_halves():
    halves = np.linspace(0, 0.98, 50)
    found = probability_of(halves, np.zeros(50))
    assert (np.diff(found) > 0).all() and found[0] < 0.05 and found[-1] > 0.95
    assert probability_of([-0.9], [0]) == probability_of([0.0], [0])  # halves that disagree say no more
    top = HIGHEST / (2 - HIGHEST)  # half as many participants that step up to the highest
    np.testing.assert_allclose(probability_of([1.0], [0]), probability_of([top], [0]))


def test_agreement_is_stepped_up_by_spearman_and_brown():
    np.testing.assert_allclose(stepped_up([0, 0.5, 2 / 3, 1]), [0, 2 / 3, 0.8, 1])


def test_a_factor_that_one_item_carries_is_not_one_to_be_found():
    single = np.full((1, 12), 0.05)
    single[0, 3] = 1.0
    table = table_of_halves(0.95, loadings=single)
    assert table["probability"].tolist() == [0] and table["fragile"].all()
    assert "one item" in replication_in_words(0.0, float(table["largest"].iloc[0]))


def test_the_shipped_coefficients_are_those_of_the_page():
    page = PAGE.read_text(encoding="utf-8")
    names = " | ".join(COEFFICIENTS)
    numbers = " | ".join(f"{value:.2f}" for value in COEFFICIENTS.values())
    head = page.index(f"| {names} |")
    assert f"| {numbers} |" in page[head : head + 200]


@pytest.mark.parametrize(
    ("probability", "words"),
    [(0.97, "nearly every study"), (0.71, "about 7 of 10"), (0.14, "about 1 of 10"), (0.0, "hardly")],
)
def test_probabilities_in_words(probability, words):
    assert words in replication_in_words(probability, 0.3)
    assert "like this one" in replication_in_words(probability, 0.3)


def test_the_table_marks_fragile_factors():
    table = table_of_halves(0.95, 0.3)
    assert table["fragile"].tolist() == [False, True]
    assert (table["fragile"] == (table["probability"] < FRAGILE)).all()
    assert no_factor_replicates(table) == "" == no_factor_replicates(None)
    said = no_factor_replicates(table_of_halves(0.3, 0.2))
    assert said.startswith("another study like this one would find none of the factors")


@pytest.mark.filterwarnings("ignore:The answers leave the loadings open")  # noise may
@pytest.mark.parametrize(("form", "n"), [("graded", 300), ("yes/no", 300), ("skewed", 300), ("skewed", 1000)])
def test_independent_items_come_out_as_noise(form, n):
    rng = np.random.default_rng(7)
    cut = {"graded": [-1.5, -0.5, 0.5, 1.5], "yes/no": [0.3], "skewed": [0.5, 1.2, 1.8]}[form]
    noise = (rng.normal(size=(n, 20, 1)) > np.array(cut) + 0.3 * rng.normal(size=(20, 1))).sum(axis=2)
    model = ICQF(2, item_range=(0, len(cut))).fit(noise.astype(float))
    table = replication_probability(model, noise.astype(float))
    assert table["fragile"].all() and no_factor_replicates(table)


def test_strong_factors_replicate_and_weak_ones_in_few_participants_do_not():
    strong, weak = weak_study(400, loading=0.7), weak_study(100, loading=0.3)
    found = [
        replication_probability(ICQF(3, item_range=(0, float(each.max()))).fit(each), each)["probability"]
        for each in (strong, weak)
    ]
    assert found[0].min() > 0.8 and found[1].max() < 0.5


def test_it_is_kept_with_the_model_and_the_same_every_time(answers):
    model = ICQF(3, item_range=(0, 100)).fit(answers)
    first = replication_probability(model, answers, n_halves=5)
    assert model.replication_ is first and list(first.index) == list(model.get_feature_names_out())
    pd.testing.assert_frame_equal(first, replication_probability(model, answers, n_halves=5, n_jobs=2))
    assert (first["probability"] > 0.8).all()


def test_units_of_items_do_not_matter(answers):
    """An item in tenths has tenfold loadings, and the same part in a factor."""
    table = pd.DataFrame(answers).set_axis([f"q{i}" for i in range(30)], axis=1)
    factor = np.where(np.arange(30) % 3 == 0, 10.0, 1.0)
    ranges = pd.DataFrame({"min": 0.0, "max": 100.0}, index=table.columns)
    plain = replication_probability(ICQF(3, item_range=ranges).fit(table), table, n_halves=5)
    rescaled = ICQF(3, item_range=ranges.mul(factor, axis=0)).fit(table * factor)
    found = replication_probability(rescaled, table * factor, n_halves=5)
    columns = ["halves", "largest"]
    np.testing.assert_allclose(found[columns], plain[columns], atol=1e-3)


def test_what_cannot_be_judged_is_refused(answers):
    model = ICQF(3, item_range=(0, 100)).fit(answers)
    with pytest.raises(InputError, match="at least 5, not 4"):
        replication_probability(model, answers, n_halves=4)
    with pytest.raises(InputError, match="one group, which has no halves"):
        replication_probability(model, answers, groups=np.zeros(len(answers)))


def test_the_model_file_keeps_it_and_refuses_what_cannot_be(answers, tmp_path):
    model = ICQF(3, item_range=(0, 100)).fit(answers)
    assert ICQF.load(saved(model, tmp_path)).replication_ is None
    replication_probability(model, answers, n_halves=5)
    again = ICQF.load(saved(model, tmp_path))
    pd.testing.assert_frame_equal(again.replication_, model.replication_)
    assert again.summary().factors["probability"].tolist() == again.replication_["probability"].tolist()
    for column in ("probability", "largest", "halves"):
        wrong = model.replication_.assign(**{column: 1.5})
        model.replication_, right = wrong, model.replication_
        with pytest.raises(InputError):
            ICQF.load(saved(model, tmp_path))
        model.replication_ = right


def saved(model, folder):
    model.save(folder / "model.icqf")
    return folder / "model.icqf"


def test_a_summary_marks_fragile_factors(answers):
    model = ICQF(3, item_range=(0, 100)).fit(answers)
    assert "replication" not in str(model.summary())
    halves = np.tile([0.98, 0.98, 0.1], (10, 1))
    model.replication_ = replication_table(halves, model.components_, model.get_feature_names_out())
    assert str(model.summary()).count("(fragile)") == 1


def test_the_terminal_says_when_nothing_replicates(answers):
    from icqf.cli.text import no_structure

    model = ICQF(2, item_range=(0, 100)).fit(answers)
    names = model.get_feature_names_out()
    for halves, said in (((0.2, 0.3), True), ((0.2, 0.95), False)):
        model.replication_ = table_of_halves(*halves).set_axis(pd.Index(names, name="factor"))
        assert no_structure(None, model=model).startswith(NOT_REPLICABLE) == said
