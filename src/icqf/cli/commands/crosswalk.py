"""``icqf crosswalk``: scores of one questionnaire from the answers to another."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from icqf.cli.job import job, job_options, say, show_notes, typed
from icqf.cli.parsing import command, options_of, settings
from icqf.cli.terminal import echo
from icqf.workflow.options import CrosswalkOptions


@command(
    "Scores of one questionnaire from another.",
    """icqf crosswalk study/ --from bdi --to phq9
    icqf crosswalk answers.csv --from 'bdi*' --to 'phq*' --by sex age
    icqf crosswalk answers.csv --from bdi-items.csv --to phq-items.csv
    icqf crosswalk study/ --from bdi --to phq9 --model phq9-results
    icqf score crosswalk new.csv --out predicted.csv""",
)
@settings(CrosswalkOptions)
@job_options("crosswalk", out_help="Folder for the crosswalk, its table and page.", without=["resume"])
@click.pass_context
def crosswalk(ctx: click.Context, out: Path, force: bool, dry_run: bool, quiet: bool, **_: Any) -> None:
    """Learn to predict scores of one questionnaire from answers to another, from participants with both.

    ANSWERS is a folder with one file for each questionnaire, named after them and joined by participant id,
    or a wide table; its questionnaires are the instruments of --codebook, patterns of item names, or have
    a codebook each.
    Predicts the sum and, with --model, the scores of its factors, each with a 90 % interval. Writes a file
    for icqf score, a table of sums to print, and a page that says how near predictions of held-out
    participants came, and whether the two may be linked.

    A prediction is for one participant, and nearer to the middle than scores are. Linked sums, of the same
    rank, compare distributions; they are given only if the sums correlate .866 or more.
    """
    from icqf.engines.progress import Progress
    from icqf.workflow.crosswalk import crosswalk_of, read_both, verdicts, write_crosswalk_folder
    from icqf.workflow.results_folder import refuse_existing

    started, options = datetime.now(UTC), options_of(ctx, CrosswalkOptions)
    both = read_both(options)
    if dry_run:
        sizes = [
            f"{name}: {len(part.answers)} participants, {part.n_items} items."
            for name, part in zip(both.names, (both.source, both.target), strict=True)
        ]
        show_notes([*both.notes, *sizes])
        return
    refuse_existing(out, "crosswalk", force=force, inputs=(*both.files, ctx.params["config"]))
    say(both.notes, quiet=quiet)
    with job(ctx, out, what="Learning the crosswalk", unit="folds", journal=False) as meter:
        meter(Progress(0, 0, what="Learning the crosswalk, and judging it on held-out participants"))
        made = crosswalk_of(both, options)
        about: dict[str, Any] = {"options": options.shareable(), "command": typed(ctx), "started": started}
        written = write_crosswalk_folder(made, out, both=both, force=force, **about)
    if quiet:
        return
    for each in verdicts(made):
        echo(each)
    if options.model is None:
        echo("For the scores of factors as well, add --model with the results of icqf fit.")
    echo(f"\nCrosswalk, table and page are in {out}/: {', '.join(written)}")
