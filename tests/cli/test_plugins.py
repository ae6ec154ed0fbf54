"""Commands, engines and readers that an installed package adds through entry points."""

import subprocess
import sys

import pytest

from icqf.cli.program import COMMANDS, ELSEWHERE
from icqf.registry import Registry


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Puts a package on the path as pip would: its module, and a dist-info folder with its entry points."""
    monkeypatch.syspath_prepend(tmp_path)

    def add(package, code, **groups):
        module = package.replace("-", "_")
        (tmp_path / f"{module}.py").write_text(code)
        folder = tmp_path / f"{module}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [
            f"[icqf.{group}]\n" + "".join(f"{name} = {module}:{value}\n" for name, value in entries.items())
            for group, entries in groups.items()
        ]
        (folder / "entry_points.txt").write_text("\n".join(lines))
        monkeypatch.delitem(sys.modules, module, raising=False)
        return tmp_path

    return add


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


def test_every_command_that_is_ours_can_be_loaded():
    for name in COMMANDS.own:
        assert COMMANDS.load(name).name == name
