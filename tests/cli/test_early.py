"""What cannot be written is said before anything is computed, and after what is wrong with the input."""

import os
import re
import shutil
import subprocess
import sys
import types

import pandas as pd
import pytest

from icqf.io import write as write_module
from icqf.workflow import fit as fit_module
from icqf.workflow import results_folder as places


@pytest.fixture
def no_fit(monkeypatch):
    """Fails as soon as anything is computed."""

    def computed(*_, **__):
        raise AssertionError("something was computed")

    monkeypatch.setattr(fit_module, "searcher", computed)
    monkeypatch.setattr(fit_module, "model_of", computed)


def refused(result):
    """The one sentence with which a command ends."""
    assert result.exit_code == 2, result.output
    assert result.stdout == "" and result.stderr.count("Error: ") == 1
    return result.stderr.partition("Error: ")[2].strip()


@pytest.mark.parametrize("form", ["xlsx", "sav", "parquet"])
def test_a_missing_writer(run, usual, tmp_path, monkeypatch, no_fit, left_behind, form):
    monkeypatch.setattr(write_module, "find_spec", lambda name: None)
    said = refused(run("fit", *usual, "--format", form, "--out", tmp_path / "out"))
    assert f"writing .{form} tables needs the package" in said and "icqf[io]" in said
    said = refused(run("select", *usual[:-2], "--beta", "0", "0.1", "--out", tmp_path / f"cv.{form}"))
    assert f"cv.{form}: writing .{form} tables needs the package" in said
    assert left_behind() == []


def test_a_full_disk(run, usual, tmp_path, monkeypatch, no_fit, left_behind):
    full = types.SimpleNamespace(free=10_000)
    monkeypatch.setattr(places.shutil, "disk_usage", lambda place: full)
    said = refused(run("fit", *usual, "--out", tmp_path / "out"))
    assert said.startswith("out: the disk is full, so it was not written") and "Free some space" in said
    assert left_behind() == []


@pytest.mark.parametrize("words", [("fit",), ("stability", "--splits", "1")])
def test_a_folder_that_takes_nothing(run, usual, no_fit, words):
    """/proc takes no file, whoever asks."""
    command, *more = words
    said = refused(run(command, *usual, *more, "--out", "/proc/out"))
    assert said.startswith("/proc/out") and "the folder '/proc' is not writable" in said


def test_existing_results(run, usual, results, tmp_path, no_fit):
    shutil.copytree(results, tmp_path / "out")
    assert "already contains results" in refused(run("fit", *usual, "--out", tmp_path / "out"))


def test_input_errors_come_first(run, files, results, tmp_path, no_fit):
    """Both are wrong: what was typed for the input is said, as nobody can fix a place for nothing."""
    table, codebook = files / "answers.csv", files / "items.csv"
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "stability.md").write_text("earlier")
    (tmp_path / "there.csv").write_text("earlier")
    for words in (
        ("fit", table, "--codebook", codebook, "--confounds", "aeg", "--out", results),
        ("select", table, "--codebook", codebook, "--confounds", "aeg", "--out", tmp_path / "there.csv"),
        ("stability", table, "--codebook", codebook, "--confounds", "aeg", "--out", tmp_path / "page"),
    ):
        assert "'aeg'" in refused(run(*words))
    assert "no such file" in refused(run("fit", files / "answer.csv", "--out", results))
    words = ("score", results / "model.icqf", table, "--id", "nobody", "--out", tmp_path / "there.csv")
    assert "'nobody'" in refused(run(*words))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("--seed", "9" * 400),
            f"--seed must be a whole number of at most 4294967295, not {'9' * 47}…{'9' * 51}.",
        ),
        (("--seed", "4294967296"), "--seed must be a whole number of at most 4294967295, not 4294967296."),
        (("--bootstrap", "1"), "--bootstrap must be at least 2 resamples, or 0 for none, not 1."),
        (
            ("--names", "Worry", "Temper", "Sleep"),
            "--names has 3 names, but the number of factors is 2. Set --n-components 3, or omit the names "
            "until the number is known.",
        ),
    ],
)
def test_options_are_checked_before_the_fit(run, usual, tmp_path, no_fit, left_behind, words, sentence):
    assert refused(run("fit", *usual, *words, "--out", tmp_path / "out")) == sentence
    assert left_behind() == []


def test_names_wait_for_the_number_of_factors(run, files, tmp_path, no_fit):
    words = ("fit", files / "answers.csv", "--codebook", files / "items.csv", "--names", "Worry")
    said = refused(run(*words, "--out", tmp_path / "out"))
    assert "the number of factors is chosen by cross-validation" in said


def test_a_share_that_leaves_nobody(run, usual, tmp_path):
    words = ("stability", *usual, "--sizes", "0.001", "--methods", "icqf", "--splits", "1")
    said = refused(run(*words, "--out", tmp_path / "out"))
    assert said == "--sizes holds 0.001, which leaves 0 participants to fit to; give shares of at least 0.1."


