"""The chance that a second study finds a factor again."""

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF, InputError, replication_chance
from icqf.datasets import make_synthetic
from icqf.resampling.replication import FRAGILE, HIGHEST, chance_in_words, replication_table


def chance_of(agreement):
    return replication_table(agreement, range(agreement.shape[1]))["chance"].to_numpy()


@pytest.fixture(scope="module")
def answers():
    return make_synthetic(n=150, m=30, k=3, noise=0.1, random_state=0).answers


def test_the_chance_grows_with_the_mean_agreement():
    agreement = np.tile(np.linspace(0, 0.98, 50), (20, 1))
    chances = chance_of(agreement)
    assert (np.diff(chances) > 0).all() and chances[0] < 0.1 and chances[-1] > 0.9
    mixed = np.where(np.arange(20)[:, None] % 2, agreement + 0.01, agreement - 0.01)
    np.testing.assert_allclose(chance_of(mixed), chances)


def test_agreement_beyond_any_curve_is_certain_enough():
    assert chance_of(np.ones((5, 1)))[0] == chance_of(np.full((5, 1), HIGHEST))[0] < 1


@pytest.mark.parametrize(
    ("chance", "words"),
    [(0.97, "nearly every study"), (0.71, "about 7 of 10"), (0.14, "about 1 of 10"), (0.0, "hardly")],
)
def test_chances_in_words(chance, words):
    assert words in chance_in_words(chance)


def test_the_table_marks_fragile_factors():
    agreement = np.column_stack([np.full(20, 0.95), np.full(20, 0.6)])
    table = replication_table(agreement, ["steady", "shaky"])
    assert table["fragile"].to_dict() == {"steady": False, "shaky": True}
    assert (table["fragile"] == (table["chance"] < FRAGILE)).all()
    assert (table["low"] <= table["agreement"] + 1e-12).all() and (
        table["agreement"] <= table["high"] + 1e-12
    ).all()


def test_it_is_kept_with_the_model_and_the_same_every_time(answers):
    model = ICQF(3, item_range=(0, 100)).fit(answers)
    first = replication_chance(model, answers, n_resamples=5)
    assert model.replication_ is first and list(first.index) == list(model.get_feature_names_out())
    pd.testing.assert_frame_equal(first, replication_chance(model, answers, n_resamples=5, n_jobs=2))
    assert (first["chance"] > 0.8).all()


def test_units_of_items_do_not_matter(answers):
    """An item in tenths has tenfold loadings, and the same part in a factor."""
    table = pd.DataFrame(answers).set_axis([f"q{i}" for i in range(30)], axis=1)
    factor = np.where(np.arange(30) % 3 == 0, 10.0, 1.0)
    ranges = pd.DataFrame({"min": 0.0, "max": 100.0}, index=table.columns)
    plain = replication_chance(ICQF(3, item_range=ranges).fit(table), table, n_resamples=5)
    rescaled = ICQF(3, item_range=ranges.mul(factor, axis=0)).fit(table * factor)
    found = replication_chance(rescaled, table * factor, n_resamples=5)
    np.testing.assert_allclose(found["agreement"], plain["agreement"], atol=1e-3)


def test_too_few_resamples_are_refused(answers):
    model = ICQF(3, item_range=(0, 100)).fit(answers)
    with pytest.raises(InputError, match="at least 5, not 4"):
        replication_chance(model, answers, n_resamples=4)


def test_the_model_file_keeps_it_and_refuses_what_cannot_be(answers, tmp_path):
    model = ICQF(3, item_range=(0, 100)).fit(answers)
    assert ICQF.load(saved(model, tmp_path)).replication_ is None
    replication_chance(model, answers, n_resamples=5)
    again = ICQF.load(saved(model, tmp_path))
    pd.testing.assert_frame_equal(again.replication_, model.replication_)
    assert again.summary().factors["chance"].tolist() == again.replication_["chance"].tolist()
    model.replication_ = model.replication_.assign(found=1.5)
    with pytest.raises(InputError):
        ICQF.load(saved(model, tmp_path))


def saved(model, folder):
    model.save(folder / "model.icqf")
    return folder / "model.icqf"


def test_a_summary_marks_fragile_factors(answers):
    model = ICQF(3, item_range=(0, 100)).fit(answers)
    assert "found_again" not in str(model.summary())
    agreement = np.column_stack([np.full(20, 0.99), np.full(20, 0.99), np.full(20, 0.1)])
    model.replication_ = replication_table(agreement, model.get_feature_names_out())
    assert str(model.summary()).count("(fragile)") == 1
