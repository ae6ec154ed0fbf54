"""``icqf person``: pages about single persons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from icqf.cli.job import job, job_options, say
from icqf.cli.parsing import ManyCommand, NamesOption, options_of, settings
from icqf.cli.terminal import echo
from icqf.workflow.options import PersonOptions


@click.command(
    "person",
    short_help="A page about one person's answers.",
    cls=ManyCommand,
    context_settings={"show_default": True},
    epilog="""\b
Examples:
  icqf person results/model.icqf answers.csv --id P017 --out p017.html
  icqf person results visits.csv --id P017 --visit-column time
  icqf person results answers.csv --id P017 --informant mother
  icqf person results answers.csv --id P017 P021 --out persons
  icqf person results answers.csv --all --norms norms/norms.icqf-norms --out persons""",
)
@settings(PersonOptions, without=["id", "who"])
@click.option(
    "--id", "who", cls=NamesOption, type=click.UNPROCESSED, metavar="ID", help="Participants, by their ids."
)
@click.option(
    "--id-column", "id", metavar="COLUMN", help="Column of participant ids.  [default: that of the fit]"
)
@job_options(
    None,
    out_help="File (.html, .docx, .md) for one person, else a folder.  [default: ID.html, or persons]",
    without=["resume", "dry_run"],
)
@click.pass_context
def command(ctx: click.Context, out: Path | None, force: bool, quiet: bool, **_: Any) -> None:
    """Write a page about one person in ANSWERS, from a fitted MODEL or its results folder.

    The page fits on one sheet of A4 and is written for clinicians, patients and parents: each score with its
    likely range, the answers that raise it, answers that do not fit the rest, questions left out and, if the
    person has several visits, the change since the visit before. With --norms, it adds percentiles, each with
    its likely range; with --informant, it says who filled in the form.

    The page holds one person's answers: it is not written into a folder of results. It needs no connection.
    """
    from icqf.workflow.person import write_people

    options = options_of(ctx, PersonOptions)
    with job(ctx, out or Path("persons"), what="Writing pages", unit="pages", journal=False) as meter:
        place, n = write_people(
            options,
            out,
            force=force,
            config=ctx.params["config"],
            begin=lambda people: say(people.notes, quiet=quiet),
            callback=meter,
        )
    if not quiet:
        what, keep = ("The page is", "It holds") if n == 1 else (f"{n} pages are", "They hold")
        echo(f"{what} in {place}. {keep} personal answers: keep safe, and share with care.", err=True)
