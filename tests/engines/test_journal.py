"""A journal is continued only by the same work and the same version."""

import copy
import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
import pytest

import icqf
from icqf import ICQF
from icqf.datasets import load_demo
from icqf.engines import fingerprint
from icqf.engines.journal import Journal
from icqf.engines.parallel import run_all
from icqf.errors import InputError


def square(x):
    return {"square": x * x}


def test_the_header_names_the_version(tmp_path):
    Journal(tmp_path / "journal", "same").append([{"n": 1}])
    header, record = map(json.loads, (tmp_path / "journal").read_text().splitlines())
    assert header["version"] == icqf.__version__ and header["identity"] == "same"
    assert record["n"] == 1 and Journal(tmp_path / "journal", "same").records == [{"n": 1}]


@pytest.mark.parametrize("version", ["0.0.1", None])
def test_a_journal_of_another_version_is_refused(tmp_path, version):
    path = tmp_path / "journal"
    Journal(path, "same").append([{"n": 1}])
    lines = path.read_text().splitlines(keepends=True)
    header = json.loads(lines[0]) | {"version": version}
    path.write_text(json.dumps({k: v for k, v in header.items() if v is not None}) + "\n" + lines[1])
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"written by icqf .*results of two versions are not mixed"):
        Journal(path, "same")
    assert path.read_bytes() == before


def test_other_work_is_refused(tmp_path):
    Journal(tmp_path / "journal", "same")
    with pytest.raises(InputError, match="other data or other settings"):
        Journal(tmp_path / "journal", "other")


def test_finished_work_is_not_done_again(tmp_path):
    jobs = {str(x): (x,) for x in range(4)}
    first = run_all({k: jobs[k] for k in "02"}, square, checkpoint=tmp_path / "journal")
    told = []
    whole = run_all(jobs, square, checkpoint=tmp_path / "journal", callback=told.append)
    assert whole == {str(x): {"square": x * x} for x in range(4)} and first.items() <= whole.items()
    assert [(p.done, p.total) for p in told] == [(2, 4), (3, 4), (4, 4)]


def cube(x):
    return {"square": x**3}


def test_results_of_other_work_or_arguments_are_never_used(tmp_path):
    jobs = {str(x): (x,) for x in range(3)}
    run_all(jobs, square, checkpoint=tmp_path / "journal")
    assert run_all(jobs, cube, checkpoint=tmp_path / "journal")["2"] == {"square": 8}
    named_alike = {name: (x + 1,) for name, (x,) in jobs.items()}
    assert run_all(named_alike, square, checkpoint=tmp_path / "journal")["2"] == {"square": 9}
    with pytest.raises(InputError, match="other data or other settings"):
        run_all({"9": (9,)}, square, checkpoint=run_once(tmp_path / "other"))


def run_once(path):
    run_all({"1": (1,)}, square, checkpoint=path)
    return path


def test_no_flipped_bit_changes_a_record(tmp_path):
    """Each bit of the records, one at a time: the journal is refused, or says the same."""
    path, records = tmp_path / "journal", [{"k": 3, "error": 0.1234}, {"k": 14, "error": float("nan")}]
    Journal(path, "same").append(records)
    content = path.read_bytes()
    same = json.dumps(records)
    for place in range(content.index(b"\n") + 1, len(content)):
        for bit in range(8):
            spoiled = bytearray(content)
            spoiled[place] ^= 1 << bit
            path.write_bytes(spoiled)
            with suppress(InputError):
                found = Journal(path, "same").records
                # What is left are whole lines: a spoiled line break reads as a line that a crash cut off.
                assert same.startswith(json.dumps(found)[:-1])


def test_a_journal_removed_while_work_goes_on_is_written_again(tmp_path):
    path = tmp_path / "journal"
    Journal(path, "same").append([{"n": 1}])
    journal = Journal(path, "same")
    journal.append([{"n": 2}])
    path.unlink()
    journal.append([{"n": 3}])
    journal.append([{"n": 4}])
    assert [record["n"] for record in Journal(path, "same").records] == [1, 2, 3, 4]


# --- A fingerprint differs as soon as anything that decides a result does, and only then --------------


@dataclass(frozen=True)
class Setting:
    beta: float = 0.1
    answers: np.ndarray | None = None
    engine: str = "local"

    @cached_property
    def doubled(self):
        return 2 * self.beta


