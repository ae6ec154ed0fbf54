"""REDCap: data dictionaries (CSV), and projects with or without answers (XML, CDISC ODM)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from xml.parsers import expat

import numpy as np
import pandas as pd

from icqf.data.questionnaire import Item
from icqf.errors import Advice, InputError
from icqf.io.dictionary_formats import DictionaryFormat
from icqf.io.readers.branching import box_column
from icqf.io.readers.descriptions import plain_text
from icqf.io.readers.dictionaries import Dictionary, Field, applied, column_of, table_format
from icqf.io.readers.statistical import labelled_item
from icqf.io.readers.table import Table, require_file

COLUMNS = {
    "name": ("variable_field_name", "field_name"),
    "form": ("form_name",),
    "kind": ("field_type",),
    "label": ("field_label",),
    "choices": ("choices_calculations_or_slider_labels", "select_choices_or_calculations"),
    "note": ("field_note",),
    "lowest": ("text_validation_min",),
    "highest": ("text_validation_max",),
    "identifier": ("identifier",),
    "logic": ("branching_logic_show_field_only_if", "branching_logic"),
    "matrix": ("matrix_group_name",),
    "annotation": ("field_annotation",),
}
QUESTIONS = ("radio", "dropdown", "yesno", "truefalse", "slider")
MOST_CELLS = 100_000_000  # a small file may describe a table of any size
FIXED = {
    "yesno": "0, No | 1, Yes",
    "truefalse": "0, False | 1, True",
    "checkbox": "0, Unchecked | 1, Checked",
}
SPELLINGS = {"select": "dropdown", "textarea": "notes"}  # field types in XML and in dictionaries
EVENT, INSTRUMENT, INSTANCE = "redcap_event_name", "redcap_repeat_instrument", "redcap_repeat_instance"
_REVERSED = re.compile(r"@REVERSED?\b|\breverse[- ]?(scored|coded|keyed)\b", re.IGNORECASE)
_NOT_REVERSED = re.compile(r"\b(not|no|un)[- ]?reverse", re.IGNORECASE)
_HIDDEN = re.compile(r"@HIDDEN(?![\w-])", re.IGNORECASE)  # from everybody, unlike @HIDDEN-PDF
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


@dataclass(frozen=True)
class Entry:
    """A field as a dictionary describes it, in REDCap's own words."""

    name: str
    form: str = ""
    kind: str = "text"
    label: str = ""
    choices: str = ""
    note: str = ""
    lowest: str = ""
    highest: str = ""
    identifier: str = ""
    logic: str = ""
    matrix: str = ""
    annotation: str = ""
    place: str = ""


def fields_of_table(rows: pd.DataFrame, source: str) -> Dictionary:
    """The fields of a data dictionary, or of a project's metadata from the API."""
    cells = {key: column_of(rows, *headings) for key, headings in COLUMNS.items()}
    entries = (
        Entry(**dict(zip(cells, row, strict=True)), place=f"row {at}")
        for at, row in enumerate(zip(*cells.values(), strict=True), start=2)
    )
    return _dictionary([entry for entry in entries if entry.name], source)


def _dictionary(
    entries: list[Entry], source: str, *, id: str | None = None, codes: Iterable[float | str] = ()
) -> Dictionary:
    """The fields of a project.

    A field with one answer on a scale is a question: radio (in a matrix or not), yesno, truefalse, slider,
    and dropdown if several fields share their choices; none that is hidden from everybody. The boxes of a
    checkbox are not, as they are one question in many columns (race, medication); they are read only if the
    user names them.
    """
    fields = [each for entry in entries for each in _fields(entry, source, tuple(codes))]
    first = entries[0].name if entries else None
    return Dictionary(tuple(fields), id=id or first)


