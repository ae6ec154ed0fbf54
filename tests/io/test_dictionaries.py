"""Dictionaries of REDCap, NDA, ABCD and LORIS, and REDCap's projects in XML, on one made study."""

import codecs

import numpy as np
import pandas as pd
import pytest

from dictionaries import CHOICES, DRINKING, ITEMS, MOOD, abcd, loris, nda, redcap, redcap_xml, study
from icqf.errors import InputError, InputWarning
from icqf.io import read_questionnaire, read_table, suggest_codebook
from icqf.io.readers.nda import described_item, labels_in

VISIT = {"eventname": "baseline_year_1_arm_1"}


def read(kind, folder, **more):
    """The study from the files of one kind; the dictionary is given as the codebook."""
    if kind is redcap_xml:
        return read_questionnaire(redcap_xml(folder), **more)
    data, dictionary = kind(folder)
    return read_questionnaire(data, codebook=dictionary, **({"visit": VISIT} if kind is abcd else {}), **more)


@pytest.mark.parametrize("kind", [redcap, redcap_xml, nda, abcd, loris])
def test_every_kind_gives_the_same_study(tmp_path, kind):
    made, found = study(), read(kind, tmp_path)
    items = {item.name.removeprefix("moods_"): item for item in found.items}
    assert list(items) == ITEMS
    assert (items["mood_1"].min, items["mood_1"].max, items["mood_1"].wording) == (0, 3, MOOD["mood_1"])
    assert (items["drinks"].min, items["drinks"].max) == (0, 1)
    codes = {"not_answered"} if kind is loris else {777, 999}
    assert codes <= {*items["alc_1"].missing_codes}
    expected = made[ITEMS].replace({777: np.nan, 999: np.nan}).to_numpy()
    np.testing.assert_array_equal(found.answers.to_numpy(), expected)
    if kind is not loris:
        not_asked = (made["drinks"] != 1).to_numpy()
        for name in DRINKING:
            np.testing.assert_array_equal(found.structural[name], not_asked)
        assert not found.structural[list(MOOD)].any(axis=None)


@pytest.mark.parametrize("kind", [redcap, redcap_xml, nda, abcd])
def test_questions_ruled_out_may_count_as_the_lowest_answer(tmp_path, kind):
    made, found = study(), read(kind, tmp_path, not_asked="lowest", reverse=["alc_2"])
    sober, unknown = made["drinks"].eq(0).to_numpy(), made["drinks"].isna().to_numpy()
    assert (found.answers.loc[sober, ["alc_1", "alc_3"]] == 0).all(axis=None)
    assert (found.answers.loc[sober, "alc_2"] == 3).all()  # reversed: the highest counts as 0
    assert found.answers.loc[unknown, list(DRINKING)].isna().all(axis=None)
    assert not found.structural[sober].any(axis=None)
    note = f"{3 * sober.sum()} answers that were not asked for"
    assert any(note in each and f"{3 * unknown.sum()} more stay missing" in each for each in found.notes)


def test_lowest_needs_a_dictionary(tmp_path):
    data, _ = redcap(tmp_path)
    with pytest.raises(InputError, match="no dictionary says which ones these are"):
        read_questionnaire(data, items=["mood_*"], not_asked="lowest")


def test_identifying_columns_are_neither_items_nor_ids(tmp_path):
    data, dictionary = redcap(tmp_path)
    table = read_table(data, dictionary=dictionary)
    assert table.identifying == ("full_name", "dob")
    text = dictionary.read_text().replace("full_name", "mrn").replace("record_id", "rid")
    dictionary.write_text(text)
    frame = pd.read_csv(data, dtype=str).rename(columns={"full_name": "mrn"}).drop(columns="record_id")
    frame.to_csv(data, index=False)
    table = read_table(data, dictionary=dictionary)
    assert table.id is None and any("'mrn' is marked as identifying" in note for note in table.notes)
    assert list(read_questionnaire(data, dictionary=dictionary).answers.index[:2].astype(str)) == ["1", "2"]
    assert read_questionnaire(data, dictionary=dictionary, id="mrn").answers.index[0] == "Person 001"
    with pytest.warns(InputWarning, match="'dob' is marked as identifying"):
        read_questionnaire(data, dictionary=dictionary, confounds=["dob"], items=["mood_*"])


