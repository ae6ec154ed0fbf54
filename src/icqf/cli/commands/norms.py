"""``icqf norms``: percentiles of scores by age, sex or other columns."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from icqf.cli.job import job, job_options, say, show_notes, typed
from icqf.cli.parsing import ManyCommand, options_of, settings
from icqf.cli.terminal import echo
from icqf.workflow.options import NormsOptions


@click.command(
    "norms",
    short_help="Percentiles of scores by age and sex.",
    cls=ManyCommand,
    context_settings={"show_default": True},
    epilog="""\b
Examples:
  icqf norms results --by age sex
  icqf norms results community.csv --by age sex --weights w --sample "adults in Ohio, 2024"
  icqf score results/model.icqf new.csv --norms norms/norms.icqf-norms --out scores.csv""",
)
@settings(NormsOptions)
@job_options("norms", out_help="Folder for norms file, table and page.", without=["resume"])
@click.pass_context
def command(ctx: click.Context, out: Path, force: bool, dry_run: bool, quiet: bool, **_: Any) -> None:
    """Learn norms from a reference sample: the percentile of each score among participants alike.

    RESULTS is the folder that icqf fit wrote, or a model file. The reference sample is that of the fit, or
    the participants in ANSWERS; survey weights of the fit, or --weights, are respected. Writes a norms file
    for icqf score --norms, which works with this model only and holds nothing about single participants, a
    table of scores at percentiles, and a page with percentile curves. Norms are learned from a random nine
    tenths of the sample, so that the norms of two samples tell little of a participant who is only in one.

    Nothing is extrapolated: the youngest and oldest few are left out, and categories with fewer than 20
    participants are merged into "other".
    """
    from icqf.engines.progress import Progress
    from icqf.workflow.norms import accuracy, codes, norms_of, read_reference, write_norms_folder
    from icqf.workflow.results_folder import refuse_existing

    started, options = datetime.now(UTC), options_of(ctx, NormsOptions)
    reference = read_reference(options)
    read = reference.read
    if dry_run:
        show_notes([*read.notes, f"{read.questionnaire.n_participants} participants."])
        return
    refuse_existing(out, "norms", force=force, inputs=(*read.files, ctx.params["config"]))
    say(read.notes, quiet=quiet)
    with job(ctx, out, what="Learning norms", unit="factors", journal=False) as meter:
        meter(Progress(0, 0, what="Scoring the sample and learning its norms"))
        norms = norms_of(reference, options)
        meter(Progress(0, 0, what="Writing the page"))
        about: dict[str, Any] = {"options": options.shareable(), "command": typed(ctx), "started": started}
        written = write_norms_folder(norms, out, reference=reference, force=force, **about)
    if quiet:
        return
    echo(norms.reference)
    echo(accuracy(norms))
    for each in codes(norms):
        echo(f"Note: {each}")
    echo(f"\nNorms file, table and page are in {out}/: {', '.join(written)}")
