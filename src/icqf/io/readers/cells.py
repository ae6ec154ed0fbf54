"""From cells to numbers: text, missing codes and labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pandas as pd

from icqf.data.questionnaire import Item, is_number, missing_code_remedy, number, observed_range
from icqf.errors import InputError, counted, listed
from icqf.io.codebook import merged
from icqf.io.readers.tables import Table

Fault = Callable[[InputError], None]


def raise_fault(fault: InputError) -> None:
    """Stop at the first thing that is wrong."""
    raise fault


def item_numbers(
    table: Table, items: Iterable[Item], codes: Iterable[float | str], fault: Fault
) -> tuple[np.ndarray, list[str]]:
    """Return the items' columns as a new array of numbers.

    A cell of text goes to `fault` unless it is a missing code.
    """
    shared = {str(code).strip() for code in codes if not is_number(code)}
    parsed: dict[str, np.ndarray] = {}
    flags, silent = [], 0
    names = [item.name for item in items]
    for item in items:
        column = table.frame[item.name]
        if pd.api.types.is_bool_dtype(column.dtype):
            flags.append(item.name)
        elif not pd.api.types.is_numeric_dtype(column.dtype):
            words = shared | {str(code) for code in item.missing_codes if not is_number(code)}
            parsed[item.name], count = _text_to_numbers(column, item, words, table, fault)
            silent += count
    values = table.frame[names].assign(**parsed).to_numpy(dtype=float, na_value=np.nan, copy=True)
    notes = []
    if flags:
        notes.append(f"True and false were read as 1 and 0 in {listed(flags)}.")
    if parsed:
        notes.append(f"Numbers stored as text were read as numbers in {listed(parsed)}.")
    if silent:
        notes.append(f"{counted(silent, 'cell')} with a text declared as missing code: read as missing.")
    return values, notes


def _text_to_numbers(
    column: pd.Series, item: Item, words: set[str], table: Table, fault: Fault
) -> tuple[np.ndarray, int]:
    texts = column.astype(object).where(column.notna(), "").map(str).str.strip()
    numbers = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=float)
    coded = texts.isin(words).to_numpy()
    bad = np.flatnonzero(np.isnan(numbers) & (texts != "").to_numpy() & ~coded)
    if bad.size:
        row, text = table.rows[bad[0]], texts.iloc[bad[0]]
        more = f", and {bad.size - 1} more cells hold text" if bad.size > 1 else ""
        labels = " Export the values rather than their labels." if bad.size > len(texts) / 2 else ""
        fault(
            InputError(
                f"{table.source}: row {row}, column {item.name!r} holds the text {text[:40]!r}, not a "
                f"number{more}.{labels}",
                code="text",
                remedy=missing_code_remedy(text[:40]),
                item=item.name,
                row=int(row),
                value=text[:40],
                count=int(bad.size),
            )
        )
    return numbers, int(coded.sum())


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
    notes = []
    for code, columns in where.items():
        counts = []
        for j in columns:
            if lowest[j] <= code <= highest[j]:
                hits = np.flatnonzero(values[:, j] == code)
                values[hits, j] = np.nan
                counts.append(len(hits))
        if any(counts):
            notes.append(
                f"{number(code)} was read as missing in {counted(sum(counts), 'answer')} of "
                f"{counted(sum(count > 0 for count in counts), 'item')}."
            )
    for code, count in kept_as_answer.items():
        notes.append(
            f"{number(code)} is an answer, not a missing code, in {counted(count, 'item')} whose declared "
            "range includes it."
        )
    return tuple(completed), notes


def confounds_of(
    table: Table, names: list[str], entries: tuple[Item, ...] | None
) -> tuple[pd.DataFrame, list[str]]:
    """Return the confounds with their missing codes empty and their categories named."""
    in_codebook = {item.name: item for item in entries or ()}
    frame, notes = table.frame[names].copy(), []
    for name in names:
        described = table.described.get(name)
        item = merged(in_codebook[name], described) if name in in_codebook else described
        if item is None:
            continue
        column = frame[name]
        coded = (
            column.isin(list(item.missing_codes))
            if item.missing_codes
            else pd.Series(False, index=column.index)
        )
        if coded.any():
            frame[name] = column = column.mask(coded)
            notes.append(f"Confound {name!r}: {int(coded.sum())} missing codes were read as missing.")
        labels = dict(item.labels)
        present = column.dropna().unique()
        if labels and len(present) and all(value in labels for value in present):
            frame[name] = column.map(labels)
            notes.append(
                f"Confound {name!r} takes its categories from the value labels: "
                f"{listed(labels[v] for v in sorted(present))}."
            )
    return frame, notes


def range_notes(answers: pd.DataFrame, items: tuple[Item, ...]) -> list[str]:
    """Say which ranges had to be observed, and which items are reversed."""
    notes = []
    undeclared = [item.name for item in items if not item.declared]
    if undeclared:
        lo, hi = observed_range(answers, items)
        notes.append(
            f"No range is declared for {counted(len(undeclared), 'item')} ({listed(undeclared)}): the "
            f"lowest and highest answer observed there, {number(lo)} to {number(hi)}, are used."
        )
    reverse_keyed = [item.name for item in items if item.reverse]
    if reverse_keyed:
        notes.append(f"Reversed before use, being reverse-keyed: {listed(reverse_keyed)}.")
    return notes
