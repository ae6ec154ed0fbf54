"""Items whose answers are words: which share their words, and what to say of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from icqf.errors import InputError, counted, listed
from icqf.io.readers.tables import Table, recognised_id
from icqf.screening.answer_words import MOST_TEXTS, Order, is_known, means_no_answer, order_of, plain
from icqf.screening.ranges import missing_code_remedy, number

FEWEST_UNKNOWN = 3  # columns that share words of unknown order: fewer may be anything
ALIKE, MUCH_ALIKE = 0.5, 0.7  # shared words among all words of two columns


@dataclass(frozen=True)
class TextFamily:
    """Items that share their answers in words; `order` is None where it is not known."""

    items: tuple[str, ...]
    texts: tuple[str, ...]
    order: Order | None

    @property
    def labels(self) -> str:
        """The answers as a codebook has them: ``0=no; 1=yes``."""
        pairs = () if self.order is None else self.order.labels
        return "; ".join(f"{number(value)}={text}" for value, text in pairs)


def families_by_words(texts: Mapping[str, Sequence[str]]) -> tuple[TextFamily, ...]:
    """Return which items share their answers, from the different answers of each."""
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
    """Whether a column's answers are those of a family: nearly the same, or some of its neighbouring ones."""
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
    """Return the families of columns that are answers in words: several that share a few words."""
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
    found = families_by_words(texts)
    families = [f for f in found if len(f.items) >= (FEWEST_UNKNOWN if f.order is None else 2)]
    place = {name: at for at, name in enumerate(texts)}
    for alone in (f for f in found if len(f.items) == 1 and f not in families):
        # An item to which nobody gave a middle answer still belongs to the others.
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
    """The different answers of a column; none if there are too many for a scale, or lines of text."""
    head = column.dropna().head(1000).unique()
    if len(head) > 2 * MOST_TEXTS:  # seen at once in the first thousand
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
    """Return the one fault of all items that share answers in words; `row` is the first that holds one."""
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
    """Cells of one item that are neither numbers nor known words: each text with its number and first row."""

    item: str
    counts: Mapping[str, int]
    rows: Mapping[str, int]
    share: float


def stray_faults(strays: Sequence[StrayText], source: str, *, codebook: bool) -> list[InputError]:
    """Return what is wrong with cells of text among answers: one fault for each cause."""
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
    answer = "if it is an answer, give its number in the codebook's labels"
    return missing_code_remedy(text, "" if means_no_answer(text) else answer)
