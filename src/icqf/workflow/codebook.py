"""A first codebook with the directions that the answers suggest."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from icqf.data.direction import MOST_ITEMS, find_reversed, remark_on, remarks_on_ends
from icqf.errors import InputError, has_note, listed
from icqf.io.codebook import SuggestedCodebook, suggest_codebook
from icqf.io.readers.dictionaries import CONDITIONS
from icqf.io.readers.questionnaires import StudyTable, study_table
from icqf.io.readers.table import Table
from icqf.io.study_files import StudyFiles


def guess_codebook(
    answers: str | os.PathLike[str], *, directions: bool = False, **roles: Any
) -> SuggestedCodebook:
    """Guess a codebook for a file, to be confirmed by the user; `roles` are those of `icqf.io.StudyFiles`."""
    table = study_table(answers, **roles).table
    guess = suggest_codebook(table)
    if has_note(table.notes, CONDITIONS):
        note = "A codebook says nothing about conditions for questions: give the dictionary beside it."
        guess = replace(guess, notes=(*guess.notes, note))
    return suggest_directions(table, guess) if directions else guess


def suggest_directions(table: Table, guess: SuggestedCodebook) -> SuggestedCodebook:
    """Declare reversed the items of a guessed codebook that run against the others."""
    faults: list[InputError] = []  # reported by a fit; here they only exclude single answers
    read = StudyTable(table, StudyFiles(Path(table.source)), guess.items)
    keying = find_reversed(read.draft(faults.append))
    remarks = {suspect.item: remark_on(suspect) for suspect in keying.suspects}
    for ends in keying.ends:
        remarks |= remarks_on_ends(ends)
    names = keying.looks_reversed
    note = (
        f"Declared reversed because they run against the others: {listed(names, most=len(names))}. Please "
        "confirm."
        if names
        else "No item runs against the others."
        if keying.compared
        else f"Directions were not compared: {len(guess.items)} items are more than {MOST_ITEMS}."
    )
    return SuggestedCodebook(
        tuple(replace(item, reverse=item.reverse or item.name in set(names)) for item in guess.items),
        {
            item.name: " ".join(filter(None, [guess.remarks.get(item.name), remarks.get(item.name)]))
            for item in guess.items
            if item.name in guess.remarks or item.name in remarks
        },
        (*guess.notes, note, *(ends.sentence for ends in keying.ends)),
    )
