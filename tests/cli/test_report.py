"""``icqf report``: names after the fit."""

import pytest
from click.testing import CliRunner

from icqf.cli.program import cli
from icqf.datasets import demo_paths
from icqf.workflow.naming import report_in, save_report


def made(out, *more):
    answers, codebook = demo_paths()
    words = ["fit", str(answers), "--codebook", str(codebook), "--items", "q00*", "q01*"]
    words += ["--n-components", "2", "--beta", "0.1", "--bootstrap", "5", "--out", str(out), "-q", *more]
    assert CliRunner().invoke(cli, words).exit_code == 0
    return out


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    return made(tmp_path_factory.mktemp("report") / "results")


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """Results without figures, which tests may name."""
    return made(tmp_path_factory.mktemp("named") / "results", "--no-figures")


def test_names_are_told_and_shown(run, named):
    result = run("report", named, "--names", "Acting out", "Holding in")
    assert result.exit_code == 0 and "Names of the factors: Acting out, Holding in." in result.stdout
    assert "\nActing out: " in result.stdout
    assert "\nHolding in\n" in run("show", named / "model.icqf").stdout
    answers, _ = demo_paths()
    assert run("score", named / "model.icqf", answers).stdout.startswith(
        "child_id,Acting out,Acting out_low,"
    )
    assert run("report", named, "--names", "factor2=Quiet", "-q").stdout == ""
    assert "Quiet" in (named / "report.md").read_text(encoding="utf-8")
    commas = run("report", named, "--names", "Temper, rudeness", "Worry")
    assert "Names of the factors: Temper, rudeness, Worry." in commas.stdout


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["a"], "There is 1 name for 2 factors. Give one name for each factor, in their order, or some of"),
        (["factor3=a"], "There is no factor 'factor3'."),
        (["b", "B"], "Two factors are named 'B'"),
        (["factor2", "x"], "which has another number"),
    ],
)
def test_names_that_cannot_be(run, fitted, names, said):
    result = run("report", fitted, "--names", *names)
    assert result.exit_code == 2 and said in result.stderr


def test_another_order_is_refused_with_the_way_out(run, named):
    run("report", named, "--names", "One", "Two")
    result = run("report", named, "--names", "Two", "One")
    assert result.exit_code == 2
    assert "'Two' was given to factor 1" in result.stderr and "edit the column name of" in result.stderr


def test_a_folder_without_results(run, tmp_path):
    result = run("report", tmp_path)
    assert result.exit_code == 2 and "contains no results of icqf fit" in result.stderr
    assert run("report", tmp_path / "none").exit_code == 2


def test_plot_writes_one_figure(run, fitted, tmp_path):
    listed = run("plot", fitted).stdout.split()
    assert {"heatmap", "top-items", "scores"} <= set(listed)
    for name in listed:
        for ending in ("pdf", "svg"):
            out = tmp_path / f"{name}.{ending}"
            result = run("plot", fitted, name, "--out", out, "--columns", "1")
            assert result.exit_code == 0 and out.stat().st_size > 1000, result.stderr
    again = run("plot", fitted, "heatmap", "--out", tmp_path / "heatmap.pdf")
    assert again.exit_code == 2 and "--force" in again.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["heatmp"], "'heatmp' is not a figure"),
        (["splits"], "is not among these results"),
        (["scores", "--out", "x.doc"], "use one of these endings"),
        (["scores", "--columns", "3"], "--columns"),
        (["scores", "--items", "8"], "--items is for the figure top-items"),
        (["heatmap", "--factor", "factor1"], "--factor is for the figure top-items"),
        (["top-items", "--factor", "Nobody", "--out", "x.pdf"], "There is no factor 'Nobody'"),
        (["scores", "--out", "no/such/x.pdf"], "does not exist"),
    ],
)
def test_plots_that_cannot_be(run, fitted, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    result = run("plot", fitted, *words)
    assert result.exit_code == 2 and said in result.stderr and list(tmp_path.iterdir()) == []


def test_results_hold_figures_and_tables(fitted):
    figures = {path.name for path in (fitted / "figures").iterdir()}
    assert {"heatmap.png", "scores.png"} <= figures
    assert (fitted / "tables.tex").is_file() and (fitted / "tables.docx").is_file()


def test_no_figures_without_a_report(run, usual, tmp_path):
    assert run("fit", *usual, "--no-report", "-q", "--out", tmp_path / "results").exit_code == 0
    result = run("plot", tmp_path / "results")
    assert result.exit_code == 2 and "the fit wrote no report" in result.stderr


def test_the_whole_report_in_another_format(run, fitted, tmp_path):
    file = tmp_path / "whole.docx"
    result = run("report", fitted, "--save-as", file)
    assert result.exit_code == 0 and f"The whole report is in {file}." in result.stdout
    assert file.read_bytes().startswith(b"PK")
    again = run("report", fitted, "--save-as", file)
    assert again.exit_code == 2 and "already exists" in again.stderr
    begins = {"tex": b"% ", "txt": b"Factors behind", "md": b"# Factors", "json": b"{", "html": b"<!DOCTYPE"}
    for ending, start in begins.items():
        save_report(report_in(fitted), tmp_path / f"whole.{ending}")
        assert (tmp_path / f"whole.{ending}").read_bytes().startswith(start)


def test_a_report_in_a_format_that_does_not_exist_changes_nothing(run, fitted, tmp_path):
    before = {path.name: path.stat().st_mtime_ns for path in fitted.iterdir()}
    result = run("report", fitted, "--names", "factor1=Other", "--save-as", tmp_path / "whole.odt")
    assert result.exit_code == 2 and ".docx" in result.stderr
    assert {path.name: path.stat().st_mtime_ns for path in fitted.iterdir()} == before
