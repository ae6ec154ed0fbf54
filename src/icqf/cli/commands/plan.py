"""``icqf plan``: how many participants for factors that are found again?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from icqf.cli.support.job import announce, job, job_options, only_show, show_notes, typed
from icqf.cli.support.many import ManyCommand, ManyOption
from icqf.cli.support.options import options_of, study_options
from icqf.cli.support.terminal import echo
from icqf.cli.support.wording import option

OF_PLANNING = (
    *("answers", "config", "sizes", "repeats", "seed", "jobs"),
    *("out", "force", "resume", "dry_run", "progress", "quiet"),
)


@click.command(
    "plan",
    short_help="How many participants for factors that are found again.",
    cls=ManyCommand,
    context_settings={"show_default": True},
    epilog="""\b
Examples:
  icqf plan results/model.icqf
  icqf plan pilot.csv --codebook items.csv --n-components 4 --beta 0.1 --jobs 2
  icqf plan results/model.icqf --sizes 200 400 800 --repeats 50""",
)
@study_options("columns", "candidates", "model")
@click.option(
    "--sizes",
    cls=ManyOption,
    metavar="NUMBER",
    type=int,
    help="Numbers of participants to try.  [default: 50 75 100 150 200 300 400 600 800 1200 1600]",
)
@click.option("--repeats", type=click.IntRange(1), default=20, help="Simulated studies of each size.")
@job_options("plan", out_help="Folder for tables, figure and page.")
@click.pass_context
def command(
    ctx: click.Context,
    sizes: tuple[int, ...],
    repeats: int,
    out: Path,
    force: bool,
    dry_run: bool,
    quiet: bool,
    **_: Any,
) -> None:
    """Simulate studies of several sizes and say how many participants find the factors again.

    ANSWERS is a model file (.icqf), or the answers of a pilot study, which is fitted first with the options
    of icqf fit. A factor is found again when its loadings correlate at least 0.8 with those of the model.
    """
    from datetime import UTC, datetime

    from icqf.extensions.planning import SIZES, plan
    from icqf.models.icqf import ICQF
    from icqf.workflow.places import refuse_existing
    from icqf.workflow.planning import pilot_of, write_plan
    from icqf.workflow.read import read_study

    started, options = datetime.now(UTC), options_of(ctx)
    files = options.paths
    if options.answers.suffix.lower() == ".icqf":
        for name in ctx.params:
            typed_in = ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
            if typed_in and name not in OF_PLANNING:
                raise click.UsageError(
                    f"{option(name)} is for the answers of a pilot study and has no effect on a model file; "
                    "leave it out.",
                    ctx,
                )
        model, pilot, study = ICQF.load(options.answers), None, None
    else:
        study = read_study(options)
    if dry_run:
        if study is None:
            show_notes([f"A model with {len(model.components_)} factors."])
        else:
            only_show(study)
        return
    refuse_existing(out, "plan", force=force, inputs=(*files, ctx.params["config"]))
    with job(ctx, out, what="Simulating studies", unit="studies") as meter:
        if study is not None:
            announce(study, quiet=quiet)
            meter.turn_to("Cross-validation", "fits")
            model, pilot = pilot_of(options, study, checkpoint=meter.journal, callback=meter)
            meter.turn_to("Simulating studies", "studies")
        found = plan(
            *(model, pilot),
            sizes=sizes or SIZES,
            n_repeats=repeats,
            n_jobs=options.jobs,
            checkpoint=meter.journal,
            callback=meter,
            random_state=options.seed,
        )
        written = write_plan(
            *(found, out),
            files=files,
            options={"sizes": list(sizes or SIZES), "repeats": repeats, "seed": options.seed},
            command=typed(ctx),
            started=started,
            force=force,
        )
    if quiet:
        return
    echo(found.curve.to_string(index=False, float_format="{:.2f}".format))
    echo(f"\n{found.sentence}\n\n{found.caution}")
    echo(f"\nTables, figure and page are in {out}/: {', '.join(written)}")
