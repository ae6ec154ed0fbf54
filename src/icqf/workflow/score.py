"""Score new participants with a fitted model, from file to table."""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from icqf.data.parameters import Visit, parameter_error
from icqf.data.questionnaire import Item, Questionnaire
from icqf.errors import InputError
from icqf.extensions.longitudinal import LongitudinalICQF, is_longitudinal
from icqf.io.codebook import read_codebook
from icqf.io.readers.confounds import as_the_model_knows
from icqf.io.readers.files import read_table
from icqf.io.readers.questionnaires import NOT_IN_CODEBOOK, StudyTable
from icqf.io.readers.tables import Table
from icqf.io.study_files import StudyFiles
from icqf.io.write import TableWriter, table_writer
from icqf.models.icqf import ICQF
from icqf.workflow.modelled import (
    DIRECTIONS_UNKNOWN,
    known_items,
    read_for_model,
    require_model_columns,
)
from icqf.workflow.modelled_batches import FaultyBatch, ModelledBatches, fits_in_memory, in_batches
from icqf.workflow.named import DECIMALS
from icqf.workflow.visits import visit_rows

Task = TypeVar("Task")
Done = TypeVar("Done")
ROWS_AT_A_TIME = 16384


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores by participant id, and what was done to the data on the way.

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.workflow import Scored
    >>> scored = Scored(pd.DataFrame({"factor1": [0.2, None]}, index=["P1", "P2"]), notes=(), n_silent=1)
    >>> scored.scores["factor1"].tolist(), scored.n_silent
    ([0.2, nan], 1)
    """

    scores: pd.DataFrame
    notes: tuple[str, ...]
    n_silent: int


def score_file(
    model: str | os.PathLike[str],
    answers: str | os.PathLike[str],
    *,
    codebook: str | os.PathLike[str] | None = None,
    dictionary: str | os.PathLike[str] | None = None,
    id: str | None = None,
    missing_codes: Iterable[float | str] = (),
    visit: Visit = None,
    begin: Callable[[], object] | None = None,
) -> Scored:
    """Score the participants of a file with the model of another.

    Parameters
    ----------
    model : path
        A model file. The ranges, directions and missing codes of its items are used.
    answers : path
        A table with the model's items and confounds.
    codebook : path, optional
        Directions, missing codes and labels, for a model file that holds none, or instead of those it holds.
        An entry of a confound says which of its values is which category of the model.
    dictionary, id, missing_codes, visit
        As in `icqf.io.read_questionnaire`.
    begin : callable, optional
        Called when the files have been read and before the participants are scored.

    Returns
    -------
    Scored
        Participants who answered nothing are kept, with empty scores.

    Examples
    --------
    >>> import tempfile
    >>> from icqf.datasets import demo_paths
    >>> from icqf.workflow import StudyOptions, fit_study, score_file, write_results
    >>> answers, codebook = demo_paths()
    >>> asked = {"answers": answers, "codebook": codebook, "n_components": 2, "beta": 0.1, "report": False}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     names = write_results(fit_study(StudyOptions.of(asked)), f"{folder}/results")
    ...     scored = score_file(f"{folder}/results/model.icqf", answers)
    >>> scored.scores.shape
    (600, 2)
    """
    frames = _Frames()
    asked = _ToScore(model, answers, codebook, dictionary, id, tuple(missing_codes), visit)
    done = _score(asked, lambda: nullcontext(frames.anew()), begin)
    return Scored(pd.concat(frames.parts), done.notes, done.n_silent)


@dataclass(frozen=True)
class ScoresWritten:
    """What `write_scores` wrote, and what was done to the data on the way.

    Examples
    --------
    >>> from icqf.workflow import ScoresWritten
    >>> ScoresWritten(n_participants=600, n_silent=2, notes=()).n_participants
    600
    """

    n_participants: int
    n_silent: int
    notes: tuple[str, ...]


def write_scores(
    model: str | os.PathLike[str],
    answers: str | os.PathLike[str],
    out: str | os.PathLike[str] | IO[bytes],
    *,
    format: str | None = None,
    codebook: str | os.PathLike[str] | None = None,
    dictionary: str | os.PathLike[str] | None = None,
    id: str | None = None,
    missing_codes: Iterable[float | str] = (),
    visit: Visit = None,
    begin: Callable[[], object] | None = None,
) -> ScoresWritten:
    """Score the participants of a file of any size with the model of another, and write their scores.

    Parquet files, folders of Parquet files with the same columns, Arrow files and plain delimited text are
    read, scored and written batch by batch; other files are read whole.

    Parameters
    ----------
    model, answers
        As in `score_file`; a folder of Parquet files is one table.
    out : path or binary file
        The table to write, which is there when all participants have been scored. An open file gets CSV.
    format : {"csv", "parquet", "xlsx", "sav"}, optional
        None: by the ending of `out`. CSV and Parquet are written batch by batch.
    codebook, dictionary, id, missing_codes, visit
        As in `score_file`.
    begin : callable, optional
        Called when the first participants have been read and before they are scored.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from icqf import ICQF
    >>> from icqf.datasets import demo_paths, load_demo
    >>> from icqf.workflow import write_scores
    >>> with tempfile.TemporaryDirectory() as name:
    ...     folder = pathlib.Path(name)
    ...     ICQF(2).fit(load_demo()).save(folder / "model.icqf")
    ...     done = write_scores(folder / "model.icqf", demo_paths().answers, folder / "scores.csv")
    ...     written = (folder / "scores.csv").read_text().splitlines()
    >>> done.n_participants, written[0]
    (600, 'child_id,factor1,factor2')
    """

    def opened() -> AbstractContextManager[Sink]:
        if isinstance(out, (str, os.PathLike)):
            return table_writer(out, format=format, decimals=DECIMALS)
        out.seek(0)
        out.truncate()
        return nullcontext(TableWriter(out, "csv", DECIMALS))

    asked = _ToScore(model, answers, codebook, dictionary, id, tuple(missing_codes), visit)
    return _score(asked, opened, begin)


class Sink(Protocol):
    """What takes scores, part by part."""

    def rendered(self, frame: pd.DataFrame) -> Any:
        """A part in the form it is taken in; called in several threads."""
        ...

    def add(self, part: Any) -> None:
        """Take the next part."""
        ...


class _Frames:
    """A sink that keeps the scores in memory."""

    def anew(self) -> _Frames:
        self.parts: list[pd.DataFrame] = []
        return self

    def rendered(self, frame: pd.DataFrame) -> pd.DataFrame:
        return frame

    def add(self, part: pd.DataFrame) -> None:
        self.parts.append(part)


@dataclass(frozen=True, eq=False)
class _ToScore:
    """The files, and how the answers are read."""

    model: str | os.PathLike[str]
    answers: str | os.PathLike[str]
    codebook: str | os.PathLike[str] | None
    dictionary: str | os.PathLike[str] | None
    id: str | None
    missing_codes: tuple[float | str, ...]
    visit: Visit


Opened = Callable[[], AbstractContextManager[Sink]]
Begin = Callable[[], object] | None


def _score(asked: _ToScore, opened: Opened, begin: Begin) -> ScoresWritten:
    """Score a file batch by batch where its format allows that, and whole where it must be."""
    given = () if asked.codebook is None else read_codebook(asked.codebook)
    if is_longitudinal(asked.model):
        if asked.visit:
            raise parameter_error("visit", " has no meaning for a model of repeated visits; leave it out.")
        scored = _score_visits(asked, given, begin)
        with opened() as sink:
            sink.add(sink.rendered(scored.scores))
        return ScoresWritten(len(scored.scores), scored.n_silent, scored.notes)
    fitted = ICQF.load(asked.model)
    found = in_batches(
        fitted,
        asked.answers,
        batch_rows=ROWS_AT_A_TIME,
        given=given,
        dictionary=asked.dictionary,
        id=asked.id,
        missing_codes=asked.missing_codes,
        visit=asked.visit,
    )
    if isinstance(found, ModelledBatches):
        try:
            done = _scored(fitted, found.questionnaires(), opened, begin, found.stream.source)
        except FaultyBatch as faulty:
            # What is wrong is said of the whole table: how many answers, and which visits tell rows apart.
            if not fits_in_memory(asked.answers, found.stream):
                raise faulty.fault from None
        else:
            found.warn()
            return replace(done, notes=found.notes)
    read = read_for_model(
        asked.model,
        found if isinstance(found, Table) else asked.answers,
        codebook=asked.codebook,
        dictionary=asked.dictionary,
        id=asked.id,
        missing_codes=asked.missing_codes,
        visit=asked.visit,
    )
    whole = read.questionnaire
    # All that can be said about the confounds is said here, once for all participants.
    fitted.confound_encoder_.transform(whole.confounds, n_rows=whole.n_participants)
    starts = range(0, whole.n_participants, ROWS_AT_A_TIME)
    ends = (min(start + ROWS_AT_A_TIME, whole.n_participants) for start in starts)
    parts = (whole.take(np.arange(start, end)) for start, end in zip(starts, ends, strict=True))
    return replace(_scored(fitted, parts, opened, begin, whole.source), notes=read.notes)


def _scored(
    model: ICQF, questionnaires: Iterator[Questionnaire], opened: Opened, begin: Begin, source: str
) -> ScoresWritten:
    """Score participants batch by batch, in as many threads as there are processors, into a sink."""
    first = list(islice(questionnaires, 1))
    if not first:
        raise InputError(
            f"{source}: there is no row of answers in the table.",
            code="no-rows",
            remedy="Give a table with one row per participant.",
        )
    if begin is not None:
        begin()
    names = model.get_feature_names_out()
    n_participants = n_silent = 0
    with opened() as sink:

        def work(read: Questionnaire) -> tuple[Any, int, int]:
            scores = np.asarray(model.transform(read))
            silent = int(np.isnan(scores[:, 0]).sum()) if scores.shape[1] else 0
            frame = pd.DataFrame(scores, index=read.answers.index, columns=names)
            return sink.rendered(frame), len(scores), silent

        for part, n, silent in _in_threads(work, chain(first, questionnaires)):
            sink.add(part)
            n_participants, n_silent = n_participants + n, n_silent + silent
    return ScoresWritten(n_participants, n_silent, ())


def _in_threads(work: Callable[[Task], Done], tasks: Iterator[Task]) -> Iterator[Done]:
    """Do the tasks in threads, in order, and take only a few more tasks than there are threads."""
    threads = os.cpu_count() or 1
    waiting: deque[Future[Done]] = deque()
    with (
        warnings.catch_warnings(),
        # Without the limit every thread would start threads of its own for its small products.
        threadpool_limits(1, user_api="blas"),
        ThreadPoolExecutor(threads) as pool,
    ):
        warnings.simplefilter("ignore", UserWarning)
        for task in tasks:
            waiting.append(pool.submit(work, task))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _score_visits(asked: _ToScore, given: tuple[Item, ...], begin: Begin) -> Scored:
    """Score participants by all their visits in the file, with a longitudinal model."""
    fitted = LongitudinalICQF.load(asked.model)
    participant, confounds = asked.id or fitted.participant, list(fitted.confounds)
    table = read_table(asked.answers, dictionary=asked.dictionary, text=[participant])
    require_model_columns(table, [participant], "participant column")
    require_model_columns(table, [fitted.age], "age column")
    require_model_columns(table, fitted.items_, "item")
    require_model_columns(table, confounds, "confound")
    categories = {column.name: column.categories for column in fitted.confound_encoder_.columns}
    table = as_the_model_knows(table, categories, (*given, *table.items, *fitted.codebook_.confounds))
    items = known_items(fitted, given)
    files = StudyFiles(Path(asked.answers), missing_codes=asked.missing_codes)
    visits = visit_rows(StudyTable(table, files, items), participant, fitted.age, confounds)
    if begin is not None:
        begin()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        scores = fitted.set_params(participant=participant).transform(visits)
    notes = [note for note in visits.notes if not note.startswith(NOT_IN_CODEBOOK)]
    if not given and not fitted.codebook_.items:
        notes.insert(0, DIRECTIONS_UNKNOWN)
    return Scored(scores, tuple(notes), int(scores.iloc[:, 0].isna().sum()))


def model_items(model: str | os.PathLike[str]) -> tuple[ICQF, tuple[Item, ...]]:
    """Load a model and what its file says about the items."""
    fitted = ICQF.load(model)
    return fitted, fitted.codebook_.items
