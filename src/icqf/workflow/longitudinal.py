"""A study of repeated visits: read, choose, fit, test for change with age, and write the results."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from icqf.data.questionnaire import Questionnaire
from icqf.data.settings import parameter_error
from icqf.data.study import Study
from icqf.errors import Advice, InputError, counted, did_you_mean, listed
from icqf.io.readers.questionnaires import StudyTable, read_files
from icqf.io.readers.table import Table, require_column
from icqf.io.readers.visit_columns import visit_columns
from icqf.io.study_files import StudyFiles
from icqf.io.write import write_table
from icqf.models.longitudinal import (
    BETAS,
    SMOOTHNESS,
    AgeChanges,
    LongitudinalICQF,
    LongitudinalICQFCV,
    age_changes,
)
from icqf.plotting.loadings import loading_courses
from icqf.plotting.style import default_settings
from icqf.report.blocks import Block, Bullets, Grid, Picture, Section
from icqf.report.document import Document, made_by, write_document
from icqf.workflow.fit import anonymous, run_provenance, user_warnings
from icqf.workflow.naming import DECIMALS
from icqf.workflow.options import LongitudinalOptions, as_options
from icqf.workflow.read import study_of
from icqf.workflow.results_folder import write_folder

FOCUSED = 0.6  # share of a factor's squared loadings in one bin
_GAPS = {
    "bin": "Bin",
    "seen": "Seen",
    "not_seen": "Not seen",
    "asked": "Answers expected",
    "unanswered": "Missing",
}


def gap_sentence(gaps: pd.DataFrame) -> str:
    """Return how much is missing by design and how much by non-response."""
    participants = int(gaps["seen"].iloc[0] + gaps["not_seen"].iloc[0])
    possible = participants * len(gaps)
    visits, expected, missing = (int(gaps[name].sum()) for name in ("seen", "asked", "unanswered"))
    return (
        f"{counted(participants, 'participant')} in {counted(len(gaps), 'bin')}: {visits} of {possible} "
        f"possible visits took place (the other {1 - visits / possible:.0%} are gaps by design or drop-out), "
        f"and {missing} of the {expected} answers at those visits are missing ({missing / expected:.1%}, "
        "gaps by non-response)."
    )


def choice_sentence(fit: VisitsFit) -> str:
    """Return the choice, and what it implies about age."""
    model, search = fit.model, fit.search
    k = len(model.model_.components_)
    chosen = f"{counted(k, 'factor')}, beta {model.beta:g}, smoothness {model.smoothness:g}"
    if search is None:
        return f"Fitted with your settings: {chosen}."
    text = f"Chosen by cross-validation: {chosen}."
    table = search.errors_
    own = table[(table["n_components"] == k) & (table["beta"] == model.beta)].sort_values("smoothness")
    if len(own) > 1:
        pairs = zip(own["smoothness"], own["error"], strict=True)
        errors = ", ".join(f"{value:g}: {error:.4g}" for value, error in pairs)
        text += f" Error on hidden answers by smoothness: {errors}."
        if model.smoothness == own["smoothness"].max():
            text += " The strongest predicts best: letting loadings change with age does not help."
        elif model.smoothness == 0:
            text += " Independent bins predict best; narrower ones may do better still."
    return text


def focus_sentences(fit: VisitsFit) -> list[str]:
    """Name the factors concentrated in one bin."""
    return [
        f"{factor} is concentrated in one bin ({shares.idxmax()}: {shares.max():.0%}): it describes "
        f"participants at that {fit.model.age}, not something lasting. A stronger smoothness "
        "finds what lasts."
        for factor, shares in fit.model.focus_.iterrows()
        if shares.max() > FOCUSED
    ]


def visit_page(fit: VisitsFit) -> Document:
    """Return the page: what was analysed, what is missing and why, and each factor's course over age."""
    gaps = fit.model.gaps_.reset_index()
    rows = [[str(row[name]) for name in _GAPS] for row in gaps.to_dict("records")]
    seen = Grid(
        "Visits by bin: gaps by design or drop-out (not seen), and gaps by non-response (missing)",
        list(_GAPS.values()),
        rows,
    )
    sections = [
        Section(
            "Visits and answers",
            [
                seen,
                " ".join([choice_sentence(fit), *focus_sentences(fit)]),
                "Every participant has one score per factor, from 0 to 1, for all visits together. A loading "
                "is what a factor adds to an item's answer at an age, on the item's own range.",
            ],
        ),
        *_changes_section(fit),
        _courses_section(fit),
    ]
    notes = [*fit.study.questionnaire.notes, *(str(each) for each in fit.warnings)]
    if notes:
        sections.append(Section("Notes", [Bullets(notes)]))
    title = f"{fit.study.title or 'Visits'}: loadings over {fit.model.age}"
    return Document(title, [gap_sentence(fit.model.gaps_)], sections, footer=made_by("icqf longitudinal"))


