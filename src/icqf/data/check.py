"""What will be analysed, and what is wrong with a table, before a long run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from icqf.data.answers import copied_sheets, fingerprints
from icqf.data.confounds import ConfoundEncoder
from icqf.data.direction import MOST_ITEMS, REVERSED, Keying, find_reversed
from icqf.data.disclosure import (
    MANY_CATEGORIES,
    SMALLEST_CATEGORY,
    answer_counts,
    few_cells,
    in_few_cells,
    left_out,
    refuse_few_answers,
)
from icqf.data.missing_answers import ALPHA, confound_sentence, confound_tests, count_left_out, share_left_out
from icqf.data.questionnaire import Draft, Questionnaire, range_faults
from icqf.errors import (
    Advice,
    InputError,
    codebook_command,
    counted,
    has_note,
    is_note,
    listed,
    readable,
    sentence,
    short,
)
from icqf.screening.column_names import age_and_sex, folded
from icqf.screening.columns import REASONS, LeftOut, sentences
from icqf.screening.missing_codes import USUAL_CODES, codes_apart, end_codes, missing_code_remedy, number
from icqf.screening.ranges import (
    DECLARE_RANGE,
    FEWEST_PARTICIPANTS,
    UNDECLARED,
    WIDEST_RANGE,
    Families,
    refuse_wide_range,
)

FILLED = "not-asked-lowest"  # code of the note on answers to questions that were not asked
IDS = "ids"  # the code of the note on the column of ids
CODEBOOK, FILE, FAMILY = "codebook", "file", "family"
_FROM = {
    CODEBOOK: "declared",
    FILE: "from the file's own labels or description",
    FAMILY: "not declared: the lowest and highest answer of {family}",
}
_USED = ("confound", "group", "weight")
_EVERY = 10_000
_SHOWN = 12  # runs of names per line; the files list all
WIDER = 2  # ratio of range widths worth a note


@dataclass(frozen=True)
class SharedRange:
    """Items with the same range from the same source: "codebook", "file" or "family"."""

    low: float
    high: float
    source: str
    items: tuple[str, ...]


@dataclass(frozen=True)
class Overview:
    """What will be analysed."""

    source: str  # the file
    items: tuple[str, ...]
    ranges: tuple[SharedRange, ...]
    # items by who reversed them: "codebook", "hand" or "assistant"
    reversed: tuple[tuple[str, tuple[str, ...]], ...] = ()
    left_out: tuple[LeftOut, ...] = ()  # the other columns, and why each is not an item
    id: str = ""  # the column of participant ids; empty where participants are numbered
    n_rows: int = 0  # of the file
    n_participants: int = 0  # who are fitted
    out: tuple[tuple[int, str], ...] = ()  # how many rows are not fitted, and why

    @classmethod
    def of(cls, draft: Draft, *, n_rows: int | None = None) -> Overview:
        """Return the overview of answers read from a file with `n_rows` rows."""
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
        """The heading, with the name of the file."""
        return f"What will be analysed ({self.source})" if self.source else "What will be analysed"

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """The overview as pairs of heading and text; an empty heading continues the one before."""
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
        lines += _headed(
            "Reversed", [f"{folded(names, most=most)} {_BY[who]}" for who, names in self.reversed]
        )
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
        """The note that ranges differ in width; empty if they hardly do."""
        return width_sentence([shared.high - shared.low for shared in self.ranges for _ in shared.items])

    def to_dict(self) -> dict[str, Any]:
        """Return the overview as plain values; no participant is named."""
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
    """Return a note if the widest range is at least twice the narrowest; otherwise an empty string."""
    spans = [span for span in spans if 0 < span <= WIDEST_RANGE]  # others are refused
    if not spans or max(spans) < WIDER * min(spans):
        return ""
    narrow, wide = min(spans), max(spans)
    return (
        f"Answer ranges differ in width: {counted(spans.count(wide), 'item')} of {number(wide)} points, "
        f"{counted(spans.count(narrow), 'item')} of {number(narrow)}. By default each item is scaled by its "
        "range, so that all count equally; unscaled, squared errors of the widest would count up to "
        f"{(wide / narrow) ** 2:.0f} times as much."
    )


def further_notes(notes: Iterable[str]) -> list[str]:
    """Return the notes that an overview does not contain already."""
    return [note for note in notes if not is_note(note, IDS, UNDECLARED, REVERSED, *REASONS)]


def _id_column(draft: Draft) -> str:
    """The column of ids; empty where participants are numbered."""
    name = str(draft.answers.index.name or "")
    return name if any(column.name == name and column.reason == "id" for column in draft.left_out) else ""


def _ranges(draft: Draft) -> Iterable[SharedRange]:
    """Items grouped by range and its source, in order."""
    groups: dict[tuple[float, float, str], list[str]] = {}
    from_file = set(draft.file_ranges)
    for (name, low, high), item in zip(draft.ranges().itertuples(), draft.items, strict=True):
        source = FAMILY if not item.declared else FILE if item.name in from_file else CODEBOOK
        groups.setdefault((float(low), float(high), source), []).append(str(name))
    for (low, high, source), names in groups.items():
        yield SharedRange(low, high, source, tuple(names))


def _reversed(draft: Draft) -> Iterable[tuple[str, tuple[str, ...]]]:
    by: dict[str, list[str]] = {"codebook": [], "hand": [], "assistant": []}
    for name in (item.name for item in draft.items if item.reverse):
        by_user = "hand" if name in draft.asked_reversed else "codebook"
        by["assistant" if name in draft.found_reversed else by_user].append(name)
    return [(who, tuple(names)) for who, names in by.items() if names]


def _roles(draft: Draft) -> Iterable[LeftOut]:
    """Confounds, groups and weights that the reader of the file has not listed."""
    known = {column.name for column in draft.left_out}
    roles = [] if draft.confounds is None else [(str(name), "confound") for name in draft.confounds]
    columns = ((draft.groups, "group"), (draft.weights, "weight"))
    roles += [(str(column.name), role) for column, role in columns if column is not None]
    return [LeftOut(name, role) for name, role in roles if name not in known]


def _headed(heading: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    return [(heading if at == 0 else "", text) for at, text in enumerate(texts)]


def _plain(text: str) -> str:
    """A sentence on left-out columns without its first words and full stop."""
    return text.removeprefix("Left out").lstrip(", ").removesuffix(".")


SEVERITIES = ("error", "warning", "note")
TITLES = {"error": "Must be fixed", "warning": "Worth a look", "note": "For your information"}


@dataclass(frozen=True)
class Finding:
    """One finding: how serious it is, of which kind, where, what it is, and what to do about it.

    Examples
    --------
    >>> from icqf.data import Finding
    >>> finding = Finding("error", "empty-item", "No participant answered 'q1'.", item="q1")
    >>> finding.severity, finding.item
    ('error', 'q1')
    """

    severity: str
    code: str
    message: str
    item: str | None = None
    row: str | None = None
    remedy: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """The message and the remedy, worded for Python."""
        return readable(f"{self.message} {self.remedy}".rstrip())

    @classmethod
    def of(cls, fault: InputError, *, severity: str = "error", code: str | None = None) -> Finding:
        """Return an error as a finding."""
        item = fault.fields.get("item", fault.fields.get("confound"))
        row = fault.fields.get("participant", fault.fields.get("row"))
        place = None if row is None else str(row)
        return cls(severity, code or fault.code, fault.message, item, place, fault.remedy, fault.fields)


@dataclass(frozen=True)
class Findings:
    """All findings of `check`, the serious ones first, and what will be analysed.

    Examples
    --------
    >>> from icqf.data.check import Finding, Findings
    >>> findings = Findings((Finding("error", "empty-item", "Nobody answered 'q1'.", item="q1"),))
    >>> findings.must_fix, len(findings)
    (True, 1)
    >>> print(findings)
    error    empty-item       Nobody answered 'q1'.
    """

    findings: tuple[Finding, ...]
    overview: Overview | None = None

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __str__(self) -> str:
        return "\n".join(f"{f.severity:<8} {f.code:<16} {f.sentence}" for f in self) or "Nothing was found."

    @property
    def must_fix(self) -> bool:
        """Whether anything must be fixed before a fit."""
        return any(finding.severity == "error" for finding in self)

    @property
    def shown(self) -> tuple[Finding, ...]:
        """The findings without notes of the reader that the overview repeats."""
        if self.overview is None:
            return self.findings
        new = set(further_notes(each.message for each in self.of("reading")))
        return tuple(each for each in self if each.code != "reading" or each.message in new)

    @property
    def verdict(self) -> str:
        """Whether a fit is possible, in one sentence."""
        if self.must_fix:
            return "Fix what must be fixed before fitting."
        if any(not finding.fields["reversed"] for finding in self.of("looks-reversed")):
            return "Before fitting, decide about the items that look reversed."
        if any(finding.severity == "warning" for finding in self):
            return "A fit is possible; look at the points above first."
        return "Ready to fit."

    def of(self, code: str) -> tuple[Finding, ...]:
        """Return the findings of one kind."""
        return tuple(finding for finding in self if finding.code == code)

    def to_frame(self) -> pd.DataFrame:
        """Return the findings as a table: severity, code, sentence, item and row."""
        columns = ["severity", "code", "sentence", "item", "row"]
        return pd.DataFrame([[getattr(f, name) for name in columns] for f in self], columns=columns)

    def to_json(self, worded: Callable[[Finding], str] = sentence) -> str:
        """Return the findings as JSON: ``{"overview": ..., "must_fix": ..., "findings": [...]}``.

        `worded` writes the sentence of a finding; by default, its remedy names parameters of Python.
        """
        overview = None if self.overview is None else self.overview.to_dict()
        findings = [
            {"severity": f.severity, "code": f.code, "sentence": worded(f), "item": f.item, "row": f.row}
            for f in self
        ]
        content = {"overview": overview, "must_fix": self.must_fix, "findings": findings}
        return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)


def doubts_about(draft: Draft, values: np.ndarray | None = None) -> tuple[Finding, ...]:
    """Return values that seem to mean no answer, and participants who seem to occur several times.

    `values` are the answers as numbers, if the caller has them. The field `anonymous` of each finding is its
    text without ids, for a report that may be shared.
    """
    if values is None:
        values = draft.answers.to_numpy(dtype=float, na_value=np.nan)
    return (*_end_codes(draft, values), *_copied_participants(draft, values))


def _end_codes(draft: Draft, values: np.ndarray) -> Iterator[Finding]:
    """Report a rare value just beyond a scale that is complete without it, once for all items with it."""
    families = () if draft.families is None else draft.families.families
    names = [item.name for item in draft.items]
    declared = {item.name for item in draft.items if item.declared}
    for code in end_codes(values, names, families):
        if declared.intersection(code.family):
            continue
        value = number(code.value)
        others = [j for j, name in enumerate(names) if name not in set(code.family)]
        shared = bool((values[:, others] == code.value).any())
        if shared:
            here = f"Other items have {value} as an answer: if it means no answer here, "
            own = Advice(
                here + "run `{}` to write a codebook that declares it, confirm it, and add {codebook=}.",
                codebook_command(draft.source),
                codebook="items.csv",
            )
            remedy = Advice(here + "declare it in a codebook.", typed=own)
        else:
            remedy = Advice(
                "If it does, add {missing_codes=}; if not, declare the items' range in a codebook.",
                missing_codes=[code.value],
            )
        anonymous = f"{code.sentence} If it does, declare it as a missing code and fit again."
        fields = {"value": code.value, "count": code.count, "items": code.items, "shared": shared}
        fields |= {"family": code.family, "source": draft.source, "anonymous": anonymous}
        yield Finding("warning", "end-code", code.sentence, code.items[0], remedy=remedy, fields=fields)


def _copied_participants(draft: Draft, values: np.ndarray) -> Iterator[Finding]:
    """Report participants with the same answers as somebody else, in one finding."""
    sheets = copied_sheets(values, ~np.isnan(values))
    if sheets is None:
        return
    counts = np.bincount(sheets)
    again = draft.answers.index[counts[sheets] > 1]
    n, different = len(again), int((counts > 1).sum())
    who = (
        f"{n} of {len(sheets)} participants gave exactly the same answers as somebody else "
        f"({counted(different, 'different answer sheet')}), which chance does not explain"
    )
    remedy = (
        "If participants were entered more than once, delete the copies. Folds, halves and resamples keep "
        "copies together, so that they do not make factors look more certain."
    )
    fields = {"count": n, "sheets": different, "anonymous": f"{who}. {remedy}"}
    text = f"{who}: {listed(again)}."
    yield Finding("warning", "same-answers", text, row=str(again[0]), remedy=remedy, fields=fields)


NEARLY_EMPTY = 0.8
MANY_MISSING = 0.2
PARTICIPANT_MISSING = 0.5
FEWEST_ANSWERS = 10
FEWEST_FITTED = 10
MOST_ALIKE = 3
_ROWS_IN_CACHE = 1024
_NOT_USED = ("demographic", "not in the codebook", "not selected")  # why columns may be left out
_TWO_ENDS = (
    "If all belong to one scale, reverse one end; if each end is a trait or mood of its own, leave them "
    "unchanged."
)
_SUMMARIES = {
    "text": "{n} columns hold text rather than numbers",
    "missing-column": "{n} items of the codebook are not columns of the table",
    "empty-item": "Nobody answered {n} items",
    "nearly-empty": "{n} items were answered by few participants",
    "copied-item": "{n} items hold the same answers as another item",
    "wide-range": "{n} items have ranges wider than those of any questionnaire",
    "suspicious-code": "{n} items hold a value that may mean no answer",
}


def check(
    draft: Draft,
    faults: Iterable[InputError] = (),
    *,
    smallest_category: int = SMALLEST_CATEGORY,
    missing_confounds: str = "error",
    n_rows: int | None = None,
    keying: Keying | None = None,
) -> Findings:
    """Look for problems that would spoil a fit.

    These are suspicious codes and answers outside their range, text among numbers, items that run against the
    others, empty, nearly empty and constant items, straight-liners, duplicated and missing ids, identical
    answer sheets, missing answers by item and participant, whether leaving out depends on confounds, and
    confounds with gaps, stray text, or categories of few participants.
    """
    findings = [Finding.of(fault) for fault in faults]
    numbers = _Numbers.of(draft, keying)
    for run_check in _CHECKS:
        findings.extend(run_check(draft, numbers))
    findings = [*doubts_about(draft, numbers.values), *_summarized(findings)]
    codes = [number(finding.fields["value"]) for finding in findings if finding.code == "end-code"]
    if codes:
        findings = [_unless(codes[0], each) if each.code == "missing" else each for each in findings]
    findings.extend(_few_participants(draft, numbers, smallest_category))
    findings.extend(_confounds(draft, smallest_category, filled=missing_confounds == "mean"))
    findings.extend(Finding("note", "reading", note) for note in draft.notes)
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    return Findings(tuple(findings), Overview.of(draft, n_rows=n_rows))


def _unless(code: str, missing: Finding) -> Finding:
    """Qualify the number of missing answers where a code may mean no answer."""
    joint = "unless" if missing.message.startswith("No answer") else "and more if"
    return replace(missing, message=f"{missing.message.removesuffix('.')}, {joint} {code} means no answer.")


def _summarized(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Merge the same finding about many columns into one."""
    groups: dict[object, list[Finding]] = {}
    for at, finding in enumerate(findings):
        alike = finding.item and finding.code in _SUMMARIES and "items" not in finding.fields
        value = finding.fields.get("value") if finding.code == "suspicious-code" else None
        groups.setdefault((finding.severity, finding.code, value) if alike else at, []).append(finding)
    for group in groups.values():
        code = group[0].code
        if len(group) <= MOST_ALIKE:
            yield from group
            continue
        first, names = group[0], listed(finding.item for finding in group)
        values = {finding.fields.get("value") for finding in group}
        same = first.remedy if len(values) == 1 and None not in values else ""
        message = f"{_SUMMARIES[code].format(n=len(group))}: {names}. The first: {first.message}"
        fields = {**first.fields, "items": tuple(finding.item for finding in group)}
        if not same:
            fields.pop("value", None)
        yield Finding(first.severity, code, message, first.item, first.row, same, fields)


