"""``icqf show``: a model, readable in the terminal."""

from __future__ import annotations

from pathlib import Path

import click

from icqf.cli.parsing import FILE
from icqf.cli.terminal import echo
from icqf.cli.text import meta_text, model_text


@click.command(
    "show",
    short_help="A model's factors, readable in the terminal.",
    context_settings={"show_default": True},
    epilog="""\b
Examples:
  icqf show results/model.icqf
  icqf show results/model.icqf --all""",
)
@click.argument("model", type=FILE)
@click.option("--top", type=click.IntRange(1), default=5, help="Items shown for each factor.")
@click.option("--all", "everything", is_flag=True, help="Show all loadings, items by factors and confounds.")
def command(model: Path, top: int, everything: bool) -> None:
    """Show the strongest items of each factor of MODEL, in points of the questionnaire.

    For a battery (icqf meta), the meta-factors are shown.
    """
    from icqf.models.icqf import ICQF
    from icqf.models.longitudinal import LongitudinalICQF
    from icqf.models.meta import MetaICQF
    from icqf.workflow.new_answers import load_model

    fitted = load_model(model)
    if isinstance(fitted, LongitudinalICQF):
        fitted = ICQF.load(model)  # raises an error that names the kind of model
    if isinstance(fitted, MetaICQF):
        echo(meta_text(fitted, top=top))
        tables = (fitted.loadings_, fitted.item_loadings_)
    else:
        echo(model_text(fitted, fitted.codebook_.items, top=top))
        tables = (fitted.loadings_, fitted.confound_loadings_)
    for table in tables if everything else ():
        echo("\n" + table.to_string(float_format="{:.2f}".format))
