"""Read a study, or a battery of instruments; large files are read in parts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from icqf.data.frames import AnswersInParts, SomeAnswers
from icqf.data.questionnaire import Item, Questionnaire
from icqf.data.settings import parameter_error
from icqf.data.study import Study
from icqf.engines.parallel import processes_for
from icqf.errors import Advice, InputError, counted, has_note, listed
from icqf.io.codebook import items_and_instruments, read_instruments
from icqf.io.formats import ARROW, PARQUET, READERS, TEXT
from icqf.io.preregistration import read_preregistration
from icqf.io.readers.questionnaires import NO_IDS, StudyTable, read_answers, read_files
from icqf.io.readers.streams import Batch, Stream, hashed_ids, open_stream, repeated_id
from icqf.io.readers.table import Table, require_column
from icqf.io.study_files import StudyFiles
from icqf.screening.ranges import refuse_wide_range
from icqf.workflow.options import StudyOptions, as_options

ROW = "row of the file"


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
    """Read a study's files, except for a table and codebook entries already read."""
    stream = stream_of(options) if table is None else None
    sample = None if stream is None else sample_of(stream, seed=options.seed)
    planned = entries is None and options.plan is not None and options.codebook is None
    if planned:
        entries = read_preregistration(options.plan or "").items
    read = read_files(
        options, table=table if sample is None else sample.table, entries=entries, beside=labels
    )
    if planned and entries is not None:  # a planned item that is not in the file is a deviation
        there = tuple(item for item in entries if item.name in read.table.frame.columns)
        if not there:
            names = listed(item.name for item in entries)
            raise InputError(
                f"{read.table.source}: none of the {len(entries)} planned items ({names}) is a column.",
                code="other-questionnaire",
                remedy="Check that the plan is for this questionnaire, and that its columns are named alike.",
            )
        read = replace(read, entries=there)
    for name in labels:
        require_column(read.table, name, "a label")
    both = tuple(dict.fromkeys([*options.confounds, *labels]))
    questionnaire = replace(read, files=replace(read.files, confounds=both)).questionnaire()
    _refuse_unusable(questionnaire)
    columns = questionnaire.confounds
    own = columns[list(options.confounds)] if columns is not None and options.confounds else None
    study = study_of(read, questionnaire.with_confounds(own))
    if labels and columns is not None:
        study = replace(study, labels=columns[list(labels)], name="study-labelled")
    return study if stream is None or sample is None else sampled_study(study, stream, options, sample.n_rows)


def study_of(read: StudyTable, questionnaire: Questionnaire) -> Study:
    """Return a questionnaire as a study with its files."""
    return Study(
        questionnaire, title=questionnaire.source, files=read.files.paths, n_rows=len(read.table.frame)
    )


def visit_rows(read: StudyTable, participant: str, age: str, confounds: Sequence[str]) -> Questionnaire:
    """Return a table as a questionnaire with one row per visit."""
    frame = read.table.frame.assign(**{ROW: [f"row {row}" for row in read.table.rows]})
    roles = replace(read.files, id=ROW, groups=participant, confounds=(age, *confounds))
    return replace(read, table=replace(read.table, frame=frame, id=None), files=roles).questionnaire()


def _refuse_unusable(questionnaire: Questionnaire) -> None:
    if questionnaire.n_participants == 0:
        raise InputError(f"{questionnaire.source}: there is no participant to fit; every row is empty.")
    for item, low, high in questionnaire.ranges().itertuples():
        try:
            refuse_wide_range(str(item), low, high)
        except InputError as error:
            raise error.at(questionnaire.source) from None


LARGE = 50_000_000  # cells above which a table is read in parts
SAMPLE = 20_000  # participants used for display and for cross-validation
_CELL_BYTES = 2  # of a cell and its separator in delimited text


