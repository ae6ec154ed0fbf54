"""What a newcomer's first commands say: once, in order, with the option to type, and never a traceback."""

import json

import numpy as np
import pandas as pd
import pytest

from small_study import ITEMS, REVERSED, table

QUESTION = "In the last two weeks, how often were you bothered by any of these problems? [{}]"


def frame():
    """The small study without codes for gaps: answers 0 to 3, one item reversed."""
    return table().replace("9", "")


@pytest.fixture
def saved(tmp_path):
    def save(content, name="study.csv"):
        path = tmp_path / name
        content.to_csv(path, index=False)
        return path

    return save


def two_reversed():
    """The same with a second reversed item."""
    numbers = pd.to_numeric(frame()["q08"])
    return frame().assign(q08=(3 - numbers).astype("Int64"))


def test_items_that_look_reversed_are_one_point(run, saved):
    said = run("check", saved(two_reversed())).stdout
    head = "  - 2 items run against others, so they look reversed. If they are, add --reverse q03 q08:\n"
    assert head in said and said.count("look reversed. If") == 1
    below = said.partition(head)[2].splitlines()
    assert below[0].startswith("      'q03' runs against ") and below[1].startswith(
        "      'q08' runs against "
    )
    found = json.loads(run("check", saved(two_reversed()), "--json").stdout)["findings"]
    assert [each["item"] for each in found if each["code"] == "looks-reversed"] == ["q03", "q08"]


def test_one_item_is_spoken_of_in_the_singular(run, saved):
    said = run("fit", saved(frame()), "--dry-run").stdout
    assert "it is lost to its factor. Add --reverse auto to reverse it, name it with" in said


def test_names_that_are_whole_questions_are_shortened_but_typed_whole(run, saved):
    names = {name: QUESTION.format(name) for name in ITEMS}
    path = saved(two_reversed().rename(columns=names))
    said = run("check", path).stdout
    assert (
        "add --reverse auto:" in said
        and "'In the last two weeks…y of these problems? [q03]' runs against" in said
    )
    assert names["q01"] not in said
    one = run("check", saved(frame().rename(columns=names))).stdout
    typed = one.partition("add --reverse '")[2].partition("'")[0]
    result = run("fit", path, "--reverse", typed, "--dry-run")
    assert result.exit_code == 0 and "[q03] at your request" in result.stdout


@pytest.mark.parametrize("name", ["sad, blue [today]", "auto", "--out", "-k", "*"])
def test_any_name_can_be_reversed_as_it_is_advised(run, saved, name):
    path = saved(frame().rename(columns={REVERSED: name}))
    advice = run("check", path).stdout.partition("add --reverse")[2].splitlines()[0].removesuffix(".")
    words = [f"--reverse{advice}"] if advice.startswith("=") else ["--reverse", advice.strip().strip("'")]
    result = run("fit", path, *words, "--dry-run")
    assert result.exit_code == 0 and f"Reversed      {name} at your request" in result.stdout


def test_ids_and_gaps_are_said_once(run, saved):
    said = run("check", saved(frame())).stdout
    assert "with the ids in 'record_id'" in said and "holds the participant ids" not in said
    full = frame()
    full[ITEMS] = np.random.default_rng(0).integers(0, 4, (80, 12))
    said = run("check", saved(full)).stdout
    assert "No answer is missing." in said and "0.0 %" not in said


def test_a_dry_run_says_which_rows_were_kept(run, saved):
    waves = pd.concat([frame().assign(wave=1), frame().assign(wave=2)])
    path = saved(waves)
    said = run("fit", path, "--visit", "wave=1", "--dry-run").stdout
    assert "Note: Kept 80 of 160 rows: those with wave = 1." in said
    twice = run("fit", path, "--visit", "wave=1", "--visit", "wave=2", "--dry-run")
    assert twice.exit_code == 2
    assert "--visit names the column 'wave' twice; choose one visit." in twice.stderr


def test_the_verdict_does_not_praise_what_is_worth_a_look(run, saved):
    few = run("check", saved(frame().head(3))).stdout
    assert "Only 3 participants answered; factors from so few do not generalize." in few
    assert "Ready to fit" not in few and "A fit is possible; look at the points above" in few


def test_many_constant_items_are_one_point(run, saved):
    same = frame().head(1)
    same[ITEMS] = [[str(j % 3 + 1) for j in range(12)]]
    said = run("check", saved(same)).stdout
    assert (
        "Everybody gave the same answer to each of 12 items: 'q01'" in said and said.count("Everybody") == 1
    )


def test_a_copied_column_is_named(run, saved):
    said = run("check", saved(frame().assign(q13=frame()["q05"]))).stdout
    assert "Item 'q13' has the same answer as 'q05' for every participant." in said


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (
            pd.date_range("2020-01-01", periods=80).astype(str),
            "as dates, times or durations: 'a', 'b'.",
        ),
        ([f"some text {i} here" for i in range(80)], "Left out because they hold text rather than numbers"),
        (np.arange(80) * 1.37, "Left out because no other columns share their answer scale"),
    ],
)
def test_a_file_without_items_says_what_its_columns_are(run, saved, column, why):
    result = run("check", saved(pd.DataFrame({"a": column, "b": column})))
    assert result.exit_code == 2 and why in result.stderr
    assert "Name the items with --items, or describe them with --codebook." in result.stderr
    book = run("codebook", saved(pd.DataFrame({"a": column, "b": column})))
    assert book.exit_code == 2 and why in book.stderr and book.stdout == ""


@pytest.mark.parametrize("option", ["--reverse", "--items", "--missing-codes"])
def test_an_option_without_its_value_takes_no_other_option(run, saved, option):
    result = run("fit", saved(frame()), option, "--dry-run")
    assert result.exit_code == 2 and f"Option '{option}' requires an argument." in result.stderr


def test_labels_with_two_meanings_are_refused(run, saved, files):
    book = saved(pd.DataFrame({"name": ["q01"], "labels": ["0=no; 0=yes"]}), "items.csv")
    result = run("check", files / "answers.csv", "--codebook", book)
    assert result.exit_code == 2
    assert "items.csv: row 2, column 'labels' gives 0 two meanings. Keep one." in result.stderr


def test_a_huge_number_is_not_written_out(run, saved):
    odd = frame()
    odd.loc[3, "q01"] = "1e300"
    said = run("check", saved(odd)).stdout
    assert "holds 1e+300, far from the answers" in said and "0000000000" not in said


def test_thousands_of_columns_are_checked(run, saved):
    wide = pd.DataFrame(np.random.default_rng(0).integers(0, 4, (12, 1_100))).add_prefix("v")
    path = saved(wide)
    said = run("check", path).stdout
    assert "Items         1100: v0–v1099" in said
    assert "Reversed items were not searched for: there are 1100 items, more than 1000." in said
    book = run("codebook", path, "--suggest")
    assert "Directions were not compared: 1100 items" in book.stderr and "No item runs" not in book.stderr
    result = run("fit", path, "--reverse", "auto", "--dry-run")
    assert result.exit_code == 2 and "Name the items to reverse with --reverse" in result.stderr


def test_scales_may_be_negative_and_codes_too(run, saved):
    values = np.random.default_rng(1).integers(-1, 2, (80, 5))
    scale = pd.DataFrame(values, columns=[f"q{j}" for j in range(5)])
    assert "-1 to 1, not declared" in run("check", saved(scale)).stdout
    scale.loc[[3, 9], "q2"] = -9
    said = run("check", saved(scale)).stdout
    assert "-1 to 1, not declared" in said
    assert "Item 'q2' holds -9" in said and "add --missing-codes -9; if not" in said
