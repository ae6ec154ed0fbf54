"""Degenerate tables: every public call gives finite numbers or an InputError, and leaks no warning."""

import pytest

from hostile import degenerate


def scenarios():
    """Sizes that no questionnaire has are for `make test-all`."""
    return [
        pytest.param(name, marks=[pytest.mark.long] * ("of 1e" in name or "beta 1e" in name))
        for name in degenerate.SCENARIOS
        if name != "a plain table"  # see below
    ]


@pytest.mark.parametrize("scenario", scenarios())
def test_every_call_answers_or_refuses(scenario):
    tally = degenerate.run([scenario])
    assert not tally.faults, "\n".join(tally.lines())


def test_a_plain_table_is_answered_by_every_call():
    assert set(degenerate.run(["a plain table"]).counts) == {"answered"}


def test_what_may_not_happen_is_noticed():
    def warned(table):
        return [float((table.to_numpy() / 0).max())]

    table = degenerate.plain()
    assert degenerate.one(warned, table, {})[0] == "leaked warning"
    assert degenerate.one(lambda table: [float("nan")], table, {})[0] == "not finite"
    assert degenerate.one(lambda table: table["none"], table, {})[0] == "foreign exception"