def _changes_section(fit: VisitsFit) -> list[Section]:
    if fit.changes is None:
        return []
    method = (
        f"Each participant's visits were shuffled over the ages seen {fit.changes.n_permutations} times. q "
        "is the p-value corrected for the number of factors (Benjamini–Hochberg); a change counts if q is at "
        "most 0.05. The same holds for items. If all loadings of a factor rise or fall in proportion, the "
        "participants may have more or less of it: answers cannot distinguish the two."
    )
    return [Section("Do the loadings change with age?", [method, Bullets(str(fit.changes).splitlines())])]


@default_settings()
def _courses_section(fit: VisitsFit) -> Section:
    band = "Bands are 95 % intervals from resampled participants." if "low" in fit.courses else ""
    star = "Items with a star change with age individually." if fit.changes is not None else ""
    legend = " ".join(part for part in (band, star) if part)
    parts: list[Block] = [legend] if legend else []
    for factor in map(str, fit.model.get_feature_names_out()):
        ax = loading_courses(
            fit.courses,
            factor,
            ranges=fit.model.item_range_,
            items=fit.study.questionnaire.item_table(),
            changes=None if fit.changes is None else fit.changes.items,
            names=fit.options.names or None,
            age=fit.model.age,
        )
        caption = f"Loadings of the strongest items of {factor} over {fit.model.age}"
        parts.append(Picture(factor, cast(Figure, ax.figure), caption))
    return Section("Loadings over age", parts)


ROW = "row of the file"
Callback = Callable[[Any], object]


def read_visits(options: StudyFiles | str | os.PathLike[str], **more: Any) -> Study:
    """Read a file with one row per visit."""
    options = as_options(options, more, LongitudinalOptions)
    read = read_files(options)
    participant, age = _who_and_when(read.table, options)
    return study_of(read, visit_rows(read, participant, age, options.confounds))


def visit_rows(read: StudyTable, participant: str, age: str, confounds: Sequence[str]) -> Questionnaire:
    """Return a table as a questionnaire with one row per visit."""
    frame = read.table.frame.assign(**{ROW: [f"row {row}" for row in read.table.rows]})
    roles = replace(read.files, id=ROW, groups=participant, confounds=(age, *confounds))
    return replace(read, table=replace(read.table, frame=frame, id=None), files=roles).questionnaire()


def _who_and_when(table: Table, options: LongitudinalOptions) -> tuple[str, str]:
    participant = options.id or table.id
    if participant is None:
        raise InputError(
            f"{table.source}: no column of participant ids was recognised, so visits cannot be assigned to "
            "participants.",
            code="no-id",
            remedy=Advice("Name it with {id}."),
        )
    require_column(table, participant, "the id")
    for name in ("groups", "weights", "visit"):
        if getattr(options, name):
            raise parameter_error(name, " does not apply to repeated visits; leave it out.")
    if options.penalty != "l1":
        raise parameter_error("penalty", f" must be 'l1' for repeated visits, not {options.penalty!r}.")
    if options.age is not None:
        require_column(table, options.age, "the age")
        return participant, options.age
    names = [str(name) for name in table.frame.columns]
    ages = [name for name in names if name.lower() in ("age", "age_years", "age_at_visit", "visit_age")]
    columns = ages or list(visit_columns(table.frame, participant, table.frame[participant].astype(str)))
    if len(columns) != 1:
        raise InputError(
            f"{table.source}: the column of ages or visits is not clear"
            f"{f' ({listed(columns)})' if columns else ''}.{did_you_mean('age', names)}",
            code="no-age",
            remedy=Advice("Name it with {age}."),
        )
    return participant, columns[0]


