"""``icqf describe``, and what fits, scores and cards do with what was stated."""

import json
import shutil

import pandas as pd
import pytest

from icqf import ICQF
from icqf.datasets import make_battery
from small_study import codebook


@pytest.fixture
def folder(results, tmp_path):
    """A copy of the results, to be written to."""
    return shutil.copytree(results, tmp_path / "results")


def test_statements_are_added_corrected_and_taken_back_without_a_fit(run, folder, files, tmp_path):
    before, model = run("score", folder, files / "answers.csv").stdout, folder / "model.icqf"
    first = model.read_bytes()
    assert run("describe", folder).stdout.count("not stated") == 8 and model.read_bytes() == first
    done = run("describe", folder, "--licence", "cc by 4", "--sample", "two clinics", "--language", "en")
    assert done.exit_code == 0 and "Did you mean CC-BY-4.0?" in done.stderr
    (tmp_path / "study.toml").write_text('licence = "cc-by-4.0"\nlanguage = "de"\n')
    done = run("describe", model, "--about", tmp_path / "study.toml", "--language", "fr", "--sample", "")
    assert "Licence: CC-BY-4.0\n" in done.stdout and "Language: fr\n" in done.stdout
    assert "Sample: not stated\n" in done.stdout and not done.stderr
    assert ICQF.load(model).about_.licence == "CC-BY-4.0"
    assert run("score", folder, files / "answers.csv").stdout == before
    run("describe", folder, "--licence", "", "--language", "")
    assert model.read_bytes() == first


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--language", "German"), "--language must be a language tag"),
        (("--about", "none.toml"), "none.toml"),
        (("--license", "MIT"), "--licence"),
    ],
)
def test_bad_statements_leave_the_file_alone(run, folder, words, message):
    first = (folder / "model.icqf").read_bytes()
    done = run("describe", folder, *words)
    assert done.exit_code == 2 and message in done.stderr
    assert (folder / "model.icqf").read_bytes() == first


def test_a_fit_takes_what_is_stated_and_a_score_compares(run, usual, files, tmp_path):
    (tmp_path / "study.toml").write_text('instrument = "Mood Scale"\nlanguage = "en"\n')
    out = tmp_path / "results"
    assert run("fit", *usual, "--about", tmp_path / "study.toml", "--out", out).exit_code == 0
    assert "study.toml" in (out / "config.toml").read_text()
    card = json.loads(run("show", out, "--json").stdout)
    assert card["about"]["instrument"] == "Mood Scale" and card["title"].startswith("Mood Scale: 2 factors")
    assert run("show", out, "--front-matter").stdout.startswith('---\nlanguage: "en"\n')
    assert run("show", out, "--markdown").stdout.startswith("# Mood Scale: 2 factors")
    for instrument, warned in (("Worry Scale", True), ("mood scale", False)):
        codebook().assign(instrument=instrument).to_csv(tmp_path / "items.csv", index=False)
        done = run("score", out, files / "answers.csv", "--codebook", tmp_path / "items.csv")
        assert done.exit_code == 0
        said = "instrument 'Mood Scale', and these answers are of 'Worry Scale'" in done.stderr
        assert said == warned and not (said and "not known" not in done.stderr)


def test_a_search_is_told(run, usual, tmp_path):
    words = [word for word in usual if word not in ("--n-components", "2")]
    words += ["--n-components", "1-2", "--n-splits", "3", "--n-repeats", "1"]
    assert run("fit", *words, "--out", tmp_path / "results").exit_code == 0
    (said,) = json.loads(run("show", tmp_path / "results", "--json").stdout)["models"].values()
    assert said["numbers_of_factors_compared"] == [1, 2] and -1 < said["r_squared_hidden"] < 1
    text = " ".join(run("show", tmp_path / "results").stdout.split())
    assert "chosen by 3-fold cross-validation from 1 to 2; it" in text
    assert "predicts hidden answers with R² = " in text


def test_the_norms_of_a_model_are_named(run, results, files, tmp_path):
    words = (results, files / "answers.csv", "--sample", "pupils in Ohio", "--out", tmp_path / "norms")
    assert run("norms", *words).exit_code == 0
    shown = run("show", results, "--norms", tmp_path / "norms" / "norms.icqf-norms", "--markdown").stdout
    assert "pupils in Ohio" in shown and "No norms come" not in shown


def test_a_battery_is_described_but_not_as_one_instrument(run, tmp_path):
    made = make_battery(n=80, n_items=(6, 6), n_factors=2, n_meta=2, random_state=0)
    (tmp_path / "study").mkdir()
    for name, each in made.battery.instruments.items():
        each.answers.to_csv(tmp_path / "study" / f"{name}.csv")
    words = ("--n-components", 2, "--beta", 0.1, "--n-meta", 2, "--meta-beta", 0.1, "--no-compare")
    (tmp_path / "study.toml").write_text('sample = "pupils"\nlicence = "MIT"\n')
    out = tmp_path / "results"
    fitted = run("meta", tmp_path / "study", *words, "--about", tmp_path / "study.toml", "--out", out)
    assert fitted.exit_code == 0, fitted.stderr
    refused = run("describe", out, "--instrument", "SDQ")
    assert refused.exit_code == 2 and "--instrument is for one instrument" in refused.stderr
    assert "Contact: a@b.org" in run("describe", out, "--contact", "a@b.org").stdout
    shown = run("show", out, "--markdown").stdout
    assert "**Sample**: pupils" in shown and "[MIT](https" in shown and "a@b.org" in shown
    assert all(f"**{name}**: 6 items" in shown for name in made.battery.instruments)
    assert pd.read_csv(out / "factor_scores.csv").shape[0] == 80
