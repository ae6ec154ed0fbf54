"""``icqf meta``: what the factors of several questionnaires have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from icqf.cli.job import end_dry_run, job, job_options, say
from icqf.cli.parsing import ManyCommand, options_of, settings
from icqf.cli.terminal import echo
from icqf.cli.text import meta_text, worded
from icqf.workflow.options import MetaOptions


@click.command(
    "meta",
    short_help="Factors across the questionnaires of a study.",
    cls=ManyCommand,
    context_settings={"show_default": True},
    epilog="""\b
Examples:
  icqf meta study/ --out results
  icqf meta study/ --confounds age sex --n-meta 3 --out results
  icqf meta study/ --n-components mood=2 sleep=3 --out results
  icqf meta wide.csv --codebook items.csv --out results
  icqf score results/meta.icqf new-study/ --out scores.csv""",
)
@settings(MetaOptions, "columns", "about", "candidates", "paper", "model", "meta", "format")
@job_options("results")
@click.option("--top", type=click.IntRange(1), default=3, help="Items shown for each meta-factor.")
@click.pass_context
def command(
    ctx: click.Context, out: Path, force: bool, top: int, dry_run: bool, quiet: bool, **_: Any
) -> None:
    """Factorize each questionnaire in ANSWERS, and then the scores of all of them.

    ANSWERS is a folder with one file for each questionnaire, joined by participant id, or a wide table whose
    codebook has a column "instrument"; see icqf batch. Participants who lack a questionnaire are included
    with the others they have. Writes scores and loadings of the meta-factors, their loadings on items, the
    model, a page and a figure of the three levels. If the questionnaires have no common factor, that is the
    result, and scores are those of their own factors.
    """
    from icqf.workflow.meta import files_of, fit_battery, read_battery, write_meta
    from icqf.workflow.results_folder import refuse_existing

    options = options_of(ctx, MetaOptions)
    studies = read_battery(options)
    if not dry_run:
        refuse_existing(out, "meta", force=force, inputs=(*files_of(studies), ctx.params["config"]))
    for name, (_own, study) in studies.items():
        n, m = study.questionnaire.answers.shape
        if not quiet or dry_run:
            echo(f"Note: {name}: {n} participants, {m} items.", err=not dry_run)
        if study.directions.warning is not None and (not quiet or dry_run):
            echo(f"Warning: {name}: {worded(study.directions.warning)}", err=not dry_run)
    if dry_run:
        end_dry_run()
        return
    with job(ctx, out) as meter:
        how: dict[str, Any] = {"compare": options.compare, "checkpoint": meter.journal, "callback": meter}
        fit = fit_battery(options, studies=studies, **how)
        names = write_meta(fit, out, force=force)
    if quiet:
        return
    say(fit.warnings)
    echo(meta_text(fit.model, top=top))
    for each in fit.comparisons:
        echo(f"\n{each}")
    echo(f"\nResults are in {out}/: {', '.join(names)}")