def _codes(draft: Draft, numbers: _Numbers) -> Iterator[Finding]:
    """Report each value outside or far from its range; one that occurs in many items only once."""
    groups: dict[tuple[str, float], list[Finding]] = {}
    for fault in () if isinstance(draft, Questionnaire) else range_faults(draft):
        value = fault.fields["value"]
        known = fault.code == "outside-range" and value in USUAL_CODES
        code = "suspicious-code" if known else fault.code
        groups.setdefault((code, value), []).append(Finding.of(fault, code=code))
    for (code, value), group in groups.items():
        if len(group) <= MOST_ALIKE:
            yield from group
        else:
            message = (
                f"{len(group)} items hold {number(value)}, outside or far from their other answers: "
                f"{listed(finding.item for finding in group)} (first for participant {group[0].row!r})."
            )
            names = tuple(str(finding.item) for finding in group)
            fields = {"value": value, "apart": bool(group[0].fields.get("apart")), "of": names}
            remedy = missing_code_remedy(value)
            yield Finding("error", code, message, group[0].item, group[0].row, remedy, fields)
    yield from _doubtful(draft, numbers)


def _doubtful(draft: Draft, numbers: _Numbers) -> Iterator[Finding]:
    """Rare answers that determine the range of an undeclared item."""
    families = Families() if draft.families is None else draft.families
    few = {
        (item.name, code)
        for item, answered in zip(draft.items, numbers.by_item, strict=True)
        if not item.declared and answered < FEWEST_PARTICIPANTS
        for code in codes_apart(draft.answers[item.name].to_numpy(dtype=float, na_value=np.nan))
        if families.ends[item.name][0] <= code <= families.ends[item.name][1]
    }
    names = {item.name for item in draft.items}
    lone = [(stray.item, stray.value) for stray in families.doubtful if stray.item in names]
    for item, value in (*sorted(few), *lone):
        hits = np.flatnonzero(draft.answers[item].to_numpy(dtype=float, na_value=np.nan) == value)
        if not len(hits):
            continue
        participant = str(draft.answers.index[hits[0]])
        row = hits[0] + 1 if draft.file_rows is None else draft.file_rows[hits[0]]
        text = (
            f"Item {item!r} holds {number(value)} ({counted(len(hits), 'time')}, first in row {row}, "
            f"participant {participant!r}), which no similar item does; it determines the item's range."
        )
        remedy = missing_code_remedy(value, DECLARE_RANGE)
        fields = {"item": item, "value": value, "participant": participant, "count": len(hits), "apart": True}
        yield Finding("warning", "suspicious-code", text, item, participant, remedy, fields)


