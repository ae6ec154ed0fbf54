"""Planning: pairs of subsamples or simulated studies, factors found, and sizes that reach a chance."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF, InputError, replication_probability
from icqf.analyses import plan
from icqf.analyses.planning import (
    Population,
    Populations,
    SamplePlan,
    needed_for,
    score_covariance,
    simulated_agreement,
    subsampled_agreement,
    two_samples,
)
from icqf.analyses.short_forms import drawn_from
from icqf.datasets import load_demo, make_cohort, make_synthetic
from icqf.models import L1NMF
from icqf.models.statement import NewAnswers, state
from icqf.resampling.replication import stepped_up

QUICK = {"sizes": (40, 120), "n_repeats": 6}


@pytest.fixture(scope="module")
def demo():
    return load_demo().select(["q0[0-4]*"])


@pytest.fixture(scope="module")
def model(demo):
    return ICQF(3, beta=0.1).fit(demo)


@pytest.fixture(scope="module")
def found(model):
    return plan(model, **QUICK)


def test_the_curve(found):
    assert found.curve["n"].tolist() == [40, 120] and found.n_pilot is None
    factors = found.curve[["factor1", "factor2", "factor3"]]
    assert ((factors >= 0) & (factors <= 1)).all(axis=None)
    np.testing.assert_allclose(factors.mean(axis=1), found.curve["mean"])
    assert (found.curve["every"] <= factors.min(axis=1) + 1e-12).all()
    assert found.curve["mean"].iloc[1] >= found.curve["mean"].iloc[0]


def test_the_same_seed_processes_and_journals_change_nothing(model, found, tmp_path):
    for more in ({}, {"n_jobs": 2}, {"checkpoint": tmp_path / "a"}, {"checkpoint": tmp_path / "a"}):
        pd.testing.assert_frame_equal(plan(model, **QUICK, **more).curve, found.curve)
    with pytest.raises(InputError, match="belongs to other data"):
        plan(model, **QUICK, random_state=1, checkpoint=tmp_path / "a")


@pytest.mark.parametrize("other", ["beta", "pilot", "item_weight"])
def test_studies_simulated_from_something_else_are_not_taken_from_a_journal(demo, model, tmp_path, other):
    plan(model, demo, sizes=(40,), n_repeats=2, checkpoint=tmp_path / "a")
    changed = {"beta": ICQF(3, beta=0.2), "item_weight": ICQF(3, beta=0.1, item_weight="variance")}.get(other)
    pilot = demo.take(np.arange(demo.n_participants - 1)) if other == "pilot" else demo
    with pytest.raises(InputError, match="belongs to other data"):
        plan(
            changed.fit(demo) if changed else model,
            pilot,
            sizes=(40,),
            n_repeats=2,
            checkpoint=tmp_path / "a",
        )


def test_more_sizes_change_no_other(model, found):
    longer = plan(model, sizes=(40, 80, 120), n_repeats=6)
    pd.testing.assert_frame_equal(longer.curve.iloc[[0, 2]].reset_index(drop=True), found.curve)


def test_a_pilot_is_divided_and_its_halves_are_stepped_up(model, demo):
    n = demo.n_participants
    found = plan(model, demo, sizes=(40, n // 2, n, 2 * n, 2 * n + 1), n_repeats=4)
    assert found.n_pilot == n and found.curve["n"].tolist() == [40, n // 2, n, 2 * n]
    assert found.curve["source"].tolist() == ["subsamples", "subsamples", "stepped up", "stepped up"]
    halves = subsampled_agreement(model, demo, sizes=[n // 2], n_repeats=4)[n // 2]
    assert halves.shape == (4, 3)
    z = np.arctanh(np.minimum(stepped_up(halves, 4).mean(axis=0), 0.99))
    chances = 1 / (1 + np.exp(3.28 - 3.56 * z - 0.45 * np.log(2 * n / 200)))
    np.testing.assert_allclose(found.curve.iloc[3][["factor1", "factor2", "factor3"]].tolist(), chances)
    np.testing.assert_allclose(found.curve["mean"].iloc[3], chances.mean())


def test_the_two_subsamples_share_nobody_and_no_family():
    families = np.arange(200) // 3
    for units in (None, families):
        one, other = two_samples(200, 60, units, np.random.default_rng(0))
        assert len({*one}) == len({*other}) == 60 and not {*one} & {*other}
        if units is not None:
            assert not {*units[one]} & {*units[other]}
    one, other = two_samples(200, 100, families, np.random.default_rng(0))
    assert len(one) == 100 and len(other) in (98, 99, 100)


def test_a_model_that_remembers_its_halves_needs_no_simulation(demo):
    model = ICQF(3, beta=0.1).fit(demo)
    table, n = replication_probability(model, demo, n_halves=5), demo.n_participants
    found = plan(model, sizes=(n // 4 - 1, n // 4, n, 2 * n, 2 * n + 1))
    assert found.n_pilot == n and found.n_repeats == 0 and found.curve["n"].tolist() == [n // 4, n, 2 * n]
    assert set(found.curve["source"]) == {"halves"}
    factors = found.curve[["factor1", "factor2", "factor3"]]
    np.testing.assert_allclose(factors.iloc[1], table["probability"])
    assert (factors.diff().iloc[1:] > 0).all(axis=None)
    np.testing.assert_allclose(found.curve["every"], factors.prod(axis=1))
    assert "agreement of halves" in found.caution and "In two independent studies" in found.sentence
    with pytest.raises(InputError, match="says nothing about these sizes; give some between 150 and 1200"):
        plan(model, sizes=(1201,))


def test_a_plan_from_a_model_says_nothing_about_a_factor_that_one_item_carries(demo):
    model = ICQF(3, beta=0.1).fit(demo)
    replication_probability(model, demo, n_halves=5)
    n, before = demo.n_participants, plan(model, sizes=(demo.n_participants,))
    model.replication_.loc["factor2", "largest"] = 0.9
    found = plan(model, sizes=(n,))
    assert found.left_out == ("factor2",) and found.factors.index.tolist() == [
        "factor1",
        "factor3",
        "mean",
        "every",
    ]
    pd.testing.assert_series_equal(found.curve["factor3"], before.curve["factor3"])
    assert found.curve["mean"].tolist() == pytest.approx(
        found.curve[["factor1", "factor3"]].mean(axis=1).tolist()
    )
    assert "Nothing is said about 'factor2', which one item carries." in found.caution
    assert "both fitted with 3 factors" in found.sentence
    model.replication_["largest"] = 0.9
    with pytest.raises(InputError, match="there is no factor to plan for"):
        plan(model, sizes=(n,))


def test_a_factor_that_one_item_carries_is_not_found():
    rng = np.random.default_rng(0)
    common = rng.normal(size=(300, 1)) + 0.5 * rng.normal(size=(300, 6))
    alone = rng.choice([0.0, 4.0], size=(300, 1))
    answers = np.hstack([np.clip(np.rint(2 + common), 0, 4), alone])
    model = ICQF(2, beta=0.1, item_range=(0, 4)).fit(answers)
    found = (subsampled_agreement(model, answers, sizes=[150], n_repeats=4)[150] >= 0.8).mean(axis=0)
    carries = model.components_[:, 6] > 0.9 * model.components_.sum(axis=1)
    assert carries.sum() == 1 and found[~carries] == 1 and found[carries] == 0


def test_a_pilot_that_is_too_small(model, demo):
    with pytest.raises(InputError, match="The pilot has 30 participants; two studies of at least 20"):
        plan(model, demo.take(np.arange(30)), **QUICK)
    with pytest.raises(InputError, match="says nothing about these sizes; give some between 15 and 120"):
        plan(model, demo.take(np.arange(60)), sizes=(400,), n_repeats=2)


def test_a_pilot_is_not_taken_for_the_truth():
    """Simulated from the fitted model as it is, weak factors looked as if 200 participants were plenty."""
    rng = np.random.default_rng(0)
    signal = rng.normal(size=(150, 2)) @ np.kron(np.eye(2), np.full(10, 0.35))
    answers = np.clip(np.rint(2 + signal + rng.normal(size=(150, 20))), 0, 4)
    weak = ICQF(2, beta=0.1, item_range=(0, 4)).fit(answers)
    behind = Populations.behind(weak, np.random.default_rng(1))
    certain = Populations(Population.of(weak), np.zeros_like(behind.errors))
    shares = [
        (simulated_agreement(weak, each, sizes=[200], n_repeats=10)[200] >= 0.8).mean()
        for each in (certain, behind)
    ]
    assert shares[0] > 0.9 and shares[1] < shares[0] - 0.3
    assert (behind.centre.noise / Population.of(weak).noise).mean() > 1.02
    spread = np.sqrt(behind.centre.covariance.diagonal())
    assert (spread < np.sqrt(Population.of(weak).covariance.diagonal())).all()


def test_factors_without_items_are_never_found():
    """The loadings of noise are other ones every time."""
    noise = np.random.default_rng(0).integers(0, 3, (150, 20)).astype(float)
    nothing = ICQF(3, beta=0.01, item_range=(0, 2)).fit(noise)
    clear = ICQF(4, item_range=(0, 100)).fit(
        make_synthetic(n=200, m=40, k=4, noise=0.1, random_state=0).answers
    )
    found, other = (plan(each, sizes=(60,), n_repeats=6).curve["mean"].iloc[0] for each in (nothing, clear))
    assert found < 0.6 < other


# --- who is simulated -------------------------------------------------------------------------------------


def test_the_covariance_of_scores_is_worked_out_from_the_model_alone():
    study = make_cohort("hbn", 600, random_state=3).questionnaire
    model = ICQF(8, beta=0.1).fit(study)
    true, found = np.cov(model.transform(study).T), score_covariance(model)
    size = np.sqrt(found.diagonal())
    np.testing.assert_allclose(size, np.sqrt(true.diagonal()), rtol=0.1)
    off = ~np.eye(8, dtype=bool)
    assert (
        abs((found / np.outer(size, size))[off].mean() - np.corrcoef(model.transform(study).T)[off].mean())
        < 0.06
    )


@pytest.mark.parametrize("kind", ["model", "pilot"])
def test_simulated_answers_look_like_the_real_ones(model, demo, kind):
    rng = np.random.default_rng(0)
    real = state(model, NewAnswers(model, demo, None)).problem
    if kind == "model":
        made = Population.of(model).draw(rng, 3000)
    else:
        made = drawn_from(model, real, model.solve_scores(real), rng, 3000, gaps=True)
    assert made.answers.shape == (3000, 49)
    values = np.where(made.answers >= 0, made.answers, np.nan)
    assert np.nanmin(values) >= 0 and np.nanmax(values) <= 2
    gaps = np.isnan(demo.answers.to_numpy()).mean()
    assert abs(np.isnan(values).mean() - gaps) < 0.01
    truth = np.where(real.answers >= 0, real.answers, np.nan)
    spread, wanted = np.nanstd(values, axis=0), np.nanstd(truth, axis=0)
    assert abs(np.mean(spread / wanted) - 1) < 0.15


def test_models_without_bounds_or_names_can_be_planned_from():
    answers = make_synthetic(n=100, m=20, k=2, noise=0.2, random_state=0).answers
    for model in (ICQF(2, item_range=(0, 100)).fit(answers), L1NMF(2, item_range=(0, 100)).fit(answers)):
        assert plan(model, sizes=(40,), n_repeats=2).curve.shape == (1, 6)


# --- how many ---------------------------------------------------------------------------------------------


def test_how_many_are_needed():
    n = [50, 100, 200, 400]
    assert needed_for(n, [0.0, 0.8, 0.9, 1.0], 0.8) == 100
    assert needed_for(n, [1.0, 0.95, 1.0, 1.0], 0.9) == 50
    assert 200 < needed_for(n, [0.2, 0.5, 0.7, 0.9], 0.8) < 400
    assert np.isnan(needed_for(n, [0.2, 0.3, 0.4, 0.5], 0.8))
    assert needed_for(n, [0.0, 0.9, 0.7, 0.9], 0.8) == 100  # one dip is chance: sizes pool to 0.8


def made_up(factor1, factor2):
    n = [50, 100, 200]
    curve = pd.DataFrame({"n": n, "mean": np.mean([factor1, factor2], axis=0), "every": 0.0,
                          "factor1": factor1, "factor2": factor2, "source": "simulated"})  # fmt: skip
    names = ("factor1", "factor2", "mean", "every")
    needed = {name: [needed_for(n, curve[name], chance) for chance in (0.8, 0.9)] for name in names}
    return SamplePlan(curve, pd.DataFrame(needed, index=["n80", "n90"]).T, 20, None)


def test_the_sentence_for_the_grant():
    said = made_up([0.9, 1, 1], [0.2, 0.7, 1]).sentence
    assert (
        "correlate at least 0.8 with its own" in said
        and "Every factor has a replication probability of 80 % with 130 participants" in said
    )
    assert (
        "factor2 needs most" in said and "80 % of the 2 factors are found again with 90 participants" in said
    )
    said = made_up([0.9, 1, 1], [0.1, 0.2, 0.3]).sentence
    assert "90 % of the 2 factors would need more than 200 participants" in said
    assert "still found in fewer than 80 % of the studies: factor2 (30%)" in said
    assert "with 50 participants or fewer" in made_up([1, 1, 1], [1, 1, 1]).sentence
    assert "In 1 pair of independent studies" in replace(made_up([1, 1, 1], [1, 1, 1]), n_repeats=1).sentence


def test_where_the_numbers_come_from_is_said():
    plain = made_up([1, 1, 1], [1, 1, 1])
    assert "studies were simulated" in plain.caution and "too low" in plain.caution
    curve = plain.curve.assign(source=["subsamples"] * 2 + ["stepped up"])
    divided = replace(plain, n_pilot=200, curve=curve)
    assert "Up to 100 participants" in divided.caution and "Spearman–Brown" in divided.caution
    assert "more than 400 participants" in divided.caution


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"sizes": (5, 100)}, "sizes holds 5; give numbers of participants between 20 and 100000"),
        ({"sizes": ()}, "sizes holds nothing"),
        ({"sizes": (100, 10**7)}, "sizes holds 10000000"),
        ({"n_repeats": 0}, "n_repeats must be a whole number of at least 1, not 0"),
    ],
)
def test_what_cannot_be_planned(model, asked, said):
    with pytest.raises(InputError, match=said):
        plan(model, **{**QUICK, **asked})
