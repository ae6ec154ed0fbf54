"""Short forms: scored as if other items were missing, judged by participants who did not choose them."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF, InputError
from icqf.analyses import reduced_model, search_forms, shortform
from icqf.analyses.short_forms import (
    ModelRecovery,
    _bands,
    _Choice,
    _form_limits,
    correlation_by_row,
    folds_of,
    top_loading,
)
from icqf.datasets import load_demo, make_cohort, make_synthetic


@pytest.fixture(scope="module")
def demo():
    return load_demo().select(["q0[0-2]*"])


@pytest.fixture(scope="module")
def model(demo):
    return ICQF(4, beta=0.1).fit(demo)


@pytest.fixture(scope="module")
def form(model, demo):
    return shortform(model, demo, max_items=10)


# --- a model of some of its items -------------------------------------------------------------------------


def mixed(n=120, seed=0):
    """Answers to items of three ranges behind two factors, with gaps."""
    rng = np.random.default_rng(seed)
    span = np.array([1, 1, 1, 3, 3, 3, 10, 10, 10, 10.0])
    loadings = np.zeros((2, 10))
    loadings[0, ::2], loadings[1, 1::2] = span[::2], span[1::2]
    answers = np.rint(np.clip(rng.random((n, 2)) @ loadings + rng.normal(0, 0.15, (n, 10)) * span, 0, span))
    answers[rng.random(answers.shape) < 0.1] = np.nan
    table = pd.DataFrame(answers, columns=[f"q{j}" for j in range(10)])
    return table, pd.DataFrame({"min": 0.0, "max": span}, index=table.columns)


@pytest.mark.parametrize("penalty", ["l1", "l2", "l21"])
@pytest.mark.parametrize("item_weight", ["range", "variance", None, [1, 2, 1, 2, 1, 2, 1, 2, 1, 0.5]])
def test_the_others_are_as_if_missing(penalty, item_weight):
    table, ranges = mixed()
    model = ICQF(
        2, beta=0.3, item_range=ranges, item_weight=item_weight, penalty=penalty, reconstruction_max=None,
        dtype="float64",
    ).fit(table)  # fmt: skip
    kept = [
        "q0",
        "q1",
        "q2",
        "q3",
        "q4",
        "q5",
    ]  # without the widest range, so that items count in other units
    hidden = table.copy()
    hidden[[name for name in table if name not in kept]] = np.nan
    some = table[kept].notna().any(axis=1)
    short = reduced_model(model, kept)
    np.testing.assert_allclose(
        short.transform(table.loc[some, kept]), model.transform(hidden[some]), atol=2e-4
    )


def test_ranges_that_press_on_others_do_not_press_on_a_form(model, demo):
    """With bounds, all that differs from missing answers is that the others' ranges do not hold scores."""
    names = [str(name) for name in model.item_range_.index][::3]
    short = reduced_model(model, names)
    hidden = demo.keyed_answers().copy()
    hidden[[name for name in hidden if name not in names]] = np.nan
    mine = short.transform(demo.keyed_answers()[names], confounds=demo.confounds)
    R = mine @ model.components_ + model.confound_encoder_.transform(demo.confounds) @ (
        model.confound_components_
    )
    inside = (R <= 2).all(axis=1)
    whole = model.transform(hidden, confounds=demo.confounds)
    assert 0.3 < inside.mean() <= 1
    np.testing.assert_allclose(mine[inside], whole[inside], atol=2e-4)


def test_a_reduced_model_is_a_model(model, demo, tmp_path):
    short = reduced_model(model, ["q00*"])
    short.save(tmp_path / "short.icqf")
    again = ICQF.load(tmp_path / "short.icqf")
    part = demo.select(["q00*"])
    np.testing.assert_array_equal(again.transform(part), short.transform(part))
    assert list(again.codebook_.items) == list(part.items)
    assert "4 factors" in str(again.summary())


def test_of_all_items_it_is_the_model(model, demo):
    same = reduced_model(model, [str(name) for name in model.item_range_.index])
    np.testing.assert_allclose(same.transform(demo), model.transform(demo), atol=1e-4)


# --- the search -------------------------------------------------------------------------------------------


def test_the_search_finds_about_what_trying_everything_finds():
    synthetic = make_synthetic(n=150, m=9, k=3, noise=0.3, random_state=1)
    model = ICQF(3, item_range=(0, 100)).fit(synthetic.answers)
    recovery = ModelRecovery.of(model, synthetic.answers).simulated(np.random.default_rng(0), 300)

    def correlation(items):
        form = recovery.nothing()
        for item in items:
            form = form.plus(item)
        return correlation_by_row(form.scores, recovery.wanted).mean()

    best = max(correlation(items) for items in combinations(range(9), 4))
    assert correlation(search_forms(recovery, max_items=4)[-1]) > best - 0.01


