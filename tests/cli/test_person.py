"""``icqf person``: one page for one person, a folder for several, never among results."""

import json

import pandas as pd
import pytest

from icqf import ICQF
from icqf.datasets import demo_paths, load_demo
from icqf.workflow.person import file_names
from report_names import NASTY

IDS = ["C0001", "C0002", "a/b", "a:b", "A:B", "../../etc", "CON", NASTY, "x" * 300, "é ü"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A model of the demo's first items; answers and two visits of ten persons with hostile ids."""
    folder = tmp_path_factory.mktemp("persons")
    demo = load_demo().select(["q00*", "q01*"])
    (folder / "results").mkdir()
    ICQF(2, beta=0.2, n_init=1).fit(demo).save(folder / "results" / "model.icqf")
    (folder / "results" / "provenance.json").write_text(json.dumps({"program": "icqf", "tool": "fit"}))
    table = pd.read_csv(demo_paths().answers).head(len(IDS)).assign(child_id=IDS)
    table.to_csv(folder / "answers.csv", index=False)
    later = table.iloc[:5].assign(time=2)
    pd.concat([later, table.assign(time=1)]).to_csv(folder / "visits.csv", index=False)
    return folder


def call(run, place, file, *words, code=0):
    result = run("person", place / "results", place / file, *words)
    assert result.exit_code == code, result.output
    return result


def test_one_person(run, place, tmp_path):
    out = tmp_path / "one.html"
    result = call(run, place, "answers.csv", "--id", "C0002", "--out", out)
    assert "Answers of C0002" in out.read_text(encoding="utf-8") and "personal answers" in result.stderr
    again = call(run, place, "answers.csv", "--id", "C0002", "--out", out, code=2)
    assert "already exists" in again.stderr and "--force" in again.stderr
    call(run, place, "answers.csv", "--id", "C0002", "--out", out, "--force", "--quiet")
    call(run, place, "answers.csv", "--id", "C0002", "--out", tmp_path / "one.md")
    assert "# Answers of C0002" in (tmp_path / "one.md").read_text(encoding="utf-8")


def test_who_filled_in_the_form_in_words_or_in_a_column(run, place, tmp_path):
    out = tmp_path / "one.md"
    call(run, place, "answers.csv", "--id", "C0002", "--informant", "her mother", "--out", out)
    assert "answered, filled in by: her mother. Each score" in out.read_text(encoding="utf-8")
    table, raters = pd.read_csv(place / "answers.csv"), ["teacher", None, *["7"] * (len(IDS) - 2)]
    pd.concat([table, pd.Series(raters, name="rater")], axis=1).to_csv(tmp_path / "rated.csv", index=False)
    call(run, place, tmp_path / "rated.csv", "--all", "--informant", "rater", "--out", tmp_path / "all")
    told = {path.stem: path.read_text(encoding="utf-8") for path in (tmp_path / "all").glob("*.html")}
    assert "filled in by: teacher." in told["C0001"] and "filled in by: 7." in told["a_b"]
    assert "filled in by" not in told["C0002"]


def test_a_name_of_its_own(run, place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call(run, place, "answers.csv", "--id", "a/b")
    assert [path.name for path in tmp_path.iterdir()] == ["a_b.html"]


def test_everybody_with_hostile_ids(run, place, tmp_path):
    out = tmp_path / "persons"
    call(run, place, "answers.csv", "--all", "--out", out)
    pages = sorted(path.name for path in out.iterdir() if path.suffix == ".html")
    assert len(pages) == len(IDS) and len({name.casefold() for name in pages}) == len(IDS)
    assert not any(set(name) & set('/\\:<>"|?*') or name.startswith(".") for name in pages)
    assert all(NASTY not in (out / name).read_text(encoding="utf-8") for name in pages)
    assert "C0001" not in json.dumps(json.loads((out / "provenance.json").read_text())["options"])
    call(run, place, "answers.csv", "--id", "C0001", "a/b", "--out", out, "--force")
    assert sorted(path.name for path in out.iterdir()) == ["C0001.html", "a_b.html", "provenance.json"]


def test_names_of_files():
    names = file_names(IDS)
    assert names["a/b"] == "a_b.html" and names["a:b"] == "a_b-2.html" and names["A:B"] == "A_B-3.html"
    assert all(len(name.encode()) < 200 for name in names.values())
    assert list(file_names(["..", ". .", "\u202e"]).values()) == [
        "participant.html",
        "participant-2.html",
        "participant-3.html",
    ]


def test_the_last_visit_and_the_change(run, place, tmp_path):
    """Rows in any order; who came once has no change."""
    for words in ((), ("--visit-column", "time")):
        out = tmp_path / f"{len(words)}.txt"
        call(run, place, "visits.csv", "--id", "C0001", *words, "--out", out)
        text = out.read_text(encoding="utf-8")
        assert "at visit 2" in text and "Since visit 1" in text and "no clear change (" in text
    call(run, place, "visits.csv", "--id", "é ü", "--out", tmp_path / "once.txt")
    once = (tmp_path / "once.txt").read_text(encoding="utf-8")
    assert "at visit 1" in once and "Since" not in once
    call(run, place, "visits.csv", "--id", "C0001", "--visit", "time=1", "--out", tmp_path / "first.txt")
    assert "visit" not in (tmp_path / "first.txt").read_text(encoding="utf-8")


def test_a_page_is_never_written_among_results(run, place):
    for name in ("one.html", "figures/one.html"):
        (place / "results" / "figures").mkdir(exist_ok=True)
        said = call(run, place, "answers.csv", "--id", "C0001", "--out", place / "results" / name, code=2)
        assert "contains results of icqf fit, which may be shared" in said.stderr
    (place / "link").symlink_to(place / "results" / "figures")
    call(run, place, "answers.csv", "--id", "C0001", "--out", place / "link" / "one.html", code=2)
    said = call(run, place, "answers.csv", "--all", "--out", place / "results" / "persons", code=2)
    assert "Choose another place" in said.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "No participant is named. Name one or more with --id, or add --all."),
        (("--id", "C0003"), "no participant has the id 'C0003'. Did you mean"),
        (("--id", "C0001", "--out", "page.pdf"), "page.pdf: pages are written as .html"),
        (("--id", "C0001", "--visit-column", "wave"), "the visit"),
        (("--id", "C0001", "--id-column", "pid"), "pid"),
    ],
)
def test_what_is_refused(run, place, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    assert said in call(run, place, "answers.csv", *words, code=2).stderr
    assert not list(tmp_path.iterdir())
