"""Score new participants with a fitted model: from a file to a table."""

from __future__ import annotations

import os
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import IO, Any, Protocol, TypeVar

import numpy as np
import pandas as pd

from icqf.analyses.crosswalk import Crosswalk
from icqf.analyses.norms import Norms
from icqf.data.questionnaire import Questionnaire
from icqf.data.settings import parameter_error
from icqf.engines.threads import one_blas_thread
from icqf.errors import InputError, counted, listed
from icqf.io.readers.questionnaires import StudyTable, read_answers, read_files
from icqf.io.readers.table import join_notes
from icqf.io.readers.visit_columns import visits_in
from icqf.io.study_files import StudyFiles
from icqf.io.write import TableWriter, table_writer
from icqf.models.icqf import ICQF
from icqf.models.longitudinal import LongitudinalICQF
from icqf.models.meta import MetaICQF
from icqf.models.score_intervals import (
    FEWEST,
    NOTHING_ANSWERED,
    RELIABLE,
    ScoreIntervals,
    reliable_change,
    score_table,
)
from icqf.workflow.new_answers import (
    FaultyBatch,
    ModelledBatches,
    ModelReader,
    battery_answers,
    files_for_model,
    given_with,
    in_batches,
    load_model_or_crosswalk,
    require_model_columns,
)
from icqf.workflow.options import ScoreColumns
from icqf.workflow.read import visit_rows
from icqf.workflow.results_folder import DECIMALS

