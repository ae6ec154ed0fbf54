"""``icqf plan``: how many participants for factors that are found again?"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from icqf.cli.job import announce, job, job_options, only_show, show_notes, typed
from icqf.cli.parsing import ManyCommand, options_of, refuse_typed, settings
from icqf.cli.terminal import echo
from icqf.data.settings import options_in
from icqf.workflow.options import PlanOptions, StudyOptions

FOR_A_PILOT = "is for the answers of a pilot study and has no effect on a model file; leave it out."


@click.command(
    "plan",
    short_help="How many participants for factors that are found again.",
    cls=ManyCommand,
    context_settings={"show_default": True},
    epilog="""\b
Examples:
  icqf plan results/model.icqf
  icqf plan pilot.csv --codebook items.csv --n-components 4 --beta 0.1
  icqf plan results/model.icqf --sizes 200 400 800 --repeats 50""",
)
@settings(PlanOptions, "columns", "candidates", "model")
@job_options("plan", out_help="Folder for tables, figure and page.")
@click.pass_context
def command(ctx: click.Context, out: Path, force: bool, dry_run: bool, quiet: bool, **_: Any) -> None:
    """Say how many participants a study needs for a second one of its size to find the factors again.

    ANSWERS are those of a pilot study, which is fitted first with the options of icqf fit, and divided into
    pairs of subsamples; or a model file (.icqf), which remembers how well halves of its study agreed (where
    it does not, studies are simulated). A factor is found again when its loadings in two studies, fitted with
    as many factors, correlate at least 0.8.
    """
    from icqf.analyses.planning import FITTING_PAIRS, plan
    from icqf.engines.progress import Stages
    from icqf.models.icqf import ICQF
    from icqf.workflow.plan import pair_seconds, pilot_of, write_plan
    from icqf.workflow.read import read_study
    from icqf.workflow.results_folder import refuse_existing

    started, options = datetime.now(UTC), options_of(ctx, PlanOptions)
    if options.from_model:
        refuse_typed(ctx, set(options_in(StudyOptions)) - {*PlanOptions.OF_PLANNING}, FOR_A_PILOT)
        model, pilot, study = ICQF.load(options.answers), None, None
    else:
        study = read_study(options)
    if dry_run:
        if study is None:
            show_notes([f"A model with {len(model.components_)} factors."])
        else:
            only_show(study)
        return
    files = options.paths
    refuse_existing(out, "plan", force=force, inputs=(*files, ctx.params["config"]))
    with job(ctx, out, what=FITTING_PAIRS, unit="pairs") as meter:
        stages = Stages(meter, pair_seconds(options, study))
        if study is not None:
            announce(study, quiet=quiet, meter=meter)
            meter.switch_to("Cross-validation", "fits")
            model, pilot = pilot_of(options, study, checkpoint=meter.journal, callback=stages)
            meter.switch_to(FITTING_PAIRS, "pairs")
        result = plan(model, pilot, checkpoint=meter.journal, callback=stages, **options.parameters)
        about: dict[str, Any] = {"options": options.shareable(), "command": typed(ctx), "started": started}
        written = write_plan(result, out, files=files, force=force, **about)
    if quiet:
        return
    echo(result.curve.to_string(index=False, float_format="{:.2f}".format))
    echo(f"\n{result.sentence}\n\n{result.caution}")
    echo(f"\nTables, figure and page are in {out}/: {', '.join(written)}")
