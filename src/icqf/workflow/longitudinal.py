"""A study of repeated visits: read, choose, fit, ask whether the factors stay the same, write the results."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from joblib import effective_n_jobs
from matplotlib.figure import Figure

from icqf.data.questionnaire import Questionnaire
from icqf.data.settings import parameter_error
from icqf.data.study import Study
from icqf.engines.progress import Stages
from icqf.errors import Advice, InputError, counted, did_you_mean, listed
from icqf.io.readers.questionnaires import read_files
from icqf.io.readers.table import Table, require_column
from icqf.io.readers.visit_columns import once_each, visit_columns
from icqf.io.study_files import StudyFiles
from icqf.io.write import write_table
from icqf.models.longitudinal import (
    BY_VISIT,
    CONSTANT,
    SAME,
    SMOOTHNESS,
    TESTING,
    LoadingChanges,
    LongitudinalICQF,
    LongitudinalICQFCV,
)
from icqf.plotting.loadings import label_of, loading_courses
from icqf.plotting.participants import score_courses
from icqf.plotting.style import default_settings
from icqf.report.blocks import Block, Bullets, Grid, Picture, Prose, Section, Span
from icqf.report.document import Document, made_by, write_document
from icqf.workflow.fit import anonymous, expected_seconds, run_provenance, user_warnings
from icqf.workflow.options import LongitudinalOptions, as_options
from icqf.workflow.read import jobs_for, study_of, visit_rows
from icqf.workflow.results_folder import DECIMALS, write_folder

RESAMPLING, WRITING = "Resampling participants", "Writing the report and the tables"  # stages
STRONGEST = 8  # items of a factor in the table of constant loadings
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
    """Return the number of factors and the penalty, and by what they were chosen."""
    k = len(fit.model.model_.components_)
    chosen = f"{counted(k, 'factor')}, beta {fit.model.beta:g}"
    if fit.search is None:
        same = fit.model.smoothness == CONSTANT
        how = "the same loadings at every visit" if same else f"smoothness {fit.model.smoothness:g}"
        return f"Fitted with your settings: {chosen}, {how}."
    return f"Chosen by cross-validation: {chosen}."


def answer_sentences(fit: VisitsFit) -> list[str]:
    """Answer first whether the factors are the same at every visit, then say what that rests on."""
    model, search, changes = fit.model, fit.search, fit.changes
    if model.smoothness == CONSTANT:
        if search is None:
            return ["The factors were set to be the same at every visit.", *_tested(changes)]
        return ["The factors are the same at every visit: one set of loadings serves all.", *_why_same(fit)]
    same = model.same_factors_
    others = same[~same["same"]]
    if len(others):
        text = [
            "The factors are not the same ones at every visit, so differences between their scores at "
            "different visits are not change."
        ]
        for factor, row in others.iterrows():
            like = f"{factor} of {model.age} {row['first']}"
            text.append(
                f"{like} resembles {row['matches']} at {row['second']} more than itself."
                if row["matches"] != factor
                else f"{like} and of {row['second']} have a congruence of only {row['congruence']:.2f} "
                f"(one factor: at least {SAME})."
            )
        text.append("Fit the visits separately (icqf fit --visit), or only those at which the factors agree.")
        return text
    if search is None:
        text = ["The factors are the same ones at every visit; their loadings were allowed to differ."]
    else:
        text = ["The factors are the same ones at every visit, but some items weigh differently in them."]
        gain = search.smoothness_errors_.set_index("smoothness")["error"]
        better = 1 - gain[model.smoothness] / gain[CONSTANT]
        text.append(f"Letting the loadings differ reduces the error on hidden answers by {better:.1%}.")
    return [*text, *_tested(changes)]


def _why_same(fit: VisitsFit) -> list[str]:
    search = fit.search
    if search is None or len(search.smoothness_errors_) == 1:
        return []
    if search.changes_ is None:
        return ["Letting the loadings differ between visits does not predict hidden answers better."]
    text = [
        "Letting the loadings differ between visits predicts hidden answers a little better, but the "
        "steepness with which items rise with the scores differs no more between visits than by chance "
        f"(smallest q = {search.changes_.factors['q'].min():.2f})."
    ]
    levels = search.changes_.level_sentences()
    return [*text, *levels, *["That is a change of these items, not of the factors."] * bool(levels)]


def _tested(changes: LoadingChanges | None) -> list[str]:
    return [] if changes is None else changes.sentences()


def visit_page(fit: VisitsFit) -> Document:
    """Return the page: are the factors the same, what they are, how scores run, and who was seen."""
    gaps = fit.model.gaps_.reset_index()
    rows = [[str(row[name]) for name in _GAPS] for row in gaps.to_dict("records")]
    seen = Grid(
        "Visits by bin: gaps by design or drop-out (not seen), and gaps by non-response (missing)",
        list(_GAPS.values()),
        rows,
    )
    sections = [
        _same_section(fit),
        _scores_section(fit),
        _loadings_section(fit),
        Section("Visits and answers", [choice_sentence(fit), seen]),
    ]
    notes = [*fit.study.questionnaire.notes, *(str(each) for each in fit.warnings)]
    if notes:
        sections.append(Section("Notes", [Bullets(notes)]))
    title = f"{fit.study.title or 'Visits'}: factors over {fit.model.age}"
    return Document(title, [gap_sentence(fit.model.gaps_)], sections, footer=made_by("icqf longitudinal"))


def _same_section(fit: VisitsFit) -> Section:
    answer, *reasons = answer_sentences(fit)
    parts: list[Block] = [Prose([Span(answer, "strong")])]
    if reasons:
        parts.append(Bullets(reasons))
    search = fit.search
    if search is not None and len(search.smoothness_errors_) > 1:
        rows = [
            [
                "the same loadings at every visit"
                if row["smoothness"] == CONSTANT
                else f"{row['smoothness']:g}",
                f"{row['error']:.4f}",
                f"{row['difference']:.4f}",
                f"{row['std_error']:.4f}",
            ]
            for row in search.smoothness_errors_.to_dict("records")
        ]
        head = ["Smoothness", "Error on hidden answers", "Above the best", "Standard error of that"]
        parts.append(Grid("The same loadings, or ones that may differ", head, rows))
        parts.append(
            "The smaller the smoothness, the more loadings may differ between neighbouring visits. The first "
            "line within one standard error of the best is taken; before loadings differ, a test must agree."
        )
    if fit.changes is not None:
        parts.append(
            "q judges the hypothesis that a factor's items rise equally steeply with the scores at every "
            "visit, corrected for the number of factors (Benjamini–Hochberg). It was "
            f"computed by exchanging visits with similar scores {fit.changes.n_permutations} times. Higher "
            "or lower scores at some visits do not count against it, nor do items that are answered higher "
            "or lower at the same scores; these are tested one by one (level_changes.csv)."
        )
    return Section("Are these the same factors at every visit?", parts)


@default_settings()
def _scores_section(fit: VisitsFit) -> Section:
    model = fit.model
    comparable = bool(model.same_factors_["same"].all())
    text = (
        "Every participant has scores, from 0 to 1, at every visit that took place (scores.csv, one row per "
        "participant and visit)."
    )
    if not comparable:
        return Section(
            "Scores over the visits",
            [text, "They are not drawn over time, because the factors are not the same ones at every visit."],
        )
    table = score_summary(fit.scores, model.bins_.labels)
    names = fit.options.names or None
    ax = score_courses(table, places=model.bins_.places, names=names, age=model.age)
    figure = Picture(
        "courses",
        cast(Figure, ax.figure),
        "Scores at each visit: mean, and the middle half of the participants (bar)",
    )
    head = ["Factor", *(str(label) for label in model.bins_.labels)]
    seen = table.drop_duplicates("bin")["n"].tolist()
    rows = [
        [str(factor), *(f"{mean:.2f} ({sd:.2f})" for mean, sd in zip(own["mean"], own["sd"], strict=True))]
        for factor, own in table.groupby("factor", sort=False)
    ]
    rows.append(["participants", *map(str, seen)])
    parts: list[Block] = [text, figure, Grid("Mean score (standard deviation) by visit", head, rows)]
    if min(seen) < 0.9 * max(seen):
        parts.append(
            "Some visits have fewer participants than others: a mean may differ because other people were "
            "seen, not because anyone changed. Compare the same participants (scores.csv)."
        )
    if model.smoothness != CONSTANT:
        parts.append("Loadings differ between visits: compare scores of different visits with caution.")
    return Section("Scores over the visits", parts)


def score_summary(scores: pd.DataFrame, bins: Sequence[str]) -> pd.DataFrame:
    """Return one row per factor and bin: n, mean, sd and quartiles of the scores."""
    rows = []
    for factor in scores.columns:
        for label in bins:
            own = scores.loc[scores.index.get_level_values(1) == label, factor].dropna()
            low, high = own.quantile([0.25, 0.75])
            rows.append((str(factor), label, len(own), own.mean(), own.std(), low, high))
    return pd.DataFrame(rows, columns=["factor", "bin", "n", "mean", "sd", "low", "high"])


@default_settings()
def _loadings_section(fit: VisitsFit) -> Section:
    text = (
        "A loading is what a factor adds to an item's answer at the highest score, on the item's own range."
    )
    if "low" in fit.courses:
        text += " Intervals of 95 % are from resampled participants."
    if fit.model.smoothness != CONSTANT and fit.changes is not None:
        text += " Items with a star differ between visits individually."
    parts: list[Block] = [text]
    items = fit.study.questionnaire.item_table()
    if fit.model.smoothness == CONSTANT:
        first = fit.courses[fit.courses["bin"] == fit.model.bins_.labels[0]]
        for factor, own in first.groupby("factor", sort=False):
            strongest = own[own["loading"] > 0].nlargest(STRONGEST, "loading")
            rows = [
                [label_of(str(row["item"]), items), _loading(row)] for row in strongest.to_dict("records")
            ]
            parts.append(Grid(f"{factor}: strongest items", ["Item", "Loading"], rows))
        return Section("Loadings", parts)
    for factor in map(str, fit.model.get_feature_names_out()):
        ax = loading_courses(
            fit.courses,
            factor,
            ranges=fit.model.item_range_,
            items=items,
            changes=None if fit.changes is None else fit.changes.items,
            names=fit.options.names or None,
            age=fit.model.age,
        )
        caption = f"Loadings of the strongest items of {factor} over {fit.model.age}"
        parts.append(Picture(factor, cast(Figure, ax.figure), caption))
    return Section("Loadings by visit", parts)


def _loading(row: Mapping[Any, Any]) -> str:
    interval = f" ({row['low']:.2f} to {row['high']:.2f})" if "low" in row else ""
    return f"{row['loading']:.2f}{interval}"


Callback = Callable[[Any], object]


def read_visits(options: StudyFiles | str | os.PathLike[str], **more: Any) -> Study:
    """Read a file with one row per visit."""
    options = as_options(options, more, LongitudinalOptions)
    read = read_files(options, visits=True)
    participant, age = _who_and_when(read.table, options)
    read = replace(read, table=once_each(read.table, participant, options, (age,)))
    return study_of(read, visit_rows(read, participant, age, options.confounds))


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
    """A fitted study of repeated visits; see `icqf.workflow.fit.StudyFit`.

    `courses` are the loadings over age, with intervals if resamples were drawn; `scores` have one row per
    participant and visit; `changes` is the test whether loadings differ between visits.
    """

    options: LongitudinalOptions
    study: Study
    model: LongitudinalICQF
    scores: pd.DataFrame
    search: LongitudinalICQFCV | None
    courses: pd.DataFrame
    changes: LoadingChanges | None
    warnings: tuple[Warning, ...]
    started: datetime
    seconds: float
    stages: Stages = field(default_factory=Stages)


def fit_visits(
    options: LongitudinalOptions,
    *,
    study: Study | None = None,
    checkpoint: Path | None = None,
    callback: Callback | None = None,
) -> VisitsFit:
    """Read, choose, fit, ask whether the factors are the same at every visit, and draw resamples."""
    started, clock = datetime.now(UTC), time.perf_counter()
    study = read_visits(options) if study is None else study
    visits = study.questionnaire
    model, search = visits_model(options, visits), None
    jobs = jobs_for(options, visits)
    shape, many = visits.answers.shape, effective_n_jobs(jobs)
    constant = {*options.smoothness} <= {CONSTANT}  # which is usual, unless something else is set
    stages = Stages(callback, _expected_seconds(options, *shape, many=many, constant=constant))
    stages.begin("Cross-validation" if options.searches else "Fitting")
    with warnings.catch_warnings(record=True, action="always") as caught:
        if options.searches:
            search = LongitudinalICQFCV(
                model,
                n_components=options.n_components or "auto",
                betas=options.beta or "auto",
                smoothness=options.smoothness or SMOOTHNESS,
                n_permutations=options.permutations,
                n_splits=options.n_splits,
                n_repeats=options.n_repeats,
                rule=options.rule,
                n_jobs=jobs,
                checkpoint=checkpoint,
                callback=stages,
                random_state=options.seed,
            )
            scores = search.fit_transform(visits)
            model = search.best_estimator_
            changes = search.changes_
        else:
            (k,), (beta,), (smoothness,) = options.n_components, options.beta, options.smoothness
            model.set_params(n_components=k, beta=beta, smoothness=smoothness)
            scores = model.fit_transform(visits)
            changes = None
            if options.permutations:
                stages.begin(TESTING)
                changes = model.changes(visits, n_permutations=options.permutations)
        model.codebook_ = replace(model.codebook_, about=visits.about)
        courses = model.courses()
        if options.bootstrap:
            constant = model.smoothness == CONSTANT
            stages.expect(_expected_seconds(options, *shape, many=many, constant=constant))
            stages.begin(RESAMPLING)
            courses = model.courses(visits, n_resamples=options.bootstrap, n_jobs=jobs)
    seconds = time.perf_counter() - clock
    messages = user_warnings(caught)
    return VisitsFit(
        *(options, study, model, scores, search, courses, changes, messages, started, seconds, stages)
    )


def _expected_seconds(
    options: LongitudinalOptions, n: int, m: int, *, many: int, constant: bool
) -> dict[str, float]:
    """Return the stages of an analysis of visits, and what each takes; `constant` loadings cost little."""
    fit = expected_seconds(replace(options, report=False, bootstrap=0), n, m, jobs=many)
    first = ("Cross-validation", "Fitting the choice", "Fitting")
    stages: dict[str, float] = {name: fit[name] for name in first if name in fit}
    one = n * m / 1e6 * 9
    if len(options.smoothness) != 1:
        stages[BY_VISIT] = 0.1 + 0.2 * one
    if options.permutations:
        stages[TESTING] = options.permutations / 1000 * 6 * one * (0.25 if constant else 1)  # seldom needed
    if options.bootstrap:
        stages[RESAMPLING] = 0.2 + options.bootstrap / 100 * one * (0.2 if constant else 55) / min(many, 8)
    return stages | {WRITING: 0.2 + 0.4 * options.report}


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
    """
    form = fit.options.format
    tables: dict[str, pd.DataFrame] = {
        "scores": fit.scores.reset_index(level=1),
        "loadings": fit.courses,
        "confound_loadings": fit.model.confound_loadings_.reset_index(),
        "gaps": fit.model.gaps_,
    }
    if fit.changes is not None:
        tables["factor_changes"] = fit.changes.factors
        tables["item_changes"] = fit.changes.items.reset_index()
        tables["level_changes"] = fit.changes.levels
    if fit.search is not None:
        tables["cv"] = fit.search.search_.cv_results_
        tables["cv_smoothness"] = fit.search.smoothness_errors_

    fit.stages.begin(WRITING)

    def write(place: Path) -> None:
        for name, table in tables.items():
            write_table(table, place / f"{name}.{form}", decimals=None if name.startswith("cv") else DECIMALS)
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
            "loadings": "constant" if model.smoothness == CONSTANT else "by visit",
            "smoothness": None if model.smoothness == CONSTANT else float(model.smoothness),
            "chosen_by": "given" if fit.search is None else "cross-validation",
            "objective": float(inner.objective_),
            "converged": bool(inner.converged_),
            "iterations": int(inner.n_iter_),
        },
        "outputs": outputs,
    }
