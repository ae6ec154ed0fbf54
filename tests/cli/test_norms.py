"""`icqf norms` learns percentiles from a results folder, and `icqf score --norms` gives them to others."""

import io

import numpy as np
import pandas as pd
import pytest

from small_study import ITEMS, table


def participants():
    """Ids and ages that no other number or word is like."""
    frame = table(seed=3, n=240)
    rng = np.random.default_rng(3)
    return frame.assign(
        record_id=[f"ZEBRA-{i}" for i in range(240)], age=(frame["age"] + rng.random(240) / 20).round(7)
    )


@pytest.fixture(scope="module")
def place(run, files, tmp_path_factory):
    """A study of 240 fitted without confounds, and its norms by age and sex."""
    folder = tmp_path_factory.mktemp("norms")
    participants().to_csv(folder / "answers.csv", index=False)
    words = ("--codebook", files / "items.csv", "--n-components", "2", "--beta", "0.1")
    fitted = run("fit", folder / "answers.csv", *words, "--out", folder / "results")
    assert fitted.exit_code == 0, fitted.stderr
    told = run(
        "norms", folder / "results", "--by", "age", "sex", "--sample", "a town", "--out", folder / "norms"
    )
    assert told.exit_code == 0, told.stderr
    assert "Reference sample: a town, about 2" in told.stdout and "standard error" in told.stdout
    return folder


def scored(run, place, frame, *more):
    frame.to_csv(place / "new.csv", index=False)
    norms = place / "norms" / "norms.icqf-norms"
    result = run("score", place / "results" / "model.icqf", place / "new.csv", "--norms", norms, *more)
    assert result.exit_code == 0, result.stderr
    return pd.read_csv(io.StringIO(result.stdout)), result.stderr


def test_percentiles_follow_scores_and_say_whom_they_compare_with(run, place):
    scores, notes = scored(run, place, participants())
    assert {"factor1_percentile", "factor1_t", "factor2_percentile", "factor2_t"} <= {*scores.columns}
    assert "Percentiles compare with this sample. Reference sample: a town, about 2" in notes
    known = scores.dropna()
    assert known["factor1"].corr(known["factor1_percentile"], method="spearman") > 0.95
    assert 45 < known["factor1_percentile"].mean() < 55 and 48 < known["factor1_t"].mean() < 52


def test_without_age_there_is_no_percentile_and_a_note(run, place):
    frame = participants().head(10)
    frame["age"] = pd.Series([10.1] * 10, dtype=object)
    frame.loc[[1, 2], "age"], frame.loc[3, "age"] = "", 99
    scores, notes = scored(run, place, frame)
    assert scores["factor1"].notna()[[1, 2, 3]].all()
    assert (
        scores["factor1_percentile"].isna()[[1, 2, 3]].all() and scores["factor1_t"].isna()[[1, 2, 3]].all()
    )
    assert "3 participants have no percentiles: age is missing (2); age is outside" in notes


def test_every_page_with_a_percentile_names_the_reference_sample(place):
    for name in ("norms.html", "norms.md"):
        text = (place / "norms" / name).read_text(encoding="utf-8")
        assert text.count("Reference sample: a town") >= 5  # at the top, and with every picture and table


def test_no_participant_is_in_the_folder(place):
    ages = participants()["age"].astype(str)
    for file in (place / "norms").iterdir():
        if file.suffix != ".png":
            text = file.read_bytes().decode("utf-8", errors="replace")
            assert "ZEBRA" not in text, file.name
            assert not any(each in text for each in ages), file.name


def test_norms_of_another_model_are_refused(run, place, results, files):
    norms = place / "norms" / "norms.icqf-norms"
    result = run("score", results / "model.icqf", files / "answers.csv", "--norms", norms)
    assert result.exit_code == 2 and "The norms belong to another model" in result.stderr
    folder = run("score", results / "model.icqf", files / "answers.csv", "--norms", place / "norms")
    assert folder.exit_code == 2 and "Give the file 'norms.icqf-norms' in it." in folder.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--by", "income"), "income"),
        (("--by", ITEMS[0]), "is an item of the model"),
        (("--by", "age", "--out", "OUT"), "the folder already contains results"),
    ],
)
def test_what_cannot_be_used_is_refused(run, place, tmp_path, words, said):
    words = [place / "norms" if word == "OUT" else word for word in words]
    words += [] if "--out" in words else ["--out", tmp_path / "norms"]
    result = run("norms", place / "results", *words)
    assert result.exit_code == 2 and said in result.stderr, result.stderr


def test_another_sample_is_the_reference_with_its_weights(run, place, tmp_path):
    frame = table(seed=4, n=200)
    frame["w"] = np.linspace(0.5, 2, 200)
    frame.to_csv(tmp_path / "other.csv", index=False)
    words = ("--by", "sex", "--weights", "w", "--out", tmp_path / "norms")
    result = run("norms", place / "results" / "model.icqf", tmp_path / "other.csv", *words)
    assert result.exit_code == 0, result.stderr
    assert (
        "about 200 participants (sex: " in result.stdout
        and "weighted by their survey weights" in result.stdout
    )


def test_answers_that_were_moved_must_be_named(run, place, tmp_path):
    moved = tmp_path / "away.csv"
    (place / "answers.csv").rename(moved)
    try:
        result = run("norms", place / "results", "--by", "sex", "--out", tmp_path / "norms")
        assert result.exit_code == 2 and "no longer where they were" in result.stderr, result.stderr
        assert run("norms", place / "results", moved, "--by", "sex", "--out", tmp_path / "n").exit_code == 0
    finally:
        moved.rename(place / "answers.csv")
