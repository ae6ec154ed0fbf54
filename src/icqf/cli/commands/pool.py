"""``icqf pool``: one model from the model files of several hospitals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from icqf.cli.job import job_options, say
from icqf.cli.parsing import ManyCommand, options_of, settings
from icqf.cli.terminal import echo
from icqf.workflow.options import PoolOptions


@click.command(
    "pool",
    short_help="One model from the models of several hospitals.",
    cls=ManyCommand,
    context_settings={"show_default": True},
    epilog="""\b
Examples:
  icqf fit answers.csv --config config.toml --out results        (at each hospital)
  icqf pool a.icqf b.icqf c.icqf --out pooled.icqf
  icqf score pooled.icqf new.csv --out scores.csv""",
)
@settings(PoolOptions)
@job_options(
    "pooled.icqf",
    out_help="Model file; table and page are written next to it.",
    without=["resume", "dry_run", "progress"],
)
@click.pass_context
def command(ctx: click.Context, out: Path, force: bool, quiet: bool, **_: Any) -> None:
    """Pool MODELS that several sites fitted to their own participants with the same settings.

    Factors are matched and loadings averaged, weighted by participants. The page shows how well the sites
    agree on each factor, and which site differs. The pooled model scores participants of any site.
    """
    from icqf.workflow.pool import lead, pool_models, refuse_pooled, shown_factors, write_pooled

    models = options_of(ctx, PoolOptions).models
    config = () if ctx.params["config"] is None else (ctx.params["config"],)
    refuse_pooled(out, force=force, inputs=(*models, *config))
    pooled = pool_models(models)
    written = write_pooled(pooled, out, force=force, inputs=models)
    if quiet:
        return
    echo(lead(pooled))
    echo("\n" + shown_factors(pooled).rename_axis(None).to_string(float_format="{:.2f}".format))
    say(pooled.notes)
    echo(f"\nWritten: {', '.join(map(str, written))}")