Task = TypeVar("Task")
Done = TypeVar("Done")
ROWS_AT_A_TIME = 16384
# The column that says what is missing and why, and its value where nothing is.
MISSING, NOTHING = "missing", "nothing"
Begin = Callable[[], object] | None
_USUAL = ScoreColumns()


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores by participant id, with notes on the data."""

    scores: pd.DataFrame
    notes: tuple[str, ...]
    n_silent: int


def score_file(
    model: str | os.PathLike[str],
    answers: StudyFiles | str | os.PathLike[str],
    *,
    norms: str | os.PathLike[str] | None = None,
    begin: Begin = None,
    columns: ScoreColumns = _USUAL,
    **roles: Any,
) -> Scored:
    """Score the participants in a file with a model file, of a questionnaire, a battery or repeated visits.

    Participants who answered nothing are included, with empty scores; scores about which the answers say
    next to nothing are empty, too. The last column, ``missing``, says which and why. For a battery, there are
    scores of the meta-factors and of the instruments' factors, without intervals.

    Parameters
    ----------
    answers, **roles
        New answers, as in `read_for_model`.
    norms : path, optional
        A norms file of the model (`icqf.analyses.Norms`): adds percentiles and T-scores.
    begin : callable, optional
        Called when the files have been read, before scoring.
    columns : ScoreColumns
        Intervals, visits and change.

    Examples
    --------
    >>> import tempfile
    >>> from icqf import ICQF
    >>> from icqf.datasets import demo_paths, load_demo
    >>> from icqf.workflow import score_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ICQF(2).fit(load_demo()).save(f"{folder}/model.icqf")
    ...     scored = score_file(f"{folder}/model.icqf", demo_paths().answers)
    >>> scored.scores.shape, list(scored.scores.columns[:4])
    ((600, 9), ['factor1', 'factor1_low', 'factor1_high', 'factor1_information'])
    """
    frames = _Frames()
    files = files_for_model(answers, roles)
    done = _score(model, files, lambda: nullcontext(frames.cleared()), begin, columns, norms)
    return Scored(pd.concat(frames.parts), done.notes, done.n_silent)


@dataclass(frozen=True)
class ScoresWritten:
    """Counts of participants scored by `write_scores`, with notes on the data."""

    n_participants: int
    n_silent: int
    notes: tuple[str, ...]


def write_scores(
    model: str | os.PathLike[str],
    answers: StudyFiles | str | os.PathLike[str],
    out: str | os.PathLike[str] | IO[bytes],
    *,
    format: str | None = None,
    norms: str | os.PathLike[str] | None = None,
    begin: Begin = None,
    columns: ScoreColumns = _USUAL,
    **roles: Any,
) -> ScoresWritten:
    """Score the participants in a file of any size with a model file, and write their scores.

    Parquet files, folders of Parquet files with the same columns, Arrow files and plain delimited text are
    read, scored and written in batches; other files are read whole.

    Parameters
    ----------
    model, answers, norms, **roles
        As in `score_file`; a folder of Parquet files is one table.
    out : path or binary file
        The table to write, created when all participants have been scored. CSV is written to an open file.
    format : {"csv", "parquet", "xlsx", "sav"}, optional
        By default, from the ending of `out`. CSV and Parquet are written in batches.
    begin : callable, optional
        Called when the first participants have been read, before scoring.
    columns : ScoreColumns
        Intervals, visits and change.

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
    >>> done.n_participants, written[0].split(",")[:4]
    (600, ['child_id', 'factor1', 'factor1_low', 'factor1_high'])
    """

    def opened() -> AbstractContextManager[Sink]:
        if isinstance(out, (str, os.PathLike)):
            return table_writer(out, format=format, decimals=DECIMALS)
        out.seek(0)
        out.truncate()
        return nullcontext(TableWriter(out, "csv", DECIMALS))

    return _score(model, files_for_model(answers, roles), opened, begin, columns, norms)


class Sink(Protocol):
    """Receives scores, part by part."""

    def rendered(self, frame: pd.DataFrame) -> Any:
        """Return a part in the form that `add` accepts; called in several threads."""
        ...

    def add(self, part: Any) -> None:
        """Add the next part."""
        ...


class _Frames:
    """Collects the scores in memory."""

    def cleared(self) -> _Frames:
        self.parts: list[pd.DataFrame] = []
        return self

    def rendered(self, frame: pd.DataFrame) -> pd.DataFrame:
        return frame

    def add(self, part: pd.DataFrame) -> None:
        self.parts.append(part)


Opened = Callable[[], AbstractContextManager[Sink]]


def _score(
    model: str | os.PathLike[str],
    files: StudyFiles,
    opened: Opened,
    begin: Begin,
    columns: ScoreColumns,
    norms: str | os.PathLike[str] | None,
) -> ScoresWritten:
    fitted = load_model_or_crosswalk(model)
    if norms is not None and not isinstance(fitted, ICQF):
        raise parameter_error("norms", " is for the model of one questionnaire; leave it out.")
    if isinstance(fitted, ICQF):
        known = None if norms is None else Norms.load(norms).for_model(fitted)
        reader = ModelReader(fitted, files, *given_with(files), () if known is None else known.by)
        if columns.visit_column is None:
            return _score_in_parts(reader, opened, begin, columns, known)
        scored = _score_course(reader, begin, columns, known)
    elif columns.visit_column is not None:
        raise parameter_error("visit_column", " applies to the model of one questionnaire; leave it out.")
    elif isinstance(fitted, Crosswalk):
        scored = _score_crosswalk(fitted, files, begin, columns)
    else:
        score_all = _score_battery if isinstance(fitted, MetaICQF) else _score_visits
        scored = score_all(fitted, files, begin)
        if columns.intervals:
            scored = replace(scored, notes=(*scored.notes, _NONE_OF_THIS_KIND))
    with opened() as sink:
        sink.add(sink.rendered(scored.scores))
    n = len(scored.scores) if columns.visit_column is None else scored.scores.index.nunique()
    return ScoresWritten(n, scored.n_silent, scored.notes)


def _score_in_parts(
    reader: ModelReader, opened: Opened, begin: Begin, columns: ScoreColumns, norms: Norms | None
) -> ScoresWritten:
    """Score a file in batches if its format allows, else whole."""
    model = reader.model
    batches = in_batches(reader, batch_rows=ROWS_AT_A_TIME)
    if isinstance(batches, ModelledBatches):
        try:
            source = batches.stream.source
            done = _scored(reader, batches.questionnaires(), opened, begin, source, columns, norms)
        except FaultyBatch as faulty:
            # Read whole, the table gives a better message: how many answers, and which visits differ.
            if not batches.fits_in_memory():
                raise faulty.error from None
            batches = None
        else:
            return replace(done, notes=(*batches.notes, *done.notes))
    whole = reader.whole(batches)
    starts = range(0, whole.n_participants, ROWS_AT_A_TIME)
    ends = (min(start + ROWS_AT_A_TIME, whole.n_participants) for start in starts)
    parts = (whole.take(np.arange(start, end)) for start, end in zip(starts, ends, strict=True))
    try:
        done = _scored(reader, parts, opened, begin, whole.source, columns, norms)
    except FaultyBatch as faulty:
        own, _ = reader.apart(whole)
        model.confound_encoder_.transform(own.confounds, n_rows=whole.n_participants)  # a better message
        raise faulty.fault from None
    return replace(done, notes=(*reader.notes(whole.notes), *done.notes))


@dataclass(frozen=True)
class _Part:
    """Scores of some participants with all that is written beside them.

    `silent` answered nothing, `unsaid` are others' scores that are empty, by factor, and `without` counts why
    there are no percentiles.
    """

    frame: pd.DataFrame
    silent: int
    unsaid: np.ndarray
    without: Counter[str]

    @classmethod
    def of(
        cls,
        model: ICQF,
        read: Questionnaire,
        covariates: pd.DataFrame | None,
        columns: ScoreColumns,
        norms: Norms | None,
    ) -> _Part:
        found = None
        if columns.intervals and model.score_distribution_ is not None:
            found = model.score_intervals(read, level=columns.level)
            frame, names = found.table(), found.scores.columns.to_numpy()
            reasons = found.reasons.to_numpy()
        else:
            names = model.get_feature_names_out()
            frame = pd.DataFrame(np.asarray(model.transform(read)), read.answers.index, names)
            reasons = np.full(frame.shape, NOTHING_ANSWERED, dtype=object)  # the only one without intervals
        return cls.beside(frame, list(names), reasons, covariates, norms, told=found is not None)

    @classmethod
    def beside(
        cls,
        frame: pd.DataFrame,
        names: list[str],
        reasons: np.ndarray,
        covariates: pd.DataFrame | None,
        norms: Norms | None,
        *,
        told: bool,
    ) -> _Part:
        """With percentiles and, where intervals or percentiles are told, what is missing."""
        why, without = np.full(len(frame), "", dtype=object), Counter[str]()
        if norms is not None:
            added, without = with_percentiles(frame[names], norms, covariates)
            frame = pd.concat([frame, added.iloc[:, len(names) :]], axis=1)
            if without:
                why = norms.reasons(covariates, len(frame)).to_numpy()
        missing = frame[names].isna().to_numpy()
        some = np.asarray(missing.any(axis=1))
        nothing = some.copy()
        nothing[some] = (reasons[some] == NOTHING_ANSWERED).all(axis=1)
        texts = np.full(len(frame), NOTHING, dtype=object)
        for row in np.flatnonzero(some | (why != "") if without else some):
            texts[row] = _reason(names, reasons[row], why[row])
        return cls(
            frame.assign(**{MISSING: texts}) if told or norms is not None else frame,
            int(nothing.sum()) if len(names) else 0,
            missing[~nothing].sum(axis=0),
            without,
        )


def _reason(names: list[str], reasons: Sequence[str], why: str) -> str:
    """Which scores of one participant are missing, and why; and why there are no percentiles."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in zip(names, reasons, strict=True):
        if reason:
            by_reason.setdefault(reason, []).append(name)
    told = [
        f"{'all scores' if len(own) == len(names) else ', '.join(own)}: {reason}"
        for reason, own in by_reason.items()
    ]
    return "; ".join([*told, *([f"percentiles: {why}"] if why else [])])


