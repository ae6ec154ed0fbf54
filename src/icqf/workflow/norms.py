"""Learn norms: a results folder, or a model and the answers of a reference sample, give a file and a page."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from icqf.analyses.norms import Norms, learn_norms
from icqf.errors import Advice, InputError
from icqf.io.study_files import StudyFiles
from icqf.io.write import write_table
from icqf.plotting import percentile_curves
from icqf.plotting.style import default_settings, factor_names
from icqf.report.blocks import Block, Bullets, Grid, Picture, Section
from icqf.report.document import Document, made_by, write_document
from icqf.report.words import number
from icqf.workflow.naming import provenance_in
from icqf.workflow.new_answers import ModelledAnswers, read_for_model
from icqf.workflow.options import NormsOptions, StudyOptions, read_config
from icqf.workflow.results_folder import write_tool_folder

FILE = "norms.icqf-norms"
_SHOWN = (5, 25, 50, 75, 95)
_LISTED = (2, 5, 10, 25, 50, 75, 90, 95, 98)
_ROWS = 9


@dataclass(frozen=True, eq=False)
class Reference:
    """A model, the answers of a reference sample, and its covariates."""

    read: ModelledAnswers
    covariates: pd.DataFrame | None


def read_reference(options: NormsOptions) -> Reference:
    """Read the model and the reference sample: that of the fit, unless a table of answers is given."""
    model = options.results
    if options.results.is_dir() or options.answers is None:
        provenance_in(options.results)
        model = options.results / "model.icqf"
    files = options.files if options.answers is not None else _files_of_fit(options)
    read = read_for_model(model, files, extra=options.by, refitted=True)
    return Reference(read, None if read.extra is None else numbers_where_possible(read.extra))


def _files_of_fit(options: NormsOptions) -> StudyFiles:
    """The table of answers that a results folder was made from, and how it was read."""
    config = options.results / "config.toml"
    fitted = StudyOptions.of(read_config(config), folder=None)
    if not fitted.answers.exists():
        raise InputError(
            f"{options.results}: the answers of the fit, {fitted.answers.name!r}, are no longer where they "
            "were.",
            code="no-answers",
            remedy=Advice("Name the table of answers after the results folder."),
        )
    names = ("answers", "codebook", "participants", "missing_codes", "weights")
    own = {name: getattr(fitted, name) for name in names}
    given = {name: value for name, value in options.roles.items() if value}
    return StudyFiles(**own | fitted.arrangement | given)


def numbers_where_possible(columns: pd.DataFrame) -> pd.DataFrame:
    """The columns as numbers where all their texts are numbers."""
    out = columns.copy()
    for name in columns:
        numbers = pd.to_numeric(columns[name], errors="coerce")
        if not (numbers.isna() & columns[name].notna()).any():
            out[name] = numbers.astype(float)
    return out


def norms_of(reference: Reference, options: NormsOptions) -> Norms:
    """Learn norms from the scores of a reference sample."""
    read = reference.read
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        scores = informed_scores(read.model, read.questionnaire)
    weights = read.questionnaire.weights
    return learn_norms(
        scores,
        reference.covariates,
        by=options.by,
        sample_weight=None if weights is None else weights.to_numpy(dtype=float),
        model=read.model,
        sample=options.sample,
    )


def informed_scores(model: Any, questionnaire: Any) -> pd.DataFrame:
    """Scores by participant; missing where the answers say next to nothing about a factor."""
    if getattr(model, "score_distribution_", None) is not None:
        scores: pd.DataFrame = model.score_intervals(questionnaire).scores
        return scores
    values = np.asarray(model.transform(questionnaire))
    return pd.DataFrame(values, questionnaire.answers.index, model.get_feature_names_out())


def write_norms_folder(
    norms: Norms, folder: str | os.PathLike[str], *, reference: Reference, command: str = "", **how: Any
) -> list[str]:
    """Write norms: the norms file, a table of percentiles, and a page; `how` is for `write_tool_folder`."""

    def write(place: Path) -> None:
        norms.save(place / FILE)
        write_table(norms_table(norms), place / "norms.csv", decimals=4)
        write_document(place / "norms.html", norms_page(norms, command))

    read, errors = reference.read, dict(zip(norms.factors, norms.errors, strict=True))
    result = {"reference": norms.reference, "errors": errors}
    return write_tool_folder(folder, "norms", write, read.files, result, read.notes, **how)


def norms_table(norms: Norms, percentiles: tuple[int, ...] = _LISTED, points: int = 25) -> pd.DataFrame:
    """The scores at some percentiles: one row for each factor and place, with columns p5, p10 and so on."""
    places = norms.places(points)
    at = {f"p{each}": norms.score_at(each, places) for each in percentiles}
    parts = []
    for name in norms.factors:
        columns = {p: each[name].to_numpy() for p, each in at.items()}
        rows = pd.concat([places.reset_index(drop=True), pd.DataFrame(columns)], axis=1)
        parts.append(rows.assign(factor=name))
    whole = pd.concat(parts, ignore_index=True)
    return whole[["factor", *norms.by, *at]].set_index("factor")


def norms_page(norms: Norms, command: str = "") -> Document:
    """The page of norms: who the reference sample is, and percentile curves of every factor."""
    by = f" by {' and '.join(norms.by)}" if norms.by else ""
    lead = [norms.reference, accuracy(norms)]
    shown = dict(zip(norms.factors, factor_names(norms.factors, None), strict=True))
    sections = [Section("How to read them", [_legend(norms)])]
    sections += [_section(norms, name, shown[name]) for name in norms.factors]
    return Document(f"Norms{by}", lead, sections, footer=made_by(command))


def accuracy(norms: Norms) -> str:
    """How far off a percentile is, in words."""
    known = [each for each in norms.errors if each is not None]
    if not known:
        return "No factor's scores differ enough for norms."
    low, high = (f"{each:.1f}" for each in (min(known), max(known)))
    points = low if low == high else f"{low} to {high}"
    return (
        f"In a reference sample of this size, a percentile has a standard error of about {points} points, on "
        "average over its participants; at the ends of the range it is larger. In simulations, true errors "
        "were 0.8 to 1.3 times as large as stated."
    )


def codes(norms: Norms) -> list[str]:
    """What to beware of where categories are numbers."""
    return [
        f"{each.name} is coded {' and '.join(sorted(each.categories or ()))}: codes of new participants must "
        "mean the same. A codebook with labels, such as 1=female;2=male, gives norms by words."
        for each in norms.covariates
        if each.coded
    ]


def _legend(norms: Norms) -> Bullets:
    entries = [
        "A percentile is the percentage of the reference sample with a lower score at the same "
        f"{' and '.join(norms.by) or 'time'}, counting half of those with the same score. A participant at "
        "the 90th percentile scores higher than 90 % of them.",
        "A T-score is the same on another scale: 50 is the middle of the reference sample, and 10 points are "
        "a standard deviation.",
        "Scores of 0 have the middle of the percentiles that they occupy: where 40 % have a score of 0, its "
        "percentile is 20.",
        "Percentiles describe a rank, not an illness: the reference sample decides what is usual.",
    ]
    if norms.by:
        entries.append(
            f"Participants whose {' or '.join(norms.by)} is missing, or outside the reference sample, have "
            "no percentile. Nothing is extrapolated."
        )
    return Bullets([*entries, *codes(norms)])


def _section(norms: Norms, name: str, title: str) -> Section:
    if norms.curves[norms.factors.index(name)] is None:
        return Section(title, ["Nearly everyone has the same score, so there are no norms."])
    numeric = [each.name for each in norms.covariates if each.categories is None]
    fine = norms_table(norms, _SHOWN, 60).loc[[name]]
    coarse = norms_table(norms, _LISTED, _ROWS).loc[[name]]
    parts: list[Block] = []
    if numeric:
        groups = [each.name for each in norms.covariates if each.categories is not None]
        labels = [
            ", ".join(f"{by} {value}" for by, value in zip(groups, row, strict=True))
            for row in fine[groups].to_numpy(dtype=object)  # also where there are none
        ]
        with default_settings():
            panels = max(1, len(dict.fromkeys(labels)))
            figure = Figure(figsize=(4.0 * min(panels, 3) + 0.6, 3.4), layout="constrained")
            percentile_curves(fine, across=numeric[0], panels=labels, figure=figure)
        file = f"norms-{norms.factors.index(name) + 1}"
        parts.append(Picture(file, figure, f"Percentiles of {title} by {numeric[0]}. {norms.reference}"))
    rows = [
        [
            *(row[by] if isinstance(row[by], str) else f"{row[by]:g}" for by in norms.by),
            *(number(row[f"p{each}"]) for each in _LISTED),
        ]
        for row in coarse.to_dict("records")
    ]
    rows = rows if norms.by else [["everyone", *row] for row in rows]
    head = [*(norms.by or ("",)), *(f"{each}th" if each != 2 else "2nd" for each in _LISTED)]
    middle = f" ({' and '.join(numeric[1:])} in the middle)" if numeric[1:] else ""
    parts.append(Grid(f"Scores of {title} at percentiles{middle}", head, rows, note=norms.reference))
    error = norms.errors[norms.factors.index(name)]
    parts.append(f"The standard error of a percentile is about {error} points.")
    return Section(title, parts)
