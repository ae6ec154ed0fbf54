"""Two stages beside one flat factorization: the same hidden answers for both, and nothing of them leaks."""

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF
from icqf.data import Battery, Questionnaire
from icqf.datasets import make_battery
from icqf.errors import InputError
from icqf.models import MetaICQF
from icqf.models.meta import (
    ALL,
    FLAT,
    MEANS,
    TWO_STAGES,
    FoldPlan,
    HierarchyComparison,
    compare_hierarchy,
    fit_fold,
)


@pytest.fixture(scope="module")
def battery():
    return make_battery(n=120, n_items=(6, 7, 8), n_factors=2, n_meta=2, random_state=3).battery


@pytest.fixture(scope="module")
def model(battery):
    return MetaICQF(ICQF(2), meta_estimator=ICQF(2)).fit(battery)


@pytest.fixture(scope="module")
def flat(battery):
    return ICQF(2).fit(battery.flat())


@pytest.fixture(scope="module")
def plan(model, battery, flat):
    return FoldPlan.of(model, battery, flat)


def spoiled(battery, plan, mask):
    """The battery with every hidden answer reversed: the highest instead of the lowest."""
    made = {}
    for name, each in battery.instruments.items():
        top = each.ranges()["max"].to_numpy()
        hidden = mask[plan.rows[name], plan.columns[name]]
        answers = each.answers.to_numpy()
        other = np.where(hidden, top - answers, answers)
        made[name] = Questionnaire(
            pd.DataFrame(other, index=each.answers.index, columns=each.answers.columns), each.items
        )
    return Battery(made)


@pytest.mark.parametrize("hide", ["answers", "instruments"])
def test_spoiling_hidden_answers_changes_no_bit_of_any_fit(battery, model, flat, plan, hide):
    mask = plan.masks(hide, 4, 0)[1]
    other = spoiled(battery, plan, mask)
    assert any(
        not each.answers.equals(other.instruments[name].answers) for name, each in battery.instruments.items()
    )
    one, two = fit_fold(plan, mask), fit_fold(FoldPlan.of(model, other, flat), mask)
    for name in battery.names:
        for kind in ("alone", "two_stages"):
            a, b = getattr(one, kind)[name], getattr(two, kind)[name]
            assert a.scores.tobytes() == b.scores.tobytes() and a.loadings.tobytes() == b.loadings.tobytes()
    assert one.flat.scores.tobytes() == two.flat.scores.tobytes()
    assert one.flat.loadings.tobytes() == two.flat.loadings.tobytes()


def test_the_comparison_of_fits_can_fail(battery, model, flat, plan):
    """Spoiling a visible answer does change the fits."""
    mask = plan.masks("answers", 4, 0)[1]
    other = spoiled(battery, plan, ~mask)
    one, two = fit_fold(plan, mask), fit_fold(FoldPlan.of(model, other, flat), mask)
    assert one.two_stages["A"].scores.tobytes() != two.two_stages["A"].scores.tobytes()


@pytest.mark.parametrize("hide", ["answers", "instruments"])
def test_folds_hide_each_answer_at_most_once(plan, hide):
    hidden = np.sum(plan.masks(hide, 5, 0), axis=0)
    if hide == "answers":
        assert (hidden == 1).all()
    else:
        several = plan.battery.answered.sum(axis=1).to_numpy() >= 2
        answered = plan.flat.problem.answers >= 0
        assert hidden.max() == 1
        assert (hidden[several] == answered[several]).all()
        assert (hidden[~several] == 0).all()


def test_whole_instruments_are_hidden_and_never_all_of_a_participant(plan):
    for mask in plan.masks("instruments", 3, 1):
        by_instrument = np.stack([mask[:, part].any(axis=1) for part in plan.columns.values()], axis=1)
        whole = np.stack([mask[:, part].all(axis=1) for part in plan.columns.values()], axis=1)
        assert (by_instrument == whole).all()
        assert (plan.battery.answered.to_numpy() & ~by_instrument).any(axis=1).all()


