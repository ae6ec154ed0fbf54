"""``icqf compare``: match the factors of two studies."""

from __future__ import annotations

from pathlib import Path

import click

from icqf.cli.job import say
from icqf.cli.parsing import FILE
from icqf.cli.terminal import echo


@click.command(
    "compare",
    short_help="Match the factors of two studies.",
    context_settings={"show_default": True},
    epilog="""\b
Example:
  icqf compare study1/model.icqf study2/model.icqf --out pairs.csv""",
)
@click.argument("first", type=FILE)
@click.argument("second", type=FILE)
@click.option(
    "--method", type=click.Choice(["greedy", "optimal"]), default="greedy", help="How pairs are formed."
)
@click.option(
    "--similarity",
    type=click.Choice(["pearson", "congruence"]),
    default="pearson",
    help="Similarity by which pairs are formed.",
)
@click.option("--out", type=FILE, help="Table of the pairs: .csv, .sav, .parquet or .xlsx.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
def command(first: Path, second: Path, method: str, similarity: str, out: Path | None, force: bool) -> None:
    """Pair the factors of two models by their loadings on the items they share."""
    from icqf.io import write_table
    from icqf.workflow.compare import compare_models
    from icqf.workflow.results_folder import refuse_table

    if out is not None:
        refuse_table(out, force=force, inputs=(first, second))
    pair = compare_models(first, second, method=method, similarity=similarity)  # type: ignore[arg-type]
    say(pair.notes)
    echo(pair.match)
    if out is not None:
        write_table(pair.match.pairs, out)
        echo(f"The pairs are in {out}.", err=True)
