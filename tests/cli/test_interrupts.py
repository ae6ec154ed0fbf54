"""Cross-validation from the command line: it can be stopped at any time and continues where it stopped."""

import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pandas as pd
import pytest

from icqf.cli.terminal import Meter, about, fitting
from icqf.engines import Progress
from icqf.models import search as running

SEARCH = ("--n-components", "1-3", "--beta", "0.1", "0.5", "--n-splits", "4", "--n-repeats", "1")


@pytest.fixture(autouse=True)
def signals_as_in_a_terminal():
    """Programs inherit ignored signals, as from nohup or a shell that runs tests in the background."""
    names = [name for name in ("SIGINT", "SIGHUP") if hasattr(signal, name)]
    before = {each: signal.getsignal(each) for each in (getattr(signal, name) for name in names)}
    for each, handler in before.items():
        if handler is signal.SIG_IGN:
            signal.signal(each, signal.SIG_DFL)
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


@pytest.fixture
def study(files):
    return (files / "answers.csv", "--codebook", files / "items.csv", "--confounds", "age", "sex")


def same_fits(one, other):
    left, right = (pd.read_csv(path).drop(columns="seconds") for path in (one, other))
    pd.testing.assert_frame_equal(left, right)


def test_fit_chooses(run, study, tmp_path, left_behind):
    result = run("fit", *study, *SEARCH, "--out", tmp_path / "out")
    assert result.exit_code == 0
    assert result.stdout.startswith("Chosen by cross-validation (min): 2 factors, beta ")
    assert "Cross-validation: 24 of 24 fits" in result.stderr
    assert len(pd.read_csv(tmp_path / "out" / "cv.csv")) == 24
    account = json.loads((tmp_path / "out" / "provenance.json").read_text())
    assert account["model"]["chosen_by"] == "cross-validation, rule min"
    assert "out.journal" not in left_behind()


def test_select(run, study, tmp_path, left_behind):
    result = run("select", *study, *SEARCH, "--rule", "one_se", "--out", tmp_path / "cv.csv")
    assert result.exit_code == 0
    assert "by k (down) and beta (across)" in result.stdout and "2 factors" in result.stdout
    assert len(pd.read_csv(tmp_path / "cv.csv")) == 24
    assert left_behind() == ["cv.csv"]


def test_select_by_stability(run, study, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(
        "select", *study, "--n-components", "1-2", "--beta", "0.1", "--n-splits", "3", "--rule", "stable"
    )
    assert result.exit_code == 0 and "Agreement of the factors" in result.stdout


def test_nothing_to_select(run, study):
    result = run("select", *study, "--n-components", "2", "--beta", "0.1")
    assert result.exit_code == 2 and "nothing to choose" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", ["fit", "select"])
def test_interrupted_and_resumed(run, study, tmp_path, monkeypatch, left_behind, command):
    out = tmp_path / ("out" if command == "fit" else "cv.csv")
    journal, real, done = tmp_path / f"{out.name}.journal", running.run_task, []

    def interrupted(plan, task, ends):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(task)
        return real(plan, task, ends)

    with monkeypatch.context() as patch:
        patch.setattr(running, "run_task", interrupted)
        result = run(command, *study, *SEARCH, "--out", out)
    assert result.exit_code == 130
    assert result.stdout == ""
    assert f"12 of 24 fits are saved in {journal}" in result.stderr
    last = result.stderr.splitlines()[-1]
    assert last.startswith(f"  icqf {command} ") and last.endswith(" --resume")
    assert left_behind() == [journal.name]

    refused = run(command, *study, *SEARCH, "--out", out)
    assert refused.exit_code == 2 and "Add --resume" in refused.stderr
    other = run(command, *study, *SEARCH, "--seed", "5", "--out", out, "--resume")
    assert other.exit_code == 2 and journal.name in other.stderr
    resumed = run(command, *study, *SEARCH, "--out", out, "--resume")
    assert resumed.exit_code == 0
    assert not journal.exists()
    fresh = tmp_path / "fresh" / out.name
    fresh.parent.mkdir()
    run(command, *study, *SEARCH, "--out", fresh)
    same_fits(*(path / "cv.csv" if command == "fit" else path for path in (out, fresh)))


def test_interrupted_before_any_fit(run, study, tmp_path, monkeypatch, left_behind):
    def interrupted(plan, task, ends):
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "run_task", interrupted)
    result = run("fit", *study, *SEARCH, "--out", tmp_path / "out")
    assert result.exit_code == 130 and "Nothing was written" in result.stderr
    assert left_behind() == []


def test_interrupted_while_reading(run, study, tmp_path, monkeypatch, left_behind):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("icqf.io.readers.questionnaires.read_table", interrupted)
    assert run("fit", *study, *SEARCH, "--out", tmp_path / "out").exit_code == 130
    assert left_behind() == []


