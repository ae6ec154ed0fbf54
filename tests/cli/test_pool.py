"""``icqf pool``: hospitals fit with one config.toml, send their models, and get one that scores anywhere."""

import re
import subprocess
import sysconfig
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF
from icqf.datasets import demo_paths, load_demo, make_longitudinal
from icqf.models import LongitudinalICQF

CONFIG = """\
codebook = "items.csv"
confounds = ["age", "sex"]
confound_ranges = { age = [5, 21] }
items = ["q00*", "q01*", "q02*", "q03*"]
n_components = 3
beta = 0.1
report = false
bootstrap = 0
"""
PROGRAM = Path(sysconfig.get_path("scripts"), "icqf")


@pytest.fixture(scope="module")
def hospitals(tmp_path_factory, run):
    """Three hospitals, each with its own answers, the common config.toml and the model that it fitted."""
    folder = tmp_path_factory.mktemp("hospitals")
    answers, codebook = demo_paths()
    (folder / "items.csv").write_bytes(codebook.read_bytes())
    (folder / "config.toml").write_text(CONFIG)
    whole = pd.read_csv(answers)
    dealt = np.split(np.random.default_rng(0).permutation(600), [150, 350])
    for name, rows in zip("abc", dealt, strict=True):
        whole.iloc[np.sort(rows)].to_csv(folder / f"{name}.csv", index=False)
        words = ("fit", folder / f"{name}.csv", "--config", folder / "config.toml")
        done = run(*words, "--out", folder / name, "--quiet")
        assert done.exit_code == 0, done.stderr
        (folder / f"{name}.icqf").write_bytes((folder / name / "model.icqf").read_bytes())
    return folder


def installed(*words, cwd):
    """The installed command, as a hospital calls it."""
    return subprocess.run(
        [PROGRAM, *map(str, words)], cwd=cwd, capture_output=True, text=True, encoding="utf-8"
    )


def test_three_hospitals_get_one_model_that_scores(hospitals, run, monkeypatch):
    done = installed("pool", "a.icqf", "b.icqf", "c.icqf", cwd=hospitals)
    assert done.returncode == 0, done.stderr
    assert "3 factors behind 39 items, pooled from 3 sites with 600 participants." in done.stdout
    written = {path.name for path in hospitals.glob("pooled*")}
    assert written == {"pooled.icqf", "pooled.csv", "pooled.html", "pooled.md", "pooled-agreement.png"}
    monkeypatch.chdir(hospitals)
    scored = run("score", "pooled.icqf", "a.csv", "--out", "scores.csv")
    assert scored.exit_code == 0, scored.stderr
    scores = pd.read_csv(hospitals / "scores.csv", index_col=0)
    assert scores.shape == (150, 3) and scores.to_numpy().min() >= 0 and scores.to_numpy().max() <= 1
    shown = run("show", "pooled.icqf")
    assert "averages over 3 fits" in shown.stdout

    table = pd.read_csv(hospitals / "pooled.csv")
    assert list(table.columns) == ["factor", "site", "own_factor", "r", "found", "averaged"]
    assert sorted(table["site"].unique()) == ["a", "b", "c"] and table["r"].between(-1, 1).all()
    page = (hospitals / "pooled.html").read_text(encoding="utf-8")
    assert "<h1" in page and "data:image/png" in page and "://" not in page
    assert f"{table['r'].min():.2f}" in page and "150" in page and "250" in page
    assert (hospitals / "pooled.md").read_text(encoding="utf-8").startswith("# One model from several sites")

    again = run("pool", "a.icqf", "b.icqf", "c.icqf")
    assert again.exit_code == 2 and "already exists" in again.stderr and "--force" in again.stderr
    before = (hospitals / "pooled.icqf").read_bytes()
    forced = run("pool", "c.icqf", "a.icqf", "b.icqf", "--force", "--quiet")
    assert (
        forced.exit_code == 0 and forced.stdout == "" and before == (hospitals / "pooled.icqf").read_bytes()
    )


