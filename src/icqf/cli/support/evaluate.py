"""What `icqf stability` and `icqf diagnosis` share: one's own study, divided again and again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from icqf.cli.support.job import announce, job, job_options, only_show, typed
from icqf.cli.support.many import ManyOption
from icqf.cli.support.options import options_of, study_options
from icqf.cli.support.terminal import echo
from icqf.data.parameters import BETAS

if TYPE_CHECKING:
    from icqf.workflow.evaluation import Experiment

Command = Callable[..., Any]


def evaluation_options(methods: Sequence[str], *, out: str, labels: str) -> Callable[[Command], Command]:
    """Add the options of a command that divides a study again and again."""
    chosen = [
        click.option("--labels", cls=ManyOption, metavar="COLUMN", help=labels),
        click.option(
            "--methods",
            cls=ManyOption,
            metavar="NAME",
            type=click.Choice(list(methods)),
            default=tuple(methods),
            help=f"Methods to compare: {', '.join(methods)}.",
        ),
        click.option(
            "--n-components",
            cls=ManyOption,
            metavar="K",
            help="Numbers of factors to choose from, such as 2-16; one fixes it. By default those around the "
            "number that parallel analysis suggests.  [default: auto]",
        ),
        click.option(
            "--beta",
            cls=ManyOption,
            metavar="NUMBER",
            help=f"Penalties to choose from.  [default: {' '.join(f'{beta:g}' for beta in BETAS)}]",
        ),
        click.option(
            "--sizes",
            cls=ManyOption,
            metavar="SHARE",
            type=click.FloatRange(0, 0.8, min_open=True),
            default=(0.8, 0.6, 0.4, 0.2),
            help="Training sets, as shares of the development set.",
        ),
        click.option(
            "--splits",
            default=3,
            type=click.IntRange(1),
            help="How often the study is divided: a few for a first look; a paper wants 30.",
        ),
        job_options(out),
    ]

    def decorate(command: Command) -> Command:
        for add in reversed(chosen):
            command = add(command)
        return click.pass_context(study_options("columns", "model")(command))

    return decorate


def evaluate(ctx: click.Context, experiment: Experiment, given: dict[str, Any]) -> None:
    """Read the study, run the experiment on it, and print its page."""
    from icqf.workflow.evaluation import evaluate_study
    from icqf.workflow.places import exists, refuse_shared
    from icqf.workflow.read import read_study

    options, out, quiet = options_of(ctx), given["out"], given["quiet"]
    study = read_study(options, labels=given["labels"])
    if given["dry_run"]:
        only_show(study)
        return
    tool = str(ctx.info_name)
    refuse_shared(out, tool, inputs=(*study.files, given["config"]))
    page = out / f"{tool}.md"
    if page.exists() and not given["force"]:
        raise exists(page)
    with job(ctx, out, what="Experiment", journal=False, folder=True) as meter:
        announce(study, quiet=quiet)
        page = evaluate_study(
            experiment,
            study,
            options,
            tool=tool,
            out=out,
            n_splits=given["splits"],
            sizes=given["sizes"],
            names=given["methods"],
            command=typed(ctx),
            callback=meter,
        )
    if not quiet:
        echo(page.read_text(encoding="utf-8"))
        echo(f"Written to {out}: {page.name}, tables and figures.", err=True)
