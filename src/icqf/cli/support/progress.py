"""How far the work is: a bar with the time left on a terminal, plain lines otherwise."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

import click

SECONDS_BETWEEN_LINES = 10.0


class Meter:
    """Draws what the library's callbacks tell, on standard error.

    Parameters
    ----------
    quiet : bool
        Draw nothing.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self.done, self.total = 0, 0
        self._found = 0  # fits that an earlier run had done
        self._bar: Any = None
        self._task: Any = None
        self._began = self._last = time.monotonic()

    def __enter__(self) -> Meter:
        self._began = self._last = time.monotonic()
        if not self.quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[count]}"),
                TimeRemainingColumn(),
                TextColumn("{task.fields[best]}"),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task("Working", total=None, count="", best="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, progress: Any) -> None:
        """Take a progress report of a search (done, total, best) or of a fit (iteration, objective)."""
        if hasattr(progress, "done"):
            self._search(int(progress.done), int(progress.total), str(progress.best or ""))
        elif self._bar is not None:
            self._bar.update(
                self._task, description="Fitting", count=f"iteration {progress.iteration}", best=""
            )

    def _search(self, done: int, total: int, best: str) -> None:
        if not self.total:
            self._found = done
        self.done, self.total = done, total
        said = f"best{'' if done == total else ' so far'}: {best}" if best else ""
        if self._bar is not None:
            self._bar.update(
                self._task,
                description="Cross-validation",
                completed=done,
                total=total,
                count=f"{done} of {total} fits",
                best=said,
            )
        elif not self.quiet:
            self._line(done, total, said)

    def _line(self, done: int, total: int, said: str) -> None:
        now = time.monotonic()
        if done < total and now - self._last < SECONDS_BETWEEN_LINES:
            return
        self._last = now
        left = (now - self._began) / max(done - self._found, 1) * (total - done)
        when = f", about {duration(left)} left" if done < total else f", {duration(now - self._began)}"
        tail = f"; {said}" if said else ""
        click.echo(f"Cross-validation: {done} of {total} fits{when}{tail}", err=True)


def duration(seconds: float) -> str:
    """Write a length of time as people say it.

    Examples
    --------
    >>> duration(4.2), duration(75), duration(7300)
    ('4 s', '1 min 15 s', '2 h 1 min')
    """
    whole = max(round(seconds), 0)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
