"""``icqf fit``: from a study's files to a folder of results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icqf.cli.job import announce, job, job_options, only_show, say
from icqf.cli.parsing import ManyCommand, options_of, settings
from icqf.cli.terminal import echo
from icqf.cli.text import choice_text, model_text, no_structure, plan_text, rules_text
from icqf.workflow.options import StudyOptions

if TYPE_CHECKING:
    from icqf.data.study import Study

NEEDED = "icqf.models.search"  # what other processes import while this one imports the rest


@click.command(
    "fit",
    short_help="From answers to factors, scores, a model and a report.",
    cls=ManyCommand,
    context_settings={"show_default": True},
    epilog="""\b
Examples:
  icqf fit answers.csv --codebook items.csv --id record_id --confounds age sex --out results
  icqf fit answers.sav --n-components 8 --beta 0.5 --out results
  icqf fit --config results/config.toml --out again
  icqf fit answers.csv --plan preregistration.toml --out results""",
)
@settings(
    StudyOptions,
    *("columns", "about", "candidates", "paper", "model", "engine", "average", "format", "report", "rules"),
    "plan",
)
@job_options("results")
@click.option("--top", type=click.IntRange(1), default=5, help="Items shown for each factor.")
@click.pass_context
def command(
    ctx: click.Context, out: Path, force: bool, top: int, dry_run: bool, quiet: bool, **_: Any
) -> None:
    """Factorize ANSWERS and write scores, loadings, the model, a report and their provenance.

    The number of factors and the penalty are chosen by cross-validation unless both are set.
    """
    from icqf.engines.parallel import workers
    from icqf.workflow.read import jobs_for, read_study
    from icqf.workflow.results_folder import refuse_results

    options = options_of(ctx, StudyOptions)
    study = read_study(options)
    deviations = () if options.plan is None else planned_otherwise(options, study)
    if dry_run:
        say(deviations)
        only_show(study)
        return
    files = (*options.paths, ctx.params["config"])
    refuse_results(*(out, "fit", study.questionnaire), format=options.format, force=force, inputs=files)
    with job(ctx, out, journal=options.searches) as meter:
        with workers(jobs_for(options, study.questionnaire), NEEDED):
            announce(study, quiet=quiet, meter=meter)
            say(deviations, quiet=quiet)
            from icqf.workflow.fit import fit_study
            from icqf.workflow.results import write_results
        fit = fit_study(options, study=study, checkpoint=meter.journal, callback=meter)
        names = write_results(fit, out, force=force)
    if quiet:
        return
    chosen = fit.search is not None and fit.search.errors_["n_components"].nunique() > 1
    if fit.compared is not None:
        echo(plan_text(fit.compared) + "\n")
    warning = no_structure(fit.hidden, model=fit.model, n_set=None if chosen else len(fit.model.components_))
    if warning:
        echo(warning + "\n")
    say(each for each in fit.warnings if not (warning and getattr(each, "code", "") == "all-zero"))
    if fit.search is not None:
        echo(choice_text(fit.search, fit.options.rule) + "\n")
    if fit.rules is not None:
        echo(rules_text(fit.rules) + "\n")
    structural = study.questionnaire.structural
    not_asked = 0.0 if structural is None else float(structural.to_numpy(dtype=bool).mean())
    echo(model_text(fit.model, study.items, top=top, hidden=fit.hidden, not_asked=not_asked))
    echo(f"\nResults are in {out}{'/' if out.suffix == '' else ''}: {', '.join(names)}")


def planned_otherwise(options: StudyOptions, study: Study) -> list[str]:
    """Return the deviations from the plan that are known before the fit."""
    from icqf.io.preregistration import read_preregistration
    from icqf.workflow.deviations import compared

    found = compared(read_preregistration(options.plan or ""), options, study)
    sentences = [f"Deviation from the plan: {each.sentence}" for each in found.deviations]
    return sentences or ["So far there are no deviations from the plan."]
