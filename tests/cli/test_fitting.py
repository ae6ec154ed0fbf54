"""`icqf fit` writes all of its results or none of them, and says where they come from."""

import hashlib
import json
import re
import shutil
import tomllib

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF
from icqf.io import atomic, read_table
from icqf.workflow import fit as results_module

NAMES = [
    "config.toml",
    "confound_loadings.csv",
    "factors.csv",
    "figures",
    "loadings.csv",
    "model.icqf",
    "provenance.json",
    "report.html",
    "report.json",
    "report.md",
    "scores.csv",
    "tables.docx",
    "tables.tex",
]
FIGURES = (
    "heatmap",
    "diagram",
    "top-items",
    "scree",
    "scores",
    "correlations",
    "factor-analysis",
    "convergence",
)


def contents(folder):
    """Every file in a folder and the folders in it, byte for byte."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_files(results):
    assert sorted(path.name for path in results.iterdir()) == NAMES


def test_factors_come_with_their_replication_probability(results, run):
    factors = pd.read_csv(results / "factors.csv", index_col="factor")
    model = ICQF.load(results / "model.icqf")
    assert list(factors.index) == ["factor1", "factor2"] and model.replication_ is not None
    np.testing.assert_allclose(factors["probability"], model.replication_["probability"], atol=1e-6)
    shown = run("show", results / "model.icqf")
    assert len(re.findall(r"like\s+this\s+one", shown.stdout)) >= 3  # of two factors, and what that means
    page = (results / "report.md").read_text()
    assert page.count("like this one") >= 2 and "replication probability of one half or more" in page


def test_scores_are_keyed_by_participant(results, files):
    answers = pd.read_csv(files / "answers.csv", dtype=str)
    scores = pd.read_csv(results / "scores.csv", dtype={"record_id": str})
    assert list(scores.columns) == ["record_id", "factor1", "factor2"]
    assert list(scores["record_id"]) == list(answers["record_id"])
    silent = scores[scores["record_id"] == "006"]
    assert silent[["factor1", "factor2"]].isna().all(axis=None)
    assert scores.notna().all(axis=1).sum() == len(scores) - 1


def fitted(run, files, out, *words):
    """The fit's own record, its model, and its report."""
    usual = (files / "answers.csv", "--codebook", files / "items.csv", "--n-components", 2, "--beta", 0.1)
    assert run("fit", *usual, *words, "--report", "--out", out).exit_code == 0
    record = json.loads((out / "provenance.json").read_text())
    return record, ICQF.load(out / "model.icqf"), (out / "report.md").read_text()


def test_the_papers_settings_are_used_and_named(run, files, tmp_path):
    record, model, page = fitted(run, files, tmp_path / "paper", "--paper")
    assert record["options"]["paper"] is True
    paper = ICQF.paper(2, beta=0.1)
    for name in ("solver", "rho", "tol", "stop", "n_init", "item_weight", "init"):
        assert getattr(model, name) == getattr(paper, name), name
    assert "alternating direction method of multipliers (ADMM; ρ = 3)" in page
    assert "relative change of the objective below 0.001" in page and "starts (non-negative" not in page
    config = tmp_path / "paper" / "config.toml"
    assert tomllib.loads(config.read_text())["paper"] is True
    read = (files / "answers.csv", "--codebook", files / "items.csv")
    refused = run("fit", *read, "--paper", "--tol", 0.01, "--out", tmp_path / "no")
    assert refused.exit_code != 0 and "--tol 0.01 contradicts the paper, which has 0.001" in refused.stderr


def test_loadings_may_have_a_penalty_of_their_own(run, files, results, tmp_path):
    record, model, page = fitted(run, files, tmp_path / "own", "--loading-beta", 0.5)
    assert record["options"]["loading_beta"] == 0.5
    assert (model.beta, model.loading_beta) == (0.1, 0.5)
    assert "on scores (β = 0.1) and on loadings (β = 0.5)" in page
    assert "on scores and loadings (β = 0.1)" in (results / "report.md").read_text()


def test_loadings_are_keyed_by_item(results):
    loadings = pd.read_csv(results / "loadings.csv", index_col="item")
    assert list(loadings.index[:2]) == ["q01", "q02"]
    model = ICQF.load(results / "model.icqf")
    np.testing.assert_allclose(loadings, model.loadings_, atol=1e-6)
    confounds = pd.read_csv(results / "confound_loadings.csv", index_col="item")
    assert list(confounds) == ["Old", "Young", "f", "m", "Intercept"]
    # The reverse-keyed item was reversed, and so goes with the others of its scale.
    assert loadings.loc["q03"].idxmax() == loadings.loc["q01"].idxmax()


