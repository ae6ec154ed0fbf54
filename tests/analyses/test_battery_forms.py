"""Short forms across a battery: the same law and the same search as for one questionnaire, in two stages."""

import numpy as np
import pytest

from icqf import ICQF, InputError
from icqf.analyses import reduced_battery, search_forms, shortform
from icqf.analyses.short_forms import MetaRecovery
from icqf.datasets import make_battery
from icqf.models import MetaICQF


@pytest.fixture(scope="module")
def battery():
    return make_battery(n=240, n_items=(6, 6, 6), n_factors=2, n_meta=2, random_state=0).battery


@pytest.fixture(scope="module")
def model(battery):
    return MetaICQF(ICQF(2), meta_estimator=ICQF(2, item_weight="variance")).fit(battery)


@pytest.fixture(scope="module")
def form(model, battery):
    return shortform(model, battery, max_items=6)


def by_instrument(items):
    found = {}
    for name in items:
        instrument, item = name.split(": ")
        found.setdefault(instrument, []).append(item)
    return found


def test_a_form_across_instruments(form, battery, tmp_path):
    assert len(form.items) == 6 and form.n_items == 18
    assert form.correlation >= form.curve["top_loading"].iloc[-1] and form.correlation > 0.8
    assert form.factors["reliability"].isna().all() and "not estimated for a battery" in form.sentence
    assert list(form.curve.columns[-2:]) == ["meta1", "meta2"]
    asked = by_instrument(form.items)
    part = {name: battery.instruments[name].select(items) for name, items in asked.items()}
    form.model.save(tmp_path / "short.icqf")
    again = MetaICQF.load(tmp_path / "short.icqf")
    np.testing.assert_allclose(again.transform(part), form.model.transform(part))


def test_all_items_give_the_model_back(model, battery):
    everything = {name: ["*"] for name in model.instruments_}
    same = reduced_battery(model, everything)
    np.testing.assert_allclose(same.transform(battery), model.transform(battery), atol=1e-3)


def test_an_instrument_without_items_is_as_if_it_was_not_given(model, battery):
    short = reduced_battery(model, {"A": ["*"], "C": "*"})
    some = {name: battery.instruments[name] for name in ("A", "C")}
    np.testing.assert_allclose(short.transform(some), model.transform(some), atol=1e-3)


def test_steps_forth_and_back(model, battery):
    recovery = MetaRecovery.of(model, battery).simulated(np.random.default_rng(0), 100)
    form = recovery.nothing().plus(0).plus(14)
    for _ in range(30):
        form = form.plus(8).minus(8)
    assert set(form.forms) == {"A", "C"} and form.scores.shape == recovery.wanted.shape
    assert recovery.nothing().plus(3).minus(3).forms == {}
    assert [len(each) for each in search_forms(recovery, max_items=3)] == [1, 2, 3]


def test_participants_without_an_instrument_take_part(battery, model):
    """Everybody lacks one instrument or another; forms are searched and judged all the same."""
    ids = battery.ids
    names = list(battery.instruments)
    gaps = {
        name: each.take(np.flatnonzero(~each.answers.index.isin(ids[at::3])))
        for at, (name, each) in enumerate(battery.instruments.items())
    }
    found = shortform(model, gaps, max_items=4)
    assert len(found.items) == 4 and 200 < found.n_participants <= len(ids)
    assert found.bands.notna().all(axis=None)
    assert {name.split(":")[0] for name in found.items} <= {*names} and found.correlation > 0.6


def test_keep_and_drop_by_instrument(model, battery):
    found = shortform(model, battery, max_items=5, keep=["B: b01"], drop="A: *")
    assert "B: b01" in found.items and not any(name.startswith("A:") for name in found.items)


def test_what_cannot_be_reduced(model):
    with pytest.raises(InputError, match="no instrument 'Z'"):
        reduced_battery(model, {"Z": ["z1"]})
    with pytest.raises(InputError, match="at least one item"):
        reduced_battery(model, {})
