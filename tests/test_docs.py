"""Python blocks and commands of the README and the docs run as they stand, links lead somewhere."""

import re
import shlex
import shutil
import tomllib
from contextlib import nullcontext

import pandas as pd
import pytest

import icqf
from icqf.cli.program import COMMANDS, cli
from icqf.datasets import demo_paths
from printed import PAGES as PRINTING
from printed import ROOT, commands, execute, write_stand_ins

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


# Five to twenty seconds each; tests/cli and the examples of docstrings run the same with smaller studies.
LONG = ("battery.md", "command-line.md", "evaluation.md", "short-forms.md")


def blocks():
    return [
        pytest.param(
            page,
            "\n".join(BLOCK.findall(page.read_text(encoding="utf-8"))),
            id=page.name,
            marks=[pytest.mark.long] * (page.name in LONG),
        )
        for page in PAGES
        if BLOCK.search(page.read_text(encoding="utf-8")) and ">>>" not in page.read_text(encoding="utf-8")
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:PyTorch and Triton find no CUDA GPU")
@pytest.mark.parametrize(("page", "code"), blocks())
def test_code_blocks_run(page, code, tmp_path, monkeypatch):
    answers, codebook = demo_paths()
    shutil.copy(answers, tmp_path / "answers.csv")
    shutil.copy(codebook, tmp_path / "items.csv")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, str(page), "exec"), {})


# What is not run from its page, and where it is tested.
NOT_HERE = {
    "icqf app": "tests/cli/test_defaults.py",
    "icqf pool": "tests/cli/test_pool.py",
    "icqf fit answers.csv --config config.toml": "tests/cli/test_pool.py",
    "icqf score pooled.icqf": "tests/cli/test_pool.py",
    "icqf preregister --template": "tests/cli/test_preregister.py; the stand-in is filled in",
    "icqf reproduce": "the tests of the experiments",
    "icqf stability": "tests/cli/test_defaults.py and test_evaluation.py; takes minutes for these stand-ins",
    "icqf diagnosis": "likewise",
    "icqf fit answers.csv --n-components 2-16 --engine dask": "tests/engines/test_dask.py",
}
WRITE_FIGURES = "icqf.workflow.naming.drawing"
DEMO = "icqf demo"  # takes as long as all other lines of a page together: run from the README only


def lines_of(page):
    """The lines of a page that are run from it."""
    lines = [line for line in commands(page) if not line.startswith(tuple(NOT_HERE))]
    if page.name == "README.md":
        return lines
    return [line for line in lines if line.split("#")[0].strip().removesuffix(" --open") != DEMO]


@pytest.fixture(scope="session")
def stand_ins(tmp_path_factory):
    """A folder with the files that pages name, and with results of a fit."""
    folder = tmp_path_factory.mktemp("stand-ins")
    write_stand_ins(folder)
    words = "--codebook items.csv --confounds age sex --n-components 3 --beta 0.1 --no-figures --out"
    for answers, out in (("answers", "results"), ("new", "study2")):
        _, result = execute(f"icqf fit {answers}.csv {words} {out}", folder)
        assert result.exit_code == 0, result.output
    shutil.copytree(folder / "results", folder / "study1")
    return folder


def written_by(line):
    """The file or folder that a line writes, or an empty string."""
    named = re.search(r"(?:--out |> )(\S+)", line)
    return named[1] if named else "results" if line.startswith("icqf fit ") else ""


def printing_pages():
    """Pages with commands, but for the README, whose commands are in `make test`."""
    return [
        pytest.param(page, id=page.name, marks=pytest.mark.long)
        for page in PRINTING
        if page.name != "README.md" and lines_of(page)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("page", printing_pages())
def test_commands_run_as_printed(page, stand_ins, tmp_path, monkeypatch):
    folder, lines = tmp_path / "folder", lines_of(page)
    shutil.copytree(stand_ins, folder)
    for at, line in enumerate(lines):
        made = written_by(line)
        if made and not any(made in earlier for earlier in lines[:at]):  # the page makes it itself
            shutil.rmtree(folder / made) if (folder / made).is_dir() else (folder / made).unlink(
                missing_ok=True
            )
    monkeypatch.setattr(WRITE_FIGURES, lambda *_, **__: nullcontext(list))  # see the README's
    for line in lines:
        folder, result = execute(line, folder)
        assert result is None or result.exit_code == 0, f"{line}\n{result.output[-2000:]}"
        assert not written_by(line) or (folder / written_by(line)).exists()


@pytest.mark.slow
def test_commands_of_the_readme_run_as_printed(tmp_path, monkeypatch):
    folder, lines = tmp_path, lines_of(ROOT / "README.md")
    assert lines[0] == DEMO  # with its default options
    for line in lines:
        folder, result = execute(line, folder)
        assert result is None or result.exit_code == 0, f"{line}\n{result.output[-2000:]}"
        if line == DEMO:
            assert list((folder / "icqf-demo" / "results" / "figures").glob("*.png"))
            # The same would be drawn again.
            monkeypatch.setattr(WRITE_FIGURES, lambda *_, **__: nullcontext(list))
    for results in ("results", "my-results"):
        assert (folder / results / "report.html").is_file()
    scores = pd.read_csv(folder / "my-results" / "scores.csv", index_col=0)
    assert scores.shape == (600, 8) and scores.index.is_unique


def test_every_printed_command_exists():
    printed = {line.split()[1] for page in PRINTING for line in commands(page) if line.startswith("icqf ")}
    assert printed <= set(COMMANDS) | {"reproduce"}
    assert len(printed) > 15


@pytest.mark.parametrize("page", PRINTING, ids=lambda page: page.name)
def test_options_of_printed_commands_exist(page):
    """Also where `make test` does not run them."""
    for line in commands(page):
        program, *words = shlex.split(line.partition(" > ")[0], comments=True)
        if program == "icqf" and words[0] != "reproduce":  # see the tests of the experiments
            parent = cli.make_context("icqf", [words[0]])  # a command remembers the names of its --help
            cli.get_command(parent, words[0]).make_context(words[0], words[1:], parent=parent)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_one_version_everywhere():
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert cited and cited[1] == icqf.__version__
    experiments = tomllib.loads((ROOT / "experiments" / "pyproject.toml").read_text(encoding="utf-8"))
    assert experiments["project"]["version"] == icqf.__version__
    latest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert latest and latest[1] == icqf.__version__
    for name, place in {
        "r/DESCRIPTION": r"^Version: (.+)$",
        "release/recipe.yaml": r'^  version: "(.+)"$',
        ".zenodo.json": r'^  "version": "(.+)",$',
    }.items():
        found = re.search(place, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        assert found and found[1] == icqf.__version__, name


def test_the_conda_recipe_has_the_same_dependencies():
    own = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    recipe = (ROOT / "release" / "recipe.yaml").read_text(encoding="utf-8")
    run = re.findall(r"^    - (\S+) (>=\S+)$", recipe.split("  run:")[1].split("tests:")[0], re.MULTILINE)
    other = {"matplotlib-base": "matplotlib", "lazy_loader": "lazy-loader"}
    listed = {other.get(name, name) + least for name, least in run if name != "python"}
    assert listed == {line.replace(" ", "") for line in own}
