"""Figures of commands do not depend on a settings file in the working folder."""

import pytest

from hostile import settings

STARTING = ("LaTeX and another back end",)  # other programs and modules


@pytest.mark.parametrize("names", [STARTING, pytest.param(tuple(settings.RC_FILES), marks=pytest.mark.long)])
def test_a_hostile_matplotlibrc_changes_nothing(tmp_path, names):
    tally = settings.run(tmp_path, names)
    assert not tally.faults, "\n".join(tally.lines())
    assert tally.counts["unaffected"] == len(names)
