"""Items that run against the others: named, suggested, and reversed by hand or automatically."""

import json

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF
from icqf.io import read_codebook, read_questionnaire
from small_study import ITEMS, REVERSED, codebook

QUICK = ("--items", "q*", "--missing-codes", "9", "--n-components", "2", "--beta", "0.1")
LOOKS = f"1 item looks reversed but is used as it is: '{REVERSED}'."
NOTED = f"Reversed because they run against the others: '{REVERSED}'."
WAS = f"1 item was reversed because it runs against the others: '{REVERSED}'."


@pytest.fixture
def fit(run, files, tmp_path):
    """Fit the small study; gives the folder and the lines on standard error."""

    def call(*words, out="out"):
        result = run("fit", files / "answers.csv", *QUICK, *words, "--out", tmp_path / out)
        assert result.exit_code == 0, result.stderr
        return tmp_path / out, result.stderr.splitlines()

    return call


def first_line(folder):
    """The first line of the report's text after its title, where what could be wrong stands."""
    return (folder / "report.md").read_text().splitlines()[2].removeprefix("- **Take care.** ")


def directions(folder):
    return list(json.loads((folder / "provenance.json").read_text())["directions"].values())


def test_a_fit_begins_with_what_looks_reversed_and_what_to_do(fit):
    folder, said = fit("--report")
    assert said[0].startswith(f"Warning: {LOOKS}")
    for way in ("--reverse auto", "codebook --suggest", "icqf check"):
        assert way in said[0]
    assert first_line(folder).startswith(LOOKS) and "--reverse auto" in first_line(folder)
    assert LOOKS.replace("'", "&#39;") in (folder / "report.html").read_text()
    assert directions(folder) == [[], [], [REVERSED]]


def test_reversing_them_is_said_everywhere_and_kept_for_scoring(run, fit, files, tmp_path):
    folder, said = fit("--report", "--reverse", "auto")
    assert said[0] == f"Warning: {WAS} Confirm this by the wording."
    assert first_line(folder).startswith(WAS)
    assert directions(folder) == [[], [REVERSED], []]
    assert NOTED in json.loads((folder / "provenance.json").read_text())["notes"]
    assert f"  Reversed      {REVERSED} because they run against the others" in said
    assert sum(REVERSED in line for line in said) == 2  # and not a third time among the notes
    assert [item.name for item in ICQF.load(folder / "model.icqf").codebook_.items if item.reverse] == [
        REVERSED
    ]
    scored = run("score", folder / "model.icqf", files / "answers.csv", "--out", tmp_path / "scores.csv")
    assert scored.exit_code == 0 and f"'{REVERSED}'" in scored.stderr
    again, before = (pd.read_csv(place / "scores.csv", index_col=0) for place in (tmp_path, folder))
    np.testing.assert_allclose(again, before, atol=1e-4)


@pytest.mark.parametrize("name", [REVERSED, "q03*"])
def test_by_hand_and_by_config_is_the_same_as_by_itself(run, fit, tmp_path, name):
    auto, _ = fit("--reverse", "auto", out="auto")
    hand, said = fit("--reverse", name, out="hand")
    assert (
        said[0].startswith("What will be analysed") and f"  Reversed      {REVERSED} at your request" in said
    )
    assert directions(hand) == [[REVERSED], [], []]
    again = run("fit", "--config", auto / "config.toml", "--out", tmp_path / "again")
    assert again.exit_code == 0
    for folder in (hand, tmp_path / "again"):
        assert (folder / "scores.csv").read_bytes() == (auto / "scores.csv").read_bytes()


def test_the_same_from_python(files):
    asked = {"items": ITEMS, "missing_codes": [9], "id": "record_id"}
    read = read_questionnaire(files / "answers.csv", **asked, reverse="auto")
    assert read.found_reversed == (REVERSED,)
    assert [item.name for item in read.items if item.reverse] == [REVERSED]
    assert read_questionnaire(files / "answers.csv", **asked).found_reversed == ()