def _fields(entry: Entry, source: str, codes: tuple[float | str, ...]) -> list[Field]:
    kind, wording = entry.kind.lower(), plain_text(entry.label)
    kind = SPELLINGS.get(kind, kind)
    secret = entry.identifier.lower() in ("y", "yes", "1", "true")
    about = Field(Item(entry.name), False, entry.logic, secret, place=entry.place, form=entry.form)
    scale = entry.matrix or entry.form
    if kind == "checkbox":
        states = dict(_choices(replace(entry, choices=FIXED[kind]), source))
        boxes = [(box_column(entry.name, code), text) for code, text in _choices(entry, source)]
        items = [labelled_item(name, f"{wording}: {text}", _numeric(states)) for name, text in boxes]
        return [replace(about, item=replace(item, subscale=scale)) for item in items]
    choices = entry.choices if kind in ("radio", "dropdown") else FIXED.get(kind, "")
    labels = _numeric(dict(_choices(replace(entry, choices=choices), source)))
    item = replace(labelled_item(entry.name, wording, labels, codes), subscale=scale)
    if kind == "slider" or (kind == "text" and _NUMBER.fullmatch(entry.lowest + entry.highest)):
        ends = [
            float(text) if _NUMBER.fullmatch(text) else usual
            for text, usual in ((entry.lowest, 0.0), (entry.highest, 100.0))
        ]
        if ends[0] < ends[1] and (kind == "slider" or (entry.lowest and entry.highest)):
            item = replace(item, min=ends[0], max=ends[1])
    stated = f"{entry.annotation} {entry.note}"
    if item.declared and _REVERSED.search(stated) and not _NOT_REVERSED.search(stated):
        item = replace(item, reverse=True)
    question = item.declared and kind in QUESTIONS and _HIDDEN.search(entry.annotation) is None
    return [replace(about, item=item, question=question, menu=kind == "dropdown")]


def _choices(entry: Entry, source: str) -> list[tuple[str, str]]:
    pairs = []
    between = "|" if "|" in entry.choices else "\n"
    for choice in filter(None, (part.strip() for part in entry.choices.split(between))):
        code, comma, text = choice.partition(",")
        if not comma:
            raise InputError(
                f"{source}: the field {entry.name!r} has the choice {choice!r} without a value. Write "
                "choices as '0, Never | 1, Often'."
            )
        pairs.append((code.strip(), plain_text(text)))
    if len({*pairs}) > len(dict(pairs)):
        codes = [code for code, _ in {*pairs}]
        again = next(code for code in codes if codes.count(code) > 1)
        raise InputError(
            f"{source}: the field {entry.name!r} has two choices with the value {again!r}. Keep one of them."
        )
    return pairs


def _numeric(labels: Mapping[str, str]) -> dict[float, str]:
    return {float(code): text for code, text in labels.items() if _NUMBER.fullmatch(code)}


# --- projects in XML ----------------------------------------------------------------------------------------


def read_project(path: Path) -> Table:
    """Read the answers of a project in XML, with its dictionary."""
    project = _Project.read(path)
    if not project.records:
        raise InputError(
            f"{path.name}: this project holds descriptions of fields, but no answers.",
            code="no-answers",
            remedy=Advice("Give this file with {dictionary}, beside the table of answers (CSV)."),
        )
    table = Table(project.frame(path.name), path.name, np.arange(1, len(project.records) + 1), id=project.id)
    return applied(table, project.dictionary(path.name), path)


def apply_project(table: Table, path: Path) -> Table:
    """Add the descriptions of a project in XML."""
    require_file(path)
    return applied(table, _Project.read(path).dictionary(path.name), path)


