"""From the options to a study, and to what is wrong with its files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from icqf.data.check import Findings, check
from icqf.data.disclosure import SMALLEST_CATEGORY
from icqf.data.questionnaire import Draft, Item, Questionnaire
from icqf.data.study import Study
from icqf.data.tables import as_pandas
from icqf.errors import InputError, did_you_mean, listed
from icqf.io.codebook import read_codebook
from icqf.io.readers.beside import joined_by_id
from icqf.io.readers.files import read_table
from icqf.io.readers.questionnaires import assemble
from icqf.io.readers.tables import Table, recognised_id, require_column
from icqf.io.readers.visits import keep_visit
from icqf.screening.ranges import refuse_wide_range
from icqf.workflow.large import sample_of, sampled_study, stream_of
from icqf.workflow.options import StudyOptions


def read_study(options: StudyOptions, *, labels: Sequence[str] = ()) -> Study:
    """Read the files that the options name.

    Parameters
    ----------
    options : StudyOptions
        The files, and the roles of their columns.
    labels : sequence of str
        Columns of diagnoses or other labels.

    Examples
    --------
    >>> from icqf.datasets import demo_paths
    >>> from icqf.workflow import StudyOptions, read_study
    >>> answers, codebook = demo_paths()
    >>> options = StudyOptions.of({"answers": answers, "codebook": codebook, "subscales": ["Worry"]})
    >>> read_study(options).questionnaire.answers.shape
    (600, 15)
    """
    stream = stream_of(options)
    sample = None if stream is None else sample_of(stream, seed=options.seed)
    table, columns = study_columns(options, labels, answers=None if sample is None else sample.table)
    confounds = list(options.confounds)
    for name in labels:
        require_column(table, name, "a label")
    draft = assemble(table, **columns | {"confounds": list(dict.fromkeys([*confounds, *labels]))})
    questionnaire = Questionnaire(**vars(draft))
    if questionnaire.n_participants == 0:
        raise InputError(f"{questionnaire.source}: no participant is left to fit; every row is empty.")
    for item, low, high in questionnaire.ranges().itertuples():
        try:
            refuse_wide_range(str(item), low, high)
        except InputError as error:
            raise error.at(questionnaire.source) from None
    beside = questionnaire.confounds
    study = Study(
        questionnaire.with_confounds(beside[confounds] if beside is not None and confounds else None),
        labels=None if beside is None or not labels else beside[list(labels)],
        name="study-labelled" if labels else "study",
        title=questionnaire.source,
        files=input_files(options),
        n_rows=len(table.frame),
    )
    return study if stream is None or sample is None else sampled_study(study, stream, options, sample.n_rows)


def check_study(options: StudyOptions) -> Findings:
    """Look for what would spoil a fit of the study that the options name.

    Examples
    --------
    >>> from icqf.datasets import demo_paths
    >>> from icqf.workflow import StudyOptions, check_study
    >>> answers, codebook = demo_paths()
    >>> check_study(StudyOptions.of({"answers": answers, "codebook": codebook})).must_fix
    False
    """
    stream = stream_of(options)
    sample = None if stream is None else sample_of(stream, seed=options.seed).table
    table, columns = study_columns(options, answers=sample)
    return check_table(
        table,
        smallest_category=options.smallest_category,
        missing_confounds=options.missing_confounds,
        **columns,
    )


def check_table(
    source: Any,
    *,
    dictionary: str | os.PathLike[str] | None = None,
    smallest_category: int = SMALLEST_CATEGORY,
    missing_confounds: str = "error",
    **columns: Any,
) -> Findings:
    """Look for what would spoil a fit of a table; a file that cannot be read at all raises `InputError`.

    Parameters
    ----------
    source : Table, table of pandas, polars or another library, or path
        What to look at. The other parameters are those of `icqf.io.read_questionnaire`.
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
        table = Table(frame, "table", np.arange(1, len(frame) + 1), id=recognised_id(frame.columns))
    elif isinstance(source, Table):
        table = source
    else:
        texts = [name for name in (columns.get("id"), columns.get("groups")) if name]
        table = read_table(source, dictionary=dictionary, text=texts)
    table = keep_visit(table, columns.pop("visit", None))
    draft, faults = drafted(table, columns)
    return check(
        draft,
        faults,
        smallest_category=smallest_category,
        missing_confounds=missing_confounds,
        n_rows=len(table.frame),
    )


def drafted(table: Table, columns: Mapping[str, Any]) -> tuple[Draft, list[InputError]]:
    """Return the answers of a table as they were found, and what was wrong with them when they were read."""
    faults: list[InputError] = []
    return assemble(table, **columns, fault=faults.append), faults


def input_files(options: StudyOptions) -> tuple[Path, ...]:
    """Return every file that is read, a BIDS sidecar included."""
    files = [options.answers, options.codebook, options.dictionary, options.participants]
    sidecar = options.answers.with_suffix(".json")
    if options.dictionary is None and options.answers.suffix.lower() == ".tsv" and sidecar.is_file():
        files.append(sidecar)
    return tuple(path for path in files if path is not None)


def study_columns(
    options: StudyOptions, labels: Sequence[str] = (), *, answers: Table | None = None
) -> tuple[Table, dict[str, Any]]:
    """Return the table of answers (unless it is given, read here), and what its columns are."""
    texts = [name for name in (options.id, options.groups) if name]
    if answers is None:
        answers = read_table(options.answers, dictionary=options.dictionary, text=texts)
    table = keep_visit(answers, options.visit)
    if options.participants is not None:
        beside = [*options.confounds, *(name for name in (options.groups, options.weights) if name), *labels]
        table = joined_by_id(table, read_table(options.participants, text=texts), beside, id=options.id)
    entries = None if options.codebook is None else read_codebook(options.codebook)
    return table, {
        "codebook": entries,
        "id": options.id,
        "confounds": options.confounds,
        "groups": options.groups,
        "weights": options.weights,
        "items": _wanted_items(options, table, entries),
        "missing_codes": options.missing_codes,
        "reverse": options.reverse,
    }


def _wanted_items(
    options: StudyOptions, table: Table, entries: tuple[Item, ...] | None
) -> tuple[str, ...] | None:
    """Return the names and globs of the items to keep: those named, and those of the subscales named."""
    if not options.subscales:
        return options.items or None
    known = table.items if entries is None else entries
    scales = {item.subscale for item in known if item.subscale}
    if not scales:
        source = table.source if options.codebook is None else options.codebook.name
        raise InputError(f"{source}: no item has a subscale, so none can be selected by it.")
    for name in options.subscales:
        if name not in scales:
            raise InputError(
                f"There is no subscale {name!r}.{did_you_mean(name, scales)} The codebook has "
                f"{listed(sorted(scales), most=12)}."
            )
    return (*options.items, *(item.name for item in known if item.subscale in options.subscales))
