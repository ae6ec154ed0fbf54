"""Fit and report every instrument of a battery separately, and write one summary table."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from icqf.data.study import Study
from icqf.engines.journal import Journal, WorkJournal, fingerprint
from icqf.engines.progress import Progress
from icqf.errors import Advice, InputError, counted, shown_share
from icqf.io.study_files import FILES
from icqf.io.write import write_table
from icqf.plotting.comparison import battery_overview
from icqf.plotting.style import default_settings
from icqf.report.blocks import Grid, Picture, Section
from icqf.report.document import Document, made_by, write_document
from icqf.workflow.fit import StudyFit, expected_seconds, fit_study, run_provenance, write_results
from icqf.workflow.options import StudyOptions
from icqf.workflow.read import InstrumentFile, find_instruments, folder_name
from icqf.workflow.results_folder import PROVENANCE, shared_folder

JOURNAL = "batch.journal"
SUMMARY = "summary"
_TITLES = {
    "name": "Instrument",
    "items": "Items",
    "subscales": "Subscales",
    "participants": "Participants",
    "missing": "Missing",
    "k": "k",
    "beta": "β",
    "explained": "Explained",
    "found_again": "Found again",
}
# Errors that an unusable file may raise; they are listed, and the other instruments are fitted.
_UNUSABLE = (ValueError, OSError, ArithmeticError, MemoryError)


@dataclass(frozen=True, eq=False)
class BatchResult:
    """The results of all instruments.

    `table` has one row per instrument that was fitted; of its columns, ``missing`` is a share of answers,
    ``explained`` one of variance, ``found_again`` counts factors with a replication probability of one half
    or more, and ``expected_again`` is the sum of the probabilities. `kept` are instruments that an earlier
    run had finished, `files` those beside their folders, `directions` warnings about items that run against
    the others.
    """

    table: pd.DataFrame
    failures: dict[str, Exception]
    kept: tuple[str, ...] = ()
    files: tuple[str, ...] = field(default=())
    directions: dict[str, Warning] = field(default_factory=dict)


def run_batch(
    options: StudyOptions,
    out: Path,
    *,
    force: bool = False,
    checkpoint: Path | None = None,
    callback: Callable[[Progress], object] | None = None,
    title: str = "",
) -> BatchResult:
    """Search, fit and report each instrument of a battery, and write a summary table.

    `options.answers` is a folder with one file per instrument, or a wide table (see `find_instruments`). An
    instrument that cannot be read or fitted is listed with the reason, and the others are fitted. Finished
    instruments are kept: the same call continues an interrupted run, and refits only those whose files have
    changed. `checkpoint` is the journal of all searches.
    """
    started, clock, instruments = datetime.now(UTC), time.perf_counter(), find_instruments(options)
    inputs = dict.fromkeys(path for each in instruments for path in each.options.paths)

    def provenance() -> dict[str, Any]:
        return run_provenance(options, started, time.perf_counter() - clock, ())

    with shared_folder(out, "batch", provenance, inputs=inputs):
        if force:
            (out / JOURNAL).unlink(missing_ok=True)
        journal = WorkJournal.at(checkpoint) if options.searches else None
        return _run(options, instruments, out, journal, callback, title)


def read_instruments(options: StudyOptions) -> dict[str, Study | Exception]:
    """Return each instrument as it would be fitted, or the error if it cannot be read."""
    studies: dict[str, Study | Exception] = {}
    for instrument in find_instruments(options):
        try:
            studies[instrument.name] = instrument.read()[1]
        except _UNUSABLE as error:
            studies[instrument.name] = error
    return studies


def _run(
    options: StudyOptions,
    instruments: Sequence[InstrumentFile],
    out: Path,
    journal: WorkJournal | None,
    callback: Callable[[Progress], object] | None,
    title: str,
) -> BatchResult:
    finished = _finished(out, options)
    known = {record["key"]: record["row"] for record in finished.records}
    rows: dict[str, dict[str, Any]] = {}
    failures: dict[str, Exception] = {}
    directions: dict[str, Warning] = {}
    kept = []
    for at, instrument in enumerate(instruments, 1):
        key = fingerprint(instrument.name, instrument.options, *instrument.options.paths)
        place = out / folder_name(instrument.name)
        if key in known and (place / PROVENANCE).is_file():
            rows[instrument.name] = known[key]
            kept.append(instrument.name)
            continue
        try:
            row, warning = _fit(instrument, place, journal, callback, n_left=len(instruments) - at)
        except _UNUSABLE as error:
            failures[instrument.name] = error
            continue
        finished.append([{"key": key, "row": row}])
        rows[instrument.name] = row
        if warning is not None:
            directions[instrument.name] = warning
    table = pd.DataFrame(list(rows.values()), columns=[*_TITLES, "expected_again"])
    write_table(table.set_index("name"), out / f"{SUMMARY}.csv")
    page = summary_page(table, failures, title=title or options.answers.name, linked=options.report)
    files = (f"{SUMMARY}.csv", *(path.name for path in write_document(out / f"{SUMMARY}.html", page)))
    return BatchResult(table, failures, tuple(kept), files, directions)


def _finished(out: Path, options: StudyOptions) -> Journal:
    """Open the journal of instruments fitted with these settings."""
    shared = {name: value for name, value in vars(options).items() if name not in FILES}
    try:
        return Journal(out / JOURNAL, fingerprint(shared))
    except InputError:
        raise InputError(
            f"{out}: the folder contains results of other settings or of another version of icqf.",
            code="exists",
            remedy=Advice("Choose another one, or add {force=} to replace them.", force=True),
        ) from None


def _fit(
    instrument: InstrumentFile,
    place: Path,
    journal: WorkJournal | None,
    callback: Callable[[Progress], object] | None,
    *,
    n_left: int,
) -> tuple[dict[str, Any], Warning | None]:
    """Fit one instrument, write its folder, and return its row and any warning about directions."""
    options, study = instrument.read()
    each = sum(expected_seconds(options, *study.questionnaire.answers.shape).values())

    def report(progress: Any) -> None:
        if callback is not None and isinstance(progress, Progress):
            after = None if progress.after is None else progress.after + n_left * each
            callback(replace(progress, stage=instrument.name, after=after))

    # they are in the instrument's report
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        fit = fit_study(options, study=study, checkpoint=journal, callback=report)
        write_results(fit, place, tool="batch", force=True)
    return row_of(instrument.name, fit), study.directions.warning


def row_of(name: str, fit: StudyFit) -> dict[str, Any]:
    """Return the row of the summary table for a fit."""
    summary, replication = fit.model.summary(), fit.model.replication_
    chances = None if replication is None else replication["probability"].to_numpy()
    return {
        "name": name,
        "items": len(summary.items),
        "subscales": len({item.subscale for item in fit.study.items if item.subscale}),
        "participants": summary.n_participants,
        "missing": round(summary.share_missing, 6),
        "k": len(fit.model.components_),
        "beta": float(fit.model.beta),
        "explained": round(summary.variance_explained, 6),
        "found_again": None if chances is None else int((chances >= 0.5).sum()),
        "expected_again": None if chances is None else round(float(chances.sum()), 3),
    }


def summary_page(
    table: pd.DataFrame, failures: dict[str, Exception], *, title: str, linked: bool
) -> Document:
    """Return the page of a battery: table, figure and failures.

    With `linked`, each name links to the instrument's report.
    """
    sections = []
    if len(table):
        grid = Grid(
            "Every instrument, searched and fitted separately",
            list(_TITLES.values()),
            [_cells(row) for row in table.to_dict("records")],
            [f"{folder_name(str(name))}/report.html" if linked else "" for name in table["name"]],
        )
        with default_settings():
            figure = battery_overview(table).figure
        caption = "Factors of each instrument; those expected to replicate are in full colour"
        about = (
            "Explained is the share of the answers' variance that factors and confounds explain. A factor "
            "counts as found again if its replication probability is one half or more: how likely another "
            "study like this one, fitted with as many factors, finds it; – if there were too few "
            "participants."
        )
        picture = Picture("factors", figure, caption)  # type: ignore[arg-type]
        sections.append(Section("The instruments", [grid, about, picture]))
    if failures:
        rows = [[name, _reason(error)] for name, error in failures.items()]
        grid = Grid("Instruments that could not be fitted, and why", ["Instrument", "Reason"], rows)
        sections.append(Section("Not fitted", [grid]))
    items, factors = (int(table[name].sum()) for name in ("items", "k"))
    lead = [
        f"{counted(len(table), 'instrument')} with {counted(items, 'item')}: {counted(factors, 'factor')} "
        "in all."
    ]
    if failures:
        lead.append(f"{counted(len(failures), 'instrument')} could not be fitted; see the reasons below.")
    return Document(f"Battery {title}", lead, sections, footer=made_by())


def _reason(error: Exception) -> str:
    """Return why an instrument could not be fitted, without participant ids and paths."""
    text, fields = str((isinstance(error, OSError) and error.strerror) or error), getattr(error, "fields", {})
    return text.replace(repr(fields["participant"]), "of a participant") if "participant" in fields else text


def _cells(row: dict[Any, Any]) -> list[str]:
    def shown(name: str, value: Any) -> str:
        if value is None or (isinstance(value, float) and np.isnan(value)):
            return "–"
        if name == "subscales" and value == 0:
            return "–"
        if name in ("missing", "explained"):
            return shown_share(float(value))
        return f"{value:g}" if isinstance(value, float) else str(value)

    return [shown(name, row[name]) for name in _TITLES]