def stream_of(options: StudyFiles) -> Stream | None:
    """Open a large file of answers as a stream; None if it is to be read whole."""
    if options.arranged:
        return None
    path = options.answers
    texts = [name for name in (options.id, options.groups) if name]
    if path.is_dir() or (path.is_file() and path.suffix.lower() in (*PARQUET, *ARROW)):
        stream = open_stream(path, text=texts)
        large = path.is_dir() or (stream.n_rows or 0) * len(stream.names) > LARGE
    elif path.is_file() and path.suffix.lower() in TEXT and path.stat().st_size > LARGE * _CELL_BYTES:
        stream = open_stream(path, text=texts)
        large = True
    else:
        return None
    if not large or stream.whole:
        return None
    for name in ("visit", "participants", "dictionary"):
        if getattr(options, name):
            remedies = {
                "visit": "remove the rows of other visits first",
                "participants": "join the two tables first",
                "dictionary": "give a codebook instead",
            }
            raise parameter_error(
                name,
                f" cannot be used with a table that is read in parts ({stream.source}); {remedies[name]}.",
            )
    return stream


def jobs_for(options: StudyOptions, questionnaire: Questionnaire, *, fits: int = 500) -> int:
    """Return the number of processes for a study that is fitted about so many times."""
    answers = questionnaire.n_participants * questionnaire.n_items
    jobs = options.jobs if options.engine == "local" else 1
    return processes_for(jobs, answers, fits)


@dataclass(frozen=True, eq=False)
class Sampled:
    """Some participants of a stream, in the order of the file, and the number of all rows."""

    table: Table
    n_rows: int


def sample_of(stream: Stream, *, size: int | None = None, seed: int = 0) -> Sampled:
    """Draw participants at random, and add those with the lowest or highest answer to an item.

    Thus the sample's ranges are those of all participants.
    """
    rng, size = np.random.default_rng(seed), size or SAMPLE
    ends: dict[str, tuple[float, float]] = {}
    drawn: list[tuple[Batch, np.ndarray, np.ndarray]] = []  # with positions of rows, and their lots
    extreme: list[tuple[Batch, np.ndarray]] = []
    n_rows, limit = 0, np.inf
    for batch in stream.batches():
        lots = rng.random(len(batch))
        chosen = np.flatnonzero(lots < limit)
        drawn.append((_rows(batch, chosen), np.arange(len(chosen)), lots[chosen]))
        outer = _extremes(batch, ends)
        if len(outer):
            extreme.append((_rows(batch, outer), outer))
        n_rows += len(batch)
        together = np.concatenate([lots for _, _, lots in drawn])
        if len(together) > size:
            limit = float(np.partition(together, size)[size])
    parts = [_rows(batch, places[lots < limit]) for batch, places, lots in drawn]
    drawn_and_extreme = _joined([*parts, *(batch for batch, _ in extreme)])
    return Sampled(replace(drawn_and_extreme, source=stream.source), n_rows)


def _rows(batch: Batch, places: np.ndarray) -> Batch:
    content = batch.content
    kept = content.iloc[places] if isinstance(content, pd.DataFrame) else content.take(places)
    return replace(batch, content=kept, rows=batch.rows[places])


def _extremes(batch: Batch, ends: dict[str, tuple[float, float]]) -> np.ndarray:
    """Return the positions of rows with a lower or higher number in some column than all rows before."""
    found: set[int] = set()
    for name, column in batch.frame.items():
        if not pd.api.types.is_numeric_dtype(column.dtype):
            continue
        numbers = column.to_numpy(dtype=float, na_value=np.nan)
        if np.isnan(numbers).all():
            continue
        at = int(np.nanargmin(numbers)), int(np.nanargmax(numbers))
        low, high = ends.get(str(name), (np.inf, -np.inf))
        lowest, highest = (float(numbers[place]) for place in at)
        found |= {at[0]} if lowest < low else set()
        found |= {at[1]} if highest > high else set()
        ends[str(name)] = (min(low, lowest), max(high, highest))
    return np.array(sorted(found), dtype=int)


