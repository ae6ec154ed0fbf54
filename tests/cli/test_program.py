"""The program as a whole: it starts lightly, explains itself, and stays on this machine."""

import subprocess
import sys

import pytest

from icqf.cli.program import OWN

HEAVY = ("numpy", "pandas", "scipy", "sklearn", "matplotlib", "joblib", "jinja2")


@pytest.mark.parametrize("words", [["--help"], ["fit", "--help"], ["stability", "--help"], ["score", "-h"]])
def test_help_imports_nothing_heavy(words):
    program = (
        "import sys; from click.testing import CliRunner; from icqf.cli.program import cli\n"
        f"assert CliRunner().invoke(cli, {words}).exit_code == 0\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("command", OWN)
def test_every_command_explains_itself(run, command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert "Example" in result.stdout and f"icqf {command}" in result.stdout
    options = [line for line in result.stdout.splitlines() if line.strip().startswith("--")]
    assert options
    assert run(command, "-h").stdout == result.stdout


def test_the_group_lists_every_command_with_a_whole_sentence(run):
    lines = run("--help").stdout.splitlines()
    for command in (*OWN, "reproduce"):
        (line,) = [line for line in lines if line.strip().startswith(f"{command} ")]
        assert line.endswith(".") and not line.endswith("...")


def test_defaults_are_shown(run):
    text = " ".join(run("fit", "--help").stdout.split())
    for default in (
        "[default: results]",
        "[default: 10]",
        "[default: auto]",
        "[default: 0 0.01 0.02 0.05 0.1 0.2 0.3 0.5]",
    ):
        assert default in text


@pytest.mark.parametrize("words", [("fitt",), ("fit", "--no-such-option"), ("fit",), ("score", "one.icqf")])
def test_bad_usage(run, words):
    result = run(*words)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Error:" in result.stderr


def test_a_file_swallowed_by_an_option_is_explained(run, files):
    result = run("fit", "--confounds", "age", "sex", files / "answers.csv")
    assert result.exit_code == 2
    assert "--confounds takes all words up to the next option" in result.stderr


def test_version(run):
    from icqf import __version__

    assert __version__ in run("--version").stdout


def test_nothing_leaves_the_machine(run, usual, results, files, tmp_path, monkeypatch):
    import socket

    def refuse(*args, **kwargs):
        raise OSError("the network was asked for")

    for name in ("socket", "create_connection", "getaddrinfo", "gethostbyname"):
        monkeypatch.setattr(socket, name, refuse)
    assert run("check", files / "answers.csv", "--codebook", files / "items.csv").exit_code == 0
    assert run("codebook", files / "answers.csv").exit_code == 0
    assert run("fit", *usual, "--out", tmp_path / "out").exit_code == 0
    model = results / "model.icqf"
    assert run("score", model, files / "answers.csv").exit_code == 0
    assert run("show", model).exit_code == 0
    assert run("compare", model, model).exit_code == 0