@pytest.mark.parametrize("saved", ["bom", "excel", "windows", "workbook"])
def test_dictionaries_as_programs_save_them(tmp_path, saved):
    data, dictionary = redcap(tmp_path)
    text = dictionary.read_text(encoding="utf-8-sig").replace("Low mood 1", "Schön traurig")
    if saved == "bom":
        dictionary.write_bytes(codecs.BOM_UTF8 + text.encode())
    else:
        dictionary.write_text(text)
        frame = pd.read_csv(dictionary, dtype=str, keep_default_na=False)
        if saved == "excel":
            frame.to_csv(dictionary, sep=";", index=False, encoding="utf-8-sig")
        elif saved == "windows":
            frame.to_csv(dictionary, index=False, encoding="cp1252")
        else:
            dictionary = tmp_path / "dictionary.xlsx"
            frame.to_excel(dictionary, index=False)
    found = read_questionnaire(data, codebook=dictionary)
    assert [item.name for item in found.items] == ITEMS
    assert found.items[0].wording == "Schön traurig" and found.structural["alc_1"].any()


def test_metadata_from_the_api(tmp_path):
    data, dictionary = redcap(tmp_path)
    frame = pd.read_csv(dictionary, dtype=str, keep_default_na=False)
    named = (
        "field_name form_name section_header field_type field_label "
        "select_choices_or_calculations field_note text_validation_type_or_show_slider_number "
        "text_validation_min text_validation_max identifier branching_logic required_field "
        "custom_alignment question_number matrix_group_name matrix_ranking "
    )
    frame.set_axis((named + "field_annotation").split(), axis=1).to_csv(dictionary, index=False)
    found = read_questionnaire(data, codebook=dictionary)
    assert [item.name for item in found.items] == ITEMS and found.structural["alc_1"].any()


def test_xml_named_csv_is_recognised(tmp_path):
    project = redcap_xml(tmp_path)
    with pytest.raises(InputError, match="this is an XML file, such as a project of REDCap"):
        read_questionnaire(project.rename(tmp_path / "project.csv"))


def test_a_field_described_in_two_ways_is_refused(tmp_path):
    data, dictionary = redcap(tmp_path)
    lines = dictionary.read_text().splitlines()
    mood = next(line for line in lines if line.startswith("mood_1"))
    dictionary.write_text("\n".join([*lines, mood]))
    read_questionnaire(data, dictionary=dictionary)  # the same twice does no harm
    dictionary.write_text("\n".join([*lines, mood.replace("Always", "All the time")]))
    with pytest.raises(InputError, match=r"the field 'mood_1' appears twice \(row 7 and row 19\)"):
        read_questionnaire(data, dictionary=dictionary)


def test_columns_of_all_tables_may_be_described_by_each_in_its_way(tmp_path):
    data, dictionary = abcd(tmp_path)
    text = dictionary.read_text().replace(
        "mh_p_other,eventname,Event,", "mh_p_other,eventname,Name of visit,"
    )
    dictionary.write_text(text)
    assert "Name of visit" in text
    found = read_questionnaire(data, codebook=dictionary, visit=VISIT)
    assert [item.name for item in found.items] == ITEMS


def test_columns_only_in_one_of_both(tmp_path):
    data, dictionary = redcap(tmp_path)
    frame = pd.read_csv(data, dtype=str).drop(columns=["alc_3"]).assign(extra="1")
    frame.to_csv(data, index=False)
    found = read_questionnaire(data, dictionary=dictionary)
    assert "extra" not in found.answers and len(found.items) == len(ITEMS) - 1
    assert "dictionary.csv describes 1 item that export.csv lacks: 'alc_3'." in found.notes
    frame.rename(columns=lambda name: f"other_{name}" if name != "record_id" else name).to_csv(data)
    with pytest.raises(InputError, match=r"none of its questions .*'mood_1'.*another project"):
        read_questionnaire(data, dictionary=dictionary)


def test_logic_that_cannot_be_evaluated_is_named(tmp_path):
    data, dictionary = redcap(tmp_path)
    text = dictionary.read_text()
    dictionary.write_text(text.replace("[drinks] = '1' and (", "[screening_arm_1][drinks] = '1' and ("))
    found = read_questionnaire(data, dictionary=dictionary)
    said = (
        "The branching logic of 'alc_1', 'alc_2', 'alc_3' cannot be evaluated, because it refers to another "
        "event or instance ([screening_arm_1][drinks]); empty cells of these columns count as not answered."
    )
    assert said in found.notes and not found.structural["alc_1"].any()


