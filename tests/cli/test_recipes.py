"""The recipes of CONTRIBUTING.md, followed as they are printed: one of each is added from outside."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^### Add an? ([^\n]+)\n(.*?)(?=^### |\Z)", TEXT, flags=re.M | re.S))
SHOWN = {  # what shows that it was used
    "penalty": "with an elastic-net penalty on scores and loadings (β = 0.2)",
    "file format": "What will be analysed",
    "report section": "80 participants have scores.",
    "selection rule": "the chosen number of factors is the smallest whose error on hidden",
    "command": "participants left out 2 answers or fewer.",
}


def blocks(recipe):
    return re.findall(r"^```(\w+)\n(.*?)^```$", RECIPES[recipe], flags=re.M | re.S)


def test_there_is_a_recipe_for_everything_that_can_be_added():
    assert {"penalty", "data fit", "engine", "file format", "report section"} <= set(RECIPES)
    assert {"selection rule", "command"} <= set(RECIPES)
    assert set(SHOWN) <= set(RECIPES)


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_works_as_it_is_printed(run, files, install, tmp_path, monkeypatch, recipe):
    (language, code), *more = blocks(recipe)
    assert language == "python"
    package = re.match(r"# (icqf_\w+)\.py\n", code)[1]
    declared = [tomllib.loads(text) for language, text in more if language == "toml"]
    groups = {
        group.removeprefix("icqf."): {name: value.split(":")[1] for name, value in entries.items()}
        for each in declared
        for group, entries in each["project"]["entry-points"].items()
    }
    install(package.replace("_", "-"), code, **groups)
    for name in ("answers.csv", "items.csv"):
        (tmp_path / name).write_bytes((files / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    said = ""
    for language, text in more:
        if language == "python":
            exec(compile(text, f"CONTRIBUTING.md, {recipe}", "exec"), {})
        for line in text.splitlines() if language == "sh" else ():
            program, *words = shlex.split(line)
            done = run(*words, *(["--report"] if words[0] == "fit" else []))
            assert (program, done.exit_code) == ("icqf", 0), done.stderr
            said += done.stdout
    for page in tmp_path.glob("*/report.md"):
        said += page.read_text(encoding="utf-8")
    assert SHOWN.get(recipe, "") in said
