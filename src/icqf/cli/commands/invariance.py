"""``icqf invariance``: are the factors the same in every group?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from icqf.cli.support.job import job, job_options, say, show_notes, typed
from icqf.cli.support.many import ManyCommand
from icqf.cli.support.options import modelled_options, modelled_options_of
from icqf.cli.support.terminal import echo
from icqf.errors import counted


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
@job_options("groups", out_help="Folder for tables, figure and page.")
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
    dry_run: bool,
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
    if dry_run:
        sizes = () if read.beside is None else read.beside[by].value_counts().items()
        show_notes([*read.notes, *(f"{by} {group}: {counted(n, 'participant')}." for group, n in sizes)])
        return
    refuse_existing(out, "invariance", force=force, inputs=read.files)
    with job(ctx, out, what="Comparing groups", unit="parts") as meter:
        say(read.notes, quiet=quiet)
        found = compare_groups(
            *(read, by),
            n_permutations=permutations,
            n_resamples=bootstrap,
            random_state=seed,
            n_jobs=jobs,
            checkpoint=meter.journal,
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
