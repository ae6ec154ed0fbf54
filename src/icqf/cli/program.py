"""The program ``icqf``: finds its commands, and turns errors into a message and an exit code.

A new command is a function in a module of ``icqf/cli/commands``, with its name in `OWN` and `_MODULES`; other
packages add commands through the entry point group ``icqf.commands``. Commands import heavy modules inside
functions, so that ``icqf --help`` starts at once.
"""

from __future__ import annotations

import importlib
import os
import re
import signal
import warnings
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from typing import Any

import click

from icqf import __version__
from icqf.cli.terminal import echo, escaped, stopped
from icqf.cli.text import arguments_in_r, from_r, worded
from icqf.errors import InputError, concerns_users, did_you_mean
from icqf.io.atomic import FULL, forget_written
from icqf.registry import Registry

OWN = (
    *("demo", "app", "check", "codebook", "fit", "select", "report", "plot", "score", "norms", "person"),
    *("crosswalk", "show", "describe", "compare", "longitudinal", "shortform", "invariance", "plan"),
    *("preregister", "batch", "meta", "pool", "stability", "diagnosis"),
)
_MODULES = {
    name: module
    for module, names in {
        "study": ("demo", "app", "check", "codebook", "fit", "select"),
        "results": ("report", "plot", "score", "norms", "person", "describe", "show", "compare", "pool"),
        "several": ("longitudinal", "invariance", "batch", "meta", "crosswalk"),
        "design": ("shortform", "plan", "preregister", "stability", "diagnosis"),
    }.items()
    for name in names
}
COMMANDS = Registry(
    "icqf.commands",
    {name: f"icqf.cli.commands.{_MODULES[name]}:{name}" for name in OWN},
    "a click command",
    "click:Command",
)
# Commands of our other packages, and how to install them.
ELSEWHERE = {"reproduce": ("icqf-experiments", "pip install ./experiments")}
BAD_INPUT = 2
INTERRUPTED = 130
_NO_GLYPH = re.compile(r"Glyph \d+ .* missing from")


class Refusal(click.ClickException):
    """Input that cannot be used: one message, exit code 2."""

    exit_code = BAD_INPUT


class Program(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of a first analysis, then those of other packages."""
        names = list(OWN)
        for name in COMMANDS.added():
            try:
                COMMANDS.load(name)
            except InputError as error:
                echo(f"Note: {escaped(str(error))}", err=True)
            else:
                names.append(name)
        return names

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = COMMANDS.load(cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called, or suggest the nearest."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            if args[0] in ELSEWHERE:
                package, install = ELSEWHERE[args[0]]
                raise Refusal(
                    f"'icqf {args[0]}' comes with the package {package}, which is not installed: "
                    f"run '{install}' in a copy of icqf's repository."
                )
            ctx.fail(f"No such command {args[0]!r}.{did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; bad input gives exit code 2, an interrupt 130."""
        forget_written()
        try:
            _ignore_local_settings()
            with _warnings_as_messages():
                return super().invoke(ctx)
        except InputError as error:
            raise Refusal(escaped(worded(error))) from error
        except click.UsageError as error:
            complaint = escaped(error.format_message())
            if from_r():
                raise Refusal(arguments_in_r(complaint)) from error
            raise click.UsageError(complaint, error.ctx) from error
        except KeyboardInterrupt:
            echo(stopped(), err=True)
            ctx.exit(INTERRUPTED)
        except MemoryError as error:
            raise Refusal("This machine has too little memory for these data.") from error
        except BrokenPipeError:
            raise
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            fault = "the disk is full" if error.errno in FULL else error.strerror or error
            raise Refusal(escaped(f"{place}{fault}.")) from error


def _ignore_local_settings() -> None:
    """Prevent matplotlib from reading a ``matplotlibrc`` in the working folder when first imported."""
    if os.path.lexists("matplotlibrc"):
        with chdir(os.path.dirname(__file__)):
            importlib.import_module("matplotlib")


@contextmanager
def _warnings_as_messages() -> Iterator[None]:
    boxes: list[str] = []

    def show(message: Any, category: Any, *place: Any, **more: Any) -> None:
        context = click.get_current_context(silent=True)
        quiet = context is not None and context.params.get("quiet", False)
        if concerns_users(category) and not quiet:
            text = worded(message)
            if _NO_GLYPH.match(text):  # raised for each character and figure
                if boxes:
                    return
                boxes.append(text)
                text = "The font of the figures lacks characters of some names; they are drawn as boxes."
            echo(f"Note: {text}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = show
        yield


@click.command(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Start with:
  icqf demo
  icqf check answers.csv
  icqf fit answers.csv --codebook items.csv --confounds age sex --out results""",
)
@click.version_option(__version__, prog_name="icqf")
def cli() -> None:
    """Interpretable factors from questionnaires.

    Reads a study's files (CSV, Excel, SPSS, Stata, SAS, Parquet, REDCap, BIDS), with missing answers, and
    writes tables keyed by participant and item. Your data never leave your computer.

    Exit codes: 0 done, 1 something must be fixed (check), 2 bad input or usage, 130 interrupted.
    """


def main() -> None:
    """Run the program."""
    # Child processes import nothing from their working folder, which may be somebody else's.
    os.environ["PYTHONSAFEPATH"] = "1"
    names = ("SIGTERM", "SIGHUP", "SIGINT")  # batch systems, closed terminals, and Ctrl-C
    signals = [getattr(signal, name) for name in names if hasattr(signal, name)]
    handled = [number for number in signals if signal.getsignal(number) is not signal.SIG_IGN]
    for number in handled:
        signal.signal(number, _interrupted)
    try:
        cli()
    finally:
        for number in handled:  # Python's own shutdown needs no handling
            signal.signal(number, signal.SIG_DFL)


def _interrupted(*_: Any) -> None:
    """End as after Ctrl-C: unfinished files are removed, finished work is kept."""
    raise KeyboardInterrupt