def _interval_notes(model: ICQF, columns: ScoreColumns, unsaid: np.ndarray) -> tuple[str, ...]:
    """Say how many scores are empty, or why there are no intervals."""
    if not columns.intervals:
        return ()
    if model.score_distribution_ is None:
        return (_NO_INTERVALS,)
    if not unsaid.any():
        return ()
    counts = [f"{name}: {n}" for name, n in zip(model.factor_names_, unsaid, strict=True) if n]
    empty = counted(int(unsaid.sum()), "score")
    return (
        f"{empty} left empty, because the answers given say next to nothing ({listed(counts, most=12)}).",
    )


def _percentile_notes(norms: Norms, without: Counter[str], *, what: str = "participant") -> tuple[str, ...]:
    """Who participants are compared with, and how many have no percentiles, with the reasons."""
    notes, total = [f"Percentiles compare with this sample. {norms.reference}"], without.total()
    if total:
        why = "; ".join(f"{reason} ({count})" for reason, count in sorted(without.items()))
        notes.append(f"{counted(total, what)} {'has' if total == 1 else 'have'} no percentiles: {why}.")
    return tuple(notes)


_NONE_OF_THIS_KIND = "Scores of batteries and of models of repeated visits have no intervals yet."
_NO_INTERVALS = (
    "The scores have no intervals: the model was saved by an earlier icqf, fitted to fewer than "
    f"{FEWEST} participants or on a cluster, or it is an average of models. Fit it again for intervals."
)


