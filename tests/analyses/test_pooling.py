"""Models of several sites as one: matching, averaging, confounds on a wider range, bounds, and words."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF, InputError
from icqf.analyses import pool
from icqf.datasets import load_demo
from icqf.io.model_file import StoredModel
from icqf.models.persistence import rebuild
from icqf.resampling import match_factors

K = 3
SIZES = (150, 200, 250)


@pytest.fixture(scope="module")
def demo():
    """Three subscales of the demo."""
    whole = load_demo()
    return whole.select(
        [item.name for item in whole.items if item.subscale in ("Worry", "Temper", "Low mood")]
    )


@pytest.fixture(scope="module")
def sites(demo):
    dealt = np.split(np.random.default_rng(0).permutation(600), np.cumsum(SIZES)[:-1])
    return {name: ICQF(K).fit(demo.take(np.sort(rows))) for name, rows in zip("ABC", dealt, strict=True)}


@pytest.fixture(scope="module")
def found(sites):
    return pool(sites)


def changed(model, arrays=None, **header):
    """The model with other numbers or words."""
    stored = model.describe()
    return rebuild(
        ICQF, StoredModel({**stored.header, **header}, {**stored.arrays, **(arrays or {})}, stored.codebook)
    )


def test_pooled_factors_are_those_of_everybody(demo, sites, found):
    joint = ICQF(K).fit(demo)
    together = match_factors(found.model, joint, method="optimal")
    alone = [match_factors(site, joint, method="optimal").mean for site in sites.values()]
    assert together.min > 0.98 and together.mean > max(alone)
    assert found.model.n_participants_ == 600 and found.model.n_averaged_ == 3
    assert found.factors["r_lowest"].min() > 0.8 and not found.notes


def test_pooling_one_model_with_itself_gives_it_back(sites):
    again = pool({"A": sites["A"], "B": sites["A"]}).model
    np.testing.assert_array_equal(again.components_, sites["A"].components_)
    np.testing.assert_array_equal(again.confound_components_, sites["A"].confound_components_)
    assert again.confound_encoder_.to_dict() == sites["A"].confound_encoder_.to_dict()


def test_the_order_of_sites_does_not_matter(sites, found):
    for names in itertools.permutations("ABC"):
        other = pool({name: sites[name] for name in names})
        assert other.model.components_.tobytes() == found.model.components_.tobytes()
        assert other.model.confound_components_.tobytes() == found.model.confound_components_.tobytes()
        pd.testing.assert_frame_equal(other.factors, found.factors)
        assert list(other.sites.index) == list(names)


def test_the_order_of_factors_and_items_at_a_site_does_not_matter(sites, found):
    stored, turned = sites["B"].describe(), [2, 0, 1]
    arrays = {
        "components": stored.arrays["components"][turned],
        "explained": stored.arrays["explained"][[*turned, *range(K, len(stored.arrays["explained"]))]],
        "solving_order": stored.arrays["solving_order"][turned],
    }
    other = pool({**sites, "B": changed(sites["B"], arrays)})
    np.testing.assert_array_equal(other.model.components_, found.model.components_)
    from icqf.analyses.short_forms import with_items

    backwards = with_items(sites["B"], list(sites["B"].item_range_.index)[::-1])
    other = pool({**sites, "B": backwards})
    np.testing.assert_array_equal(other.model.components_, found.model.components_)
    assert other.model.codebook_ == found.model.codebook_


def test_a_pooled_model_scores_inside_all_bounds(demo, found, tmp_path):
    found.model.save(tmp_path / "pooled.icqf")
    model = ICQF.load(tmp_path / "pooled.icqf")
    scores = model.transform(demo)
    assert scores.min() >= 0 and scores.max() <= 1
    span = np.ptp(model.item_range_.to_numpy(), axis=1)
    design = model.confound_encoder_.transform(demo.confounds)
    reconstructed = scores @ model.components_ + design @ model.confound_components_
    assert (reconstructed >= 0).all() and (reconstructed <= span).all()
    assert (model.components_ <= span).all()


def line(model, ages, sex):
    """What confounds alone make of the answers at these ages."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        design = model.confound_encoder_.transform(pd.DataFrame({"age": ages, "sex": sex}))
    return design @ model.confound_components_


def flat(model, ages, **rows):
    """The model with these ages, and these loadings of confounds for every item, in points."""
    stored = model.describe()
    confounds = {**stored.header["confounds"]}
    age, sex = confounds["columns"]
    low, high = ages
    confounds["columns"] = [{**age, "low": low, "high": high, "mean": (low + high) / 2}, sex]
    names = model.confound_names_
    values = np.zeros((len(names), len(stored.header["items"])))
    for name, value in rows.items():
        values[names.index(name)] = value
    return changed(model, {"confound_components": values}, confounds=confounds)


def test_a_wider_range_of_ages_maps_exactly(sites):
    """A line over 6 to 12 years and one over 8 to 16 become their mean over 6 to 16, at every age."""
    young = flat(sites["A"], (6.0, 12.0), Old=0.5, Intercept=0.25)
    old = flat(sites["B"], (8.0, 16.0), Young=0.25, Intercept=0.25)
    pooled = pool({"young": young, "old": old}).model
    column = pooled.confound_encoder_.columns[0]
    assert (column.low, column.high) == (6.0, 16.0)
    ages = np.array([8.0, 9.5, 12.0])  # where both sites have seen children
    share = np.array([150, 200]) / 350
    sex = pooled.confound_encoder_.columns[1].categories[0]
    expected = share[0] * line(young, ages, sex) + share[1] * line(old, ages, sex)
    np.testing.assert_allclose(line(pooled, ages, sex), expected, rtol=2e-6)
    ends = line(pooled, np.array([6.0, 16.0]), sex)
    slope = (expected[2] - expected[0]) / 4
    np.testing.assert_allclose(ends[0], expected[0] - 2 * slope, rtol=1e-5)
    np.testing.assert_allclose(ends[1], expected[2] + 4 * slope, rtol=1e-5)
    assert pooled.confound_ranges == {"age": [6.0, 16.0]}


