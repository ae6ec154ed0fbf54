"""``icqf show``: the card of a model, for the terminal or as a file."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from icqf.cli.parsing import FILE, command
from icqf.cli.terminal import echo, write_data


@command(
    "A model's card: sample, factors, limits, licence.",
    """icqf show results
    icqf show results/model.icqf --all
    icqf show results --markdown > MODEL_CARD.md""",
)
@click.argument("model", type=FILE)
@click.option("--top", type=click.IntRange(1), default=5, help="Items shown for each factor.")
@click.option("--all", "everything", is_flag=True, help="Show all loadings, items by factors and confounds.")
@click.option("--norms", type=FILE, help="Norms file of the model: adds its reference sample.")
@click.option("--markdown", is_flag=True, help="Write Markdown, for GitHub, OSF and others.")
@click.option("--front-matter", is_flag=True, help="The same, with the YAML that Hugging Face reads.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
def show(
    model: Path,
    top: int,
    everything: bool,
    norms: Path | None,
    markdown: bool,
    front_matter: bool,
    as_json: bool,
) -> None:
    """Show who MODEL was fitted to and how, its factors, what it must not be used for, and its licence.

    MODEL is a model file or a results folder. All of it comes from the model file; what only people know is
    stated with icqf describe. Loadings are in points of the questionnaire. For a battery (icqf meta), the
    meta-factors are shown as well.
    """
    from icqf.models.meta import MetaICQF
    from icqf.report.card import front_matter as yaml
    from icqf.workflow.describe import card_of
    from icqf.workflow.new_answers import load_model

    fitted = load_model(model)
    card = card_of(model, top=top, norms=norms)
    if as_json:
        write_data(card.as_json())
        return
    if markdown or front_matter:
        write_data((yaml(card) if front_matter else "") + card.as_markdown())
        return
    echo(card.as_text(shutil.get_terminal_size((100, 24)).columns).rstrip())
    if (card.data or {})["not_stated"]:
        echo("State what is not stated with icqf describe.")
    battery = isinstance(fitted, MetaICQF)
    tables = (fitted.loadings_, fitted.item_loadings_ if battery else fitted.confound_loadings_)
    for table in tables if everything else ():
        echo("\n" + table.to_string(float_format="{:.2f}".format))