def test_logic_in_circles_rules_nothing_out(tmp_path):
    data, dictionary = redcap(tmp_path)
    lines = dictionary.read_text().splitlines()
    swapped = {"alc_1": "[alc_2] = '1'", "alc_2": "[alc_1] = '1'"}
    logic = "[drinks] = '1' and ([kinds(1)] = '1' or [kinds(2)] <> '')"
    lines = [line.replace(logic, swapped.get(line.partition(",")[0], logic)) for line in lines]
    dictionary.write_text("\n".join(lines))
    found = read_questionnaire(data, dictionary=dictionary)
    assert any("'alc_1', 'alc_2' cannot be evaluated, because it refers to itself" in n for n in found.notes)
    assert not found.structural[["alc_1", "alc_2"]].any(axis=None) and found.structural["alc_3"].any()


def test_logic_names_columns_in_any_case_and_by_their_aliases(tmp_path):
    data, dictionary = redcap(tmp_path)
    dictionary.write_text(
        dictionary.read_text().replace("[drinks]", "[DRINKS]").replace("[kinds(", "[Kinds(")
    )
    found = read_questionnaire(data, dictionary=dictionary)
    assert found.structural["alc_1"].any() and not any("cannot be evaluated" in note for note in found.notes)

    data, definition = nda(tmp_path)
    text = definition.read_text().replace("0 = No; 1 = Yes,", "0 = No; 1 = Yes,any_drink")
    definition.write_text(text)
    data.write_text(data.read_text().replace('"drinks"', '"ANY_DRINK"'))
    found = read_questionnaire(data, codebook=definition)
    assert "ANY_DRINK" in found.answers and found.structural["alc_1"].any()


def test_logic_of_events(tmp_path):
    """[event-name] is the column of events, unless that holds their labels."""
    data, dictionary = redcap(tmp_path)
    logic = "[event-name] = 'baseline_arm_1' and [drinks] = '1' and ("
    dictionary.write_text(dictionary.read_text().replace("[drinks] = '1' and (", logic))
    frame = pd.read_csv(data, dtype=str)
    for event, evaluated in (("baseline_arm_1", True), ("Baseline (Arm 1: Adults)", False)):
        frame.assign(redcap_event_name=event).to_csv(data, index=False)
        found = read_questionnaire(data, dictionary=dictionary)
        assert found.structural["alc_1"].any() == evaluated
        assert any("events by names that the table does not use" in n for n in found.notes) != evaluated


def test_hidden_fields_are_no_questions(tmp_path):
    data, dictionary = redcap(tmp_path)
    lines = dictionary.read_text().splitlines()
    tags = {"mood_1": "@HIDDEN @READONLY", "mood_2": "@HIDDEN-PDF"}
    dictionary.write_text("\n".join(line + tags.get(line.partition(",")[0], "") for line in lines))
    names = [item.name for item in read_questionnaire(data, dictionary=dictionary).items]
    assert "mood_1" not in names and "mood_2" in names


def test_a_pattern_means_questions(tmp_path):
    """Sums, dates and comments often have the names of the questions that they belong to."""
    data, dictionary = redcap(tmp_path)
    lines = ["mood_total,moods,,calc,Sum,[mood_1]+[mood_2]", "mood_date,moods,,text,Date,"]
    dictionary.write_text(dictionary.read_text() + "".join(f"{line}{',' * 12}\n" for line in lines))
    pd.read_csv(data, dtype=str).assign(mood_total="7", mood_date="2020-01-01").to_csv(data, index=False)
    found = read_questionnaire(data, dictionary=dictionary, items=["mood_*", "kinds___*"])
    assert [item.name for item in found.items] == [*list(MOOD)[:3], "kinds___1", "kinds___2"]
    found = read_questionnaire(data, dictionary=dictionary, items=["mood_?", "mood_total"])
    assert [item.name for item in found.items] == [*list(MOOD)[:3], "mood_total"]


