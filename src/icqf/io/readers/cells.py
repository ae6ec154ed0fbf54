"""From cells to numbers: missing codes, labels, and answers in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd

from icqf.data.questionnaire import Item
from icqf.errors import Advice, InputError, codebook_command, counted, listed
from icqf.io.readers.table import CELLS, CODES, Counts, Table, Tally, recognised_id
from icqf.screening.answer_words import MOST_TEXTS, Order, is_known, means_no_answer, order_of, plain
from icqf.screening.missing_codes import is_number, missing_code_remedy, number

FEWEST_UNKNOWN = 3  # columns that share words of unknown order: fewer may be anything
ALIKE, MUCH_ALIKE = 0.5, 0.7  # share of common words among all words of two columns


@dataclass(frozen=True)
class TextFamily:
    """Items that share their answers in words."""

    items: tuple[str, ...]  # in the order of the table
    texts: tuple[str, ...]  # the different answers
    order: Order | None  # None: unknown

    @property
    def labels(self) -> str:
        """The answers as in a codebook: ``0=no; 1=yes``."""
        pairs = () if self.order is None else self.order.labels
        return "; ".join(f"{number(value)}={text}" for value, text in pairs)


def families_by_words(texts: Mapping[str, Sequence[str]]) -> tuple[TextFamily, ...]:
    """Group items that share their answers, given the different answers to each."""
    groups: list[tuple[list[str], dict[str, str]]] = []
    by_size = sorted(texts, key=lambda name: -len(texts[name]))
    for name in by_size:
        own = {plain(text): text for text in texts[name]}
        for members, shared in groups:
            if _belongs(own, shared):
                members.append(name)
                shared.update({form: text for form, text in own.items() if form not in shared})
                break
        else:
            groups.append(([name], own))
    place = {name: at for at, name in enumerate(texts)}
    families = [
        TextFamily(tuple(sorted(names, key=place.__getitem__)), tuple(own.values()), order_of(own.values()))
        for names, own in groups
    ]
    return tuple(sorted(families, key=lambda family: place[family.items[0]]))


def _belongs(own: Mapping[str, str], shared: Mapping[str, str]) -> bool:
    """Whether a column's answers are nearly those of a family, or adjacent ones on its scale."""
    ours, theirs = (
        {form for form, text in each.items() if not means_no_answer(text)} for each in (own, shared)
    )
    if not ours or not theirs:
        return not ours and not theirs
    alike = len(ours & theirs) / len(ours | theirs)
    union = order_of({**shared, **own}.values())
    if union is None:
        return alike >= ALIKE and len(ours | theirs) <= MOST_TEXTS and order_of(shared.values()) is None
    steps = [at for at, (_, text) in enumerate(union.labels) if plain(text) in ours]
    neighbours = max(steps, default=0) - min(steps, default=0) < len(ours)
    return alike >= MUCH_ALIKE or (bool(ours & theirs) and neighbours)


def text_families(table: Table, *, leave_out: Iterable[str] = ()) -> tuple[TextFamily, ...]:
    """Return the families of columns with answers in words: several that share a few words."""
    skip = {*leave_out, table.id, *table.metadata}
    texts = {}
    for name in table.frame.columns:
        column = table.frame[name]
        if name in skip or recognised_id([name]) is not None or not _is_text(column):
            continue
        words = _words(column)
        letters = pd.to_numeric(pd.Series(words, dtype=object), errors="coerce").isna()
        if not all(means_no_answer(word) for word in pd.Series(words, dtype=object)[letters]):
            texts[str(name)] = words
    groups = families_by_words(texts)
    families = [f for f in groups if len(f.items) >= (FEWEST_UNKNOWN if f.order is None else 2)]
    place = {name: at for at, name in enumerate(texts)}
    for alone in (f for f in groups if len(f.items) == 1 and f not in families):
        # An item without middle answers still belongs to the others.
        forms = {plain(text) for text in alone.texts if not means_no_answer(text)}
        at = next((i for i, f in enumerate(families) if forms <= {plain(text) for text in f.texts}), None)
        if at is not None and forms:
            names = sorted((*families[at].items, *alone.items), key=place.__getitem__)
            families[at] = replace(families[at], items=tuple(names))
    return tuple(families)