@pytest.mark.long  # another is below
@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_a_real_ctrl_c(study, tmp_path):
    words = [*map(str, (*study, *SEARCH)), "--n-repeats", "200", "--out", "out"]
    program = subprocess.Popen(
        [sys.executable, "-m", "icqf", "fit", *words], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    journal, deadline = tmp_path / "out.journal", time.monotonic() + 120
    while time.monotonic() < deadline and not (journal.exists() and journal.read_bytes().count(b"\n") > 2):
        time.sleep(0.05)
    program.send_signal(signal.SIGINT)
    _, said = program.communicate(timeout=120)
    assert program.returncode == 130
    assert "Traceback" not in said and "--resume" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.journal"]


# Writes its tables, says so, and then waits in the middle of writing the results.
WAITS = """
import sys, time
from icqf.cli import main
from icqf.workflow import fit as results

def wait(*_):
    print("writing", flush=True)
    time.sleep(60)

results.WRITERS[1:] = [wait]
main()
"""


@pytest.fixture
def writing(study, tmp_path):
    """A program in the middle of writing its results."""
    words = ["fit", *map(str, study), "--n-components", "2", "--beta", "0.1", "--bootstrap", "0"]
    words += ["--no-report", "--out", "out"]
    program = subprocess.Popen(
        [sys.executable, "-c", WAITS, *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert program.stdout.readline() == "writing\n"
    yield program
    program.kill()
    program.communicate()


def unfinished(folder):
    return [path for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    "ending",
    [signal.SIGTERM, *(pytest.param(one, marks=pytest.mark.long) for one in (signal.SIGINT, signal.SIGHUP))],
)
def test_an_end_that_is_asked_for_leaves_nothing(writing, tmp_path, ending):
    assert (unfinished(tmp_path)[0] / "new" / "scores.csv").exists()
    writing.send_signal(ending)
    said = writing.stderr.read()
    assert writing.wait() == 130 and said.endswith("Stopped. Nothing was written.\n")
    assert list(tmp_path.iterdir()) == []


def test_what_a_kill_leaves_is_removed_by_the_next_run(writing, run, study, tmp_path):
    """But not while the other run still writes."""
    again = ("fit", *study, "--n-components", "2", "--beta", "0.1", "--no-report", "--out", tmp_path / "out")
    (place,) = unfinished(tmp_path)
    assert run(*again).exit_code == 0
    assert unfinished(tmp_path) == [place] and (place / "new" / "scores.csv").exists()
    writing.kill()
    writing.wait()
    assert (place / "new" / "scores.csv").exists()
    assert run(*again, "--force").exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="there are no groups of processes")
def test_ctrl_c_shows_nothing_of_the_workers(study, tmp_path):
    """As a terminal does: the interrupt goes to the program and to its workers."""
    words = ("select", *study, *SEARCH, "--n-repeats", "200", "--jobs", "2", "--out", "cv.csv")
    program = subprocess.Popen(
        [sys.executable, "-m", "icqf", *map(str, words)],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    journal, deadline = tmp_path / "cv.csv.journal", time.monotonic() + 120
    while not (journal.exists() and journal.read_bytes().count(b"\n") > 3) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(program.pid, signal.SIGINT)
    _, said = program.communicate(timeout=120)
    assert program.returncode == 130
    assert "Traceback" not in said and "Error" not in said and "fits are saved in cv.csv.journal" in said
    assert "--resume" in said and [path.name for path in tmp_path.iterdir()] == [journal.name]


def test_plain_lines_tell_the_time_left(capsys, monkeypatch):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr("icqf.cli.terminal.time.monotonic", lambda: clock.now)
    with Meter() as meter:
        for done in (40, 50, 60, 100):  # 40 were done by an earlier run
            meter(Progress(done, 100, best="8 factors"))
            clock.now += 11.0
    assert capsys.readouterr().err.splitlines() == [
        "Cross-validation: 50 of 100 fits, about 55 s left; best so far: 8 factors",
        "Cross-validation: 60 of 100 fits, about 45 s left; best so far: 8 factors",
        "Cross-validation: 100 of 100 fits, 33 s; best: 8 factors",
    ]


def test_a_bar_on_a_terminal(monkeypatch, capsys):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr("icqf.cli.terminal.time.monotonic", lambda: clock.now)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with Meter() as meter:
        for report in (SimpleNamespace(iteration=3), Progress(5, 10, best="8 factors")):
            clock.now += 1.0
            meter(report)
        clock.now += 0.01
        meter(SimpleNamespace(iteration=4))  # too soon to be seen
    assert meter.done == 5
    drawn = capsys.readouterr().err.split("\r\x1b[K")
    assert drawn[1] == "Fitting: iteration 3" and drawn[-1] == ""  # the line is wiped at the end
    assert "[############            ] 5 of 10 fits" in drawn[2] and len(drawn) == 4


def test_a_line_fits_the_terminal():
    parts = "Cross-validation", "[####    ]", "5 of 10 fits", "about 55 s left", "best so far: 8 factors"
    whole = "Cross-validation [####    ] 5 of 10 fits, about 55 s left; best so far: 8 factors"
    assert fitting(*parts, width=200) == whole
    for width in range(8, 90):
        line = fitting(*parts, width=width)
        assert len(line) <= width and (width < 15 or "55 s left" in line)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(3, "a few seconds"), (26, "about 25 s"), (59, "about 1 min"), (200, "about 3 min")]
    + [(4000, "about 1 h"), (5700, "about 1 h 30 min")],
)
def test_a_time_to_come_is_rounded(seconds, words):
    assert about(seconds) == words


def test_time_left_is_shown_while_nothing_is_reported(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("icqf.cli.terminal.SECONDS_BETWEEN_TICKS", 0.01)
    place = tmp_path / "progress.json"
    with Meter(quiet=True, file=place) as meter:
        meter(Progress(0, 0, what="Writing", seconds=600.0, after=0.0))
        until = time.monotonic() + 30
        while not (place.exists() and "about 10 min left" in place.read_text()):
            assert time.monotonic() < until
            time.sleep(0.02)


def test_a_quiet_meter_says_nothing(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with Meter(quiet=True) as meter:
        meter(Progress(5, 5, best=""))
        meter(SimpleNamespace(iteration=3))
    assert capsys.readouterr().err == ""
