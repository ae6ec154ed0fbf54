"""``icqf fit``: from a study's files to a folder of results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from icqf.cli.support.job import announce, job, journal_for, only_show, say
from icqf.cli.support.many import ManyCommand
from icqf.cli.support.options import FILE, options_of, study_options
from icqf.cli.support.progress import refuse_progress
from icqf.cli.support.terminal import echo
from icqf.cli.support.text import choice_text, model_text, no_structure, rules_text


@click.command(
    "fit",
    short_help="From answers to factors, scores, a model and a report.",
    cls=ManyCommand,
    context_settings={"show_default": True},
    epilog="""\b
Examples:
  icqf fit answers.csv --codebook items.csv --id record_id --confounds age sex --out results
  icqf fit answers.sav --n-components 8 --beta 0.5 --out results
  icqf fit --config results/config.toml --out again""",
)
@study_options("columns", "candidates", "model", "engine", "average", "format", "report", "rules")
@click.option("--out", type=FILE, default=Path("results"), help="Folder for the results.")
@click.option("--force", is_flag=True, help="Replace earlier results in that folder.")
@click.option("--resume", is_flag=True, help="Continue an interrupted run.")
@click.option("--top", type=click.IntRange(1), default=5, help="Items shown for each factor.")
@click.option("--dry-run", is_flag=True, help="Show what would be analysed, and stop there.")
@click.option(
    "--progress", type=FILE, help="File to keep the progress in, as JSON; new, or of an earlier run."
)
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors.")
@click.pass_context
def command(
    ctx: click.Context,
    out: Path,
    force: bool,
    resume: bool,
    top: int,
    dry_run: bool,
    progress: Path | None,
    quiet: bool,
    **_: Any,
) -> None:
    """Factorize ANSWERS and write scores, loadings, the model and where all of it comes from.

    The number of factors and the penalty are chosen by cross-validation unless both are given.
    """
    from icqf.workflow.fit import fit_study
    from icqf.workflow.places import refuse_results
    from icqf.workflow.read import input_files, read_study
    from icqf.workflow.results import write_results

    options = options_of(ctx)
    if dry_run:
        only_show(read_study(options))
        return
    study = read_study(options)
    files = (*input_files(options), ctx.params["config"])
    refuse_results(*(out, "fit", study.questionnaire), format=options.format, force=force, inputs=files)
    journal = journal_for(out, options, resume=resume)
    if progress is not None:
        refuse_progress(progress, out, journal)
    announce(study, quiet=quiet)
    with job(ctx, journal, quiet=quiet, progress=progress) as meter:
        fit = fit_study(options, study=study, checkpoint=journal, callback=meter)
        names = write_results(fit, out, force=force, callback=meter)
    if quiet:
        return
    chosen = fit.search is not None and fit.search.errors_["n_components"].nunique() > 1
    nothing = no_structure(fit.hidden, n_set=None if chosen else len(fit.model.components_))
    if nothing:
        echo(nothing + "\n")
    say(each for each in fit.warnings if not (nothing and getattr(each, "code", "") == "all-zero"))
    if fit.search is not None:
        echo(choice_text(fit.search, fit.options.rule) + "\n")
    if fit.rules is not None:
        echo(rules_text(fit.rules) + "\n")
    echo(model_text(fit.model, study.items, top=top, hidden=fit.hidden))
    echo(f"\nResults are in {out}{'/' if out.suffix == '' else ''}: {', '.join(names)}")