def test_a_path_with_nul(run, usual, tmp_path):
    for words in (("check", "answers\0.csv"), ("fit", *usual, "--out", tmp_path / "x\0y")):
        result = run(*words)
        assert result.exit_code == 2 and "A path cannot contain the character NUL." in result.stderr


def test_pipes_and_links_to_nothing(run, usual, tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "link.csv").symlink_to("nowhere.csv")
    (tmp_path / "link").symlink_to("nowhere")
    pipe = "pipe.csv: this is a pipe or a device, not a file on a disk; save it as a file."
    link = "this is a link to 'nowhere{}', which does not exist."
    for name, said in (("pipe.csv", pipe), ("link.csv", f"link.csv: {link.format('.csv')}")):
        assert refused(run("check", tmp_path / name)) == said
        assert refused(run("fit", usual[0], "--codebook", tmp_path / name)) == said
        assert refused(run("score", tmp_path / name, usual[0])).startswith(str(tmp_path / name))
    said = refused(run("fit", *usual, "--out", tmp_path / "link"))
    assert link.format("") in said and said.endswith("Remove the link, or choose another path.")
    words = ("select", *usual[:-2], "--beta", "0", "0.1", "--out", tmp_path / "link.csv")
    assert link.format(".csv") in refused(run(*words))
    assert not (tmp_path / "nowhere").exists()


def test_a_disk_that_fills_up(results, files, tmp_path):
    """A file may grow to 100 bytes: every writer ends in the same sentence, and leaves nothing."""
    forms = ("csv", "sav", "xlsx", "parquet")
    program = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))\n"
        "from icqf.cli import main\n"
        f"for form in {forms}:\n"
        "    sys.argv[-1] = f'scores.{form}'\n"
        "    try:\n"
        "        main()\n"
        "    except SystemExit as end:\n"
        "        print(end.code)\n"
    )
    words = ["score", results / "model.icqf", files / "answers.csv", "--quiet", "--out", "scores"]
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, words)],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.stderr == "".join(
        f"Error: scores.{form}: the disk is full, so it was not written; an earlier version is unchanged. "
        "Free some space, or choose another place.\n"
        for form in forms
    )
    assert done.stdout == "2\n" * len(forms) and list(tmp_path.iterdir()) == []


def test_quiet_commands_say_nothing(run, usual, results, tmp_path):
    table = ("select", *usual[:-2], "--beta", "0", "0.1", "--n-splits", "3", "--out", tmp_path / "cv.csv")
    score = ("score", results / "model.icqf", usual[0], "--out", tmp_path / "scores.csv")
    parts = ("--methods", "icqf", "--sizes", "0.8", "--splits", "1", "--n-splits", "3")
    stability = ("stability", *usual, *parts, "--out", tmp_path / "page")
    for words in (table, score, stability):
        result = run(*words, "--quiet")
        assert (result.exit_code, result.output) == (0, ""), words[0]
    # The page tells of the one split and of the one method that ran.
    page = (tmp_path / "page" / "stability.md").read_text()
    assert "In one split, every method" in page and "1 splits" not in page
    assert "NMF" not in page and "promax" not in page and "Wilcoxon" not in page


def test_a_report_of_two_items(run, files, tmp_path):
    words = ("fit", files / "answers.csv", "--codebook", files / "items.csv", "--items", "q01", "q02")
    result = run(*words, "--n-components", "1", "--beta", "0.1", "--report", "--out", tmp_path / "out")
    assert result.exit_code == 0 and (tmp_path / "out" / "report.html").exists()


@pytest.mark.parametrize(
    ("column", "value"),
    [("q05", "7"), ("q05", "often"), ("q05", "inf"), ("record_id", "001"), ("record_id", ""), ("age", "old")],
)
def test_fit_and_check_name_the_same_row(run, files, tmp_path, column, value):
    table = pd.read_csv(files / "answers.csv", dtype=str, keep_default_na=False)
    table.loc[20, column] = value
    table.to_csv(tmp_path / "answers.csv", index=False)
    words = (tmp_path / "answers.csv", "--codebook", files / "items.csv", "--confounds", "age", "sex")
    places = [
        set(re.findall(r"rows? (?:2 and )?22|'021'", run(*command).output))
        for command in (("check", *words), ("fit", *words, "--out", tmp_path / "out"))
    ]
    assert places[0] == places[1] and places[0]


def test_cells_beyond_the_header_are_not_lost(run, tmp_path):
    for row, found in (
        ("1,2,3,4", "row 2 has 4 cells"),
        (',,0",,', "the first row of answers has more cells"),
    ):
        (tmp_path / "answers.csv").write_text(f"q1,q2,q3\n{row}\n")
        said = refused(run("fit", tmp_path / "answers.csv", "--out", tmp_path / "out"))
        assert said.startswith(f"answers.csv: {found}")
