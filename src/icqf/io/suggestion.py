"""A first codebook for the user to confirm: what the answers look like, in numbers and in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pandas as pd

from icqf.data.questionnaire import Item
from icqf.errors import counted, listed
from icqf.io.codebook import codebook_from
from icqf.io.readers.cells import TextFamily, text_families
from icqf.io.readers.table import Table, item_columns, no_items
from icqf.screening.answer_words import means_no_answer, plain
from icqf.screening.ranges import is_number, number


@dataclass(frozen=True)
class SuggestedCodebook:
    """A guessed codebook, with what its user should confirm.

    Parameters
    ----------
    items : tuple of Item
        In the order of the table.
    remarks : dict of str to str
        What was guessed of an item, by its name.
    notes : tuple of str
        The same in a few sentences.

    Examples
    --------
    >>> from icqf.io import SuggestedCodebook, format_codebook
    >>> guess = SuggestedCodebook((Item("q1", min=0, max=2),), {"q1": "Please confirm."})
    >>> print(format_codebook(guess.items, remarks=guess.remarks).splitlines()[1])
    q1,,0,2,,,,,Please confirm.
    """

    items: tuple[Item, ...]
    remarks: dict[str, str]
    notes: tuple[str, ...] = ()


def suggest_codebook(table: Table) -> SuggestedCodebook:
    """Guess a codebook: `codebook_from`, and items whose answers are words, in the order believed in.

    A value or text that means no answer in one item does so in all items with the same range. The order of
    words comes from numbers inside them or from a table of well-known wordings; where neither tells it, the
    labels stay empty and the remark lists the words. Every guess is remarked on.

    Examples
    --------
    >>> import numpy as np
    >>> from icqf.io import Table, suggest_codebook
    >>> frame = pd.DataFrame({"q1": ["no", "yes", "perhaps"], "q2": ["perhaps", "N/A", "no"]})
    >>> guess = suggest_codebook(Table(frame, "answers.csv", np.arange(3)))
    >>> guess.items[1].labels, guess.items[1].missing_codes
    (((0.0, 'no'), (1.0, 'perhaps'), (2.0, 'yes')), ('N/A',))
    >>> guess.remarks["q1"].split("; ")[0]
    'Please confirm: the order of the labels is that of the usual wording of yes or no'
    """
    families = text_families(table)
    in_words = {name: family for family in families for name in family.items}
    frame, silent = _numbers_with_gaps(table.frame, skip=in_words)
    numeric = replace(table, frame=frame)
    found = {item.name: item for item in codebook_from(numeric)} if len(frame.columns) else {}
    found = {name: item for name, item in found.items() if name not in in_words}
    items, remarks = _with_shared_codes(found, table.described, silent)
    for name, family in in_words.items():
        items[name] = _worded(table.described.get(name, Item(name)), family)
        remarks[name] = _remark(family)
    if not items:
        raise no_items(table.source, item_columns(table).left_out)
    order = [str(name) for name in table.frame.columns if name in items]
    notes = tuple(_note(family) for family in families)
    return SuggestedCodebook(tuple(items[name] for name in order), remarks, notes)


def _numbers_with_gaps(frame: pd.DataFrame, skip: Iterable[str]) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """The table with numbers where a column holds nothing but numbers and texts that mean no answer."""
    numbers: dict[str, pd.Series] = {}
    silent: dict[str, list[str]] = {}
    for name in frame.columns.difference(list(skip), sort=False):
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_datetime64_any_dtype(column.dtype):
            continue
        words = pd.Series([str(word).strip() for word in column.dropna().unique()], dtype=object)
        texts = words[pd.to_numeric(words, errors="coerce").isna() & (words != "")].tolist()
        if texts and len(texts) < len(words) and all(means_no_answer(text) for text in texts):
            numbers[str(name)] = pd.to_numeric(column.astype(str).str.strip(), errors="coerce")
            silent[str(name)] = sorted(texts)
    return frame.assign(**numbers), silent


def _with_shared_codes(
    found: dict[str, Item], described: dict[str, Item], silent: dict[str, list[str]]
) -> tuple[dict[str, Item], dict[str, str]]:
    """The items with the missing codes of all guessed items that have the same range."""
    guessed = [
        item for item in found.values() if item.name not in described or not described[item.name].declared
    ]
    shared: dict[tuple[float | None, float | None], list[float | str]] = {}
    for item in guessed:
        codes = shared.setdefault((item.min, item.max), [])
        codes += [code for code in (*item.missing_codes, *silent.get(item.name, ())) if code not in codes]
    items, remarks = dict(found), {}
    for item in guessed:
        codes = shared[item.min, item.max]
        if codes and item.declared:
            ordered = sorted(codes, key=lambda code: (not is_number(code), code))
            items[item.name] = replace(item, missing_codes=tuple(ordered))
            remarks[item.name] = f"Please confirm: {listed(map(number, ordered))} taken as no answer."
    return items, remarks


def _worded(item: Item, family: TextFamily) -> Item:
    if family.order is None:
        codes = [text for text in family.texts if means_no_answer(text)]
        return replace(item, missing_codes=(*item.missing_codes, *codes))
    values = [value for value, _ in family.order.labels]
    return replace(
        item,
        min=min(values),
        max=max(values),
        missing_codes=family.order.missing,
        labels=family.order.labels,
    )


def _remark(family: TextFamily) -> str:
    if family.order is None:
        texts = listed([text for text in family.texts if not means_no_answer(text)], most=len(family.texts))
        return (
            f"The order of these answers is not known: {texts}. Write them into labels from the lowest to "
            "the highest, as in 0=…; 1=…"
        )
    unseen = [
        text for _, text in family.order.labels if plain(text) not in {plain(found) for found in family.texts}
    ]
    parts = [f"Please confirm: the order of the labels is that of {family.order.reason}"]
    parts += [f"nobody answered {listed(unseen)}"] if unseen else []
    parts += [f"{listed(family.order.missing)} taken as no answer"] if family.order.missing else []
    return "; ".join(parts) + "."


def _note(family: TextFamily) -> str:
    items = f"{counted(len(family.items), 'item')} ({listed(family.items)})"
    if family.order is None:
        return f"The answers to {items} are words whose order is not known: put them in order in the labels."
    return f"The answers to {items} are words, taken in the order {family.order}: confirm the labels."
