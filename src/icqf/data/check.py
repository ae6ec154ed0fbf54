"""What is wrong with a table before a long run: a list of findings in plain sentences."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from icqf.data.confounds import ConfoundEncoder
from icqf.data.disclosure import MANY_CATEGORIES, SMALLEST_CATEGORY
from icqf.data.keying import find_reversed
from icqf.data.questionnaire import (
    Draft,
    Questionnaire,
    missing_code_remedy,
    number,
    range_faults,
)
from icqf.data.ranges import FEWEST_PARTICIPANTS, Families
from icqf.data.scales import USUAL_CODES, WIDEST_RANGE, codes_apart, refuse_wide_range
from icqf.errors import InputError, counted, listed

SEVERITIES = ("error", "warning", "note")
NEARLY_EMPTY = 0.8
MANY_MISSING = 0.2
PARTICIPANT_MISSING = 0.5
FEWEST_ANSWERS = 10
MOST_ALIKE = 3
WIDER = 2
_TOGETHER = {
    "text": "{n} columns hold text rather than numbers",
    "missing-column": "{n} items of the codebook are no columns of the table",
}


@dataclass(frozen=True)
class Finding:
    """One thing found: how serious it is, of which kind, where, what it is, and what to do about it.

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
        """The message and the remedy, in the words of Python."""
        return f"{self.message} {self.remedy}".rstrip()

    @classmethod
    def of(cls, fault: InputError, *, severity: str = "error", code: str | None = None) -> Finding:
        """Return a fault as a finding."""
        item = fault.fields.get("item", fault.fields.get("confound"))
        row = fault.fields.get("row")
        row = fault.fields.get("participant", row)
        place = None if row is None else str(row)
        return cls(severity, code or fault.code, fault.message, item, place, fault.remedy, fault.fields)


