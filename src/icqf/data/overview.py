"""What will be analysed: the items with their ranges and directions, what was left out and why, and who.

One object, made from what was read; `check`, `fit`, `select`, the report and ``provenance.json`` show it. It
names columns and counts participants, and holds no id and no answer, so that it may be shared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from icqf.data.items import LeftOut, sentences
from icqf.data.names import folded
from icqf.data.questionnaire import Draft
from icqf.data.ranges import UNDECLARED
from icqf.data.scales import WIDEST_RANGE, number
from icqf.errors import counted, short

CODEBOOK, FILE, FAMILY = "codebook", "file", "family"
_FROM = {
    CODEBOOK: "declared",
    FILE: "from the file's own labels or description",
    FAMILY: "not declared: the lowest and highest answer of {family}",
}
# How notes of the readers begin that the overview says in its own way.
REVERSED = (
    "Reversed because they are reverse-keyed",
    "Reversed at your request",
    "Reversed because they run against the others",
)
_USED = ("confound", "group", "weight")
_EVERY = 10_000
_SHOWN = 12  # runs of names in a line; all are in the files
WIDER = 2


@dataclass(frozen=True)
class SharedRange:
    """Items with the same range from the same source: "codebook", "file" or "family"."""

    low: float
    high: float
    source: str
    items: tuple[str, ...]


@dataclass(frozen=True)
class Overview:
    """What will be analysed.

    Parameters
    ----------
    source : str
        The file.
    items : tuple of str
        The items, in their order.
    ranges : tuple of SharedRange
        Their ranges, and where each comes from.
    reversed : tuple of (str, tuple of str)
        Who reversed which items: "codebook", "hand" or "assistant".
    left_out : tuple of LeftOut
        The other columns, and why each is no item.
    id : str
        The column of participant ids; empty where participants are numbered.
    n_rows, n_participants : int
        Rows of the file, and participants who are fitted.
    out : tuple of (int, str)
        How many rows are not fitted, and why.

    Examples
    --------
    >>> from icqf.data.overview import Overview
    >>> from icqf.datasets import load_demo
    >>> print(Overview.of(load_demo()))
    What will be analysed (demo_answers.csv):
      Items         119: q001–q119
      Ranges        0 to 2, declared
      Reversed      q004, q006 by the codebook
      Confounds     age, sex
      Groups        family
      Left out      because the codebook does not name them: 'site'
      Participants  600 of 600 rows, with the ids in 'child_id'
    """

    source: str
    items: tuple[str, ...]
    ranges: tuple[SharedRange, ...]
    reversed: tuple[tuple[str, tuple[str, ...]], ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    id: str = ""
    n_rows: int = 0
    n_participants: int = 0
    out: tuple[tuple[int, str], ...] = ()

    @classmethod
    def of(cls, draft: Draft, *, n_rows: int | None = None) -> Overview:
        """Return the overview of answers that were read from a file with so many rows."""
        silent = draft.answers.isna().all(axis=1).to_numpy()
        weightless = np.zeros(len(silent), dtype=bool)
        if draft.weights is not None:
            weightless = (draft.weights == 0).to_numpy() & ~silent
        n = len(draft.answers)
        rows = n if n_rows is None else n_rows
        out = (
            (rows - n, "empty row in the file"),
            (int(silent.sum()), "answered nothing"),
            (int(weightless.sum()), "weight 0"),
        )
        return cls(
            source=draft.source,
            items=tuple(item.name for item in draft.items),
            ranges=tuple(_ranges(draft)),
            reversed=tuple(_reversed(draft)),
            left_out=(*draft.left_out, *_roles(draft)),
            id=_id_column(draft),
            n_rows=rows,
            n_participants=int(n - silent.sum() - weightless.sum()),
            out=tuple((count, why) for count, why in out if count),
        )

    def __str__(self) -> str:
        return "\n".join([f"{self.title}:", *(f"  {name:<12}  {text}" for name, text in self.lines)])

    @property
    def title(self) -> str:
        """What this is, and of which file."""
        return f"What will be analysed ({self.source})" if self.source else "What will be analysed"

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """The overview as pairs of a heading and a text; a heading that is empty continues the one before."""
        return self._lines(most=_SHOWN)

    @property
    def all_lines(self) -> tuple[tuple[str, str], ...]:
        """The same, with every name."""
        return self._lines(most=_EVERY)

    @property
    def not_used(self) -> list[LeftOut]:
        """The columns that are not used at all."""
        return [each for each in self.left_out if each.reason not in _USED and each.name != self.id]

    def _lines(self, *, most: int) -> tuple[tuple[str, str], ...]:
        lines = [("Items", f"{len(self.items)}: {folded(self.items, most=most)}")]
        lines += _headed("Ranges", self._range_texts(most))
        turned = [f"{folded(names, most=most)} {_BY[who]}" for who, names in self.reversed]
        lines += _headed("Reversed", turned)
        for role, heading in (("confound", "Confounds"), ("group", "Groups"), ("weight", "Weights")):
            names = [column.name for column in self.left_out if column.reason == role]
            if names:
                lines.append((heading, folded(names, most=most)))
        lines += _headed("Left out", [_plain(text) for text in sentences(self.not_used, most=most)])
        out = ", ".join(f"{count} ({why})" for count, why in self.out)
        left = f"; left out: {out}" if out else ""
        ids = f", with the ids in {short(self.id)!r}" if self.id else ""
        lines.append(("Participants", f"{self.n_participants} of {counted(self.n_rows, 'row')}{ids}{left}"))
        return tuple(lines)

    def _range_texts(self, most: int) -> list[str]:
        texts = []
        for shared in self.ranges:
            n = len(shared.items)
            family = f"a family of {counted(n, 'item')}" if n > 1 else "this item alone"
            which = "" if len(self.ranges) == 1 else f" for {folded(shared.items, most=most)}"
            origin = _FROM[shared.source].format(family=family)
            texts.append(f"{number(shared.low)} to {number(shared.high)}{which}, {origin}")
        return texts

    @property
    def widths(self) -> str:
        """That ranges differ in width, where the widest is at least twice the narrowest; else empty."""
        return width_sentence([shared.high - shared.low for shared in self.ranges for _ in shared.items])

    def to_dict(self) -> dict[str, Any]:
        """Return the overview as plain values, for an account of a fit; no participant is named."""
        return {
            "items": list(self.items),
            "ranges": [
                {"low": each.low, "high": each.high, "from": each.source, "items": list(each.items)}
                for each in self.ranges
            ],
            "reversed": {who: list(names) for who, names in self.reversed},
            "left_out": [
                {"name": column.name, "reason": column.reason, "detail": column.detail}
                for column in self.left_out
            ],
            "participants": {
                "rows": self.n_rows,
                "in": self.n_participants,
                "out": [{"n": count, "why": why} for count, why in self.out],
            },
        }


_BY = {
    "codebook": "by the codebook",
    "hand": "at your request",
    "assistant": "because they run against the others",
}


def width_sentence(spans: Sequence[float]) -> str:
    """Return that ranges differ in width, where the widest is at least twice the narrowest; else nothing.

    Examples
    --------
    >>> width_sentence([3, 1, 1]).partition(". ")[0]
    'Answer ranges differ in width: 1 item of 3 points, 2 items of 1'
    """
    spans = [span for span in spans if 0 < span <= WIDEST_RANGE]  # others are refused
    if not spans or max(spans) < WIDER * min(spans):
        return ""
    narrow, wide = min(spans), max(spans)
    return (
        f"Answer ranges differ in width: {counted(spans.count(wide), 'item')} of {number(wide)} points, "
        f"{counted(spans.count(narrow), 'item')} of {number(narrow)}. Items count alike by default, each by "
        "its range; point for point, squared errors of the widest would count up to "
        f"{(wide / narrow) ** 2:.0f} times as much."
    )


def id_note(column: str) -> str:
    """Return the note on the column of ids that was recognised.

    Examples
    --------
    >>> id_note("pid")
    "Column 'pid' holds the participant ids."
    """
    return f"Column {column!r} holds the participant ids."


def unsaid(notes: Iterable[str], overview: Overview) -> list[str]:
    """Return the notes that the overview does not say already.

    Examples
    --------
    >>> from icqf.datasets import load_demo
    >>> demo = load_demo()
    >>> len(demo.notes), unsaid(demo.notes, Overview.of(demo))[-1]
    (4, '9 was read as missing in 286 answers of 110 items.')
    """
    said = set(sentences(column for column in overview.not_used if column.reason != "words"))
    said.add(id_note(overview.id))
    return [note for note in notes if note not in said and not note.startswith((UNDECLARED, *REVERSED))]


def _id_column(draft: Draft) -> str:
    """The column of the file that holds the ids; empty where participants are numbered."""
    name = str(draft.answers.index.name or "")
    return name if any(column.name == name and column.reason == "id" for column in draft.left_out) else ""


def _ranges(draft: Draft) -> Iterable[SharedRange]:
    """Items by their range and where it comes from, in their order; a family is not split."""
    found: dict[tuple[float, float, str], list[str]] = {}
    from_file = set(draft.file_ranges)
    for (name, low, high), item in zip(draft.ranges().itertuples(), draft.items, strict=True):
        source = FAMILY if not item.declared else FILE if item.name in from_file else CODEBOOK
        found.setdefault((float(low), float(high), source), []).append(str(name))
    for (low, high, source), names in found.items():
        yield SharedRange(low, high, source, tuple(names))


def _reversed(draft: Draft) -> Iterable[tuple[str, tuple[str, ...]]]:
    asked, found = set(draft.asked_reversed), set(draft.found_reversed)
    for who in ("codebook", "hand", "assistant"):
        names = tuple(
            item.name
            for item in draft.items
            if item.reverse
            and who == ("assistant" if item.name in found else "hand" if item.name in asked else "codebook")
        )
        if names:
            yield who, names


def _roles(draft: Draft) -> Iterable[LeftOut]:
    """Columns that are used otherwise, where the reader of the file has not listed them."""
    known = {column.name for column in draft.left_out}
    beside = [] if draft.confounds is None else [(str(name), "confound") for name in draft.confounds]
    columns = ((draft.groups, "group"), (draft.weights, "weight"))
    beside += [(str(column.name), role) for column, role in columns if column is not None]
    return [LeftOut(name, role) for name, role in beside if name not in known]


def _headed(heading: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    return [(heading if at == 0 else "", text) for at, text in enumerate(texts)]


def _plain(sentence: str) -> str:
    """A sentence about columns that are left out, without its first words and its full stop."""
    return sentence.removeprefix("Left out").lstrip(", ").removesuffix(".")