def test_an_export_of_labels_gives_the_same_study(tmp_path):
    data, dictionary = redcap(tmp_path)
    line = 'arm,moods,,radio,Arm,"1, A | 2, B | -99, Prefer not to say",,,,,,,,,,,,\n'
    dictionary.write_text(dictionary.read_text() + line)
    frame = pd.read_csv(data, dtype=str).assign(arm=["1", "2", "-99"] * 40)
    frame.to_csv(data, index=False)
    raw = read_questionnaire(data, codebook=dictionary, confounds=["arm"])
    words = {name: {str(code): text for code, text in CHOICES.items()} for name in (*MOOD, *DRINKING)}
    words |= {"drinks": {"0": "No", "1": "Yes"}, "arm": {"1": "A", "2": "B", "-99": "Prefer not to say"}}
    words |= {name: {"0": "Unchecked", "1": "Checked"} for name in ("kinds___1", "kinds___2")}
    words["form_complete"] = {"2": "Complete"}
    frame.replace(words).to_csv(data, index=False)
    found = read_questionnaire(data, codebook=dictionary, confounds=["arm"])
    assert found.answers.equals(raw.answers) and found.structural.equals(raw.structural)
    assert found.confounds.equals(raw.confounds) and found.confounds["arm"].isna().sum() == 40
    assert next(c for c in found.left_out if c.name == "form_complete").reason == "metadata"
    assert (
        suggest_codebook(read_table(data, dictionary=dictionary)).items == raw.items
    )  # labels are not guessed


def test_a_header_of_labels_is_named_as_such(tmp_path):
    data, dictionary = redcap(tmp_path)
    head, *lines = data.read_text().splitlines()
    labels = [head.replace("mood_1", "Complete?").replace("mood_2", "Complete?"), *lines]
    data.write_text("\n".join(labels))
    with pytest.raises(InputError, match=r"'Complete\?' twice .*labels of REDCap.*: export the raw data\.$"):
        read_questionnaire(data, codebook=dictionary)


def test_a_project_of_too_many_columns_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("icqf.io.readers.redcap.MOST_CELLS", 1000)
    with pytest.raises(InputError, match=r"project.xml: the project has 120 rows and \d+ columns, too many"):
        read_table(redcap_xml(tmp_path))


def test_answers_where_the_question_was_hidden_are_kept(tmp_path):
    data, dictionary = redcap(tmp_path)
    frame = pd.read_csv(data, dtype=str)
    frame["alc_1"] = frame["alc_1"].fillna("1")
    frame.to_csv(data, index=False)
    found = read_questionnaire(data, dictionary=dictionary)
    n = int((study()["drinks"] != 1).sum())
    assert any(f"{n} answers to 'alc_1' were given although" in note for note in found.notes)
    assert found.answers["alc_1"].notna().all()


def test_codes_of_questions_that_were_not_asked(tmp_path):
    """In place of an empty cell, NDA and ABCD write a code where a question was skipped."""
    data, definition = nda(tmp_path)
    cells = pd.read_csv(data, sep="\t", dtype=str, keep_default_na=False)
    hidden = cells["drinks"].eq("0") & cells.index.isin(range(1, 90))
    cells.loc[hidden, "alc_1"] = "999"  # a code of the question, hidden by its condition
    cells.to_csv(data, sep="\t", index=False)
    found = read_questionnaire(data, codebook=definition)
    assert found.structural["alc_1"].to_numpy()[hidden[1:]].all()
    assert "hides the question" not in " ".join(found.notes)

    notes = (
        "0=No; 1=Yes; 555=Not administered; 888=Question not asked due to primary question (branching logic)"
    )
    rows = [["var_name", "var_label", "notes"], *([f"sad_{j}", "", notes] for j in (1, 2, 3))]
    pd.DataFrame(rows).to_csv(tmp_path / "ksads.csv", index=False, header=False)
    answers = pd.DataFrame({"src_subject_id": [f"NDAR_{i}" for i in range(40)]})
    answers = answers.assign(sad_1=[0, 1] * 20, sad_2=[888, 1] * 20, sad_3=[555, 1, 888, 0] * 10)
    answers.to_csv(tmp_path / "mh.csv", index=False)
    found = read_questionnaire(tmp_path / "mh.csv", codebook=tmp_path / "ksads.csv")
    assert found.structural.sum().tolist() == [0, 20, 20] and found.answers.isna().sum().sum() == 40
    lowest = read_questionnaire(tmp_path / "mh.csv", codebook=tmp_path / "ksads.csv", not_asked="lowest")
    assert lowest.answers.iloc[0, 1] == 0 and lowest.answers["sad_3"].isna().sum() == 10  # 555 stays missing


