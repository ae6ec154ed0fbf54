"""What will be analysed, through the command: check, fit, select, their dry runs, and what is written."""

import json

import numpy as np
import pandas as pd
import pytest

from small_study import ITEMS, table

FIT = ("--n-components", "2", "--beta", "0.1")


@pytest.fixture
def novice(tmp_path):
    """The small study as a newcomer has it: totals, demographics and a comment beside the items."""
    frame = table().replace("9", "")
    numbers = frame[ITEMS].apply(pd.to_numeric)
    frame = frame.assign(
        education=np.arange(80) % 5 + 1,
        mood_total=numbers.iloc[:, :6].sum(axis=1, min_count=6),
        comment="fine",
    )
    path = tmp_path / "in" / "study.csv"
    path.parent.mkdir()
    frame.to_csv(path, index=False)
    return path


EXPECTED = """What will be analysed (study.csv):
  Items         12: q01–q12
  Ranges        0 to 3, not declared: the lowest and highest answer of a family of 12 items
  Left out      as demographic columns: 'age', 'sex', 'education'
                because they identify sites, groups or weights: 'weight'
                because they are sums or means of other columns: 'mood_total' (of 6 columns, 'q01', \
'q02' and 4 more)
                because they hold text rather than numbers: 'comment'
  Participants  79 of 80 rows, with the ids in 'record_id'; left out: 1 (answered nothing)
"""


def test_check_begins_with_it(run, novice):
    result = run("check", novice)
    assert result.exit_code == 0 and result.stdout.startswith(EXPECTED)
    assert "Left out as demographics" not in result.stdout  # not said again among the notes
    content = json.loads(run("check", novice, "--json").stdout)
    assert content["overview"]["items"] == ITEMS
    assert {"name": "age", "reason": "demographic", "detail": ""} in content["overview"]["left_out"]


@pytest.mark.parametrize("command", ["fit", "select"])
def test_a_dry_run_stops_there(run, novice, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    result = run(
        command, novice, "--dry-run", "--out", tmp_path / ("results" if command == "fit" else "cv.csv")
    )
    assert result.exit_code == 0 and EXPECTED in result.stdout
    assert "nothing was written (--dry-run)" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_a_dry_run_refuses_what_a_fit_refuses(run, novice):
    assert run("fit", novice, "--dry-run", "--confounds", "nothing").exit_code == 2


def test_fit_shows_and_writes_it(run, novice, tmp_path):
    out = tmp_path / "results"
    result = run("fit", novice, *FIT, "--report", "--confounds", "age", "--out", out)
    assert result.exit_code == 0
    assert "What will be analysed (study.csv):\n  Items         12: q01–q12\n" in result.stderr
    account = json.loads((out / "provenance.json").read_text())
    assert account["analysed"]["items"] == ITEMS
    assert account["analysed"]["participants"]["in"] == 79
    assert {"name": "mood_total", "reason": "sum", "detail": "of 6 columns, 'q01', 'q02' and 4 more"} in (
        account["analysed"]["left_out"]
    )
    page = (out / "report.html").read_text()
    assert page.index("What was analysed</h2>") < page.index("The sample</h2>")
    assert "a family of 12 items" in page and "&#39;education&#39;" in page


def test_quiet_is_quiet(run, novice, tmp_path):
    assert run("fit", novice, *FIT, "--no-report", "-q", "--out", tmp_path / "out").stderr == ""


def test_items_and_a_codebook_overrule(run, novice):
    named = run("check", novice, "--items", "q*", "education").stdout
    assert "Items         13: q01–q12, education" in named and "as not selected: 'record_id'" not in named
    assert "Ranges        0 to 3 for q01–q12, not declared" in named
    book = novice.parent / "items.csv"
    pd.DataFrame({"name": ["q01", "q02", "education"], "min": [0, 0, 1], "max": [3, 3, 5]}).to_csv(
        book, index=False
    )
    declared = run("check", novice, "--codebook", book).stdout
    assert (
        "Ranges        0 to 3 for q01, q02, declared\n                1 to 5 for education, declared"
        in declared
    )


def test_mixed_widths_are_said_by_fit_and_in_its_report(run, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 2, (80, 6)), columns=[f"m{j}" for j in range(6)])
    frame = frame.assign(**{f"f{j}": rng.integers(0, 4, 80) for j in range(6)})
    frame.to_csv(tmp_path / "mixed.csv", index=False)
    result = run("fit", tmp_path / "mixed.csv", *FIT, "--report", "--out", tmp_path / "out")
    said = "Answer ranges differ in width: 6 items of 3 points, 6 items of 1."
    assert said in result.stderr and said in (tmp_path / "out" / "report.html").read_text()
    assert "0 to 1 for m0–m5, not declared" in result.stderr and "0 to 3 for f0–f5" in result.stderr


