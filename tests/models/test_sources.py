"""Answers that are read in parts give what the same answers in memory give."""

import gc
import os
import platform
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.dataset as ds
import pytest

from icqf import ICQF, ICQFCV
from icqf.data.frames import AnswersInParts
from icqf.data.validate import EmptyRowsWarning, RangeWarning
from icqf.errors import InputError
from icqf.io.readers.streams import open_stream
from icqf.models import sources
from icqf.models.sources import StoredAnswers

ITEMS = [f"q{j:02}" for j in range(12)]
MODEL = {"item_range": (0, 3), "n_init": 1, "dtype": "float32"}


def study(n=700, *, missing=0.05, seed=0):
    rng = np.random.default_rng(seed)
    Q = 3 * rng.uniform(0.3, 1, (3, 12)) * (rng.random((3, 12)) < 0.4)
    X = np.rint(
        np.clip(np.maximum(rng.random((n, 3)) * 1.6 - 0.6, 0) @ Q + rng.normal(0, 0.4, (n, 12)), 0, 3)
    )
    X[rng.random(X.shape) < missing] = np.nan
    frame = pd.DataFrame(X, columns=ITEMS)
    frame.insert(0, "record_id", [f"P{i:04}" for i in range(n)])
    return frame.assign(age=rng.uniform(8, 18, n).round(1), sex=np.where(rng.random(n) < 0.5, "F", "M"))


@pytest.fixture
def frame():
    return study()


@pytest.fixture
def parquet(frame, tmp_path):
    frame.to_parquet(tmp_path / "cohort.parquet", index=False)
    return tmp_path / "cohort.parquet"


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr("icqf.io.readers.streams.open_stream", partial(open_stream, batch_rows=128))
    monkeypatch.setattr("icqf.data.frames._ROWS", 128)
    monkeypatch.setattr("icqf.core.observations._BLOCK_ROWS", 100)


def scratch():
    """Files of this process; others of this machine may have theirs."""
    names = os.listdir(tempfile.gettempdir())
    return {name for name in names if name.startswith("icqf-") and f"-{os.getpid()}-" in name}


def same(a, b):
    np.testing.assert_array_equal(a.components_, b.components_)
    np.testing.assert_array_equal(a.confound_components_, b.confound_components_)
    assert (a.objective_, a.n_iter_, a.certificate_) == (b.objective_, b.n_iter_, b.certificate_)


def test_a_file_gives_what_its_table_gives_to_the_bit(frame, parquet):
    confounds = frame[["age", "sex"]]
    held = ICQF(3, **MODEL).fit(frame[ITEMS], confounds=confounds)
    for X in (parquet, str(parquet), ds.dataset(parquet)):
        read = ICQF(3, **MODEL).fit(X, confounds=["age", "sex"])
        same(held, read)
        assert list(read.feature_names_in_) == ITEMS
    scores = held.transform(frame[ITEMS], confounds=confounds)
    np.testing.assert_array_equal(read.transform(parquet, confounds=["age", "sex"]), scores)
    np.testing.assert_array_equal(ICQF(3, **MODEL).fit_transform(parquet, confounds=["age", "sex"]), scores)


@pytest.mark.parametrize("init", ["rotated", "random"])
def test_so_do_the_other_starts(frame, parquet, init):
    items = frame[ITEMS].reset_index(drop=True)
    held = ICQF(3, init=init, **MODEL).fit(items, confounds=frame[["age", "sex"]])
    same(held, ICQF(3, init=init, **MODEL).fit(parquet, confounds=["age", "sex"]))


def test_a_folder_and_a_csv_give_it_too(frame, parquet, tmp_path):
    held = ICQF(3, **MODEL).fit(parquet, confounds=["age", "sex"])
    (tmp_path / "parts").mkdir()
    for at, start in enumerate((0, 300, 450)):
        part = frame.iloc[start : (300, 450, 700)[at]]
        part.to_parquet(tmp_path / "parts" / f"part{at}.parquet", index=False)
    frame.to_csv(tmp_path / "cohort.csv", index=False)
    for path in (tmp_path / "parts", tmp_path / "cohort.csv"):
        same(held, ICQF(3, **MODEL).fit(path, confounds=["age", "sex"]))


def test_a_mapped_array_is_used_where_it_is(frame, tmp_path):
    codes = frame[ITEMS].fillna(-1).to_numpy().astype(np.int8)
    codes.tofile(tmp_path / "codes")
    array = np.memmap(tmp_path / "codes", dtype=np.int8, mode="r", shape=codes.shape)
    before = scratch()
    stated = ICQF(3, **MODEL).state(array)
    stored = stated.problem.observations.answers
    assert isinstance(stored, StoredAnswers) and stored.path == str(tmp_path / "codes")
    assert scratch() == before
    same(ICQF(3, **MODEL).fit(array), ICQF(3, **MODEL).fit(frame[ITEMS].to_numpy()))


