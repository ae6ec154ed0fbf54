"""The paper's experiments 1 to 3 as commands: quick forms, one's own study, exports of the real studies."""

import re

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from icqf.cli.program import cli
from icqf.datasets import make_cohort
from icqf_experiments.exports import SYNDROME_OF

pytestmark = pytest.mark.slow

TINY = ("--quick", "--splits", "1")


def run(*words):
    result = CliRunner().invoke(cli, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """A folder that the experiments share, as a user's would."""
    return tmp_path_factory.mktemp("reproduced")


def page_of(result, out, name):
    assert result.exit_code == 0, result.stderr
    text = (out / f"{name}.md").read_text(encoding="utf-8")
    assert text.strip() == result.stdout.strip()
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert (out / link).stat().st_size > 100, link
    return text


@pytest.mark.long
def test_diagnosis_compares_six_methods_and_says_so_in_words(out):
    result = run("reproduce", "diagnosis", *TINY, "--jobs", 2, "--out", out)
    text = page_of(result, out, "diagnosis")
    for method in ("ICQF", "l1-NMF", "FA-promax", "FA-promax same k", "subscale sums", "all items"):
        assert f"| {method} |" in text
    assert "icqf reproduce diagnosis --quick" in text
    assert "splits are too few to test" in text  # one split proves nothing
    assert "a trial, not a result" in text
    table = pd.read_csv(out / "diagnosis-hbn.csv")
    assert table["auc"].between(0, 1).all()
    assert set(table["size"]) == {0.8, 0.2}


@pytest.mark.long
def test_stability_and_replication_stand_beside_the_papers_table(out):
    text = page_of(run("reproduce", "stability", *TINY, "--out", out), out, "stability")
    assert re.search(r"\| ICQF \| [01]\.\d{3} \\?\[0\.89\\?\] \|", text)
    assert "Correlation with the true loadings" in text and "Closest to the truth: " in text
    text = page_of(run("reproduce", "replication", *TINY, "--out", out), out, "replication")
    assert "0.75 (0.07)" in text
    assert "HBN (simulated): 400 participants, 119 items, 10 labels ↔ ABCD" in text


@pytest.mark.long
def test_loadings_stand_side_by_side_with_the_truth(out):
    text = page_of(run("reproduce", "loadings", *TINY, "--out", out), out, "loadings")
    row = next(line for line in text.splitlines() if line.startswith("| ICQF |"))
    assert float(row.split("|")[-3]) > 0.9  # mean correlation with the truth
    assert (out / "loadings-hbn-icqf.csv").exists()
    counts = pd.read_csv(out / "loadings-recovery.csv").pivot(index="study", columns="method")["n_components"]
    assert (counts["FA-promax same k"] == counts["ICQF"]).all()


@pytest.mark.long
def test_public_studies_with_labels(tmp_path):
    text = page_of(
        run("reproduce", "diagnosis", *TINY, "--study", "help", "phq9", "--out", tmp_path),
        tmp_path,
        "diagnosis",
    )
    assert "## HELP (CES-D and InDUC): 400 participants, 70 items, 6 labels" in text
    assert "## NHANES PHQ-9: 400 participants, 9 items, 1 label" in text
    assert "simulated" not in text


@pytest.mark.long
def test_public_studies_with_gaps_by_design(tmp_path):
    text = page_of(
        run("reproduce", "stability", *TINY, "--study", "msq", "bfi", "--out", tmp_path),
        tmp_path,
        "stability",
    )
    assert "## msq (mood words): 400 participants, 75 items" in text
    assert {"ICQF", "l1-NMF"} <= set(pd.read_csv(tmp_path / "stability-msq.csv")["method"])
    methods = set(pd.read_csv(tmp_path / "stability-bfi.csv")["method"])
    assert methods == {"ICQF", "l1-NMF", "FA-promax", "FA-promax same k"}


def test_a_finished_run_is_not_run_again(tmp_path):
    words = ("reproduce", "stability", *TINY, "--study", "phq9", "--out", tmp_path)
    first = run(*words).stdout
    before = (tmp_path / "fits-phq9-quick.journal").read_bytes()
    assert run(*words).stdout == first
    assert (tmp_path / "fits-phq9-quick.journal").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("diagnosis", "--study", "bfi", "--quick"), "has no labels to predict"),
        (("diagnosis", "--study", "hbm"), "'hbm' is not one of"),
        (("replication", "--study", "hbn"), "Give two studies"),
        (("stability", "--abcd", "x.txt"), "--study does not include abcd"),
        (("stability", "--hbn", "nowhere.csv"), "nowhere.csv"),
    ],
)
def test_wishes_that_cannot_be_met_are_refused(words, message, tmp_path):
    result = run("reproduce", *words, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """A study in the layout of HBN's exports, with simulated answers."""
    folder = tmp_path_factory.mktemp("hbn")
    cohort = make_cohort("hbn", 150)
    participants = [f"NDARAA{i:03d},assessment" for i in range(150)]
    columns = [f"CBCL,{name.upper()}" for name in SYNDROME_OF]
    answers = (
        cohort.questionnaire.answers.set_axis(columns, axis=1)
        .set_axis(participants)
        .rename_axis("Identifiers")
    )
    answers.to_csv(folder / "CBCL.csv", float_format="%.0f", na_rep=".")
    who = cohort.questionnaire.confounds
    demos = pd.DataFrame(
        {
            "Basic_Demos,Age": who["age"].to_numpy(),
            "Basic_Demos,Sex": (who["sex"] == "female").astype(int).to_numpy(),
        },
        index=answers.index,
    )
    demos.to_csv(folder / "Demos.csv")
    given = np.where(cohort.diagnoses["adhd"] == 1, "ADHD-Combined Type", "No Diagnosis Given")
    pd.DataFrame({"Diagnosis_ClinicianConsensus,DX_01": given}, index=answers.index).to_csv(folder / "DX.csv")
    return folder


@pytest.mark.long
def test_the_exports_of_the_real_study_take_the_simulated_ones_place(exports, tmp_path):
    demos = pd.read_csv(exports / "Demos.csv")
    demos.loc[:1, "Basic_Demos,Age"] = np.nan
    demos.to_csv(exports / "Demos.csv", index=False)
    files = [exports / name for name in ("CBCL.csv", "Demos.csv", "DX.csv")]
    result = run("reproduce", "diagnosis", *TINY, "--hbn", *files, "--out", tmp_path)
    assert result.exit_code == 0, result.stderr
    assert "## HBN: 148 participants, 119 items, 1 label" in result.stdout
    assert "2 participants without age or sex left out." in result.stdout
    assert "simulated" not in result.stdout
