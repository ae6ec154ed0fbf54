"""What is wrong with a study's files, which columns there are, and a codebook to edit."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from icqf.data.check import Finding, Findings, check
from icqf.data.disclosure import SMALLEST_CATEGORY
from icqf.data.frames import as_pandas
from icqf.data.questionnaire import Draft, Item
from icqf.errors import InputError, InputWarning
from icqf.io.readers.files import read_table
from icqf.io.readers.questionnaires import Codebook, StudyTable, read_files, study_table
from icqf.io.readers.table import Table, recognised_id
from icqf.io.study_files import StudyFiles
from icqf.io.suggestion import SuggestedCodebook, suggest_codebook
from icqf.workflow.options import StudyOptions, as_options
from icqf.workflow.read import sample_of, stream_of

READING = "Reading the file"
LOOKING = "Looking for what would spoil a fit"
DESCRIBING = "Describing the items"
_USED = ("id", "confound", "group", "weight")


@dataclass(frozen=True, eq=False)
class StudyLook:
    """What a look at a study's files gives."""

    findings: Findings
    columns: tuple[str, ...]
    beside: tuple[str, ...]
    items: tuple[Item, ...]
    others: tuple[Item, ...]
    remarks: dict[str, str]


def check_study(options: StudyFiles | str | os.PathLike[str], **more: Any) -> Findings:
    """Look for what would spoil a fit of a study.

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
    return _checked(read_files(options, table=sample), options.smallest_category, options.missing_confounds)[
        1
    ]


def check_table(
    source: Any,
    *,
    codebook: Codebook = None,
    smallest_category: int = SMALLEST_CATEGORY,
    missing_confounds: str = "error",
    **roles: Any,
) -> Findings:
    """Look for what would spoil a fit of a table; a file that cannot be read at all raises `InputError`.

    Parameters
    ----------
    source : Table, table of pandas, polars or another library, or path
        What to look at.
    codebook, **roles
        As in `icqf.io.read_questionnaire`.
    smallest_category, missing_confounds
        Fewest participants in a category of a confound, and what is done about a missing one, as in
        `icqf.ICQF`.

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
    """The answers as they were found, and what was found about them."""
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


def look_at_study(
    options: StudyFiles | str | os.PathLike[str],
    *,
    callback: Callable[[str], object] | None = None,
    **more: Any,
) -> StudyLook:
    """Read a study's files once, check them, and describe the items."""
    options = as_options(options, more, StudyOptions)
    tell = callback or (lambda _: None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", InputWarning)
        tell(READING)
        read = read_files(options)
        tell(LOOKING)
        draft, findings = _checked(read, options.smallest_category, options.missing_confounds)
        tell(DESCRIBING)
        guess = _guess(read.table) if read.entries is None else SuggestedCodebook((), {})
    said = [each.message for each in caught if isinstance(each.message, InputWarning)]
    told = tuple(Finding("warning", each.code, each.message, remedy=each.remedy) for each in said)
    every = sorted((*findings, *told), key=lambda finding: finding.severity == "note")
    every.sort(key=lambda finding: finding.severity != "error")
    names = tuple(str(name) for name in read.table.frame.columns)
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
