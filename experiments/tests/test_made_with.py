"""Results pages name the commit and the defaults they were made with, and say when those have changed."""

import json
from pathlib import Path

import pytest

from icqf_experiments import made_with
from icqf_experiments.made_with import FILE, complaints, mark, record

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def test_every_results_page_is_current_or_says_what_has_changed():
    assert complaints(RESULTS) == []


def refuse(constant):
    raise ValueError(f"{constant} is not JSON")


def test_the_records_are_strict_json(tmp_path):
    record(tmp_path, "longitudinal", command="python benchmarks/loadings_over_age.py", made_with="abc1234")
    for folder in (RESULTS, tmp_path):
        records = json.loads((folder / FILE).read_text(encoding="utf-8"), parse_constant=refuse)
        assert records["longitudinal"]["defaults"]["LongitudinalICQF.smoothness"] == "infinity"


@pytest.fixture
def folder(tmp_path):
    """A page of two studies, as a run has just written it."""
    text = "# Stability\n\nMade by `icqf reproduce stability`, commit abc1234.\n\n## Results\n\nNumbers.\n"
    (tmp_path / "stability.md").write_text(text, encoding="utf-8")
    for study in ("help", "phq9"):
        made = {"command": f"icqf reproduce stability --study {study}", "made_with": "abc1234"}
        record(tmp_path, f"stability-{study}", **made)
    return tmp_path


def change(folder, table, name, value):
    records = made_with.read(folder)
    records[table]["defaults"][name] = value
    (folder / FILE).write_text(json.dumps(records), encoding="utf-8")


def test_a_changed_default_is_named_with_page_values_and_command(folder):
    assert complaints(folder) == []
    change(folder, "stability-help", "ICQF.tol", 0.5)
    change(folder, "stability-help", "Design.n_components", [2, 3, 4, 5])
    (sentence,) = complaints(folder)
    assert sentence.startswith("stability.md does not say: ")
    assert "stability-help, with commit abc1234. " in sentence and "phq9, with" not in sentence
    assert "`ICQF.tol` was 0.5 and is now 0.001" in sentence
    assert "`Design.n_components` was 2 to 5 and is now 1 to 16" in sentence
    assert "`icqf reproduce stability --study help`" in sentence


def test_a_page_that_says_so_passes_until_the_default_changes_again(folder):
    change(folder, "stability-phq9", "ICQF.tol", 0.5)
    mark(folder)
    assert complaints(folder) == []
    first = (folder / "stability.md").read_text(encoding="utf-8").split("\n\n")[1]
    assert first.startswith("Made before some of today's defaults: stability-phq9, with commit abc1234.")
    change(folder, "stability-phq9", "ICQF.tol", 0.25)
    assert "was 0.25" in complaints(folder)[0]
    change(folder, "stability-phq9", "ICQF.tol", made_with.defaults()["ICQF.tol"])
    mark(folder)
    assert "before" not in (folder / "stability.md").read_text(encoding="utf-8")


def test_a_default_that_is_gone_counts_as_changed_and_a_new_one_does_not(folder):
    change(folder, "stability-help", "ICQF.sweeps", 3)
    assert "`ICQF.sweeps` was 3 and is now gone" in complaints(folder)[0]
    records = made_with.read(folder)
    for made in records.values():
        made["defaults"] = {"ICQF.beta": 0.1}
    (folder / FILE).write_text(json.dumps(records), encoding="utf-8")
    assert complaints(folder) == []


def test_a_page_without_a_record_or_without_its_commit_is_refused(folder):
    (folder / "table1.md").write_text("# Table 1\n\nMade.\n", encoding="utf-8")
    assert complaints(folder) == [
        f"table1.md has no record in {FILE} of the commit and defaults it was made with."
    ]
    record(folder, "table1", command="icqf reproduce table1", made_with="1234abc")
    assert complaints(folder) == ["table1.md does not name 1234abc, the commit of table1."]