def _scored(
    reader: ModelReader,
    questionnaires: Iterator[Questionnaire],
    opened: Opened,
    begin: Begin,
    source: str,
    columns: ScoreColumns,
    norms: Norms | None,
) -> ScoresWritten:
    """Score participants in batches, in one thread per processor, into a sink."""
    first = list(islice(questionnaires, 1))
    if not first:
        raise InputError(
            f"{source}: the table has no rows of answers.",
            code="no-rows",
            remedy="Give a table with one row per participant.",
        )
    if begin is not None:
        begin()
    model = reader.model
    if columns.intervals and model.score_distribution_ is not None:
        score_table(model)  # before threads need it
    encoder = model.confound_encoder_
    without: Counter[str] = Counter()  # reasons for no percentiles
    n_participants = n_silent = 0
    unsaid = np.zeros(len(model.factor_names_), dtype=int)
    doubtful: list[pd.DataFrame] = []  # confounds outside the range of the fit
    with opened() as sink:

        def work(read: Questionnaire) -> tuple[Any, int, _Part, pd.DataFrame | None]:
            read, covariates = reader.apart(read)
            try:
                part = _Part.of(model, read, covariates, columns, norms)
            except InputError as fault:
                rows = read.file_rows
                raise FaultyBatch(fault, after=None if rows is None else int(rows[-1])) from fault
            confounds = read.confounds
            outside = None if confounds is None else confounds[encoder.outside(confounds)]
            return sink.rendered(part.frame), len(part.frame), replace(part, frame=part.frame[:0]), outside

        for rendered, n, part, outside in _in_threads(work, chain(first, questionnaires)):
            sink.add(rendered)
            n_participants, n_silent = n_participants + n, n_silent + part.silent
            unsaid = unsaid + part.unsaid
            doubtful += [] if outside is None or outside.empty else [outside]
            without += part.without
    if doubtful:
        encoder.transform(pd.concat(doubtful))  # warns once for all participants
    notes = _interval_notes(model, columns, unsaid)
    notes += () if norms is None else _percentile_notes(norms, without)
    return ScoresWritten(n_participants, n_silent, notes)


# --- visits -----------------------------------------------------------------------------------------------


