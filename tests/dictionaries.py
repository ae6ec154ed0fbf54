"""One made study as REDCap, NDA, ABCD and LORIS write it: answers and a dictionary with a branch.

Six items about mood and worry; whether one drinks; and three items about drinking, asked of drinkers only.
Some refuse (777) or do not know (999).
"""

from html import escape
from pathlib import Path

import numpy as np
import pandas as pd

MOOD = {f"mood_{i}": f"Low mood {i}" for i in range(1, 4)} | {f"worry_{i}": f"Worry {i}" for i in range(1, 4)}
DRINKING = {f"alc_{i}": f"Trouble with drinking {i}" for i in range(1, 4)}
CHOICES = {0: "Never", 1: "Sometimes", 2: "Often", 3: "Always", 777: "Refuse to answer", 999: "Don't know"}
YES_NO = {0: "No", 1: "Yes"}
ITEMS = [*MOOD, "drinks", *DRINKING]
REDCAP = (
    "Variable / Field Name,Form Name,Section Header,Field Type,Field Label,"
    '"Choices, Calculations, OR Slider Labels",Field Note,Text Validation Type OR Show Slider Number,'
    "Text Validation Min,Text Validation Max,Identifier?,Branching Logic (Show field only if...),"
    "Required Field?,Custom Alignment,Question Number (surveys only),Matrix Group Name,Matrix Ranking?,"
    "Field Annotation\n"
)


