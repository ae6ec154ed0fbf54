"""``icqf batch``: a report for every questionnaire of a study, and a summary table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from icqf.cli.job import end_dry_run, job, job_options
from icqf.cli.parsing import ManyCommand, options_of, settings
from icqf.cli.terminal import echo
from icqf.cli.text import worded
from icqf.workflow.options import StudyOptions

SOME_FAILED = 1


@click.command(
    "batch",
    short_help="A report for every questionnaire of a study.",
    cls=ManyCommand,
    context_settings={"show_default": True},
    epilog="""\b
Examples:
  icqf batch study/ --out results
  icqf batch study/ --confounds age sex --out results
  icqf batch wide.csv --codebook items.csv --out results""",
)
@settings(StudyOptions, "columns", "candidates", "paper", "model", "format", "report", without=("names",))
@job_options("results")
@click.pass_context
def command(ctx: click.Context, out: Path, force: bool, dry_run: bool, quiet: bool, **_: Any) -> None:
    """Fit every questionnaire in ANSWERS: a folder with one file each, or a wide table with a codebook.

    In a folder, NAME_codebook.csv is the codebook of NAME.csv, codebook.csv that of all others, and
    participants.csv contains confounds by id. In a wide table, the codebook's column "instrument" assigns the
    items. Files that cannot be used are listed with the reason, and the others are fitted. Run again, the
    command fits what has changed and keeps the rest; --force starts again, also with other settings. The exit
    code is 1 if a questionnaire could not be fitted.
    """
    from icqf.workflow.batch import read_instruments, run_batch
    from icqf.workflow.results_folder import refuse_shared

    options = options_of(ctx, StudyOptions)
    if dry_run:
        for name, study in read_instruments(options).items():
            echo(f"{name}: {worded(study) if isinstance(study, Exception) else study.overview}")
        end_dry_run()
        return
    refuse_shared(out, "batch", inputs=(ctx.params["config"],))
    with job(ctx, out, journal=options.searches, folder=True) as meter:
        done = run_batch(options, out, force=force, checkpoint=meter.journal, callback=meter)
    for name, reason in done.failures.items():
        echo(f"Not fitted: {name}: {worded(reason)}", err=True)
    if not quiet:
        for name, warning in done.directions.items():
            echo(f"Warning: {name}: {worded(warning)}", err=True)
        if done.kept:
            echo(f"Kept from an earlier run: {', '.join(done.kept)}.", err=True)
        if len(done.table):
            table = done.table.drop(columns="expected_again").astype({"found_again": object})
            table["found_again"] = table["found_again"].where(table["found_again"].notna(), "–")
            formats = {"missing": "{:.1%}".format, "explained": "{:.1%}".format, "beta": "{:g}".format}
            echo(table.to_string(index=False, formatters=formats))
        echo(f"\nResults are in {out}/: {', '.join(done.files)}, and one folder for each instrument.")
    if done.failures:
        ctx.exit(SOME_FAILED)
