"""``icqf codebook``: a first codebook, to edit by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from icqf.cli.job import say
from icqf.cli.parsing import FILE, ManyCommand, option_of, options_of
from icqf.cli.terminal import echo, write_data
from icqf.io.study_files import StudyFiles


@click.command(
    "codebook",
    short_help="A first codebook, to edit by hand.",
    cls=ManyCommand,
    context_settings={"show_default": True},
    epilog="""\b
Examples:
  icqf codebook answers.sav > items.csv
  icqf codebook answers.csv --suggest --out items.csv
  icqf codebook redcap.csv --dictionary dictionary.csv --out items.toml""",
)
@click.argument("answers", type=FILE)
@option_of("dictionary")
@click.option("--out", type=FILE, help="File to write, .csv or .toml.  [default: standard output]")
@click.option(
    "--format", "form", type=click.Choice(["csv", "toml"]), help="[default: by the ending of --out, or csv]"
)
@click.option("--suggest", is_flag=True, help="Declare items reversed if they run against the others.")
@option_of("id")
@option_of("visit")
@option_of("doubled")
@option_of("without_id")
@option_of("header_row")
@option_of("sheet")
@option_of("long")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.pass_context
def command(
    ctx: click.Context,
    answers: Path,
    dictionary: Path | None,
    out: Path | None,
    form: str | None,
    suggest: bool,
    force: bool,
    **_: Any,
) -> None:
    """Make a codebook from ANSWERS: from the file's own descriptions, or guessed from the answers.

    Check guessed ranges and missing codes, and the order of answers in words; the column "remark" says what
    to confirm. With --suggest, items that run against the others are declared reversed.
    """
    from icqf.io import format_codebook
    from icqf.io.atomic import write_bytes
    from icqf.workflow.codebook import guess_codebook
    from icqf.workflow.results_folder import refuse_file

    form = form or ("toml" if out is not None and out.suffix.lower() == ".toml" else "csv")
    if out is not None:
        refuse_file(out, force=force, inputs=(answers, dictionary))
    guess = guess_codebook(answers, directions=suggest, **options_of(ctx, StudyFiles).arrangement)
    text = format_codebook(guess.items, format=form, remarks=guess.remarks)
    say(guess.notes)
    if out is None:
        write_data(text)
        return
    write_bytes(out, text.encode())
    echo(f"{len(guess.items)} items were written to {out}; check their ranges.", err=True)