def test_adding_and_taking_away_an_item_changes_nothing(model, demo):
    recovery = ModelRecovery.of(model, demo).simulated(np.random.default_rng(0), 200)
    form = recovery.nothing().plus(3).plus(8)
    again = form.plus(5).minus(5)
    for _ in range(30):  # sweeps settle step by step
        form, again = form.plus(5).minus(5), again.plus(5).minus(5)
    np.testing.assert_allclose(again.scores, form.scores, atol=1e-6)


def test_forms_keep_and_drop_and_mind_the_minutes(model, demo):
    minutes = {name: 0.5 if int(name[1:]) % 2 else 1.0 for name in demo.answers}
    asked = shortform(
        model, demo, max_items=12, keep=["q003", "q010"], drop="q02*", minutes=minutes, max_minutes=6
    )
    assert {"q003", "q010"} <= {*asked.items} and not any(name.startswith("q02") for name in asked.items)
    assert asked.minutes <= 6 and asked.minutes == sum(minutes[name] for name in asked.items)
    assert (asked.curve["minutes"] <= 6).all()


def test_quick_items_are_preferred(model, demo):
    quick = {name: 0.1 if int(name[1:]) % 2 else 5.0 for name in demo.answers}
    odd = [int(name[1:]) % 2 for name in shortform(model, demo, max_items=8, minutes=quick).items]
    assert sum(odd) >= 7


# --- the form ---------------------------------------------------------------------------------------------


def test_what_a_form_says(form, model, demo):
    assert len(form.items) == 10 == form.model.n_features_in_
    assert form.items == tuple(name for name in demo.answers if name in set(form.items))
    assert form.n_participants == 600
    assert list(form.curve["n_items"]) == list(range(1, 11))
    assert form.worst[1] == form.curve["worst"].iloc[-1] <= form.correlation <= 1
    assert f"10 of {demo.n_items} items" in form.sentence
    scores = form.model.transform(demo.select(form.items))
    assert np.corrcoef(scores[:, 0], model.transform(demo)[:, 0])[0, 1] > 0.7


def test_the_same_seed_gives_the_same_form(model, demo):
    first, again = (shortform(model, demo, max_items=3) for _ in range(2))
    assert again.items == first.items
    pd.testing.assert_frame_equal(again.curve, first.curve)
    pd.testing.assert_frame_equal(again.bands, first.bands)


def test_who_is_held_out_has_no_part_in_the_choice(model, demo):
    """Neither in the loadings nor in the items of the fold."""
    choice = _Choice(*_form_limits(list(demo.answers), (), (), 4), None, None)
    fold = folds_of(ModelRecovery.of(model, demo), demo.groups, np.random.default_rng(0)) == 0
    answers = demo.keyed_answers().copy()
    answers[fold] = np.random.default_rng(1).integers(0, 3, (fold.sum(), answers.shape[1]))
    found, spoiled = (
        choice.held_out(
            ModelRecovery.of(model, X, confounds=demo.confounds), fold, np.random.default_rng(0), None
        )
        for X in (demo.keyed_answers(), answers)
    )
    assert spoiled.forms == found.forms
    np.testing.assert_array_equal(
        spoiled.participants.model.components_, found.participants.model.components_
    )
    assert not np.allclose(found.participants.model.components_, model.components_)  # fitted again
    assert not np.allclose(spoiled.participants.wanted, found.participants.wanted)


def test_a_model_of_others_stays_as_it_is(model, demo):
    others = ModelRecovery.of(model, demo.take(range(200)))
    assert others.fitted_to(np.arange(100)) is others


def test_families_are_held_out_whole(model, demo):
    fold = folds_of(ModelRecovery.of(model, demo), demo.groups, np.random.default_rng(0))
    assert len(np.unique(fold)) == 5
    for at in range(5):
        assert not {*demo.groups[fold == at]} & {*demo.groups[fold != at]}


def test_a_shorter_form_where_it_is_sufficient(model, demo):
    enough = shortform(model, demo, max_items=6, correlation=0.5)
    assert len(enough.items) < 6 and enough.correlation >= 0.5 > enough.curve["correlation"].iloc[-2]
    with pytest.warns(UserWarning, match="No form of up to 2 items reaches"):
        shortform(model, demo, max_items=2, correlation=0.99)


@pytest.mark.long
def test_no_worse_than_the_largest_loadings_in_a_cohort():
    """On the questionnaire of the claim, at a third of its size; see benchmarks/bench_shortform.py."""
    study = make_cohort("hbn", 450, random_state=5).questionnaire
    form = shortform(ICQF(8, beta=0.1).fit(study), study, max_items=12)
    enough = form.curve[form.curve["n_items"] >= 8]  # an item for each factor
    assert (enough["correlation"] >= enough["top_loading"]).all()


def test_bands_hold_nine_of_ten(demo):
    half = np.arange(600) % 2 == 0
    first, second = demo.take(np.flatnonzero(half)), demo.take(np.flatnonzero(~half))
    model = ICQF(4, beta=0.1).fit(first)
    form = shortform(model, first, max_items=10)
    part = second.select(form.items)
    asked = part.answers.notna().all(axis=1).to_numpy()
    short, full = form.model.transform(part)[asked], model.transform(second)[asked]
    assert 0.86 < np.mean(inside(form.bands, short.T, full.T)) < 0.94