def _joined(parts: list[Batch]) -> Table:
    """Join the rows of several batches, each row once, in the order of the file."""
    first = parts[0].table()
    frame = pd.concat([part.frame for part in parts], ignore_index=True)
    places = np.concatenate([part.rows for part in parts])
    sources = np.repeat([part.source for part in parts], [len(part) for part in parts])
    where = pd.DataFrame({"source": sources, "row": places}).drop_duplicates()
    order = where.sort_values(["source", "row"]).index
    return replace(first, frame=frame.iloc[order].reset_index(drop=True), rows=places[order])


def everyone_like(stream: Stream, sample: Questionnaire, options: StudyFiles) -> AnswersInParts:
    """Return all participants of a stream, with the items, ranges and directions of a sample."""
    known = sample.with_observed_ranges()
    items = [item.name for item in known.items]
    others = [name for name in (options.id or sample.answers.index.name, options.weights) if name]
    files = replace(options, items=tuple(items), subscales=(), groups=None, reverse=())
    entries = (*known.items, *known.confound_entries)
    wanted = [*items, *options.confounds, *(str(name) for name in others if name in stream.names)]

    def parts() -> Iterator[SomeAnswers]:
        first, ids = 1, []
        for batch in stream.batches(list(dict.fromkeys(wanted))):
            read = StudyTable(replace(batch.table(), first=first), files, entries).questionnaire()
            first += read.n_participants
            if not has_note(read.notes, NO_IDS):
                ids.append(hashed_ids(read.answers.index))
            yield SomeAnswers(read)
        fault = repeated_id(stream, ids, str(sample.answers.index.name))
        if fault is not None:
            raise fault

    return AnswersInParts(parts)


def sampled_study(study: Study, stream: Stream, options: StudyFiles, n_rows: int) -> Study:
    """Return the study of a sample, with all participants as its source."""
    sample = study.questionnaire
    note = f"The table of {counted(n_rows, 'row')} was read in parts."
    if n_rows > SAMPLE:
        note += (
            " Factors and scores are based on all of them; descriptions of participants, intervals, and the "
            "choice of the number of factors are based on a random sample of "
            f"{counted(sample.n_participants, 'participant')}."
        )
    return replace(
        study,
        questionnaire=replace(sample, notes=(*sample.notes, note)),
        n_rows=None,
        everyone=everyone_like(stream, sample, options),
        rows_of_everyone=n_rows,
    )


CODEBOOK = re.compile(r"(?:(?P<stem>.+)[._ -])?codebook", re.IGNORECASE)
PARTICIPANTS = "participants"
_OWN = (".journal", ".csv", ".html", ".md", ".png")  # endings of files next to the instruments' folders


@dataclass(frozen=True)
class InstrumentFile:
    """One instrument of a battery, to be read."""

    name: str
    options: StudyOptions

    def read(self) -> tuple[StudyOptions, Study]:
        """Read the instrument, and return it with its own options.

        Numbers of factors for which it has too few items or participants are dropped.
        """
        options, table, entries = self.options, None, None
        if options.codebook is not None and not options.items and options.answers.is_file():
            entries, instruments = items_and_instruments(options.codebook)
            if instruments:
                mine = tuple(item for item, name in instruments.items() if name == self.name)
            else:
                stream = stream_of(options)
                table = None if stream is not None else read_answers(options)
                columns = {*(() if stream is None else stream.names), *(() if table is None else table.frame)}
                mine = tuple(item.name for item in entries if item.name in columns)
            if mine and (instruments or len(mine) < len(entries)):  # the codebook also has other items
                options = replace(options, items=mine)
        study = study_from(options, table=table, entries=entries)
        most = min(study.questionnaire.answers.shape)
        if len(options.n_components) > 1 and options.n_components[0] <= most:
            options = replace(options, n_components=tuple(k for k in options.n_components if k <= most))
        return options, study


def find_instruments(options: StudyOptions) -> list[InstrumentFile]:
    """Find the instruments of a battery."""
    place = options.answers
    if not place.exists():
        raise InputError(f"{place}: there is no such file or folder.")
    return _in_folder(place, options) if place.is_dir() else _in_table(place, options)


