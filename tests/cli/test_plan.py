"""`icqf plan`: from a model or a pilot's answers to a folder with a curve, a figure and a sentence."""

import json

import pandas as pd
import pytest

FEW = ("--sizes", "40", "80", "--repeats", "4")


@pytest.mark.parametrize("place", ["model.icqf", ""])
def test_from_a_model(run, results, tmp_path, place):
    out = tmp_path / "plan"
    result = run("plan", results / place, *FEW, "--out", out)
    assert result.exit_code == 0, result.stderr
    names = ["curve.csv", "factors.csv", "plan.html", "plan.md", "plan.png", "provenance.json"]
    assert sorted(path.name for path in out.iterdir()) == names
    assert pd.read_csv(out / "curve.csv")["n"].tolist() == [40, 80]
    assert pd.read_csv(out / "factors.csv")["factor"].tolist() == ["factor1", "factor2", "mean", "every"]
    page = (out / "plan.md").read_text()
    assert page.startswith("# How many participants?") and "agreement of halves" in page
    account = json.loads((out / "provenance.json").read_text())
    assert account["result"]["sentence"] in result.stdout and "agreement of halves" in result.stdout
    assert account["options"]["sizes"] == [40, 80]
    needed = pd.read_csv(out / "factors.csv", index_col=0)["n80"]
    for name, factor in (("Factor 1", "factor1"), ("Factor 2", "factor2")):
        assert (f"| {name} | 40 or fewer |" in page) == (needed[factor] == 40)


def test_from_a_pilot(run, files, tmp_path):
    result = run(
        *("plan", files / "answers.csv", "--codebook", files / "items.csv", "--confounds", "age", "sex"),
        *("--n-components", "2", "--beta", "0.1", *FEW, "--out", tmp_path / "plan"),
    )
    assert result.exit_code == 0, result.stderr
    assert "disjoint subsamples of the pilot" in (tmp_path / "plan" / "plan.md").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--sizes", "3"], "--sizes holds 3; give numbers of participants between 20 and"),
        (["--repeats", "0"], "--repeats must be a whole number of at least 1, not 0."),
        (["--sizes", "many"], "--sizes must be a whole number of at least 1, not 'many'."),
        (["--confounds", "age"], "--confounds is for the answers of a pilot study and has no effect on a"),
        (["--seed", "-1"], "--seed must be a whole number of at least 0, not -1."),
    ],
)
def test_what_cannot_be_planned(run, results, tmp_path, words, said):
    result = run("plan", results / "model.icqf", *words, "--out", tmp_path / "plan")
    assert result.exit_code == 2 and said in result.stderr, result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_is_none(run, tmp_path):
    (tmp_path / "model.icqf").write_text("no model")
    result = run("plan", tmp_path / "model.icqf")
    assert result.exit_code == 2 and "not an icqf model file" in result.stderr


def test_nothing_to_plan_from(run):
    result = run("plan")
    assert result.exit_code == 2 and "No file of answers is named" in result.stderr


def test_results_are_not_replaced_unasked(run, results, tmp_path):
    words = ("plan", results / "model.icqf", *FEW, "--out", tmp_path / "plan")
    assert run(*words, "-q").exit_code == 0
    result = run(*words)
    assert result.exit_code == 2 and "add --force to replace" in result.stderr
    assert run(*words, "--force", "-q").exit_code == 0
