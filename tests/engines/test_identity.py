"""A fingerprint differs as soon as anything that decides a result does, and only then."""

import copy
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF
from icqf.datasets import load_demo
from icqf.engines import fingerprint


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
