"""``icqf preregister``: a plan, frozen before the data are seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from icqf.cli.parsing import FILE, command, options_of, settings
from icqf.cli.terminal import echo
from icqf.workflow.options import PreregistrationOptions


@command(
    "Freeze the plan of an analysis before the data are seen.",
    """icqf preregister --template decisions.toml
    icqf preregister --codebook items.csv --confounds age sex --decisions decisions.toml
    icqf fit answers.csv --plan preregistration.toml --out results          (later, with the data)""",
)
@click.option("--template", type=FILE, help="Write the questions to answer to this file, and stop.")
@settings(
    PreregistrationOptions,
    *("columns", "candidates", "paper", "model", "average", "report", "rules"),
    without=(
        *("answers", "id", "dictionary", "participants", "header_row", "sheet", "long", "jobs"),
        *("report", "figures", "names", "with_participants"),
    ),
)
@click.option(
    "--out", type=FILE, default=Path("preregistration.toml"), help="File to write the frozen plan to."
)
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.pass_context
def preregister(ctx: click.Context, template: Path | None, out: Path, force: bool, **_: Any) -> None:
    """Freeze the plan of an analysis: settings, codebook and decisions, before the data are seen.

    No answers are read. First write the questions of a preregistration with --template and answer them in a
    text editor. Then freeze the plan with the options of icqf fit. Beside the plan, its text under the
    headings of OSF's form is written in Markdown and for Word.
    """
    from icqf.errors import InputError
    from icqf.io.atomic import write_bytes
    from icqf.io.preregistration import template as questions
    from icqf.workflow import preregistration as registration
    from icqf.workflow.results_folder import refuse_file

    if template is not None:
        refuse_file(template, force=force)
        write_bytes(template, questions().encode())
        echo(f"The questions are in {template}. Answer them in a text editor.", err=True)
        return
    if out.suffix.lower() != ".toml":
        raise InputError(f"{out}: a plan is written as .toml; choose a name with this ending.")
    options = options_of(ctx, PreregistrationOptions)
    inputs = (options.codebook, options.decisions, ctx.params["config"])
    for ending in (".toml", ".md", ".docx"):
        refuse_file(out.with_suffix(ending), force=force, inputs=inputs)
    plan = registration.preregister(options)
    files = registration.write_preregistration(plan, out)
    echo(f"{len(plan.items)} items and {len(plan.options)} settings were frozen in {files[0]}.")
    echo(f"For OSF's form: {files[1]} and {files[2].name}.")
    echo(f"SHA-256: {plan.sha256}")
    echo(registration.PROOF)
