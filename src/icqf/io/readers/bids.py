"""BIDS: tables of answers or participants (TSV), described by a JSON file of the same name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from icqf.data.about import LONGEST, About
from icqf.data.questionnaire import Item
from icqf.errors import InputError
from icqf.io.dictionary_formats import DictionaryFormat
from icqf.io.readers.descriptions import plain_text, read_json
from icqf.io.readers.dictionaries import Dictionary, Field, applied
from icqf.io.readers.statistical import labelled_item
from icqf.io.readers.table import Table
from icqf.screening.missing_codes import code_in

TOOL = "MeasurementToolMetadata"


def apply_sidecar(table: Table, sidecar: Path) -> Table:
    """Add wordings, levels, ranges and missing values from the JSON sidecar.

    ``Description`` (or ``LongName``) is the wording; the keys of ``Levels`` are the answers; ``Minimum`` and
    ``Maximum`` declare a range; ``MissingValues`` lists codes; a column with ``Derivative: true`` is not a
    question. ``MeasurementToolMetadata`` names the instrument.
    """
    entries = {name: entry for name, entry in read_json(sidecar).items() if isinstance(entry, dict)}
    tool = entries.pop(TOOL, {})
    if not entries:
        raise InputError(f"{sidecar.name}: it describes no column; write one object for each.")
    items = [_item(name, entry, sidecar.name) for name, entry in entries.items()]
    fields = [
        Field(item, item.declared and not entries[item.name].get("Derivative"), place=item.name)
        for item in items
    ]
    described = plain_text(tool.get("Description", "")).rstrip(".")
    named = "; ".join(filter(None, (described, plain_text(tool.get("TermURL", "")))))
    notes = (f"Instrument: {named}.",) if named else ()
    about = About.of({"instrument": described[:LONGEST]}, where=sidecar.name)
    return applied(table, Dictionary(tuple(fields), "participant_id", notes=notes, about=about), sidecar)


def _item(name: str, entry: Mapping[str, Any], source: str) -> Item:
    levels = entry.get("Levels") or {}
    if not isinstance(levels, dict):
        raise InputError(
            f"{source}: the Levels of column {name!r} are labels without values. Write them as "
            '{"0": "never", "1": "often"}.'
        )
    labels = {code_in(key): _label(value) for key, value in levels.items()}
    missing = entry.get("MissingValues", [])
    codes = [code_in(key) for key in (missing if isinstance(missing, (list, dict)) else [missing])]
    wording = plain_text(entry.get("Description") or entry.get("LongName") or "")
    item = labelled_item(name, wording, labels, codes)
    lo, hi = code_in(entry.get("Minimum")), code_in(entry.get("Maximum"))
    if isinstance(lo, str) or isinstance(hi, str):
        return item
    try:
        return replace(item, min=lo, max=hi)
    except InputError as error:
        raise error.at(source) from None


def _label(value: object) -> str:
    return str(value.get("Description", "")) if isinstance(value, dict) else str(value)


BIDS = DictionaryFormat("a BIDS sidecar", lambda path, head: path.suffix.lower() == ".json", apply_sidecar)
