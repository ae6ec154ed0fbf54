"""Write the results folder of a fit."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from icqf.io.write import write_table
from icqf.report import Document, Section, report_of
from icqf.report.sections.methods import preregistration_blocks
from icqf.report.words import frozen
from icqf.workflow.fit import StudyFit, provenance_of
from icqf.workflow.naming import write_named
from icqf.workflow.options import ScoreColumns
from icqf.workflow.read import jobs_for
from icqf.workflow.results_folder import DECIMALS, write_folder
from icqf.workflow.select import write_rules

PLAN = "preregistration.toml"


def write_results(
    fit: StudyFit, folder: str | os.PathLike[str], *, tool: str = "fit", force: bool = False
) -> list[str]:
    """Write all results of a fit into `folder`, and return the names of the files.

    If anything fails, the folder is unchanged. An existing results folder is replaced only with `force`, and
    only if its results are of the same `tool`, the command; any other folder that is not empty is refused.

    Examples
    --------
    >>> import tempfile
    >>> from icqf.datasets import demo_paths
    >>> from icqf.workflow import fit_study, write_results
    >>> answers, codebook = demo_paths()
    >>> fit = fit_study(answers, codebook=codebook, n_components=2, beta=0.1, report=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     names = write_results(fit, f"{folder}/results")
    >>> "scores.csv" in names, "model.icqf" in names
    (True, True)
    """
    target = Path(folder)

    def write(place: Path) -> None:
        for writer in WRITERS:
            writer(fit, place, target)

    return write_folder(
        *(target, tool, write),
        lambda names: provenance_of(fit, outputs=names),
        force=force,
        inputs=fit.study.files,
    )


def _tables(fit: StudyFit, place: Path, folder: Path) -> None:
    form = fit.options.format
    if fit.study.everyone is None:
        write_table(fit.scores, place / f"scores.{form}", decimals=DECIMALS)
    confounds = fit.model.confound_loadings_.rename_axis("item")
    write_table(confounds, place / f"confound_loadings.{form}", decimals=DECIMALS)
    if fit.search is not None:
        write_table(fit.search.cv_results_, place / f"cv.{form}")


def _rules(fit: StudyFit, place: Path, folder: Path) -> None:
    if fit.rules is not None:
        write_rules(fit.rules, place / f"rules.{fit.options.format}")


def _config(fit: StudyFit, place: Path, folder: Path) -> None:
    head, options = "# Repeat this run with: icqf fit --config config.toml --out NEW_FOLDER\n", fit.options
    if fit.compared is not None:
        plan = fit.compared.plan
        options = replace(options, plan=folder / PLAN)
        dropped = [name for name in plan.options if name not in options.to_dict()]
        head += "".join(f'{name} = ""\n' for name in dropped if plan.options[name] not in ("", []))
        (place / PLAN).write_text(plan.text, encoding="utf-8", newline="\n")
        values = frozen(fit.compared.to_dict())
        page = Document("Deviations from the plan", [], [Section("The plan", preregistration_blocks(values))])
        (place / "deviations.md").write_text(page.as_markdown(), encoding="utf-8")
    (place / "config.toml").write_text(head + options.to_toml(folder=folder), encoding="utf-8")


def _named(fit: StudyFit, place: Path, folder: Path) -> None:
    options, analysis = fit.options, fit.analysis if fit.options.report else None
    fit.stages.begin("Writing the report, tables and figures" if options.report else "Writing the tables")
    report = None
    if analysis is not None:
        followed = None if fit.compared is None else fit.compared.to_dict()
        how: dict[str, Any] = {"with_participants": options.with_participants, "preregistration": followed}
        report = report_of(analysis, **how)
    jobs = jobs_for(options, fit.study.questionnaire)
    write_named(place, fit.model, report, format=options.format, figures=options.figures, n_jobs=jobs)


def _scores_of_everyone(fit: StudyFit, place: Path, folder: Path) -> None:
    """Write the scores of a table read in parts to a Parquet file, in batches."""
    if fit.study.everyone is None:
        return
    from icqf.workflow.score import write_scores  # with the models of visits and batteries

    options = fit.options
    write_scores(
        place / "model.icqf",
        options.answers,
        place / "scores.parquet",
        id=options.id,
        missing_codes=options.missing_codes,
        columns=ScoreColumns(intervals=False),
    )


# All outputs; a new one is another function of (fit, place, folder).
WRITERS: list[Callable[[StudyFit, Path, Path], None]] = [
    *(_tables, _rules, _named, _scores_of_everyone, _config)
]
