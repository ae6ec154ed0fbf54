"""The journal: whatever breaks a search off, the next run ends as if nothing had happened."""

import errno
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icqf.datasets import make_synthetic
from icqf.errors import InputError
from icqf.models import search as running
from icqf.models.search import SearchJournal as Journal
from icqf.models.search import Trial, packed
from searches import search_for

ANSWERS = make_synthetic(40, 16, 3, noise=0.2, random_state=0).answers
OPTIONS = {"betas": [0.0, 0.1], "n_splits": 3, "item_range": (0, 100), "n_init": 1, "random_state": 0}
OPTIONS |= {"max_iter": 2000}


def search(path=None, ks=(2, 3), **options):
    return search_for(list(ks), checkpoint=path, **(OPTIONS | options))


def without_seconds(model):
    return model.cv_results_.drop(columns="seconds")


def assert_same_search(model, other):
    """To the last bit: fits, choice, its certainty and the final model."""
    pd.testing.assert_frame_equal(without_seconds(model), without_seconds(other), check_exact=True)
    assert (model.n_components_, model.beta_) == (other.n_components_, other.beta_)
    pd.testing.assert_frame_equal(model.choice_.shares, other.choice_.shares, check_exact=True)
    assert model.best_estimator_.components_.tobytes() == other.best_estimator_.components_.tobytes()
    assert model.hidden_.sse.tobytes() == other.hidden_.sse.tobytes()
    assert model.hidden_.sst.tobytes() == other.hidden_.sst.tobytes()


@pytest.fixture(scope="module")
def whole():
    """The search that nothing interrupts."""
    return search().fit(ANSWERS)


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """The bytes of a finished journal."""
    path = tmp_path_factory.mktemp("journal") / "whole"
    search(path).fit(ANSWERS)
    return path.read_bytes()


# --- going on --------------------------------------------------------------------------------------

CHILD = """
import sys, time
from test_search_journal import ANSWERS, search

search(sys.argv[1], callback=lambda progress: time.sleep(0.05)).fit(ANSWERS)
"""


def start_child(path):
    here = os.path.dirname(__file__)
    folders = [here, os.path.dirname(here), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders), "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_a_killed_run_goes_on_and_ends_the_same(tmp_path, content, whole):
    """Continues what another run left, is killed with kill -9 further on, and is then finished."""
    path = tmp_path / "journal"
    path.write_bytes(b"".join(content.splitlines(keepends=True)[:4]) + b'{"half')
    child = start_child(path)
    try:
        deadline = time.monotonic() + 60
        while path.read_bytes().count(b"\n") < 7:
            assert child.poll() is None, child.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.001)
    finally:
        child.kill()
        assert child.wait() == -signal.SIGKILL
        child.stderr.close()
    assert path.read_bytes().count(b"\n") < 1 + len(whole.cv_results_)  # it was in the middle of it
    assert_same_search(search(path).fit(ANSWERS), whole)


def test_a_journal_cut_at_any_byte_keeps_its_whole_lines(tmp_path, content):
    """Within its header and first three fits: the others are like them."""
    path = tmp_path / "journal"
    content = b"".join(content.splitlines(keepends=True)[:4])
    identity = json.loads(content.splitlines()[1])["key"]
    for cut in range(len(content)):
        path.unlink(missing_ok=True)  # some file systems write at once what replaces the content of a file
        path.write_bytes(content[:cut])
        journal = Journal(path, identity)
        lines = max(0, content[:cut].count(b"\n") - 1)
        assert len(journal.trials) == lines
        kept = path.read_bytes()
        assert content.startswith(kept) and kept.count(b"\n") == lines + 1 and kept.endswith(b"\n")


@pytest.mark.slow
def test_a_search_goes_on_from_a_journal_cut_anywhere(tmp_path, content, whole):
    path = tmp_path / "journal"
    header = content.index(b"\n")
    cuts = {0, 1, header - 1, header, header + 1, header + 2, len(content) - 1, len(content)}
    cuts |= {int(cut) for cut in np.linspace(2, len(content) - 2, 12)}
    for cut in sorted(cuts):
        path.write_bytes(content[:cut])
        assert_same_search(search(path).fit(ANSWERS), whole)
        assert Journal(path, json.loads(content.splitlines()[1])["key"]).trials  # and it is whole again


@pytest.mark.parametrize("tail", [b"{", b'{"repeat": 0, "fold"', b"\0" * 512, b"\xff\xfe"])
def test_a_torn_last_line_is_dropped(tmp_path, content, whole, tail):
    path = tmp_path / "journal"
    half = content.splitlines(keepends=True)[:6]
    path.write_bytes(b"".join(half) + tail)
    assert_same_search(search(path).fit(ANSWERS), whole)
    assert all(json.loads(line) for line in path.read_bytes().splitlines())