def test_two_choices_with_one_value(tmp_path):
    data, dictionary = redcap(tmp_path)
    dictionary.write_text(dictionary.read_text().replace("| 1, Sometimes", "| 0, Sometimes", 1))
    with pytest.raises(InputError, match="has two choices with the value '0'"):
        read_questionnaire(data, codebook=dictionary)


def test_descriptive_texts_of_a_project_are_no_columns(tmp_path):
    project = redcap_xml(tmp_path)
    assert 'OID="intro"' in project.read_text() and "intro" not in read_table(project).frame.columns


def test_stated_reversal(tmp_path):
    data, dictionary = redcap(tmp_path)
    lines = dictionary.read_text().splitlines()
    marks = {"mood_1": "@REVERSE", "mood_2": "Reverse-scored item", "mood_3": "Not reverse scored"}
    dictionary.write_text("\n".join(line + marks.get(line.partition(",")[0], "") for line in lines))
    found = read_questionnaire(data, dictionary=dictionary)
    assert [item.name for item in found.items if item.reverse] == ["mood_1", "mood_2"]


# --- XML ----------------------------------------------------------------------------------------------------


def test_xml_describes_an_export(tmp_path):
    data, _ = redcap(tmp_path)
    project = redcap_xml(tmp_path, answers=False)
    found = read_questionnaire(data, codebook=project)
    assert [item.name for item in found.items] == ITEMS and found.structural["alc_1"].any()
    assert {item.subscale for item in found.items} == {"mood_matrix", "moods"}
    with pytest.raises(InputError, match="holds descriptions of fields, but no answers"):
        read_questionnaire(project)


def test_events_in_xml_are_visits(tmp_path):
    project = redcap_xml(tmp_path, events=("baseline_arm_1", "later_arm_1"))
    with pytest.raises(InputError, match="'redcap_event_name'"):
        read_questionnaire(project)
    assert len(read_questionnaire(project, visit={"redcap_event_name": "later_arm_1"}).answers) == 120


ENTITIES = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 10))
BOMB = f'<?xml version="1.0"?><!DOCTYPE ODM [<!ENTITY e0 "ha">{ENTITIES}]><ODM>&e9;</ODM>'
OUTSIDE = '<?xml version="1.0"?><!DOCTYPE ODM [<!ENTITY x SYSTEM "file:///etc/passwd">]><ODM>&x;</ODM>'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BOMB, "begins with a document type definition"),
        (OUTSIDE, "begins with a document type definition"),
        ("<html><body>Log in</body></html>", "not a REDCap project .*begins with 'html'"),
        ("<ODM><Study>", "not valid XML .*in line 1"),
        ("<ODM></ODM>", "describes no field"),
        ("<ODM>" + "<a>" * 100_000, "nested too deeply"),
        ("<ODM>\x01</ODM>", "not valid XML"),
        ('<?xml version="1.0" encoding="klingon"?><ODM/>', "cannot be read|not valid XML"),
        ("not xml at all", "not valid XML"),
        ('<ODM><ItemDef OID="a"/><ItemDef OID="a"/></ODM>', "'a' is described twice"),
    ],
)
def test_bad_xml_is_refused_in_one_sentence(tmp_path, text, said):
    path = tmp_path / "project.xml"
    path.write_text(text)
    with pytest.raises(InputError, match=f"^project.xml: .*{said}"):
        read_questionnaire(path)


