"""A small study on disk, and the program in this process."""

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from icqf.cli.program import cli
from small_study import codebook, table


@pytest.fixture(scope="session")
def run():
    """The program, called with the words of a command line; gives exit_code, stdout and stderr.

    A fit writes its report, figures and resamples only where a test asks for them: each takes longer than the
    fits of these studies. `test_defaults.py` runs every command as it is.
    """

    def call(*words, env=None):
        if words[0] == "fit":
            words += () if {"--report", "--figures", "--config"} & {*words} else ("--no-report",)
            words += () if "--figures" in words else ("--no-figures",)
            words += () if {"--bootstrap", "--config"} & {*words} else ("--bootstrap", "0")
        result = CliRunner().invoke(cli, [str(word) for word in words], env=env)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return call


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """The folder with answers.csv and items.csv; not to be written to."""
    folder = tmp_path_factory.mktemp("study")
    table().to_csv(folder / "answers.csv", index=False)
    codebook().to_csv(folder / "items.csv", index=False)
    return folder


@pytest.fixture(scope="session")
def usual(files):
    """The usual words after ``icqf fit``, without --out."""
    return (
        *(files / "answers.csv", "--codebook", files / "items.csv", "--confounds", "age", "sex"),
        *("--n-components", "2", "--beta", "0.1"),
    )


@pytest.fixture(scope="session")
def results(run, usual, tmp_path_factory) -> Path:
    """A folder of results; not to be written to."""
    out = tmp_path_factory.mktemp("fitted") / "results"
    assert run("fit", *usual, "--figures", "--bootstrap", "20", "--out", out).exit_code == 0
    return out


@pytest.fixture
def left_behind(tmp_path):
    """Everything under the test's own folder, hidden files included."""
    return lambda: sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Puts a package on the path as pip would: its module, and a dist-info folder with its entry points."""

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
        monkeypatch.syspath_prepend(tmp_path)

    return add
