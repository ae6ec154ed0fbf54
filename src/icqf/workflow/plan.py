"""Plan a sample: a model, or the answers of a pilot study, give a curve, a figure and a sentence."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from joblib import effective_n_jobs
from matplotlib.figure import Figure

from icqf.analyses.planning import FITTING_PAIRS, OTHER_COLUMNS, SamplePlan
from icqf.data.questionnaire import Questionnaire
from icqf.data.study import Study
from icqf.io.write import write_table
from icqf.models.icqf import ICQF
from icqf.plotting import found_again
from icqf.plotting.style import default_settings, factor_names
from icqf.report.blocks import Block, Grid, Picture, Section
from icqf.report.document import Document, made_by, write_document
from icqf.resampling.replication import FOUND
from icqf.workflow.fit import fit_study
from icqf.workflow.options import PlanOptions, StudyOptions
from icqf.workflow.results_folder import DECIMALS, write_tool_folder


def pilot_of(
    options: StudyOptions,
    study: Study,
    *,
    checkpoint: Path | None = None,
    callback: Callable[[Any], object] | None = None,
) -> tuple[ICQF, Questionnaire]:
    """Fit a pilot study, and return the model with the pilot's answers."""
    own = replace(options, bootstrap=0, report=False)
    fit = fit_study(own, study=study, checkpoint=checkpoint if own.searches else None, callback=callback)
    return fit.model, study.questionnaire


def pair_seconds(options: PlanOptions, study: Study | None) -> dict[str, float]:
    """Return what all pairs of studies take on one processor; nothing where a model's halves say all."""
    if study is None:
        return {}
    n, m = study.questionnaire.answers.shape
    fitted = sum(min(size, n // 2) for size in options.sizes) * m * options.repeats / 1e6
    many = min(effective_n_jobs(options.jobs), 8)
    return {FITTING_PAIRS: (0.02 * options.repeats * len(options.sizes) + 1.0 * fitted) / many}


def write_plan(
    plan: SamplePlan,
    folder: str | os.PathLike[str],
    *,
    files: tuple[Path, ...],
    command: str = "",
    **how: Any,
) -> list[str]:
    """Write a plan: the curve, what each factor needs, a figure and a page with a sentence for a grant.

    `how` is for `write_tool_folder`.
    """

    def write(place: Path) -> None:
        write_table(plan.curve, place / "curve.csv", decimals=DECIMALS)
        write_table(plan.factors, place / "factors.csv", decimals=DECIMALS)
        write_document(place / "plan.html", plan_page(plan, command))

    return write_tool_folder(folder, "plan", write, files, {"sentence": plan.sentence}, **how)


def plan_page(plan: SamplePlan, command: str = "") -> Document:
    """The page of a plan."""
    names = [name for name in plan.factors.index if name not in OTHER_COLUMNS]
    shown = dict(zip(names, factor_names(names, None), strict=True))
    shown |= {"mean": "80 or 90 % of the factors", "every": "all factors in one study"}
    least, most = int(plan.curve["n"].min()), int(plan.curve["n"].max())

    def needed(value: float) -> str:
        if value != value:
            return f"more than {most}"
        return f"{least} or fewer" if value == least else str(int(value))

    rows = [[shown[name], needed(row["n80"]), needed(row["n90"])] for name, row in plan.factors.iterrows()]
    pictures = []
    if len(plan.curve) > 1:  # one size is a point, not a curve
        with default_settings():
            figure = Figure(figsize=(7.0, 4.4), layout="constrained")
            found_again(plan.curve, ax=figure.add_subplot())
        pictures.append(Picture("plan", figure, "The probability that factors are found again"))
    parts: list[Block] = [
        *pictures,
        Grid(
            "Participants needed for a replication probability of 80 and 90 %",
            ["participants for", "80 %", "90 %"],
            rows,
        ),
        Grid(
            "Chance that a second study finds it again",
            ["participants", "from", "share of the factors", "all factors", *(shown[name] for name in names)],
            [
                [str(row["n"]), row["source"], *(f"{row[name]:.2f}" for name in ("mean", "every", *names))]
                for row in plan.curve.to_dict("records")
            ],
        ),
        f"A factor is found again when the loadings of its counterpart in a second study of the same size, "
        f"fitted with as many factors, correlate at least {FOUND:g} with its own.",
    ]
    return Document(
        "How many participants?",
        [plan.sentence, plan.caution],
        [Section("Participants needed", parts)],
        footer=made_by(command),
    )
