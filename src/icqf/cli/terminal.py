"""Text and progress on a terminal; control characters from files are escaped."""

from __future__ import annotations

import json
import re
import shutil
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import click

from icqf.engines.progress import Forecast, Progress
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
SECONDS_BETWEEN_TICKS = 0.5
SECONDS_BEFORE_PROMISE = 2.0  # of work, which show the speed of the computer
LEAST_PROMISED = 20.0
BAR = 24
_MARK = {"program": "icqf", "file": "progress"}
_LONGEST = 2**16


class Meter:
    """Shows what is being done, and the time left, on standard error.

    `what` and `unit` name work that does not name itself. `file` receives the latest progress as JSON for
    other programs (done and total are 0 if nothing is counted); `journal` is the journal of the work shown.
    A thread shows the time left while nothing is reported.
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
        self._progress = Progress(0, 0)
        self._reported = False  # whether anything was reported
        self._iteration = ""
        self._share = 0.0
        self._promised = False
        self._lock, self._ended = threading.RLock(), threading.Event()
        self._last = self._stage_began = self._began = time.monotonic()
        self._forecast = Forecast(self._last)

    def __enter__(self) -> Meter:
        self._last = self._stage_began = self._began = time.monotonic()
        self._forecast = Forecast(self._last)
        if not self.quiet or self.file is not None:
            threading.Thread(target=self._tick, name="icqf-progress", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        with self._lock:
            if self.drawn:
                self._draw("")

    def __deepcopy__(self, memo: object) -> Meter:
        """A copied estimator shows its progress here, too."""
        return self

    def switch_to(self, what: str, unit: str) -> None:
        """Show another kind of work from now on."""
        with self._lock:
            self.what, self.unit, self.mixed = what, unit, True
            self._begin(Progress(0, 0))

    def __call__(self, progress: Any) -> None:
        """Show the progress of a search (done, total) or a fit (iteration)."""
        with self._lock:
            at_once = False
            if not hasattr(progress, "done"):
                self._reported, self._iteration = True, f"iteration {progress.iteration}"
            else:
                old = self._progress
                if (old.stage, old.what) != (progress.stage, progress.what) or not self._reported:
                    self._begin(progress)
                    at_once = self.drawn or self.file is not None
                self._reported, self._iteration = True, ""
                self._progress = progress
                if progress.total:
                    self.done, self.total = progress.done, progress.total
                self._forecast.update(progress, time.monotonic())
                at_once |= bool(progress.total) and progress.done == progress.total
            self._show(at_once=at_once)

    def _begin(self, progress: Progress) -> None:
        self.mixed |= bool(progress.stage)
        self.total, self._progress, self._stage_began = 0, progress, time.monotonic()

    def _tick(self) -> None:
        while not self._ended.wait(SECONDS_BETWEEN_TICKS):
            with self._lock:
                if not self._ended.is_set():
                    self._promise()
                    self._show()

    def _show(self, *, at_once: bool = False) -> None:
        """Draw a line, print one, or write the file, unless that was done just before."""
        drawn = self.drawn or self.file is not None
        now = time.monotonic()
        pause = SECONDS_BETWEEN_DRAWINGS if drawn else SECONDS_BETWEEN_LINES
        if now - self._last < pause and not at_once:
            return
        self._last = now
        progress, iteration = self._progress, self._iteration
        left = self._forecast.left(now)
        what = progress.what or ("Fitting" if iteration and not progress.total else self.what)
        over = bool(progress.total) and progress.done == progress.total
        counted = f"{progress.done} of {progress.total} {self.unit}" if progress.total else iteration
        best = f"best{'' if over else ' so far'}: {progress.best}" if progress.best else ""
        of_step = " of this step" if self.mixed and not self._forecast.whole else ""
        when = "" if left is None else f"{about(left)} left{of_step}"
        if over and not self._forecast.whole:
            when = duration(now - self._stage_began)
        share = progress.done / progress.total if progress.total else 0.0
        if left is not None and self._forecast.whole:
            self._share = max(self._share, self._forecast.share(now, left))
            share = self._share
        text = "; ".join(filter(None, (", ".join(filter(None, (counted, when))), best)))
        self._write(what, text, share)
        if self.quiet:
            return
        if progress.stage:  # it may be the name of a file
            what = f"{escaped(progress.stage)}: {what[:1].lower()}{what[1:]}"
        if self.drawn:
            bar = f"[{'#' * int(BAR * share):<{BAR}}]" if share or progress.total else ""
            self._draw(fitting(what, bar, counted, when, best, width=shutil.get_terminal_size().columns - 1))
        elif self.file is None:
            click.echo(f"{what}: {text}" if text else f"{what} …", err=True)

    def _promise(self) -> None:
        """Print once, soon after the start, how long all of the work takes, unless that is short."""
        now = time.monotonic()
        left, passed = self._forecast.left(now), now - self._began
        if self._promised or passed < SECONDS_BEFORE_PROMISE or left is None or not self._forecast.whole:
            return
        self._promised = True
        if passed + left >= LEAST_PROMISED and not self.quiet:
            if self.drawn:
                self._draw("")
            kept = "" if self.journal is None else " Ctrl-C stops it, and --resume then continues."
            click.echo(f"This takes {about(passed + left)} in all.{kept}", err=True)

    def _write(self, what: str, text: str, share: float) -> None:
        """Write the progress file atomically."""
        if self.file is not None:
            counts = {"done": self._progress.done, "total": self._progress.total, "share": round(share, 3)}
            write_bytes(self.file, json.dumps({**_MARK, "what": what, "text": text, **counts}).encode())

    def _draw(self, text: str) -> None:
        """Replace the line drawn before."""
        click.echo(f"\r\x1b[K{text}", err=True, nl=False, color=True)


def fitting(what: str, bar: str, counted: str, when: str, best: str, *, width: int) -> str:
    """Return one line of progress, without the parts for which the terminal is too narrow."""
    for bar_, counted_, best_ in ((bar, counted, best), (bar, counted, ""), ("", counted, ""), ("", "", "")):
        text = "; ".join(filter(None, (", ".join(filter(None, (counted_, when))), best_)))
        line = " ".join(filter(None, (what if bar_ or not text else f"{what}:", bar_, text)))
        if len(line) <= width:
            return line
    return (when or what)[:width]


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


def about(seconds: float) -> str:
    """Return a time to come in words: a few seconds, about 25 s, about 4 min, about 1 h 20 min."""
    if seconds < 7.5:
        return "a few seconds"
    if seconds < 57.5:
        return f"about {5 * round(seconds / 5)} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"about {minutes} min"
    more = f" {10 * (minutes % 60 // 10)} min" if minutes % 60 >= 10 else ""
    return f"about {minutes // 60} h{more}"


def duration(seconds: float) -> str:
    """Return a duration in words: 4 s, 1 min 15 s, 2 h 1 min."""
    whole = max(round(seconds), 0)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