DIFFERENT = {
    "numbers": [0, 1, -1, 0.0, 1.0, 1e-300, float("nan"), True, None],
    "texts": ["", "a", "b", "a;b", b"a", ("a", "b"), ["a", "b"], ("ab",), ("a", ("b",)), [["a"], "b"]],
    "tables": [{"a": 1}, {"a": 2}, {"b": 1}, {"a": 1, "b": 1}, {1: "a"}, {"1": "a"}, {1, 2}, {1, 3}],
    "arrays": [
        np.zeros(4),
        np.zeros((2, 2)),
        np.zeros(4, np.float32),
        np.zeros(4, int),
        np.array([0, 0, 0, 1.0]),
        np.array([0, 0, 0, np.nan]),
        np.array(["a", "b", "c", "d"], dtype=object),
        np.array(["a", "b", "c", "e"], dtype=object),
    ],
    "frames": [
        pd.DataFrame({"q1": [1.0, 2.0]}),
        pd.DataFrame({"q1": [1.0, 3.0]}),
        pd.DataFrame({"q2": [1.0, 2.0]}),
        pd.DataFrame({"q1": [1.0, 2.0]}, index=["P1", "P2"]),
        pd.DataFrame({"q1": [1.0, 2.0]}, index=["P1", "P3"]),
        pd.DataFrame({"q1": ["x", None]}),
        pd.DataFrame({"q1": pd.Categorical(["x", "y"])}),
        pd.DataFrame({"q1": pd.array([1, None], dtype="Int64")}),
        pd.Series([1.0, 2.0], name="q1"),
        pd.Series([1.0, 2.0], name="q2"),
    ],
    "records": [Setting(), Setting(0.2), Setting(answers=np.zeros(2)), Setting(answers=np.ones(2))],
    "functions": [np.mean, np.median, int, float, slice(1), slice(2), range(3), range(4)],
    "generators": [np.random.default_rng(0), np.random.default_rng(1), np.random.RandomState(0)],
    "estimators": [ICQF(2), ICQF(3), ICQF(2, beta=0.2), ICQF(2, random_state=1), ICQF(2, penalty="l2")],
}


@pytest.mark.parametrize("kind", DIFFERENT)
def test_what_differs_has_another_fingerprint_and_a_copy_the_same(kind):
    found = [fingerprint(value) for value in DIFFERENT[kind]]
    assert len(set(found)) == len(found)
    assert found == [fingerprint(value) for value in copy.deepcopy(DIFFERENT[kind])]


def test_parts_are_kept_apart():
    assert fingerprint("a", "b") != fingerprint("ab") != fingerprint(("a", "b"))


def test_where_work_runs_and_what_was_derived_do_not_matter():
    setting = Setting(answers=np.zeros(2))
    before = fingerprint(setting)
    assert setting.doubled == 0.2 and fingerprint(setting) == before
    assert fingerprint(replace(setting, engine="dask")) == before
    assert fingerprint(ICQF(2, callback=print)) == fingerprint(ICQF(2, engine="torch"))


def test_a_fitted_model_is_known_by_what_it_found():
    demo = load_demo().select(["q00*"])
    model = ICQF(2, random_state=0).fit(demo)
    again = ICQF(2, random_state=0).fit(demo)
    assert fingerprint(model) == fingerprint(again) != fingerprint(ICQF(2, random_state=0))
    again.components_ = again.components_ + np.finfo(float).eps
    assert fingerprint(model) != fingerprint(again)


def test_a_file_is_known_by_its_name_and_contents(tmp_path):
    for folder, name, text in (
        ("a", "x.csv", "1"),
        ("b", "x.csv", "1"),
        ("c", "x.csv", "2"),
        ("d", "y.csv", "1"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(text)
    first, moved, changed, renamed = (fingerprint(next((tmp_path / each).iterdir())) for each in "abcd")
    assert first == moved and len({first, changed, renamed}) == 3


def test_it_is_the_same_in_every_process():
    """Texts hash differently in each process of Python, and sets have another order."""
    code = "from icqf.engines import fingerprint; print(fingerprint({'b', 'a', 'c'}, {'x': 1, 'y': 2}))"
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1 and found != {""}
