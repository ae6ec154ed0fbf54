"""Text and progress on a terminal; control characters from files are escaped."""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import click

from icqf.errors import InputError, listed
from icqf.io.atomic import write_bytes, written

# Control characters except tab and line feed, and those that change the writing direction or break lines: an
# item's name could clear the screen, set the window's title, or display other words.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def escaped(text: object) -> str:
    """Return a text with characters that control a terminal escaped."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), str(text))


def echo(text: object, *, err: bool = False) -> None:
    """Print a text for people."""
    click.echo(escaped(text), err=err)


def write_data(text: str) -> None:
    """Print a file's content: unchanged to a pipe or a file, escaped on a terminal."""
    sys.stdout.write(escaped(text) if sys.stdout.isatty() else text)


def stopped(progress: Path | None = None) -> str:
    """Return that the work was stopped, and which files it had written, other than its progress."""
    places = [str(path) for path in written() if path != progress]
    if places:
        return f"Stopped. Already written: {listed(places)}."
    return "Stopped. Nothing was written." if progress is None else "Stopped. No results were written."


SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_DRAWINGS = 0.1
BAR = 24
_MARK = {"program": "icqf", "file": "progress"}
_LONGEST = 2**16


class Meter:
    """Shows the progress of `what`, counted in `unit`, on standard error.

    `file` receives the latest progress as JSON for other programs (done and total are 0 if nothing is
    counted); `journal` is the journal of the work shown.
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        what: str = "Cross-validation",
        unit: str = "fits",
        file: Path | None = None,
        journal: Path | None = None,
    ) -> None:
        self.quiet, self.what, self.unit, self.file, self.journal = quiet, what, unit, file, journal
        self.mixed = False  # whether several kinds of work were counted
        self.done, self.total = 0, 0
        self.drawn = not quiet and sys.stderr.isatty()
        self._stage = self._doing = ""
        self._resumed = 0  # fits done in an earlier run
        self._began = self._last = time.monotonic()

    def __enter__(self) -> Meter:
        self._began = self._last = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.drawn:
            self._draw("")

    def switch_to(self, what: str, unit: str) -> None:
        """Show another kind of work from now on."""
        self.what, self.unit, self.total, self.mixed = what, unit, 0, True
        self._began = time.monotonic()

    def __call__(self, progress: Any) -> None:
        """Show the progress of a search (done, total) or a fit (iteration)."""
        if hasattr(progress, "done"):
            if (progress.stage, progress.what) != (self._stage, self._doing):  # a new stage
                self._stage, self._doing, self.total = progress.stage, progress.what, 0
                self.mixed |= bool(progress.stage)
                self._began = time.monotonic()
            self._search(int(progress.done), int(progress.total), str(progress.best or ""))
        elif (self.drawn or self.file) and self._due(SECONDS_BETWEEN_DRAWINGS):
            self._write("Fitting", f"iteration {progress.iteration}")
            if self.drawn:
                self._draw(f"Fitting: iteration {progress.iteration}")

    def _search(self, done: int, total: int, best: str) -> None:
        if not total:  # nothing to count: show the stage
            self._write(self._doing, "")
            if self.drawn:
                self._draw(f"{self._doing} …")
            return
        if not self.total:
            self._resumed = done
        self.done, self.total = done, total
        drawn = self.drawn or self.file is not None
        if not (self._due(SECONDS_BETWEEN_DRAWINGS if drawn else SECONDS_BETWEEN_LINES) or done == total):
            return
        spent = time.monotonic() - self._began
        left = spent / max(done - self._resumed, 1) * (total - done)
        when = f", about {duration(left)} left" if done > self._resumed else ""
        when = when if done < total else f", {duration(spent)}"
        leader = f"; best{'' if done == total else ' so far'}: {best}" if best else ""
        text = f"{done} of {total} {self.unit}{when}{leader}"
        what = self._doing or self.what
        self._write(what, text, done, total)
        if self.quiet:
            return
        if self._stage:  # it may be the name of a file
            what = f"{escaped(self._stage)}: {what[:1].lower()}{what[1:]}"
        if self.drawn:
            full = BAR * done // max(total, 1)
            self._draw(f"{what} [{'#' * full:<{BAR}}] {text}")
        elif self.file is None:
            click.echo(f"{what}: {text}", err=True)

    def _write(self, what: str, text: str, done: int = 0, total: int = 0) -> None:
        """Write the progress file atomically."""
        if self.file is not None:
            content = {**_MARK, "what": what, "text": text, "done": done, "total": total}
            write_bytes(self.file, json.dumps(content).encode())

    def _due(self, seconds: float) -> bool:
        now = time.monotonic()
        if now - self._last < seconds:
            return False
        self._last = now
        return True

    def _draw(self, text: str) -> None:
        """Replace the line drawn before."""
        width = shutil.get_terminal_size().columns - 1
        click.echo(f"\r\x1b[K{text[:width]}", err=True, nl=False, color=True)


def refuse_progress(path: Path, out: Path, journal: Path | None) -> None:
    """Refuse a progress file that would replace another file, or that is inside the results."""
    from icqf.workflow.results_folder import refuse_file

    refuse_file(path, force=True)
    place = path.parent.resolve() / path.name
    others = [each.parent.resolve() / each.name for each in (out, journal) if each is not None]
    if place in others or place.is_relative_to(out.resolve()):
        raise InputError(f"{path}: the results are written there. Choose another file for the progress.")
    if (path.exists() or path.is_symlink()) and not _is_progress(path):
        raise InputError(
            f"{path}: this file exists and is not the progress of an earlier run. Choose another file for "
            "the progress."
        )


def _is_progress(path: Path) -> bool:
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _LONGEST:
            return False
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and _MARK.items() <= content.items()


def duration(seconds: float) -> str:
    """Return a duration in words: 4 s, 1 min 15 s, 2 h 1 min."""
    whole = max(round(seconds), 0)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
