"""``icqf federate``: one fit to the participants of several hospitals, who stay where they are."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icqf.cli.support.job import INTERRUPTED, say
from icqf.cli.support.many import RAW, ManyCommand, ManyOption, NamesOption
from icqf.cli.support.options import FILE, visit_option
from icqf.cli.support.progress import Meter
from icqf.cli.support.terminal import echo
from icqf.cli.support.text import federated_text, message_text, model_text
from icqf.data.parameters import choices_of
from icqf.workflow.options import StudyOptions

if TYPE_CHECKING:
    from icqf.io.exchange import Exchange

_folder = click.option("--folder", type=FILE, required=True, help="The folder that all sites share.")
_wait = click.option(
    "--wait", type=click.FloatRange(min=0, min_open=True), default=60.0, help="Minutes to wait for a file."
)
_quiet = click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors.")


@click.group(
    "federate",
    short_help="One fit for hospitals that may not share participants.",
    epilog="""\b
Examples:
  icqf federate plan items.csv --sites "Hospital A" "Hospital B" --n-components 8 --out plan.toml
  icqf federate site answers.csv --plan plan.toml --folder shared --name "Hospital A"
  icqf federate fit plan.toml --folder shared --out results""",
)
def command() -> None:
    """Fit one model to the participants of several hospitals without moving a row.

    All agree on a plan. Each hospital answers the coordinator's requests with sums over its own participants,
    as files in a shared folder, and keeps a log of every number that leaves it. Scores stay at the hospitals.
    """


@command.command(
    "plan",
    short_help="Write the plan that all agree on.",
    cls=ManyCommand,
    context_settings={"show_default": True},
    epilog="""\b
Example:
  icqf federate plan items.csv --sites "Hospital A" "Hospital B" --n-components 8 --beta 0.1
    --confound-ranges age=5:21 --categories sex=female,male --out plan.toml""",
)
@click.argument("codebook", type=FILE)
@click.option("--sites", cls=NamesOption, required=True, help="Names of all sites that take part.")
@click.option("--n-components", type=int, required=True, metavar="K", help="Number of factors.")
@click.option("--beta", type=float, default=0.1, help="Penalty.")
@click.option(
    "--confound-ranges",
    cls=ManyOption,
    metavar="NAME=LOW:HIGH",
    help="Confounds that are numbers, with their known ranges, such as age=5:21.",
)
@click.option(
    "--categories",
    multiple=True,
    metavar="NAME=A,B",
    help="A confound with its categories, such as sex=female,male; may be repeated.",
)
@click.option("--weights", metavar="COLUMN", help="Column of survey weights at every site.")
@click.option("--item-weight", type=click.Choice(("range", "none")), default="range", help="As in icqf fit.")
@click.option(
    "--intercept/--no-intercept", default=StudyOptions.intercept, help="Column of ones beside the confounds."
)
@click.option("--penalty", type=click.Choice(choices_of("penalty")), default="l1", help="Kind of penalty.")
@click.option(
    "--n-init", metavar="NUMBER|auto", default="auto", help="Number of starts, each as many rounds."
)
@click.option(
    "--tol", type=float, default=StudyOptions.tol, help="Tolerance at which a fit counts as settled."
)
@click.option("--max-iter", type=int, default=StudyOptions.max_iter, help="Maximum number of iterations.")
@click.option("--seed", type=int, default=StudyOptions.seed, help="Seed of all random numbers.")
@click.option("--smallest-site", type=int, default=100, help="Fewest participants of a site.")
@click.option(
    "--smallest-category",
    type=int,
    default=StudyOptions.smallest_category,
    help="Fewest participants of a site in a category, and with an answer to an item.",
)
@click.option(
    "--smallest-group",
    type=int,
    default=5,
    help="Fewest participants that a sum over some of a site may be about; 1 sends all as it is.",
)
@click.option("--digits", type=int, default=0, help="Significant digits of sums that leave a site; 0: all.")
@click.option("--noise", type=int, default=0, help="Made-up participants that each site adds to its own.")
@click.option("--out", type=FILE, default=Path("plan.toml"), help="File to write.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@_quiet
def plan_command(
    codebook: Path,
    sites: tuple[str, ...],
    confound_ranges: tuple[str, ...],
    categories: tuple[str, ...],
    n_init: str,
    out: Path,
    force: bool,
    quiet: bool,
    **settings: Any,
) -> None:
    """Write a plan from a CODEBOOK, in which every item has its range.

    Read the plan together, with whoever answers for the data, before anything is exchanged. The number of
    factors is part of it: choose it at the largest site, for example, with icqf select.
    """
    from icqf.io.atomic import write_bytes
    from icqf.io.codebook import read_codebook
    from icqf.workflow.federation import categories_of, draw_up_plan
    from icqf.workflow.places import refuse_file

    taken = StudyOptions.of({"answers": "-", "confound_ranges": confound_ranges, "n_init": n_init})
    plan = draw_up_plan(
        read_codebook(codebook),
        sites=sites,
        confound_ranges={name: (low, high) for name, low, high in taken.confound_ranges},
        categories=categories_of(categories),
        n_init=taken.n_init,
        **settings,
    )
    refuse_file(out, force=force, inputs=(codebook,))
    write_bytes(out, plan.to_toml().encode())
    if not quiet:
        echo(
            f"The plan of {len(plan.sites)} sites, {len(plan.items)} items and {plan.n_components} factors "
            f"is in {out}. Read it together, and send all sites the same file.",
            err=True,
        )


@command.command(
    "site",
    short_help="Answer requests with sums over this site's participants.",
    cls=ManyCommand,
    context_settings={"show_default": True},
    epilog="""\b
