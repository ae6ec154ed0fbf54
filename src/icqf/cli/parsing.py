"""Command-line options: made from the records in `icqf.workflow.options`, and parsed into them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from icqf.data.settings import PARAMETERS, Flag, Number, OneOf, Option, Settings, number_in, options_in
from icqf.errors import InputError
from icqf.registry import Registry
from icqf.workflow.options import StudyOptions, no_plan_here, read_config

RAW = "icqf.arguments"
Command = TypeVar("Command", bound=Callable[..., Any])
Kind = TypeVar("Kind", bound=Settings)
_NEGATIVE = re.compile(r"-\.?\d")


class ManyOption(click.Option):
    """An option that takes all words up to the next option; commas separate as well."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "multiple": True})

    def make_metavar(self, ctx: click.Context) -> str:
        """Show that several values may follow."""
        return f"{self.metavar or 'NAME'}..."


class NamesOption(ManyOption):
    """A `ManyOption` whose values are free text, in which a comma is part of the name."""


class ManyCommand(click.Command):
    """A command that supports `ManyOption`, and stores its arguments as typed."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat the option's name before each of its values, as click requires."""
        ctx.meta[RAW] = list(args)
        names = {name for option in self.params if isinstance(option, ManyOption) for name in option.opts}
        whole = {name for option in self.params if isinstance(option, NamesOption) for name in option.opts}
        try:
            return super().parse_args(ctx, repeated(args, names, whole))
        except click.MissingParameter as error:
            if isinstance(error.param, click.Argument):
                raise _not_given(ctx, error.format_message()) from None
            raise


def command(short_help: str, examples: str) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command of the function's name; `examples` has one line each, shown below the options."""
    lines = [line.strip() for line in examples.splitlines()]
    title = "Example:" if len(lines) == 1 else "Examples:"
    return click.command(
        short_help=short_help,
        cls=ManyCommand,
        context_settings={"show_default": True},
        epilog="\n".join(["\b", title, *(f"  {line}" for line in lines)]),
    )


def _not_given(ctx: click.Context, message: str) -> click.UsageError:
    """Return an error for a missing file, naming the option that may have taken it."""
    many = [option for option in ctx.command.params if isinstance(option, ManyOption)]
    names = {name for option in many for name in option.opts}
    used = ""
    for word in ctx.meta.get(RAW, []):
        if word.split("=")[0] in names:
            used = word.split("=")[0]
        elif used and Path(word).is_file():
            break
    hint = f" ({used} takes all words up to the next option: put the file first.)" if used else ""
    return click.UsageError(f"{message}{hint}", ctx)


class _File(click.Path):
    """A path; impossible paths are refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if "\0" in str(value):
            self.fail("A path cannot contain the character NUL.", param, ctx)
        return super().convert(value, param, ctx)


FILE = _File(path_type=Path)


class _Choice(click.Choice):
    """One of a few values shown in the help; the record of options checks them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value


_GROUPS = {
    "columns": (
        *("codebook", "dictionary", "participants", "id", "confounds", "smallest_category", "groups"),
        *("items", "subscales", "missing_codes", "visit", "doubled", "without_id", "reverse", "not_asked"),
        *("header_row", "sheet", "long", "config"),
    ),
    "about": ("about",),
    "candidates": ("n_components", "beta", "thorough"),
    "paper": ("loading_beta", "paper"),
    "model": (
        *("rule", "n_splits", "n_repeats", "weights", "confound_ranges", "missing_confounds", "item_weight"),
        *("intercept", "n_init", "penalty", "tol", "max_iter", "seed", "jobs"),
    ),
    "engine": ("engine", "scheduler"),
    "average": ("consensus",),
    "format": ("format",),
    "report": ("report", "figures", "names", "bootstrap", "with_participants"),
    "rules": ("all_rules",),
    "plan": ("plan", "deviation"),
    "meta": ("n_meta", "meta_beta"),
    "visits": ("age", "bins", "binning", "within_bin", "smoothness", "weigh_nonresponse", "permutations"),
}
_config = click.option(
    "--config", type=FILE, help="TOML file with any of these options; the command line takes precedence."
)


def settings(
    kind: type[Settings], *groups: str, without: Collection[str] = ()
) -> Callable[[Command], Command]:
    """Add the options of a record to a command, and a TOML file with options.

    Of the options of a study, those in `groups` are added ("columns", "candidates", "model", …), then those
    that the record itself declares, except those named in `without`.
    """
    declared, usual = options_in(kind), options_in(StudyOptions)
    names = [name for group in groups for name in _GROUPS[group]]
    own = [name for name, each in declared.items() if each is not usual.get(name) or not groups]
    names += [name for name in own if name not in names and not declared[name].argument]
    names += [] if "config" in names else ["config"]
    arguments = [name for name, each in declared.items() if each.argument]

    def decorate(command: Command) -> Command:
        for name in reversed([name for name in names if name not in without]):
            command = (_config if name == "config" else option_of(name, kind))(command)
        for name in reversed(arguments):
            nargs = -1 if declared[name].many else 1
            command = click.argument(name, type=FILE, required=False, nargs=nargs)(command)
        return command

    return decorate


