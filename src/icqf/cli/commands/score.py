"""``icqf score``: scores of new participants."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import click

from icqf.cli.job import say
from icqf.cli.parsing import FILE, ManyCommand, options_of, settings
from icqf.cli.terminal import echo, write_data
from icqf.workflow.options import ScoreOptions

_AT_A_TIME = 2**20


@click.command(
    "score",
    short_help="Scores of new participants from a model.",
    cls=ManyCommand,
    context_settings={"show_default": True},
    epilog="""\b
Examples:
  icqf score results new.csv --out scores.csv
  icqf score results/model.icqf new.sav > scores.csv
  icqf score results new.csv --norms norms/norms.icqf-norms --out scores.csv
  icqf score results cohort.parquet --out scores.parquet
  icqf score results visits.csv --visit-column time --change --out change.csv""",
)
@settings(ScoreOptions)
@click.option("--out", type=FILE, help="Table to write.  [default: CSV on standard output]")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors, and scores without --out.")
@click.pass_context
def command(ctx: click.Context, out: Path | None, force: bool, quiet: bool, **_: Any) -> None:
    """Score the participants in ANSWERS with a fitted MODEL: a model file, or the folder of its results.

    The table needs the model's items and confounds, under the same names. Ranges, directions and missing
    codes are those of the fit. Participants who answered nothing are included, with empty scores.

    Each score (mood) comes with its 90 % interval (mood_low, mood_high) and its information
    (mood_information): the reliability for the answers given, from 0 to 1. A score about which the answers
    say next to nothing is left empty; the last column (missing) says which scores are missing and why.

    With --visit-column, ANSWERS has several rows per participant, and so have the scores. With --change, each
    is followed by the change since the participant's first visit: the difference (mood_change), its interval
    (_low, _high), the probability of a change, and a p-value, which is below 0.05 for a reliable change.

    CSV, Parquet and Arrow files may be of any size: they are read, scored and written in batches. A folder of
    Parquet files with the same columns is treated as one table.

    With the model of a battery (icqf meta), ANSWERS is a folder with files of any of its instruments, or a
    table with their items; absent instruments are treated as missing.

    With --norms, the table needs the columns that the norms are by, and participants for whom one of them is
    missing or outside the reference sample have no percentiles. With --change, every visit is compared with
    people of the age at that visit.
    """
    from icqf.workflow.results_folder import refuse_table
    from icqf.workflow.score import write_scores

    options = options_of(ctx, ScoreOptions)
    form, config = options.format, ctx.params["config"]

    def begin() -> None:
        if out is not None:
            inputs = (options.model, *options.files.paths, options.norms, config)
            refuse_table(out, force=force, format=form, inputs=inputs)

    with TemporaryFile() as spool:
        place = spool if out is None else out
        how: dict[str, Any] = {"format": form, "norms": options.norms, "columns": options.columns}
        done = write_scores(options.model, options.files, place, begin=begin, **how)
        say(done.notes, quiet=quiet)
        if out is None:
            spool.seek(0)
            while lines := spool.readlines(_AT_A_TIME):
                write_data(b"".join(lines).decode())
            return
    if not quiet:
        silent = f" ({done.n_silent} without answers, whose scores are empty)" if done.n_silent else ""
        echo(f"Scores of {done.n_participants} participants{silent} are in {out}.", err=True)