def test_a_line_that_leaves_the_range_is_brought_inside(sites):
    """Continued to 21 years, it would pass the highest answer, and below 6 years the lowest."""
    steep = flat(sites["A"], (8.0, 10.0), Old=1.9)
    wide = flat(sites["B"], (4.0, 21.0), Intercept=0.1)
    pooled = pool({"steep": steep, "wide": wide}).model
    span = np.ptp(pooled.item_range_.to_numpy(), axis=1)
    for sex in pooled.confound_encoder_.columns[1].categories:
        made = line(pooled, np.linspace(4, 21, 35), sex)
        assert (made >= 0).all() and (made <= span).all()


def test_a_factor_of_one_site_only_is_said(sites):
    """At A and B the third factor is about other items; at C it is about those of the others."""
    shapes = np.zeros((4, len(sites["A"].item_range_)))
    for at in range(4):
        shapes[at, at::4] = 1.5
    kept = {
        name: changed(model, {"components": shapes[[0, 1, third]]})
        for (name, model), third in zip(sites.items(), (2, 2, 3), strict=True)
    }
    found = pool(kept)
    (alone,) = found.factors.index[found.factors["r_lowest"] < 0.5]
    assert f"{alone} was found at 'A', 'B', not at 'C'. 'C' did not count in its loadings." in found.notes
    assert any(note.startswith("C differs from the others: 1 of its 3 factors") for note in found.notes)
    np.testing.assert_array_equal(found.model.loadings_[alone].to_numpy(), shapes[2])
    two = pool({name: kept[name] for name in "AC"})
    assert any("was found at C only: the other site has another factor" in note for note in two.notes)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"n_components": 2}, "B: the model has 2 factors, and that of A has 3."),
        ({"beta": 0.5}, "B: the model has a penalty beta of 0.5, and that of A has 0.1."),
        ({"item_weight": None}, "B: the model has an item weighting of None, and that of A has range."),
    ],
)
def test_other_settings_are_refused(demo, sites, change, said):
    other = ICQF(**{"n_components": K, **change}).fit(demo)
    with pytest.raises(InputError) as caught:
        pool({"A": sites["A"], "B": other})
    assert caught.value.message == said and "one config.toml" in str(caught.value)


def test_other_items_ranges_directions_and_confounds_are_refused(demo, sites):
    import dataclasses

    first = demo.items[0]
    others = {
        f"has the range 0 to 3 for the item '{first.name}', and that of A has 0 to 2": dataclasses.replace(
            demo, items=(dataclasses.replace(first, max=3), *demo.items[1:])
        ),
        f"has the item '{first.name}' reversed, and that of A has the item '{first.name}' not reversed": (
            dataclasses.replace(demo, items=(dataclasses.replace(first, reverse=True), *demo.items[1:]))
        ),
        f"has no item '{first.name}', and that of A has it": demo.select([i.name for i in demo.items[1:]]),
        "has no confounds, and that of A has the confounds 'age', 'sex'": demo.with_confounds(None),
        "has numbers for the confound 'sex', and that of A has the categories": demo.with_confounds(
            demo.confounds.assign(sex=np.arange(600) % 7)
        ),
    }
    for said, study in others.items():
        with pytest.raises(InputError, match="B: the model ") as caught:
            pool({"A": sites["A"], "B": ICQF(K).fit(study)})
        assert said in str(caught.value)


def test_sites_may_write_their_codes_as_text_or_as_numbers(demo):
    first, second = demo.take(np.arange(300)), demo.take(np.arange(300, 600))
    sex = {
        name: pd.Series(pd.factorize(each.confounds["sex"], sort=True)[0] + 1, each.confounds.index)
        for name, each in (("A", first), ("B", second))
    }
    as_text = sex["B"].map({1: "01", 2: "02"})
    found = [
        pool(
            {
                "A": ICQF(K).fit(first.with_confounds(sex["A"].to_frame("sex"))),
                "B": ICQF(K).fit(second.with_confounds(other.to_frame("sex"))),
            }
        ).model
        for other in (sex["B"], as_text)
    ]
    np.testing.assert_allclose(found[0].confound_components_, found[1].confound_components_)


def test_weights_learned_from_answers_are_refused(demo):
    halves = {
        name: ICQF(K, item_weight="variance").fit(demo.take(np.arange(at, 600, 2)))
        for at, name in enumerate("AB")
    }
    with pytest.raises(InputError, match="variance of the site's own answers"):
        pool(halves)


def test_one_site_is_not_pooled(sites):
    with pytest.raises(InputError, match="two sites or more"):
        pool({"A": sites["A"]})


def test_sites_that_agree_on_nothing_are_said_to(sites):
    m = len(sites["A"].item_range_)
    kept = {}
    for at, (name, model) in enumerate(sites.items()):
        shapes = np.zeros((3, m))
        for f in range(3):
            shapes[f, 3 * at + f :: 9] = 1.5
        kept[name] = changed(model, {"components": shapes})
    (note,) = pool(kept).notes
    assert note.startswith("The sites do not agree on any factor") and "Do not score" in note
