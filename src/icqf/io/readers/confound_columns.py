"""Reading confounds: missing codes, names of categories, and the categories of a fitted model."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from icqf.data.confounds import category_key, matching
from icqf.data.questionnaire import Item, number
from icqf.errors import Advice, InputError, counted, listed
from icqf.io.codebook import merged
from icqf.io.readers.table import CONFOUNDS, Counts, Table, Tally
from icqf.screening.answer_words import plain
from icqf.screening.missing_codes import as_number

MOST_SHOWN = 8
Categories = tuple[Any, ...] | None


def confounds_of(
    table: Table, names: list[str], entries: Iterable[Item] | None
) -> tuple[pd.DataFrame, tuple[Item, ...], list[str]]:
    """Return the confounds without missing codes and with named categories, their entries, and notes."""
    in_codebook = {item.name: item for item in entries or ()}
    frame, known, notes = table.frame[names].copy(), [], []
    for name in names:
        described = table.described.get(name)
        item = merged(in_codebook[name], described) if name in in_codebook else described
        if item is None:
            continue
        if item.labels or item.missing_codes:
            known.append(
                Item(name, wording=item.wording, missing_codes=item.missing_codes, labels=item.labels)
            )
        column, gaps = _without_codes(frame[name], item)
        frame[name] = column
        if gaps:
            notes.append(gap_words(name, {(): gaps}))
        named = _named(column, dict(item.labels))
        if named is not None:
            frame[name] = named
            present = {*named.dropna().unique()}
            notes.append(
                f"The categories of confound {name!r} come from its value labels: "
                f"{listed(text for _, text in sorted(item.labels) if text in present)}."
            )
    return frame, tuple(known), notes


def gap_words(name: str, counts: Counts) -> str:
    """Return the note on missing codes of a confound."""
    return f"Confound {name!r}: {sum(counts.values())} missing codes were read as missing."


def translation_words(name: str, counts: Counts) -> str:
    """Return the note on values of a confound that were translated to the model's."""
    return f"Confound {name!r}: {'; '.join(text for _, text in counts)}, according to the labels."


def _without_codes(column: pd.Series, item: Item) -> tuple[pd.Series, int]:
    numbers = {code for code in item.missing_codes if not isinstance(code, str)}
    words = {plain(code) for code in item.missing_codes if isinstance(code, str)}
    words |= {plain(text) for value, text in item.labels if value in numbers and text}
    codes = [
        value
        for value in column.dropna().unique()
        if (plain(value) in words if isinstance(value, str) else value in numbers)
    ]
    coded = column.isin(codes)
    return column.mask(coded) if codes else column, int(coded.sum())


def _named(column: pd.Series, labels: Mapping[float, str]) -> pd.Series | None:
    """The column with each value replaced by its label; None if a value has none."""
    present = column.dropna().unique()
    if not labels or not len(present):
        return None
    alike = {plain(text): text for text in labels.values()}
    names: dict[Hashable, str] = {}
    for value in present:
        text = alike.get(plain(value)) if isinstance(value, str) else labels.get(value)
        if text is None and (coded := as_number(value)) is not None:
            text = labels.get(coded)
        if text is None:
            return None
        names[value] = text
    return column.map(names)


def as_the_model_knows(table: Table, known: Mapping[str, Categories], entries: Iterable[Item]) -> Table:
    """Return the table with its confounds in the categories of a fitted model (`known`; None: continuous).

    The first of several `entries` with labels counts.
    """
    entries = list(entries)
    columns: dict[str, pd.Series] = {}
    notes: list[str] = []
    for at, (name, categories) in enumerate(known.items()):
        own = [item for item in entries if item.name == name]
        column = table.frame[name]
        gaps = 0
        for item in own:
            column, more = _without_codes(column, item)
            gaps += more
        if gaps:
            notes.append(Tally((CONFOUNDS, at, 0), {(): gaps}, partial(gap_words, name)))
        labels = dict(next((item.labels for item in own if item.labels), ()))
        columns[name], translated = _translated(column, categories, labels, name, table.source)
        if translated:
            counts = dict.fromkeys(translated.items(), 1)
            notes.append(Tally((CONFOUNDS, at, 1), counts, partial(translation_words, name)))
    items = tuple(item for item in table.items if item.name not in known)
    return replace(table, frame=table.frame.assign(**columns), items=items, notes=(*table.notes, *notes))


def _translated(
    column: pd.Series, categories: Categories, labels: Mapping[float, str], name: str, source: str
) -> tuple[pd.Series, dict[str, str]]:
    """The column in the model's categories, and the translation of each value that changed."""
    if categories is None and pd.api.types.is_numeric_dtype(column.dtype):
        return column, {}
    numbers = {plain(text): value for value, text in labels.items()}
    translations: dict[Hashable, Any] = {}
    unknown, changes = [], {}
    for value in sorted(column.dropna().unique(), key=str):
        if categories is None:
            other = numbers.get(plain(value), value) if isinstance(value, str) else value
        else:
            other = _category(value, categories, labels, numbers)
        if other is None:
            unknown.append(value)
        elif category_key(other) != category_key(value) and plain(number(value)) != plain(number(other)):
            changes[str(value)] = f"{number(value)} is {number(other)}"
        translations[value] = other
    if unknown and categories is not None:
        raise _unknown(name, unknown, categories, int(column.isin(unknown).sum()), source)
    if all(_same(value, other) and type(value) is type(other) for value, other in translations.items()):
        return column, {}
    return column.map(translations), changes


def _category(
    value: Any, categories: tuple[Any, ...], labels: Mapping[float, str], numbers: Mapping[str, float]
) -> Any:
    """The category equal to a value or its label; None if there is none."""
    code = as_number(value)
    label = labels.get(code) if code is not None else None
    for other in (value, code, label, numbers.get(plain(value)) if isinstance(value, str) else None):
        if other is None:
            continue
        for category in categories:
            if _same(other, category):
                return category
            if isinstance(other, str) and isinstance(category, str) and plain(other) == plain(category):
                return category
    return matching(value, categories)


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, str) == isinstance(other, str)


def _unknown(
    name: str, values: list[Any], categories: tuple[Any, ...], count: int, source: str
) -> InputError:
    numeric = all(as_number(value) is not None for value in values) and len(values) <= len(categories)
    texts = [number(value) for value in (sorted(values, key=float) if numeric else values)]
    known = [number(category) for category in categories]
    coded = all(as_number(category) is not None for category in categories) and len(texts) <= len(known)
    codes = texts if numeric else sorted(known, key=float) if coded else []
    if codes:  # labels are not guessed, as users would copy a guess
        remedy: str = Advice(
            "Declare what each value means: add {codebook} with an entry whose name is {} and whose labels "
            "have the form '{}'.",
            repr(name),
            "; ".join(f"{code}=..." for code in codes),
        )
    else:
        remedy = "Recode them as these categories, or leave these participants out."
    return InputError(
        f"Confound {name!r} holds {listed(texts, most=MOST_SHOWN)} in {source} "
        f"({counted(count, 'participant')}), but the model's categories are "
        f"{listed(known, most=MOST_SHOWN)}.",
        code="confound-categories",
        remedy=remedy,
        confound=name,
        values=tuple(texts),
        categories=tuple(known),
        codes=tuple(codes),
    )
