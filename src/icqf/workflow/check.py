"""Check a study: findings with their remedies, its columns, and a codebook to edit."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from icqf.data.check import Finding, Findings, check
from icqf.data.direction import MOST_ITEMS, find_reversed, remark_on, remarks_on_ends
from icqf.data.disclosure import SMALLEST_CATEGORY
from icqf.data.frames import as_pandas
from icqf.data.questionnaire import Draft, Item
from icqf.errors import InputError, InputWarning, counted, has_note, listed, short
from icqf.io.codebook import SuggestedCodebook, suggest_codebook
from icqf.io.readers.dictionaries import CONDITIONS
from icqf.io.readers.files import read_table
from icqf.io.readers.questionnaires import Codebook, StudyTable, read_answers, read_files, study_table
from icqf.io.readers.table import Table, recognised_id
from icqf.io.readers.visit_columns import visits_of
from icqf.io.study_files import AND, LOWEST, StudyFiles
from icqf.screening.columns import bars_of
from icqf.screening.missing_codes import number
from icqf.workflow.options import StudyOptions, as_options
from icqf.workflow.read import sample_of, stream_of

READING = "Reading the file"
CHECKING = "Checking the answers"
DESCRIBING = "Describing the items"
_USED = ("id", "confound", "group", "weight")


@dataclass(frozen=True)
class ColumnSummary:
    """A column of a study's files: what it is used for, and a histogram of its values."""

    name: str
    role: str  # "item", "id", "confound", "group", "weight", or empty
    wording: str = ""
    reason: str = ""  # why it is not used: one of `icqf.screening.columns.REASONS`, perhaps with a detail
    answered: int = 0  # cells that are neither empty nor, in an item, a missing code
    empty: int = 0
    bars: tuple[tuple[str, int], ...] = ()
    reversed: bool = False
    of_participants: bool = False  # only in the table of participants


@dataclass(frozen=True, eq=False)
class StudyInspection:
    """Findings on a study's files, and descriptions of its columns; `others` are excluded columns."""

    findings: Findings
    columns: tuple[ColumnSummary, ...]
    items: tuple[Item, ...]
    others: tuple[Item, ...]
    remarks: dict[str, str]
    # the visits to choose from, with their numbers of rows; empty where participants have one row each
    visits: tuple[tuple[tuple[tuple[str, str], ...], int], ...] = ()


def check_study(options: StudyFiles | str | os.PathLike[str], **more: Any) -> Findings:
    """Look for problems that would spoil a fit of a study.

    Parameters
    ----------
    options : StudyOptions or path
        The files and the roles of their columns, or the table of answers.
    **more
        Options by name, such as ``codebook="items.csv"``; see `icqf.io.StudyFiles`.

    Examples
    --------
    >>> from icqf.datasets import demo_paths
    >>> from icqf.workflow import check_study
    >>> answers, codebook = demo_paths()
    >>> check_study(answers, codebook=codebook).must_fix
    False
    """
    options = as_options(options, more, StudyOptions)
    stream = stream_of(options)
    sample = None if stream is None else sample_of(stream, seed=options.seed).table
    read = read_files(options, table=sample)
    return _checked(read, options.smallest_category, options.missing_confounds)[1]


def check_table(
    source: Any,
    *,
    codebook: Codebook = None,
    smallest_category: int = SMALLEST_CATEGORY,
    missing_confounds: str = "error",
    **roles: Any,
) -> Findings:
    """Look for problems that would spoil a fit of a table; an unreadable file raises `InputError`.

    Parameters
    ----------
    source : Table, table of pandas, polars or another library, or path
        The answers.
    codebook, **roles
        As in `icqf.io.read_questionnaire`.
    smallest_category, missing_confounds
        As in `icqf.ICQF`.

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.workflow import check_table
    >>> answers = pd.DataFrame({"q1": [0, 1, 2, 999], "q2": [1, 0, 2, 1]})
    >>> [finding.item for finding in check_table(answers).of("suspicious-code")]
    ['q1']
    """
    source = as_pandas(source)
    if isinstance(source, pd.DataFrame):
        frame = source.reset_index() if source.index.name else source.reset_index(drop=True)
        source = Table(frame, "table", np.arange(1, len(frame) + 1), id=recognised_id(frame.columns))
    read = study_table(source, codebook=codebook, **roles)
    return _checked(read, smallest_category, missing_confounds)[1]


