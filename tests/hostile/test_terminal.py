"""Nothing that a file holds steers the terminal."""

from click.testing import CliRunner

from hostile import terminal
from hostile.tally import Tally
from icqf.cli.program import cli


def test_no_escape_sequence_reaches_the_terminal(tmp_path):
    tally: Tally = terminal.run(tmp_path)
    assert not tally.faults, "\n".join(tally.lines())


def test_data_in_a_pipe_are_as_they_are(tmp_path):
    """Only a terminal is spared: ids come out as they went in."""
    words = terminal.commands(tmp_path, "\x1b[31mred")["score"]
    scored = CliRunner().invoke(cli, [*map(str, words), "--quiet"])
    assert scored.exit_code == 0 and "\n\x1b[31mred0," in scored.stdout
