"""Commands about the design of a study: its size, its plan, short forms, and evaluations of methods."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icqf.cli.job import announce, job, job_options, only_show, say, show_notes, typed
from icqf.cli.parsing import FILE, command, options_of, refuse_typed, settings
from icqf.cli.terminal import echo
from icqf.data.settings import options_in
from icqf.workflow.options import (
    DiagnosisOptions,
    PlanOptions,
    PreregistrationOptions,
    ShortFormOptions,
    StabilityOptions,
    StudyOptions,
)

if TYPE_CHECKING:
    from icqf.workflow.evaluation import Experiment


FOR_A_PILOT = "is for the answers of a pilot study and has no effect on a model file; leave it out."


@command(
    "How many participants for factors that are found again.",
    """icqf plan results/model.icqf
    icqf plan pilot.csv --codebook items.csv --n-components 4 --beta 0.1
    icqf plan results/model.icqf --sizes 200 400 800 --repeats 50""",
)
@settings(PlanOptions, "columns", "candidates", "model")
@job_options("plan", out_help="Folder for tables, figure and page.")
@click.pass_context
def plan(ctx: click.Context, out: Path, force: bool, dry_run: bool, quiet: bool, **_: Any) -> None:
    """Say how many participants a study needs for a second one of its size to find the factors again.

    ANSWERS are those of a pilot study, which is fitted first with the options of icqf fit, and divided into
    pairs of subsamples; or a model (its file or the results of icqf fit), which remembers how well halves
    of its study agreed (where it does not, studies are simulated). A factor is found again when its loadings
    in two studies, fitted with as many factors, correlate at least 0.8.
    """
    from icqf.analyses.planning import FITTING_PAIRS, plan
    from icqf.engines.progress import Stages
    from icqf.models.icqf import ICQF
    from icqf.workflow.new_answers import model_file
    from icqf.workflow.plan import pair_seconds, pilot_of, write_plan
    from icqf.workflow.read import read_study
    from icqf.workflow.results_folder import refuse_existing

    started, options = datetime.now(UTC), options_of(ctx, PlanOptions)
    if options.from_model:
        refuse_typed(ctx, set(options_in(StudyOptions)) - {*PlanOptions.OF_PLANNING}, FOR_A_PILOT)
        options = replace(options, answers=model_file(options.answers))
        model, pilot, study = ICQF.load(options.answers), None, None
    else:
        study = read_study(options)
    if dry_run:
        if study is None:
            show_notes([f"A model with {len(model.components_)} factors."])
        else:
            only_show(study)
        return
    files = options.paths
    refuse_existing(out, "plan", force=force, inputs=(*files, ctx.params["config"]))
    with job(ctx, out, what=FITTING_PAIRS, unit="pairs") as meter:
        stages = Stages(meter, pair_seconds(options, study))
        if study is not None:
            announce(study, quiet=quiet, meter=meter)
            meter.switch_to("Cross-validation", "fits")
            model, pilot = pilot_of(options, study, checkpoint=meter.journal, callback=stages)
            meter.switch_to(FITTING_PAIRS, "pairs")
        result = plan(model, pilot, checkpoint=meter.journal, callback=stages, **options.parameters)
        about: dict[str, Any] = {"options": options.shareable(), "command": typed(ctx), "started": started}
        written = write_plan(result, out, files=files, force=force, **about)
    if quiet:
        return
    echo(result.curve.to_string(index=False, float_format="{:.2f}".format))
    echo(f"\n{result.sentence}\n\n{result.caution}")
    echo(f"\nTables, figure and page are in {out}/: {', '.join(written)}")


@command(
    "The fewest items that recover the scores.",
    """icqf shortform results/model.icqf answers.csv --max-items 20
    icqf shortform results/model.icqf answers.csv --max-items 40 --correlation 0.9 --keep q001 --drop 'q09*'
    icqf shortform results/model.icqf answers.csv --minutes 0.15 --max-minutes 3 --out three-minutes""",
)
@settings(ShortFormOptions)
@job_options("shortform", out_help="Folder for the form.", without=["resume"])
@click.pass_context
def shortform(ctx: click.Context, out: Path, force: bool, dry_run: bool, quiet: bool, **_: Any) -> None:
    """Choose the items of MODEL that best recover its scores, using the ANSWERS to all items.

    Writes the items as a codebook, a model that scores them, the correlation with the full form by length and
    the reliability by factor (cross-validated), and a page that can be filled in and scored offline in any
    browser. The page shows all questions, or asks one at a time and only as many as needed.

    With the model of a battery (icqf meta), ANSWERS is a folder with files of its instruments, or a table
    with their items; items are chosen across instruments, named "instrument: item", and no page is written.
    """
    from icqf.workflow.new_answers import read_for_model
    from icqf.workflow.results_folder import refuse_existing
    from icqf.workflow.shortform import CHOOSING, items_of, parameters_of, shorten_study, write_short_form

    started, options = datetime.now(UTC), options_of(ctx, ShortFormOptions)
    parameters, read = parameters_of(options), read_for_model(options.model, options.files)
    if dry_run:
        show_notes([*read.notes, f"{read.questionnaire.n_participants} participants."])
        return
    table = options.minutes if isinstance(options.minutes, Path) else None
    refuse_existing(out, "shortform", force=force, inputs=(*read.files, table, ctx.params["config"]))
    with job(ctx, out, what=CHOOSING, unit="choices", journal=False) as meter:
        say(read.notes, quiet=quiet)
        form = shorten_study(read, callback=meter, **parameters)
        about: dict[str, Any] = {"options": options.shareable(), "started": started, "title": options.title}
        about["adaptive_width"] = options.adaptive_width
        written = write_short_form(form, out, read=read, force=force, **about)
    if quiet:
        return
    for name, item in zip(form.items, items_of(form, read), strict=True):
        words = (name, item.wording, "(reversed)" if item.reverse else "")
        echo("  " + "  ".join(filter(None, words)))
    echo(f"\n{form.sentence}\n")
    echo(form.factors.to_string(index=False, float_format="{:.2f}".format, na_rep="–"))
    echo(f"\nThe form is in {out}/: {', '.join(written)}")


@command(
    "Whether smaller samples give the same factors.",
    """icqf stability answers.csv --codebook items.csv --confounds age sex
    icqf stability answers.csv --codebook items.csv --methods icqf --n-components 8 --beta 0.5""",
)
@settings(StabilityOptions, "columns", "model")
@job_options("stability")
@click.pass_context
def stability(ctx: click.Context, **_: Any) -> None:
    """Compare the factors from parts of ANSWERS with those from its whole development set (80 %).

    Every method chooses its number of factors each time. Fits are stored in the folder, which icqf diagnosis
    may share.
    """
    from icqf.workflow.evaluation import stability_experiment

    evaluate(ctx, stability_experiment, options_of(ctx, StabilityOptions))


def evaluate(ctx: click.Context, experiment: Experiment, options: StabilityOptions) -> None:
    """Read the study, run an experiment on it, and print its page."""
    from icqf.workflow.evaluation import COMPARING, evaluate_study
    from icqf.workflow.read import read_study
    from icqf.workflow.results_folder import exists, refuse_shared

    params, tool = ctx.params, str(ctx.info_name)
    out, quiet = params["out"], params["quiet"]
    study = read_study(options, labels=options.labels)
    if params["dry_run"]:
        only_show(study)
        return
    refuse_shared(out, tool, inputs=(*study.files, params["config"]))
    page = out / f"{tool}.md"
    if page.exists() and not (params["force"] or params["resume"]):
        raise exists(page)
    began = time.time()
    try:
        with job(ctx, out, what=COMPARING, journal=False, folder=True) as meter:
            announce(study, quiet=quiet, meter=meter)
            about: dict[str, Any] = {"tool": tool, "out": out, "command": typed(ctx)}
            page = evaluate_study(experiment, study, options, callback=meter, **about)
    except click.exceptions.Exit:
        if page.exists() and page.stat().st_mtime >= began:
            echo(f"{page} shows what the finished splits say.", err=True)
        raise
    if not quiet:
        echo(page.read_text(encoding="utf-8"))
        echo(f"Written to {out}: {page.name}, tables and figures.", err=True)


@command(
    "How well scores predict diagnoses.",
    """icqf diagnosis answers.csv --codebook items.csv --confounds age sex --labels adhd depression""",
)
@settings(DiagnosisOptions, "columns", "model")
@job_options("diagnosis")
@click.pass_context
def diagnosis(ctx: click.Context, **_: Any) -> None:
    """Measure how well scores of several methods predict diagnoses in held-out participants of ANSWERS.

    Factors are learned from the training participants only. Fits are stored in the folder, which icqf
    stability may share.
    """
    from icqf.workflow.evaluation import diagnosis

    evaluate(ctx, diagnosis, options_of(ctx, DiagnosisOptions))


@command(
    "Freeze the plan of an analysis before the data are seen.",
    """icqf preregister --template decisions.toml
    icqf preregister --codebook items.csv --confounds age sex --decisions decisions.toml
    icqf fit answers.csv --plan preregistration.toml --out results          (later, with the data)""",
)
@click.option("--template", type=FILE, help="Write the questions to answer to this file, and stop.")
@settings(
    PreregistrationOptions,
    *("columns", "candidates", "paper", "model", "average", "report", "rules"),
    without=(
        *("answers", "id", "dictionary", "participants", "header_row", "sheet", "long", "jobs"),
        *("report", "figures", "names", "with_participants"),
    ),
)
@click.option(
    "--out", type=FILE, default=Path("preregistration.toml"), help="File to write the frozen plan to."
)
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.pass_context
def preregister(ctx: click.Context, template: Path | None, out: Path, force: bool, **_: Any) -> None:
    """Freeze the plan of an analysis: settings, codebook and decisions, before the data are seen.

    No answers are read. First write the questions of a preregistration with --template and answer them in a
    text editor. Then freeze the plan with the options of icqf fit. Beside the plan, its text under the
    headings of OSF's form is written in Markdown and for Word.
    """
    from icqf.errors import InputError
    from icqf.io.atomic import write_bytes
    from icqf.io.preregistration import template as questions
    from icqf.workflow import preregistration as registration
    from icqf.workflow.results_folder import refuse_file

    if template is not None:
        refuse_file(template, force=force)
        write_bytes(template, questions().encode())
        echo(f"The questions are in {template}. Answer them in a text editor.", err=True)
        return
    if out.suffix.lower() != ".toml":
        raise InputError(f"{out}: a plan is written as .toml; choose a name with this ending.")
    options = options_of(ctx, PreregistrationOptions)
    inputs = (options.codebook, options.decisions, ctx.params["config"])
    for ending in (".toml", ".md", ".docx"):
        refuse_file(out.with_suffix(ending), force=force, inputs=inputs)
    plan = registration.preregister(options)
    files = registration.write_preregistration(plan, out)
    echo(f"{len(plan.items)} items and {len(plan.options)} settings were frozen in {files[0]}.")
    echo(f"For OSF's form: {files[1]} and {files[2].name}.")
    echo(f"SHA-256: {plan.sha256}")
    echo(registration.PROOF)