def test_families_are_hidden_together(battery, model, flat):
    families = pd.Series([f"F{i // 2}" for i in range(battery.n_participants)], index=battery.ids)
    grouped = Battery(
        {
            name: Questionnaire(each.answers, each.items, groups=families[each.answers.index])
            for name, each in battery.instruments.items()
        }
    )
    plan = FoldPlan.of(model, grouped, flat)
    labels = families.to_numpy()
    answered = grouped.answered.to_numpy()
    for mask in plan.masks("instruments", 4, 0):
        for at, part in enumerate(plan.columns.values()):
            hidden = mask[:, part].any(axis=1)
            for family in np.unique(labels):
                mine = (labels == family) & answered[:, at] & (answered.sum(axis=1) == answered.shape[1])
                assert len({*hidden[mine]}) <= 1


def test_the_table_has_every_instrument_and_method(battery, model, flat):
    found = compare_hierarchy(model, battery, flat=flat, n_splits=4)
    assert list(dict.fromkeys(found.table["instrument"])) == [*battery.names, ALL]
    means = found.table[found.table["method"] == MEANS]
    assert (means["predicted"] == 0).all()
    assert (found.table["error"] > 0).all() and found.overall[TWO_STAGES] > 0.2 < found.overall[FLAT]
    answers = sum(int(each.answers.notna().to_numpy().sum()) for each in battery.instruments.values())
    assert found.table.set_index(["instrument", "method"]).loc[(ALL, FLAT), "n_hidden"] == answers


def test_a_flat_model_of_no_use_is_told_from_two_stages(battery, model):
    with pytest.warns(UserWarning, match="All loadings are 0"):
        found = compare_hierarchy(model, battery, flat=ICQF(2, beta=1000.0), n_splits=3, hide="instruments")
    assert "better than one flat" in found.verdict and "two stages" in str(found)


@pytest.mark.parametrize(
    ("two", "flat", "said"),
    [
        (-0.07, -0.37, "better than one flat factorization (−7.0% against −37.0%), but both do worse than"),
        (-0.071, -0.07, "about as well as one flat factorization (−7.1%, −7.0%), but both do worse than"),
        (0.03, -0.37, "better than one flat factorization (3.0% against −37.0%)."),
        (0.2, 0.3, "worse than one flat factorization (20.0% against 30.0%)."),
    ],
)
def test_a_prediction_worse_than_the_means_is_no_success(two, flat, said):
    rows = [(ALL, TWO_STAGES, two), (ALL, FLAT, flat)]
    table = pd.DataFrame(rows, columns=["instrument", "method", "predicted"])
    assert said in HierarchyComparison(table, "instruments", ICQF(2), 3).verdict


def test_the_comparison_goes_on_from_its_journal_and_does_not_depend_on_processes(
    battery, model, flat, tmp_path
):
    done = []
    first = compare_hierarchy(model, battery, flat=flat, n_splits=3, checkpoint=tmp_path / "j")
    again = compare_hierarchy(
        model,
        battery,
        flat=flat,
        n_splits=3,
        checkpoint=tmp_path / "j",
        callback=lambda p: done.append(p.done),
    )
    pd.testing.assert_frame_equal(first.table, again.table)
    assert done == [3]
    with pytest.raises(InputError, match="other data or other settings"):
        compare_hierarchy(model, battery, flat=flat, n_splits=4, checkpoint=tmp_path / "j")


@pytest.mark.parametrize("other", ["hide", "init", "beta"])
def test_nothing_of_another_comparison_is_taken_from_its_journal(battery, model, flat, tmp_path, other):
    """The same answers hidden, and yet other results."""
    compare_hierarchy(model, battery, flat=flat, n_splits=3, checkpoint=tmp_path / "j")
    more = {"hide": "instruments"} if other == "hide" else {}
    changed = {"init": ICQF(2, init="rotated"), "beta": ICQF(2, beta=0.3)}.get(other, flat)
    with pytest.raises(InputError, match="other data or other settings"):
        compare_hierarchy(model, battery, flat=changed, n_splits=3, checkpoint=tmp_path / "j", **more)


def test_what_cannot_be_compared_is_refused(battery, model, flat):
    with pytest.raises(InputError, match="hide must be"):
        compare_hierarchy(model, battery, flat=flat, hide="items")
    with pytest.raises(InputError, match="instruments differ"):
        compare_hierarchy(model, {"A": battery.instruments["A"]}, flat=flat)
    with pytest.raises(InputError, match="not fitted to the items"):
        compare_hierarchy(model, battery, flat=ICQF(1).fit(battery.instruments["A"]))
    with pytest.raises(InputError, match="n_splits"):
        compare_hierarchy(model, battery, flat=flat, n_splits=1)
