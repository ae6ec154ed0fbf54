"""Every kind of finding is found, and a clean table gives none that must be fixed."""

import json

import numpy as np
import pandas as pd
import pytest

from icqf.data.check import check as check_draft
from icqf.data.direction import Keying, Suspect
from icqf.data.questionnaire import Item
from icqf.datasets import demo_paths, load_demo
from icqf.io import read_codebook
from icqf.workflow.check import check_table as check


@pytest.fixture
def answers():
    rng = np.random.default_rng(0)
    trait = rng.random((200, 1))
    values = np.clip(np.rint(4 * trait + rng.normal(0, 0.8, (200, 25))), 0, 4)
    frame = pd.DataFrame(values, columns=[f"q{j:02d}" for j in range(25)])
    frame.insert(0, "id", [f"P{i:03d}" for i in range(200)])
    return frame.assign(age=np.arange(200) % 60 + 6.5)


@pytest.fixture
def items():
    return [Item(f"q{j:02d}", min=0, max=4, subscale="mood") for j in range(25)]


def codes(findings, severity):
    return {finding.code for finding in findings if finding.severity == severity}


def test_a_clean_table(answers, items):
    findings = check(answers, codebook=items, confounds=["age"])
    assert not findings.must_fix
    assert not codes(findings, "warning")


def test_the_demo_has_nothing_to_fix():
    assert not check_draft(load_demo()).must_fix


def test_the_demo_without_codebook_shows_its_code_and_its_reversed_items():
    findings = check(demo_paths().answers)
    assert findings.must_fix
    assert "missing_codes=[9]" in findings.of("suspicious-code")[0].sentence
    assert {finding.item for finding in findings.of("looks-reversed")} == {"q004", "q006"}


@pytest.mark.parametrize("value", [9, 99, 777, 999, -9])
@pytest.mark.parametrize("declared", [True, False])
def test_suspicious_codes(answers, items, value, declared):
    answers.loc[7, "q03"] = value
    findings = check(answers, codebook=items if declared else None, confounds=["age"])
    (found,) = findings.of("suspicious-code")
    assert found.severity == "error"
    assert (found.item, found.row) == ("q03", "P007")
    assert f"missing_codes=[{value}]" in found.sentence
    declared_missing = check(answers, codebook=items, confounds=["age"], missing_codes=[value])
    assert not declared_missing.must_fix


def test_reversed_item(answers, items):
    answers["q05"] = 4 - answers["q05"]
    (found,) = check(answers, codebook=items).of("looks-reversed")
    assert found.item == "q05"
    items[5] = Item("q05", min=0, max=4, subscale="mood", reverse=True)
    assert not check(answers, codebook=items).of("looks-reversed")


def test_age_and_sex_are_offered_as_confounds_where_there_are_none(answers, items):
    for codebook in (items, None):
        frame = answers.rename(columns={"age": "AgeYears"}).assign(gender=["f", "m"] * 100, age_worry=1.0)[
            :200
        ]
        (found,) = check(frame, codebook=codebook).of("possible-confounds")
        assert found.severity == "note" and found.fields["columns"] == ("AgeYears", "gender")
        assert "confounds=['AgeYears', 'gender']" in found.sentence
        assert not check(frame, codebook=codebook, confounds=["AgeYears"]).of("possible-confounds")


@pytest.mark.parametrize(("again", "code"), [(0.45, "may-be-reversed"), (0.5, "looks-reversed")])
def test_an_item_that_few_resamples_find_only_may_be_reversed(again, code):
    found = Suspect("q001", "", -0.3, -0.5, -0.1, ("q002", "q003"), found_again=again)
    (finding,) = [each for each in check_draft(load_demo(), keying=Keying((found,))) if each.item == "q001"]
    assert finding.code == code and ("one in five is not" in finding.message) == (again < 0.5)
    assert "q001" in finding.sentence and finding.severity == "warning"


def test_items_that_say_nothing(answers, items):
    answers["q00"] = 2.0
    answers["q01"] = np.nan
    answers.loc[10:, "q02"] = np.nan
    answers.loc[120:, "q03"] = np.nan
    findings = check(answers, codebook=items)
    assert [finding.item for finding in findings.of("constant-item")] == ["q00"]
    assert [finding.item for finding in findings.of("empty-item")] == ["q01"]
    assert [finding.item for finding in findings.of("nearly-empty")] == ["q02"]
    assert [finding.item for finding in findings.of("missing-items")] == ["q03"]


def test_participants(answers, items):
    names = [item.name for item in items]
    answers.loc[3, names] = 4
    answers.loc[4, names] = 0
    answers.loc[5, names] = np.nan
    answers.loc[6, names[:20]] = np.nan
    answers.loc[8, names] = answers.loc[9, names]
    answers.loc[11, "id"] = "P010"
    findings = check(answers, codebook=items)
    assert {finding.severity: finding.row for finding in findings.of("straight-liner")} == {
        "warning": "P003",
        "note": "P004",
    }
    assert findings.of("no-answers")[0].row == "P005"
    assert findings.of("missing-by-participant")[0].row == "P006"
    assert "'P008', 'P009'" in findings.of("same-answers")[0].sentence
    assert "rows 11 and 12" in findings.of("duplicate-id")[0].sentence
    assert findings.must_fix


def test_confounds(answers, items):
    answers.loc[2, "age"] = np.nan
    answers.loc[3, "age"] = 999
    findings = check(answers.assign(site="A"), codebook=items, confounds=["age", "site"])
    assert findings.of("confound-gaps")[0].row == "P002"
    assert findings.of("constant-confound")[0].item == "site"
    assert findings.of("suspicious-code")[0].item == "age"


def test_problems_are_collected_not_raised(answers, items):
    answers = answers.astype({"q01": object})
    answers.loc[4, "q01"] = "often"
    answers.loc[5, "id"] = None
    findings = check(answers.drop(columns="q09"), codebook=items)
    assert {"text", "missing-id", "missing-column"} <= codes(findings, "error")


def test_forms():
    findings = check(demo_paths().answers, codebook=read_codebook(demo_paths().codebook))
    content = json.loads(findings.to_json(), parse_constant=pytest.fail)  # NaN is not JSON
    assert content["must_fix"] is False
    assert (
        len(content["findings"])
        == len(findings)
        == len(findings.to_frame())
        == len(str(findings).splitlines())
    )
    assert set(content["findings"][0]) == {"severity", "code", "sentence", "item", "row"}


def test_ranges_of_different_width(answers, items):
    mixed = [*items[:20], *(Item(item.name, min=0, max=12, subscale="mood") for item in items[20:])]
    (finding,) = check(answers, codebook=mixed, confounds=["age"]).of("mixed-ranges")
    assert finding.severity == "note" and "so that all count equally" in finding.sentence
    assert "5 items of 12 points, 20 items of 4" in finding.sentence
    assert "up to 9 times as much" in finding.sentence
    assert not check(answers, codebook=items, confounds=["age"]).of("mixed-ranges")
