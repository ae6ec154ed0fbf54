"""`icqf invariance`: a folder with tables, a figure and a page about groups."""

import json

import numpy as np
import pandas as pd
import pytest

from icqf.workflow import invariance as groups_workflow
from small_study import table

FEW = ("--permutations", "19", "--bootstrap", "4")


@pytest.fixture(scope="module")
def groups(run, results, files, tmp_path_factory):
    out = tmp_path_factory.mktemp("groups") / "groups"
    result = run(
        "invariance", results / "model.icqf", files / "answers.csv", "--by", "sex", *FEW, "--out", out
    )
    assert result.exit_code == 0, result.stderr
    return out, result


def test_the_figure_says_what_the_groups_are(run, results, files, tmp_path, monkeypatch):
    """Groups are often called 1 and 2."""
    headed = []
    drawn = groups_workflow.group_loadings

    def watched(*given, **more):
        ax = drawn(*given, **more)
        headed.append(ax.get_legend().get_title().get_text())
        return ax

    monkeypatch.setattr(groups_workflow, "group_loadings", watched)
    words = ("--by", "sex", *FEW, "--out", tmp_path / "groups")
    assert run("invariance", results / "model.icqf", files / "answers.csv", *words).exit_code == 0
    assert headed == ["sex"]


def test_what_is_written(groups):
    out, result = groups
    names = ["factors.csv", "groups.html", "groups.md", "groups.png", "items.csv"]
    names += ["levels.csv", "loadings.csv", "provenance.json"]
    assert sorted(path.name for path in out.iterdir()) == names
    factors = pd.read_csv(out / "factors.csv")
    assert set(factors["verdict"]) <= {"same", "similar", "different", "not tested"} and len(factors) == 2
    assert pd.read_csv(out / "items.csv")["item"].tolist()[0] == "q01"
    assert len(pd.read_csv(out / "loadings.csv")) == 2 * 2 * 12
    assert len(pd.read_csv(out / "levels.csv")) == 2 * 12
    page = (out / "groups.md").read_text()
    assert page.startswith("# Are the factors the same? Groups of sex") and "| Factor 1 |" in page
    assert "icqf invariance model.icqf answers.csv --by sex" in page
    assert all(f"| {value:.3f} |" in page for value in factors["congruence"])  # 0.949 is no 0.95
    assert "2 factors compared between 'f'" in result.stdout
    hypothesis = "Tested: participants with the same scores"
    assert hypothesis in page and hypothesis in result.stdout and "## What is tested" in page
    account = json.loads((out / "provenance.json").read_text())
    assert account["tool"] == "invariance" and account["options"]["by"] == "sex"
    assert sum(account["result"]["groups"].values()) == 79  # somebody answered nothing


def test_levels_have_a_sign_and_a_size(run, results, tmp_path):
    """An item that one group answers a point higher than equally affected participants of the other."""
    frame = table(n=240)
    frame["site"] = np.random.default_rng(0).choice(["x", "y"], 240)
    answers = pd.to_numeric(frame["q04"]).replace(9, np.nan)
    frame["q04"] = np.where(frame["site"] == "y", np.minimum(answers + 1, 3), answers)
    frame.to_csv(tmp_path / "sites.csv", index=False)
    words = ("--by", "site", "--permutations", "99", "--bootstrap", "2", "--out", tmp_path / "groups")
    result = run("invariance", results / "model.icqf", tmp_path / "sites.csv", *words)
    assert result.exit_code == 0, result.stderr
    found = pd.read_csv(tmp_path / "groups" / "items.csv").set_index("item").loc["q04"]
    assert found["level_flagged"] and found["level_higher"] == "y" and found["level_difference"] > 0.3
    page = (tmp_path / "groups" / "groups.md").read_text()
    assert "points, y less x" in page and f"| +{found['level_difference']:.2f} | y |" in page
    assert "in points (y less x):" in result.stdout and f"+{found['level_difference']:.2f}" in result.stdout
    assert "(reversed)" not in page + result.stdout and not found["reversed"]