def _score_course(reader: ModelReader, begin: Begin, columns: ScoreColumns, norms: Norms | None) -> Scored:
    """Score every visit with the model of one questionnaire, and the change since a participant's first."""
    model, name = reader.model, str(columns.visit_column)
    score_table(model)
    table = read_answers(reader.files, reader.texts)
    visits = visits_in(table, name)
    notes: list[tuple[str, ...]] = []
    found: list[ScoreIntervals] = []
    covariates: list[pd.DataFrame | None] = []
    for visit in visits:
        files = replace(reader.files, visit=(*reader.files.visit, (name, visit)))
        own = replace(reader, files=files)
        read, beside = own.apart(own.whole(table))
        notes.append(tuple(note for note in own.notes(read.notes) if not note.startswith("Kept ")))
        found.append(model.score_intervals(read, level=columns.level))
        covariates.append(beside)
    if begin is not None:
        begin()
    changes = _changes(found) if columns.change else [None] * len(found)
    parts, frames = [], []
    for visit, each, beside, change in zip(visits, found, covariates, changes, strict=True):
        frame = each.table() if columns.intervals else each.scores
        if change is not None:
            frame = pd.concat([frame, _wide(change, each.scores)], axis=1)
        names, reasons = list(each.scores.columns), each.reasons.to_numpy()
        part = _Part.beside(frame, names, reasons, beside, norms, told=columns.intervals)
        part.frame.insert(0, name, visit)
        parts.append(part)
        frames.append(part.frame)
    scores = pd.concat(frames)
    order = sorted(scores.columns, key=lambda column: column == MISSING)  # the first visit has no change
    first_seen = {key: at for at, key in reversed([*enumerate(scores.index)])}
    places = scores.index.map(first_seen)
    scores = scores.iloc[np.argsort(places, kind="stable")][order]
    said = [f"Visits, in this order: {listed(visits, most=12)}.", *join_notes(notes)]
    said += _interval_notes(model, columns, np.sum([part.unsaid for part in parts], axis=0))
    said += _change_notes([change for change in changes if change is not None])
    if norms is not None:
        without = sum((part.without for part in parts), Counter[str]())
        said += _percentile_notes(norms, without, what="visit")
    return Scored(scores, tuple(said), sum(part.silent for part in parts))


def _changes(found: list[ScoreIntervals]) -> list[pd.DataFrame | None]:
    """The change at each visit since the first one of each participant; None where there is none."""
    first: dict[Any, int] = {}
    changes: list[pd.DataFrame | None] = []
    for at, visit in enumerate(found):
        parts = []
        for earlier in range(at):
            ids = [key for key in visit.scores.index if first.get(key) == earlier]
            if ids:
                parts.append(reliable_change(found[earlier].rows(ids), visit.rows(ids)))
        changes.append(pd.concat(parts) if parts else None)
        first |= {key: at for key in visit.scores.index if key not in first}
    return changes


