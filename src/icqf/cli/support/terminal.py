"""Text on a terminal: what a file or a model says cannot steer it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from icqf.errors import listed
from icqf.io.atomic import written

# Control characters but for tab and line feed, and those that set the direction of writing or break lines:
# an item's name could clear the screen, set the window's title, or show other words than it holds.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def escaped(text: object) -> str:
    """Return a text in which characters that steer a terminal are written out."""
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), str(text))


def echo(text: object, *, err: bool = False) -> None:
    """Print a text for reading."""
    click.echo(escaped(text), err=err)


def write_data(text: str) -> None:
    """Print a file's content: as it is into a pipe or a file, and escaped on a terminal."""
    sys.stdout.write(escaped(text) if sys.stdout.isatty() else text)


def stopped(progress: Path | None = None) -> str:
    """Say that the work was stopped, and what it had written by then, besides the file of its progress."""
    places = [str(path) for path in written() if path != progress]
    if places:
        return f"Stopped. Already written: {listed(places)}."
    return "Stopped. Nothing was written." if progress is None else "Stopped. No results were written."
