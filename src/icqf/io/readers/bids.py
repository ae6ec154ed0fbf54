"""BIDS phenotype tables: a TSV file and its JSON sidecar."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from icqf.data.questionnaire import Item
from icqf.errors import InputError
from icqf.io.readers.statistical import label_notes, labelled_item
from icqf.io.readers.table import Table, require_file


def apply_sidecar(table: Table, sidecar: Path) -> Table:
    """Add what the JSON sidecar says: wordings, levels, ranges and missing values.

    ``Description`` (or ``LongName``) is the wording; the keys of ``Levels`` are the answers; ``Minimum`` and
    ``Maximum`` declare a range; ``MissingValues`` lists codes; a column with ``Derivative: true`` is no
    question.
    """
    require_file(sidecar)
    try:
        content = json.loads(sidecar.read_text(encoding="utf-8-sig"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        place = f" in line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise InputError(f"{sidecar.name}: this is not valid JSON{place}.") from None
    if not isinstance(content, dict):
        raise InputError(f"{sidecar.name}: a JSON object with one entry per column is expected.")
    described = {str(k): v for k, v in content.items() if isinstance(v, dict) and k in table.frame.columns}
    items = tuple(_item(name, entry, sidecar.name) for name, entry in described.items())
    asked = tuple(item.name for item in items if item.declared and not described[item.name].get("Derivative"))
    return replace(
        table,
        items=items,
        candidates=asked or None,
        id="participant_id" if "participant_id" in table.frame.columns else table.id,
        notes=(*table.notes, f"Columns are described by {sidecar.name}.", *label_notes(items)),
    )


def _item(name: str, entry: Mapping[str, Any], source: str) -> Item:
    levels = entry.get("Levels") or {}
    if not isinstance(levels, dict):
        raise InputError(
            f"{source}: the Levels of column {name!r} are labels without values. Write them as "
            '{"0": "never", "1": "often"}.'
        )
    labels = {_code(key): _label(value) for key, value in levels.items()}
    missing = entry.get("MissingValues", [])
    codes = [_code(key) for key in (missing if isinstance(missing, (list, dict)) else [missing])]
    wording = str(entry.get("Description") or entry.get("LongName") or "")
    item = labelled_item(name, wording, labels, codes)
    lo, hi = entry.get("Minimum"), entry.get("Maximum")
    if isinstance(lo, (int, float)) and isinstance(hi, (int, float)) and not isinstance(lo, bool):
        item = replace(item, min=float(lo), max=float(hi))
    return item


def _code(key: object) -> float | str:
    try:
        return float(str(key))
    except ValueError:
        return str(key)


def _label(value: object) -> str:
    return str(value.get("Description", "")) if isinstance(value, dict) else str(value)
