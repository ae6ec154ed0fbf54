"""ReproSchema: questionnaires as JSON-LD files, of a protocol, its activities and their items."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from icqf.data.about import LONGEST, NOT_STATED, About
from icqf.errors import InputError, listed, shortened
from icqf.io.dictionary_formats import DictionaryFormat
from icqf.io.readers.descriptions import plain_text, read_json
from icqf.io.readers.dictionaries import Dictionary, Field, applied
from icqf.io.readers.statistical import labelled_item
from icqf.io.readers.table import Table
from icqf.screening.missing_codes import code_in

ENDINGS = ("", ".json", ".jsonld")
ONE_ANSWER = ("radio", "slider", "select")
_MOST_FILES = 10_000
_HEAD = 4096  # characters that say what a file is
_ABOVE = ("activities", "protocols")  # folders that may be beside each other in a study's folder


def is_schema(path: Path, head: str) -> bool:
    """Whether a file, or one in a folder, belongs to ReproSchema."""
    if path.is_dir():
        return any(_tops(path))
    ending = path.suffix.lower()
    return (
        ending in ENDINGS and head.lstrip().startswith("{") and (ending != ".json" or "reproschema" in head)
    )


def apply_schema(table: Table, path: Path) -> Table:
    """Add wordings, answers and ranges of the items of an activity or of a protocol's activities.

    Questions with one answer on a scale are items: radio buttons, sliders, and menus if several share their
    options. An item that is computed, or never shown, is not. The condition under which an item is shown
    (``isVis``) says whether it was asked.
    """
    found = _Reading(path.resolve())
    for top in [path] if path.is_file() else _tops(path):
        found.read(top.resolve())
    if not found.fields:
        raise InputError(f"{found.start.name}: no item of an activity was found in it{found.reasons}.")
    notes = list(found.notes)
    if found.lacking:
        notes.append(
            f"{found.start.name} names files that are not in its folder or beside it: "
            f"{listed(found.lacking)}."
        )
    about = found.instruments[0] if len(found.instruments) == 1 else NOT_STATED
    return applied(
        table, Dictionary(tuple(found.fields.values()), notes=tuple(notes), about=about), found.start
    )


@dataclass
class _Reading:
    """What was read so far; a file that several others name is read once."""

    start: Path
    fields: dict[str, Field] = field(default_factory=dict)
    instruments: list[About] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)
    files: dict[Path, dict[str, Any]] = field(default_factory=dict)
    open: tuple[Path, ...] = ()

    @property
    def reasons(self) -> str:
        reason = "; it names files that are not in its folder or beside it"
        return f"{reason}: {listed(self.lacking)}" if self.lacking else ""

    @cached_property
    def root(self) -> Path:
        """The folder whose files may be read: the one that was given, or what the file's own folder is in."""
        if self.start.is_dir():
            return self.start
        above = self.start.parent.parent
        above = above.parent if above.name in _ABOVE else above
        return self.start.parent if above == above.parent else above  # never a whole disk

    def locate(self, reference: str, path: Path) -> Path | None:
        """The file that a reference in another file means; None if it is not in the root."""
        found = None
        if not re.match(r"[A-Za-z][\w+.-]*:", reference):
            with suppress(OSError, ValueError):  # a name that no file can have
                base = (path.parent / reference.partition("#")[0]).resolve()
                places = [base.with_name(base.name + ending) for ending in ENDINGS if base.name]
                found = next((place for place in places if place.is_file()), None)
        if found is None or not found.is_relative_to(self.root):
            self.lacking.append(reference)
            return None
        return found

    def load(self, path: Path) -> dict[str, Any]:
        """Read a file once."""
        if path not in self.files:
            if len(self.files) >= _MOST_FILES:
                raise InputError(f"{self.start.name}: it refers to more than {_MOST_FILES} files.")
            self.files[path] = read_json(path)
        return self.files[path]

    def read(self, path: Path, shown: str = "") -> None:
        """Read a protocol, an activity or a single item; `shown` is the condition under which it is shown."""
        if path in self.open:
            return
        self.open = (*self.open, path)
        schema = self.load(path)
        stated = _value(schema, "type") or _value(schema, "category")
        kind = re.split(r"[:/#]", str(next(iter(_list(stated)), stated)))[-1]
        if kind == "Activity":
            self._activity(schema, path, shown)
        elif kind == "Protocol":
            for reference, entry in _members(schema):
                inner = self.locate(reference, path)
                if inner is not None and _value(entry, "isVis") is not False:
                    self.read(inner, _condition(_value(entry, "isVis")))
        elif kind in ("Field", "Item"):
            self._item(schema, path, {}, "", shown)
        else:
            but = "has no type" if kind in ("", "None") else f"of the type {shortened(kind, 40)!r}"
            raise InputError(
                f"{path.name}: this file of ReproSchema is not an activity, a protocol or an item, but "
                f"{but}. Give an activity, such as phq9_schema, a protocol, or their folder."
            )

    def _activity(self, schema: Mapping[str, Any], path: Path, shown: str) -> None:
        name = _text(_value(schema, "prefLabel")) or path.stem.removesuffix("_schema")
        details = [f"{word} {_text(_value(schema, word))}" for word in ("version", "citation", "license")]
        known = [text for text in details if not text.endswith(" ")]
        self.notes.append(f"Instrument: {', '.join([name, *known]).rstrip('.')}.")
        version, licence = (_text(_value(schema, word))[:LONGEST] for word in ("version", "license"))
        stated = {"instrument": name[:LONGEST], "instrument_version": version, "instrument_licence": licence}
        self.instruments.append(About.of(stated, where=path.name))
        computed = [each for each in _list(_value(schema, "compute")) if isinstance(each, dict)]
        derived = {str(_value(each, "variableName")) for each in computed}
        for reference, entry in _members(schema):
            inner = self.locate(reference, path)
            if inner is not None:
                self._item(self.load(inner), inner, entry, name, shown, derived)

    def _item(
        self,
        schema: Mapping[str, Any],
        path: Path,
        entry: Mapping[str, Any],
        activity: str,
        shown: str,
        derived: Collection[str] = (),
    ) -> None:
        name = str(_value(entry, "variableName") or _value(schema, "id") or path.stem)
        name = re.split(r"[/#]", name)[-1].removesuffix(".jsonld")
        if name in self.fields:
            return
        options, ui = self._options(_value(schema, "responseOptions"), path), _value(schema, "ui")
        choices = [each for each in _list(_value(options, "choices")) if isinstance(each, dict)]
        labels = {_number(_value(each, "value")): _text(_value(each, "name")) for each in choices}
        texts = (_text(_value(schema, word)) for word in ("question", "prefLabel", "description"))
        item = labelled_item(name, next(filter(None, texts), ""), labels)
        low, high = (_number(_value(options, word)) for word in ("minValue", "maxValue"))
        if not labels and isinstance(low, float) and isinstance(high, float) and low < high:
            item = replace(item, min=low, max=high)
        kind, visible = str(_value(ui, "inputType") or ""), _value(entry, "isVis")
        one_answer = kind in ONE_ANSWER and not (
            _value(options, "multipleChoice") or _value(ui, "readonlyValue")
        )
        asked = item.declared and one_answer and visible is not False and name not in derived
        conditions = [each for each in (shown, _condition(visible)) if each]
        self.fields[name] = Field(
            replace(item, subscale=activity),
            question=asked,
            menu=kind == "select",
            asked_if=" && ".join(f"({each})" for each in conditions),
            place=name,
        )

    def _options(self, options: Any, path: Path, depth: int = 2) -> Mapping[str, Any]:
        """Response options, which may be in a file of their own, as may their choices."""
        if isinstance(options, str):
            place = self.locate(options, path)
            if place is None:
                return {}
            options, path = self.load(place), place
        if not isinstance(options, dict):
            return {}
        choices = _value(options, "choices")
        return (
            {**options, **self._options(choices, path, depth - 1)}
            if isinstance(choices, str) and depth
            else options
        )


