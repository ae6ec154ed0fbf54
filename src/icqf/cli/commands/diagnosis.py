"""``icqf diagnosis``: how well do scores predict diagnoses in one's own study?"""

from __future__ import annotations

from typing import Any

import click

from icqf.cli.support.evaluate import evaluate, evaluation_options
from icqf.cli.support.many import ManyCommand


@click.command(
    "diagnosis",
    short_help="How well scores predict diagnoses.",
    cls=ManyCommand,
    context_settings={"show_default": True},
    epilog="""\b
Example:
  icqf diagnosis answers.csv --codebook items.csv --confounds age sex --labels adhd depression""",
)
@evaluation_options(
    ["icqf", "l1-nmf", "fa-promax", "subscales", "items"],
    out="diagnosis",
    labels="Columns of diagnoses, coded 1 and 0; empty where not known.",
)
def command(ctx: click.Context, **given: Any) -> None:
    """Measure how well scores of several methods predict diagnoses in held-out participants of ANSWERS.

    Factors are learned from the training participants alone. Fits are kept in the folder, which
    both commands may share.
    """
    from icqf.workflow.diagnosis import diagnosis

    if not given["labels"]:
        raise click.UsageError("Name at least one column of diagnoses with --labels.", ctx)
    evaluate(ctx, diagnosis, given)
