"""`--all-rules`: what every rule says, in one table, on the terminal, in files and in the report."""

import json

import pandas as pd
import pytest

from icqf.workflow import fit as workflow_rules

SEARCH = ("--n-components", "1-2", "--beta", "0.1", "--n-splits", "3")
NAMES = [
    "Blockwise cross-validation",
    "Parallel analysis",
    "NEST",
    "Comparison data",
    "BIC",
    "Empirical Kaiser criterion",
    "Velicer's MAP",
    "Hull method",
]


@pytest.fixture(autouse=True)
def few_samples(monkeypatch):
    quick = workflow_rules.every_rule
    monkeypatch.setattr(workflow_rules, "every_rule", lambda X, **given: quick(X, n_iter=5, **given))


@pytest.fixture
def study(files):
    return files / "answers.csv", "--codebook", files / "items.csv", "--confounds", "age", "sex"


@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet", "sav"])
def test_select_shows_and_writes_every_rule(run, study, tmp_path, ending):
    out = tmp_path / f"cv.{ending}"
    result = run("select", *study, *SEARCH, "--all-rules", "--out", out)
    assert result.exit_code == 0, result.stderr
    shown = result.stdout.split("Number of factors by rule:")[1]
    for name in NAMES:
        assert name in shown
    assert "rules keep" in " ".join(shown.split())
    written = json.loads((tmp_path / "cv-rules.json").read_text(encoding="utf-8"))
    assert [rule["rule"] for rule in written["rules"]] == NAMES
    assert written["explanation"] and written["rules"][1]["curve"][0]["n_components"] == 1
    if ending == "csv":
        table = pd.read_csv(tmp_path / "cv-rules.csv")
        assert table["rule"].tolist() == NAMES
        assert (
            table["n_components"].dtype.kind in "if" and "8.0" not in (tmp_path / "cv-rules.csv").read_text()
        )
    assert str(tmp_path / f"cv-rules.{ending}") in result.stderr


def test_without_the_option_no_rule_is_run(run, study, tmp_path):
    result = run("select", *study, *SEARCH, "--out", tmp_path / "cv.csv")
    assert "What the rules" not in result.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cv.csv"]


def test_an_earlier_table_of_rules_is_not_replaced(run, study, tmp_path):
    (tmp_path / "cv-rules.json").write_text("mine")
    words = (*study, *SEARCH, "--all-rules", "--out", tmp_path / "cv.csv")
    result = run("select", *words)
    assert result.exit_code == 2 and "cv-rules.json: the file already exists" in result.stderr
    assert not (tmp_path / "cv.csv").exists()
    assert run("select", *words, "--force").exit_code == 0


def test_fit_puts_them_into_files_and_report(run, usual, tmp_path):
    out = tmp_path / "results"
    result = run("fit", *usual, "--report", "--all-rules", "--out", out)
    assert result.exit_code == 0, result.stderr
    assert "Number of factors by rule:" in result.stdout
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    rows = report["count"]["rules"]
    assert [row["rule"] for row in rows] == NAMES[1:]  # nothing was cross-validated
    table = pd.read_csv(out / "rules.csv")
    assert table["reason"].tolist() == [row["reason"] for row in rows]
    html, text = ((out / name).read_text(encoding="utf-8") for name in ("report.html", "report.md"))
    for page in (html, text):
        assert "Rules for the number of factors" in page and "Braeken" in page
    again = run("fit", "--config", out / "config.toml", "--out", tmp_path / "again")
    assert (
        again.exit_code == 0
        and (tmp_path / "again" / "rules.csv").read_bytes() == (out / "rules.csv").read_bytes()
    )


def test_answers_that_no_rule_can_use_do_not_end_the_fit(run, usual, tmp_path, monkeypatch):
    def refuse(X, **given):
        raise workflow_rules.InputError("Items 'a' and 'b' were both answered by 1 participant.")

    monkeypatch.setattr(workflow_rules, "every_rule", refuse)
    result = run("fit", *usual, "--bootstrap", "0", "--all-rules", "--out", tmp_path / "results")
    assert result.exit_code == 0
    said = " ".join(result.stdout.split())  # lines are wrapped to the width of the terminal
    assert "No rule could be run" in said and "were both answered" in said
    assert pd.read_csv(tmp_path / "results" / "rules.csv")["n_components"].isna().all()