def _in_table(path: Path, options: StudyOptions) -> list[InstrumentFile]:
    members: Mapping[str, str] = {}
    if options.codebook is not None:
        members = read_instruments(options.codebook)
    elif options.dictionary is not None:
        members = {item: form for item, form in read_answers(options).forms.items() if form}
    else:
        raise InputError(
            f"{path.name}: this is one table, and the items are not assigned to instruments.",
            code="no-instruments",
            remedy=Advice(
                "Add {codebook} with a column 'instrument', or a dictionary that names the forms, or give a "
                "folder with one file for each instrument."
            ),
        )
    names = list(dict.fromkeys(members.values()))
    if not names:
        book = options.codebook or options.dictionary or path
        raise InputError(
            f"{book.name}: no item is assigned to an instrument. Give a codebook with a column 'instrument'."
        )
    _refuse_alike(names)
    return [
        InstrumentFile(
            name, replace(options, items=tuple(item for item, other in members.items() if other == name))
        )
        for name in names
    ]


def _in_folder(folder: Path, options: StudyOptions) -> list[InstrumentFile]:
    named = {path.resolve() for path in (options.codebook, options.dictionary, options.participants) if path}
    tables = tuple(READERS)
    files = sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in (*tables, ".toml")
        and not path.name.startswith((".", "~"))
        and path.resolve() not in named
    )
    codebooks: dict[str, Path] = {}
    participants, answers = options.participants, []
    for path in files:
        match = CODEBOOK.fullmatch(path.stem)
        if match:
            codebooks[(match["stem"] or "").lower()] = path
        elif path.stem.lower() == PARTICIPANTS:
            participants = participants or path
        elif path.suffix.lower() in tables:
            answers.append(path)
    if not answers:
        raise InputError(
            f"{folder}: the folder contains no table of answers. Put one file per instrument into it, such "
            f"as mood.csv; readable formats are {', '.join(tables)}."
        )
    names = [path.stem for path in answers]
    twice = [path for path in answers if names.count(path.stem) > 1]
    if twice:
        raise InputError(
            f"{folder}: several files are named {twice[0].stem!r} ({listed(path.name for path in twice)}). "
            "Keep one file per instrument, and move the others."
        )
    _refuse_alike(names)
    shared = options.codebook or codebooks.get("")
    return [
        InstrumentFile(
            path.stem,
            replace(
                options,
                answers=path,
                codebook=codebooks.get(path.stem.lower(), shared),
                participants=participants if options.confounds or options.groups or options.weights else None,
            ),
        )
        for path in answers
    ]


def require_ids(name: str, questionnaire: Questionnaire) -> None:
    """Refuse an instrument without participant ids, which cannot be joined to the others."""
    if has_note(questionnaire.notes, NO_IDS):
        raise InputError(
            f"{questionnaire.source}: no column of participant ids is recognised, so instrument {name!r} "
            "cannot be joined to the others.",
            code="no-id-column",
            remedy=Advice("Name the column with {id}; it must have the same name in all files."),
        )


def folder_name(instrument: str) -> str:
    """Return the folder name for an instrument's results, with unsafe characters replaced."""
    return re.sub(r"[^\w.-]+", "_", instrument).strip("._") or "instrument"


def _refuse_alike(names: list[str]) -> None:
    """Refuse instruments whose results folders would have the same name, ignoring case."""
    folders = [folder_name(name).lower() for name in names]
    for name, folder in zip(names, folders, strict=True):
        alike = [other for other, its in zip(names, folders, strict=True) if its == folder and other != name]
        if alike:
            raise InputError(
                f"The instruments {name!r} and {alike[0]!r} would share the folder {folder!r}; rename one."
            )
        if folder in ("summary", "meta") or folder.endswith(_OWN):
            raise InputError(
                f"An instrument cannot be named {name!r}, which is a file of the results; rename it."
            )
