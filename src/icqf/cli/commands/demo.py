"""``icqf demo``: the whole analysis on embedded data."""

from __future__ import annotations

import webbrowser
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icqf.cli.commands.fit import NEEDED
from icqf.cli.job import announce, say
from icqf.cli.parsing import FILE
from icqf.cli.terminal import Meter, echo
from icqf.cli.text import choice_text, model_text

if TYPE_CHECKING:
    from icqf.workflow.fit import StudyFit

REAL = ("help", "bfi", "phq9")
SMALL = ("help", "phq9")  # for which starting processes would take longer than the fit


@click.command(
    "demo",
    short_help="The whole analysis on embedded data: about ten seconds.",
    context_settings={"show_default": True},
    epilog="""\b
Examples:
  icqf demo --open
  icqf demo --data bfi --out bfi-demo""",
)
@click.option(
    "--data",
    type=click.Choice(["children", *REAL]),
    default="children",
    help="children: simulated and embedded; the others are real and need pip install 'icqf[examples]'.",
)
@click.option("--out", type=FILE, default=Path("icqf-demo"), help="Folder for the data and the results.")
@click.option("--force", is_flag=True, help="Replace the demo's data files if they were edited.")
@click.option("--jobs", type=int, default=-1, help="Processes; -1 uses all processors.")
@click.option("--open", "show", is_flag=True, help="Open the report in the browser at the end.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors.")
def command(data: str, out: Path, force: bool, jobs: int, show: bool, quiet: bool) -> None:
    """Run the whole analysis once: write a study's files into a folder, check them, fit, and write results.

    The files are treated exactly like your own.
    """
    from icqf.engines.parallel import workers

    with workers(1 if data in SMALL else jobs, NEEDED):
        from icqf.workflow.demo import run_demo
    with Meter(quiet=quiet) as meter:
        how: dict[str, Any] = {"begin": partial(announce, quiet=quiet, meter=meter), "jobs": jobs}
        fit, names = run_demo(data, out, force=force, callback=meter, **how)
    report = (out / "results" / "report.html").resolve()
    if not quiet:
        _show(fit, out, names)
        echo(f"\nOpen the report in a browser: {report}")
    if show and not webbrowser.open(report.as_uri()):
        say([f"The browser could not be opened; open {report} yourself."])


def _show(fit: StudyFit, out: Path, names: list[str]) -> None:
    """Print the results, their folder, and what to try next."""
    say(fit.warnings)
    if fit.search is not None:
        echo(choice_text(fit.search, fit.options.rule) + "\n")
    echo(model_text(fit.model, fit.study.items, top=4))
    echo(f"\nResults are in {out / 'results'}: {', '.join(names)}")
    answers, codebook = fit.options.answers, fit.options.codebook
    echo(
        "\nTry next:\n"
        f"  icqf check {answers} --codebook {codebook} --confounds age sex\n"
        f"  icqf show {out / 'results' / 'model.icqf'} --all\n"
        f"  icqf score {out / 'results' / 'model.icqf'} {answers} --out new-scores.csv"
    )
