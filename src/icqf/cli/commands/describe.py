"""``icqf describe``: state instrument, sample, licence and citation of a model."""

from __future__ import annotations

from typing import Any

import click

from icqf.cli.job import say
from icqf.cli.parsing import command, is_typed, options_of, settings
from icqf.cli.terminal import echo
from icqf.data.about import About
from icqf.data.settings import options_in
from icqf.workflow.options import DescribeOptions


@command(
    "State a model's sample, licence and citation.",
    """icqf describe results --licence CC-BY-4.0 --sample "outpatients of two clinics in Ohio, 2021"
    icqf describe results/model.icqf --about study.toml
    icqf describe results --contact ''""",
)
@settings(DescribeOptions, without=["config"])
@click.pass_context
def describe(ctx: click.Context, **_: Any) -> None:
    """Write into MODEL what only people know about it, and list what is not stated.

    MODEL is a model file or a results folder. Nothing is refitted, and scores stay the same. An empty text
    takes a statement back. icqf show prints the card of the model.
    """
    from icqf.workflow.describe import describe_model

    options = options_of(ctx, DescribeOptions)
    given = {name: getattr(options, name) for name in options_in(About) if is_typed(ctx, name)}
    about = describe_model(options.model, about=options.about, **given)
    say(about.notes)
    for name, text in vars(about).items():
        label = name.replace("_", " ")
        echo(f"{label[:1].upper()}{label[1:]}: {text or 'not stated'}")