def test_nothing_is_fitted_twice(tmp_path, content, whole, monkeypatch):
    path = tmp_path / "journal"
    path.write_bytes(content)
    monkeypatch.setattr(running, "run_task", lambda *_: pytest.fail("a finished fit was run again"))
    progress = []
    again = search(path, callback=progress.append).fit(ANSWERS)
    assert_same_search(again, whole)
    assert path.read_bytes() == content
    assert [(each.done, each.total) for each in progress] == [(12, 12), (0, 0)]  # and the final fit
    assert again.cv_results_["seconds"].tolist() == [
        json.loads(line)["result"]["seconds"] for line in sorted(content.splitlines()[1:], key=_order)
    ]


def _order(line):
    trial = json.loads(line)["result"]
    return trial["repeat"], trial["fold"], trial["n_components"], trial["beta"]


def test_other_numbers_of_factors_go_on_in_the_same_journal(tmp_path, content):
    path = tmp_path / "journal"
    path.write_bytes(content)
    wider = search(path, ks=(3, 4)).fit(ANSWERS)
    assert path.read_bytes().startswith(content)
    assert path.read_bytes().count(b"\n") == content.count(b"\n") + 6
    assert set(wider.cv_results_["n_components"]) == {3, 4}  # what was tried before and is not asked for
    assert_same_search(wider, search(ks=(3, 4)).fit(ANSWERS))


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1)])
def test_the_number_of_jobs_may_change_on_the_way(tmp_path, whole, before, after):
    path = tmp_path / "journal"
    search(path, n_jobs=before).fit(ANSWERS)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:6]))
    assert_same_search(search(path, n_jobs=after).fit(ANSWERS), whole)


@settings(deadline=None, max_examples=30)
@given(st.floats(allow_nan=False), st.floats(0, 1e9), st.integers(0, 10**12), st.floats(0, 1e6))
def test_a_trial_comes_back_as_it_was(error, beta, n_hidden, seconds):
    import tempfile

    trial = Trial(1, 2, 3, beta, error, n_hidden, float(n_hidden), 17, seconds, packed(np.ones(3)))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "journal")
        Journal(path, "x").add([trial])
        assert Journal(path, "x").trials == [trial]