def study(n=120, seed=0):
    """The answers; who does not drink was not asked about drinking."""
    rng = np.random.default_rng(seed)
    traits = rng.gamma(1.0, 1.0, (n, 3))
    columns = {}
    for j, name in enumerate([*MOOD, *DRINKING]):
        columns[name] = np.clip(np.rint(traits[:, j // 3] + rng.normal(0, 0.4, n)), 0, 3)
    frame = pd.DataFrame(columns)
    frame["drinks"] = (rng.random(n) < 0.6).astype(float)
    frame.loc[frame["drinks"] == 0, list(DRINKING)] = np.nan
    frame.loc[:3, "mood_1"] = 777
    frame.loc[4:5, "worry_2"] = 999
    frame.loc[6:7, "drinks"] = np.nan
    frame.loc[6:7, list(DRINKING)] = np.nan
    frame.loc[8:10, "mood_3"] = np.nan
    frame.insert(0, "age", rng.integers(18, 70, n).astype(float))
    return frame[["age", *ITEMS]]


def _pairs(choices, between=" | ", is_=", "):
    return between.join(f"{code}{is_}{label}" for code, label in choices.items())


def _cells(frame):
    return frame.map(lambda value: "" if pd.isna(value) else f"{value:g}")


def redcap_fields():
    """Name, type, label, choices, identifier, logic, matrix."""
    yield "record_id", "text", "Record ID", "", "", "", ""
    yield "full_name", "text", "Name", "", "y", "", ""
    yield "dob", "text", "Date of birth", "", "y", "", ""
    yield "age", "calc", "Age", "datediff([dob], 'today', 'y')", "", "", ""
    yield "intro", "descriptive", "<p>Please answer:</p>", "", "", "", ""
    for name, label in MOOD.items():
        yield name, "radio", f"<b>{label}</b>", _pairs(CHOICES), "", "", "mood_matrix"
    yield "drinks", "yesno", "Do you drink?", "", "", "", ""
    yield "kinds", "checkbox", "What do you drink?", "1, Beer | 2, Wine", "", "[drinks] = '1'", ""
    for name, label in DRINKING.items():
        logic = "[drinks] = '1' and ([kinds(1)] = '1' or [kinds(2)] <> '')"
        yield name, "radio", label, _pairs(CHOICES), "", logic, ""
    yield "comment", "notes", "Anything else?", "", "", "", ""


def redcap_frame():
    """An export of raw values, with names, birthdays and boxes."""
    frame = study()
    ids = [f"{i:03d}" for i in range(1, len(frame) + 1)]
    cells = _cells(frame)
    cells.insert(0, "record_id", ids)
    cells.insert(1, "full_name", [f"Person {i}" for i in ids])
    cells.insert(2, "dob", [f"19{50 + i % 50}-01-0{1 + i % 9}" for i in range(len(frame))])
    for code in (1, 2):
        cells[f"kinds___{code}"] = (frame["drinks"] == 1).astype(int).astype(str)
    cells["comment"] = ""
    cells["form_complete"] = "2"
    return cells


def redcap(folder: Path):
    """An export and its data dictionary."""
    redcap_frame().to_csv(folder / "export.csv", index=False)
    rows = [
        [name, "moods", "", kind, label, choices, "", "", "", "", secret, logic, "", "", "", matrix, "", ""]
        for name, kind, label, choices, secret, logic, matrix in redcap_fields()
    ]
    table = pd.DataFrame(rows).to_csv(index=False, header=False)
    (folder / "dictionary.csv").write_text(REDCAP + table, encoding="utf-8-sig")
    return folder / "export.csv", folder / "dictionary.csv"


def redcap_xml(folder: Path, *, answers=True, events=("event_1_arm_1",)):
    """A project in XML (CDISC ODM), with its answers."""
    spelled = {"notes": "textarea", "dropdown": "select"}
    items, lists, refs = [], [], []
    for name, kind, label, choices, secret, logic, matrix in redcap_fields():
        pairs = [part.split(", ", 1) for part in choices.split(" | ")] if choices and kind != "calc" else []
        pairs = [["1", "Yes"], ["0", "No"]] if kind == "yesno" else pairs
        more = f' redcap:FieldType="{spelled.get(kind, kind)}"'
        more += f' redcap:Identifier="{secret}"' if secret else ""
        more += f' redcap:BranchingLogic="{escape(logic)}"' if logic else ""
        more += f' redcap:MatrixGroupName="{matrix}"' if matrix else ""
        boxes = f' redcap:CheckboxChoices="{escape(choices)}"' if kind == "checkbox" else ""
        shown = [["1", "Checked"], ["0", "Unchecked"]] if kind == "checkbox" else pairs
        names = [f"{name}___{code}" for code, _ in pairs] if kind == "checkbox" else [name]
        for oid in names:
            refs.append(f'<ItemRef ItemOID="{oid}" Mandatory="No" redcap:Variable="{name}"/>')
            coded = f'<CodeListRef CodeListOID="{oid}.choices"/>' if shown else ""
            items.append(
                f'<ItemDef OID="{oid}" Name="{oid}" DataType="text" redcap:Variable="{name}"{more}>'
                f"<Question><TranslatedText>{escape(label)}</TranslatedText></Question>{coded}</ItemDef>"
            )
            decoded = "".join(
                f'<CodeListItem CodedValue="{code}"><Decode><TranslatedText>{escape(text)}</TranslatedText>'
                "</Decode></CodeListItem>"
                for code, text in shown
            )
            if shown:
                lists.append(
                    f'<CodeList OID="{oid}.choices" Name="{oid}" redcap:Variable="{name}"{boxes}>'
                    f"{decoded}</CodeList>"
                )
    data = ""
    for row in redcap_frame().to_dict("records") if answers else ():
        values = "".join(
            f'<ItemData ItemOID="{name}" Value="{escape(cell)}"/>' for name, cell in row.items() if cell
        )
        visits = "".join(
            f'<StudyEventData StudyEventOID="Event.{event}" StudyEventRepeatKey="1" '
            f'redcap:UniqueEventName="{event}"><FormData FormOID="Form.moods" FormRepeatKey="1">'
            f'<ItemGroupData ItemGroupOID="moods.record_id" ItemGroupRepeatKey="1">{values}</ItemGroupData>'
            "</FormData></StudyEventData>"
            for event in events
        )
        data += f'<SubjectData SubjectKey="{row["record_id"]}" redcap:RecordIdField="record_id">{visits}'
        data += "</SubjectData>"
    clinical = f'<ClinicalData StudyOID="Project.Moods" MetaDataVersionOID="M.1">{data}</ClinicalData>'
    text = (
        '<?xml version="1.0" encoding="UTF-8" ?>\n<ODM xmlns="http://www.cdisc.org/ns/odm/v1.3" '
        'xmlns:redcap="https://projectredcap.org" ODMVersion="1.3.1" SourceSystem="REDCap">'
        '<Study OID="Project.Moods"><GlobalVariables><StudyName>Moods</StudyName>'
        "<redcap:MissingDataCodes>-99, Not collected</redcap:MissingDataCodes></GlobalVariables>"
        '<MetaDataVersion OID="M.1" Name="Moods" redcap:RecordIdField="record_id">'
        '<FormDef OID="Form.moods" Name="Moods" Repeating="No" redcap:FormName="moods">'
        '<ItemGroupRef ItemGroupOID="moods.record_id" Mandatory="No"/></FormDef>'
        f'<ItemGroupDef OID="moods.record_id" Name="Moods" Repeating="No">{"".join(refs)}</ItemGroupDef>'
        f"{''.join(items)}{''.join(lists)}</MetaDataVersion></Study>{clinical if answers else ''}</ODM>"
    )
    (folder / "project.xml").write_text(text, encoding="utf-8")
    return folder / "project.xml"


def _definitions():
    """Name, type, description, range, notes and condition, as NDA has them."""
    yield "subjectkey", "GUID", "Global unique identifier", "NDAR*", "", ""
    yield "src_subject_id", "String", "Id in the project", "", "", ""
    yield "interview_date", "Date", "Date of the interview", "", "", ""
    yield "interview_age", "Integer", "Age in months", "0 :: 1260", "Age is rounded to months.", ""
    yield (
        "sex",
        "String",
        "Sex at birth",
        "M;F; O; NR",
        "M = Male; F = Female; O=Other; NR = Not reported",
        "",
    )
    yield "eventname", "String", "Event", "", "", ""
    codes = _pairs(CHOICES, ";  ", "=")
    for name, label in MOOD.items():
        yield name, "Integer", label, "0::3;777;999", codes, ""
    yield "drinks", "Integer", "Does the participant drink?", "0;1", "0 = No; 1 = Yes", ""
    for name, label in DRINKING.items():
        yield name, "Integer", label, "0::3; 777;999", f"Choose one. {codes}", "drinks == 1"
    yield "moods_total", "Integer", "Sum of the items", "0::18", "Higher means more problems", ""


def nda(folder: Path):
    """A data file with two header rows, and the definition of its structure."""
    frame = study()
    n = len(frame)
    cells = _cells(frame)
    about = {
        "collection_id": ["1234"] * n,
        "dataset_id": ["5678"] * n,
        "subjectkey": [f"NDAR_INV{i:08d}" for i in range(n)],
        "src_subject_id": [f"S{i:04d}" for i in range(n)],
        "interview_date": ["01/02/2020"] * n,
        "interview_age": [f"{age * 12:g}" for age in frame["age"]],
        "sex": np.where(np.arange(n) % 2, "M", "F").tolist(),
        "eventname": ["baseline_year_1_arm_1"] * n,
    }
    table = pd.concat([pd.DataFrame(about), cells[ITEMS]], axis=1)
    texts = {name: label for name, _, label, *_ in _definitions()}
    texts |= {"collection_id": "Collection", "dataset_id": "Data set"}
    lines = [table.columns, [texts[name] for name in table.columns], *table.to_numpy().tolist()]
    data = folder / "moods01.txt"
    data.write_text("".join("\t".join(f'"{cell}"' for cell in line) + "\n" for line in lines))
    heads = ["ElementName", "DataType", "Size", "Required", "Condition", "ElementDescription", "ValueRange"]
    rows = [
        [name, kind, "", "Recommended", condition, label, span, notes, ""]
        for name, kind, label, span, notes, condition in _definitions()
    ]
    definition = pd.DataFrame(rows, columns=[*heads, "Notes", "Aliases"])
    definition.to_csv(folder / "moods01_definitions.csv", index=False)
    return data, folder / "moods01_definitions.csv"


def abcd(folder: Path):
    """A table of release 5 with two visits, and rows of the dictionary of all tables."""
    frame = _cells(study())
    ids = [f"NDAR_INV{i:08d}" for i in range(len(frame))]
    visits = [
        frame[ITEMS].assign(src_subject_id=ids, eventname=event)
        for event in ("baseline_year_1_arm_1", "2_year_follow_up_y_arm_1")
    ]
    table = pd.concat(visits)[["src_subject_id", "eventname", *ITEMS]]
    table.to_csv(folder / "mh_p_moods.csv", index=False)
    heads = ["table_name", "var_name", "var_label", "notes", "condition", "table_name_nda"]
    rows = [
        ["mh_p_moods", name, label, notes.replace("Choose one. ", ""), condition, "moods01"]
        for name, _, label, _, notes, condition in _definitions()
        if name in ITEMS
    ]
    other = [["mh_p_other", "other_1", "Another table", "0=No; 1=Yes", "", "other01"]]
    common = [[table, "eventname", "Event", "", "", ""] for table in ("mh_p_moods", "mh_p_other")]
    pd.DataFrame([*common, *rows, *other], columns=heads).to_csv(folder / "abcd.csv", index=False)
    return folder / "mh_p_moods.csv", folder / "abcd.csv"


def loris(folder: Path):
    """A table of two header-less columns of ids and an instrument, with the instrument (``.linst``)."""
    frame = _cells(study()).replace({"777": "not_answered", "999": "not_answered"})
    table = frame[ITEMS].add_prefix("moods_")
    table.insert(0, "PSCID", [f"MTL{i:03d}" for i in range(len(frame))])
    table.insert(1, "CandID", [str(100000 + i) for i in range(len(frame))])
    table["moods_mood_1_status"] = ""
    table.to_csv(folder / "moods.csv", index=False)
    answers = {code: label for code, label in CHOICES.items() if code < 10}
    lines = [
        "{-@-}testname{@}moods",
        "table{@}moods",
        "title{@}Moods",
        "select{@}Examiner{@}Examiner{@}NULL=>''",
    ]
    for name, label in (MOOD | {"drinks": "Do you drink?"} | DRINKING).items():
        choices = YES_NO if name == "drinks" else answers
        options = "{-}".join(f"'{code}'=>'{text}'" for code, text in choices.items())
        lines.append(
            f"select{{@}}{name}{{@}}{label}{{@}}NULL=>''{{-}}{options}{{-}}'not_answered'=>'Not Answered'"
        )
        lines.append(f"select{{@}}{name}_status{{@}}{{@}}NULL=>''{{-}}'not_answered'=>'Not Answered'")
    (folder / "moods.linst").write_text("\n".join([*lines, "page{@}{@}End", ""]))
    return folder / "moods.csv", folder / "moods.linst"
