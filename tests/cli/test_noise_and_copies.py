"""What a fit says first: that there is no structure, or that participants are in the file several times."""

import json

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF
from icqf.datasets import load_demo
from icqf.report import analyse, report_of
from icqf.resampling.replication import replication_table
from small_study import weak_study

NONE = "No replicable structure was found"
COPIED = "240 of 240 participants gave exactly the same answers as somebody else (60 different answer sheets)"


def written(answers, path):
    names = [f"q{j + 1}" for j in range(answers.shape[1])]
    pd.DataFrame(answers.astype(int), columns=names).to_csv(path, index=False)
    return path


@pytest.fixture
def noise(tmp_path):
    return written(np.random.default_rng(3).integers(1, 6, (120, 20)), tmp_path / "noise.csv")


@pytest.mark.parametrize("words", [("--n-components", "2", "--beta", "0.1"), ("--n-components", "1-2")])
def test_pure_noise_is_said_first(run, noise, tmp_path, words):
    """Whether the number of factors is given or chosen; on the terminal and in the report."""
    result = run("fit", noise, *words, "--report", "--out", tmp_path / "out")
    assert result.stdout.startswith(NONE if "1-2" in words else f"{NONE} with 2 factors:")
    assert ("Fewer factors" in result.stdout) == ("1-2" not in words)
    assert "no better than by the items' means" in result.stdout
    assert "behind 20 items" not in result.stdout
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["title"] == "No replicable structure found in noise.csv"
    assert report["cautions"][0].startswith(NONE) and report["results"].startswith(NONE)
    assert "do not interpret" in report["headline"][0]
    assert report["fit"]["no_structure"] and report["fit"]["r_squared_hidden"] < 0


def test_factors_that_nobody_would_find_are_said_first_too(tmp_path):
    """Hidden answers are predicted, and halves disagree about the factors all the same."""
    answers = load_demo().select(["q00*", "q01*"])
    model = ICQF(2).fit(answers)
    halves = np.tile([0.3, 0.2], (10, 1))
    model.replication_ = replication_table(halves, model.components_, model.get_feature_names_out())
    report = report_of(analyse(model, answers, n_bootstrap=0, compare=False))
    assert report.cautions[0].startswith(
        f"{NONE}: another study like this one would find none of the factors"
    )
    assert report.results.startswith(NONE) and "do not interpret them" in report.headline[0]
    assert report.title.startswith("No replicable structure found")
    model.replication_ = replication_table(
        halves + [[0.65, 0]], model.components_, model.get_feature_names_out()
    )
    report = report_of(analyse(model, answers, n_bootstrap=0, compare=False))
    assert not any(NONE in each for each in (*report.cautions, report.results, report.title))
    assert report.cautions[0].startswith("Fragile: ")


def test_factors_are_announced_where_hidden_answers_are_predicted(run, tmp_path):
    answers = written(weak_study(200, loading=0.7), tmp_path / "answers.csv")
    result = run("fit", answers, "--n-components", "3", "--beta", "0.1", "--bootstrap", "0", "--no-report",
                 "--out", tmp_path / "out")  # fmt: skip
    assert result.stdout.startswith("3 factors behind 24 items") and NONE not in result.output


def test_copied_participants_are_said_first(run, tmp_path):
    answers = written(np.tile(weak_study(60, loading=0.7), (4, 1)), tmp_path / "answers.csv")
    check = run("check", answers)
    assert check.exit_code == 0 and check.stdout.count("exactly the same answers") == 1
    result = run("fit", answers, "--n-components", "3", "--beta", "0.1", "--report",
                 "--out", tmp_path / "out")  # fmt: skip
    assert result.stderr.startswith(f"Warning: {COPIED}")
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    (said,) = [each for each in report["cautions"] if each.startswith(COPIED)]
    assert "delete the copies" in said and "'1'" not in said  # a report names no participants


def test_a_code_for_no_answer_is_said_first(run, tmp_path):
    """The data stay as they are; the remedy is an option."""
    values = weak_study(300, loading=0.7) + 1
    values[np.random.default_rng(0).random(values.shape) < 0.01] = 0
    answers = written(values, tmp_path / "answers.csv")
    said = "0 seems to mean no answer. If it does, add --missing-codes 0"
    assert said in run("check", answers).stdout
    words = ("--n-components", "3", "--beta", "0.1", "--report", "--out", tmp_path / "out")
    result = run("fit", answers, *words)
    assert result.stderr.startswith("Warning: ") and said in result.stderr.splitlines()[0]
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert "0 seems to mean no answer" in report["cautions"][0]
    ranges = json.loads((tmp_path / "out" / "provenance.json").read_text())["analysed"]["ranges"]
    assert [(each["low"], each["high"]) for each in ranges] == [(0.0, 5.0)]


def test_a_search_in_noise_says_so_first(run, noise, tmp_path):
    result = run("select", noise, "--n-components", "1-2", "--beta", "0.1")
    assert result.exit_code == 0 and result.stdout.startswith(NONE), result.output
    answers = written(weak_study(200, loading=0.7), tmp_path / "answers.csv")
    assert NONE not in run("select", answers, "--n-components", "2-3", "--beta", "0.1").output
