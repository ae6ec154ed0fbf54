"""``icqf longitudinal``: repeated visits, one set of factors, and scores at every visit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from icqf.cli.job import job, job_options, say, show_notes
from icqf.cli.parsing import ManyCommand, options_of, settings
from icqf.cli.terminal import echo
from icqf.workflow.options import LongitudinalOptions

NOT_FOR_VISITS = ("groups", "weights", "visit", "penalty", "thorough", "with_participants")


@click.command(
    "longitudinal",
    short_help="Repeated visits: one set of factors, scores at every visit.",
    cls=ManyCommand,
    context_settings={"show_default": True},
    epilog="""\b
Examples:
  icqf longitudinal visits.csv --id child_id --age age --codebook items.csv --out results
  icqf longitudinal visits.csv --age month --n-components 3 --beta 0.1 --smoothness inf
  icqf longitudinal visits.csv --age age --bins 5 8 11 14 18""",
)
@settings(
    LongitudinalOptions,
    *("columns", "about", "candidates", "model", "visits", "format", "report"),
    without=NOT_FOR_VISITS,
)
@job_options("results")
@click.pass_context
def command(ctx: click.Context, out: Path, force: bool, dry_run: bool, quiet: bool, **_: Any) -> None:
    """Factorize the visits in ANSWERS, one row per visit, and score every visit.

    First it is asked whether the factors are the same at every visit. The loadings are constant unless
    cross-validation and a test both say that they differ. With one --smoothness (inf: constant loadings), the
    fit uses it, and only the test is run. The number of factors and the penalty are chosen by
    cross-validation unless set.
    """
    from icqf.workflow.longitudinal import (
        answer_sentences,
        choice_sentence,
        fit_visits,
        gap_sentence,
        read_visits,
        write_visits,
    )
    from icqf.workflow.results_folder import refuse_results

    options = options_of(ctx, LongitudinalOptions)
    study = read_visits(options)
    if dry_run:
        n, m = study.questionnaire.answers.shape
        show_notes([f"{n} visits, {m} items.", *study.questionnaire.notes])
        return
    files = (*study.files, ctx.params["config"])
    refuse_results(
        *(out, "longitudinal", study.questionnaire), format=options.format, force=force, inputs=files
    )
    with job(ctx, out, journal=options.searches) as meter:
        say(study.questionnaire.notes, quiet=quiet)
        fit = fit_visits(options, study=study, checkpoint=meter.journal, callback=meter)
        names = write_visits(fit, out, force=force)
    if quiet:
        return
    say(fit.warnings)
    echo(gap_sentence(fit.model.gaps_))
    echo("\n".join([choice_sentence(fit), *answer_sentences(fit)]))
    echo(f"\nResults are in {out}{'/' if out.suffix == '' else ''}: {', '.join(names)}")
