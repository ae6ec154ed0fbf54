"""``icqf shortform``: the fewest items that recover the scores."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from icqf.cli.job import job, job_options, say, show_notes
from icqf.cli.parsing import ManyCommand, options_of, settings
from icqf.cli.terminal import echo
from icqf.workflow.options import ShortFormOptions


@click.command(
    "shortform",
    short_help="The fewest items that recover the scores.",
    cls=ManyCommand,
    context_settings={"show_default": True},
    epilog="""\b
Examples:
  icqf shortform results/model.icqf answers.csv --max-items 20
  icqf shortform results/model.icqf answers.csv --max-items 40 --correlation 0.9 --keep q001 --drop 'q09*'
  icqf shortform results/model.icqf answers.csv --minutes 0.15 --max-minutes 3 --out three-minutes""",
)
@settings(ShortFormOptions)
@job_options("shortform", out_help="Folder for the form.", without=["resume"])
@click.pass_context
def command(ctx: click.Context, out: Path, force: bool, dry_run: bool, quiet: bool, **_: Any) -> None:
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
    with job(ctx, out, what=CHOOSING, unit="items", journal=False) as meter:
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