def _is_text(column: pd.Series) -> bool:
    kinds = pd.api.types
    return not kinds.is_numeric_dtype(column.dtype) and not kinds.is_datetime64_any_dtype(column.dtype)


def _words(column: pd.Series) -> list[str]:
    """The different answers of a column; none if they are too many or too long for a scale."""
    if column.dropna().head(1000).nunique() > 2 * MOST_TEXTS:  # quick for free text
        return []
    words = sorted({str(text).strip() for text in column.dropna().unique()} - {""})
    return words if len(words) <= MOST_TEXTS and all(len(text) <= 120 for text in words) else []


def words_note(family: TextFamily) -> str:
    """Return the note that a family of text columns was left out."""
    order = "" if family.order is None else f", in the order {family.order}"
    return (
        f"Left out because their answers are words ({listed(family.texts)}): {listed(family.items)}. A "
        f"codebook with labels would make them items{order}."
    )


def words_fault(family: TextFamily, source: str, *, codebook: bool, row: int | None = None) -> InputError:
    """Return the error for all items of a family with answers in words; `row` is the first with one."""
    n, shown = len(family.items), listed(family.texts, most=MOST_TEXTS)
    place = "" if row is None else f", first in row {row}"
    message = (
        f"{source}: {counted(n, 'item')} ({listed(family.items)}) {'hold' if n > 1 else 'holds'} answers in "
        f"words{place}: {shown}."
    )
    if len(family.texts) > MOST_TEXTS:
        remedy = "These are too many for an answer scale: leave free text out."
    elif family.order is None:
        remedy = (
            "Their order is not known: number them from the lowest to the highest in the codebook's labels, "
            "such as '0=…; 1=…'."
        )
    else:
        remedy = f"If this is their order, write '{family.labels}' into the labels of the codebook."
    if not codebook and len(family.texts) <= MOST_TEXTS:
        does = (
            f"proposes the order {family.order} for you to confirm"
            if family.labels
            else "lists them to order"
        )
        own = Advice("`{}` {}; then add {codebook=}.", codebook_command(source), does, codebook="items.csv")
        remedy = Advice("{}", remedy, typed=own)
    return InputError(
        message,
        code="text-answers",
        remedy=remedy,
        item=family.items[0],
        items=family.items,
        order="" if family.order is None else str(family.order),
        labels=family.labels,
        codebook=codebook or len(family.texts) > MOST_TEXTS,
        source=source,
        row=row,
    )


@dataclass(frozen=True)
class StrayText:
    """Texts of one item that are neither numbers nor known words, with their counts and first rows."""

    item: str
    counts: Mapping[str, int]
    rows: Mapping[str, int]
    share: float


def stray_faults(strays: Sequence[StrayText], source: str, *, codebook: bool) -> list[InputError]:
    """Return the errors about text among answers, one for each cause."""
    faults: list[InputError] = []
    alone: dict[str, list[StrayText]] = {}
    by_item = {stray.item: stray for stray in strays}
    for family in families_by_words({stray.item: list(stray.counts) for stray in strays}):
        members = [by_item[name] for name in family.items]
        answers = [text for text in family.texts if not means_no_answer(text)]
        usual = sum(member.share for member in members) / len(members)
        if answers and (usual > 0.5 or (len(answers) > 1 and family.order is not None)):
            row = min(row for member in members for row in member.rows.values())
            faults.append(words_fault(family, source, codebook=codebook, row=row))
            continue
        for member in members:
            for text in member.counts:
                alone.setdefault(text, []).append(member)
    return faults + [_stray_fault(text, members, source) for text, members in alone.items()]


def _stray_fault(text: str, members: Sequence[StrayText], source: str) -> InputError:
    first, shown = members[0], text[:40]
    count = sum(member.counts[text] for member in members)
    row = first.rows[text]
    more = f", and in {count - 1} more cells" if count > 1 else ""
    if len(members) > 1:
        more += f" of {len(members)} items ({listed(member.item for member in members)})"
    return InputError(
        f"{source}: row {row}, column {first.item!r} holds the text {shown!r}, not a number{more}.",
        code="text",
        remedy=_stray_remedy(shown),
        item=first.item,
        row=row,
        value=shown,
        answer=is_known(text),
        silent=means_no_answer(text),
        count=count,
    )