def option_of(name: str, kind: type[Settings] = StudyOptions) -> Callable[[Command], Command]:
    """Return a command-line option as declared by a record of options."""
    declared, default = options_in(kind)[name], getattr(kind, name, None)
    limits, typed = _limits(name, declared), "--" + name.strip("_").replace("_", "-")
    usual = f"  [default: {declared.usual}]" if declared.usual else "  [required]" * bool(declared.missing)
    more: dict[str, Any] = {"help": (declared.help + usual).strip()}
    if declared.metavar:
        more["metavar"] = declared.metavar
    if isinstance(limits, Flag) and default:
        return click.option(f"{typed}/--no-{typed.removeprefix('--')}", default=True, **more)
    if isinstance(limits, Flag):
        return click.option(typed, is_flag=True, **more)
    if declared.file and not declared.metavar:
        more["type"] = FILE
    elif name == "visit":
        more["multiple"] = True
    elif isinstance(default, tuple) or declared.joined:
        more |= {"cls": NamesOption if declared.whole else ManyOption, "type": click.UNPROCESSED}
        more |= {} if isinstance(limits, OneOf) or declared.metavar or not limits else {"metavar": "NUMBER"}
    elif isinstance(limits, OneOf):
        choices = limits.choices
        more["type"] = _Choice(tuple(choices.own if isinstance(choices, Registry) else choices))
    elif isinstance(limits, Number):
        more = {"type": click.UNPROCESSED, "metavar": "INTEGER" if limits.whole else "FLOAT"} | more
    return click.option(typed, name, **more, **({"default": default} if default not in (None, ()) else {}))


def _limits(name: str, declared: Option) -> Any:
    return None if declared.take is not None else declared.kind or PARAMETERS[name]


def options_of(ctx: click.Context, kind: type[Kind]) -> Kind:
    """Return the options of a command: typed, else from the TOML file, else defaults."""
    values: dict[str, Any] = {}
    config = ctx.params.get("config")
    if config is not None:
        values |= read_config(config, kind)
    for name, declared in options_in(kind).items():
        value = ctx.params.get(name)
        if is_typed(ctx, name) and value not in (None, ()):
            number = isinstance(_limits(name, declared), Number)
            values[name] = _numbers(value) if number else value
    if values.get("plan") and "plan" not in ctx.params:
        raise no_plan_here("" if config is None else config.name)
    try:
        return kind.of(values)
    except InputError as error:
        if error.code == "not-given" and not error.remedy:
            raise _not_given(ctx, error.message) from None
        raise


def _numbers(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_numbers, value))
    return number_in(value) if isinstance(value, str) else value


def is_typed(ctx: click.Context, name: str) -> bool:
    """Whether an option was given on the command line."""
    return ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def refuse_typed(ctx: click.Context, names: Iterable[str], why: str) -> None:
    """Refuse typed options that have no effect here; `why` completes the sentence."""
    for name in names:
        if is_typed(ctx, name):
            raise click.UsageError(f"--{name.replace('_', '-')} {why}", ctx)


def repeated(args: Iterable[str], names: set[str], whole: Iterable[str] = ()) -> list[str]:
    """Return the arguments with ``--name a b`` as ``--name=a --name=b``.

    Values of the options in `whole` are not split at commas.
    """
    plain: list[str] = []
    current = None
    found = True  # whether the current option has a value
    words = list(args)
    for position, word in enumerate(words):
        if word == "--":
            _require_value(current, found)
            return [*plain, *words[position:]]
        name, sign, value = word.partition("=")
        if name in names:
            _require_value(current, found)
            current, found = (None, True) if sign else (name, False)
            if sign:
                plain += [word] if name in whole else _each(name, value)
        elif current is not None and (not word.startswith("-") or _NEGATIVE.match(word)):
            plain += [f"{current}={word}"] if current in whole else _each(current, word)
            found = True
        else:
            _require_value(current, found)
            current, found = None, True
            plain.append(word)
    _require_value(current, found)
    return plain


def _require_value(option: str | None, found: bool) -> None:
    """Refuse an option without a value: click would take the next option as its value."""
    if option is not None and not found:
        raise click.BadOptionUsage(option, f"Option '{option}' requires an argument.")


def _each(name: str, value: str) -> list[str]:
    return [f"{name}={part.strip()}" for part in value.split(",") if part.strip() or not value]
