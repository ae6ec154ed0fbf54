"""REDCap: a raw export (CSV) with its data dictionary (CSV)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from icqf.data.questionnaire import Item
from icqf.errors import InputError, listed
from icqf.io.dictionary_formats import DictionaryFormat
from icqf.io.formats import TEXT
from icqf.io.readers.delimited import read_delimited
from icqf.io.readers.statistical import label_notes, labelled_item
from icqf.io.readers.table import Table, require_file

TOKEN = re.compile(
    r"\s*(?:(?P<field>\[\s*[A-Za-z0-9_]+\s*(?:\(\s*-?[A-Za-z0-9_]+\s*\))?\s*\])|(?P<text>'[^']*'|\"[^\"]*\")"
    r"|(?P<number>-?\d+(?:\.\d+)?)|(?P<sign><>|!=|<=|>=|=|<|>)|(?P<join>and\b|or\b|not\b|&&|\|\||!)|(?P<bracket>[()]))",
    re.IGNORECASE,
)
COMPARE: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "=": np.equal,
    "<>": np.not_equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


class NotUnderstood(ValueError):
    """The expression uses something beyond the supported part of the language."""


def shown(expression: str, frame: pd.DataFrame) -> np.ndarray:
    """Return for each record whether the branching logic shows the field."""
    return _Parser(expression, frame).parse()


class _Parser:
    def __init__(self, expression: str, frame: pd.DataFrame) -> None:
        self.frame = frame
        self.tokens: list[tuple[str, str]] = []
        self.at = 0
        text, place = expression.strip(), 0
        while place < len(text):
            match = TOKEN.match(text, place)
            if match is None:
                raise NotUnderstood(text[place : place + 20].strip())
            self.tokens.append((str(match.lastgroup), match[str(match.lastgroup)]))
            place = match.end()

    def parse(self) -> np.ndarray:
        value = self._either()
        if self.at < len(self.tokens):
            raise NotUnderstood(self.tokens[self.at][1])
        return value

    def _next(self, *words: str) -> bool:
        if self.at < len(self.tokens) and self.tokens[self.at][1].lower() in words:
            self.at += 1
            return True
        return False

    def _either(self) -> np.ndarray:
        value = self._both()
        while self._next("or", "||"):
            value = value | self._both()
        return value

    def _both(self) -> np.ndarray:
        value = self._one()
        while self._next("and", "&&"):
            value = value & self._one()
        return value

    def _one(self) -> np.ndarray:
        if self._next("not", "!"):
            return ~self._one()
        if self._next("("):
            value = self._either()
            if not self._next(")"):
                raise NotUnderstood("a bracket that is not closed")
            return value
        return self._comparison()

    def _comparison(self) -> np.ndarray:
        left = self._operand()
        if self.at >= len(self.tokens) or self.tokens[self.at][0] != "sign":
            raise NotUnderstood("a field without a comparison")
        sign = self.tokens[self.at][1]
        self.at += 1
        right = self._operand()
        left_number, right_number = (_numbers(side) for side in (left, right))
        both = ~np.isnan(left_number) & ~np.isnan(right_number)
        as_numbers = COMPARE[sign](left_number, right_number)
        if sign in ("=", "<>", "!="):
            return np.where(both, as_numbers, COMPARE[sign](left, right))
        return both & as_numbers

    def _operand(self) -> np.ndarray:
        if self.at >= len(self.tokens):
            raise NotUnderstood("an expression that ends early")
        kind, token = self.tokens[self.at]
        self.at += 1
        if kind == "field":
            return self._field(token[1:-1].replace(" ", ""))
        if kind in ("text", "number"):
            return np.full(len(self.frame), token.strip("'\""), dtype=object)
        raise NotUnderstood(token)

    def _field(self, name: str) -> np.ndarray:
        checkbox = re.fullmatch(r"(\w+)\((-?\w+)\)", name)
        column = f"{checkbox[1]}___{checkbox[2].replace('-', '_').lower()}" if checkbox else name
        if column not in self.frame.columns:
            raise NotUnderstood(f"[{name}], which is not a column")
        values = self.frame[column]
        if pd.api.types.is_numeric_dtype(values.dtype):
            numbers = values.to_numpy(dtype=float, na_value=np.nan)
            return np.array(["" if np.isnan(v) else f"{v:.15g}" for v in numbers], dtype=object)
        return values.astype(object).where(values.notna(), "").astype(str).str.strip().to_numpy(dtype=object)


def _numbers(side: np.ndarray) -> np.ndarray:
    return pd.to_numeric(pd.Series(side, dtype=object), errors="coerce").to_numpy(dtype=float)


COLUMNS = {
    "field": ("Variable / Field Name", "field_name"),
    "form": ("Form Name", "form_name"),
    "kind": ("Field Type", "field_type"),
    "label": ("Field Label", "field_label"),
    "choices": ("Choices, Calculations, OR Slider Labels", "select_choices_or_calculations"),
    "lowest": ("Text Validation Min", "text_validation_min"),
    "highest": ("Text Validation Max", "text_validation_max"),
    "logic": ("Branching Logic (Show field only if...)", "branching_logic"),
    "matrix": ("Matrix Group Name", "matrix_group_name"),
}
QUESTIONS = ("radio", "yesno", "truefalse", "slider")
FEWEST_MENUS = 3  # dropdown fields with the same choices that make an instrument
FIXED = {
    "yesno": {0.0: "No", 1.0: "Yes"},
    "truefalse": {0.0: "False", 1.0: "True"},
    "checkbox": {0.0: "Unchecked", 1.0: "Checked"},
}


def is_dictionary(path: Path, head: str) -> bool:
    """Whether a text begins with the headings of a data dictionary."""
    first = head.lstrip().partition("\n")[0]
    known = [any(name in first for name in COLUMNS[key]) for key in ("field", "kind", "label")]
    return path.suffix.lower() in TEXT and all(known)


def apply_dictionary(table: Table, dictionary: Path) -> Table:
    """Add wordings, choices and branching from the data dictionary.

    A field with one answer on a scale is a question: radio (in a matrix or not), yesno, truefalse, slider,
    and dropdown if several fields share their choices. The boxes of a checkbox are not, as they are one
    question in many columns (race, medication); they are read only if the user names them. A cell is
    structurally missing if it is empty and the field's branching logic hides it.
    """
    require_file(dictionary)
    fields = _read_dictionary(dictionary)
    known = [name for name in fields["field"] if name in table.frame.columns]
    if not known:
        raise InputError(
            f"{dictionary.name}: none of its fields is a column of {table.source}. Export the raw data, "
            "with field names as the header."
        )
    items: list[Item] = []
    hidden: dict[str, np.ndarray] = {}
    notes: list[str] = []
    kinds = fields["kind"].str.lower()
    menus = fields["choices"][kinds == "dropdown"].value_counts()
    questions: list[str] = []
    for _, entry in fields.iterrows():
        new = [item for item in _items(entry, dictionary.name) if item.name in table.frame.columns]
        items.extend(new)
        kind = entry["kind"].lower()
        if kind in QUESTIONS or (kind == "dropdown" and menus[entry["choices"]] >= FEWEST_MENUS):
            questions += [item.name for item in new if item.declared]
        if entry["logic"] and new:
            _branch(entry["logic"], new, table.frame, hidden, notes)
    structural = (
        pd.DataFrame(False, index=table.frame.index, columns=table.frame.columns).assign(**hidden)
        if hidden
        else None
    )
    return replace(
        table,
        items=tuple(items),
        candidates=tuple(questions) or None,
        id=known[0] if known[0] == fields["field"].iloc[0] else table.id,
        structural=structural,
        notes=(*table.notes, f"Columns are described by {dictionary.name}.", *notes, *label_notes(items)),
    )


def _branch(
    logic: str, items: list[Item], frame: pd.DataFrame, hidden: dict[str, np.ndarray], notes: list[str]
) -> None:
    names = [item.name for item in items]
    try:
        not_asked = ~shown(logic, frame)
    except NotUnderstood as error:
        notes.append(
            f"The branching logic of {listed(names)} was not understood ({error}); empty cells count as "
            "not answered."
        )
        return
    for name in names:
        empty = frame[name].isna().to_numpy()
        hidden[name] = not_asked & empty
        answered = int((not_asked & ~empty).sum())
        if answered and "___" not in name:
            notes.append(
                f"{name!r} has {answered} answers where its branching logic hides it; they are kept."
            )
    count = int(sum(hidden[name].sum() for name in names))
    notes.append(f"{count} empty cells of {listed(names)} are structurally missing (not shown: {logic}).")


def _read_dictionary(path: Path) -> pd.DataFrame:
    raw = read_delimited(path).frame
    chosen = {}
    for key, spellings in COLUMNS.items():
        column = next((name for name in spellings if name in raw.columns), None)
        if column is None and key in ("field", "kind", "label"):
            raise InputError(
                f"{path.name}: the column {spellings[0]!r} of a REDCap data dictionary is missing."
            )
        texts = (
            pd.Series("", index=raw.index)
            if column is None
            else raw[column].astype(object).where(raw[column].notna(), "")
        )
        chosen[key] = texts.astype(str).str.strip()
    fields = pd.DataFrame(chosen)
    twice = fields["field"][fields["field"].duplicated() & fields["field"].ne("")]
    if len(twice):
        raise InputError(f"{path.name}: the field {twice.iloc[0]!r} appears twice. Delete one of the two.")
    return fields


def _items(entry: pd.Series, source: str) -> list[Item]:
    name, kind = entry["field"], entry["kind"].lower()
    wording = _plain(entry["label"])
    scale = entry["matrix"] or entry["form"]
    if kind == "checkbox":
        boxes = [
            (f"{name}___{code.replace('-', '_').lower()}", f"{wording}: {text}")
            for code, text in _choices(entry, source)
        ]
        return [replace(labelled_item(*box, FIXED["checkbox"]), subscale=scale) for box in boxes]
    if kind in ("radio", "dropdown"):
        labels = {float(code): text for code, text in _choices(entry, source) if _is_numeric(code)}
    else:
        labels = FIXED.get(kind, {})
    item = replace(labelled_item(name, wording, labels), subscale=scale)
    if kind == "slider":
        ends = [
            float(entry[key]) if _is_numeric(entry[key]) else end
            for key, end in (("lowest", 0.0), ("highest", 100.0))
        ]
        item = replace(item, min=ends[0], max=ends[1])
    return [item]


def _choices(entry: pd.Series, source: str) -> list[tuple[str, str]]:
    pairs = []
    for choice in filter(None, (part.strip() for part in entry["choices"].split("|"))):
        code, comma, text = choice.partition(",")
        if not comma:
            raise InputError(
                f"{source}: the field {entry['field']!r} has the choice {choice!r} without a value. Write "
                "choices as '0, Never | 1, Often'."
            )
        pairs.append((code.strip(), _plain(text)))
    return pairs


def _plain(text: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def _is_numeric(text: str) -> bool:
    return bool(re.fullmatch(r"-?\d+(\.\d+)?", text))


REDCAP = DictionaryFormat("a REDCap data dictionary", is_dictionary, apply_dictionary)
