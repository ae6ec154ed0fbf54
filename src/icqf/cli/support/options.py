"""Options that several commands share, and how they become one `StudyOptions`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar, overload

import click

from icqf.cli.support.many import ManyOption, NamesOption
from icqf.data.parameters import ENGINES, PARAMETERS, Flag, Number, OneOf
from icqf.data.settings import options_in
from icqf.io.study_files import FILES
from icqf.workflow.options import StudyOptions, read_config

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


_GROUPS = {
    "columns": (
        *("codebook", "dictionary", "participants", "id", "confounds", "smallest_category", "groups"),
        *("items", "subscales", "missing_codes", "visit", "reverse", "config"),
    ),
    "candidates": ("n_components", "beta", "thorough"),
    "model": (
        *("rule", "n_splits", "n_repeats", "weights", "confound_ranges", "missing_confounds", "item_weight"),
        *("intercept", "n_init", "penalty", "tol", "max_iter", "seed", "jobs"),
    ),
    "engine": ("engine", "scheduler"),
    "average": ("consensus",),
    "format": ("format",),
    "report": ("report", "figures", "names", "bootstrap", "with_participants"),
    "rules": ("all_rules",),
    "meta": ("n_meta", "meta_beta"),
    "visits": ("age", "bins", "binning", "within_bin", "smoothness", "weigh_nonresponse", "permutations"),
}
_config = click.option(
    "--config", type=FILE, help="TOML file with any of these options; the command line takes precedence."
)


def option_of(name: str, kind: type[StudyOptions] = StudyOptions) -> Callable[[Command], Command]:
    """Return an option of the command line as the record of all options declares it."""
    declared = options_in(kind)[name]
    default, limits = getattr(kind, name), declared.kind or PARAMETERS.get(name)
    typed = "--" + name.replace("_", "-")
    usual = f"  [default: {declared.usual}]" if declared.usual else ""
    more: dict[str, Any] = {"help": declared.help + usual}
    if declared.metavar:
        more["metavar"] = declared.metavar
    if declared.take is not None:
        if name in FILES:
            more["type"] = FILE
        elif name == "visit":
            more["multiple"] = True
        elif default == ():
            more["cls"] = NamesOption if name == "names" else ManyOption
        return click.option(typed, **more, **({"default": default} if default else {}))
    if isinstance(limits, Flag) and default:
        return click.option(f"{typed}/--no-{typed.removeprefix('--')}", default=True, **more)
    if isinstance(limits, Flag):
        return click.option(typed, is_flag=True, **more)
    if isinstance(limits, OneOf):
        own = _Engine(tuple(ENGINES.own)) if name == "engine" else None
        more["type"] = own or click.Choice(tuple(limits.choices))
    elif isinstance(limits, Number):
        more["type"] = int if limits.whole else float
    return click.option(typed, default=default, **more)


visit_option = option_of("visit")

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


def study_options(
    *groups: str, without: Collection[str] = (), kind: type[StudyOptions] = StudyOptions
) -> Callable[[Command], Command]:
    """Add a file of answers and groups of options to a command: "columns", "candidates", "model", ….

    Those named in `without` have no meaning for the command, whose options are of this `kind`.
    """
    names = [name for group in groups for name in _GROUPS[group] if name not in without]

    def decorate(command: Command) -> Command:
        for name in reversed(names):
            command = (_config if name == "config" else option_of(name, kind))(command)
        return click.argument("answers", type=FILE, required=False)(command)

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
