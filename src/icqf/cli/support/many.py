"""Options that take several values, as in ``--confounds age sex``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

RAW = "icqf.arguments"
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
    """A command that understands `ManyOption`, and remembers its arguments as they were typed."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat the option's name before each of its values, which is what click understands."""
        ctx.meta[RAW] = list(args)
        names = {name for option in self.params if isinstance(option, ManyOption) for name in option.opts}
        whole = {name for option in self.params if isinstance(option, NamesOption) for name in option.opts}
        try:
            return super().parse_args(ctx, repeated(args, names, whole))
        except click.MissingParameter as error:
            greedy = _greedy(args, names)
            if greedy and isinstance(error.param, click.Argument):
                raise click.UsageError(_too_greedy(error.format_message(), greedy), ctx) from None
            raise


def _greedy(args: list[str], names: set[str]) -> str:
    """The option that took a file among its values, or the last that might have.

    Examples
    --------
    >>> _greedy(["--confounds", "age", __file__, "--beta", "0.1"], {"--confounds", "--beta"})
    '--confounds'
    """
    used = ""
    for word in args:
        if word.split("=")[0] in names:
            used = word.split("=")[0]
        elif used and Path(word).is_file():
            return used
    return used


def _too_greedy(message: str, option: str) -> str:
    return f"{message} ({option} takes all words up to the next option: put the file before it.)"


def repeated(args: Iterable[str], names: set[str], whole: Iterable[str] = ()) -> list[str]:
    """Return the arguments with ``--name a b`` as ``--name=a --name=b``.

    Values of the options in `whole` are not divided at commas.

    Examples
    --------
    >>> repeated(["x.csv", "--codes", "-9", "99", "--out", "r"], {"--codes"})
    ['x.csv', '--codes=-9', '--codes=99', '--out', 'r']
    >>> repeated(["--codes=1,2"], {"--codes"})
    ['--codes=1', '--codes=2']
    >>> repeated(["--names", "Anger, blame", "Worry"], {"--names"}, {"--names"})
    ['--names=Anger, blame', '--names=Worry']
    """
    plain: list[str] = []
    current = None
    found = True
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
    """Refuse an option without a value here: click would take the next option as its value."""
    if option is not None and not found:
        raise click.BadOptionUsage(option, f"Option '{option}' requires an argument.")


def _each(name: str, value: str) -> list[str]:
    return [f"{name}={part.strip()}" for part in value.split(",") if part.strip()]
