"""Meta-factors: recovered where they are known, joined by id, and clear about what is wrong."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from icqf import ICQF, ICQFCV
from icqf.data import Battery
from icqf.datasets import make_battery
from icqf.errors import InputError
from icqf.models import L1NMF, MetaICQF, compare_hierarchy, meta
from icqf.resampling import match_factors


@pytest.fixture(scope="module")
def made():
    return make_battery(n=240, n_items=(9, 9, 9, 9), n_factors=3, n_meta=3, random_state=0)


@pytest.fixture(scope="module")
def model(made):
    return MetaICQF(ICQF(3), meta_estimator=ICQF(3)).fit(made.battery)


def test_composed_loadings_are_those_of_the_truth_with_two_in_five_missing_each_instrument(made, model):
    share = 1 - made.battery.answered.mean()
    assert ((share > 0.3) & (share < 0.5)).all()
    found = match_factors(made.item_loadings.to_numpy(), model.item_loadings_.to_numpy(), method="optimal")
    assert (found.pairs["pearson"] >= 0.9).all()


def test_loadings_are_composed_of_those_of_both_stages(model):
    V = model.loadings_
    for name, own in model.instruments_.items():
        composed = own.loadings_.to_numpy() @ V.loc[name].to_numpy()
        np.testing.assert_allclose(model.item_loadings_.loc[name].to_numpy(), composed, atol=1e-12)
    assert ((V >= 0) & (V <= 1)).all(axis=None)


def test_scores_of_the_fit_are_those_of_transform(made, model):
    again = MetaICQF(ICQF(3), meta_estimator=ICQF(3)).fit_transform(made.battery)
    pd.testing.assert_frame_equal(again, model.transform(made.battery))
    assert again.min(axis=None) >= 0 and again.max(axis=None) <= 1
    assert list(again.index) == list(made.battery.ids)


def test_participants_in_another_order_give_the_same_scores(made, model):
    turned = {
        name: each.take(np.arange(each.n_participants)[::-1])
        for name, each in made.battery.instruments.items()
    }
    scores = model.transform(turned)
    expected = model.transform(made.battery).loc[scores.index]
    np.testing.assert_allclose(scores.to_numpy(), expected.to_numpy(), atol=1e-9)


def test_any_subset_of_instruments_scores_and_tells_what_it_can(made, model):
    everything = model.transform(made.battery)
    for names in (["A"], ["C", "A"], ["D", "B", "C"]):
        some = model.transform({name: made.battery.instruments[name].answers for name in names})
        assert some.notna().all(axis=None)
        shared = some.index.intersection(everything.index)
        assert all(some.loc[shared, c].corr(everything.loc[shared, c]) > 0.5 for c in some)


def test_one_instrument_more_changes_only_the_missing(made, model):
    scores = model.factor_scores({"A": made.battery.instruments["A"]})
    assert scores.filter(like="A: ").notna().all(axis=None)
    assert scores.filter(regex="^[BCD]: ").isna().all(axis=None)


def test_a_participant_without_any_answer_has_no_scores(made, model):
    silent = made.battery.instruments["A"].answers.astype(float).head(3)
    silent.iloc[1] = np.nan
    with pytest.warns(UserWarning, match="answered nothing|no answer|nothing"):
        scores = model.transform({"A": silent})
    assert scores.isna().all(axis=1).tolist() == [False, True, False]


def test_spoiling_a_missing_instrument_changes_nothing(made, model):
    """Rows of an instrument without answers are as good as no rows."""
    own = dict(made.battery.instruments)
    absent = [id for id in made.battery.ids if id not in own["A"].answers.index][:5]
    padded = pd.concat([own["A"].answers, own["A"].answers.iloc[:5].set_axis(absent, axis=0) * np.nan])
    frame = own["A"].answers
    again = type(own["A"])(padded, own["A"].items)
    assert len(again.answers) == len(frame) + 5
    found = MetaICQF(ICQF(3), meta_estimator=ICQF(3)).fit(own | {"A": again})
    np.testing.assert_allclose(found.item_loadings_.to_numpy(), model.item_loadings_.to_numpy(), atol=1e-9)


def test_numbers_of_factors_are_chosen_where_they_are_not_given(made):
    search = ICQFCV(n_components=[2, 3, 4], betas=[0.1], n_repeats=1, random_state=0)
    model = MetaICQF(search, meta_estimator=search).fit(made.battery)
    assert [len(each.components_) for each in model.instruments_.values()] == [3, 3, 3, 3]
    assert len(model.meta_.components_) == 3 and set(model.searches_) == {*"ABCD", "meta"}


def test_each_instrument_may_have_its_own_estimator(made):
    each = {"A": ICQF(2), "B": ICQF(3), "C": ICQF(1), "D": ICQF(2, beta=0.2)}
    model = MetaICQF(each, meta_estimator=ICQF(2)).fit(made.battery)
    assert [len(own.components_) for own in model.instruments_.values()] == [2, 3, 1, 2]
    assert model.instruments_["D"].beta == 0.2


def test_numbers_of_factors_are_set_by_instrument(made):
    short = ICQFCV(n_components=[2], betas=[0.1], n_repeats=1, n_splits=3, random_state=0)
    model = MetaICQF({"A": 2, "B": ICQF(3), "C": 1, "D": short}, meta_estimator=ICQF(2)).fit(made.battery)
    assert [len(own.components_) for own in model.instruments_.values()] == [2, 3, 1, 2]
    with pytest.raises(InputError, match=r"n_components must be a whole number of at least 1, not 0"):
        MetaICQF(0).fit(made.battery)


def unrelated(seed, n=200):
    return make_battery(n, n_items=(8, 8, 8), n_factors=2, n_meta=2, absent=0.2, shared=0, random_state=seed)


def searched(battery, **more):
    second = ICQFCV(ICQF(item_weight="variance", n_init=1), betas=[0.05], n_repeats=1, random_state=0, **more)
    return MetaICQF(ICQF(2, n_init=1), meta_estimator=second).fit(battery)


def test_unrelated_instruments_have_no_common_factor_and_related_ones_have(tmp_path):
    """At a chance of 1 in 20 each, three or more of eight would be a rare accident."""
    batteries = [unrelated(seed).battery for seed in range(8)]
    models = [searched(battery, n_components=[1, 2]) for battery in batteries]
    assert sum(model.meta_ is not None for model in models) <= 2
    related = make_battery(200, n_items=(8, 8, 8), n_factors=2, n_meta=2, absent=0.2, shared=0.7)
    assert searched(related.battery, n_components=[1, 2]).common_.p < 0.001

    model, battery = next(pair for pair in zip(models, batteries, strict=True) if pair[0].meta_ is None)
    assert model.loadings_.shape == (6, 0) and model.item_loadings_.shape == (24, 0)
    assert model.transform(battery).shape == (200, 0) and list(model.get_feature_names_out()) == []
    assert model.factor_scores(battery).shape == (200, 6)
    for refused in (lambda: model.score(battery), lambda: compare_hierarchy(model, battery, flat=ICQF(1))):
        with pytest.raises(InputError, match="have no common factor"):
            refused()
    model.save(tmp_path / "meta.icqf")
    again = MetaICQF.load(tmp_path / "meta.icqf")
    assert again.meta_ is None and again.n_participants_ == model.n_participants_
    pd.testing.assert_frame_equal(again.factor_scores(battery), model.factor_scores(battery))


def test_what_only_confounds_share_is_no_common_factor():
    """Every instrument has a factor that follows age; nothing else is shared."""
    rng, found = np.random.default_rng(5), []
    for _ in range(6):
        age = rng.uniform(0, 1, 200)
        ids = pd.Index([f"P{i}" for i in range(200)], name="id")
        tables = {}
        for name in "AB":
            scores = np.clip(0.7 * age + 0.4 * rng.uniform(0, 1, 200) - 0.1, 0, 1)
            answers = np.clip(np.rint(4 * scores[:, None] + 0.6 * rng.normal(size=(200, 8))), 0, 4)
            tables[name] = pd.DataFrame(answers, index=ids, columns=[f"{name}{j}" for j in range(8)])
        second = ICQFCV(ICQF(n_init=1), n_components=[1], betas=[0.05], n_repeats=1, random_state=0)
        model = MetaICQF(ICQF(1, n_init=1, item_range=(0, 4)), meta_estimator=second)
        found.append(model.fit(tables).common_.p < 0.05)
        found.append(model.fit(tables, confounds=pd.DataFrame({"age": age}, index=ids)).common_.p < 0.05)
    assert all(found[::2]) and sum(found[1::2]) <= 2


def test_a_factor_of_one_instrument_alone_is_no_meta_factor():
    """Two factors of C always come together; they have nothing to do with A and B."""
    rng = np.random.default_rng(3)
    common, own = (rng.uniform(0, 1, 300) * (rng.random(300) < 0.6) for _ in range(2))
    ids = pd.Index([f"P{i}" for i in range(300)], name="id")
    tables = {}
    for name, factors in {"A": [common], "B": [common], "C": [own, own]}.items():
        parts = [
            np.clip(
                np.rint(
                    4 * np.clip(0.8 * each + 0.2 * rng.random(300), 0, 1)[:, None]
                    + 0.4 * rng.normal(size=(300, 6))
                ),
                0,
                4,
            )
            for each in factors
        ]
        answers = np.concatenate(parts, axis=1)
        tables[name] = pd.DataFrame(
            answers, index=ids, columns=[f"{name}{j}" for j in range(answers.shape[1])]
        )
    first = {
        "A": ICQF(1, item_range=(0, 4)),
        "B": ICQF(1, item_range=(0, 4)),
        "C": ICQF(2, item_range=(0, 4)),
    }
    second = ICQFCV(ICQF(n_init=1), n_components=[2], betas=[0.01], n_repeats=1, random_state=0)
    model = MetaICQF(first, meta_estimator=second).fit(tables)
    assert model.searches_["meta"].n_components_ == 2 and model.loadings_.shape[1] == 1
    assert (model.loadings_.loc[["A", "B"]] > 0.5).all(axis=None)
    assert model.meta_.init == "nndsvd"


def test_the_evidence_vanishes_where_rows_are_shuffled():
    made = make_battery(200, n_items=(8, 8), n_factors=2, n_meta=2, absent=0.0, random_state=0)
    assert searched(made.battery, n_components=[2]).common_.p < 1e-6
    own = dict(made.battery.instruments)
    order = np.random.default_rng(0).permutation(200)
    shuffled = own["B"].answers.iloc[order].set_axis(own["B"].answers.index)
    again = searched({"A": own["A"], "B": type(own["B"])(shuffled, own["B"].items)}, n_components=[2])
    assert again.common_.p > 0.05 and again.meta_ is None


def test_confounds_take_part_in_both_stages(made):
    rng = np.random.default_rng(0)
    ages = pd.DataFrame({"age": rng.uniform(6, 18, made.battery.n_participants)}, index=made.battery.ids)
    model = MetaICQF(ICQF(2), meta_estimator=ICQF(2)).fit(made.battery, confounds=ages)
    assert "Old" in model.meta_.confound_names_ and "Old" in model.instruments_["A"].confound_names_
    new = {"A": made.battery.instruments["A"].answers.head(4)}
    assert model.transform(new, confounds=ages).shape == (4, 2)
    with pytest.raises(InputError, match="age"):
        model.transform(new)


def test_score_is_better_than_that_of_a_model_with_too_few_factors(made, model):
    flat = MetaICQF(ICQF(3), meta_estimator=ICQF(1)).fit(made.battery)
    assert model.score(made.battery) > flat.score(made.battery)


def test_reconstructed_answers_stay_in_their_range(made, model):
    found = model.inverse_transform(model.transform(made.battery))
    for name, answers in found.items():
        ranges = model.instruments_[name].item_range_
        assert (answers >= ranges["min"] - 1e-9).all(axis=None)
        assert (answers <= ranges["max"] + 1e-9).all(axis=None)


def test_it_is_cloned_and_set_like_any_estimator(model):
    again = clone(MetaICQF(ICQF(3), meta_estimator=ICQF(2)))
    assert again.set_params(meta_estimator__n_components=4).meta_estimator.n_components == 4
    assert not hasattr(again, "meta_")


@pytest.mark.parametrize(
    ("estimator", "said"),
    [
        (L1NMF(2), "score_max"),
        (ICQF(2, score_max=None), "score_max"),
        ("three", "must be an ICQF or ICQFCV"),
        ({"A": ICQF(2)}, "none for the instrument 'B'"),
        ({**dict.fromkeys("ABCD", ICQF(2)), "E": ICQF(2)}, "'E', which is not an instrument"),
        (ICQF(99), "Instrument 'A': n_components=99"),
    ],
)
def test_an_estimator_that_will_not_do(made, estimator, said):
    with pytest.raises(InputError, match=said):
        MetaICQF(estimator, meta_estimator=ICQF(2)).fit(made.battery)


def test_what_stands_in_the_way_is_said_before_anything_is_fitted(made):
    own = made.battery.instruments
    with pytest.raises(InputError, match="only one instrument"):
        MetaICQF(ICQF(2)).fit({"A": own["A"]})
    with pytest.raises(InputError, match="has 2 items"):
        MetaICQF(ICQF(2)).fit({"A": own["A"], "B": own["B"].select(["b01", "b02"])})
    with pytest.raises(InputError, match="cannot be called 'meta'"):
        MetaICQF(ICQF(2)).fit({"A": own["A"], "meta": own["B"]})
    other = own["B"].answers.set_axis([f"X{i}" for i in range(own["B"].n_participants)], axis=0)
    with pytest.raises(InputError, match="no participant in common"):
        MetaICQF(ICQF(2)).fit({"A": own["A"], "B": other})


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (lambda own: {"Z": own["A"].answers}, "no instrument 'Z'"),
        (lambda own: {}, "No instrument is given"),
        (lambda own: own["A"].answers, "by name"),
        (lambda own: {"A": own["A"].answers.iloc[:, :5]}, "lacks 4 of its 9 items"),
        (lambda own: {"A": own["A"].answers + 90}, "Instrument 'A': .*above"),
        (lambda own: {"A": own["A"].answers.to_numpy()}, "table indexed by participant id"),
    ],
)
def test_answers_that_cannot_be_scored(made, model, new, said):
    with pytest.raises(InputError, match=said):
        model.transform(new(made.battery.instruments))


def test_an_interrupted_fit_goes_on_from_its_journals(made, tmp_path):
    class Stop(Exception):
        pass

    def stop(progress):
        if progress.stage == "B" and progress.done:
            raise Stop

    two = Battery({name: made.battery.instruments[name] for name in "AB"})
    search = ICQFCV(n_components=[1, 2], betas=[0.1], n_splits=3, n_repeats=1, random_state=0)
    with pytest.raises(Stop):
        MetaICQF(search, meta_estimator=search, checkpoint=tmp_path / "journals", callback=stop).fit(two)
    done: dict[str, int] = {}

    def count(progress):
        done.setdefault(progress.stage, progress.done)  # what the journal held when the stage began

    again = MetaICQF(search, meta_estimator=search, checkpoint=tmp_path / "journals", callback=count).fit(two)
    plain = MetaICQF(search, meta_estimator=search).fit(two)
    assert done["A"] == 6 and done["B"] > 0 and done["meta"] == 0
    pd.testing.assert_frame_equal(again.item_loadings_, plain.item_loadings_)


def test_a_share_below_zero_has_a_minus_sign():
    shares = {"each instrument alone": 0.1, "two stages": -0.186, "one flat": 0.1}
    table = pd.DataFrame({"instrument": meta.ALL, "method": [*shares], "predicted": [*shares.values()]})
    found = meta.HierarchyComparison(table, "answers", ICQF(2), 5)
    assert "worse than one flat factorization (−18.6% against 10.0%)" in found.verdict