def _wide(change: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """One row per participant, with the columns mood_change, mood_change_low and so on."""
    named = change.rename(columns={"difference": ""}).add_prefix("_change_")
    named.columns = [str(name).rstrip("_") for name in named.columns]
    wide = {
        f"{factor}{name}": named[name].xs(factor, level=1).reindex(scores.index)
        for factor in scores.columns
        for name in named.columns
    }
    return pd.DataFrame(wide, index=scores.index)


def _change_notes(changes: list[pd.DataFrame]) -> list[str]:
    """Say how many have changed reliably, and how many would by chance."""
    if not changes:
        return []
    every = pd.concat(changes)["p_value"].dropna().groupby(level=1, sort=False)
    counts = [f"{name}: {int((p < RELIABLE).sum())} of {len(p)}" for name, p in every]
    chance = f"by chance, up to {RELIABLE:.0%} of unchanged scores"
    return [f"Reliable change since the first visit (p < {RELIABLE}; {chance}): {', '.join(counts)}."]


def _in_threads(work: Callable[[Task], Done], tasks: Iterator[Task]) -> Iterator[Done]:
    """Do the tasks in threads, in order, with only a few waiting."""
    threads = os.cpu_count() or 1
    waiting: deque[Future[Done]] = deque()
    with (
        warnings.catch_warnings(action="ignore", category=UserWarning),
        # Otherwise every thread would start more threads for its small products.
        one_blas_thread(),
        ThreadPoolExecutor(threads) as pool,
    ):
        fault: FaultyBatch | None = None
        while True:
            try:
                task = next(tasks, None)
            except FaultyBatch as error:  # raised after errors in earlier batches
                task, fault = None, error
            if task is None:
                break
            waiting.append(pool.submit(work, task))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
        if fault is not None:
            raise fault


def _score_battery(model: MetaICQF, files: StudyFiles, begin: Begin) -> Scored:
    """Score participants by those instruments of a battery that are present."""
    battery, notes = battery_answers(model, files)
    if begin is not None:
        begin()
    scores = pd.concat([model.transform(battery), model.factor_scores(battery)], axis=1)
    silent = int((~battery.answered.any(axis=1)).sum())
    absent = [name for name in model.instruments_ if name not in battery.instruments]
    if absent:
        notes = (*notes, f"Scored without {listed(absent, most=12)}, which are absent.")
    return Scored(scores, notes, silent)


def _score_crosswalk(made: Crosswalk, files: StudyFiles, begin: Begin, columns: ScoreColumns) -> Scored:
    """Predict scores of another questionnaire."""
    reader = ModelReader(made, files, *given_with(files))
    read = reader.whole()
    if begin is not None:
        begin()
    scores = made.predict(read, columns.level)
    silent = scores[made.scores[0]].isna().to_numpy()
    if not columns.intervals:
        scores = scores[[name for name in scores if not str(name).endswith(("_low", "_high"))]]
    scores[MISSING] = np.where(silent, f"all scores: {NOTHING_ANSWERED}", NOTHING)
    sums = read.keyed_answers()[made.item_names].sum(axis=1, skipna=False)
    beyond = int(((sums < made.shown[0]) | (sums > made.shown[1])).sum())
    notes = [
        *reader.notes(read.notes),
        f"Scores of {made.target!r} are predicted from {made.source!r}, not measured.",
    ]
    if beyond:
        notes.append(
            f"{counted(beyond, 'participant')} answered lower or higher than nearly all from whom the "
            "crosswalk was learned; their predictions are less sure than the intervals say."
        )
    return Scored(scores, tuple(notes), int(silent.sum()))


def _score_visits(model: LongitudinalICQF, files: StudyFiles, begin: Begin) -> Scored:
    """Score every visit in the file with a longitudinal model."""
    if files.visit:
        raise parameter_error("visit", " does not apply to a model of repeated visits; leave it out.")
    participant, confounds = files.id or model.participant, list(model.confounds)
    reader = ModelReader(model, files, *given_with(files))
    own = replace(files, codebook=None, confounds=(model.age, *confounds))
    table = read_files(own, text=[participant]).table
    require_model_columns(table, [participant], "participant column")
    require_model_columns(table, [model.age], "age column")
    reader.require_columns(table)
    read = StudyTable(reader.in_categories(table), files, reader.items)
    visits = visit_rows(read, participant, model.age, confounds)
    if begin is not None:
        begin()
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        scores = model.set_params(participant=participant).transform(visits)
    silent = int(scores.iloc[:, 0].isna().sum())
    return Scored(scores.reset_index(level=1), reader.notes(visits.notes), silent)


def with_percentiles(
    scores: pd.DataFrame, norms: Norms, covariates: pd.DataFrame | None
) -> tuple[pd.DataFrame, Counter[str]]:
    """Add columns such as mood_percentile and mood_t; also count why participants have none."""
    ranks, t = norms.percentiles(scores, covariates), norms.t_scores(scores, covariates)
    added: dict[str, pd.Series] = {}
    for name in norms.factors:
        added |= {f"{name}_percentile": ranks[name], f"{name}_t": t[name]}
    reasons: Counter[str] = Counter() if covariates is None else Counter(norms.reasons(covariates))
    del reasons[""]
    return scores.assign(**added), reasons
