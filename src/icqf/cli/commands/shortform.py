"""``icqf shortform``: the fewest items that recover the scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from icqf.cli.support.job import job, job_options, say, show_notes
from icqf.cli.support.many import ManyCommand, ManyOption
from icqf.cli.support.options import modelled_options, modelled_options_of
from icqf.cli.support.terminal import echo


@click.command(
    "shortform",
    short_help="The fewest items that recover the scores.",
    cls=ManyCommand,
    context_settings={"show_default": True},
    epilog="""\b
Examples:
  icqf shortform results/model.icqf answers.csv --max-items 20
  icqf shortform results/model.icqf answers.csv --max-items 40 --accuracy 0.9 --keep q001 --drop 'q09*'
  icqf shortform results/model.icqf answers.csv --minutes 0.15 --max-minutes 3 --out three-minutes""",
)
@modelled_options
@click.option(
    "--max-items", type=int, help="Length of the form.  [default: 20, or half of the items if fewer than 40]"
)
@click.option("--accuracy", type=float, help="Mean correlation with the full form that is enough.")
@click.option("--keep", cls=ManyOption, metavar="ITEM", help="Items that must be asked, by name or pattern.")
@click.option("--drop", cls=ManyOption, metavar="ITEM", help="Items that must not be asked.")
@click.option("--minutes", metavar="NUMBER|FILE", help="Minutes an item takes, or a table: item, minutes.")
@click.option("--max-minutes", type=float, help="Most minutes of the form.")
@click.option("--groups", metavar="COLUMN", help="Column of families or sites, which are held out whole.")
@click.option("--title", default="Questionnaire", help="Heading of the page to fill in.")
@click.option("--seed", type=int, default=0, help="Seed of who is held out.")
@job_options("shortform", out_help="Folder for the form.", without=["resume"])
@click.pass_context
def command(
    ctx: click.Context,
    max_items: int | None,
    accuracy: float | None,
    keep: tuple[str, ...],
    drop: tuple[str, ...],
    minutes: str | None,
    max_minutes: float | None,
    groups: str | None,
    title: str,
    seed: int,
    out: Path,
    force: bool,
    dry_run: bool,
    quiet: bool,
    **_: Any,
) -> None:
    """Choose the items of MODEL that recover its scores, from the ANSWERS to all of them.

    Writes the items as a codebook, a model that scores them, how well each length does in participants who
    had no part in the choice, and a page that is filled in and scored in any browser, without a connection.

    With the model of a battery (icqf meta), ANSWERS is a folder with files of its instruments, or a table
    with their items; items are chosen across instruments, called "instrument: item", and no page is written.
    """
    from datetime import UTC, datetime

    from icqf.data.parameters import check_parameter
    from icqf.io.modelfile import is_battery_model
    from icqf.workflow.battery_scores import read_for_battery
    from icqf.workflow.modelled import read_for_model
    from icqf.workflow.places import refuse_existing
    from icqf.workflow.short_forms import items_of, minutes_of, shorten_study, write_short_form

    check_parameter("seed", seed)
    started = datetime.now(UTC)
    asked = {
        "max_items": max_items,
        "accuracy": accuracy,
        "keep": keep,
        "drop": drop,
        "minutes": None if minutes is None else minutes_of(minutes),
        "max_minutes": max_minutes,
    }
    files = modelled_options_of(ctx)
    if is_battery_model(files["model"]):
        if groups is not None:
            raise click.UsageError(
                "--groups is not for batteries: participants are held out one by one.", ctx
            )
        read = read_for_battery(**files)
    else:
        read = read_for_model(groups=groups, **files)
    if dry_run:
        show_notes([*read.notes, f"{read.questionnaire.n_participants} participants."])
        return
    table = None if minutes is None else Path(minutes)
    refuse_existing(out, "shortform", force=force, inputs=(*read.files, table))
    with job(ctx, out, what="Choosing items", unit="items", journal=False) as meter:
        say(read.notes, quiet=quiet)
        form = shorten_study(read, callback=meter, random_state=seed, **asked)
        options = {name: value for name, value in {**asked, "seed": seed}.items() if value not in (None, ())}
        written = write_short_form(
            *(form, out), read=read, options=options, started=started, title=title, force=force
        )
    if quiet:
        return
    for name, item in zip(form.items, items_of(form, read), strict=True):
        words = (name, item.wording, "(reversed)" if item.reverse else "")
        echo("  " + "  ".join(filter(None, words)))
    echo(f"\n{form.sentence}")
    echo(f"\nThe form is in {out}/: {', '.join(written)}")
