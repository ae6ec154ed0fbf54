"""Figures of commands do not depend on a settings file in the working folder."""

from hostile import settings


def test_a_hostile_matplotlibrc_changes_nothing(tmp_path):
    tally = settings.run(tmp_path)
    assert not tally.faults, "\n".join(tally.lines())
    assert tally.counts["unaffected"] == len(settings.RC_FILES)