def test_xml_cut_anywhere_is_refused(tmp_path):
    whole = redcap_xml(tmp_path).read_bytes()
    for end in range(1, len(whole), len(whole) // 50):
        (tmp_path / "cut.xml").write_bytes(whole[:end])
        with pytest.raises(InputError, match=r"^cut.xml: "):
            read_table(tmp_path / "cut.xml")


# --- labels and ranges in texts -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("notes", "span", "low", "high", "codes"),
    [
        ("0=No; 1=Yes; 999=missing", "0;1;999", 0, 1, (999,)),
        ("0 = No ; 1 = Yes ; 777 = Refuse to answer ; 999 = Don't know", "", 0, 1, (777, 999)),
        ("0, No | 1, Yes | 777, Refuse to answer | 999, Don't know", "", 0, 1, (777, 999)),
        ("1=Yes / Sí; 0=No / No; 999=Dont Know / No sé", "1;0;999", 0, 1, (999,)),
        ("0=0 days; 1=1 day; 2=2 days; -1=Not Applicable / No corresponde", " -1::2", 0, 2, (-1,)),
        (
            "1=##en##A##/en####es##B##/es##; 2=C; 777=##en##Refuse to answer##/en####es##Z##/es##",
            "",
            1,
            2,
            (777,),
        ),
        ("0=0;  1=1;  2=2;  10=10", "0::10", 0, 10, ()),
        ("0 = not at all; 10 = the worst", "0::10", 0, 10, ()),
        ("", "0::3; -9", 0, 3, (-9,)),
        ("", "1;2;3;4;-999", 1, 4, (-999,)),
        ("M = Male; F = Female", "M; F", None, None, ()),
        ("Age is rounded to months", "0 :: 1260", 0, 1260, ()),
        ("Ask if x == 1; score = sum", "", None, None, ()),
        ("See 1=a; 1=b", "", None, None, ()),
        ("999=missing", "0::3;999", 0, 3, (999,)),
        ("-1=Not applicable", "-1;0::3", 0, 3, (-1,)),
        ("1=low; 4=high; 99=NK", "1::4; 99", 1, 4, (99,)),
        ("", "0::3; NaN", 0, 3, ()),
        ("", f"0::{'9' * 400}", None, None, ()),
        ("", f"0{' ' * 100_000}x", None, None, ()),
        ("0=No; 1=Yes; 555 = Not administered in the assessment", "", 0, 1, (555,)),
        ("0=No; 1=Yes; 888 = Question not asked due to primary question response", "", 0, 1, (888,)),
    ],
)
def test_labels_and_ranges(notes, span, low, high, codes):
    item = described_item("q", "", notes, span)
    assert (item.min, item.max) == (low, high) and {*item.missing_codes} == {*codes}


def test_a_total_with_only_a_missing_code_is_no_question(tmp_path):
    data, definition = nda(tmp_path)
    total = {"ElementName": "mood_total", "DataType": "Integer", "ValueRange": "0::9;999", "Notes": "999=NK"}
    pd.concat([pd.read_csv(definition, dtype=str), pd.DataFrame([total])]).to_csv(definition, index=False)
    frame = pd.read_csv(data, sep="\t", dtype=str)
    frame["mood_total"] = [str(at % 10) for at in range(len(frame))]
    frame.to_csv(data, sep="\t", index=False)
    assert [item.name for item in read_questionnaire(data, codebook=definition).items] == ITEMS


def test_reverse_scoring_that_a_definition_mentions(tmp_path):
    data, definition = nda(tmp_path)
    definition.write_text(definition.read_text().replace(",Low mood 1,", ",Reverse scored: low mood,"))
    notes = read_questionnaire(data, codebook=definition).notes
    assert any("mentions reverse scoring for 'mood_1'," in note for note in notes)


def test_labels_keep_commas_and_long_texts_end():
    assert labels_in("Choose. 0 = No, never; 1 = Yes, 2 or 3 times") == {
        0: "No, never",
        1: "Yes, 2 or 3 times",
    }
    assert len(labels_in("; ".join(f"{i}=a{i}" for i in range(200_000)))) > 1000


def test_nda_templates_begin_with_the_name_of_the_structure(tmp_path):
    data, definition = nda(tmp_path)
    first, _, *rest = data.read_text().splitlines()
    lines = ["moods,01", *(line.replace("\t", ",") for line in (first, *rest))]
    (tmp_path / "template.csv").write_text("\n".join(lines))
    found = read_questionnaire(tmp_path / "template.csv", codebook=definition)
    assert [item.name for item in found.items] == ITEMS and len(found.answers) == 120


