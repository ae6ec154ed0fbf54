"""Dictionaries of REDCap, NDA, ABCD and LORIS, from the check to a fitted model and scores."""

import pandas as pd
import pytest

from dictionaries import DRINKING, ITEMS, abcd, loris, nda, redcap, redcap_xml

QUICK = ("--n-components", "2", "--beta", "0.1", "--n-init", "1", "--max-iter", "40")
KINDS = {
    redcap: ("export.csv", "--codebook", "dictionary.csv"),
    redcap_xml: ("project.xml",),
    nda: ("moods01.txt", "--codebook", "moods01_definitions.csv"),
    abcd: ("mh_p_moods.csv", "--dictionary", "abcd.csv", "--visit", "eventname=baseline_year_1_arm_1"),
    loris: ("moods.csv", "--codebook", "moods.linst"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_from_check_to_scores(run, tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    kind(tmp_path)
    words = KINDS[kind]
    result = run("check", *words)
    assert result.exit_code == 0, result.output
    text = result.stdout
    assert "Items         10:" in text
    if kind is not loris:
        assert "147 answers (12.3 % of all) to 3 items were not asked for" in text
        assert "add --not-asked lowest" in text and "777 was read as missing in 4 answers" in text
    done = run("fit", *words, *QUICK, *(["--report"] if kind is redcap else []), "--out", "results")
    assert done.exit_code == 0, done.stderr
    if kind is redcap:
        assert "13.2% of the answers were missing, 12.2% because they were not asked for" in done.stdout
        report = (tmp_path / "results" / "report.md").read_text()
        assert "91% of the participants answered every item that they were asked" in report
        assert "12.2% of the questions were not asked; they do not count as missing" in report
    scored = run("score", "results/model.icqf", *words, "--out", "scores.csv")
    assert scored.exit_code == 0, scored.stderr
    assert len(pd.read_csv("scores.csv")) == 120


def test_ruled_out_questions_as_the_lowest_answer(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    redcap(tmp_path)
    words = (*KINDS[redcap], "--not-asked", "lowest")
    done = run("fit", *words, *QUICK, "--out", "results")
    assert done.exit_code == 0, done.stderr
    assert "141 answers that were not asked for" in done.stdout + done.stderr
    wrong = run("check", "export.csv", "--items", "mood_*", "--not-asked", "lowest")
    assert wrong.exit_code == 2 and "--not-asked says how to count" in wrong.stderr


def test_an_edited_codebook_goes_with_its_dictionary(run, tmp_path, monkeypatch):
    """A codebook holds no conditions, and says so; with the dictionary beside it, nothing is lost."""
    monkeypatch.chdir(tmp_path)
    redcap(tmp_path)
    made = run("codebook", "export.csv", "--dictionary", "dictionary.csv", "--out", "items.csv")
    assert "nothing about conditions for questions: give the dictionary beside it" in made.stderr
    both = run("check", "export.csv", "--codebook", "items.csv", "--dictionary", "dictionary.csv").stdout
    assert "147 answers (12.3 % of all) to 3 items were not asked for" in both


def test_the_forms_of_a_dictionary_are_the_instruments_of_a_battery(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, dictionary = redcap(tmp_path)
    lines = dictionary.read_text().splitlines()
    about = {"drinks", *DRINKING}
    lines = [x.replace(",moods,", ",drinking,") if x.partition(",")[0] in about else x for x in lines]
    dictionary.write_text("\n".join(lines))
    quick = ("--n-components", "1", "--beta", "0.1", "--n-init", "1", "--no-report", "--no-figures")
    done = run("batch", *KINDS[redcap], *quick, "--out", "all")
    assert done.exit_code == 0, done.stderr
    summary = pd.read_csv("all/summary.csv")
    assert summary["name"].tolist() == ["moods", "drinking"] and summary["items"].tolist() == [6, 4]


def test_a_codebook_from_a_dictionary(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    redcap(tmp_path)
    result = run("codebook", "export.csv", "--dictionary", "dictionary.csv", "--out", "items.csv")
    assert result.exit_code == 0, result.stderr
    book = pd.read_csv("items.csv", dtype=str)
    assert list(book["name"]) == ITEMS and book["missing"][0] == "777; 999"