@pytest.mark.parametrize("value", ["44", "17", "555"])
def test_a_value_far_outside_its_family_names_row_and_participant(run, novice, tmp_path, value):
    frame = pd.read_csv(novice, dtype=str)
    frame.loc[10, "q05"] = value
    frame.drop(columns="mood_total").to_csv(novice, index=False)
    checked = run("check", novice)
    said = (
        f"Item 'q05' holds {value}, far from the answers of its family of 12 items, 0 to 3 (row 12, "
        f"participant '011'). If {value} marks a missing answer, add --missing-codes {value}; if not, "
        "declare the item's range in a codebook."
    )
    assert checked.exit_code == 1 and said in checked.stdout
    assert "Ranges        0 to 3, not declared" in checked.stdout
    fitted = run("fit", novice, *FIT, "--out", tmp_path / "out")
    assert fitted.exit_code == 2 and said in fitted.stderr and not (tmp_path / "out").exists()
    told = run("fit", novice, *FIT, "--no-report", "--missing-codes", value, "--out", tmp_path / "out")
    assert told.exit_code == 0


def test_many_columns_of_text_are_one_finding(run, tmp_path):
    rng = np.random.default_rng(0)
    words = pd.DataFrame(
        rng.choice(["perhaps", "who knows", "indeed"], (40, 48)), columns=[f"q{j}" for j in range(48)]
    )
    words.to_csv(tmp_path / "words.csv", index=False)
    pd.DataFrame({"name": list(words), "min": 0, "max": 2}).to_csv(tmp_path / "items.csv", index=False)
    found = json.loads(
        run("check", tmp_path / "words.csv", "--codebook", tmp_path / "items.csv", "--json").stdout
    )
    errors = [finding for finding in found["findings"] if finding["severity"] == "error"]
    assert len([error for error in errors if "perhaps" in error["sentence"] or "text" in error["code"]]) == 1


@pytest.mark.parametrize("at", ["id", "item", "text"])
def test_a_name_of_any_length_fits_on_the_screen(run, tmp_path, at):
    """As an id column, an item and a column that is left out, in check, fit and show."""
    rng, long = np.random.default_rng(0), "x" * 100_000
    answers = pd.DataFrame(rng.integers(0, 4, (60, 8)), columns=[f"q{j}" for j in range(8)])
    if at == "id":
        answers.insert(0, long, range(500, 560))
    elif at == "item":
        answers = answers.rename(columns={"q3": long})
    else:
        answers[long] = [f"note {row}" for row in range(60)]
    answers.to_csv(tmp_path / "answers.csv", index=False)
    out = tmp_path / "out"
    words = ("--n-components", "2", "--beta", "0.1", "--bootstrap", "0", "--no-report", "--out", out)
    for each in (("check",), ("fit", *words), ("show", out / "model.icqf")):
        done = run(each[0], *([] if each[0] == "show" else [tmp_path / "answers.csv"]), *each[1:])
        assert done.exit_code == 0 and max(map(len, done.output.splitlines())) < 400, done.output[:2000]