def _checked(read: StudyTable, smallest_category: int, missing_confounds: str) -> tuple[Draft, Findings]:
    """Return the unchecked answers, and the findings on them."""
    faults: list[InputError] = []
    draft = read.draft(faults.append)
    findings = check(
        draft,
        faults,
        smallest_category=smallest_category,
        missing_confounds=missing_confounds,
        n_rows=len(read.table.frame),
    )
    return draft, findings


def inspect_study(
    options: StudyFiles | str | os.PathLike[str],
    *,
    callback: Callable[[str], object] | None = None,
    **more: Any,
) -> StudyInspection:
    """Read a study's files once, check them, and describe the items."""
    options = as_options(options, more, StudyOptions)
    report = callback or (lambda _: None)
    with warnings.catch_warnings(record=True, action="always", category=InputWarning) as caught:
        report(READING)
        table = read_answers(options)
        read = read_files(options, table=table)
        report(CHECKING)
        visits = visits_of(table, options.id or table.id, options.visit)
        try:
            draft, findings = _checked(read, options.smallest_category, options.missing_confounds)
        except (
            InputError
        ) as error:  # no items, for example: the columns are shown, so that they can be chosen
            columns = tuple(_summaries(read, None, {item.name: item.wording for item in read.table.items}))
            return StudyInspection(Findings((Finding.of(error),)), columns, (), (), {}, visits)
        report(DESCRIBING)
        guess = _guess(read.table) if read.entries is None else SuggestedCodebook((), {})
    warned = [each.message for each in caught if isinstance(each.message, InputWarning)]
    more_findings = (Finding("warning", each.code, each.message, remedy=each.remedy) for each in warned)
    order = ("error", "warning", "note").index
    every = sorted((*findings, *more_findings), key=lambda finding: order(finding.severity))
    excluded = {column.name: column for column in draft.left_out if column.reason not in _USED}
    known = {item.name: item for item in guess.items}
    remarks = guess.remarks | {name: column.sentence for name, column in excluded.items()}
    described = {item.name: item.wording for item in (*guess.items, *read.table.items) if item.wording}
    return StudyInspection(
        Findings(tuple(every), findings.overview),
        tuple(_summaries(read, draft, described)),
        tuple(_described(draft, known)),
        tuple(known.get(name, Item(name)) for name in excluded),
        remarks,
        visits,
    )


def _summaries(read: StudyTable, draft: Draft | None, wordings: Mapping[str, str]) -> Iterator[ColumnSummary]:
    """Describe every column of the table of answers, then those that only the table of participants has."""
    files = read.files
    items = () if draft is None else draft.items
    identity = files.id or read.table.id if draft is None else draft.answers.index.name
    roles = {item.name: "item" for item in items} | dict.fromkeys(files.confounds, "confound")
    named = ((files.groups, "group"), (files.weights, "weight"))
    roles |= {name: role for name, role in named if name is not None}
    roles |= dict.fromkeys(str(identity or "").split(AND), "id")
    wordings = {**wordings, **{item.name: item.wording for item in items if item.wording}}
    left_out = () if draft is None else draft.left_out
    reasons = {each.name: f"{each.reason} {each.detail}".strip() for each in left_out}
    backwards = {item.name for item in items if item.reverse}
    frames = [read.table.frame]
    if files.participants is not None:
        others = read_table(files.participants).frame
        frames.append(others.loc[:, [name for name in others.columns if name not in frames[0].columns]])
    for frame in frames:
        for name in map(str, frame.columns):
            role = roles.get(name, "")
            cells = frame[name]
            if draft is not None and role == "item":
                cells = draft.answers[name]  # without codes of missing answers
            answered = int(cells.notna().sum())
            yield ColumnSummary(
                name,
                role,
                wordings.get(name, ""),
                "" if role else reasons.get(name, ""),
                answered,
                len(cells) - answered,
                () if role == "id" else bars_of(cells),
                name in backwards,
                frame is not frames[0],
            )