def test_nothing_is_said_where_the_codebook_says_it_all(run, files, fit):
    folder, said = fit("--report", "--codebook", files / "items.csv")
    assert not any(line.startswith("Warning") for line in said)
    assert "reversed" not in first_line(folder)
    assert directions(folder) == [[REVERSED], [], []]


def test_auto_says_when_there_is_none(fit, files):
    _, said = fit("--codebook", files / "items.csv", "--reverse", "auto")
    assert "Note: No item clearly runs against the others; none was reversed." in said


def test_an_item_that_is_not_there(run, files, tmp_path):
    result = run("fit", files / "answers.csv", "--reverse", "q033", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "No item is named or matches 'q033'." in result.stderr and "Did you mean 'q03'?" in result.stderr
    assert not (tmp_path / "out").exists()


def test_check_shows_strength_and_certainty(run, files):
    words = ("--items", "q*", "--missing-codes", "9")
    said = run("check", files / "answers.csv", *words).stdout
    (line,) = (line for line in said.splitlines() if "runs against" in line)
    assert f"Item '{REVERSED}'" in line and f"--reverse {REVERSED}" in line
    for part in ("and 2 more", "correlation −0.", "95 % interval", "of resamples"):
        assert part in line
    assert "--reverse auto reverses them all" in said.splitlines()[-1]
    assert "runs against" not in run("check", files / "answers.csv", *words, "--reverse", REVERSED).stdout


def test_check_names_the_wording_and_an_item_reversed_by_mistake(run, files, tmp_path):
    book = codebook()
    book["direction"] = ["reverse" if name == "q08" else "" for name in ITEMS]
    book.to_csv(tmp_path / "items.csv", index=False)
    said = run("check", files / "answers.csv", "--codebook", tmp_path / "items.csv").stdout
    assert f"Item '{REVERSED}' ('Question {REVERSED}') runs against" in said and "of 'Mood'" in said
    (line,) = (line for line in said.splitlines() if "Item 'q08'" in line)
    assert "although it is declared reversed. Check its direction in the codebook." in line


def test_suggested_codebook(run, files, tmp_path):
    result = run("codebook", files / "answers.csv", "--suggest", "--out", tmp_path / "items.csv")
    assert result.exit_code == 0
    assert (
        f"Note: Declared reversed because they run against the others: '{REVERSED}'. Please confirm."
        in result.stderr
    )
    book = pd.read_csv(tmp_path / "items.csv").set_index("name")
    assert list(book.index[book["direction"] == "reverse"]) == [REVERSED]
    assert list(book.index[book["remark"].str.contains("runs against")]) == [REVERSED]
    assert [item.name for item in read_codebook(tmp_path / "items.csv") if item.reverse] == [REVERSED]
    check = run("check", files / "answers.csv", "--codebook", tmp_path / "items.csv")
    assert "looks reversed" not in check.stdout and "no column" not in check.stderr
    plain = run("codebook", files / "answers.csv").stdout
    assert "reverse" not in plain and "runs against" not in plain


def test_two_opposite_ends_are_said_and_nothing_is_reversed(run, tmp_path):
    rng = np.random.default_rng(0)
    mood = rng.normal(size=(300, 1)) * np.repeat([1, -1], 4) + 0.7 * rng.normal(size=(300, 8))
    names = ["happy", "glad", "merry", "cheerful", "sad", "blue", "gloomy", "unhappy"]
    answers = pd.DataFrame(np.clip(np.rint(mood + 2), 0, 4).astype(int), columns=names)
    answers.to_csv(tmp_path / "moods.csv", index=False)
    said = run("check", tmp_path / "moods.csv").stdout
    assert "form two opposite ends (correlation −0." in said and "looks reversed" not in said
    result = run("codebook", tmp_path / "moods.csv", "--suggest")
    assert "reverse," not in result.stdout and "One of two opposite ends, against 'happy'" in result.stdout
    assert "two opposite ends" in result.stderr
    words = (
        "--n-components",
        2,
        "--beta",
        0.1,
        "--no-report",
        "--reverse",
        "auto",
        "--out",
        tmp_path / "out",
    )
    fitted = run("fit", tmp_path / "moods.csv", *words)
    assert fitted.exit_code == 0 and "none was reversed" in fitted.stderr