def test_items_of_different_ranges(run, files, usual, tmp_path):
    """A codebook with a 0-9 item: by default all count alike, and what was asked for is in every file."""
    mixed = pd.read_csv(files / "items.csv", dtype=str)
    mixed.loc[0, "max"] = "6"
    mixed.to_csv(tmp_path / "mixed.csv", index=False)
    words = [tmp_path / "mixed.csv" if word == files / "items.csv" else word for word in usual]
    scales = {}
    for kind in ("", "range", "none", "variance"):
        out = tmp_path / f"results{kind}"
        asked = ("--item-weight", kind) if kind else ()
        result = run("fit", *words, *asked, "--report", "--out", out)
        assert result.exit_code == 0, result.output
        assert tomllib.loads((out / "config.toml").read_text())["item_weight"] == (kind or "range")
        model = ICQF.load(out / "model.icqf")
        assert model.item_weight == (None if kind == "none" else kind or "range")
        scales[kind] = model.item_scale_
        page = (out / "report.md").read_text()
        said = {"none": "items with wide ranges count more", "variance": "standard deviation of its"}
        assert said.get(kind, "divided by the width of its answer range") in page
        again = run("fit", "--config", out / "config.toml", "--no-report", "--out", tmp_path / f"again{kind}")
        assert again.exit_code == 0
        loadings = [(folder / "loadings.csv").read_text() for folder in (out, tmp_path / f"again{kind}")]
        assert loadings[0] == loadings[1]
    np.testing.assert_array_equal(scales[""], [1.0] + [2.0] * 11)
    np.testing.assert_array_equal(scales[""], scales["range"])
    assert (scales["none"] == 1).all() and len(set(scales["variance"])) > 2
    refused = run("fit", *words, "--item-weight", "width", "--out", tmp_path / "no")
    assert refused.exit_code == 2 and "'range', 'variance', 'none'" in refused.stderr


def test_provenance(results, files):
    provenance = json.loads((results / "provenance.json").read_text())
    fingerprints = {entry["file"]: entry["sha256"] for entry in provenance["inputs"]}
    for name in ("answers.csv", "items.csv"):
        assert fingerprints[name] == hashlib.sha256((files / name).read_bytes()).hexdigest()
    assert provenance["seed"] == 0 and provenance["options"]["n_components"] == [2]
    assert {"icqf", "python", "numpy", "scipy", "pandas", "scikit-learn"} <= set(provenance["versions"])
    assert provenance["rows"]["in"] == provenance["rows"]["out"] == 80
    assert provenance["rows"]["fitted"] == provenance["rows"]["scored"] == 79
    assert provenance["rows"]["left_out"] == [
        {"n": 1, "why": "answered nothing", "then": "kept out of the fit, empty scores"}
    ]
    assert any("9 was read as missing" in note for note in provenance["notes"])
    assert "1 participant answered nothing: kept out of the fit." in provenance["warnings"]
    files = [f"figures/{name}.png" for name in FIGURES]
    assert provenance["outputs"] == sorted([*(name for name in NAMES if name != "figures"), *files])


def test_a_run_is_repeated_from_its_own_config(run, results, tmp_path):
    result = run("fit", "--figures", "--config", results / "config.toml", "--out", tmp_path / "again")
    assert result.exit_code == 0
    again = contents(tmp_path / "again")
    for name, content in contents(results).items():
        if name not in ("provenance.json", "config.toml"):
            assert again[name] == content, name
    first, second = (tomllib.loads((at / "config.toml").read_text()) for at in (results, tmp_path / "again"))
    assert {k: v for k, v in first.items() if k not in ("answers", "codebook")} == {
        k: v for k, v in second.items() if k not in ("answers", "codebook")
    }


def test_the_command_line_comes_before_the_config(run, results, tmp_path):
    run("fit", "--config", results / "config.toml", "--n-components", "3", "--out", tmp_path / "three")
    assert len(ICQF.load(tmp_path / "three" / "model.icqf").components_) == 3


def test_results_go_to_stdout_and_messages_to_stderr(run, usual, tmp_path):
    result = run("fit", *usual, "--out", tmp_path / "out")
    assert result.stdout.startswith("2 factors behind 12 items, from 79 participants")
    assert "Question q" in result.stdout and str(tmp_path / "out") in result.stdout
    assert result.stderr.startswith("What will be analysed (answers.csv):\n  Items         12: q01–q12\n")
    assert (
        "  Participants  79 of 80 rows, with the ids in 'record_id'; left out: 1 (answered nothing)\n"
        in result.stderr
    )
    assert "9 was read as missing" in result.stderr
    quiet = run("fit", *usual, "--out", tmp_path / "out", "--force", "--quiet")
    assert (quiet.exit_code, quiet.output) == (0, "")


