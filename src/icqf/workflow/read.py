"""From the options to the data of a run, with an account of what was read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from icqf.data.check import Findings, check
from icqf.data.questionnaire import Item, Questionnaire
from icqf.errors import InputError, did_you_mean, listed
from icqf.io.codebook import read_codebook
from icqf.io.readers.questionnaires import read_questionnaire
from icqf.io.readers.tables import Table, read_table
from icqf.workflow.options import StudyOptions

WIDEST_RANGE = 1e6


@dataclass(frozen=True, eq=False)
class Study:
    """What was read: the questionnaire, its items with the ranges in use, the weights, and the files."""

    questionnaire: Questionnaire
    items: tuple[Item, ...]
    weights: pd.Series | None
    rows_in: int
    inputs: tuple[Path, ...]


def read_study(options: StudyOptions) -> Study:
    """Read the files that the options name.

    Examples
    --------
    >>> from icqf.datasets import demo_paths
    >>> from icqf.workflow.options import StudyOptions
    >>> from icqf.workflow.read import read_study
    >>> answers, codebook = demo_paths()
    >>> options = StudyOptions.of({"answers": answers, "codebook": codebook, "subscales": ["Worry"]})
    >>> read_study(options).questionnaire.answers.shape
    (600, 15)
    """
    texts = [name for name in (options.id, options.groups) if name]
    table = read_table(options.answers, dictionary=options.dictionary, text=texts)
    entries = None if options.codebook is None else read_codebook(options.codebook)
    roles = [*options.confounds, *([options.weights] if options.weights else [])]
    questionnaire = read_questionnaire(
        table,
        codebook=entries,
        id=options.id,
        confounds=list(dict.fromkeys(roles)),
        groups=options.groups,
        items=wanted_items(options, table, entries),
        missing_codes=options.missing_codes,
    )
    if questionnaire.n_participants == 0:
        raise InputError(f"{questionnaire.source}: no participant is left to fit; every row is empty.")
    questionnaire, weights = _apart(questionnaire, options)
    items = _with_ranges(questionnaire)
    return Study(questionnaire, items, weights, len(table.frame), input_files(options))


def check_study(options: StudyOptions) -> Findings:
    """Look for what would spoil a fit of the study that the options name."""
    texts = [name for name in (options.id, options.groups) if name]
    table = read_table(options.answers, dictionary=options.dictionary, text=texts)
    entries = None if options.codebook is None else read_codebook(options.codebook)
    return check(
        table,
        codebook=entries,
        id=options.id,
        confounds=options.confounds,
        groups=options.groups,
        items=wanted_items(options, table, entries),
        missing_codes=options.missing_codes,
    )


def _with_ranges(questionnaire: Questionnaire) -> tuple[Item, ...]:
    """Return the items with the ranges that are used, observed ones included."""
    for name, low, high in questionnaire.ranges().itertuples():
        if high - low > WIDEST_RANGE:
            raise InputError(
                f"{questionnaire.source}: item {name!r} would have the range {low:g} to {high:g}, which "
                "is no answer scale. Leave out what is no item, or declare the range in a codebook."
            )
    return questionnaire.with_observed_ranges().items


def wanted_items(
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


def input_files(options: StudyOptions) -> tuple[Path, ...]:
    """Return every file that is read, a BIDS sidecar included."""
    files = [options.answers, options.codebook, options.dictionary]
    sidecar = options.answers.with_suffix(".json")
    if options.dictionary is None and options.answers.suffix.lower() == ".tsv" and sidecar.is_file():
        files.append(sidecar)
    return tuple(path for path in files if path is not None)


def _apart(questionnaire: Questionnaire, options: StudyOptions) -> tuple[Questionnaire, pd.Series | None]:
    """Take the weights, which were read beside the confounds, out of them."""
    table, name = questionnaire.confounds, options.weights
    if name is None or table is None:
        return questionnaire, None
    weights = pd.to_numeric(table[name], errors="coerce").astype(float)
    values = weights.to_numpy()
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if bad.size:
        found = table[name].iloc[bad[0]]
        what = "is missing" if pd.isna(found) else f"is {found!r}"
        more = f" (and for {bad.size - 1} more)" if bad.size > 1 else ""
        raise InputError(
            f"{questionnaire.source}: the weight in column {name!r} {what} for participant "
            f"{str(weights.index[bad[0]])!r}{more}. Weights are numbers of at least 0."
        )
    rest = table[list(options.confounds)] if options.confounds else None
    return replace(questionnaire, confounds=rest), weights
