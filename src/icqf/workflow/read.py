"""From the options to a study."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from icqf.data.questionnaire import Item, Questionnaire
from icqf.data.study import Study
from icqf.errors import InputError
from icqf.io.readers.questionnaires import StudyTable, read_files
from icqf.io.readers.tables import Table, require_column
from icqf.io.study_files import StudyFiles
from icqf.screening.ranges import refuse_wide_range
from icqf.workflow.large import sample_of, sampled_study, stream_of
from icqf.workflow.options import StudyOptions, as_options


def read_study(
    options: StudyFiles | str | os.PathLike[str], *, labels: Sequence[str] = (), **more: Any
) -> Study:
    """Read a study's files.

    Parameters
    ----------
    options : StudyOptions or path
        The files and the roles of their columns, or the table of answers.
    labels : sequence of str
        Columns of diagnoses or other labels.
    **more
        Options by name, such as ``codebook="items.csv"`` and ``id="pid"``; see `icqf.io.StudyFiles`.

    Examples
    --------
    >>> from icqf.datasets import demo_paths
    >>> from icqf.workflow import read_study
    >>> answers, codebook = demo_paths()
    >>> read_study(answers, codebook=codebook, subscales=["Worry"]).questionnaire.answers.shape
    (600, 15)
    """
    return study_from(as_options(options, more, StudyOptions), labels=labels)


def study_from(
    options: StudyOptions,
    *,
    labels: Sequence[str] = (),
    table: Table | None = None,
    entries: tuple[Item, ...] | None = None,
) -> Study:
    """Read a study's files; the table of answers and the entries of the codebook may be at hand."""
    stream = stream_of(options) if table is None else None
    sample = None if stream is None else sample_of(stream, seed=options.seed)
    read = read_files(
        options, table=table if sample is None else sample.table, entries=entries, beside=labels
    )
    for name in labels:
        require_column(read.table, name, "a label")
    both = tuple(dict.fromkeys([*options.confounds, *labels]))
    questionnaire = replace(read, files=replace(read.files, confounds=both)).questionnaire()
    _refuse_unusable(questionnaire)
    beside = questionnaire.confounds
    own = beside[list(options.confounds)] if beside is not None and options.confounds else None
    study = study_of(read, questionnaire.with_confounds(own))
    if labels and beside is not None:
        study = replace(study, labels=beside[list(labels)], name="study-labelled")
    return study if stream is None or sample is None else sampled_study(study, stream, options, sample.n_rows)


def study_of(read: StudyTable, questionnaire: Questionnaire) -> Study:
    """A questionnaire as a study that says where it comes from."""
    return Study(
        questionnaire, title=questionnaire.source, files=read.files.paths, n_rows=len(read.table.frame)
    )


def _refuse_unusable(questionnaire: Questionnaire) -> None:
    if questionnaire.n_participants == 0:
        raise InputError(f"{questionnaire.source}: no participant is left to fit; every row is empty.")
    for item, low, high in questionnaire.ranges().itertuples():
        try:
            refuse_wide_range(str(item), low, high)
        except InputError as error:
            raise error.at(questionnaire.source) from None
