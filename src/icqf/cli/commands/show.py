"""``icqf show``: a model, readable in the terminal."""

from __future__ import annotations

from pathlib import Path

import click

from icqf.cli.support.options import FILE
from icqf.cli.support.terminal import echo
from icqf.cli.support.text import meta_text, model_text


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
    """Show what each factor of MODEL looks like, on the questionnaire's own scale.

    Of a battery (icqf meta), its meta-factors are shown.
    """
    from icqf.io.modelfile import is_battery_model
    from icqf.workflow.score import model_items

    if is_battery_model(model):
        from icqf.extensions.meta import MetaICQF

        battery = MetaICQF.load(model)
        echo(meta_text(battery, top=top))
        if everything:
            for table in (battery.loadings_, battery.item_loadings_):
                echo("\n" + table.to_string(float_format="{:.2f}".format))
        return
    fitted, items = model_items(model)
    echo(model_text(fitted, items, top=top))
    if everything:
        for table in (fitted.loadings_, fitted.confound_loadings_):
            echo("\n" + table.to_string(float_format="{:.2f}".format))
