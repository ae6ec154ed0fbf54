"""``icqf diagnosis``: how well do scores predict diagnoses in your study?"""

from __future__ import annotations

from typing import Any

import click

from icqf.cli.commands.stability import evaluate
from icqf.cli.job import job_options
from icqf.cli.parsing import ManyCommand, options_of, settings
from icqf.workflow.options import DiagnosisOptions


@click.command(
    "diagnosis",
    short_help="How well scores predict diagnoses.",
    cls=ManyCommand,
    context_settings={"show_default": True},
    epilog="""\b
Example:
  icqf diagnosis answers.csv --codebook items.csv --confounds age sex --labels adhd depression""",
)
@settings(DiagnosisOptions, "columns", "model")
@job_options("diagnosis")
@click.pass_context
def command(ctx: click.Context, **_: Any) -> None:
    """Measure how well scores of several methods predict diagnoses in held-out participants of ANSWERS.

    Factors are learned from the training participants only. Fits are stored in the folder, which icqf
    stability may share.
    """
    from icqf.workflow.diagnosis import diagnosis

    evaluate(ctx, diagnosis, options_of(ctx, DiagnosisOptions))