@dataclass(frozen=True, eq=False)
class _Numbers:
    """The answers as one array, with counts that several checks need."""

    values: np.ndarray
    answered: np.ndarray
    by_item: np.ndarray
    by_participant: np.ndarray
    keying: Keying | None = None

    @classmethod
    def of(cls, draft: Draft, keying: Keying | None = None) -> _Numbers:
        values = draft.answers.to_numpy(dtype=float, na_value=np.nan)
        answered = ~np.isnan(values)
        return cls(values, answered, answered.sum(axis=0), answered.sum(axis=1), keying)


def _few(draft: Draft, numbers: _Numbers) -> Iterator[Finding]:
    answered = int((numbers.by_participant > 0).sum())
    if 0 < answered < FEWEST_FITTED:
        few = counted(answered, "participant")
        text = f"Only {few} answered; factors from so few do not generalize."
        yield Finding("warning", "few-participants", text)


def _copies(draft: Draft, numbers: _Numbers) -> Iterator[Finding]:
    """Report items with the same answers as another item."""
    if len(numbers.values) < FEWEST_FITTED:
        return
    few = slice(None, None, max(1, len(numbers.values) // _ROWS_IN_CACHE))  # rules most items out
    likely = np.flatnonzero(_alike_columns(numbers.values[few], numbers.answered[few])[1] > 1)
    prints, _ = _alike_columns(numbers.values[:, likely], numbers.answered[:, likely])
    first: dict[int, int] = {}
    for at, fingerprint in zip(likely.tolist(), prints.tolist(), strict=True):
        other = first.setdefault(fingerprint, at)
        one, two = numbers.values[:, other], numbers.values[:, at]
        varied = len(np.unique(two[numbers.answered[:, at]])) > 1
        if other == at or not varied or not np.array_equal(one, two, equal_nan=True):
            continue
        text = (
            f"Item {draft.items[at].name!r} has the same answer as {draft.items[other].name!r} for every "
            "participant. If one is a copy, leave it out."
        )
        yield Finding("warning", "copied-item", text, draft.items[at].name)


def _alike_columns(values: np.ndarray, answered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The hash of each column, and how many columns share it."""
    prints = fingerprints(np.ascontiguousarray(values.T), np.ascontiguousarray(answered.T))
    _, place, counts = np.unique(prints, return_inverse=True, return_counts=True)
    return prints, counts[place]


def _items(draft: Draft, numbers: _Numbers) -> Iterator[Finding]:
    n = len(draft.answers)
    constant: list[Finding] = []
    low, high = (end.reduce(numbers.values, initial=np.nan) for end in (np.fmin, np.fmax))
    for item, answered, lowest, highest in zip(draft.items, numbers.by_item.tolist(), low, high, strict=True):
        if not answered:
            text = f"Nobody answered item {item.name!r}. Leave it out."
            yield Finding("error", "empty-item", text, item.name)
        elif lowest == highest:
            text = (
                f"Everybody who answered item {item.name!r} gave {number(lowest)}. It carries "
                "no information; leave it out."
            )
            constant.append(Finding("warning", "constant-item", text, item.name))
        if 0 < answered <= (1 - NEARLY_EMPTY) * n:
            few = f"Only {answered} of {n} participants answered item {item.name!r}."
            text = f"{few} Consider leaving it out."
            yield Finding("warning", "nearly-empty", text, item.name)
    if len(constant) > MOST_ALIKE:
        names = tuple(str(finding.item) for finding in constant)
        same = f"Everybody gave the same answer to each of {len(names)} items: {listed(names)}."
        text = f"{same} Leave them out."
        constant = [Finding("warning", "constant-item", text, names[0], fields={"items": names})]
    yield from constant


def _widths(draft: Draft, _: _Numbers) -> Iterator[Finding]:
    """Report ranges that are too wide, or that differ in width."""
    ends = draft.ranges()
    for item, low, high in ends.itertuples():
        try:
            refuse_wide_range(str(item), low, high)
        except InputError as fault:
            yield Finding.of(fault)
    text = width_sentence((ends["max"] - ends["min"]).tolist())
    if text:
        yield Finding("note", "mixed-ranges", text)


def _directions(draft: Draft, numbers: _Numbers) -> Iterator[Finding]:
    """Report items that run against the others, and traits with two ends."""
    keying = find_reversed(draft) if numbers.keying is None else numbers.keying
    if not keying.compared:
        too_many = f"there are {len(draft.items)} items, more than {MOST_ITEMS}"
        yield Finding("note", "directions", f"Reversed items were not searched for: {too_many}.")
    for suspect in keying.suspects:
        among = f" of {suspect.scale!r}" if suspect.scale else ""
        wording = f" ({suspect.wording!r})" if suspect.wording else ""
        against = f"{listed(suspect.against, most=3)}{among} ({suspect.strength})"
        runs = f"{short(suspect.item)!r}{wording} runs against {against}"
        fields = {"item": suspect.item, "reversed": suspect.reversed, "runs": runs}
        fields |= {"correlation": suspect.correlation, "found_again": suspect.found_again}
        code, state = "looks-reversed", "so it looks reversed"
        remedy: str | Advice = Advice("If it is, add {reverse=}.", reverse=[suspect.item])
        if suspect.reversed:
            state, remedy = "although it is declared reversed", "Check its direction in the codebook."
        elif not suspect.supported:
            code, state = ("may-be-reversed", "so it may be reversed; of such items, one in five is not")
            remedy = Advice("If its wording says so, add {reverse=}.", reverse=[suspect.item])
        text = f"Item {runs}, {state}."
        yield Finding("warning", code, text, suspect.item, remedy=remedy, fields=fields)
    for ends in keying.ends:
        fields = {"one": ends.one, "other": ends.other}
        yield Finding("warning", "two-ends", ends.sentence, remedy=_TWO_ENDS, fields=fields)


def _unused_confounds(draft: Draft, _: _Numbers) -> Iterator[Finding]:
    """Offer columns of age and sex as confounds where there are none."""
    unused = [each.name for each in draft.left_out if each.reason in _NOT_USED]
    names = age_and_sex(unused) if draft.confounds is None else []
    if names:
        several = len(names) > 1
        text = f"{'Columns' if several else 'Column'} {listed(names)} {'are' if several else 'is'} not used."
        how = f"To separate {'their' if several else 'its'} influence from the factors, add {{confounds=}}."
        remedy = Advice(how, confounds=names)
        yield Finding("note", "possible-confounds", text, remedy=remedy, fields={"columns": tuple(names)})


def _straight_lines(draft: Draft, numbers: _Numbers) -> Iterator[Finding]:
    if not numbers.values.size:
        return
    same = np.flatnonzero(numbers.by_participant >= FEWEST_ANSWERS)
    first = numbers.values[same, numbers.answered[same].argmax(axis=1)]
    for items in (slice(None, FEWEST_ANSWERS), slice(None)):  # few items rule most participants out
        values, answered = numbers.values[same, items], numbers.answered[same, items]
        alike = ((values == first[:, None]) | ~answered).all(axis=1)
        same, first = same[alike], first[alike]
    lowest = draft.ranges()["min"].min()
    for lines, severity, what in (
        (same[first > lowest], "warning", "gave the same answer to every item"),
        (same[first == lowest], "note", "gave the lowest answer to every item"),
    ):
        ids = draft.answers.index[lines]
        if len(ids):
            text = f"{counted(len(ids), 'participant')} {what}: {listed(ids)}."
            yield Finding(severity, "straight-liner", text, row=str(ids[0]))


def _missing(draft: Draft, numbers: _Numbers) -> Iterator[Finding]:
    n, m = numbers.values.shape
    missing, n_asked, shown = n - numbers.by_item, np.full(m, n), None
    if draft.structural is not None:
        shown = ~draft.structural.to_numpy(dtype=bool)
        missing, n_asked = (~numbers.answered & shown).sum(axis=0), shown.sum(axis=0)
    by_item = pd.Series(missing / np.maximum(n_asked, 1), index=draft.answers.columns)
    used = np.full(n, True) if draft.weights is None else (draft.weights != 0).to_numpy(dtype=bool)
    left_out, of_all = count_left_out(numbers.answered[used], None if shown is None else shown[used])
    share = left_out / max(of_all, 1)
    some = "Less than 0.1 %" if share < 0.001 else f"{100 * share:.1f} %"
    if shown is not None and not shown.all():
        yield _not_asked(draft, shown)
    aside = "" if shown is None else " Items that were not asked do not count."
    text = f"{some} of the answers are missing.{aside}" if share > 0 else "No answer is missing."
    yield Finding("note", "missing", text)
    often = by_item[(by_item > MANY_MISSING) & (by_item < NEARLY_EMPTY)].sort_values(ascending=False)
    if len(often):
        text = (
            f"{len(often)} items are missing for more than {100 * MANY_MISSING:.0f} % of those "
            f"asked, most often {often.index[0]!r} ({100 * often.iloc[0]:.0f} %): {listed(often.index)}."
            if len(often) > 1
            else f"Item {often.index[0]!r} is missing for {100 * often.iloc[0]:.0f} % of those asked."
        )
        yield Finding("warning", "missing-items", text, str(often.index[0]))
    by_participant = pd.Series(1 - numbers.by_participant / max(m, 1), index=draft.answers.index)
    silent = by_participant.index[by_participant == 1]
    if len(silent):
        who = counted(len(silent), "participant")
        text = f"{who} answered nothing and cannot be fitted: {listed(silent)}."
        yield Finding("warning", "no-answers", text, row=str(silent[0]))
    gaps = by_participant.index[(by_participant > PARTICIPANT_MISSING) & (by_participant < 1)]
    if len(gaps):
        text = f"{counted(len(gaps), 'participant')} left out more than half of the items: {listed(gaps)}."
        yield Finding("warning", "missing-by-participant", text, row=str(gaps[0]))


def _not_asked(draft: Draft, shown: np.ndarray) -> Finding:
    """Questions that were not asked, which is not the same as leaving them out or refusing them."""
    share = pd.Series(1 - shown.mean(axis=0), index=draft.answers.columns)
    skipped = share[share > 0].sort_values(ascending=False)
    n, most = int((~shown).sum()), str(skipped.index[0])
    asked_of = f"not asked of {100 * skipped.iloc[0]:.0f} % of participants"
    many = f"{counted(n, 'answer')} ({100 * (1 - shown.mean()):.1f} % of all)"
    text = (
        f"{many} to {counted(len(skipped), 'item')} {'was' if n == 1 else 'were'} not asked for, most often "
        f"to {most!r} ({asked_of}). They count as missing, not as 0, so how such an item goes with a factor "
        "is learned only from those who were asked, who may be the more severe ones."
    )
    filled = has_note(draft.notes, FILLED)
    remedy = Advice(
        "If being ruled out by an earlier answer means the lowest answer (no, never), add {not_asked=}.",
        not_asked="lowest",
    )
    fields = {"number": n, "share": float(1 - shown.mean()), "ruled_out": not filled}
    return Finding("warning", "not-asked", text, most, remedy="" if filled else remedy, fields=fields)


def _missing_by_confound(draft: Draft, numbers: _Numbers) -> Iterator[Finding]:
    """Whether leaving answers out depends on the confounds; nothing where hardly any are missing."""
    if draft.confounds is None or not numbers.values.size:
        return
    asked = None if draft.structural is None else ~draft.structural.to_numpy(dtype=bool)
    share = share_left_out(numbers.answered, asked)
    units = None
    if draft.groups is not None:
        units = pd.factorize(draft.groups.map(str, na_action="ignore"), sort=True)[0]
        units = np.where(units < 0, -1 - np.arange(len(units)), units)  # one without a group is alone
    tests = confound_tests(share, draft.confounds, units=units)
    if not len(tests):
        return
    depends = bool((tests["p_adjusted"] <= ALPHA).any())
    kind = ("warning", "missing-depends") if depends else ("note", "missing-independent")
    remedy = (
        "Keep them as confounds, and read how far the results depend on the missing answers in the report."
    )
    weighted = draft.weights is not None
    text = confound_sentence(tests, grouped=units is not None, weighted=weighted)
    yield Finding(*kind, text, remedy=remedy if depends else "")


def _few_participants(draft: Draft, numbers: _Numbers, limit: int) -> Iterator[Finding]:
    """Items answered by so few participants that a fit refuses them."""
    if limit > 1 and (numbers.by_participant > 0).sum() >= limit:
        few = (numbers.by_item > 0) & (numbers.by_item < limit)
        try:
            refuse_few_answers(few[None], [item.name for item in draft.items], limit=limit)
        except InputError as fault:
            yield Finding.of(fault)


def _confounds(draft: Draft, smallest_category: int, *, filled: bool) -> Iterator[Finding]:
    if draft.confounds is None:
        return
    answered = draft.answers.notna().any(axis=1).to_numpy()
    for name, column in draft.confounds.items():
        yield from _unusable(column, draft.answers, answered, smallest_category)
        gaps = draft.confounds.index[column.isna()]
        if len(gaps):
            text = (
                f"Confound {str(name)!r} is missing for {counted(len(gaps), 'participant')}: {listed(gaps)}. "
            )
            text += "The sample mean is used for them." if filled else "Fill it in, or leave them out."
            kind = ("note", "confound-filled") if filled else ("error", "confound-gaps")
            remedy: str = ""
            if len(gaps) == len(column):
                text = f"Confound {str(name)!r} is empty in all rows."
                remedy = Advice(
                    "If another table has it, or other rows of this one, such as those of the first visit, "
                    "add {participants=}.",
                    participants=draft.source or "FILE",
                )
            yield Finding(*kind, text, str(name), str(gaps[0]), remedy=remedy)
        if column.nunique() == 1:
            text = f"Confound {str(name)!r} is the same for everybody."
            yield Finding("warning", "constant-confound", text, str(name))
        if pd.api.types.is_numeric_dtype(column.dtype):
            for code in codes_apart(column.to_numpy(dtype=float, na_value=np.nan)):
                if abs(code) >= 66 or code < 0:
                    text = (
                        f"Confound {str(name)!r} holds {number(code)}, far from its other values. If it "
                        "means missing, declare it in the codebook."
                    )
                    yield Finding("warning", "suspicious-code", text, str(name))


def _unusable(
    column: pd.Series, answers: pd.DataFrame, weights: np.ndarray, smallest_category: int
) -> Iterator[Finding]:
    """Report what a fit would refuse in a confound, and what is probably a mistake."""
    if column.nunique() < 2:
        return
    try:
        encoder = ConfoundEncoder(smallest_category=smallest_category, intercept=False, missing="mean")
        (learned,) = encoder.fit(column, weights=weights).columns
    except InputError as fault:
        yield Finding.of(fault)
        return
    if learned.categories is not None and len(learned.categories) > MANY_CATEGORIES:
        text = (
            f"Confound {learned.name!r} has {len(learned.categories)} categories, each a column of its own. "
            "If they are numbers, store them as numbers rather than text; if not, consider pooling some."
        )
        yield Finding("warning", "many-categories", text, learned.name)
    if learned.categories is not None and smallest_category > 1:
        seen, design = answers.notna().to_numpy(), encoder.transform(column.to_frame())
        few = few_cells(answer_counts(seen, design, None), limit=smallest_category)
        if few.any():
            left, names = int((seen & in_few_cells(design, few)).sum()), [str(name) for name in answers]
            warning = left_out(few, names, encoder.names, left, limit=smallest_category)
            item = warning.fields["item"]
            yield Finding("warning", warning.code, warning.message, item, remedy=warning.remedy)


_CHECKS = (
    _codes,
    _few,
    _items,
    _copies,
    _widths,
    _directions,
    _unused_confounds,
    _straight_lines,
    _missing,
    _missing_by_confound,
)
