"""Shared by commands that compute: common options, what was read, progress, the journal, resuming."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from icqf.cli.parsing import FILE, RAW
from icqf.cli.terminal import Meter, echo, refuse_progress, stopped
from icqf.cli.text import worded
from icqf.engines.progress import Progress
from icqf.errors import InputError

if TYPE_CHECKING:
    from icqf.data.study import Study

INTERRUPTED = 130
Command = TypeVar("Command", bound=Callable[..., Any])


def job_options(
    out: str | None,
    *,
    out_help: str = "Folder for the results.",
    quiet_help: str = "Print nothing but errors.",
    without: Collection[str] = (),
) -> Callable[[Command], Command]:
    """Add the common options of commands that compute, except those named in `without`."""
    options = [
        click.option("--out", type=FILE, default=None if out is None else Path(out), help=out_help),
        click.option("--force", is_flag=True, help="Replace earlier results."),
        click.option("--resume", is_flag=True, help="Continue an interrupted run."),
        click.option("--dry-run", is_flag=True, help="Show what would be analysed, and stop."),
        click.option("--progress", type=FILE, help="JSON file to write the progress to."),
        click.option("--quiet", "-q", is_flag=True, help=quiet_help),
    ]

    def decorate(command: Command) -> Command:
        own = len(getattr(command, "__click_params__", ()))
        for option in reversed(options):
            command = option(command)
        params: list[click.Parameter] = command.__click_params__  # type: ignore[attr-defined]
        params[own:] = [param for param in params[own:] if param.name not in without]
        return command

    return decorate


def say(notes: Iterable[str | Warning], *, quiet: bool = False) -> None:
    """Write notes and warnings to standard error, one per line."""
    if not quiet:
        for note in notes:
            echo(f"Note: {worded(note)}", err=True)


def announce(study: Study, *, quiet: bool = False, meter: Meter | None = None) -> None:
    """Print what will be analysed, notes on it, and problems that should be fixed first."""
    if quiet:
        return
    if meter is not None:
        meter(Progress(0, 0, what="Checking the answers"))
    from icqf.data.check import check, further_notes

    questionnaire = study.questionnaire
    _warn(study, err=True)
    echo(str(study.overview), err=True)
    say(further_notes(questionnaire.notes))
    plain = questionnaire.with_confounds(None)  # a fit refuses unusable confounds itself
    for finding in check(plain, keying=study.keying):
        if finding.severity == "error":
            echo(f"Warning: {worded(finding)}", err=True)
        elif finding.code == "mixed-ranges":
            say([finding.sentence])


def _warn(study: Study, *, err: bool) -> None:
    """Print what may spoil the whole study."""
    warning = study.directions.warning
    for each in (*study.doubts, *(() if warning is None else (warning,))):
        echo(f"Warning: {worded(each)}", err=err)


def only_show(study: Study) -> None:
    """Print what would be analysed, and end a dry run."""
    from icqf.data.check import further_notes

    _warn(study, err=False)
    echo(str(study.overview))
    for note in further_notes(study.questionnaire.notes):
        echo(f"Note: {worded(note)}")
    if study.overview.widths:
        echo(f"Note: {study.overview.widths}")
    end_dry_run()


def show_notes(notes: Iterable[str | Warning]) -> None:
    """Print notes on what would be analysed, and end a dry run."""
    for note in notes:
        echo(worded(note))
    end_dry_run()


def end_dry_run() -> None:
    """Print that nothing was done."""
    echo("Nothing was fitted and nothing was written (--dry-run).", err=True)


@contextmanager
def job(
    ctx: click.Context,
    out: Path,
    *,
    what: str = "Cross-validation",
    unit: str = "fits",
    journal: bool = True,
    folder: bool = False,
) -> Iterator[Meter]:
    """Run the work inside; an interrupt prints how to continue, and success removes the journal.

    The journal is NAME.journal next to `out`; an existing one is refused without --resume. With `folder`,
    finished work is also stored in the folder `out`.
    """
    params = ctx.params
    place = _journal_of(out, resume=params.get("resume", False)) if journal else None
    progress = params.get("progress")
    if progress is not None:
        refuse_progress(progress, out, place)
    meter = Meter(quiet=params["quiet"], what=what, unit=unit, file=progress, journal=place)
    new = place is not None and not place.exists()
    try:
        try:
            with meter:
                yield meter
        except BaseException:
            if place is not None and new and not _finished_fits(place):
                place.unlink(missing_ok=True)
            raise
    except KeyboardInterrupt:
        if place is not None and place.exists():
            echo(_how_to_continue(ctx, meter, place, _finished_fits(place)), err=True)
        elif folder and out.is_dir():
            echo(_how_to_continue(ctx, meter, out, meter.done), err=True)
        else:
            echo(stopped(progress), err=True)
        ctx.exit(INTERRUPTED)
    if place is not None:
        place.unlink(missing_ok=True)


def _how_to_continue(ctx: click.Context, meter: Meter, place: Path, finished: int) -> str:
    """Return how much work is saved, and the command to continue."""
    share = f"{finished} of {meter.total}" if finished <= meter.total else str(finished)
    done = f"{share} {meter.unit} are saved" if meter.total and not meter.mixed else "Finished work is saved"
    words = [word for word in ctx.meta.get(RAW, []) if word != "--resume"]
    command = shlex.join(["icqf", *_names(ctx), *words, "--resume"])
    return f"Stopped. {done} in {place}; continue with:\n  {command}"


def _journal_of(out: Path, *, resume: bool) -> Path:
    """Return the journal next to `out`; an existing one is refused unless resumed."""
    journal = out.parent / f"{out.resolve().name}.journal"
    if journal.exists() and not resume:
        raise InputError(
            f"{journal}: an earlier run was interrupted and left this journal. Add --resume to continue "
            "it, or delete it to start again."
        )
    return journal


def _finished_fits(journal: Path) -> int:
    """Count the fits in a journal, whose first line is a header."""
    return max(journal.read_bytes().count(b"\n") - 1, 0) if journal.exists() else 0


def _names(ctx: click.Context) -> list[str]:
    """Return the names of a command and of its groups."""
    names: list[str] = []
    at: click.Context | None = ctx
    while at is not None and at.parent is not None:
        names.insert(0, at.info_name or "")
        at = at.parent
    return names


def typed(ctx: click.Context) -> str:
    """Return the command as it was typed, with file names instead of paths."""
    words = [re.sub(r"(?:[^=/\\]*[/\\])+(?=[^/\\])", "", word) for word in ctx.meta.get(RAW, [])]
    return shlex.join(["icqf", *_names(ctx), *words])