def test_sites_in_folders_are_called_by_their_folders(hospitals, run, tmp_path):
    models = [hospitals / name / "model.icqf" for name in "ab"]
    done = run("pool", *models, "--out", tmp_path / "two.icqf")
    assert done.exit_code == 0
    assert set(pd.read_csv(tmp_path / "two.csv")["site"]) == {"a", "b"}


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """Models that cannot be pooled with those of the hospitals."""
    folder = tmp_path_factory.mktemp("others")
    demo = load_demo().select(["q00*", "q01*", "q02*", "q03*"])
    ICQF(2).fit(demo).save(folder / "factors.icqf")
    ICQF(3).fit(demo.select(["q00*"])).save(folder / "items.icqf")
    visits = make_longitudinal(n=80, n_items=6, n_bins=3, k=2, random_state=0).visits
    LongitudinalICQF(2, item_range=(0, 4), n_init=1).fit(visits).save(folder / "visits.icqf")
    (folder / "table.icqf").write_text("id,q1\n1,2\n")
    return folder


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("factors", r"factors\.icqf: the model has 2 factors, and that of .*a\.icqf has 3\."),
        ("items", r"items\.icqf: the model has no item 'q010', and that of .*a\.icqf has it \(39 items\)\."),
        ("visits", r"visits\.icqf: this is a model of repeated visits, and only models of icqf fit can be"),
        ("table", r"table\.icqf: this is not an icqf model file"),
        ("nowhere", r"nowhere\.icqf: there is no such file"),
    ],
)
def test_what_cannot_be_pooled_is_refused_in_one_sentence(hospitals, others, run, tmp_path, name, said):
    done = run("pool", hospitals / "a.icqf", others / f"{name}.icqf", "--out", tmp_path / "pooled.icqf")
    assert done.exit_code == 2 and re.search(said, done.stderr.replace("\n", " ")), done.stderr
    assert not list(tmp_path.iterdir())


def test_one_model_the_same_model_and_other_places_are_refused(hospitals, run, tmp_path):
    a, b = hospitals / "a.icqf", hospitals / "b.icqf"
    kept = a.read_bytes()
    for words, said in (
        ((a, "--out", tmp_path / "x.icqf"), "give the model files of two sites or more"),
        ((a, a, "--out", tmp_path / "x.icqf"), "this is the same model as"),
        ((a, b, "--out", tmp_path / "x.csv"), "choose a model file, such as x.icqf"),
        ((a, b, "--out", a, "--force"), "this is an input file"),
        ((), "No model files are given."),
    ):
        done = run("pool", *words)
        assert done.exit_code == 2 and said in done.stderr, done.stderr
    assert a.read_bytes() == kept and not list(tmp_path.iterdir())


def test_of_two_sites_neither_agrees_less(run, hospitals, tmp_path):
    pooled = tmp_path / "pooled.icqf"
    done = run("pool", hospitals / "a.icqf", hospitals / "b.icqf", "--out", pooled)
    assert "The loadings of the two correlate" in done.stdout and "lowest_site" not in done.stdout
    assert "lowest r" not in (tmp_path / "pooled.md").read_text(encoding="utf-8")
    assert "count twice" not in done.output
    again = run("pool", pooled, hospitals / "a.icqf", "--out", tmp_path / "again.icqf")
    assert "Note: pooled is itself an average of 2 fits; if another of these" in again.stderr


def test_a_model_whose_factors_were_named_since_is_still_the_same(run, hospitals, tmp_path):
    named = ICQF.load(hospitals / "a.icqf")
    named.name_factors(["Mood", "Temper", "Worry"])
    named.save(tmp_path / "named.icqf")
    done = run("pool", hospitals / "a.icqf", tmp_path / "named.icqf", "--out", tmp_path / "pooled.icqf")
    assert done.exit_code == 2 and "this is the same model as" in done.stderr
