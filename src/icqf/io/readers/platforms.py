"""Exports of survey platforms: further header rows, and columns that the platform adds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from icqf.data.questionnaire import Item
from icqf.errors import counted
from icqf.io.readers.table import Table

# Columns that Qualtrics adds, with the titles in its second header row.
QUALTRICS = {
    "StartDate": "Start Date",
    "EndDate": "End Date",
    "Status": "Response Type",
    "IPAddress": "IP Address",
    "Progress": "Progress",
    "Duration (in seconds)": "Duration (in seconds)",
    "Finished": "Finished",
    "RecordedDate": "Recorded Date",
    "ResponseId": "Response ID",
    "RecipientLastName": "Recipient Last Name",
    "RecipientFirstName": "Recipient First Name",
    "RecipientEmail": "Recipient Email",
    "ExternalReference": "External Data Reference",
    "LocationLatitude": "Location Latitude",
    "LocationLongitude": "Location Longitude",
    "DistributionChannel": "Distribution Channel",
    "UserLanguage": "User Language",
}
FEWEST_OF_ITS_OWN = 3  # columns by which an export of Qualtrics is recognised
GOOGLE_FORMS = ("timestamp", "email address", "username", "score")
_EXPORT = "The file is an export of {}; the columns that it adds are not items."
_IMPORT = re.compile(r"\s*\{\s*['\"]?ImportId['\"]?\s*:")
_TIME = re.compile(r"\s*\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}[ T,]+\d{1,2}[:.]\d\d")


def further_headers(header: Sequence[str], below: Sequence[Sequence[str]]) -> int:
    """Return the number of further header rows: question texts and import ids."""
    for at, row in enumerate(below[:2]):
        filled = [cell for cell in row if cell.strip()]
        if filled and 2 * sum(bool(_IMPORT.match(cell)) for cell in filled) > len(filled):
            return at + 1
    titles = [
        (QUALTRICS[name], cell.strip())
        for name, cell in zip(header, below[0] if below else (), strict=False)
        if name in QUALTRICS and QUALTRICS[name] != name
    ]
    return int(bool(titles) and all(title == cell for title, cell in titles))


def question_texts(rows: Sequence[Sequence[str]]) -> list[str]:
    """The question texts in further header rows, each on one line; none if there are only ids."""
    if not rows or any(_IMPORT.match(cell) for cell in rows[0]):
        return []
    return [" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in rows[0]]


def header_notes(extra: int) -> tuple[str, ...]:
    """Return the note on header rows that were left out."""
    if not extra:
        return ()
    rows = "Row 2 was" if extra == 1 else "Rows 2 and 3 were"
    return (f"{rows} left out: question texts and ids that Qualtrics writes below the header.",)


def with_wordings(table: Table, names: Sequence[str], texts: Sequence[str]) -> Table:
    """The table with question texts as the wordings of its columns."""
    if not texts or not any(names):
        return table
    wordings = [(name, text) for name, text in zip(names, texts, strict=False) if name and text != name]
    items = (Item(name, wording=text) for name, text in wordings if name not in QUALTRICS)
    return replace(table, items=tuple(items))


def recognised_export(table: Table) -> Table:
    """The table with the columns that a survey program adds marked as metadata, and a note."""
    names = [str(name) for name in table.frame.columns]
    own = [name for name in names if name in QUALTRICS]
    if len(own) >= FEWEST_OF_ITS_OWN:
        added = tuple(name for name in own if name != table.id)
        notes = (*table.notes, _EXPORT.format("Qualtrics"), *_previews(table))
        return replace(table, metadata=added, notes=notes)
    if names and names[0].lower() == GOOGLE_FORMS[0] and _are_times(table.frame[names[0]]):
        added = tuple(name for name in names if name.strip().lower() in GOOGLE_FORMS)
        return replace(table, metadata=added, notes=(*table.notes, _EXPORT.format("Google Forms")))
    return table


def may_be_export(names: Sequence[str]) -> bool:
    """Whether a table may be an export of a survey program, by its column names."""
    own = sum(name in QUALTRICS for name in names)
    return own >= FEWEST_OF_ITS_OWN or (bool(names) and names[0].lower() == GOOGLE_FORMS[0])


def _previews(table: Table) -> tuple[str, ...]:
    status = table.frame["Status"] if "Status" in table.frame.columns else pd.Series(dtype=object)
    previews = int((status.astype(str).str.strip() == "Survey Preview").sum())
    if not previews:
        return ()
    return (f"The rows include {counted(previews, 'test run')} ('Survey Preview' in the column 'Status').",)


def _are_times(column: pd.Series) -> bool:
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return True
    texts = column.dropna().astype(str).head(100)
    return len(texts) > 0 and bool(texts.map(lambda text: bool(_TIME.match(text))).all())
