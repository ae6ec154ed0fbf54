"""What the long commands share: what was read, progress, the journal, and how to continue a run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from icqf.cli.support.many import RAW
from icqf.cli.support.progress import Meter
from icqf.cli.support.terminal import echo, stopped
from icqf.cli.support.wording import worded
from icqf.errors import InputError
from icqf.jobs.journal import remove_journals

if TYPE_CHECKING:
    from icqf.data.study import Study
    from icqf.workflow.options import StudyOptions

INTERRUPTED = 130


def say(notes: Iterable[str | Warning], *, quiet: bool = False) -> None:
    """Write notes and warnings to standard error, one per line."""
    if not quiet:
        for note in notes:
            echo(f"Note: {worded(note)}", err=True)


def announce(study: Study, *, quiet: bool = False) -> None:
    """Say what will be analysed, what was done to it, and what should have been fixed before."""
    if quiet:
        return
    from icqf.data.check import check
    from icqf.data.overview import unsaid

    questionnaire = study.questionnaire
    _warn(study, err=True)
    echo(str(study.overview), err=True)
    say(unsaid(questionnaire.notes, study.overview))
    for finding in check(questionnaire.with_confounds(None)):  # a fit refuses confounds that it cannot use
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
    from icqf.data.overview import unsaid

    _warn(study, err=False)
    echo(str(study.overview))
    for note in unsaid(study.questionnaire.notes, study.overview):
        echo(f"Note: {worded(note)}")
    if study.overview.widths:
        echo(f"Note: {study.overview.widths}")
    echo("Nothing was fitted and nothing was written (--dry-run).", err=True)


def journal_for(out: Path, options: StudyOptions, *, resume: bool) -> Path | None:
    """Return the place of the journal beside `out`; None when there is nothing to choose.

    An old journal is refused unless the run is to be resumed.

    Examples
    --------
    >>> from icqf.workflow import StudyOptions
    >>> journal_for(Path("results"), StudyOptions(Path("answers.csv")), resume=False).name
    'results.journal'
    """
    return journal_beside(out, resume=resume) if options.searches else None


def journal_beside(out: Path, *, resume: bool) -> Path:
    """Return the place of the journal beside `out`; one that is there is refused unless it is to be resumed.

    Examples
    --------
    >>> journal_beside(Path("groups"), resume=False).name
    'groups.journal'
    """
    journal = out.parent / f"{out.resolve().name}.journal"
    if journal.exists() and not resume:
        raise InputError(
            f"{journal}: an earlier run was interrupted and left this journal. Add --resume to continue "
            "it, or delete it to start again."
        )
    return journal


@contextmanager
def job(
    ctx: click.Context,
    journal: Path | None,
    *,
    quiet: bool,
    what: str = "Cross-validation",
    unit: str = "fits",
    progress: Path | None = None,
) -> Iterator[Meter]:
    """Run the work inside; an interrupt says how to continue, and success removes the journal."""
    meter = Meter(quiet=quiet, what=what, unit=unit, file=progress)
    began_here = journal is not None and not journal.exists()
    try:
        try:
            with meter:
                yield meter
        except BaseException:
            if journal is not None and began_here and not _kept(journal):
                journal.unlink(missing_ok=True)
            raise
    except KeyboardInterrupt:
        if journal is None or not journal.exists():
            echo(stopped(progress), err=True)
        else:
            words = [word for word in ctx.meta.get(RAW, []) if word != "--resume"]
            command = shlex.join(["icqf", ctx.info_name or "", *words, "--resume"])
            kept = _kept(journal)  # also of stages before the one that was counted last
            share = f"{kept} of {meter.total}" if kept <= meter.total else str(kept)
            done = f"{share} {unit} are kept" if meter.total else "The work is kept"
            echo(f"Stopped. {done} in {journal}; continue with:\n  {command}", err=True)
        ctx.exit(INTERRUPTED)
    if journal is not None:
        journal.unlink(missing_ok=True)


def _kept(journal: Path) -> int:
    """Finished fits in a journal, whose first line is its header."""
    return max(journal.read_bytes().count(b"\n") - 1, 0) if journal.exists() else 0


@contextmanager
def folder_job(ctx: click.Context, journals: Path, *, resume: bool, quiet: bool) -> Iterator[Meter]:
    """Run work that keeps several journals in a folder; an interrupt says how to continue."""
    if journals.exists() and not resume:
        raise InputError(
            f"{journals}: an earlier run was interrupted and left its journals here. Add --resume to "
            "continue it, or delete the folder to start again."
        )
    meter = Meter(quiet=quiet)
    began_here = not journals.exists()
    try:
        with meter:
            yield meter
    except KeyboardInterrupt:
        if not journals.exists() or not any(map(_kept, journals.iterdir())):
            remove_journals(journals)
            echo(stopped(), err=True)
        else:
            words = [word for word in ctx.meta.get(RAW, []) if word != "--resume"]
            command = shlex.join(["icqf", ctx.info_name or "", *words, "--resume"])
            echo(f"Stopped. What is finished is kept in {journals}; continue with:\n  {command}", err=True)
        ctx.exit(INTERRUPTED)
    except InputError:
        if began_here:
            remove_journals(journals)
        raise


@contextmanager
def resumable(
    ctx: click.Context, out: Path, *, quiet: bool, what: str = "Experiment", unit: str = "fits"
) -> Iterator[Meter]:
    """Run work that keeps a journal in `out`; after an interrupt the same command continues it."""
    meter = Meter(quiet=quiet, what=what, unit=unit)
    try:
        with meter:
            yield meter
    except KeyboardInterrupt:
        if not out.is_dir():
            echo(stopped(), err=True)
        else:
            share = f"{meter.done} of {meter.total} {unit} are" if meter.total else "What is finished is"
            echo(f"Stopped. {share} kept in {out}; give the same command again to continue.", err=True)
        ctx.exit(INTERRUPTED)


def typed(ctx: click.Context) -> str:
    """Return the command as it was typed, with the names of files instead of their places."""
    names = []
    at: click.Context | None = ctx
    while at is not None and at.parent is not None:
        names.append(at.info_name or "")
        at = at.parent
    words = [re.sub(r"(?:[^=/\\]*[/\\])+(?=[^/\\])", "", word) for word in ctx.meta.get(RAW, [])]
    return shlex.join(["icqf", *reversed(names), *words])