# --- a full disk -----------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [40, 700])
def test_no_room_left_is_said_and_the_journal_stays_good(tmp_path, whole, limit):
    """A real limit on the size of files: the system writes what fits, a part of a line."""
    resource = pytest.importorskip("resource")
    path, usual = tmp_path / "journal", resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, usual[1]))
    try:
        with pytest.raises(InputError) as found:
            search(path).fit(ANSWERS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert str(found.value).startswith(f"{path}: the journal c") and "(File too large)" in str(found.value)
    assert not path.exists() or path.stat().st_size <= limit
    assert [found.name for found in tmp_path.iterdir()] in ([], [path.name])
    assert_same_search(search(path).fit(ANSWERS), whole)


def test_a_disk_that_is_full_when_lines_are_made_sure(tmp_path, whole, monkeypatch):
    path = tmp_path / "journal"
    calls = []

    def fsync(_):
        calls.append(1)
        if len(calls) > 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("icqf.models.search.os.fsync", fsync)
        with pytest.raises(
            InputError, match=r"could not be written \(No space left on device\).*free some space"
        ):
            search(path).fit(ANSWERS)
    assert path.read_bytes().count(b"\n") >= 1 + 4  # the header and the first fold
    assert_same_search(search(path).fit(ANSWERS), whole)


def test_a_disk_that_is_full_from_the_start(tmp_path, monkeypatch):
    def fsync(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("icqf.models.search.os.fsync", fsync)
    with pytest.raises(InputError, match=r"journal cannot be created \(No space left on device\)"):
        search(tmp_path / "journal").fit(ANSWERS)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_work_under_way_is_left_in_peace_when_the_disk_fills(tmp_path, whole, monkeypatch, n_jobs):
    """The error comes while other fits are still running."""
    path = tmp_path / "journal"

    def append(self, trials):
        raise InputError("full")

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "add", append)
        with pytest.raises(InputError, match="full"):
            search(path, n_jobs=n_jobs).fit(ANSWERS)
    assert_same_search(search(path, n_jobs=n_jobs).fit(ANSWERS), whole)


# --- refusals --------------------------------------------------------------------------------------

OTHER = {
    "betas": [0.0, 0.2],
    "n_splits": 4,
    "row_blocks": 5,
    "n_repeats": 2,
    "random_state": 1,
    "item_range": (0, 101),
    "penalty": "l2",
    "score_max": None,
    "loading_max": 90.0,
    "init": "rotated",
    "search_tol": 1e-3,
    "max_iter": 2001,
    "intercept": False,
    "dtype": "float32",
    "item_weight": "variance",
    "thorough": True,
}
BELONGS_ELSEWHERE = "belongs to other data or other settings.*Delete it to start again, or choose another"


@pytest.mark.parametrize("name", OTHER)
def test_a_journal_of_other_settings_is_refused(tmp_path, content, name):
    path = tmp_path / "journal"
    path.write_bytes(content)
    with pytest.raises(InputError, match=BELONGS_ELSEWHERE) as caught:
        search(path, **{name: OTHER[name]}).fit(ANSWERS)
    assert str(caught.value).startswith(f"{path}: ")
    assert path.read_bytes() == content


@pytest.mark.filterwarnings("ignore::icqf.data.validate.RangeWarning")
@pytest.mark.parametrize("change", ["one answer", "one missing", "order", "confounds", "weights", "range"])
def test_a_journal_of_other_data_is_refused(tmp_path, content, change):
    path = tmp_path / "journal"
    path.write_bytes(content)
    answers, given_too, options = ANSWERS.copy(), {}, {}
    if change == "one answer":
        answers[3, 4] = 100 - answers[3, 4]
    elif change == "one missing":
        answers[3, 4] = np.nan
    elif change == "order":
        answers = answers[::-1]
    elif change == "range":
        options = {"item_range": None}
    else:
        name = {"confounds": "confounds", "weights": "sample_weight"}[change]
        given_too = {name: np.linspace(1, 2, len(answers)).reshape(-1, *[1] * (change == "confounds"))}
    with pytest.raises(InputError, match=BELONGS_ELSEWHERE):
        search(path, **options).fit(answers, **given_too)
    assert path.read_bytes() == content


def test_groups_belong_to_the_folds(tmp_path, content):
    path = tmp_path / "journal"
    path.write_bytes(content)
    with pytest.raises(InputError, match=BELONGS_ELSEWHERE):
        search(path).fit(ANSWERS, groups=np.arange(len(ANSWERS)) // 2)


@pytest.mark.parametrize("same", [{"rule": "one_se"}, {"n_jobs": 2}, {"tol": 1e-2}, {"stability": True}])
def test_what_does_not_touch_the_search_does_not_matter(tmp_path, content, whole, same):
    path = tmp_path / "journal"
    path.write_bytes(content)
    again = search(path, **same).fit(ANSWERS)
    pd.testing.assert_frame_equal(without_seconds(again), without_seconds(whole), check_exact=True)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "foreign",
    [
        b"id,q1,q2\nP1,3,4\n",
        b"just a line without an end",
        b'{"a": 1}\n',
        b'{"format": "icqf-model"}\n',
        b"[1, 2]\n",
        b"\x89PNG\r\n\x1a\n\x00",
        b"\n",
        b"\xff\xfe\x00",
    ],
)
def test_a_foreign_file_is_refused_and_untouched(tmp_path, foreign):
    path = tmp_path / "precious.csv"
    path.write_bytes(foreign)
    with pytest.raises(InputError, match="is not a journal; choose another checkpoint"):
        search(path).fit(ANSWERS)
    assert path.read_bytes() == foreign


@pytest.mark.parametrize("broken", [b"{}", b"[]", b"3", b"{nonsense", b'{"repeat": 0, "odd": 1}', b"\xff"])
def test_a_line_damaged_in_the_middle_is_named_and_nothing_is_lost(tmp_path, content, broken):
    path = tmp_path / "journal"
    lines = content.splitlines(keepends=True)
    lines[3] = broken + b"\n"
    path.write_bytes(b"".join(lines))
    with pytest.raises(InputError, match="line 4 of the journal is damaged; delete the file"):
        search(path).fit(ANSWERS)
    assert path.read_bytes() == b"".join(lines)


def test_places_that_cannot_be_written(tmp_path):
    with pytest.raises(InputError, match="must be a file, but this is a folder"):
        search(tmp_path).fit(ANSWERS)
    with pytest.raises(InputError, match=r"journal cannot be created \(No such file or directory\)"):
        search(tmp_path / "nowhere" / "journal").fit(ANSWERS)


def test_a_search_without_a_seed_could_not_go_on(tmp_path):
    with pytest.raises(InputError, match="With a checkpoint, give a random_state"):
        search(tmp_path / "journal", random_state=None).fit(ANSWERS)
    assert not (tmp_path / "journal").exists()