def test_a_range_that_holds_the_number_for_missing_is_refused(tmp_path):
    np.array([[-1, 0], [1, 2]], dtype=np.int8).tofile(tmp_path / "codes")
    array = np.memmap(tmp_path / "codes", dtype=np.int8, mode="r", shape=(2, 2))
    with pytest.raises(InputError, match="includes -1, which means a missing answer"):
        ICQF(1, item_range=(-2, 2)).fit(array)


def test_a_full_disk_is_said_to_be_full_and_a_lost_file_is_not(parquet, monkeypatch):
    def full(file, codes, path):
        raise InputError("full", code="no-room")

    def lost():
        yield from ()
        raise OSError("the file is gone")

    before = scratch()
    with pytest.raises(OSError, match="gone"):
        ICQF(3, **MODEL).fit(AnswersInParts(lost))
    if os.path.exists("/dev/full"):
        with open("/dev/full", "wb", buffering=0) as file, pytest.raises(InputError, match="No space left"):
            sources._write_part(file, np.zeros((4, 4), dtype=np.int8), "/tmp/x")
    monkeypatch.setattr(sources, "_write_part", full)
    with pytest.raises(InputError, match="full"):
        ICQF(3, **MODEL).fit(parquet, confounds=["age", "sex"])
    gc.collect()
    assert scratch() == before


@pytest.mark.parametrize(
    ("change", "dtype"),
    [
        (lambda X: X, np.int8),
        (lambda X: X * 100, np.int16),
        (lambda X: X * 0.5, np.float32),
    ],
)
def test_answers_are_kept_in_the_narrowest_type_that_holds_them(frame, tmp_path, change, dtype):
    frame[ITEMS] = change(frame[ITEMS])
    frame.to_parquet(tmp_path / "c.parquet", index=False)
    top = 300 if dtype == np.int16 else 3
    model = ICQF(3, **MODEL | {"item_range": (0, top)})
    stated = model.state(tmp_path / "c.parquet", confounds=["age", "sex"])
    assert stated.problem.observations.answers.dtype == dtype
    same(
        model.fit(tmp_path / "c.parquet", confounds=["age", "sex"]),
        ICQF(3, **MODEL | {"item_range": (0, top)}).fit(frame[ITEMS], confounds=frame[["age", "sex"]]),
    )


def test_what_is_kept_meanwhile_is_for_the_user_alone_and_goes_away(parquet):
    before = scratch()
    stated = ICQF(3, **MODEL).state(parquet, confounds=["age", "sex"])
    (name,) = scratch() - before
    assert os.stat(os.path.join(tempfile.gettempdir(), name)).st_mode & 0o077 == 0
    del stated
    gc.collect()
    assert scratch() == before


@pytest.mark.skipif(os.name != "posix", reason="asks which processes run")
def test_what_a_killed_process_left_is_swept_up(parquet):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    folder, node = Path(tempfile.gettempdir()), platform.node()
    left = folder / f"icqf-{node}-{ended.pid}-x.answers"
    names = (f"icqf-{node}-{os.getppid()}-x.answers", f"icqf-another-{ended.pid}-x.answers")
    others = [folder / name for name in names]
    for path in (left, *others):
        path.write_bytes(b"answers")
    try:
        ICQF(3, **MODEL).state(parquet, confounds=["age", "sex"])
        assert not left.exists() and all(path.exists() for path in others)
    finally:
        for path in others:
            path.unlink()


def test_nothing_is_left_behind_after_an_error(frame, tmp_path):
    before = scratch()
    frame.loc[600, "q03"] = 9
    frame.to_parquet(tmp_path / "c.parquet", index=False)
    with pytest.raises(InputError, match=r"Item 'q03' holds 9, above its highest answer 3 \(row 601"):
        ICQF(3, **MODEL).fit(tmp_path / "c.parquet", confounds=["age", "sex"])
    gc.collect()
    assert scratch() == before


def test_who_answered_nothing_or_has_no_weight_is_kept_out(frame, tmp_path):
    frame.loc[[3, 500], ITEMS] = np.nan
    frame.to_parquet(tmp_path / "c.parquet", index=False)
    weights = np.random.default_rng(1).uniform(0.5, 2, len(frame))
    weights[[10, 400]] = 0
    with pytest.warns(EmptyRowsWarning, match="2 participants"):
        read = ICQF(3, **MODEL).fit(tmp_path / "c.parquet", confounds=["age", "sex"], sample_weight=weights)
    with pytest.warns(EmptyRowsWarning):
        held = ICQF(3, **MODEL).fit(frame[ITEMS], confounds=frame[["age", "sex"]], sample_weight=weights)
    same(held, read)
    assert read.n_participants_ == 696


