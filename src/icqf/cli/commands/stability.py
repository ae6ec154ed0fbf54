"""``icqf stability``: do smaller samples of your study give the same factors?"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from icqf.cli.job import announce, job, job_options, only_show, typed
from icqf.cli.parsing import ManyCommand, options_of, settings
from icqf.cli.terminal import echo
from icqf.workflow.options import StabilityOptions

if TYPE_CHECKING:
    from icqf.workflow.evaluation import Experiment


@click.command(
    "stability",
    short_help="Whether smaller samples give the same factors.",
    cls=ManyCommand,
    context_settings={"show_default": True},
    epilog="""\b
Examples:
  icqf stability answers.csv --codebook items.csv --confounds age sex
  icqf stability answers.csv --codebook items.csv --methods icqf --n-components 8 --beta 0.5""",
)
@settings(StabilityOptions, "columns", "model")
@job_options("stability")
@click.pass_context
def command(ctx: click.Context, **_: Any) -> None:
    """Compare the factors from parts of ANSWERS with those from its whole development set (80 %).

    Every method chooses its number of factors each time. Fits are stored in the folder, which icqf diagnosis
    may share.
    """
    from icqf.workflow.stability import stability_experiment

    evaluate(ctx, stability_experiment, options_of(ctx, StabilityOptions))


def evaluate(ctx: click.Context, experiment: Experiment, options: StabilityOptions) -> None:
    """Read the study, run an experiment on it, and print its page."""
    from icqf.workflow.evaluation import COMPARING, evaluate_study
    from icqf.workflow.read import read_study
    from icqf.workflow.results_folder import exists, refuse_shared

    params, tool = ctx.params, str(ctx.info_name)
    out, quiet = params["out"], params["quiet"]
    study = read_study(options, labels=options.labels)
    if params["dry_run"]:
        only_show(study)
        return
    refuse_shared(out, tool, inputs=(*study.files, params["config"]))
    page = out / f"{tool}.md"
    if page.exists() and not (params["force"] or params["resume"]):
        raise exists(page)
    began = time.time()
    try:
        with job(ctx, out, what=COMPARING, journal=False, folder=True) as meter:
            announce(study, quiet=quiet, meter=meter)
            about: dict[str, Any] = {"tool": tool, "out": out, "command": typed(ctx)}
            page = evaluate_study(experiment, study, options, callback=meter, **about)
    except click.exceptions.Exit:
        if page.exists() and page.stat().st_mtime >= began:
            echo(f"{page} shows what the finished splits say.", err=True)
        raise
    if not quiet:
        echo(page.read_text(encoding="utf-8"))
        echo(f"Written to {out}: {page.name}, tables and figures.", err=True)