def _guess(table: Table) -> SuggestedCodebook:
    try:
        return suggest_codebook(table)
    except InputError:  # no column looks like answers; columns named by the user are described anyway
        return SuggestedCodebook((), {})


def _described(draft: Draft, known: Mapping[str, Item]) -> Iterator[Item]:
    """Return the items with the ranges in use; without a codebook, with guessed descriptions."""
    for item, (_, low, high) in zip(draft.items, draft.ranges().itertuples(), strict=True):
        if item.name in known:
            item = replace(known[item.name], reverse=item.reverse)
        if not item.declared and low < high:
            item = replace(item, min=float(low), max=float(high))
        yield item


_CODES = ("outside-range", "suspicious-code", "far-answer", "text")
_NEEDLESS = ("empty-item", "constant-item", "nearly-empty", "copied-item", "wide-range", "few-answers")
_OF_CONFOUNDS = (
    *("confound-gaps", "constant-confound", "many-categories", "missing-confound", "small-category"),
    *("lone-confound", "confound-categories", "stray-text", "id-confound"),
)
_DOUBLED = {
    "first": "Use the first of the doubled rows",
    "last": "Use the last",
    "leave-out": "Use none of them",
}
_WITHOUT_ID = {"leave-out": "Leave out rows without an id", "keep": "Keep them, called by their row"}
_MOST_VISITS = 6  # offered as remedies


@dataclass(frozen=True)
class Remedy:
    """One change of the options that resolves a finding; `codebook` asks for a suggested codebook.

    Remedies of the kinds "reverse" and "exclude" name items, so that several can be joined into one.
    """

    label: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    codebook: bool = False
    kind: str = ""

    @property
    def key(self) -> str:
        """A short identifier for forms."""
        return hashlib.sha256(f"{self.label}{dict(self.changes)!r}".encode()).hexdigest()[:16]

    def applied(self, options: StudyOptions) -> StudyOptions:
        """Return the options with the changes."""
        return replace(options, **self.changes)


def remedies_of(finding: Finding, findings: Findings, options: StudyOptions) -> tuple[Remedy, ...]:
    """Return the changes of options that would resolve a finding; empty if there are none."""
    fields = finding.fields
    items = () if findings.overview is None else findings.overview.items
    if finding.item is not None and finding.item in options.confounds:
        return tuple(_about_confound(finding, options))
    offered: list[Remedy] = []
    if finding.code in _CODES and "value" in fields and not fields.get("answer"):
        offered.append(_missing(fields["value"], options))
    if finding.code == "end-code" and fields["shared"]:
        label = f"Treat {number(fields['value'])} as missing in these items, with a codebook"
        offered.append(Remedy(label, codebook=True))
    elif finding.code == "end-code":
        offered.append(_missing(fields["value"], options))
    if finding.code in ("looks-reversed", "may-be-reversed") and not fields["reversed"]:
        offered.append(_reversing([fields["item"]], options))
    if finding.code == "possible-confounds":
        what = "confounds" if len(fields["columns"]) > 1 else "a confound"
        label = f"Use {' and '.join(fields['columns'])} as {what}"
        offered.append(Remedy(label, {"confounds": (*options.confounds, *fields["columns"])}))
    if finding.code == "two-ends":
        offered += [_reversing(fields[end], options) for end in ("one", "other")]
    if finding.code == "duplicate-id":
        for visit in fields.get("visits", ())[:_MOST_VISITS]:
            shown = " and ".join(f"{column} {value or 'empty'}" for column, value in visit)
            offered.append(Remedy(f"Keep the visit with {shown}", {"visit": visit}))
        if ids := fields.get("ids"):
            offered.append(Remedy(f"Use {' and '.join(ids)} together as ids", {"id": ids}))
    if finding.code in ("duplicate-id", "doubled-rows") and not offered:
        offered += [Remedy(label, {"doubled": choice}) for choice, label in _DOUBLED.items()]
    if finding.code == "missing-id":
        offered += [Remedy(label, {"without_id": choice}) for choice, label in _WITHOUT_ID.items()]
    if finding.code == "not-asked" and fields["ruled_out"]:
        offered.append(Remedy("Count them as the lowest answer", {"not_asked": LOWEST}))
    if finding.code == "crossed":
        person, item, answer = fields["columns"]
        does = f"Read {person} as participants, {item} as items and {answer} as answers"
        offered.append(Remedy(does, {"id": person, "long": (item, answer)}))
        offered.append(Remedy("Read each row as a participant", {"long": ("no",)}))
    if finding.code == "text-answers" and not fields["codebook"]:
        does = f"Use the order {fields['order']}" if fields["labels"] else "List the words in a codebook"
        offered.append(Remedy(does, codebook=True))
    named = tuple(fields.get("items", ())) or ((finding.item,) if finding.item else ())
    specific = finding.code in _CODES and ("item" in fields or "items" in fields)
    if (specific or finding.code in _NEEDLESS) and named and set(named) < set(items):
        offered.append(_without(named, items))
    return tuple(offered)