def test_an_item_that_is_counted_from_its_highest_answer_is_marked(run, files, tmp_path):
    """Those who give the lower answer have more of it."""
    frame = table(n=240)
    frame["site"] = np.random.default_rng(0).choice(["x", "y"], 240)
    answers = pd.to_numeric(frame["q04"]).replace(9, np.nan)
    frame["q04"] = 3 - np.where(frame["site"] == "y", np.minimum(answers + 1, 3), answers)
    frame.to_csv(tmp_path / "sites.csv", index=False)
    items = pd.read_csv(files / "items.csv")
    items["direction"] = np.where(items["name"] == "q04", "reverse", items["direction"].fillna(""))
    items.to_csv(tmp_path / "items.csv", index=False)
    words = ("--codebook", tmp_path / "items.csv", "--n-components", "2", "--beta", "0.1", "--no-report")
    fit = run("fit", tmp_path / "sites.csv", *words, "--out", tmp_path / "fit")
    assert fit.exit_code == 0, fit.stderr
    words = ("--by", "site", "--permutations", "99", "--bootstrap", "2", "--out", tmp_path / "groups")
    result = run("invariance", tmp_path / "fit", tmp_path / "sites.csv", *words)
    assert result.exit_code == 0, result.stderr
    page = (tmp_path / "groups" / "groups.md").read_text()
    assert "| q04 (reversed) |" in page and "q04 (reversed) is answered" in result.stdout
    assert "\nq04 (reversed)" in result.stdout


def test_families_and_weights_are_columns_of_the_file(run, results, tmp_path):
    frame = table()
    frame["family"], frame["weight"] = np.arange(len(frame)) // 2, 1 + np.arange(len(frame)) % 3
    frame.to_csv(tmp_path / "more.csv", index=False)
    words = ("invariance", results / "model.icqf", tmp_path / "more.csv", "--by", "sex", *FEW, "--out")
    written = {}
    for name, more in (
        ("plain", ()),
        ("families", ("--groups", "family")),
        ("weights", ("--weights", "weight")),
    ):
        result = run(*words, tmp_path / name, *more)
        assert result.exit_code == 0, result.stderr
        written[name] = (tmp_path / name / "items.csv").read_text()
    assert len(set(written.values())) == 3
    assert "the same survey weight" in (tmp_path / "weights" / "groups.md").read_text()


@pytest.fixture
def other(tmp_path):
    """A file whose column `site` is made by a function of the participants' numbers."""

    def made(site):
        frame = table()
        frame["site"] = [site(number) for number in range(len(frame))]
        frame.to_csv(tmp_path / "sites.csv", index=False)
        return tmp_path / "sites.csv"

    return made


@pytest.mark.parametrize(
    ("site", "by", "said"),
    [
        (lambda number: "x" if number < 10 else "y", "site", "The group 'x' of 'site' has 10 participants"),
        (lambda number: "x", "site", "There is nothing to compare: everybody has 'x' in 'site'."),
        (lambda number: "", "site", "There is nothing to compare: nobody has a value in 'site'."),
        (lambda number: f"s{number}", "site", "'site' has 80 different values"),
        (lambda number: "x", "school", "there is no column 'school' to use as a group"),
        (lambda number: "x", "q01", "--by is 'q01', which is an item of the model"),
    ],
)
def test_what_is_no_group(run, results, other, tmp_path, site, by, said):
    out = tmp_path / "groups"
    result = run("invariance", results / "model.icqf", other(site), "--by", by, *FEW, "--out", out)
    assert result.exit_code == 2, result.stderr
    assert said in result.stderr and "Traceback" not in result.stderr
    assert not out.exists() and not (tmp_path / "groups.journal").exists()


def test_too_few_permutations(run, results, files, tmp_path):
    words = (
        "invariance",
        results / "model.icqf",
        files / "answers.csv",
        "--by",
        "sex",
        "--permutations",
        "3",
    )
    result = run(*words, "--out", tmp_path / "groups")
    assert (
        result.exit_code == 2
        and "--permutations must be a whole number of at least 19, not 3." in result.stderr
    )


@pytest.mark.parametrize(("option", "value"), [("--jobs", "0"), ("--seed", "-1")])
def test_numbers_that_mean_nothing(run, results, files, tmp_path, option, value):
    words = ("invariance", results / "model.icqf", files / "answers.csv", "--by", "sex", option, value)
    result = run(*words, "--out", tmp_path / "groups")
    assert result.exit_code == 2 and f"Error: {option} must be" in result.stderr


def test_a_journal_that_was_left_is_continued_on_request(run, results, files, tmp_path):
    (tmp_path / "groups.journal").write_text("")
    words = ("invariance", results / "model.icqf", files / "answers.csv", "--by", "sex", *FEW)
    result = run(*words, "--out", tmp_path / "groups")
    assert result.exit_code == 2 and "Add --resume to continue" in result.stderr
    assert run(*words, "--out", tmp_path / "groups", "--resume", "-q").exit_code == 0
    assert not (tmp_path / "groups.journal").exists()