def inside(bands, short, full):
    """Whether full scores (k, n) lie in the intervals of short ones."""
    found = []
    for (_, band), a, b in zip(bands.groupby("factor", sort=False), short, full, strict=True):
        low, high = (np.interp(a, band["score"], band[end]) for end in ("low", "high"))
        found.append((b - a >= low - 1e-9) & (b - a <= high + 1e-9))
    return np.array(found)


def test_bands_where_many_have_the_lowest_score():
    """All who are outside are then above: nine of ten are inside, not nineteen of twenty."""

    def drawn(n, rng):
        true = np.maximum(rng.normal(-0.1, 0.3, (1, n)), 0)
        return tuple(np.clip(true + rng.normal(0, s, (1, n)) * (true > 0), 0, 1) for s in (0.15, 0.05))

    short, full = drawn(1500, np.random.default_rng(0))
    short = short + np.random.default_rng(1).random(short.shape) * 0.3
    bands = _bands(short, full, ["factor1"])
    assert 0.88 < inside(bands, short, full).mean() < 0.93


def simulated(n, rng, times=2):
    """The same participants asked twice: two factors behind 24 graded items, and independent errors."""
    loadings = np.zeros((2, 24))
    loadings[0, ::2] = loadings[1, 1::2] = np.linspace(1.5, 3.5, 12)
    expected = rng.beta(1.2, 2.0, (n, 2)) @ loadings
    return [np.clip(np.rint(expected + rng.normal(0, 1.0, expected.shape)), 0, 4) for _ in range(times)]


def test_what_is_said_about_the_scores_is_true_of_new_participants():
    """The correlation with the full form, the reliability, and the correlation without shared errors.

    Asking twice shows the truth: errors of the first time have no part in the second.
    """
    rng = np.random.default_rng(0)
    (answers,) = simulated(500, rng, 1)
    model = ICQF(2, item_range=(0, 4), beta=0.1).fit(answers)
    form = shortform(model, answers, max_items=6)
    items = [int(name.removeprefix("item")) - 1 for name in form.items]
    times = simulated(3000, rng)
    full, short = (
        [fit.transform(x[:, at]).T for x in times] for fit, at in ((model, slice(None)), (form.model, items))
    )
    again = correlation_by_row(*full)
    corrected = correlation_by_row(short[0], full[1]) / np.sqrt(again)
    np.testing.assert_allclose(form.factors["correlation"], correlation_by_row(short[0], full[0]), atol=0.03)
    np.testing.assert_allclose(form.factors["reliability"], correlation_by_row(*short), atol=0.06)
    np.testing.assert_allclose(form.factors["corrected"], corrected, atol=0.04)
    assert (correlation_by_row(short[0], full[0]) > corrected + 0.01).all()  # what there is to correct


def test_the_largest_loadings_take_turns(model, demo):
    shares = ModelRecovery.of(model, demo).shares
    chosen = top_loading(shares, 8, keep=(2,), drop=(0,))
    assert chosen[0] == 2 and 0 not in chosen and len({*chosen}) == 8
    assert top_loading(shares, 5, keep=(2,), drop=(0,)) == chosen[:5]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"max_items": 0}, "max_items must be a whole number of at least 1, not 0"),
        ({"max_items": 500}, "max_items is 500, and there are 29 items to choose from; give at most 29"),
        ({"keep": ["q001"], "drop": ["q0*"], "max_items": 1}, "'q001' is to be both kept and dropped"),
        ({"keep": ["q00*"], "max_items": 3}, "max_items is 3, and 9 items must be kept"),
        ({"keep": ["mood"]}, "No item is named or matches 'mood'"),
        ({"correlation": 1.5}, "correlation must be a number of at most 1, not 1.5"),
        ({"minutes": 0}, "minutes must be a number above 0, not 0"),
        ({"minutes": {"q001": 1}}, "minutes has no time for the item 'q002'"),
        ({"minutes": {"q1": 1}}, "minutes names 'q1', which is not an item of the model"),
        ({"max_minutes": 3}, "max_minutes needs minutes"),
        ({"minutes": 2, "max_minutes": 1}, "max_minutes is 1, but every item takes longer"),
    ],
)
def test_what_cannot_be_asked_for(model, demo, asked, said):
    with pytest.raises(InputError, match=said.replace("(", r"\(")):
        shortform(model, demo, **{"max_items": 10, **asked})


def test_too_few_participants(model, demo):
    with pytest.raises(InputError, match="29 participants answered anything, but at least 30 are needed"):
        shortform(model, demo.take(range(29)), max_items=5)


def test_one_site_cannot_be_held_out(model, demo):
    with pytest.raises(InputError, match="There is 1 group"):
        shortform(model, demo, groups=np.zeros(600), max_items=5)