def remedies_together(
    group: Sequence[Finding], findings: Findings, options: StudyOptions
) -> tuple[Remedy, ...]:
    """Return the changes of options that resolve several findings of one kind at once."""
    each = [remedies_of(finding, findings, options) for finding in group]
    if len(group) == 1:
        return each[0]
    shared = [one for one in each[0] if all(one.key in {other.key for other in rest} for rest in each)]
    names = [name for f in group if f.item is not None for name in (f.fields.get("items") or [f.item])]
    kinds = {remedy.kind for remedies in each for remedy in remedies}
    if "reverse" in kinds:
        found = [name for name in names if name not in options.reverse]
        shared += [_reversing(found, options)] if len(found) > 1 else []
    items = () if findings.overview is None else findings.overview.items
    if "exclude" in kinds and set(names) < set(items):
        shared.append(_without(dict.fromkeys(names), items))
    return tuple(shared)


def _missing(value: Any, options: StudyOptions) -> Remedy:
    codes = tuple(dict.fromkeys([*options.missing_codes, value]))
    return Remedy(f"Treat {number(value)} as missing", {"missing_codes": codes})


def _reversing(names: Iterable[str], options: StudyOptions) -> Remedy:
    names = list(names)
    shown = ", ".join(map(short, names)) if len(names) <= 4 else f"all {counted(len(names), 'item')}"
    reverse = tuple(dict.fromkeys([*options.reverse, *names]))
    return Remedy(f"Reverse {shown}", {"reverse": reverse}, kind="reverse")


def _without(names: Iterable[str], items: Iterable[str]) -> Remedy:
    names = list(names)
    shown = short(names[0]) if len(names) == 1 else counted(len(names), "item")
    kept = tuple(name for name in items if name not in names)
    return Remedy(f"Exclude {shown}", {"items": kept, "subscales": ()}, kind="exclude")


def _about_confound(finding: Finding, options: StudyOptions) -> Iterable[Remedy]:
    if finding.code in ("confound-gaps", "missing-confound"):
        yield Remedy("Replace missing values by the mean", {"missing_confounds": "mean"})
    if finding.code in (*_OF_CONFOUNDS, "suspicious-code"):
        others = tuple(name for name in options.confounds if name != finding.item)
        ranges = tuple(each for each in options.confound_ranges if each[0] != finding.item)
        label = f"Drop the confound {short(str(finding.item))}"
        yield Remedy(label, {"confounds": others, "confound_ranges": ranges})


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
