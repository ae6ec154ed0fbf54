"""``icqf report``: name the factors, and rewrite the report."""

from __future__ import annotations

from pathlib import Path

import click

from icqf.cli.parsing import FILE, ManyCommand, NamesOption
from icqf.cli.terminal import echo


@click.command(
    "report",
    short_help="Name the factors, and rewrite the report.",
    cls=ManyCommand,
    epilog="""\b
Examples:
  icqf report results --names "Low mood" "Temper" "Worry"
  icqf report results --names factor2="Temper"
  icqf report results --save-as report.docx
  icqf report results          (after editing the column "name" of results/factors.csv)""",
)
@click.argument("results", type=FILE)
@click.option(
    "--names",
    cls=NamesOption,
    help="Names of the factors in order, or some of them as factor2=NAME."
    "  [default: those in the table of factors]",
)
@click.option(
    "--save-as",
    type=FILE,
    help="Another file for the whole report: .docx (Word), .tex, .txt, .md, .html or .json.",
)
@click.option("--force", is_flag=True, help="Replace an existing file of --save-as.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors.")
def command(results: Path, names: tuple[str, ...], save_as: Path | None, force: bool, quiet: bool) -> None:
    """Rewrite the report, tables, figures and model in the folder RESULTS, with names for the factors.

    Nothing is refitted. The names appear in the report, scores, loadings and the model file, and so in the
    scores of new participants.
    """
    from icqf.workflow.naming import check_report_file, rewrite_results, save_report

    pairs = [name.split("=", 1) for name in names]
    new_names: dict[str, str] | list[str] | None = list(names) or None
    if names and all(len(pair) == 2 for pair in pairs):
        new_names = {old.strip(): new.strip() for old, new in pairs}
    if save_as is not None:
        check_report_file(results, save_as, force=force)
    done = rewrite_results(results, names=new_names)
    if save_as is not None and done.report is not None:
        save_report(done.report, save_as)
    if quiet:
        return
    echo(f"Names of the factors: {', '.join(done.names)}.")
    if done.report is None:
        echo("The fit wrote no report (--no-report), so only tables and model were rewritten.")
    echo(f"Written to {results}: {', '.join(done.files)}")
    if save_as is not None:
        echo(f"The whole report is in {save_as}.")
