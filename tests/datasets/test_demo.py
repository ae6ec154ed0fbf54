"""The demo is what its script makes, and looks like a study."""

import runpy
from pathlib import Path

import numpy as np

from icqf.datasets import demo_paths, load_demo
from icqf.datasets.simulated import demo_items

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "_demo.py"))


def test_the_shipped_files_are_what_the_script_makes(tmp_path):
    for made, shipped in zip(SCRIPT["write"](tmp_path), demo_paths(), strict=True):
        assert made.read_bytes() == shipped.read_bytes()


def test_same_seed_same_table():
    simulate = SCRIPT["simulate"]
    assert simulate(3, n_participants=40).equals(simulate(3, n_participants=40))
    assert not simulate(3, n_participants=40).equals(simulate(4, n_participants=40))


def test_shape_and_codebook():
    demo = load_demo()
    assert demo.answers.shape == (600, 119)
    assert demo.items == demo_items() == SCRIPT["items"]()
    assert {item.subscale for item in demo.items} == set(SCRIPT["WORDINGS"]) and len(SCRIPT["WORDINGS"]) == 8
    assert len({item.wording for item in demo.items}) == 119
    assert sum(item.reverse for item in demo.items) == 2
    assert demo.confounds is not None and demo.confounds["age"].between(6, 18).all()
    assert set(demo.confounds["sex"]) == {"female", "male"}
    assert demo.groups is not None and demo.groups.nunique() < 600
    assert 0.02 < demo.answers.isna().to_numpy().mean() < 0.04
    assert any(note.startswith("9 was read as missing") for note in demo.notes)


def test_items_of_a_syndrome_go_together():
    demo = load_demo()
    keyed = demo.keyed_answers()
    scale = np.array([item.subscale for item in demo.items])
    r = keyed.corr().to_numpy()
    same = (scale[:, None] == scale) & ~np.eye(119, dtype=bool)
    assert r[same].min() > 0.1
    assert r[same].mean() > r[scale[:, None] != scale].mean() + 0.15
