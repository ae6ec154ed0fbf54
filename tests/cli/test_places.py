"""What a command may replace: results of its own, and nothing that is read or that it did not write."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from icqf.cli.program import COMMANDS
from icqf.datasets import make_battery, make_longitudinal
from icqf.io.write import write_table

# The words of every command that writes a folder, without --out; {} is where its files are.
FOLDERS = {
    "fit": (
        "{}/answers.csv",
        "--codebook",
        "{}/items.csv",
        "--n-components",
        "2",
        "--beta",
        "0.1",
        "--no-report",
    ),
    "longitudinal": ("{}/visits.csv", "--n-components", "1", "--beta", "0.1", "--smoothness", "1"),
    "meta": ("{}/battery", "--n-components", "2", "--beta", "0.1", "--n-meta", "2", "--meta-beta", "0.1"),
    "batch": ("{}/battery", "--n-components", "2", "--beta", "0.1", "--no-report"),
    "plan": ("{}/model.icqf", "--sizes", "50", "--repeats", "1"),
    "shortform": ("{}/model.icqf", "{}/answers.csv", "--max-items", "2"),
    "invariance": ("{}/model.icqf", "{}/answers.csv", "--by", "sex", "--permutations", "19"),
    "norms": ("{}/model.icqf", "{}/answers.csv"),
    "crosswalk": ("{}/both", "--from", "A", "--to", "B"),
    "stability": ("{}/answers.csv", "--codebook", "{}/items.csv", "--methods", "icqf", "--splits", "1"),
    "diagnosis": ("{}/answers.csv", "--codebook", "{}/items.csv", "--labels", "ill", "--splits", "1"),
}
# The same of every command that writes a file.
FILES = {
    "select": ("{}/answers.csv", "--codebook", "{}/items.csv", "--n-components", "1-2", "--beta", "0.1"),
    "score": ("{}/model.icqf", "{}/answers.csv"),
    "codebook": ("{}/answers.csv",),
    "compare": ("{}/model.icqf", "{}/model.icqf"),
}
NEITHER = {
    "app",
    "check",
    "show",
    "describe",
    "report",
    "plot",
    "demo",
    "reproduce",
    "pool",
    "person",
    "preregister",
}  # tested below, or elsewhere


def test_every_command_is_here():
    assert {*COMMANDS} <= {*FOLDERS, *FILES, *NEITHER}


@pytest.fixture(scope="module")
def read(files, results, tmp_path_factory):
    """All that the commands read, in one folder; not to be written to."""
    place = tmp_path_factory.mktemp("read") / "read"
    shutil.copytree(files, place)
    frame = (place / "answers.csv").read_text().splitlines()
    lines = [f"{frame[0]},ill", *(f"{line},{at % 2}" for at, line in enumerate(frame[1:]))]
    (place / "answers.csv").write_text("\n".join(lines) + "\n")
    shutil.copy(results / "model.icqf", place / "model.icqf")
    make_longitudinal(n=80, n_items=6, n_bins=3, k=1).visits.to_csv(place / "visits.csv", index=False)
    (place / "battery").mkdir()
    made = make_battery(n=60, n_items=(5, 5), n_factors=2, n_meta=2, random_state=0).battery
    for name, each in made.instruments.items():
        write_table(each.answers, place / "battery" / f"{name}.csv")
    (place / "both").mkdir()
    made = make_battery(n=80, n_items=(5, 5), n_factors=2, n_meta=2, absent=0.0, random_state=0).battery
    for name, each in made.instruments.items():
        write_table(each.answers, place / "both" / f"{name}.csv")
    return place


def words(command, place):
    return [word.format(place) for word in (FOLDERS | FILES)[command]]


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def as_results(folder, tool):
    """Give a folder the account that results of a command have."""
    names = [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]
    account = {"program": "icqf", "tool": tool, "outputs": sorted({*names, "provenance.json"})}
    (folder / "provenance.json").write_text(json.dumps(account))


@pytest.mark.parametrize("command", FOLDERS)
def test_results_of_another_command_are_kept(run, read, results, tmp_path, command):
    out = tmp_path / "res"
    shutil.copytree(results, out)
    if command == "fit":
        as_results(out, "plan")
    before = contents(out)
    done = run(command, *words(command, read), "--out", out, "--force")
    assert done.exit_code == 2 and "replaces only its own" in done.stderr, done.stderr
    assert contents(out) == before


@pytest.mark.parametrize("command", FOLDERS)
def test_a_folder_of_somebody_else_is_kept(run, read, tmp_path, command):
    out = tmp_path / "res"
    (out / "empty").mkdir(parents=True)
    for name in ("summary.csv", f"{command}.md"):
        (out / name).write_text("of somebody else")
    before = contents(out)
    done = run(command, *words(command, read), "--out", out, "--force")
    assert done.exit_code == 2 and "not results of an earlier run" in done.stderr, done.stderr
    assert contents(out) == before and (out / "empty").is_dir()


def spellings(place, read):
    """The folder and what is read from it, as they may be typed: plain, relative, and through links."""
    yield place, place
    yield place.parent / "other" / ".." / place.name, place
    link = place.parent / "link"
    link.symlink_to(place, target_is_directory=True)
    yield link, place
    yield place, link
    elsewhere = place.parent / "elsewhere"
    for kind in ("symbolic", "hard"):
        copy = elsewhere / kind
        for path in [each for each in place.rglob("*") if each.is_file()]:
            to = copy / path.relative_to(place)
            to.parent.mkdir(parents=True, exist_ok=True)
            to.symlink_to(path) if kind == "symbolic" else os.link(path, to)
        yield place, copy


@pytest.mark.parametrize("command", FOLDERS)
def test_what_is_read_is_never_removed(run, read, tmp_path, monkeypatch, command):
    place = tmp_path / "res"
    shutil.copytree(read, place)
    (tmp_path / "other").mkdir()
    as_results(place, command)
    before = contents(place)
    monkeypatch.chdir(place)
    for out, source in [*spellings(place, read), (Path("."), Path("."))]:
        done = run(command, *words(command, source), "--out", out, "--force")
        assert done.exit_code == 2 and "which would be lost" in done.stderr, (
            out,
            source,
            done.stderr,
        )
        assert contents(place) == before


@pytest.mark.parametrize("command", FILES)
def test_a_file_that_is_read_is_never_replaced(run, read, tmp_path, command):
    place = tmp_path / "res"
    shutil.copytree(read, place)
    before, ending = contents(place), ".icqf" if command == "compare" else ".csv"
    names = ["answers.csv", "items.csv"] if command == "select" else ["answers.csv"]
    for name in names:
        link = tmp_path / f"link-{name}"
        os.link(place / name, link)
        for out in (place / name, place / ".." / "res" / name, link):
            if command != "compare":
                done = run(command, *words(command, place), "--out", out, "--force")
                assert done.exit_code == 2 and "this is an input file" in done.stderr, done.stderr
    if ending == ".icqf":
        done = run(command, *words(command, place), "--out", place / "model.icqf", "--force")
        assert done.exit_code == 2
    assert contents(place) == before


@pytest.mark.parametrize("command", FILES)
def test_a_part_of_results_is_not_replaced(run, read, results, tmp_path, command):
    out = tmp_path / "res"
    shutil.copytree(results, out)
    before = contents(out)
    done = run(command, *words(command, read), "--out", out / "scores.csv", "--force")
    assert done.exit_code == 2 and "belongs to the results in 'res'" in done.stderr, done.stderr
    assert contents(out) == before


def test_a_figure_is_not_put_in_the_place_of_results(run, results, tmp_path):
    out = tmp_path / "res"
    shutil.copytree(results, out)
    before = contents(out)
    done = run("plot", out, "heatmap", "--out", out / "figures" / "heatmap.png", "--force")
    assert done.exit_code == 2 and "belongs to the results in 'res'" in done.stderr
    assert contents(out) == before
    assert run("plot", out, "heatmap", "--out", tmp_path / "heatmap.pdf").exit_code == 0


def test_the_demo_keeps_a_fit_in_its_folder(run, results, tmp_path):
    shutil.copytree(results, tmp_path / "demo" / "results")
    before = contents(tmp_path / "demo")
    done = run("demo", "--out", tmp_path / "demo", "--force", "--quiet")
    assert done.exit_code == 2 and "contains results of icqf fit" in done.stderr
    assert contents(tmp_path / "demo") == before


def test_names_are_not_written_through_links(run, results, tmp_path):
    out, outside = tmp_path / "res", tmp_path / "outside"
    outside.mkdir()
    shutil.copytree(results, out)
    shutil.move(out / "scores.csv", outside / "scores.csv")
    (out / "scores.csv").symlink_to(outside / "scores.csv")
    before = contents(outside)
    done = run("report", out, "--names", "One", "Two")
    assert done.exit_code == 2 and "this is a link" in done.stderr
    assert contents(outside) == before and (out / "scores.csv").is_symlink()


@pytest.mark.parametrize("content", [b"", b"my notes", b"[" * 100_000, b'{"what": "", "text": ""}', b"\xff"])
def test_progress_replaces_nothing_but_progress(run, usual, tmp_path, content):
    notes = tmp_path / "notes.txt"
    notes.write_bytes(content)
    done = run("fit", *usual, "--no-report", "--out", tmp_path / "out", "--progress", notes)
    assert done.exit_code == 2 and "not the progress of an earlier run" in done.stderr
    assert notes.read_bytes() == content and not (tmp_path / "out").exists()


def test_progress_has_a_place_of_its_own(run, usual, files, tmp_path):
    common = ("fit", *usual, "--no-report", "--out", tmp_path / "out")
    link = tmp_path / "link.json"
    link.symlink_to(files / "answers.csv")
    for path in (tmp_path / "out", tmp_path / "out" / "p.json", files / "items.csv", link):
        before = path.read_bytes() if path.is_file() else None
        assert run(*common, "--progress", path).exit_code == 2
        assert before is None or path.read_bytes() == before
    progress = tmp_path / "p.json"
    for more in ((), ("--force",)):
        assert run(*common, "--progress", progress, *more).exit_code == 0
        assert json.loads(progress.read_text())["program"] == "icqf"


def test_a_journal_of_somebody_else_is_kept(run, read, tmp_path):
    other = tmp_path / "out.journal"
    other.write_text("of somebody else")
    done = run("meta", *words("meta", read), "--out", tmp_path / "out", "--resume")
    assert done.exit_code == 2 and "this file is not a journal" in done.stderr
    assert other.read_text() == "of somebody else" and not (tmp_path / "out").exists()


def test_what_was_written_before_the_end_is_said(read, tmp_path):
    """Ended by SIGTERM right after the results were moved in."""
    code = (
        "import os, signal, sys\n"
        "from icqf.io import atomic\n"
        "from icqf.cli.program import main\n"
        "real = atomic._move_in\n"
        "def ends(*places):\n"
        "    real(*places)\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "atomic._move_in = ends\n"
        "main()\n"
    )
    told = [sys.executable, "-c", code, "fit", *words("fit", read), "--out", "out"]
    done = subprocess.run(told, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 130 and (tmp_path / "out" / "model.icqf").is_file()
    assert "Stopped. Already written: 'out'." in done.stderr and "Nothing" not in done.stderr


@pytest.mark.long  # as an end that is asked for leaves nothing (test_interrupts.py)
def test_nothing_was_written_where_nothing_was(read, tmp_path):
    code = "import os, signal\nfrom icqf.cli.program import main\nimport icqf.workflow.fit as fit\n" + (
        "fit.fit_study = lambda *a, **k: os.kill(os.getpid(), signal.SIGTERM)\nmain()\n"
    )
    told = [sys.executable, "-c", code, "fit", *words("fit", read), "--out", "out"]
    done = subprocess.run(told, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 130 and "Stopped. Nothing was written." in done.stderr
    assert list(tmp_path.iterdir()) == []
