"""Remedies of findings: each does away with what it is offered for."""

from dataclasses import replace

import pandas as pd
import pytest

from icqf.workflow import StudyOptions, check_study
from icqf.workflow.check import inspect_study, remedies_of, remedies_together
from small_study import table


def study(tmp_path, frame, **options):
    path = tmp_path / "answers.csv"
    frame.to_csv(path, index=False)
    return StudyOptions.of({"answers": path, **options})


def offered(options):
    findings = check_study(options)
    return {
        (finding.code, remedy.label): remedy
        for finding in findings
        for remedy in remedies_of(finding, findings, options)
    }


def frames():
    plain = table()
    visits = pd.concat([plain.assign(wave=1), plain.assign(wave=2)])
    few = plain.assign(site=["a"] * 75 + ["b"] * 5, age=plain["age"].mask(plain.index < 3))
    return {
        "codes": plain.replace({"9": "999"}),
        "text": plain.replace({"9": "n/a"}),
        "reversed": plain.replace({"9": ""}).assign(q08=lambda f: 3 - pd.to_numeric(f["q08"])),
        "copied": plain.replace({"9": ""}).assign(q13=plain["q01"]),
        "visits": visits,
        "confounds": few,
    }


@pytest.mark.parametrize("name", frames())
def test_a_remedy_does_away_with_its_finding(name, tmp_path):
    confounds = ["age", "site"] if name == "confounds" else []
    options = study(tmp_path, frames()[name], confounds=confounds, missing_codes=[9])
    found = offered(options)
    assert found
    for key, remedy in found.items():
        changed = remedy.applied(options)
        assert changed != options and key not in offered(changed), key
        assert StudyOptions.of(changed.to_dict()) == changed  # a config.toml holds it


def test_all_items_that_look_reversed_are_reversed_at_once(tmp_path):
    options = study(tmp_path, frames()["reversed"])
    found = check_study(options)
    each = [remedies_of(finding, found, options)[0].label for finding in found.of("looks-reversed")]
    (together,) = remedies_together(found.of("looks-reversed"), found, options)
    assert each == ["Reverse q03", "Reverse q08"] and together.label == "Reverse q03, q08"
    assert not check_study(together.applied(options)).of("looks-reversed")


def test_age_and_sex_become_confounds_at_once(tmp_path):
    options = study(tmp_path, table())
    found = check_study(options)
    (finding,) = found.of("possible-confounds")
    (remedy,) = remedies_of(finding, found, options)
    assert remedy.label == "Use age and sex as confounds" and remedy.applied(options).confounds == (
        "age",
        "sex",
    )


def test_a_code_in_two_items_is_declared_once_or_both_are_excluded(tmp_path):
    study_table = table().replace({"9": ""})
    study_table.loc[3, ["q05", "q06"]] = "99"
    options = study(tmp_path, study_table)
    found = check_study(options)
    together = remedies_together(found.of("suspicious-code"), found, options)
    assert [remedy.label for remedy in together] == ["Treat 99 as missing", "Exclude 2 items"]
    assert together[0].applied(options).missing_codes == (99.0,)
    assert not {"q05", "q06"} & set(together[1].applied(options).items)


def test_columns_are_described_with_their_use_and_values(tmp_path):
    found = {each.name: each for each in inspect_study(study(tmp_path, table(), groups="sex")).columns}
    item, sex, age = found["q01"], found["sex"], found["age"]
    counts = table()["q01"].replace("", None).dropna().astype(int).value_counts()
    assert item.role == "item" and item.answered + item.empty == 80
    assert dict(item.bars) == {str(value): counts.get(value, 0) for value in range(10)}
    coded = inspect_study(study(tmp_path, table(), missing_codes=[9])).columns[1]
    assert (coded.name, [label for label, _ in coded.bars]) == ("q01", ["0", "1", "2", "3"])
    assert coded.empty == item.empty + counts[9]
    assert sex.role == "group" and sorted(label for label, _ in sex.bars) == ["f", "m"]
    assert age.role == "" and age.reason == "demographic" and sum(n for _, n in age.bars) == 80
    assert found["record_id"].role == "id" and found["record_id"].bars == ()


def test_visits_to_choose_from_stay_when_one_is_kept(tmp_path):
    visits = pd.concat([table().assign(wave=10), table().head(70).assign(wave=9)])
    options = study(tmp_path, visits)
    pairs = (("wave", "9"),), (("wave", "10"),)
    for chosen in ((), *pairs):
        found = inspect_study(replace(options, visit=chosen))
        assert found.visits == ((pairs[0], 70), (pairs[1], 80))
    assert inspect_study(study(tmp_path, table())).visits == ()


def test_each_visit_can_be_kept(tmp_path):
    plain = table()
    visits = pd.concat([plain.head(60).assign(wave=3), plain.assign(wave=1), plain.assign(wave=2)])
    options = study(tmp_path, visits)
    labels = [label for code, label in offered(options) if code == "duplicate-id"]
    assert labels == [f"Keep the visit with wave {wave}" for wave in (1, 2, 3)]  # most rows first


def test_a_dictionary_given_as_a_codebook_becomes_one(tmp_path):
    options = study(tmp_path, table())
    place = tmp_path / "dictionary.csv"
    rows = [f"{name},{name},radio" for name in table().columns]
    place.write_text("Variable / Field Name,Field Label,Field Type\n" + "\n".join(rows))
    given = replace(options, codebook=place)
    assert (given.dictionary, given.codebook) == (place, None)


def test_the_last_item_is_never_left_out(tmp_path):
    options = study(tmp_path, table()[["record_id", "q01"]].assign(q01=1), items=["q01"])
    assert not [label for _, label in offered(options) if label.startswith("Leave")]


def test_a_look_reads_once_and_says_what_the_check_says(tmp_path):
    options = study(tmp_path, frames()["codes"])
    said = []
    look = inspect_study(options, callback=said.append)
    assert [finding.sentence for finding in look.findings] == [each.sentence for each in check_study(options)]
    assert said == ["Reading the file", "Checking the answers", "Describing the items"]
    assert {item.name for item in look.items} == set(look.findings.overview.items)
    assert {item.name for item in look.others} == {"age", "sex", "weight"}
    assert all((item.min, item.max, item.missing_codes) == (0, 3, (999.0,)) for item in look.items)
