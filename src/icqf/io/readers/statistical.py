"""SPSS, Stata and SAS files, with their labels and user-missing values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from icqf.data.questionnaire import Item
from icqf.errors import counted
from icqf.io.readers.table import Table, check_header, guarded, recognised_id, require_package
from icqf.screening.answer_words import no_answer_values
from icqf.screening.missing_codes import is_number, number

KINDS = {
    ".sav": ("read_sav", "an SPSS file"),
    ".zsav": ("read_sav", "an SPSS file"),
    ".por": ("read_por", "an SPSS portable file"),
    ".dta": ("read_dta", "a Stata file"),
    ".sas7bdat": ("read_sas7bdat", "a SAS file"),
    ".xpt": ("read_xport", "a SAS transport file"),
}


def read_statistical(path: Path) -> Table:
    """Read an SPSS, Stata or SAS file; user-missing values stay in the cells and become missing codes."""
    require_package("pyreadstat", "pyreadstat", path)
    import pyreadstat

    function, what = KINDS[path.suffix.lower()]
    keep = {"user_missing": True} if function in ("read_sav", "read_dta", "read_sas7bdat") else {}
    frame, meta = guarded(lambda: getattr(pyreadstat, function)(str(path), **keep), path, what)
    frame = frame.reset_index(drop=True)
    check_header([str(name) for name in frame.columns], path.name)
    frame, notes = _without_letters(frame, meta.missing_user_values or {})
    items = tuple(_item(name, frame[name], meta) for name in frame.columns)
    numeric = {name for name in frame.columns if pd.api.types.is_numeric_dtype(frame[name].dtype)}
    labelled = [item.name for item in items if item.labels and item.name in numeric]
    return Table(
        frame=frame,
        source=path.name,
        rows=np.arange(1, len(frame) + 1),
        items=items,
        candidates=tuple(labelled) if len(labelled) > 1 else None,
        id=recognised_id(frame.columns),
        notes=notes + tuple(label_notes(items)),
    )


def _item(name: str, column: pd.Series, meta: Any) -> Item:
    labels = meta.variable_value_labels.get(name, {})
    codes = user_missing(column, labels, (meta.missing_ranges or {}).get(name, []))
    return labelled_item(name, (meta.column_names_to_labels or {}).get(name) or "", labels, codes)


def user_missing(
    column: pd.Series, labels: Mapping[Any, str], ranges: Iterable[Mapping[str, Any]]
) -> list[float | str]:
    """Return the values in the column or among its labels that are declared user-missing."""
    codes: set[float | str] = set()
    for span in ranges:
        lo, hi = span["lo"], span["hi"]
        if not is_number(lo):
            codes.add(str(lo))
            continue
        present = column if pd.api.types.is_numeric_dtype(column.dtype) else pd.Series([], dtype=float)
        within = present[(present >= lo) & (present <= hi)].dropna().unique()
        codes.update(float(value) for value in within)
        codes.update(float(value) for value in labels if is_number(value) and lo <= value <= hi)
        if lo == hi:
            codes.add(float(lo))
    return sorted(codes, key=lambda code: (isinstance(code, str), code))


def labelled_item(
    name: str, wording: str, labels: Mapping[Any, str], codes: Iterable[float | str] = ()
) -> Item:
    """Make an item with the range of its labelled answers.

    A labelled value beyond the others that means no answer, such as "refused", is a missing code.
    """
    missing = list(codes)
    values = {
        float(value): str(text) for value, text in labels.items() if is_number(value) and np.isfinite(value)
    }
    missing += no_answer_values(values, missing)
    answers = sorted(value for value in values if value not in missing)
    ends = (answers[0], answers[-1]) if len(answers) > 1 else (None, None)
    if ends[0] is not None and ends[1] is not None:
        missing = [code for code in missing if not is_number(code) or not ends[0] <= float(code) <= ends[1]]
    return Item(
        name=name,
        wording=wording.strip(),
        min=ends[0],
        max=ends[1],
        missing_codes=tuple(missing),
        labels=tuple(sorted(values.items())),
    )


def label_notes(items: Iterable[Item]) -> list[str]:
    """Return notes on codes from labels and user-missing declarations."""
    by_code: dict[float | str, list[str]] = {}
    for item in items:
        for code in item.missing_codes:
            by_code.setdefault(code, []).append(item.name)
    return [
        f"The file declares or labels {number(code)} as no answer in {counted(len(names), 'column')}."
        for code, names in by_code.items()
    ]


def _without_letters(
    frame: pd.DataFrame, letters: Mapping[str, list[str]]
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Replace the special missing values of Stata and SAS (.a to .z) by plain ones, with notes."""
    notes, plain = [], {}
    for name, codes in letters.items():
        marked = frame[name].isin(list(codes))
        if marked.any():
            counts = frame.loc[marked, name].value_counts().sort_index()
            each = ", ".join(f".{letter} ({count})" for letter, count in counts.items())
            notes.append(f"Column {name!r}: special missing values {each} were read as missing.")
        plain[name] = pd.to_numeric(frame[name].mask(marked))
    return frame.assign(**plain), tuple(notes)
