"""Definitions of NDA's data structures, and the dictionaries of ABCD's releases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
import pandas as pd

from icqf.data.questionnaire import Item
from icqf.errors import listed
from icqf.io.readers.descriptions import plain_text
from icqf.io.readers.dictionaries import Dictionary, Field, column_of, table_format
from icqf.io.readers.statistical import labelled_item
from icqf.screening.answer_words import means_no_answer, no_answer_values
from icqf.screening.column_names import is_total
from icqf.screening.columns import MOST_ANSWERS
from icqf.screening.missing_codes import USUAL_CODES

IDS = ("subjectkey", "src_subject_id", "participant_id")
# Columns of every structure, or of the form that was filled in; named like them, a column is not a question.
_ADMINISTRATIVE = re.compile(
    r"subjectkey|src_subject_id|eventname|session_id|visit|interview_(date|age)|sex|gender|version_form"
    r"|(collection|dataset|study_cohort)_\w+|\w*select_language\w*|\w*(timestamp|_complete|_device|_dk)",
    re.IGNORECASE,
)
_IDENTIFYING = ("GUID", "DATE")  # data types
_TEXTS = (*_IDENTIFYING, "STRING", "TEXT", "FILE", "TIME", "TIMESTAMP", "THUMBNAIL", "MANIFEST")
_CODE = r"-?\d+(?:\.\d+)?"
_PAIR = re.compile(rf"(?<![\w.-])({_CODE})\s*=(?!=)\s*")
_CHOICE = re.compile(rf"\s*({_CODE})\s*,\s*(.*)", re.DOTALL)
_SPAN = re.compile(rf"\s*({_CODE})\s*(?:::|to|–)\s*({_CODE})\s*", re.IGNORECASE)
_ENGLISH = re.compile(r"##en##(.*?)##/en##.*", re.DOTALL | re.IGNORECASE)
_REVERSED = re.compile(r"\breversed?[- ]?(scor|cod|key)", re.IGNORECASE)
_MOST_TEXT = 100_000  # characters of notes that are searched for answers


# The headings that a column may have: in definitions, and in ABCD's releases from 5 on.
_DEFINITION = {
    "name": ("elementname", "element_name"),
    "wording": ("elementdescription", "element_description"),
    "types": ("datatype", "data_type", "type"),
    "range": ("valuerange", "value_range"),
    "notes": ("notes", "choices"),
    "condition": ("condition",),
    "aliases": ("aliases",),
    "table": ("structure", "nda_short_name", "short_name"),
}
_VARIABLES = {
    "name": ("var_name", "name"),
    "wording": ("var_label", "label"),
    "types": ("type_data", "data_type", "type"),
    "range": ("value_range", "valuerange"),
    "notes": ("choices", "levels", "notes", "note"),
    "condition": ("condition", "branching_logic"),
    "aliases": ("var_name_nda", "aliases", "name_nda"),
    "table": ("table_name",),
    "role": ("type_var",),
}


def _dictionary(headings: Mapping[str, tuple[str, ...]], rows: pd.DataFrame, source: str) -> Dictionary:
    cells = {key: column_of(rows, *names) for key, names in headings.items()}
    fields: dict[tuple[str, str], Field] = {}
    mentioned = []
    for at, values in enumerate(zip(*cells.values(), strict=True), start=2):
        entry = dict(zip(cells, values, strict=True))
        if entry["name"]:
            field = _field(entry, f"row {at}")
            fields.setdefault((field.name, field.item.wording), field)
            if field.question and _REVERSED.search(f"{entry['notes']} {entry['wording']}"):
                mentioned.append(field.name)
    notes: tuple[str, ...] = ()
    if mentioned:
        notes = (
            f"The dictionary mentions reverse scoring for {listed(mentioned)}, but not whether these answers "
            "are already reversed; the check shows whether they run against the others.",
        )
    return Dictionary(tuple(fields.values()), notes=notes)


def _field(entry: dict[str, str], place: str) -> Field:
    item = described_item(entry["name"], plain_text(entry["wording"]), entry["notes"], entry["range"])
    item = replace(item, subscale=entry.get("table", ""))
    wide = item.declared and float(item.max or 0) - float(item.min or 0) > MOST_ANSWERS
    role = entry.get("role", "").lower()
    question = bool(
        (item.declared or role == "item")
        and not wide
        and "___" not in item.name
        and (not is_total(item.name) or any(value not in item.missing_codes for value, _ in item.labels))
        and not _ADMINISTRATIVE.fullmatch(item.name)
        and entry["types"].upper() not in _TEXTS
        and role in ("", "item")
    )
    others = tuple(name for name in re.split(r"[,;\s]+", entry["aliases"]) if name)
    identifying = entry["types"].upper() in _IDENTIFYING and entry["name"].lower() not in IDS
    return Field(item, question, entry["condition"], identifying, others, place)


def described_item(name: str, wording: str, notes: str, spans: str = "") -> Item:
    """Return an item from the labels in its notes (``0 = No; 1 = Yes; 999 = Don't know``) and its range.

    Labels may also be REDCap's choices (``0, No | 1, Yes``); a range is ``0::3; -1`` or ``1;2;3``.
    """
    return replace(_answers(notes, spans), name=name, wording=wording)


@lru_cache(maxsize=1024)  # the items of a questionnaire have the same answers
def _answers(notes: str, spans: str) -> Item:
    labels = labels_in(notes)
    ends, alone = _ranges(spans)
    codes = no_answer_values({**dict.fromkeys(ends, ""), **labels})
    far = [value for value in alone if ends and not min(ends) - 1 <= value <= max(ends) + 1]
    codes += [value for value in far if value in USUAL_CODES and value not in codes]
    answers = [value for value in (*labels, *ends) if value not in codes]
    if labels or ends:
        within = (min(answers), max(answers)) if answers else (0.0, 0.0)
        outside = [value for value in alone if not within[0] <= value <= within[1] and value not in labels]
    else:
        outside = [value for value in alone if value in USUAL_CODES and abs(value) > len(alone)]
    codes += [value for value in outside if value in USUAL_CODES and value not in codes]
    answers += [value for value in alone if value not in codes and value not in answers]
    item = labelled_item("item", "", labels, codes)
    if len({*answers}) < 2:
        return item
    low, high = min(answers), max(answers)
    kept = tuple(code for code in item.missing_codes if isinstance(code, str) or not low <= code <= high)
    return replace(item, min=low, max=high, missing_codes=kept)


def labels_in(text: str) -> dict[float, str]:
    """Return the answers that a text describes, as ``0 = No; 1 = Yes`` or ``0, No | 1, Yes``."""
    text = text[:_MOST_TEXT]
    choices = [_CHOICE.fullmatch(part) for part in text.split("|")]
    if len(choices) > 1 and all(choices):
        return _without_doubles((float(each[1]), each[2]) for each in choices if each)
    matches = list(_PAIR.finditer(text))
    starts = [match.start() for match in matches][1:] + [len(text)] * bool(matches)
    return _without_doubles(
        (float(match[1]), text[match.end() : end]) for match, end in zip(matches, starts, strict=True)
    )


def _without_doubles(pairs: Iterable[tuple[float, str]]) -> dict[float, str]:
    """Labels by value; none if one value has two, as then they are something else."""
    labels: dict[float, str] = {}
    for value, text in pairs:
        label = _label(text)
        if labels.get(value, label) != label:
            return {}
        labels[value] = label
    return labels


def _label(text: str) -> str:
    """A label in English: without markup, and of two languages the first if it means no answer."""
    english = _ENGLISH.match(text.strip())
    label = plain_text(english[1] if english else text).strip(" ;,|/.")
    first = label.partition(" / ")[0]
    return first if means_no_answer(first) else label


def _ranges(text: str) -> tuple[list[float], list[float]]:
    """The ends of spans such as ``0::10``, and single values; texts such as ``M; F`` have neither."""
    ends: list[float] = []
    alone: list[float] = []
    for part in filter(None, (part.strip() for part in re.split(r"[;,]", text))):
        span = _SPAN.fullmatch(part)
        if span:
            ends += [float(span[1]), float(span[2])]
        elif re.fullmatch(_CODE, part):
            alone.append(float(part))
        elif not means_no_answer(part) and part.lower() not in ("nan", "null"):
            return [], []
    return (ends, alone) if np.isfinite([*ends, *alone]).all() else ([], [])


NDA = table_format(
    "the definition of an NDA data structure",
    (("elementname", "elementdescription"), ("element_name", "element_description")),
    partial(_dictionary, _DEFINITION),
)
ABCD = table_format(
    "an ABCD data dictionary",
    (("var_name", "var_label"), ("name", "label", "type_var")),
    partial(_dictionary, _VARIABLES),
)
