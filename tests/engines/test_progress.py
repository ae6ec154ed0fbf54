"""Stages of work and the time that they still take."""

import copy
import pickle

import pytest

from icqf.engines import Forecast, Progress, Stages


def told(expected):
    """What stages tell, and the stages."""
    heard = []
    return heard, Stages(heard.append, expected)


def test_stages_that_are_passed_over_are_not_waited_for():
    heard, stages = told({"A": 1.0, "B": 2.0, "C": 4.0, "D": 8.0})
    stages.begin("A")
    stages.expect({"C": 5.0, "A": 9.0})
    stages.begin("C")
    stages(Progress(1, 2))
    stages(Progress(0, 0, what="D"))
    assert [(each.what, each.seconds, each.after) for each in heard] == [
        *(("A", 1.0, 14.0), ("C", 5.0, 8.0), ("C", 5.0, 8.0), ("D", 8.0, 0.0)),
    ]


def test_what_is_not_counted_is_passed_on():
    heard, stages = told({})
    stages("iteration 3")
    assert heard == ["iteration 3"] and Stages()(Progress(1, 2)) is None


@pytest.mark.parametrize("speed", [0.5, 1.0, 3.0, 10.0])
def test_the_time_left_is_right_within_a_factor_of_two_whatever_the_speed(speed):
    """Costs are wrong by a common factor, and those of the second stage, not counted, by a quarter more."""
    seconds = {"first": 10.0, "second": 10.0}
    whole, now = (10.0 + 8.0) * speed, 0.0
    forecast, heard = Forecast(now), []
    stages = Stages(lambda progress: (heard.append(progress), forecast.update(progress, now)), seconds)
    stages.begin("first")
    worst = []
    while now < 0.95 * whole:
        if now < 10.0 * speed:
            stages(Progress(int(100 * now / (10.0 * speed)), 100))
        elif heard[-1].what == "first":
            stages.begin("second")
        worst.append((now / whole, forecast.left(now) / (whole - now)))
        now += 0.01 * whole
    for share, ratio in worst:
        assert not 0.2 <= share <= 0.8 or 0.5 <= ratio <= 2.0, (share, ratio)


def test_without_expected_costs_only_the_present_stage_is_promised():
    forecast = Forecast(0.0)
    assert forecast.left(1.0) is None
    forecast.update(Progress(0, 10), 0.0)
    assert forecast.left(2.0) is None and not forecast.whole
    forecast.update(Progress(5, 10), 5.0)
    assert forecast.left(5.0) == pytest.approx(5.0)


def test_work_of_an_earlier_run_does_not_count_as_fast():
    forecast = Forecast(0.0)
    forecast.update(Progress(80, 100), 0.0)
    forecast.update(Progress(90, 100), 10.0)
    assert forecast.left(10.0) == pytest.approx(10.0)


def test_the_time_shown_does_not_jump():
    forecast = Forecast(0.0)
    forecast.update(Progress(0, 0, what="A", seconds=10.0, after=0.0), 0.0)
    before = forecast.left(0.0)
    forecast.update(Progress(0, 0, what="B", seconds=1000.0, after=0.0), 0.1)
    assert forecast.left(0.2) - before < 20


def test_a_copied_estimator_tells_the_same_callback_and_one_in_another_process_nobody():
    heard, stages = told({"A": 1.0})
    copy.deepcopy(stages).begin("A")
    assert len(heard) == 1
    pickle.loads(pickle.dumps(stages)).begin("A")
    assert len(heard) == 1


def test_stages_within_a_stage_keep_their_costs_and_add_what_follows():
    heard, outer = told({"pilot": 3.0, "A": 5.0, "B": 7.0})
    inner = Stages(outer, {"search": 1.0, "fit": 2.0})
    inner.begin("search")
    inner.begin("fit")
    outer(Progress(1, 4, stage="A"))  # known by the stage, whose own parts have no known costs
    outer(Progress(0, 0, stage="A", what="fit"))
    outer(Progress(1, 2, what="B"))
    assert [(each.what, each.seconds, each.after) for each in heard] == [
        *(("search", 1.0, 17.0), ("fit", 2.0, 15.0), ("", 5.0, 7.0), ("fit", 0.0, 7.0), ("B", 7.0, 0.0)),
    ]