@dataclass(frozen=True, eq=False)
class VisitsFit:
    """A fitted study of repeated visits; see `icqf.workflow.StudyFit` for the other fields.

    Attributes
    ----------
    courses : DataFrame
        Each loading's course over age, with intervals if resamples were drawn.
    changes : AgeChanges or None
        The test of change with age, if requested.

    Examples
    --------
    >>> from icqf.workflow import VisitsFit
    >>> "courses" in VisitsFit.__annotations__
    True
    """

    options: LongitudinalOptions
    study: Study
    model: LongitudinalICQF
    scores: pd.DataFrame
    search: LongitudinalICQFCV | None
    courses: pd.DataFrame
    changes: AgeChanges | None
    warnings: tuple[Warning, ...]
    started: datetime
    seconds: float


def fit_visits(
    options: LongitudinalOptions,
    *,
    study: Study | None = None,
    checkpoint: Path | None = None,
    callback: Callback | None = None,
) -> VisitsFit:
    """Read, choose, fit, draw resamples, and test for change with age.

    Parameters
    ----------
    options : LongitudinalOptions
    study : Study, optional
        The visits, if already read (`read_visits`).
    checkpoint : Path, optional
        Journal of the cross-validation and of the test.
    callback : callable, optional
        Called with their progress.

    Examples
    --------
    >>> import tempfile
    >>> from icqf.datasets import make_longitudinal
    >>> from icqf.workflow import LongitudinalOptions, fit_visits
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = f"{folder}/visits.csv"
    ...     make_longitudinal(n=80, n_items=8, n_bins=3, k=2).visits.to_csv(file, index=False)
    ...     options = {"answers": file, "n_components": 2, "beta": 0.1, "smoothness": 1}
    ...     fit = fit_visits(LongitudinalOptions.of({**options, "permutations": 0, "bootstrap": 0}))
    >>> fit.courses.shape
    (48, 5)
    """
    started, clock = datetime.now(UTC), time.perf_counter()
    study = read_visits(options) if study is None else study
    visits = study.questionnaire
    model, search = visits_model(options, visits), None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if options.searches:
            search = LongitudinalICQFCV(
                model,
                n_components=options.n_components or "auto",
                betas=options.beta or BETAS,
                smoothness=options.smoothness or SMOOTHNESS,
                n_splits=options.n_splits,
                n_repeats=options.n_repeats,
                rule=options.rule,  # type: ignore[arg-type]
                n_jobs=options.jobs,
                checkpoint=checkpoint,
                callback=callback,
                random_state=options.seed,
            )
            scores = search.fit_transform(visits)
            model = search.best_estimator_
        else:
            (k,), (beta,), (smoothness,) = options.n_components, options.beta, options.smoothness
            model.set_params(n_components=k, beta=beta, smoothness=smoothness)
            scores = model.fit_transform(visits)
        courses = model.courses()
        if options.bootstrap:
            courses = model.courses(visits, n_resamples=options.bootstrap, n_jobs=options.jobs)
        changes = None
        if options.permutations:
            changes = age_changes(
                model,
                model.restate(visits),
                n_permutations=options.permutations,
                n_jobs=options.jobs,
                checkpoint=checkpoint,
                callback=callback,
            )
    seconds = time.perf_counter() - clock
    messages = user_warnings(caught)
    return VisitsFit(options, study, model, scores, search, courses, changes, messages, started, seconds)