def test_existing_results_are_kept_without_force(run, usual, tmp_path):
    out = tmp_path / "out"
    assert run("fit", *usual, "--out", out).exit_code == 0
    before = contents(out)
    result = run("fit", *usual, "--seed", "1", "--out", out)
    assert result.exit_code == 2 and "--force" in result.stderr
    assert before == contents(out)
    assert run("fit", *usual, "--format", "parquet", "--out", out, "--force").exit_code == 0
    assert not (out / "scores.csv").exists() and (out / "scores.parquet").exists()


def test_files_of_others_are_never_replaced(run, usual, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("years of work")
    assert run("fit", *usual, "--out", out, "--force").exit_code == 2
    assert (out / "thesis.txt").read_text() == "years of work"
    (out / "thesis.txt").unlink()
    assert run("fit", *usual, "--out", out).exit_code == 0
    (out / "thesis.txt").write_text("years of work")
    result = run("fit", *usual, "--out", out, "--force")
    assert result.exit_code == 2 and "thesis.txt" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("at", ["_named", "_config", "provenance_of"])
def test_an_error_leaves_the_old_results(run, usual, tmp_path, monkeypatch, left_behind, at):
    out = tmp_path / "out"
    run("fit", *usual, "--out", out)
    before = contents(out)

    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device", "scores.csv")

    with monkeypatch.context() as patch:
        if at == "provenance_of":
            patch.setattr(results_module, at, fail)
        else:
            writers = [fail if w.__name__ == at else w for w in results_module.WRITERS]
            patch.setattr(results_module, "WRITERS", writers)
        result = run("fit", *usual, "--seed", "3", "--out", out, "--force")
    assert result.exit_code == 2 and "the disk is full" in result.stderr
    assert before == contents(out)
    assert not [name for name in left_behind() if name.startswith(".")]


def test_results_that_a_crash_set_aside_come_back(run, usual, results, tmp_path, left_behind):
    out = tmp_path / "out"
    with atomic._own_folder(out) as own:  # as between the two renames of a replacement
        shutil.copytree(own, tmp_path / ".out.0123abcd.partial")
    shutil.copytree(results, tmp_path / ".out.0123abcd.partial" / "old")
    (tmp_path / ".out.0123abcd.partial" / "new").mkdir()
    result = run("fit", *usual, "--out", out)
    assert result.exit_code == 2 and "already contains results" in result.stderr
    assert sorted(path.name for path in out.iterdir()) == NAMES
    assert run("fit", *usual, "--out", out, "--force", "--format", "xlsx").exit_code == 0
    assert (out / "scores.xlsx").exists() and not (out / "scores.csv").exists()
    assert not [name for name in left_behind() if name.startswith(".")]


@pytest.mark.parametrize("format", ["sav", "parquet", "xlsx"])
def test_formats(run, usual, results, tmp_path, format):
    out = tmp_path / "out"
    assert run("fit", *usual, "--out", out, "--format", format).exit_code == 0
    written = read_table(out / f"scores.{format}").frame
    scores = pd.read_csv(results / "scores.csv")
    np.testing.assert_allclose(
        written["factor1"].to_numpy(dtype=float), scores["factor1"].to_numpy(), atol=1e-6, equal_nan=True
    )
    assert [str(name) for name in written.iloc[:, 0]] == [f"{i:03d}" for i in range(1, 81)]


@pytest.mark.parametrize(
    ("words", "n_items"),
    [
        (("--items", "q01", "q02", "q03"), 3),
        (("--items", "q0*"), 9),
        (("--items=q01,q02,q03,q04",), 4),
        (("--subscales", "Temper"), 6),
        (("--subscales", "Temper", "--items", "q01"), 7),
    ],
)
def test_item_selection(run, usual, tmp_path, words, n_items):
    assert run("fit", *usual, *words, "--out", tmp_path / "out").exit_code == 0
    assert len(ICQF.load(tmp_path / "out" / "model.icqf").loadings_) == n_items


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--confounds", "agee"), "Did you mean 'age'?"),
        (("--items", "q0", "z*"), "No item is named or matches"),
        (("--subscales", "Moood"), "Did you mean 'Mood'?"),
        (("--n-components", "two"), "--n-components must be 'auto'"),
        (("--n-components", "50"), "--n-components 2, 50 cannot be tried"),
        (("--beta", "-1"), "--beta must be a number of at least 0, not -1"),
        (("--weights", "sex"), "the weight in column 'sex'"),
        (("--weights", "nope"), "there is no column 'nope' to use as the weight"),
        (("--id", "weight"), "If these are not ids of participants, name another column"),
        (("--id", "sex"), "the column 'sex' holds participant ids, so it cannot be a confound"),
        (("--confounds", "record_id"), "the column 'record_id' holds participant ids"),
        (("--confound-ranges", "age=20:5"), "lower end"),
        (("--seed", "-1"), "--seed must be a whole number of at least 0, not -1."),
        (("--config", "no-such.toml"), "no-such.toml"),
        (("--out", "no/such/folder"), "no/such"),
    ],
)
def test_options_that_cannot_be(run, usual, tmp_path, left_behind, words, said):
    out = () if "--out" in words else ("--out", tmp_path / "out")
    result = run("fit", *usual, *words, *out)
    assert result.exit_code == 2
    assert said in result.stderr
    assert left_behind() == []


