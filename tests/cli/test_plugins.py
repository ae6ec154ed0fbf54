"""Commands, engines and readers that an installed package adds through entry points."""

import subprocess
import sys

import pandas as pd
import pytest

from icqf import ICQF
from icqf.cli.program import COMMANDS, ELSEWHERE
from icqf.data.settings import ENGINES
from icqf.engines.base import Engine
from icqf.errors import InputError
from icqf.io import read_table
from icqf.io.formats import READERS
from icqf.registry import Registry

GREETING = '''
import click

@click.command(short_help="Greet somebody.")
@click.argument("who")
def greet(who):
    """Greet WHO."""
    click.echo(f"Hello, {who}.")
'''


def test_a_command_from_outside(run, install):
    install("icqf-greeting", GREETING, commands={"greet": "greet"})
    assert run("greet", "Ada").stdout == "Hello, Ada.\n"
    assert "  greet         Greet somebody.\n" in run("--help").stdout
    assert "Did you mean 'greet'?" in run("gret").stderr


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("import no_such_module", "cannot be loaded (ModuleNotFoundError: No module named 'no_such_module')"),
        ("raise SystemError('half installed')", "cannot be loaded (SystemError: half installed)"),
        ("greet = 3", "is not a click command"),
    ],
)
def test_a_broken_command_is_named_and_breaks_no_other(run, install, code, fault):
    install("icqf-greeting", code, commands={"greet": "greet"})
    sentence = f"'greet' (icqf.commands) of the package 'icqf-greeting' {fault}."
    sentence += " Update or uninstall that package."
    refused = run("greet", "Ada")
    assert (refused.exit_code, refused.stderr) == (2, f"Error: {sentence}\n")
    listed = run("--help")
    assert (listed.exit_code, listed.stderr) == (0, f"Note: {sentence}\n")
    assert "greet" not in listed.stdout and "  fit " in listed.stdout
    assert run("fit", "--help").stderr == run("--version").stderr == ""


def test_none_of_our_own_commands_can_be_replaced(run, install):
    install("icqf-greeting", GREETING, commands={"show": "greet"})
    assert run("show", "--help").stdout.startswith("Usage: cli show")
    assert "Greet" not in run("--help").stdout


def test_a_command_of_a_package_that_is_not_installed_says_what_to_install(run, monkeypatch):
    monkeypatch.setattr(Registry, "added", lambda self: {})
    for command in ELSEWHERE:
        refused = run(command, "table1")
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert refused.stderr.count("\n") == 1
        assert "which is not installed: run 'pip install" in refused.stderr
        assert command not in run("--help").stdout


def test_our_own_commands_are_found_without_looking_at_what_is_installed():
    program = (
        "import sys; from click.testing import CliRunner; from icqf.cli.program import cli\n"
        "for words in (['--version'], ['fit', '--help'], ['show', 'nothing.icqf']):\n"
        "    CliRunner().invoke(cli, words)\n"
        "    print(words, 'importlib.metadata' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[:2] == ["['--version'] False", "['fit', '--help'] False"]


def test_what_is_ours_can_be_loaded():
    for name in COMMANDS.own:
        assert COMMANDS.load(name).name == name
    for name in READERS.own:
        assert callable(READERS.load(name))
    assert isinstance(ENGINES.load("local"), Engine)


COUNTING = """
from icqf.engines.local import Local

class Counting(Local):
    fits = 0

    def participants(self, problem):
        Counting.fits += 1
        return super().participants(problem)

COUNTING = Counting()
"""


def test_an_engine_from_outside(run, usual, install, tmp_path):
    install("icqf-counting", COUNTING, engines={"counting": "COUNTING"})
    words = ("fit", *usual, "--n-components", 2, "--beta", 0.1, "--no-report", "--quiet")
    assert run(*words, "--engine", "counting", "--out", tmp_path / "counted").exit_code == 0
    assert sys.modules["icqf_counting"].Counting.fits > 0
    assert run(*words, "--out", tmp_path / "local").exit_code == 0
    counted, local = ((tmp_path / name / "scores.csv").read_bytes() for name in ("counted", "local"))
    assert counted == local
    assert "'counting'" in run(*words, "--engine", "count").stderr
    model = ICQF(2, item_range=(0, 2), engine="counting").fit([[0, 1, 2], [2, 0, 1], [1, 1, 0]])
    assert model.engine == "counting"


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("import no_such_module", "cannot be loaded (ModuleNotFoundError: No module named 'no_such_module')"),
        ("COUNTING = 3", "is not an icqf.engines.base.Engine"),
    ],
)
def test_a_broken_engine_is_named_and_breaks_no_other(install, code, fault):
    install("icqf-counting", code, engines={"counting": "COUNTING"})
    answers = [[0, 1, 2], [2, 0, 1], [1, 1, 0]]
    with pytest.raises(InputError) as refused:
        ICQF(2, item_range=(0, 2), engine="counting").fit(answers)
    sentence = f"'counting' (icqf.engines) of the package 'icqf-counting' {fault}."
    assert str(refused.value) == f"{sentence} Update or uninstall that package."
    assert ICQF(2, item_range=(0, 2)).fit(answers).converged_


JSON_LINES = """
import pandas as pd

def read(path):
    return pd.read_json(path, lines=True, dtype={"record_id": str})
"""


def test_a_reader_from_outside(run, files, install, tmp_path):
    words = ("--codebook", files / "items.csv", "--confounds", "age", "sex")
    table = read_table(files / "answers.csv").frame
    table.to_json(tmp_path / "answers.jsonl", orient="records", lines=True)
    refused = run("check", tmp_path / "answers.jsonl")
    assert refused.exit_code == 2 and "files with the extension '.jsonl' cannot be read" in refused.stderr
    install("icqf-jsonl", JSON_LINES, readers={".jsonl": "read"})
    pd.testing.assert_frame_equal(read_table(tmp_path / "answers.jsonl").frame, table, check_dtype=False)
    assert run("check", tmp_path / "answers.jsonl", *words).exit_code == 0
    (tmp_path / "damaged.jsonl").write_text("{")
    refused = run("check", tmp_path / "damaged.jsonl")
    assert refused.exit_code == 2
    assert "damaged.jsonl: this cannot be read as a file with the extension '.jsonl'" in refused.stderr


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("import no_such_module", "of the package 'icqf-jsonl' cannot be loaded (ModuleNotFoundError"),
        ("read = 3", "of the package 'icqf-jsonl' is not a function."),
        (
            "def read(path): return 3",
            "answers.jsonl: the reader of '.jsonl' files returned 'int', not a table",
        ),
    ],
)
def test_a_broken_reader_is_named_and_breaks_no_other(install, files, tmp_path, code, fault):
    install("icqf-jsonl", code, readers={".jsonl": "read"})
    (tmp_path / "answers.jsonl").write_text("{}")
    with pytest.raises(InputError) as refused:
        read_table(tmp_path / "answers.jsonl")
    assert fault in str(refused.value)
    assert len(read_table(files / "answers.csv").frame)
