"""Asking item by item: the order is settled by the answers, and intervals hold the full form's score."""

from dataclasses import replace

import numpy as np
import pytest

from icqf import ICQF, InputError
from icqf.analyses import adaptive_form
from icqf.datasets import make_synthetic

ME = {"age": 9, "sex": "female"}


@pytest.fixture(scope="module")
def model(demo):
    """Fitted to every other participant."""
    return ICQF(3, beta=0.1).fit(demo.take(range(0, 600, 2)))


@pytest.fixture(scope="module")
def form(model):
    return adaptive_form(model, ["q00*", "q01*"])


@pytest.mark.parametrize("penalty", ["l1", "l2", "l21"])
def test_all_answers_give_the_score_of_the_full_form(demo, penalty):
    """Reversed items, confounds and missing answers included; nothing is left to be sure of."""
    model = ICQF(3, beta=0.1, penalty=penalty, reconstruction_max=None, n_init=1).fit(demo)
    whole = adaptive_form(model)
    complete = demo.answers.notna().all(axis=1).to_numpy()
    for row in np.flatnonzero(complete)[:4]:
        one = demo.take([row])
        said = whole.state(one.keyed_answers().iloc[0].to_dict(), confounds=one.confounds.iloc[0].to_dict())
        np.testing.assert_allclose(said.scores, model.transform(one)[0], atol=1e-4)
        assert (said.high - said.low).max() < 1e-6 and said.next is None


def test_the_order_of_answers_and_other_answers_decide(form):
    first = form.state({}, confounds=ME).next
    second = form.state({first: 1}, confounds=ME).next
    there = form.state({first: 1, second: 2}, confounds=ME)
    back = form.state({second: 2, first: 1}, confounds=ME)
    assert there.next == back.next not in (first, second)
    np.testing.assert_allclose(there.scores, back.scores, atol=1e-8)
    assert form.state({first: 1}, confounds=ME, skipped=second).next not in (first, second)


def test_asking_stops_as_the_states_say(form, demo):
    asked = form.ask(demo.take([1]))
    one, items = demo.take([1]), asked["asked"].iloc[0].split()
    beside = one.confounds.iloc[0].to_dict()
    given = {}
    for item in items:
        assert form.state(given, confounds=beside).next == item
        given[item] = one.keyed_answers()[item].iloc[0]
    said = form.state(given, confounds=beside)
    assert said.next is None and len(items) == asked["n_asked"].iloc[0]
    np.testing.assert_allclose(asked[said.scores.index].iloc[0], said.scores, atol=1e-8)


def test_intervals_hold_the_full_score_and_wider_ones_ask_less(form, model, demo):
    """Among participants who had no part in the fit, after stopping."""
    new = demo.take(range(1, 600, 20))
    full, numbers = model.transform(new), []
    for width in (0.3, 0.6):
        asked = form.ask(new, width=width)
        names = model.get_feature_names_out()
        low, high = (asked[[f"{name}_{end}" for name in names]].to_numpy() for end in ("low", "high"))
        assert (low <= high).all() and (low >= 0).all() and (high <= 1).all()
        assert 0.84 < ((full >= low - 0.005) & (full <= high + 0.005)).mean() < 0.98
        numbers.append(asked["n_asked"].mean())
        assert asked["asked"].nunique() > 10  # otherwise nothing would be adaptive
    assert numbers[1] < numbers[0] < len(form.items)


def test_every_factor_is_asked_about_before_asking_stops(form, demo):
    """However wide intervals may be; a skipped question is followed by the factor's next one."""
    asked = form.ask(demo.take(range(30)), width=5.0)
    items = [{form.items[j] for j in own} for own in form.own]
    assert len(items) == 3 and asked["n_asked"].between(1, 6).all()
    complete = demo.answers[list(form.items)].notna().all(axis=1).to_numpy()[:30]
    for row in asked.loc[complete, "asked"]:
        assert all(set(row.split()) & own for own in items) and len(row.split()) == 3
    first = [form.items[own[0]] for own in form.own]
    wide = replace(form, width=5.0)
    assert wide.state({}, confounds=ME).next == first[0]
    assert wide.state({}, confounds=ME, skipped=first[:1]).next == form.items[form.own[0][1]]


def test_a_missing_answer_is_a_skipped_question(form, demo):
    one = demo.take([1])
    first = form.ask(one)["asked"].iloc[0].split()[0]
    gap = one.keyed_answers().copy()
    gap[first] = np.nan
    asked = form.ask(gap, confounds=one.confounds)["asked"].iloc[0].split()
    assert (
        asked[0] == first
        and asked[1] == form.state({}, confounds=one.confounds.iloc[0].to_dict(), skipped=[first]).next
    )


def test_continuous_answers_without_confounds():
    answers = make_synthetic(n=150, m=20, k=2, noise=0.2, random_state=0).answers
    model = ICQF(2, item_range=(0, 100)).fit(answers)
    asked = adaptive_form(model, [f"item{j}" for j in range(1, 11)], width=0.2).ask(answers[:20, :10])
    found = asked[model.get_feature_names_out()].to_numpy()
    assert np.corrcoef(found.ravel(), model.transform(answers[:20]).ravel())[0, 1] > 0.8


def test_what_is_refused(form, demo):
    with pytest.raises(InputError, match="no item 'q0l1'"):
        form.state({"q0l1": 1}, confounds=ME)
    with pytest.raises(InputError, match="width must be a number above 0"):
        adaptive_form(form.model, width=0)
    few = ICQF(2, smallest_category=1).fit(demo.take(range(60)))
    with pytest.raises(InputError, match="does not know how its scores are distributed"):
        adaptive_form(few)