Example:
  icqf federate site answers.csv --plan plan.toml --folder shared --name "Hospital A\"""",
)
@click.argument("answers", type=FILE)
@click.option("--plan", "plan_file", type=FILE, required=True, help="The plan that all have agreed on.")
@_folder
@click.option("--name", required=True, help="This site, as the plan calls it.")
@click.option("--log", type=FILE, help="Folder for the log of what is sent.  [default: sent-NAME]")
@click.option("--once", is_flag=True, help="Answer what is there and end, instead of waiting for more.")
@click.option("--codebook", type=FILE, help="Missing codes and labels of this site.")
@click.option("--dictionary", type=FILE, help="REDCap data dictionary (CSV) or BIDS sidecar (JSON).")
@click.option("--participants", type=FILE, help="Table with confounds or weights by participant id.")
@click.option("--id", metavar="COLUMN", help="Column of participant ids.  [default: recognised by name]")
@click.option("--missing-codes", cls=ManyOption, metavar="VALUE", help="Further values that mean no answer.")
@visit_option
@_wait
@_quiet
@click.pass_context
def site_command(
    ctx: click.Context,
    answers: Path,
    plan_file: Path,
    folder: Path,
    name: str,
    log: Path | None,
    once: bool,
    missing_codes: tuple[str, ...],
    visit: tuple[str, ...],
    wait: float,
    quiet: bool,
    **columns: Any,
) -> None:
    """Take part with the participants in ANSWERS, whose rows never leave this machine.

    The file is checked as by icqf fit, against the plan. Then this site says how many participants it has,
    and answers requests in the shared folder until the coordinator needs no more. After a break, give the
    same command again.
    """
    from icqf.workflow.federate_site import answer_requests, log_folder, read_for_plan
    from icqf.workflow.federation import read_federated_plan
    from icqf.workflow.site_data import site_participants

    plan = read_federated_plan(plan_file)
    taken = StudyOptions.of({"answers": answers, "missing_codes": missing_codes, "visit": visit})
    questionnaire = read_for_plan(
        plan, answers, missing_codes=taken.missing_codes, visit=taken.visit, **columns
    )
    here = site_participants(plan, questionnaire)
    say([*questionnaire.notes, *here.notes], quiet=quiet)
    written = log_folder(name) if log is None else log
    if not quiet:
        what = "Answering what is there" if once else "Waiting for requests (Ctrl-C to stop)"
        echo(f"{what} in {folder}. What is sent is listed in {written}/.", err=True)
    try:
        done = answer_requests(plan, here, _exchange(folder, wait), name=name, log=written, once=once)
    except KeyboardInterrupt:
        _stopped(ctx)
    if not quiet:
        state = "The fit is finished" if done.finished else "The fit is not finished yet"
        echo(
            f"{state}: {done.rounds} requests are answered. What was sent is listed in {written}/sent.csv.",
            err=True,
        )


@command.command(
    "fit",
    short_help="Ask the sites, and fit the model.",
    cls=ManyCommand,
    context_settings={"show_default": True},
    epilog="""\b
Example:
  icqf federate fit plan.toml --folder shared --out results""",
)
@click.argument("plan_file", metavar="PLAN", type=FILE)
@_folder
@click.option("--out", type=FILE, default=Path("results"), help="Folder for the results.")
@click.option("--force", is_flag=True, help="Replace earlier results in that folder.")
@click.option("--top", type=click.IntRange(1), default=5, help="Items shown for each factor.")
@_wait
@_quiet
@click.pass_context
def fit_command(
    ctx: click.Context,
    plan_file: Path,
    folder: Path,
    out: Path,
    force: bool,
    top: int,
    wait: float,
    quiet: bool,
) -> None:
    """Fit the model of a PLAN to the participants of all its sites.

    Waits for each site to announce itself and to answer; after a break, the same command goes on where it
    stopped. Files: loadings, factors, the model, and how many participants each site has. Each site scores
    its own participants with icqf score.
    """
    from icqf.workflow.federate import fit_federated, write_federated
    from icqf.workflow.federation import read_federated_plan
    from icqf.workflow.places import refuse_existing

    plan = read_federated_plan(plan_file)
    refuse_existing(out, force=force)
    if not quiet:
        echo(f"Waiting for {len(plan.sites)} sites in {folder}: {', '.join(plan.sites)}.", err=True)
    try:
        with Meter(quiet=quiet, what="Asking the sites", unit="rounds") as meter:
            fit = fit_federated(plan, _exchange(folder, wait), callback=meter)
    except KeyboardInterrupt:
        _stopped(ctx)
    names = write_federated(fit, out, plan=plan_file, force=force)
    if quiet:
        return
    say(fit.warnings)
    echo(federated_text(fit))
    echo(model_text(fit.model, plan.items, top=top))
    echo(f"\nResults are in {out}/: {', '.join(names)}")


@command.command("show", short_help="What a file in the shared folder holds.")
@click.argument("file", type=FILE)
def show_command(file: Path) -> None:
    """Print what a FILE of the shared folder says, with all its numbers."""
    from icqf.io.exchange import read_message

    echo(message_text(read_message(file)))


def _stopped(ctx: click.Context) -> None:
    """Say how to go on, and end."""
    command = shlex.join(["icqf", "federate", ctx.info_name or "", *ctx.meta.get(RAW, [])])
    echo(f"Stopped. Give the same command again to go on:\n  {command}", err=True)
    ctx.exit(INTERRUPTED)


def _exchange(folder: Path, minutes: float) -> Exchange:
    from icqf.io.exchange import Exchange

    return Exchange(folder, patience=60 * minutes)
