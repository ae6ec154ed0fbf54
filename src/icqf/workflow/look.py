"""One look at a study's files: what was found, which columns there are, and a codebook to edit."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from icqf.data.check import Finding, Findings, check
from icqf.data.questionnaire import Draft, Item
from icqf.errors import InputError, InputWarning
from icqf.io.readers.files import read_table
from icqf.io.readers.tables import Table
from icqf.io.suggestion import SuggestedCodebook, suggest_codebook
from icqf.workflow.options import StudyOptions
from icqf.workflow.read import drafted, study_columns

READING = "Reading the file"
LOOKING = "Looking for what would spoil a fit"
DESCRIBING = "Describing the items"
_USED = ("id", "confound", "group", "weight")


@dataclass(frozen=True, eq=False)
class StudyLook:
    """What a look at a study's files gives.

    Parameters
    ----------
    findings : Findings
        What was found, and what will be analysed.
    columns : tuple of str
        All columns of the table of answers.
    beside : tuple of str
        Further columns that the table of participants has.
    items : tuple of Item
        The items as they will be analysed, each with the range that is used: a codebook to edit.
    others : tuple of Item
        The columns that are left out, described as well as they can be.
    remarks : dict of str to str
        What was guessed of an item, or why a column is left out, by its name.

    Examples
    --------
    >>> from icqf.workflow import StudyLook
    >>> list(StudyLook.__annotations__)
    ['findings', 'columns', 'beside', 'items', 'others', 'remarks']
    """

    findings: Findings
    columns: tuple[str, ...]
    beside: tuple[str, ...]
    items: tuple[Item, ...]
    others: tuple[Item, ...]
    remarks: dict[str, str]


def look_at_study(options: StudyOptions, *, callback: Callable[[str], object] | None = None) -> StudyLook:
    """Read the files that the options name once, check them, and describe the items.

    Parameters
    ----------
    options : StudyOptions
        The files, and the roles of their columns.
    callback : callable, optional
        Told in a few words what is being done.

    Examples
    --------
    >>> from icqf.datasets import demo_paths
    >>> from icqf.workflow import StudyOptions, look_at_study
    >>> look = look_at_study(StudyOptions.of({"answers": demo_paths().answers}))
    >>> look.findings.must_fix, look.columns[:3], look.items[0].name, look.items[0].max
    (True, ('child_id', 'age', 'sex'), 'q001', 2.0)
    """
    tell = callback or (lambda _: None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", InputWarning)
        tell(READING)
        table, columns = study_columns(options)
        tell(LOOKING)
        draft, faults = drafted(table, columns)
        findings = check(
            draft,
            faults,
            smallest_category=options.smallest_category,
            missing_confounds=options.missing_confounds,
            n_rows=len(table.frame),
        )
        tell(DESCRIBING)
        guess = _guess(table) if columns["codebook"] is None else SuggestedCodebook((), {})
    said = [each.message for each in caught if isinstance(each.message, InputWarning)]
    told = tuple(Finding("warning", each.code, each.message, remedy=each.remedy) for each in said)
    every = sorted((*findings, *told), key=lambda finding: finding.severity == "note")
    every.sort(key=lambda finding: finding.severity != "error")
    names = tuple(str(name) for name in table.frame.columns)
    out = {column.name: column for column in draft.left_out if column.reason not in _USED}
    known = {item.name: item for item in guess.items}
    remarks = guess.remarks | {name: column.sentence for name, column in out.items()}
    return StudyLook(
        Findings(tuple(every), findings.overview),
        names,
        _beside(options, names),
        tuple(_described(draft, known)),
        tuple(known.get(name, Item(name)) for name in out),
        remarks,
    )


def _beside(options: StudyOptions, names: tuple[str, ...]) -> tuple[str, ...]:
    """The columns that only the table of participants has."""
    if options.participants is None:
        return ()
    found = (str(name) for name in read_table(options.participants).frame.columns)
    return tuple(name for name in found if name not in names)


def _guess(table: Table) -> SuggestedCodebook:
    try:
        return suggest_codebook(table)
    except InputError:  # no column looks like answers; what was named by hand is described by itself
        return SuggestedCodebook((), {})


def _described(draft: Draft, known: Mapping[str, Item]) -> Iterator[Item]:
    """The items with the ranges that are used; without a codebook, with what is guessed of them."""
    for item, (_, low, high) in zip(draft.items, draft.ranges().itertuples(), strict=True):
        if item.name in known:
            item = replace(known[item.name], reverse=item.reverse)
        if not item.declared and low < high:
            item = replace(item, min=float(low), max=float(high))
        yield item
