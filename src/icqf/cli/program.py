"""The program ``icqf``: finds its commands, and makes one message and an exit code of whatever goes wrong.

A new command is a file ``icqf/cli/commands/<name>.py`` with a click command called ``command``, and its name
in `OWN`; an installed package adds one through an entry point of the group ``icqf.commands``. Commands import
what is heavy inside their functions, so that ``icqf --help`` starts at once.
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
from icqf.cli.text import worded
from icqf.errors import InputError, concerns_users, did_you_mean
from icqf.io.atomic import FULL, forget_written
from icqf.registry import Registry

OWN = (
    *("demo", "app", "check", "codebook", "fit", "select", "report", "plot", "score", "show", "compare"),
    *("longitudinal", "shortform", "invariance", "plan", "batch", "meta", "pool", "stability", "diagnosis"),
)
COMMANDS = Registry(
    "icqf.commands",
    {name: f"icqf.cli.commands.{name}:command" for name in OWN},
    "a click command",
    "click:Command",
)
# Commands of our own packages that are not part of this one, and what to install.
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
        """Return the commands in the order in which a newcomer meets them, then those of other packages."""
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
        """Run a command; bad input ends it with code 2, an interrupt with 130."""
        forget_written()
        try:
            _ignore_local_settings()
            with _warnings_as_messages():
                return super().invoke(ctx)
        except InputError as error:
            raise Refusal(escaped(worded(error))) from error
        except click.UsageError as error:
            raise click.UsageError(escaped(error.format_message()), error.ctx) from error
        except KeyboardInterrupt:
            echo(stopped(), err=True)
            ctx.exit(INTERRUPTED)
        except MemoryError as error:
            raise Refusal("This machine has too little memory for these data.") from error
        except BrokenPipeError:
            raise
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            fault = "there is no room left on the disk" if error.errno in FULL else error.strerror or error
            raise Refusal(escaped(f"{place}{fault}.")) from error


def _ignore_local_settings() -> None:
    """Keep matplotlib from reading a ``matplotlibrc`` in the working folder, which may have come with data.

    It looks there before anywhere else, when it is first imported.
    """
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
            said = worded(message)
            if _NO_GLYPH.match(said):  # one for each character and figure, in the words of the library
                if boxes:
                    return
                boxes.append(said)
                said = "The font of the figures lacks characters of some names; they are drawn as boxes."
            echo(f"Note: {said}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = show
        yield


@click.command(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Begin with:
  icqf demo
  icqf check answers.csv
  icqf fit answers.csv --codebook items.csv --confounds age sex --out results""",
)
@click.version_option(__version__, prog_name="icqf")
def cli() -> None:
    """Interpretable factors from questionnaires.

    Takes a study's own files (CSV, Excel, SPSS, Stata, SAS, Parquet, REDCap, BIDS), with missing answers, and
    gives back tables keyed by participant and item. Your data never leave your computer.

    Exit codes: 0 done, 1 something must be fixed (check), 2 bad input or usage, 130 interrupted.
    """


def main() -> None:
    """Run the program."""
    # Processes that it starts import nothing from the folder they work in, which may be somebody else's.
    os.environ["PYTHONSAFEPATH"] = "1"
    names = ("SIGTERM", "SIGHUP", "SIGINT")  # of batch systems, of terminals that are closed, and Ctrl-C
    asked = [getattr(signal, name) for name in names if hasattr(signal, name)]
    heard = [number for number in asked if signal.getsignal(number) is not signal.SIG_IGN]
    for number in heard:
        signal.signal(number, _interrupted)
    try:
        cli()
    finally:
        for number in heard:  # all is done: the end of Python is no work that could be interrupted
            signal.signal(number, signal.SIG_DFL)


def _interrupted(*_: Any) -> None:
    """End as after Ctrl-C: what is unfinished is removed, what is finished is kept."""
    raise KeyboardInterrupt