def _stray_remedy(text: str) -> str:
    if is_known(text):
        return f"Correct the cell, or give {text!r} its number in the codebook's labels, such as '2={text}'."
    if re.fullmatch(r"-?\d+,\d+", text):
        return "If it is a number, write it with a decimal point; if it is two answers, leave it empty."
    answer = "if it is an answer, give its number in the codebook's labels"
    return missing_code_remedy(text, "" if means_no_answer(text) else answer)


Fault = Callable[[InputError], None]


def raise_fault(fault: InputError) -> None:
    """Stop at the first error."""
    raise fault


def item_numbers(
    table: Table, items: Iterable[Item], codes: Iterable[float | str], fault: Fault, *, codebook: bool = False
) -> tuple[np.ndarray, tuple[Item, ...], list[str]]:
    """Return the items' answers as an array of numbers, the items with the ranges of their labels, and notes.

    A text is read as the answer with that label, ignoring case and punctuation. Other texts, unless they are
    missing codes, are reported to `fault`, once for all items that share them.
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
        Tally((CELLS, at), {(place[name], name): 1 for name in names}, words, unless)
        for at, (names, words, unless) in enumerate(findings)
        if names
    ]
    if silent:
        notes.append(Tally((CELLS, len(findings)), {(): silent}, silent_words))
    ranged = {item.name: _labelled_range(item) for item in chosen if item.name in translated}
    return values, tuple(ranged.get(item.name, item) for item in chosen), notes


def flag_words(counts: Counts) -> str:
    """Return the note on items that were true or false."""
    return f"True and false were read as 1 and 0 in {listed(name for _, name in counts)}."


def label_words(counts: Counts) -> str:
    """Return the note on items that were answered in words."""
    names = listed(name for _, name in counts)
    return f"Answers in words were read as the numbers of their labels in {names}."


def number_words(counts: Counts) -> str:
    """Return the note on items with numbers stored as text."""
    return f"Numbers stored as text were read as numbers in {listed(name for _, name in counts)}."


def silent_words(counts: Counts) -> str:
    """Return the note on texts that mean no answer."""
    cells = counted(sum(counts.values()), "cell")
    return f"Texts declared as missing codes were read as missing in {cells}."


def code_words(code: float, counts: Counts) -> str:
    """Return the note on a missing code."""
    return (
        f"{number(code)} was read as missing in {counted(sum(counts.values()), 'answer')} of "
        f"{counted(len(counts), 'item')}."
    )


@dataclass(frozen=True)
class _Read:
    """A column of text as numbers, with counts of what its texts meant."""

    values: np.ndarray
    silent: int
    translated: bool
    stray: StrayText


def _text_to_numbers(column: pd.Series, item: Item, words: set[str], rows: np.ndarray) -> _Read:
    """Read each different text once: as a number, a label, a missing code, or a stray text."""
    if pd.api.types.infer_dtype(column, skipna=True) != "string":  # else 1 and true would be equal
        column = column.astype(object).where(column.isna(), column.map(str))
    places, texts = pd.factorize(column)
    different = [str(text).strip() for text in texts]
    numbers = np.array(pd.to_numeric(pd.Series(different, dtype=object), errors="coerce"), dtype=float)
    missing = {plain(word) for word in words} | {word.strip() for word in words}
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
        if text in missing or (form and form in missing):
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
    """The labels' numbers by their plain texts; a text of two labels is left out."""
    alike: dict[str, float] = {}
    twice = set()
    for value, text in item.labels:
        form = plain(text)
        twice |= {form} if form in alike else set()
        alike[form] = value
    return {form: value for form, value in alike.items() if form and form not in twice}


def _labelled_range(item: Item) -> Item:
    """The item with the range of its labels, if none is declared."""
    values = [value for value, _ in item.labels if value not in item.missing_codes]
    if item.declared or len({*values}) < 2:
        return item
    return replace(item, min=min(values), max=max(values))


def without_codes(
    values: np.ndarray, items: tuple[Item, ...], codes: tuple[float | str, ...]
) -> tuple[tuple[Item, ...], list[str]]:
    """Set missing codes to NaN, in place; a shared code inside an item's declared range stays an answer."""
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
