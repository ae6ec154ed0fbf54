"""Options that several commands share, and how they become one `StudyOptions`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar, overload

import click

from icqf.cli.support.many import ManyOption, NamesOption
from icqf.data.parameters import BETAS, ENGINES, choices_of
from icqf.io.formats import WRITABLE
from icqf.workflow.explained import EXPLAINED
from icqf.workflow.options import ITEM_WEIGHTS, StudyOptions, read_config

Command = TypeVar("Command", bound=Callable[..., Any])


class _File(click.Path):
    """A path; one that no file can have is refused with a sentence."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if "\0" in str(value):
            self.fail("A path cannot hold the character NUL.", param, ctx)
        return super().convert(value, param, ctx)


FILE = _File(path_type=Path)


class _Engine(click.Choice):
    """One of our engines; what other packages add is looked up only where none of ours is named."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value in self.choices:
            return value
        return click.Choice(tuple(ENGINES)).convert(value, param, ctx)


_answers = [click.argument("answers", type=FILE, required=False)]

visit_option = click.option(
    "--visit",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="Visit to keep of a file with several rows per participant, such as wave=1; may be repeated.",
)

_columns = [
    click.option("--codebook", type=FILE, help="Codebook of the items: CSV, Excel or TOML."),
    click.option("--dictionary", type=FILE, help="REDCap data dictionary (CSV) or BIDS sidecar (JSON)."),
    click.option(
        "--participants",
        type=FILE,
        help="Table with confounds, groups or weights by participant id, where ANSWERS lacks them.",
    ),
    click.option("--id", metavar="COLUMN", help="Column of participant ids.  [default: recognised by name]"),
    click.option("--confounds", cls=ManyOption, metavar="COLUMN", help="Columns such as age and sex."),
    click.option(
        "--smallest-category",
        type=int,
        default=StudyOptions.smallest_category,
        help=EXPLAINED["smallest_category"],
    ),
    click.option("--groups", metavar="COLUMN", help=EXPLAINED["groups"]),
    click.option("--items", cls=ManyOption, help="Items to keep, by name or pattern such as 'q0*'."),
    click.option("--subscales", cls=ManyOption, help="Items to keep, by the codebook's subscale."),
    click.option("--missing-codes", cls=ManyOption, metavar="VALUE", help="Values that mean no answer."),
    visit_option,
    click.option(
        "--reverse",
        cls=ManyOption,
        metavar="ITEM",
        help="Items to reverse, by name or pattern; auto: those that run against the others.",
    ),
    click.option(
        "--config", type=FILE, help="TOML file with any of these options; the command line takes precedence."
    ),
]

_candidates = [
    click.option(
        "--n-components",
        cls=ManyOption,
        metavar="K",
        help=EXPLAINED["n_components"] + "  [default: auto]",
    ),
    click.option(
        "--beta",
        cls=ManyOption,
        metavar="NUMBER",
        help=EXPLAINED["beta"] + f"  [default: {' '.join(f'{beta:g}' for beta in BETAS)}]",
    ),
    click.option(
        "--thorough",
        is_flag=True,
        help=EXPLAINED["thorough"],
    ),
]

_model = [
    click.option(
        "--rule",
        type=click.Choice(choices_of("rule")),
        default=StudyOptions.rule,
        help=EXPLAINED["rule"],
    ),
    click.option("--n-splits", type=int, default=StudyOptions.n_splits, help=EXPLAINED["n_splits"]),
    click.option(
        "--n-repeats",
        type=int,
        default=StudyOptions.n_repeats,
        help=EXPLAINED["n_repeats"],
    ),
    click.option("--weights", metavar="COLUMN", help=EXPLAINED["weights"]),
    click.option(
        "--confound-ranges", cls=ManyOption, metavar="NAME=LOW:HIGH", help="Known ranges, such as age=5:21."
    ),
    click.option(
        "--missing-confounds",
        type=click.Choice(choices_of("missing_confounds")),
        default=StudyOptions.missing_confounds,
        help=EXPLAINED["missing_confounds"],
    ),
    click.option(
        "--item-weight",
        type=click.Choice(ITEM_WEIGHTS),
        default=StudyOptions.item_weight,
        help=EXPLAINED["item_weight"],
    ),
    click.option(
        "--intercept/--no-intercept",
        default=StudyOptions.intercept,
        help=EXPLAINED["intercept"],
    ),
    click.option(
        "--n-init",
        metavar="NUMBER|auto",
        default=StudyOptions.n_init,
        help=EXPLAINED["n_init"],
    ),
    click.option(
        "--penalty",
        type=click.Choice(choices_of("penalty")),
        default=StudyOptions.penalty,
        help=EXPLAINED["penalty"],
    ),
    click.option("--tol", type=float, default=StudyOptions.tol, help=EXPLAINED["tol"]),
    click.option("--max-iter", type=int, default=StudyOptions.max_iter, help=EXPLAINED["max_iter"]),
    click.option("--seed", type=int, default=StudyOptions.seed, help=EXPLAINED["seed"]),
    click.option("--jobs", type=int, default=StudyOptions.jobs, help=EXPLAINED["jobs"]),
]

_engine = [
    click.option(
        "--engine",
        type=_Engine(tuple(ENGINES.own)),
        default=StudyOptions.engine,
        help="Where the iterations run: this machine's processors, a Dask cluster, or a GPU.",
    ),
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Scheduler of the Dask cluster, such as tcp://10.0.0.5:8786; for --engine dask.",
    ),
]

_average = [
    click.option("--consensus", is_flag=True, help=EXPLAINED["consensus"]),
]

_table_format = [
    click.option(
        "--format", type=click.Choice(WRITABLE), default=StudyOptions.format, help=EXPLAINED["format"]
    )
]

_report = [
    click.option("--report/--no-report", default=StudyOptions.report, help=EXPLAINED["report"]),
    click.option(
        "--figures/--no-figures",
        default=StudyOptions.figures,
        help=EXPLAINED["figures"],
    ),
    click.option("--names", cls=NamesOption, help="Names of the factors, in their order."),
    click.option(
        "--bootstrap",
        type=click.IntRange(0),
        default=StudyOptions.bootstrap,
        help=EXPLAINED["bootstrap"],
    ),
    click.option("--with-participants", is_flag=True, help=EXPLAINED["with_participants"]),
]


_rules = [
    click.option(
        "--all-rules",
        is_flag=True,
        help=EXPLAINED["all_rules"],
    )
]


_GROUPS = {
    "columns": _columns,
    "candidates": _candidates,
    "model": _model,
    "engine": _engine,
    "average": _average,
    "format": _table_format,
    "report": _report,
    "rules": _rules,
}


_modelled = [
    click.argument("model", type=FILE),
    click.argument("answers", type=FILE),
    click.option("--codebook", type=FILE, help="Directions, missing codes and labels, not the model file's."),
    click.option("--dictionary", type=FILE, help="REDCap data dictionary (CSV) or BIDS sidecar (JSON)."),
    click.option("--id", metavar="COLUMN", help="Column of participant ids.  [default: that of the fit]"),
    click.option(
        "--missing-codes", cls=ManyOption, metavar="VALUE", help="Further values that mean no answer."
    ),
    visit_option,
]


def modelled_options(command: Command) -> Command:
    """Add a model, a file of answers to its items, and how that file is read."""
    for add in reversed(_modelled):
        command = add(command)
    return command


def modelled_options_of(ctx: click.Context) -> dict[str, Any]:
    """Return the parameters of `icqf.workflow.modelled.read_for_model` that were typed."""
    names = ("model", "answers", "codebook", "dictionary", "id", "missing_codes", "visit")
    given = {name: ctx.params[name] for name in names}
    taken = StudyOptions.of({name: given[name] for name in ("answers", "missing_codes", "visit")})
    return {**given, "missing_codes": taken.missing_codes, "visit": taken.visit}


def study_options(*groups: str, without: Collection[str] = ()) -> Callable[[Command], Command]:
    """Add groups of options to a command: "columns", "candidates", "model", ….

    Those named in `without` have no meaning for the command.
    """
    chosen = [*_answers, *(option for group in groups for option in _GROUPS[group])]

    def decorate(command: Command) -> Command:
        own = len(getattr(command, "__click_params__", ()))
        for add in reversed(chosen):
            command = add(command)
        every: list[click.Parameter] = command.__click_params__  # type: ignore[attr-defined]
        every[own:] = [parameter for parameter in every[own:] if parameter.name not in without]
        return command

    return decorate


Options = TypeVar("Options", bound=StudyOptions)


@overload
def options_of(ctx: click.Context) -> StudyOptions: ...


@overload
def options_of(ctx: click.Context, kind: type[Options]) -> Options: ...


def options_of(ctx: click.Context, kind: type[StudyOptions] = StudyOptions) -> StudyOptions:
    """Return the options of a command: what was typed, then the TOML file, then the defaults."""
    known = {field.name for field in fields(kind)}
    typed = {
        name: value
        for name, value in ctx.params.items()
        if name in known and ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    }
    config = ctx.params.get("config")
    values = {**({} if config is None else read_config(config, kind)), **typed}
    if "answers" not in values:
        many = [option for option in ctx.command.params if isinstance(option, ManyOption)]
        used = [option.opts[0] for option in many if ctx.params.get(option.name or "")]
        hint = f" ({used[-1]} takes all words up to the next option: put the file first.)" if used else ""
        raise click.UsageError(f"No file of answers is named.{hint}", ctx)
    return kind.of(values)