def test_a_dictionary_of_nbdc(tmp_path):
    data, _ = abcd(tmp_path)
    rows = ["name,label,type_var,type_data,type_level,table_name,branching_logic"]
    rows += [
        f"{name},{name},item,character,ordinal,mh,{'[drinks] = 1' if name in DRINKING else ''}"
        for name in ITEMS
    ]
    (tmp_path / "dd.csv").write_text("\n".join(rows))
    found = read_questionnaire(data, codebook=tmp_path / "dd.csv", visit=VISIT, missing_codes=[777, 999])
    named = [name for name in ITEMS if name != "drinks"]  # without levels, the only yes/no item is left out
    assert [item.name for item in found.items] == named and found.structural["alc_1"].any()


def test_answers_in_words_are_numbered_in_the_order_of_the_instrument(tmp_path):
    """LORIS makes codes from labels unless they are given: some_of_the_time for "Some of the time"."""
    scales = {
        "mood": ["At my worst", "Some of the time", "At my best"],  # of unknown order
        "calm": ["Always", "Often", "Sometimes", "Rarely", "Never"],  # of known order, written from the end
    }
    codes = {label: label.lower().replace(" ", "_") for words in scales.values() for label in words}
    lines, frame = ["table{@}x"], pd.DataFrame({"PSCID": [f"MTL{i:03d}" for i in range(60)]})
    for name, words in (*((f"{scale}{j}", scales[scale]) for scale in scales for j in (1, 2, 3)),):
        options = "{-}".join(f"'{codes[label]}'=>'{label}'" for label in words)
        lines.append(
            f"select{{@}}{name}{{@}}Text{{@}}NULL=>''{{-}}{options}{{-}}'not_answered'=>'Not Answered'"
        )
        frame[f"x_{name}"] = [codes[words[i % len(words)]] for i in range(60)]
    lines.append("select{@}hand{@}Hand{@}NULL=>''{-}'left_hand'=>'Left hand'{-}'right_hand'=>'Right hand'")
    frame["x_mood2"] = frame["x_mood2"].mask(frame.index == 4, "not_answered")
    frame.assign(x_hand="left_hand").to_csv(tmp_path / "x.csv", index=False)
    (tmp_path / "x.linst").write_text("\n".join(lines))
    found = read_questionnaire(tmp_path / "x.csv", codebook=tmp_path / "x.linst")
    assert [item.name for item in found.items] == [f"x_{scale}{j}" for scale in scales for j in (1, 2, 3)]
    assert dict(found.items[0].labels) == {0: "At my worst", 1: "Some of the time", 2: "At my best"}
    assert found.answers["x_mood1"].tolist()[:3] == [0, 1, 2] and found.answers["x_mood2"].isna().sum() == 1
    assert found.answers["x_calm1"].tolist()[:5] == [4, 3, 2, 1, 0]
    assert any("'mood3' are words, read as these numbers: 0=At my worst; 1=Some" in n for n in found.notes)


LORIS = """Module,Field Name,Description,Data Scope,Data Type,Data Cardinality,Options
instruments,moods_mood_1,Low mood,session,enumeration,single,0=Never;1=Sometimes;2=Often;3=Always
instruments,moods_mood_2,Low mood,session,enumeration,single,0=Never;1=Sometimes;2=Often;3=Always
instruments,moods_worry_1,Worry,session,enumeration,many,0=Never;1=Sometimes
instruments,moods_drinks,Drinks,session,enumeration,single,0=No;1=Yes
instruments,moods_mood_1_status,Status,session,enumeration,single,not_answered
instruments,Date_taken,Date,session,date,single,
"""


def test_the_table_of_loris(tmp_path):
    data, _ = loris(tmp_path)
    (tmp_path / "dictionary.csv").write_text(LORIS)
    found = read_questionnaire(data, codebook=tmp_path / "dictionary.csv", missing_codes=["not_answered"])
    assert [item.name for item in found.items] == ["moods_mood_1", "moods_mood_2", "moods_drinks"]
    assert found.items[0].max == 3


def test_bad_instruments_of_loris(tmp_path):
    data, instrument = loris(tmp_path)
    for text, said in (("hello", "is not an instrument of LORIS"), ("table{@}x\ntitle{@}y", "no questions")):
        instrument.write_text(text)
        with pytest.raises(InputError, match=rf"^moods.linst: .*{said}"):
            read_questionnaire(data, dictionary=instrument)
