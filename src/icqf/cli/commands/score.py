"""``icqf score``: scores of new participants."""

from __future__ import annotations

from pathlib import Path

import click

from icqf.cli.support.job import say
from icqf.cli.support.many import ManyCommand, ManyOption
from icqf.cli.support.options import FILE, visit_option
from icqf.cli.support.terminal import echo, write_data
from icqf.io.formats import WRITABLE


@click.command(
    "score",
    short_help="Scores of new participants from a model.",
    cls=ManyCommand,
    context_settings={"show_default": True},
    epilog="""\b
Examples:
  icqf score results/model.icqf new.csv --out scores.csv
  icqf score results/model.icqf new.sav > scores.csv""",
)
@click.argument("model", type=FILE)
@click.argument("answers", type=FILE)
@click.option("--out", type=FILE, help="Table to write.  [default: CSV on standard output]")
@click.option("--format", "form", type=click.Choice(WRITABLE), help="[default: by the ending of --out]")
@click.option("--codebook", type=FILE, help="Directions, missing codes and labels, not the model file's.")
@click.option("--dictionary", type=FILE, help="REDCap data dictionary (CSV) or BIDS sidecar (JSON).")
@click.option("--id", metavar="COLUMN", help="Column of participant ids.  [default: that of the fit]")
@click.option("--missing-codes", cls=ManyOption, metavar="VALUE", help="Further values that mean no answer.")
@visit_option
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors, and scores without --out.")
def command(
    model: Path,
    answers: Path,
    out: Path | None,
    form: str | None,
    codebook: Path | None,
    dictionary: Path | None,
    id: str | None,
    missing_codes: tuple[str, ...],
    visit: tuple[str, ...],
    force: bool,
    quiet: bool,
) -> None:
    """Score the participants in ANSWERS with a fitted MODEL.

    The table needs the model's items and confounds, under the same names. Ranges, directions and missing
    codes are those of the fit. Participants who answered nothing are kept, with empty scores.
    """
    from icqf.io.write import csv_text, write_table
    from icqf.workflow.named import DECIMALS
    from icqf.workflow.options import StudyOptions
    from icqf.workflow.places import refuse_table
    from icqf.workflow.score import score_file

    given = StudyOptions.of({"answers": answers, "missing_codes": missing_codes, "visit": visit})

    def begin() -> None:
        if out is not None:
            refuse_table(out, force=force, format=form)

    done = score_file(
        model,
        answers,
        codebook=codebook,
        dictionary=dictionary,
        id=id,
        missing_codes=given.missing_codes,
        visit=given.visit,
        begin=begin,
    )
    say(done.notes, quiet=quiet)
    if out is None:
        write_data(csv_text(done.scores, decimals=DECIMALS))
        return
    write_table(done.scores, out, format=form, decimals=DECIMALS)
    if not quiet:
        silent = f" ({done.n_silent} answered nothing and have empty scores)" if done.n_silent else ""
        echo(f"Scores of {len(done.scores)} participants{silent} are in {out}.", err=True)