def visits_model(options: LongitudinalOptions, visits: Questionnaire) -> LongitudinalICQF:
    """Return the model described by the options, without k, β and smoothness."""
    if visits.groups is None or visits.confounds is None:
        raise InputError("Visits need participants and ages; read them with read_visits.")
    parameters = options.parameters_without_paper("visits")
    age, *confounds = (str(name) for name in visits.confounds)
    bins: Any = "auto"
    if options.bins:
        bins = options.bins[0] if len(options.bins) == 1 else list(options.bins)
    return LongitudinalICQF(
        participant=str(visits.groups.name),
        age=age,
        confounds=tuple(confounds),
        bins=bins,
        binning=options.binning,  # type: ignore[arg-type]
        within_bin=options.within_bin,  # type: ignore[arg-type]
        weigh_nonresponse=options.weigh_nonresponse,
        random_state=options.seed,
        **{name: own for name, own in parameters.items() if name != "penalty"},
    )


def write_visits(fit: VisitsFit, folder: str | os.PathLike[str], *, force: bool = False) -> list[str]:
    """Write tables, figures, the model and a page into `folder`, and return the names of the files.

    Earlier results are replaced only with `force`.

    Examples
    --------
    >>> import tempfile
    >>> from icqf.datasets import make_longitudinal
    >>> from icqf.workflow import LongitudinalOptions, fit_visits, write_visits
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = f"{folder}/visits.csv"
    ...     make_longitudinal(n=60, n_items=8, n_bins=3, k=1).visits.to_csv(file, index=False)
    ...     options = {"answers": file, "n_components": 1, "beta": 0.1, "smoothness": 1, "report": False}
    ...     fit = fit_visits(LongitudinalOptions.of({**options, "permutations": 0, "bootstrap": 0}))
    ...     names = write_visits(fit, f"{folder}/results")
    >>> "loadings.csv" in names, "model.icqf" in names
    (True, True)
    """
    form = fit.options.format
    tables: dict[str, pd.DataFrame] = {
        "scores": fit.scores,
        "loadings": fit.courses,
        "confound_loadings": fit.model.confound_loadings_.reset_index(),
        "gaps": fit.model.gaps_,
    }
    if fit.changes is not None:
        tables["factor_changes"] = fit.changes.factors
        tables["item_changes"] = fit.changes.items.reset_index()
    if fit.search is not None:
        tables["cv"] = fit.search.cv_results_

    def write(place: Path) -> None:
        for name, table in tables.items():
            write_table(table, place / f"{name}.{form}", decimals=None if name == "cv" else DECIMALS)
        fit.model.save(place / "model.icqf")
        head = "# Repeat this run with: icqf longitudinal --config config.toml --out NEW_FOLDER\n"
        options = fit.options.to_toml(folder=Path(folder))
        (place / "config.toml").write_text(head + options, encoding="utf-8")
        if fit.options.report:
            write_document(place / "report.html", visit_page(fit))

    return write_folder(
        *(Path(folder), "longitudinal", write),
        lambda names: _provenance(fit, names),
        force=force,
        inputs=fit.study.files,
    )


def _provenance(fit: VisitsFit, outputs: list[str]) -> dict[str, Any]:
    """Return the content of ``provenance.json``, which names no participant."""
    model, inner = fit.model, fit.model.model_
    return {
        **run_provenance(fit.options, fit.started, fit.seconds, fit.study.files),
        "rows": {"in": fit.study.n_rows, "visits": int(model.gaps_["seen"].sum()), "scored": len(fit.scores)},
        "items": len(model.items_),
        "bins": list(model.bins_.labels),
        "gaps": {name: np.asarray(values).tolist() for name, values in model.gaps_.items()},
        "notes": list(fit.study.questionnaire.notes),
        "warnings": anonymous(fit.warnings),
        "model": {
            "n_components": len(inner.components_),
            "beta": float(model.beta),
            "smoothness": float(model.smoothness),
            "chosen_by": "given" if fit.search is None else "cross-validation",
            "objective": float(inner.objective_),
            "converged": bool(inner.converged_),
            "iterations": int(inner.n_iter_),
        },
        "outputs": outputs,
    }
