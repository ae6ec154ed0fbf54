"""``icqf invariance``: are the factors the same in every group?"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from icqf.cli.job import job, job_options, say, show_notes, typed
from icqf.cli.parsing import ManyCommand, options_of, settings
from icqf.cli.terminal import echo
from icqf.errors import counted, shown_p
from icqf.workflow.options import InvarianceOptions


@click.command(
    "invariance",
    short_help="Whether factors are the same in every group.",
    cls=ManyCommand,
    context_settings={"show_default": True},
    epilog="""\b
Examples:
  icqf invariance results/model.icqf answers.csv --by sex
  icqf invariance results/model.icqf answers.csv --by site --out sites""",
)
@settings(InvarianceOptions)
@job_options("groups", out_help="Folder for tables, figure and page.")
@click.pass_context
def command(ctx: click.Context, out: Path, force: bool, dry_run: bool, quiet: bool, **_: Any) -> None:
    """Compare the factors of MODEL between groups of the participants in ANSWERS.

    The model is refitted to all participants and to each group. Factors are rated same, similar or different
    by comparing participants with the same scores; items that load differently, or are answered higher or
    lower at equal scores, are listed, and all loadings are written with their intervals.
    """
    from icqf.workflow.invariance import compare_groups, write_groups
    from icqf.workflow.new_answers import read_for_model
    from icqf.workflow.results_folder import refuse_existing

    started, options = datetime.now(UTC), options_of(ctx, InvarianceOptions)
    by = options.by
    read = read_for_model(options.model, options.files, extra=[by], refitted=True)
    if dry_run:
        sizes = () if read.extra is None else read.extra[by].value_counts().items()
        show_notes([*read.notes, *(f"{by} {group}: {counted(n, 'participant')}." for group, n in sizes)])
        return
    refuse_existing(out, "invariance", force=force, inputs=(*read.files, ctx.params["config"]))
    with job(ctx, out, what="Comparing groups", unit="parts") as meter:
        say(read.notes, quiet=quiet)
        result = compare_groups(read, by, checkpoint=meter.journal, callback=meter, **options.parameters)
        about: dict[str, Any] = {"options": options.shareable(), "command": typed(ctx), "started": started}
        written = write_groups(result, out, read=read, force=force, **about)
    if quiet:
        return
    echo(result.factors.to_string(float_format="{:.3f}".format, na_rep="–"))
    levels = result.items[result.items["level_flagged"]].sort_values("level_p", kind="stable")
    if len(levels):
        echo(f"\nItems answered higher or lower at equal scores, in points ({result.level_sign}):")
        names = {"level_difference": "difference", "level_higher": "higher", "level_q": "q"}
        shown = {"difference": "{:+.2f}".format, "q": shown_p}
        echo(levels[list(names)].rename(columns=names).to_string(formatters=shown))
    for sentence in (result.hypothesis, *result.sentences):
        echo(f"\n{sentence}")
    echo(f"\nTables, figure and page are in {out}/: {', '.join(written)}")
