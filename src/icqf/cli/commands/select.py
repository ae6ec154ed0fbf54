"""``icqf select``: cross-validation alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from icqf.cli.job import announce, job, job_options, only_show
from icqf.cli.parsing import ManyCommand, options_of, settings
from icqf.cli.terminal import echo
from icqf.cli.text import choice_text, no_structure, rules_text
from icqf.workflow.options import StudyOptions


@click.command(
    "select",
    short_help="How many factors: cross-validation alone.",
    cls=ManyCommand,
    context_settings={"show_default": True},
    epilog="""\b
Examples:
  icqf select answers.csv --codebook items.csv --n-components 2-16 --out cv.csv
  icqf select answers.csv --codebook items.csv --n-components 2-16 --out cv.csv --resume
  icqf select answers.csv --codebook items.csv --all-rules --out cv.csv""",
)
@settings(StudyOptions, "columns", "candidates", "paper", "model", "engine", "rules")
@job_options(
    None,
    out_help="Table of all fits: .csv, .sav, .parquet or .xlsx.",
    quiet_help="Print nothing but errors, and the choice without --out.",
)
@click.pass_context
def command(ctx: click.Context, out: Path | None, force: bool, dry_run: bool, quiet: bool, **_: Any) -> None:
    """Choose the number of factors and the penalty for ANSWERS by cross-validation.

    Prints the mean error of each candidate, and how often each number of factors would be chosen by another
    sample and with other folds. With --all-rules, also prints the results of the rules of factor analysis,
    and why they may differ; --out cv.csv then also writes cv-rules.csv and cv-rules.json.
    """
    from icqf.engines.progress import Stages
    from icqf.io import write_table
    from icqf.workflow.fit import expected_seconds, predicted_hidden, select_study
    from icqf.workflow.read import jobs_for, read_study
    from icqf.workflow.results_folder import refuse_file, refuse_table
    from icqf.workflow.select import rules_of_study, write_rules

    options = options_of(ctx, StudyOptions)
    if dry_run:
        only_show(read_study(options))
        return
    if not options.searches:
        raise click.UsageError(
            "With one number of factors and one penalty there is nothing to choose; give several.", ctx
        )
    study = read_study(options)
    rules_file = None if out is None else out.with_name(f"{out.stem}-rules{out.suffix}")
    files = (*options.paths, ctx.params["config"])
    if out is not None:
        refuse_table(out, force=force, inputs=files)
    if rules_file is not None and options.all_rules:
        refuse_file(rules_file, force=force, inputs=files)
        refuse_file(rules_file.with_suffix(".json"), force=force, inputs=files)
    with job(ctx, Path(options.answers.stem) if out is None else out) as meter:
        announce(study, quiet=quiet, meter=meter)
        alone = replace(options, report=False, bootstrap=0)
        jobs = jobs_for(options, study.questionnaire)
        stages = Stages(meter, expected_seconds(alone, *study.questionnaire.answers.shape, jobs=jobs))
        stages.begin("Cross-validation")
        search = select_study(options, study, checkpoint=meter.journal, callback=stages)
        hidden = search.hidden_
        if hidden is None:
            stages.begin("Predicting hidden answers")
            model, questionnaire = search.best_estimator_, study.questionnaire
            how: dict[str, Any] = {"groups": questionnaire.groups, "n_jobs": jobs}
            hidden = predicted_hidden(model, model.state(questionnaire), random_state=options.seed, **how)
        rules = None
        if options.all_rules:
            rules = rules_of_study(study, search=search, seed=options.seed, callback=stages)
        if out is not None:
            refuse_table(out, force=force, inputs=files)  # it may have been created during the search
            write_table(search.cv_results_, out)
        if rules_file is not None and rules is not None:
            write_rules(rules, rules_file)
    if quiet and out is not None:
        return
    warning = no_structure(hidden)
    if warning:
        echo(warning + "\n")
    echo(error_table(search.errors_))
    if search.stability_ is not None:
        echo(f"\nAgreement of the factors between halves of the sample:\n{stability_table(search)}")
    echo("\n" + choice_text(search, options.rule))
    if rules is not None:
        echo("\n" + rules_text(rules))
    if out is not None:
        also = f", and the results of all rules in {rules_file}" if rules is not None else ""
        echo(f"All fits are in {out}{also}.", err=True)


def stability_table(search: Any) -> str:
    """Return the agreement by number of factors."""
    table = search.stability_.set_index("n_components").rename_axis("k")[["agreement", "low", "high"]]
    return str(table.to_string(float_format="{:.3f}".format))


def error_table(errors: Any) -> str:
    """Return the mean error by number of factors and penalty."""
    table = errors.set_index(["n_components", "beta"])["error"].unstack("beta")
    table.columns = [f"{beta:g}" for beta in table.columns]
    title = "Mean squared error of hidden answers, by k (down) and beta (across):"
    return f"{title}\n{table.rename_axis('k').to_string(float_format='{:.5f}'.format)}"