@dataclass
class _Project:
    """A project, collected from its XML as it is parsed."""

    id: str = "record_id"
    codes: list[float | str] = field(default_factory=list)
    columns: dict[str, dict[str, str]] = field(default_factory=dict)  # attributes by column
    forms: dict[str, str] = field(default_factory=dict)  # by group of items
    groups: dict[str, str] = field(default_factory=dict)  # group of items by column
    lists: dict[str, list[tuple[str, str]]] = field(default_factory=dict)  # codes and labels
    boxes: dict[str, str] = field(default_factory=dict)  # choices of a checkbox, by list
    repeating: set[str] = field(default_factory=set)
    records: dict[tuple[str, str, str, str], dict[str, str]] = field(default_factory=dict)
    # Where the parser is: the first element, names and attributes of the open ones, and the text of the last.
    root: str = ""
    opened: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    list_id: str = ""
    code: str = ""
    column: dict[str, str] = field(default_factory=dict)
    subject: str = ""
    event: tuple[str, str] = ("", "")
    form: tuple[str, str] = ("", "")

    @classmethod
    def read(cls, path: Path) -> _Project:
        project = cls()
        parser = expat.ParserCreate(namespace_separator=None)
        parser.StartDoctypeDeclHandler = project.refuse_definitions
        parser.StartElementHandler, parser.EndElementHandler = project.start, project.end
        parser.CharacterDataHandler = project.text.append
        parser.buffer_text = True
        try:
            with path.open("rb") as file:
                parser.ParseFile(file)
        except expat.ExpatError as error:
            what = str(error).partition(":")[0]
            raise InputError(
                f"{path.name}: this is not valid XML ({what} in line {error.lineno}). Was it saved whole? "
                "Export it from REDCap once more."
            ) from None
        except InputError as error:
            raise error.at(path.name) from None
        except (LookupError, ValueError) as error:
            raise InputError(f"{path.name}: this XML cannot be read ({error}). Save it as UTF-8.") from None
        if not project.columns:
            raise InputError(f"{path.name}: this project describes no field (ItemDef).")
        return project

    def refuse_definitions(self, *_: object) -> None:
        """Refuse a document that defines entities, which could name other files or grow without end."""
        raise InputError(
            "the XML begins with a document type definition (DOCTYPE), which REDCap never writes, so it is "
            "not read. Export the project from REDCap once more."
        )

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if not self.root:
            self.root = _local(name)
            if self.root != "ODM":
                raise InputError(
                    f"this is XML, but not a REDCap project (CDISC ODM): it begins with {name!r}. Export it "
                    "from REDCap under 'Other functionality', or as CSV."
                )
        name = _local(name)
        if len(self.opened) > 100:
            raise InputError("the XML is nested too deeply to be a REDCap project.")
        self.opened.append((name, attributes))
        self.text.clear()
        handle = getattr(self, f"on_{name.lower()}", None)
        if handle is not None:
            handle(attributes)
        elif name.startswith("ItemData") and "ItemOID" in attributes and "Value" in attributes:
            self.answer(attributes["ItemOID"], attributes["Value"])

    def end(self, name: str) -> None:
        name, attributes = self.opened.pop()
        text = "".join(self.text).strip()
        self.text.clear()
        above = self.opened[-1][0] if self.opened else ""
        if name in ("TranslatedText", "FormattedTranslatedText"):
            if above == "Question" and text:
                self.column["label"] = text
            elif above == "Decode":
                self.lists.setdefault(self.list_id, []).append((self.code, text))
        elif name == "CheckValue" and above == "RangeCheck":
            self.column[self.opened[-1][1].get("Comparator", "")] = text
        elif name == "MissingDataCodes":
            for part in filter(None, re.split(r"\||\n", text)):
                code = re.split(r"[,=]", part, maxsplit=1)[0].strip()
                self.codes.append(float(code) if _NUMBER.fullmatch(code) else code)
        elif name.startswith("ItemData") and "ItemOID" in attributes and "Value" not in attributes:
            self.answer(attributes["ItemOID"], text)

    def on_metadataversion(self, attributes: dict[str, str]) -> None:
        self.id = attributes.get("redcap:RecordIdField", self.id)

    def on_repeatinginstrument(self, attributes: dict[str, str]) -> None:
        self.repeating.add(attributes.get("redcap:RepeatInstrument", ""))

    def on_formdef(self, attributes: dict[str, str]) -> None:
        self.form = (attributes.get("redcap:FormName") or _after_dot(attributes.get("OID", "")), "")

    def on_itemgroupref(self, attributes: dict[str, str]) -> None:
        self.forms[attributes.get("ItemGroupOID", "")] = self.form[0]

    def on_itemgroupdef(self, attributes: dict[str, str]) -> None:
        self.list_id = attributes.get("OID", "")

    def on_itemref(self, attributes: dict[str, str]) -> None:
        self.groups[attributes.get("ItemOID", "")] = self.list_id

    def on_itemdef(self, attributes: dict[str, str]) -> None:
        oid = attributes.get("OID", "")
        if oid in self.columns:
            raise InputError(f"the field {oid!r} is described twice. Export the project once more.")
        self.column = self.columns[oid] = dict(attributes)

    def on_codelistref(self, attributes: dict[str, str]) -> None:
        self.column["list"] = attributes.get("CodeListOID", "")

    def on_codelist(self, attributes: dict[str, str]) -> None:
        self.list_id = attributes.get("OID", "")
        if choices := attributes.get("redcap:CheckboxChoices"):
            self.boxes[self.list_id] = choices

    def on_codelistitem(self, attributes: dict[str, str]) -> None:
        self.code = attributes.get("CodedValue", "")

    def on_subjectdata(self, attributes: dict[str, str]) -> None:
        self.subject = attributes.get("SubjectKey", "")
        self.id = attributes.get("redcap:RecordIdField", self.id)

    def on_studyeventdata(self, attributes: dict[str, str]) -> None:
        name = attributes.get("redcap:UniqueEventName") or _after_dot(attributes.get("StudyEventOID", ""))
        self.event = (name, attributes.get("StudyEventRepeatKey", "1"))

    def on_formdata(self, attributes: dict[str, str]) -> None:
        self.form = (_after_dot(attributes.get("FormOID", "")), attributes.get("FormRepeatKey", "1"))

    def answer(self, column: str, value: str) -> None:
        """Add an answer to the row of its participant, event and instance."""
        event, again = self.event
        form, instance = self.form
        repeats = form in self.repeating or instance not in ("", "1")
        row = (self.subject, event, form if repeats else "", instance if repeats else "")
        if not repeats and again not in ("", "1"):
            row = (self.subject, event, "", again)
        self.records.setdefault(row, {})[column] = value

    def frame(self, source: str) -> pd.DataFrame:
        """The answers, as REDCap exports them in a CSV file."""
        order = {oid: self._named(oid) for oid in self.columns}
        shown = [oid for oid, about in self.columns.items() if about.get("redcap:FieldType") == "descriptive"]
        names = [name for oid, name in order.items() if oid not in shown]
        rows = []
        for (subject, event, form, instance), answers in self.records.items():
            row = {order.get(oid, oid): value for oid, value in answers.items()}
            about = {EVENT: event, INSTRUMENT: form, INSTANCE: instance}
            rows.append({self.id: subject, **about, **row, self.id: subject})
        columns = dict.fromkeys([self.id, EVENT, INSTRUMENT, INSTANCE, *names, *(n for r in rows for n in r)])
        if len(rows) * len(columns) > MOST_CELLS:
            raise InputError(
                f"{source}: the project has {len(rows)} rows and {len(columns)} columns, too many to be read "
                "from XML. Export the answers as CSV, and give this file as their dictionary."
            )
        frame = pd.DataFrame(rows, columns=list(columns), dtype=object)
        frame = frame.where(frame.notna() & (frame != ""), None)
        for name in (EVENT, INSTRUMENT, INSTANCE):
            if frame[name].nunique(dropna=False) < 2:
                frame = frame.drop(columns=name)
        for name in frame.columns.difference([self.id], sort=False):
            numbers = pd.to_numeric(frame[name], errors="coerce")
            if numbers.notna().sum() == frame[name].notna().sum():
                frame[name] = numbers.astype(float)
        return frame

    def dictionary(self, source: str) -> Dictionary:
        """The fields in the order of the project."""
        entries: dict[str, Entry] = {}
        for oid, about in self.columns.items():
            name = about.get("redcap:Variable") or self._named(oid)
            if name not in entries:
                entries[name] = self._entry(name, about, self.forms.get(self.groups.get(oid, ""), ""))
        forms = {f"{entry.form}_complete" for entry in entries.values()}
        kept = [entry for name, entry in entries.items() if name not in forms]
        return _dictionary(kept, source, id=self.id, codes=self.codes)

    def _named(self, oid: str) -> str:
        """The column of an item: in other programs' ODM, its name is not its OID."""
        about = self.columns[oid]
        return oid if "redcap:Variable" in about else about.get("Name", oid)

    def _entry(self, name: str, about: Mapping[str, str], form: str) -> Entry:
        labels = self.lists.get(about.get("list", ""), [])
        kind = about.get("redcap:FieldType") or ("radio" if labels else "text")
        choices = " | ".join(f"{code}, {text.replace('|', '/')}" for code, text in dict(labels).items())
        return Entry(
            name,
            form,
            SPELLINGS.get(kind, kind),
            about.get("label", ""),
            self.boxes.get(about.get("list", ""), choices),
            about.get("redcap:FieldNote", ""),
            about.get("GE", about.get("GT", "")),
            about.get("LE", about.get("LT", "")),
            about.get("redcap:Identifier", ""),
            about.get("redcap:BranchingLogic", ""),
            about.get("redcap:MatrixGroupName", ""),
            about.get("redcap:FieldAnnotation", ""),
            f"ItemDef {name}",
        )


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _after_dot(oid: str) -> str:
    return oid.partition(".")[2] or oid


REDCAP = table_format(
    "a REDCap data dictionary",
    (("variable_field_name", "field_type"), ("field_name", "field_type")),
    fields_of_table,
)
REDCAP_XML = DictionaryFormat(
    "a REDCap project (XML)", lambda path, head: path.suffix.lower() == ".xml", apply_project
)
