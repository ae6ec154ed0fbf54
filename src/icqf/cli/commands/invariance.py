"""``icqf invariance``: are the factors the same in every group?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from icqf.cli.support.job import job, journal_beside, say, typed
from icqf.cli.support.many import ManyCommand
from icqf.cli.support.options import FILE, modelled_options, modelled_options_of
from icqf.cli.support.terminal import echo


@click.command(
    "invariance",
    short_help="Whether factors are the same in every group.",
    cls=ManyCommand,
    context_settings={"show_default": True},
    epilog="""\b
Examples:
  icqf invariance results/model.icqf answers.csv --by sex
  icqf invariance results/model.icqf answers.csv --by site --jobs 2 --out sites""",
)
@modelled_options
@click.option("--by", required=True, metavar="COLUMN", help="Column that says who belongs to which group.")
@click.option(
    "--permutations", type=click.IntRange(19), default=199, help="How often groups are shuffled for the test."
)
@click.option(
    "--bootstrap", type=click.IntRange(2), default=100, help="Resamples of each group behind the intervals."
)
@click.option("--seed", type=int, default=0, help="Seed of all random numbers.")
@click.option("--jobs", type=int, default=1, help="Processes; -1 uses all processors.")
@click.option("--out", type=FILE, default=Path("groups"), help="Folder for tables, figure and page.")
@click.option("--force", is_flag=True, help="Replace an earlier comparison in that folder.")
@click.option("--resume", is_flag=True, help="Continue an interrupted run.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors.")
@click.pass_context
def command(
    ctx: click.Context,
    by: str,
    permutations: int,
    bootstrap: int,
    seed: int,
    jobs: int,
    out: Path,
    force: bool,
    resume: bool,
    quiet: bool,
    **_: Any,
) -> None:
    """Compare the factors of MODEL between groups of the participants in ANSWERS.

    The model's settings are fitted to everybody and to each group. Factors are called same, similar or
    different, items that load differently are named, and all loadings are written with their intervals.
    """
    from datetime import UTC, datetime

    from icqf.workflow.groups import compare_groups, write_groups
    from icqf.workflow.modelled import read_for_model
    from icqf.workflow.options import StudyOptions
    from icqf.workflow.places import refuse_existing

    started = datetime.now(UTC)
    asked = {"permutations": permutations, "bootstrap": bootstrap, "seed": seed}
    StudyOptions.of({"answers": "-", "seed": seed, "jobs": jobs})  # refuses what they cannot be
    read = read_for_model(beside=[by], **modelled_options_of(ctx))
    refuse_existing(out, "invariance", force=force, inputs=read.files)
    journal = journal_beside(out, resume=resume)
    say(read.notes, quiet=quiet)
    with job(ctx, journal, quiet=quiet, what="Comparing groups", unit="parts") as meter:
        found = compare_groups(
            *(read, by),
            n_permutations=permutations,
            n_resamples=bootstrap,
            random_state=seed,
            n_jobs=jobs,
            checkpoint=journal,
            callback=meter,
        )
        written = write_groups(
            *(found, out),
            read=read,
            options={"by": by, **asked},
            command=typed(ctx),
            started=started,
            force=force,
        )
    if quiet:
        return
    echo(found.factors.to_string(float_format="{:.3f}".format))
    for sentence in found.sentences:
        echo(f"\n{sentence}")
    echo(f"\nTables, figure and page are in {out}/: {', '.join(written)}")
