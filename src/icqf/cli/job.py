"""What commands that compute share: their options, what was read, progress, the journal, how to continue."""

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
    """Add what commands that compute have in common; those named in `without` have no meaning for one."""
    place = None if out is None else Path(out)
    chosen = [
        click.option("--out", type=FILE, default=place, help=out_help),
        click.option("--force", is_flag=True, help="Replace earlier results."),
        click.option("--resume", is_flag=True, help="Continue an interrupted run."),
        click.option("--dry-run", is_flag=True, help="Show what would be analysed, and stop there."),
        click.option(
            "--progress", type=FILE, help="File to keep the progress in, as JSON; new, or of an earlier run."
        ),
        click.option("--quiet", "-q", is_flag=True, help=quiet_help),
    ]

    def decorate(command: Command) -> Command:
        own = len(getattr(command, "__click_params__", ()))
        for add in reversed(chosen):
            command = add(command)
        every: list[click.Parameter] = command.__click_params__  # type: ignore[attr-defined]
        every[own:] = [parameter for parameter in every[own:] if parameter.name not in without]
        return command

    return decorate


def say(notes: Iterable[str | Warning], *, quiet: bool = False) -> None:
    """Write notes and warnings to standard error, one per line."""
    if not quiet:
        for note in notes:
            echo(f"Note: {worded(note)}", err=True)


def announce(study: Study, *, quiet: bool = False) -> None:
    """Say what will be analysed, what was done to it, and what should have been fixed before."""
    if quiet:
        return
    from icqf.data.check import check, further_notes

    questionnaire = study.questionnaire
    _warn(study, err=True)
    echo(str(study.overview), err=True)
    say(further_notes(questionnaire.notes))
    plain = questionnaire.with_confounds(None)  # a fit refuses confounds that it cannot use
    for finding in check(plain, keying=study.keying):
        if finding.severity == "error":
            echo(f"Warning: {worded(finding)}", err=True)
        elif finding.code == "mixed-ranges":
            say([finding.sentence])


def _warn(study: Study, *, err: bool) -> None:
    """Say first what may spoil the whole study."""
    warning = study.directions.warning
    for each in (*study.doubts, *(() if warning is None else (warning,))):
        echo(f"Warning: {worded(each)}", err=err)


def only_show(study: Study) -> None:
    """Write what would be analysed to standard output: the end of a dry run."""
    from icqf.data.check import further_notes

    _warn(study, err=False)
    echo(str(study.overview))
    for note in further_notes(study.questionnaire.notes):
        echo(f"Note: {worded(note)}")
    if study.overview.widths:
        echo(f"Note: {study.overview.widths}")
    end_dry_run()


def show_notes(notes: Iterable[str | Warning]) -> None:
    """Write what would be analysed to standard output, where notes say all of it: the end of a dry run."""
    for note in notes:
        echo(worded(note))
    end_dry_run()


def end_dry_run() -> None:
    """Say that nothing was done."""
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
    """Run the work inside; an interrupt says how to continue, and success removes the journal.

    The journal is NAME.journal beside `out`: one that is there is refused without --resume. `folder` says
    that finished work is kept in the folder `out` as well, and stays there.
    """
    given = ctx.params
    place = _journal_beside(out, resume=given.get("resume", False)) if journal else None
    progress = given.get("progress")
    if progress is not None:
        refuse_progress(progress, out, place)
    meter = Meter(quiet=given["quiet"], what=what, unit=unit, file=progress, journal=place)
    began_here = place is not None and not place.exists()
    try:
        try:
            with meter:
                yield meter
        except BaseException:
            if place is not None and began_here and not _kept(place):
                place.unlink(missing_ok=True)
            raise
    except KeyboardInterrupt:
        if place is not None and place.exists():
            echo(_continued(ctx, meter, place, _kept(place)), err=True)
        elif folder and out.is_dir():
            echo(_continued(ctx, meter, out, meter.done), err=True)
        else:
            echo(stopped(progress), err=True)
        ctx.exit(INTERRUPTED)
    if place is not None:
        place.unlink(missing_ok=True)


def _continued(ctx: click.Context, meter: Meter, place: Path, kept: int) -> str:
    """Say what is kept, also of stages before the one that was counted last, and how to continue."""
    share = f"{kept} of {meter.total}" if kept <= meter.total else str(kept)
    done = f"{share} {meter.unit} are kept" if meter.total and not meter.mixed else "What is finished is kept"
    words = [word for word in ctx.meta.get(RAW, []) if word != "--resume"]
    command = shlex.join(["icqf", *_names(ctx), *words, "--resume"])
    return f"Stopped. {done} in {place}; continue with:\n  {command}"


def _journal_beside(out: Path, *, resume: bool) -> Path:
    """The place of the journal beside `out`; one that is there is refused unless it is to be resumed."""
    journal = out.parent / f"{out.resolve().name}.journal"
    if journal.exists() and not resume:
        raise InputError(
            f"{journal}: an earlier run was interrupted and left this journal. Add --resume to continue "
            "it, or delete it to start again."
        )
    return journal


def _kept(journal: Path) -> int:
    """Finished fits in a journal, whose first line is its header."""
    return max(journal.read_bytes().count(b"\n") - 1, 0) if journal.exists() else 0


def _names(ctx: click.Context) -> list[str]:
    """The names of a command and of the groups that it belongs to."""
    names: list[str] = []
    at: click.Context | None = ctx
    while at is not None and at.parent is not None:
        names.insert(0, at.info_name or "")
        at = at.parent
    return names


def typed(ctx: click.Context) -> str:
    """Return the command as it was typed, with the names of files instead of their places."""
    words = [re.sub(r"(?:[^=/\\]*[/\\])+(?=[^/\\])", "", word) for word in ctx.meta.get(RAW, [])]
    return shlex.join(["icqf", *_names(ctx), *words])