def test_a_config_with_an_unknown_option(run, tmp_path):
    (tmp_path / "run.toml").write_text('answers = "a.csv"\nn_component = 3\n')
    result = run("fit", "--config", tmp_path / "run.toml")
    assert result.exit_code == 2
    assert "run.toml: There is no option 'n_component'. Did you mean 'n_components'?" in result.stderr


def test_weights_of_zero_are_scored_but_not_fitted(run, usual, tmp_path):
    out = tmp_path / "out"
    assert run("fit", *usual, "--weights", "weight", "--out", out).exit_code == 0
    provenance = json.loads((out / "provenance.json").read_text())
    assert provenance["rows"]["fitted"] == 78 and provenance["rows"]["scored"] == 79
    assert {entry["why"] for entry in provenance["rows"]["left_out"]} == {"answered nothing", "weight 0"}


def test_a_suspicious_code_is_refused_and_never_widens_a_range(run, files, tmp_path, left_behind):
    words = ("fit", files / "answers.csv", "--items", "q*", "--n-components", "2", "--beta", "0.1")
    result = run(*words, "--out", tmp_path / "out")
    assert result.exit_code == 2 and left_behind() == []
    assert "holds 9, far from the answers of its family of 12 items, 0 to 3 (row " in result.stderr
    assert (
        "If 9 marks a missing answer, add --missing-codes 9; if not, declare the item's range in a codebook."
        in (result.stderr)
    )


def test_observed_ranges_are_announced(run, files, tmp_path):
    result = run(
        *("fit", files / "answers.csv", "--items", "q*", "--missing-codes", "9"),
        *("--n-components", "2", "--beta", "0.1", "--out", tmp_path / "out"),
    )
    assert result.exit_code == 0
    said = "  Ranges        0 to 3, not declared: the lowest and highest answer of a family of 12 items\n"
    assert said in result.stderr


def test_consensus_averages_and_says_so(run, usual, results, tmp_path):
    words = ("fit", *usual, "--consensus", "--report")
    said = run(*words, "--out", tmp_path / "average")
    assert said.exit_code == 0, said.stderr
    assert "Its loadings are averages over 20 fits." in said.stdout
    average, plain = (ICQF.load(folder / "model.icqf") for folder in (tmp_path / "average", results))
    assert average.n_averaged_ == 20 and not np.allclose(average.components_, plain.components_)
    report = (tmp_path / "average" / "report.md").read_text()
    assert "averages over 20 fits" in report and "averages over fits to 20 bootstrap resamples" in report
    assert "converged after" not in report and "had not converged" not in said.stdout
    assert tomllib.loads((tmp_path / "average" / "config.toml").read_text())["consensus"] is True
    scores = pd.read_csv(tmp_path / "average" / "scores.csv")[["factor1", "factor2"]]
    assert scores.min(axis=None) >= 0 and scores.max(axis=None) <= 1
    shown = run("show", tmp_path / "average" / "model.icqf")
    assert "averages over 20 fits" in shown.stdout
    again = run("fit", "--config", tmp_path / "average" / "config.toml", "--out", tmp_path / "again")
    assert again.exit_code == 0
    for name in ("model.icqf", "scores.csv"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "average" / name).read_bytes()


def test_progress_is_kept_in_a_file(run, files, tmp_path):
    asked = (
        files / "answers.csv",
        "--codebook",
        files / "items.csv",
        "--n-components",
        "1-2",
        "--n-splits",
        "3",
    )
    kept = tmp_path / "progress.json"
    done = run("fit", *asked, "--beta", "0.1", "--out", tmp_path / "results", "--progress", kept, "--quiet")
    assert done.exit_code == 0 and done.stderr == ""
    last = json.loads(kept.read_text())
    known = {"program": "icqf", "file": "progress"}  # by which it may be replaced
    said = {"what": "Writing the tables", "text": "a few seconds left", "done": 0, "total": 0}
    assert 0 < last.pop("share") <= 1 and last == known | said
    wrong = run("fit", *asked, "--out", tmp_path / "again", "--progress", tmp_path / "no" / "p.json")
    assert wrong.exit_code == 2 and "does not exist" in wrong.stderr
