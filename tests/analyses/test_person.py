"""One person's answers: what raises a score is what scoring again gives, and chance marks 1 answer in 100."""

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF
from icqf.analyses import UsualAnswers, describe_person
from icqf.analyses.person import answer_tails
from icqf.data.questionnaire import Questionnaire
from icqf.errors import InputError
from icqf.models.score_intervals import simulate_participants


@pytest.fixture(scope="module")
def model(demo):
    return ICQF(3, beta=0.2, n_init=1).fit(demo)


@pytest.fixture(scope="module")
def usual(model):
    return UsualAnswers.of(model)


def changed(demo, row, item, value):
    """The answers of one participant with another answer to one item."""
    answers = demo.answers.iloc[[row]].copy()
    answers[item] = value
    return Questionnaire(answers=answers, items=demo.items, confounds=demo.confounds.iloc[[row]])


def test_what_raises_a_score_is_what_scoring_again_gives(demo, model, usual):
    turned = [item.name for item in demo.items if item.reverse]
    raised = demo.answers.notna().all(axis=1) & (demo.keyed_answers()[turned] > 0).any(axis=1)
    row = int(raised.to_numpy().argmax())
    person = describe_person(model, demo.take([row]), usual=usual)
    scores = model.transform(demo.take([row]))[0]
    seen = 0
    for item in demo.items:
        other = item.max if item.reverse else item.min
        lower = model.transform(changed(demo, row, item.name, other))[0]
        np.testing.assert_allclose(person.raises.loc[item.name], scores - lower, atol=1e-6)
        seen += item.reverse and person.questionnaire.answers[item.name].iloc[0] != other
    assert seen  # a reversed item that raises something
    assert person.raises.to_numpy().max() > 0.02


def test_items_left_out_raise_nothing_and_are_named(demo, model, usual):
    person = describe_person(model, changed(demo, 3, "q005", np.nan), usual=usual)
    assert "q005" in person.missing
    assert person.raises.loc["q005"].isna().all()
    assert "q005" not in set(person.unexpected.answers["item"])


def test_scores_are_those_of_the_program(demo, model, usual):
    person = describe_person(model, demo.take([11]), usual=usual)
    np.testing.assert_allclose(person.scores, model.transform(demo.take([11]))[0], atol=1e-9)
    assert (person.intervals.low <= person.intervals.high).all(axis=None)


def test_chance_marks_one_answer_in_a_hundred(demo, model, usual):
    """Participants who answer as the model says, others than those that the limit was found with."""
    drawn = simulate_participants(model, 1000)  # another number gives others
    low, high = model.item_range_.to_numpy().T
    answers = pd.DataFrame(low + drawn.answers * (high - low), columns=list(model.item_range_.index))
    tails, _ = answer_tails(model, usual.chances, answers, drawn.confounds)
    unexpected = tails <= usual.limit
    assert 0.008 < unexpected.mean() < 0.012
    said = [usual.among(model, demo.take([row])) for row in range(20)]
    share = demo.answers[:20].notna().to_numpy().mean()
    assert np.mean([each.by_chance for each in said]) == pytest.approx(0.01 * demo.n_items * share, rel=0.02)
    many = np.quantile(usual.counts, 0.99) + 1  # of which is said that chance does not explain it
    assert (unexpected.sum(axis=1) >= many).mean() <= 0.02


def test_an_answer_that_contradicts_all_others_is_found(demo, model, usual):
    """Everything at the lowest end, but for one item at the highest."""
    lowest = {each.name: each.max if each.reverse else each.min for each in demo.items}
    found = []
    for item in demo.items:
        highest = item.min if item.reverse else item.max
        one = Questionnaire(
            answers=pd.DataFrame([{**lowest, item.name: highest}], index=["one"], dtype=float),
            items=demo.items,
            confounds=demo.confounds.iloc[[0]].set_axis(["one"]),
        )
        table = usual.among(model, one).answers.set_index("item")
        if item.name in table.index:
            found.append(item.name)
            assert table.loc[item.name, "answer"] == highest
            assert abs(table.loc[item.name, "expected"] - highest) > 1
    assert len(found) >= 0.9 * demo.n_items


def test_change_between_visits(demo, model, usual):
    same = describe_person(model, demo.take([4]), before=demo.take([4]), usual=usual)
    assert (same.change["difference"] == 0).all() and list(same.change.index) == model.factor_names_


def test_few_participants_give_scores_without_intervals(demo):
    few = demo.take(range(60))
    person = describe_person(ICQF(2, n_init=1).fit(few), few.take([0]), before=few.take([0]))
    assert person.intervals is None and person.unexpected is None and person.change is None
    assert person.scores.notna().all()


def test_one_participant_at_a_time(demo, model):
    with pytest.raises(InputError, match="of 2 participants; give those of one"):
        describe_person(model, demo.take([0, 1]))