def _condition(shown: Any) -> str:
    """A condition in JavaScript as one of branching logic; empty if it always holds."""
    text = shown.strip() if isinstance(shown, str) else ""
    return "" if text.lower() == "true" else re.sub(r"([=!]=)=", r"\1", text)


def _tops(folder: Path) -> list[Path]:
    """The protocols in a folder, or else its activities."""
    heads: dict[Path, str] = {}
    for path in islice(_inside(folder), _MOST_FILES):
        if path.stem.endswith("_schema") and path.suffix.lower() in ENDINGS:
            with path.open(encoding="utf-8", errors="replace") as file:
                heads[path] = file.read(_HEAD)
    protocols = [path for path, head in heads.items() if "reproschema:Protocol" in head]
    return protocols or [path for path, head in heads.items() if "reproschema:Activity" in head]


def _inside(folder: Path, depth: int = 3) -> Iterator[Path]:
    """The files in a folder and in those inside it."""
    for path in sorted(folder.iterdir()):
        if path.is_file():
            yield path
        elif path.is_dir() and not path.is_symlink() and depth and not path.name.startswith("."):
            yield from _inside(path, depth - 1)


def _members(schema: Mapping[str, Any]) -> list[tuple[Any, Mapping[str, Any]]]:
    """References to the members of an activity or protocol in their order, with what is said about each."""
    ui = _value(schema, "ui") or {}
    stated = [each for each in _list(_value(ui, "addProperties")) if isinstance(each, dict)]
    about = {_reference(_value(each, "isAbout")): each for each in stated}
    order = [_reference(each) for each in _list(_value(ui, "order"))]
    rest = [each for each in about if each not in order]
    return [(each, about.get(each, {})) for each in (*order, *rest) if each]


def _reference(value: Any) -> Any:
    return str(_value(value, "id") or "") if isinstance(value, dict) else str(value or "")


def _value(entry: Any, name: str) -> Any:
    """The value under a name, whatever vocabulary is written before it, as in ``schema:minValue``."""
    if not isinstance(entry, dict):
        return None
    if name in entry:
        return entry[name]
    return next((each for key, each in entry.items() if re.split(r"[:/#@]", key)[-1] == name), None)


def _list(value: Any) -> Sequence[Any]:
    value = _value(value, "list") if isinstance(value, dict) else value
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    """A text in English, or else in the first language."""
    if isinstance(value, dict):
        texts = {key: each for key, each in value.items() if not key.startswith("@")}
        value = value.get("@value") or texts.get("en") or next(iter(texts.values()), "")
    elif isinstance(value, list):
        english = [each for each in value if _value(each, "language") == "en"]
        return _text(next(iter([*english, *value]), ""))
    return plain_text(value) if isinstance(value, (str, int, float)) else ""


def _number(value: Any) -> float | str:
    """A value as a number, if it is one."""
    return code_in(_value(value, "value") if isinstance(value, dict) else value)


REPROSCHEMA = DictionaryFormat("a ReproSchema activity or protocol", is_schema, apply_schema)
