"""``icqf stability``: do smaller samples of one's own study give the same factors?"""

from __future__ import annotations

from typing import Any

import click

from icqf.cli.support.evaluate import evaluate, evaluation_options
from icqf.cli.support.many import ManyCommand


@click.command(
    "stability",
    short_help="Whether smaller samples give the same factors.",
    cls=ManyCommand,
    context_settings={"show_default": True},
    epilog="""\b
Examples:
  icqf stability answers.csv --codebook items.csv --confounds age sex --jobs 4
  icqf stability answers.csv --codebook items.csv --methods icqf --n-components 8 --beta 0.5""",
)
@evaluation_options(
    ["icqf", "l1-nmf", "fa-promax"],
    out="stability",
    labels="Columns of diagnoses (1 and 0) to keep in proportion in all parts.",
)
def command(ctx: click.Context, **given: Any) -> None:
    """Compare the factors from parts of ANSWERS with those from its whole development set (80 %).

    Every method chooses its number of factors each time. Fits are kept in the folder, which
    both commands may share.
    """
    from icqf.workflow.stability import stability_experiment

    evaluate(ctx, stability_experiment, given)
