"""``icqf reproduce``: the paper's experiments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from icqf.cli.many import ManyCommand, ManyOption
from icqf.cli.progress import Meter

if TYPE_CHECKING:
    import pandas as pd


@click.group(
    "reproduce",
    short_help="Repeat an experiment of the paper.",
    epilog="""\b
Example:
  icqf reproduce table1 --jobs 2""",
)
def command() -> None:
    """Repeat an experiment of the paper; results are tables, figures and a page of text."""


@command.command(
    "table1",
    cls=ManyCommand,
    context_settings={"show_default": True},
    epilog="""\b
Example:
  icqf reproduce table1 --datasets 30 --noise 0.1 0.3 --jobs 2 --out table1""",
)
@click.option("--datasets", default=30, type=click.IntRange(1), help="Synthetic data sets for each noise.")
@click.option(
    "--noise",
    cls=ManyOption,
    metavar="SHARE",
    type=click.FloatRange(0, 1),
    default=(0.1, 0.2, 0.3, 0.4, 0.5),
    help="Shares of noisy answers.",
)
@click.option("--factors", default=10, type=click.IntRange(2), help="True number of factors.")
@click.option("--missing", default=0.0, type=click.FloatRange(0, 0.9), help="Share of missing answers.")
@click.option("--confounds", is_flag=True, help="Let age and sex move some items.")
@click.option("--scheme", "schemes", multiple=True, help='Only these rows, such as "ICQF (BCV)".')
@click.option("--jobs", type=int, help="Processes to use.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("table1"), help="Folder for results.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing on standard error.")
def table1_command(
    datasets: int,
    noise: tuple[float, ...],
    factors: int,
    missing: float,
    confounds: bool,
    schemes: tuple[str, ...],
    jobs: int | None,
    out: Path,
    quiet: bool,
) -> None:
    """Which scheme finds the number of factors: all eleven rows, beside the paper's numbers.

    A run that was broken off goes on where it stopped when the same command is given again.
    """
    from icqf.errors import InputError, did_you_mean
    from icqf.experiments import table1

    for scheme in schemes:
        if scheme not in table1.PAPER:
            raise InputError(f"There is no scheme {scheme!r}.{did_you_mean(scheme, table1.PAPER)}")
    design = table1.Design(
        datasets=datasets,
        noise=tuple(noise),
        k=factors,
        missing=missing,
        confounded=confounds,
        rows=tuple(schemes) or tuple(table1.PAPER),
    )
    out.mkdir(parents=True, exist_ok=True)
    with Meter(quiet=quiet) as meter:
        results = table1.table1(design, n_jobs=jobs, checkpoint=out / "table1.journal", callback=meter)
    table = table1.errors(results, design)
    text = table1.as_text(table)
    results.to_csv(out / "table1_runs.csv", index=False)
    table.to_csv(out / "table1.csv", index=False)
    (out / "table1.txt").write_text(text + "\n", encoding="utf-8")
    _figures(out, table)
    click.echo(text)
    click.echo("Mean |found k − true k| (standard error); the paper's, where it has any, in square brackets.")
    if not quiet:
        click.echo(f"Written to {out}.", err=True)


def _figures(out: Path, table: pd.DataFrame) -> None:
    from icqf.experiments import figures

    figures.table1_figure(table).savefig(out / "table1.png", dpi=150)
    figures.recovery_figure().savefig(out / "recovered_factors.png", dpi=150)
    errors = figures.score_errors(range(2, 21))
    errors.to_csv(out / "proposition2.csv", index=False)
    figures.proposition2_figure(errors).savefig(out / "proposition2.png", dpi=150)