@dataclass(frozen=True)
class Findings:
    """All that `check` found, the serious things first.

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

    def of(self, code: str) -> tuple[Finding, ...]:
        """Return the findings of one kind."""
        return tuple(finding for finding in self if finding.code == code)

    def to_frame(self) -> pd.DataFrame:
        """Return the findings as a table: severity, code, sentence, item and row."""
        columns = ["severity", "code", "sentence", "item", "row"]
        return pd.DataFrame([[getattr(f, name) for name in columns] for f in self], columns=columns)

    def to_json(self) -> str:
        """Return the findings as JSON: ``{"must_fix": ..., "findings": [...]}``."""
        content = {"must_fix": self.must_fix, "findings": self.to_frame().to_dict("records")}
        return json.dumps(content, indent=2, ensure_ascii=False)


def check(
    draft: Draft, faults: Iterable[InputError] = (), *, smallest_category: int = SMALLEST_CATEGORY
) -> Findings:
    """Look for what would spoil a fit.

    Found are suspicious codes and answers outside their range, text among numbers, items that run
    against the others, empty, nearly empty and constant items, straight-liners, duplicated and missing
    ids, identical answer sheets, missing answers by item and participant, and confounds with gaps, stray
    text, or categories of few participants.

    Parameters
    ----------
    draft : Draft or Questionnaire
        What to look at. The answers of a questionnaire are known to be in their ranges.
    faults : iterable of InputError
        What was wrong with the table already when it was read.
    smallest_category : int
        Fewest participants in a category of a confound, as in `icqf.ICQF`.

    Returns
    -------
    Findings

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.data.check import check
    >>> from icqf.data.questionnaire import Draft, Item
    >>> answers = pd.DataFrame({"q1": [0, 1, 2, 999], "q2": [1, 0, 2, 1]})
    >>> found = check(Draft(answers, (Item("q1"), Item("q2"))))
    >>> [finding.item for finding in found.of("suspicious-code")]
    ['q1']
    """
    found = [*_alike(Finding.of(fault) for fault in faults)]
    for look in (_codes, _items, _widths, _directions, _straight_lines, _twins, _missing):
        found.extend(look(draft))
    found.extend(_confounds(draft, smallest_category))
    found.extend(Finding("note", "reading", note) for note in draft.notes)
    return Findings(tuple(sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))))


def _alike(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Say what many columns have in common once: one cause is one finding."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.code if finding.item else "", []).append(finding)
    for code, group in groups.items():
        if code not in _TOGETHER or len(group) <= MOST_ALIKE:
            yield from group
            continue
        first, names = group[0], listed(finding.item for finding in group)
        values = {finding.fields.get("value") for finding in group}
        same = first.remedy if len(values) == 1 and None not in values else ""
        message = f"{_TOGETHER[code].format(n=len(group))}: {names}. The first: {first.message}"
        fields = {**first.fields, "items": tuple(finding.item for finding in group)}
        if not same:
            fields.pop("value", None)
        yield Finding(first.severity, code, message, first.item, first.row, same, fields)


def _codes(draft: Draft) -> Iterator[Finding]:
    """Report each value outside the range, or standing apart; one that is in many items only once."""
    found: dict[tuple[str, float], list[Finding]] = {}
    for fault in () if isinstance(draft, Questionnaire) else range_faults(draft):
        value = fault.fields["value"]
        known = fault.code == "outside-range" and value in USUAL_CODES
        code = "suspicious-code" if known else fault.code
        found.setdefault((code, value), []).append(Finding.of(fault, code=code))
    for (code, value), group in found.items():
        if len(group) <= MOST_ALIKE:
            yield from group
        else:
            message = (
                f"{len(group)} items hold {number(value)}, outside or far from their other answers: "
                f"{listed(finding.item for finding in group)} (first in row {group[0].row!r})."
            )
            fields = {"value": value, "apart": bool(group[0].fields.get("apart"))}
            yield Finding(
                *("error", code, message, group[0].item, group[0].row, missing_code_remedy(value), fields)
            )
    yield from _doubtful(draft)


def _doubtful(draft: Draft) -> Iterator[Finding]:
    """Answers that set the range of an undeclared item, though hardly anybody gave them."""
    families = Families() if draft.families is None else draft.families
    few = {
        (item.name, code)
        for item in draft.items
        if not item.declared and draft.answers[item.name].count() < FEWEST_PARTICIPANTS
        for code in codes_apart(draft.answers[item.name].to_numpy(dtype=float, na_value=np.nan))
        if families.ends[item.name][0] <= code <= families.ends[item.name][1]
    }
    names = {item.name for item in draft.items}
    for item, value in (
        *few,
        *((stray.item, stray.value) for stray in families.doubtful if stray.item in names),
    ):
        hits = np.flatnonzero(draft.answers[item].to_numpy(dtype=float, na_value=np.nan) == value)
        if not len(hits):
            continue
        participant = str(draft.answers.index[hits[0]])
        row = hits[0] + 1 if draft.file_rows is None else draft.file_rows[hits[0]]
        text = (
            f"Item {item!r} holds {number(value)} ({counted(len(hits), 'time')}, first in row {row}, "
            f"participant {participant!r}), which no similar item does; it sets the item's range."
        )
        remedy = missing_code_remedy(value).removesuffix(".") + "; if not, declare the item's range."
        fields = {"item": item, "value": value, "participant": participant, "count": len(hits), "apart": True}
        yield Finding("warning", "suspicious-code", text, item, participant, remedy, fields)


def _items(draft: Draft) -> Iterator[Finding]:
    n = len(draft.answers)
    for item in draft.items:
        answered = draft.answers[item.name].dropna()
        if answered.empty:
            yield Finding(
                "error", "empty-item", f"Nobody answered item {item.name!r}. Leave it out.", item.name
            )
        elif answered.nunique() == 1:
            text = (
                f"Everybody who answered item {item.name!r} gave {number(answered.iloc[0])}. It carries "
                "no information; leave it out."
            )
            yield Finding("warning", "constant-item", text, item.name)
        if 0 < len(answered) <= (1 - NEARLY_EMPTY) * n:
            text = (
                f"Only {len(answered)} of {n} participants answered item {item.name!r}. Consider leaving "
                "it out."
            )
            yield Finding("warning", "nearly-empty", text, item.name)


def _widths(draft: Draft) -> Iterator[Finding]:
    """Items with wide ranges outweigh narrow ones where a point counts as a point, as errors are squared."""
    ends = draft.ranges()
    for item, low, high in ends.itertuples():
        try:
            refuse_wide_range(str(item), low, high)
        except InputError as fault:
            yield Finding.of(fault)
    spans = [span for span in (ends["max"] - ends["min"]).tolist() if span <= WIDEST_RANGE]
    if not spans or max(spans) < WIDER * min(spans):
        return
    narrow, wide = min(spans), max(spans)
    text = (
        f"Answer ranges differ in width: {counted(spans.count(wide), 'item')} of {number(wide)} points, "
        f"{counted(spans.count(narrow), 'item')} of {number(narrow)}. Items count alike by default, each by "
        "its range; point for point, squared errors of the widest would count up to "
        f"{(wide / narrow) ** 2:.0f} times as much."
    )
    yield Finding("note", "mixed-ranges", text)


def _directions(draft: Draft) -> Iterator[Finding]:
    """Report items that run against the others, and traits with two ends."""
    keying = find_reversed(draft)
    for suspect in keying.suspects:
        among = f" of {suspect.scale!r}" if suspect.scale else ""
        asked = f" ({suspect.wording!r})" if suspect.wording else ""
        runs = f"Item {suspect.item!r}{asked} runs against {listed(suspect.against, most=3)}{among}"
        fields = {"item": suspect.item, "reversed": suspect.reversed}
        state, remedy = (
            ("although it is declared reversed", "Check its direction in the codebook.")
            if suspect.reversed
            else ("so it looks reversed", f"If it is, give reverse=[{suspect.item!r}].")
        )
        yield Finding(
            "warning",
            "looks-reversed",
            f"{runs} ({suspect.strength}), {state}.",
            suspect.item,
            remedy=remedy,
            fields=fields | {"correlation": suspect.correlation, "found_again": suspect.found_again},
        )
    for ends in keying.ends:
        yield Finding(
            "warning",
            "two-ends",
            ends.sentence,
            remedy="If all belong to one scale, reverse one end; if they are traits or moods of their own, "
            "leave them as they are.",
            fields={"one": ends.one, "other": ends.other},
        )


def _straight_lines(draft: Draft) -> Iterator[Finding]:
    values = draft.answers.to_numpy(dtype=float)
    answered = np.isfinite(values)
    count = answered.sum(axis=1)
    high = np.max(values, axis=1, where=answered, initial=-np.inf)
    low = np.min(values, axis=1, where=answered, initial=np.inf)
    lowest = draft.ranges()["min"].min()
    same = (high == low) & (count >= FEWEST_ANSWERS)
    for lines, severity, what in (
        (same & (low > lowest), "warning", "gave the same answer to every item"),
        (same & (low == lowest), "note", "gave the lowest answer to every item"),
    ):
        ids = draft.answers.index[lines]
        if len(ids):
            yield Finding(
                severity,
                "straight-liner",
                f"{counted(len(ids), 'participant')} {what}: {listed(ids)}.",
                row=str(ids[0]),
            )


def _twins(draft: Draft) -> Iterator[Finding]:
    values = draft.answers.to_numpy(dtype=float)
    some = np.fmax.reduce(values, axis=1, initial=np.nan) > np.fmin.reduce(values, axis=1, initial=np.nan)
    full = some & (np.isfinite(values).sum(axis=1) >= 2 * FEWEST_ANSWERS)
    hashes = pd.util.hash_pandas_object(draft.answers, index=False)[full]
    again = hashes.index[hashes.duplicated(keep=False)]
    if len(again):
        text = (
            f"{len(again)} participants share all their answers with somebody else: {listed(again)}. Were "
            "they entered twice?"
        )
        yield Finding("warning", "same-answers", text, row=str(again[0]))


def _missing(draft: Draft) -> Iterator[Finding]:
    missing = draft.answers.isna()
    if draft.structural is not None:
        asked = ~draft.structural.to_numpy(dtype=bool)
        by_item = pd.Series(
            (missing & asked).to_numpy().sum(axis=0) / np.maximum(asked.sum(axis=0), 1), index=missing.columns
        )
    else:
        by_item = missing.mean()
    share = float(missing.to_numpy().mean()) if missing.size else 0.0
    yield Finding("note", "missing", f"{100 * share:.1f} % of all answers are missing.")
    often = by_item[(by_item > MANY_MISSING) & (by_item < NEARLY_EMPTY)].sort_values(ascending=False)
    if len(often):
        text = (
            f"{len(often)} items were not answered by more than {100 * MANY_MISSING:.0f} % of those "
            f"asked, most often {often.index[0]!r} ({100 * often.iloc[0]:.0f} %): {listed(often.index)}."
        )
        yield Finding("warning", "missing-items", text, str(often.index[0]))
    by_participant = missing.mean(axis=1)
    silent = by_participant.index[by_participant == 1]
    if len(silent):
        text = (
            f"{counted(len(silent), 'participant')} answered nothing and cannot be fitted: {listed(silent)}."
        )
        yield Finding("warning", "no-answers", text, row=str(silent[0]))
    gaps = by_participant.index[(by_participant > PARTICIPANT_MISSING) & (by_participant < 1)]
    if len(gaps):
        text = f"{counted(len(gaps), 'participant')} left out more than half of the items: {listed(gaps)}."
        yield Finding("warning", "missing-by-participant", text, row=str(gaps[0]))


def _confounds(draft: Draft, smallest_category: int) -> Iterator[Finding]:
    if draft.confounds is None:
        return
    answered = draft.answers.notna().any(axis=1).to_numpy()
    for name, column in draft.confounds.items():
        yield from _unusable(column, answered, smallest_category)
        gaps = draft.confounds.index[column.isna()]
        if len(gaps):
            text = (
                f"Confound {str(name)!r} is missing for {counted(len(gaps), 'participant')}: "
                f"{listed(gaps)}. Fill it "
                "in, or leave them out."
            )
            yield Finding("error", "confound-gaps", text, str(name), str(gaps[0]))
        if column.nunique() == 1:
            yield Finding(
                "warning",
                "constant-confound",
                f"Confound {str(name)!r} is the same for everybody.",
                str(name),
            )
        if pd.api.types.is_numeric_dtype(column.dtype):
            for code in codes_apart(column.to_numpy(dtype=float, na_value=np.nan)):
                if abs(code) >= 66 or code < 0:
                    text = (
                        f"Confound {str(name)!r} holds {number(code)}, far from its other values. If it "
                        "marks a gap, declare it in the codebook."
                    )
                    yield Finding("warning", "suspicious-code", text, str(name))


def _unusable(column: pd.Series, weights: np.ndarray, smallest_category: int) -> Iterator[Finding]:
    """What a fit would refuse in a confound, and what it would take but is hardly meant."""
    if column.nunique() < 2:
        return
    try:
        (learned,) = ConfoundEncoder(smallest_category=smallest_category).fit(column, weights=weights).columns
    except InputError as fault:
        yield Finding.of(fault)
        return
    if learned.categories is not None and len(learned.categories) > MANY_CATEGORIES:
        text = (
            f"Confound {learned.name!r} has {len(learned.categories)} categories, each a column of its own. "
            "If they are numbers, store them as numbers rather than text; if not, consider pooling some."
        )
        yield Finding("warning", "many-categories", text, learned.name)
