"""``icqf plot``: one figure of results, for a paper."""

from __future__ import annotations

from pathlib import Path

import click

from icqf.cli.parsing import FILE, refuse_typed
from icqf.cli.terminal import echo


@click.command(
    "plot",
    short_help="One figure of results, as a file for a paper.",
    context_settings={"show_default": True},
    epilog="""\b
Examples:
  icqf plot results                                  (lists the figures)
  icqf plot results heatmap --out fig2.pdf
  icqf plot results top-items --items 8 --columns 2 --out fig3.svg
  icqf plot results scores --out fig4.png --dpi 600""",
)
@click.argument("results", type=FILE)
@click.argument("figure", required=False)
@click.option("--out", type=FILE, help="File to write: svg, pdf, png, eps or tif.  [default: FIGURE.pdf]")
@click.option(
    "--columns",
    type=click.IntRange(1, 2),
    help="Width in columns of a journal: 85 or 178 mm.  [default: by figure]",
)
@click.option("--items", type=click.IntRange(1, 30), default=5, help="Items of each factor (top-items).")
@click.option("--factor", metavar="NAME", help="Show only this factor (top-items).")
@click.option("--dpi", type=click.IntRange(50, 2400), default=300, help="Dots per inch of png and tif.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors.")
@click.pass_context
def command(
    ctx: click.Context,
    results: Path,
    figure: str | None,
    out: Path | None,
    columns: int | None,
    items: int,
    factor: str | None,
    dpi: int,
    force: bool,
    quiet: bool,
) -> None:
    """Draw FIGURE from the folder RESULTS at the size a journal prints it. Nothing is refitted.

    Without FIGURE, list the available figures.
    """
    from icqf.workflow.plot import figures_of, plot_results

    if figure is None:
        echo("\n".join(figures_of(results)))
        return
    if figure != "top-items":
        refuse_typed(ctx, ("items", "factor"), "is for the figure top-items and has no effect here.")
    place = Path(f"{figure}.pdf") if out is None else out
    plot_results(results, figure, place, columns=columns, items=items, factor=factor, dpi=dpi, force=force)
    if not quiet:
        echo(f"Written to {place}.", err=True)
