"""From cells to numbers: text, missing codes and labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd

from icqf.data.questionnaire import Item
from icqf.errors import InputError, counted, listed
from icqf.io.readers.tables import Table
from icqf.io.readers.tallies import CELLS, CODES, Counts, Tally
from icqf.io.readers.texts import StrayText, stray_faults
from icqf.screening.answer_words import plain
from icqf.screening.ranges import is_number, number

Fault = Callable[[InputError], None]


def raise_fault(fault: InputError) -> None:
    """Stop at the first thing that is wrong."""
    raise fault


def item_numbers(
    table: Table, items: Iterable[Item], codes: Iterable[float | str], fault: Fault, *, codebook: bool = False
) -> tuple[np.ndarray, tuple[Item, ...], list[str]]:
    """Return the items' columns as a new array of numbers, and the items with the ranges of their labels.

    A cell of text stands for the answer of that label, whatever its case and punctuation. Other texts go to
    `fault` unless they are missing codes: once for all items that share them.
    """
    shared = {str(code) for code in codes if not is_number(code)}
    parsed: dict[str, np.ndarray] = {}
    flags, translated, strays, silent = [], [], [], 0
    chosen = tuple(items)
    kinds = dict(zip(table.frame.columns, table.frame.dtypes, strict=True))
    for item in chosen:
        kind = kinds[item.name]
        if pd.api.types.is_bool_dtype(kind):
            flags.append(item.name)
        elif not pd.api.types.is_numeric_dtype(kind):
            words = shared | {str(code) for code in item.missing_codes if not is_number(code)}
            read = _text_to_numbers(table.frame[item.name], item, words, table.rows)
            parsed[item.name] = read.values
            silent += read.silent
            translated += [item.name] if read.translated else []
            strays += [read.stray] if read.stray.counts else []
    for each in stray_faults(strays, table.source, codebook=codebook):
        fault(each)
    names = [item.name for item in chosen]
    values = table.frame[names].assign(**parsed).to_numpy(dtype=float, na_value=np.nan, copy=True)
    place = {name: at for at, name in enumerate(names)}
    numbers = [name for name in parsed if name not in translated]
    findings = (
        (flags, flag_words, None),
        (translated, label_words, None),
        (numbers, number_words, (CELLS, 1)),
    )
    notes: list[str] = [
        Tally((CELLS, at), {(place[name], name): 1 for name in found}, say, unless)
        for at, (found, say, unless) in enumerate(findings)
        if found
    ]
    if silent:
        notes.append(Tally((CELLS, len(findings)), {(): silent}, silent_words))
    ranged = {item.name: _labelled_range(item) for item in chosen if item.name in translated}
    return values, tuple(ranged.get(item.name, item) for item in chosen), notes


def flag_words(counts: Counts) -> str:
    """Say which items were true or false."""
    return f"True and false were read as 1 and 0 in {listed(name for _, name in counts)}."


def label_words(counts: Counts) -> str:
    """Say which items were answered in words."""
    names = listed(name for _, name in counts)
    return f"Answers in words were read as the numbers of their labels in {names}."


def number_words(counts: Counts) -> str:
    """Say which items were numbers in quotation marks, or among texts."""
    return f"Numbers stored as text were read as numbers in {listed(name for _, name in counts)}."


def silent_words(counts: Counts) -> str:
    """Say how many texts meant no answer."""
    return f"{counted(sum(counts.values()), 'cell')} with a text declared as missing code: read as missing."


def code_words(code: float, counts: Counts) -> str:
    """Say how many answers a missing code took the place of, in how many items."""
    return (
        f"{number(code)} was read as missing in {counted(sum(counts.values()), 'answer')} of "
        f"{counted(len(counts), 'item')}."
    )


@dataclass(frozen=True)
class _Read:
    """A column of text as numbers, and what became of its texts."""

    values: np.ndarray
    silent: int
    translated: bool
    stray: StrayText


def _text_to_numbers(column: pd.Series, item: Item, words: set[str], rows: np.ndarray) -> _Read:
    """Read each different text once: as a number, a label, a missing code, or as a stray one."""
    if pd.api.types.infer_dtype(column, skipna=True) != "string":  # 1 and true would be the same
        column = column.astype(object).where(column.isna(), column.map(str))
    places, found = pd.factorize(column)
    different = [str(text).strip() for text in found]
    numbers = np.array(pd.to_numeric(pd.Series(different, dtype=object), errors="coerce"), dtype=float)
    meaning_nothing = {plain(word) for word in words} | {word.strip() for word in words}
    exact = {text: value for value, text in item.labels}
    alike = _alike(item)
    counts = np.bincount(places[places >= 0], minlength=len(different))
    silent, translated = 0, False
    strays: dict[str, int] = {}
    first: dict[str, int] = {}
    for at, text in enumerate(different):
        if text == "":
            continue
        form = plain(text)
        if text in meaning_nothing or (form and form in meaning_nothing):
            numbers[at] = np.nan
            silent += int(counts[at])
        elif not np.isnan(numbers[at]):
            continue
        elif (value := exact.get(text, alike.get(form))) is not None:
            numbers[at], translated = value, True
        else:
            strays[text] = strays.get(text, 0) + int(counts[at])
            row = int(rows[np.flatnonzero(places == at)[0]])
            first[text] = min(row, first.get(text, row))
    filled = sum(int(count) for count, text in zip(counts, different, strict=True) if text)
    stray = StrayText(item.name, strays, first, sum(strays.values()) / max(filled, 1))
    return _Read(np.append(numbers, np.nan)[places], silent, translated, stray)  # -1 is an empty cell


def _alike(item: Item) -> dict[str, float]:
    """The labels' numbers by their plain texts; a text that two labels have is nobody's."""
    alike: dict[str, float] = {}
    twice = set()
    for value, text in item.labels:
        form = plain(text)
        twice |= {form} if form in alike else set()
        alike[form] = value
    return {form: value for form, value in alike.items() if form and form not in twice}


def _labelled_range(item: Item) -> Item:
    """The item with the range of its labels, where none is declared."""
    values = [value for value, _ in item.labels if value not in item.missing_codes]
    if item.declared or len({*values}) < 2:
        return item
    return replace(item, min=min(values), max=max(values))


def without_codes(
    values: np.ndarray, items: tuple[Item, ...], codes: tuple[float | str, ...]
) -> tuple[tuple[Item, ...], list[str]]:
    """Make missing codes NaN, in place; a shared code inside an item's declared range stays an answer."""
    highest, lowest = np.fmax.reduce(values, initial=np.nan), np.fmin.reduce(values, initial=np.nan)
    where: dict[float, list[int]] = {}
    kept_as_answer: dict[float, int] = {}
    completed = []
    for j, item in enumerate(items):
        extra: list[float | str] = []
        for code in codes:
            if (
                is_number(code)
                and item.min is not None
                and item.max is not None
                and item.min <= float(code) <= item.max
            ):
                kept_as_answer[float(code)] = kept_as_answer.get(float(code), 0) + 1
            elif code not in item.missing_codes:
                extra.append(float(code) if is_number(code) else str(code))
        item = replace(item, missing_codes=(*item.missing_codes, *extra))
        completed.append(item)
        for code in item.missing_codes:
            if is_number(code):
                where.setdefault(float(code), []).append(j)
    notes: list[str] = []
    for at, (code, columns) in enumerate(where.items()):
        counts = {}
        for j in columns:
            if lowest[j] <= code <= highest[j]:
                hits = np.flatnonzero(values[:, j] == code)
                values[hits, j] = np.nan
                if len(hits):
                    counts[(j,)] = len(hits)
        if counts:
            notes.append(Tally((CODES, at), counts, partial(code_words, code)))
    for code, count in kept_as_answer.items():
        notes.append(
            f"{number(code)} is an answer, not a missing code, in {counted(count, 'item')} whose declared "
            "range includes it."
        )
    return tuple(completed), notes