def test_rows_are_counted_in_the_file_in_every_message(frame, tmp_path):
    """As those of answers out of range are: the first participant of a file is in row 1."""
    (tmp_path / "parts").mkdir()
    frame.loc[[0, 500], ITEMS] = np.nan
    frame.to_parquet(tmp_path / "c.parquet", index=False)
    frame.iloc[:300].to_parquet(tmp_path / "parts" / "a.parquet", index=False)
    frame.iloc[300:].to_parquet(tmp_path / "parts" / "b.parquet", index=False)
    with pytest.warns(EmptyRowsWarning, match=r"\('c.parquet, row 1', 'c.parquet, row 501'\)"):
        ICQF(3, **MODEL).fit(tmp_path / "c.parquet", confounds=["age", "sex"])
    with pytest.warns(EmptyRowsWarning, match=r"\('.*a.parquet, row 1', '.*b.parquet, row 201'\)"):
        ICQF(3, **MODEL).fit(tmp_path / "parts", confounds=["age", "sex"])
    frame.loc[600, "age"] = np.inf
    frame.to_parquet(tmp_path / "c.parquet", index=False)
    frame.iloc[300:].to_parquet(tmp_path / "parts" / "b.parquet", index=False)
    with pytest.raises(InputError, match="Confound 'age' is infinite in row 601;"):
        ICQF(3, **MODEL).fit(tmp_path / "c.parquet", confounds=["age", "sex"])
    with pytest.raises(InputError, match=r"Confound 'age' is infinite in row \('.*b.parquet', 301\);"):
        ICQF(3, **MODEL).fit(tmp_path / "parts", confounds=["age", "sex"])


def test_an_undeclared_range_is_that_of_all_parts(frame, parquet):
    with pytest.warns(RangeWarning, match="0 and 3"):
        model = ICQF(3, n_init=1).fit(parquet, confounds=["age", "sex"])
    assert (model.item_range_.to_numpy() == [0, 3]).all()


def test_starts_are_compared_with_some_participants_and_all_are_fitted(monkeypatch, parquet):
    monkeypatch.setattr("icqf.models.multistart.SAMPLE", 300)
    model = ICQF(3, item_range=(0, 3)).fit(parquet, confounds=["age", "sex"])
    best = ICQF(3, item_range=(0, 3), n_init=4).fit(parquet, confounds=["age", "sex"])
    assert model.n_participants_ == 700 and model.converged_
    assert model.objective_ <= best.objective_ * (1 + 1e-3)
    assert len(model.starts_) >= 3


def test_the_choice_rests_on_some_participants_and_the_fit_on_all(monkeypatch, parquet):
    monkeypatch.setattr("icqf.models.multistart.SAMPLE", 400)
    search = ICQFCV(
        ICQF(item_range=(0, 3)), n_components=[2, 3], betas=[0.1], n_splits=3, random_state=0
    ).fit(parquet, confounds=["age", "sex"])
    assert search.n_components_ == 3 and search.best_estimator_.n_participants_ == 700
    with pytest.raises(InputError, match="groups"):
        ICQFCV(ICQF(item_range=(0, 3)), random_state=0).fit(
            parquet, confounds=["age", "sex"], groups=[1] * 700
        )


def test_admm_needs_all_answers_in_memory(parquet):
    with pytest.raises(InputError, match="in memory"):
        ICQF(3, solver="admm", **MODEL).fit(parquet, confounds=["age", "sex"])


@pytest.mark.parametrize(
    ("confounds", "said"),
    [(["agee"], "'agee' is not a column of the table. Did you mean 'age'"), (["age"], "'sex' holds 'F'")],
)
def test_columns_that_are_not_what_they_should_be(parquet, confounds, said):
    with pytest.raises(InputError, match=said):
        ICQF(3, **MODEL).fit(parquet, confounds=confounds)


def test_a_file_that_breaks_off_is_named(parquet):
    whole = parquet.read_bytes()
    parquet.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"cohort\.parquet"):
        ICQF(3, **MODEL).fit(parquet, confounds=["age", "sex"])


def test_confounds_of_another_number_of_participants_are_refused(frame, parquet):
    model = ICQF(3, **MODEL)
    numbers = frame.drop(columns=["age", "sex"])
    numbers.to_parquet(parquet, index=False)
    confounds = frame[["age", "sex"]]
    same(model.fit(parquet, confounds=confounds), ICQF(3, **MODEL).fit(frame[ITEMS], confounds=confounds))
    with pytest.raises(InputError, match="700"):
        ICQF(3, **MODEL).fit(parquet, confounds=confounds.iloc[:600])
    with pytest.raises(InputError, match="600 rows of confounds"):
        model.transform(parquet, confounds=confounds.iloc[:600])


def test_a_cohort_can_be_read_again(frame):
    source = AnswersInParts.of_array(np.asarray(frame[ITEMS].fillna(-1), dtype=np.int8))
    assert [sum(len(part.answers) for part in source.parts()) for _ in range(2)] == [700, 700]


def test_a_range_that_is_not_declared_is_found_and_said_once(frame, tmp_path):
    whole = np.memmap(tmp_path / "answers.dat", dtype=np.int8, mode="w+", shape=(len(frame), len(ITEMS)))
    whole[:] = frame[ITEMS].fillna(-1).to_numpy()
    weights = np.where(np.arange(len(frame)) == 3, 0.0, 1.0)  # one has none, so the file is written anew
    with pytest.warns(RangeWarning) as said:
        ICQF(2, n_init=1).fit(whole, sample_weight=weights)
    assert [each.filename for each in said if each.category is RangeWarning] == [__file__]
