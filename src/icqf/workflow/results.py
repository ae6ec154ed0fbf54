"""The folder of results: written beside its place and moved there whole."""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from icqf.errors import InputError, listed
from icqf.io.modelfile import save_model
from icqf.io.provenance import provenance
from icqf.io.write import FORMATS, write_table
from icqf.workflow.fit import StudyFit

ACCOUNT = "provenance.json"
DECIMALS = 6  # scores are solved for to about 1e-5
_EXCHANGE = 2
_HERE = -100


def write_results(fit: StudyFit, folder: str | os.PathLike[str], *, force: bool = False) -> list[str]:
    """Write everything a fit gives into `folder`, which afterwards holds all of it or is as it was.

    Parameters
    ----------
    fit : StudyFit
        What to write.
    folder : path
        Where. An existing folder of results is replaced only with `force`; any other folder that holds
        something is refused.
    force : bool
        Whether to replace earlier results.

    Returns
    -------
    list of str
        Names of the files.
    """
    folder = Path(folder)
    with new_folder(folder, force=force) as place:
        for write in WRITERS:
            write(fit, place, folder)
        names = sorted([*(path.name for path in place.iterdir()), ACCOUNT])
        account = provenance(fit, outputs=names)
        text = json.dumps(account, indent=2, ensure_ascii=False)
        (place / ACCOUNT).write_text(text + "\n", encoding="utf-8")
    return names


def _tables(fit: StudyFit, place: Path, folder: Path) -> None:
    tables: dict[str, pd.DataFrame] = {
        "scores": fit.scores,
        "loadings": fit.model.loadings_.rename_axis("item"),
        "confound_loadings": fit.model.confound_loadings_.rename_axis("item"),
    }
    if fit.search is not None:
        tables["cv"] = fit.search.cv_results_
    for name, table in tables.items():
        decimals = None if name == "cv" else DECIMALS
        write_table(table, place / f"{name}.{fit.options.format}", decimals=decimals)


def _model(fit: StudyFit, place: Path, folder: Path) -> None:
    id = fit.study.questionnaire.answers.index.name
    save_model(fit.model, place / "model.icqf", items=fit.study.items, id=str(id or ""))


def _config(fit: StudyFit, place: Path, folder: Path) -> None:
    head = "# Repeat this run with: icqf fit --config config.toml --out NEW_FOLDER\n"
    (place / "config.toml").write_text(head + fit.options.to_toml(folder=folder), encoding="utf-8")


def _report(fit: StudyFit, place: Path, folder: Path) -> None:
    if not fit.options.report:
        return
    from icqf.report import build_report, write_report

    options, questionnaire = fit.options, fit.study.questionnaire
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the fit has said what there is to say about the data
        report = build_report(
            fit.model,
            questionnaire,
            search=fit.search,
            names=options.names or None,
            n_bootstrap=options.bootstrap,
            with_participants=options.with_participants,
            sample_weight=fit.study.weights,
            scores=fit.scores,
            n_jobs=options.jobs,
            random_state=options.seed,
        )
    write_report(place / "report.html", report)


# What is written; a further output is one more function of (fit, place, folder).
WRITERS: list[Callable[[StudyFit, Path, Path], None]] = [_tables, _model, _config, _report]


def refuse_existing(folder: Path, *, force: bool) -> None:
    """Refuse a place that may not be written to, before any work is done."""
    if not folder.parent.is_dir():
        raise InputError(f"{folder}: there is no folder {str(folder.parent)!r} to put it in.")
    if not os.access(folder.parent, os.W_OK):
        raise InputError(f"{folder}: nothing can be written into {str(folder.parent)!r}.")
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f"{folder}: this is a file; name a folder for the results.")
    present = {path.name for path in folder.iterdir()}
    if not present:
        return
    foreign = sorted(present - _own_files(folder))
    if foreign:
        raise InputError(
            f"{folder}: the folder holds files that are not results of an earlier run ({listed(foreign)}). "
            "Choose another folder, or move them."
        )
    if not force:
        raise InputError(
            f"{folder}: the folder already holds results. Choose another one, or add --force to replace them."
        )


def _own_files(folder: Path) -> set[str]:
    try:
        account = json.loads((folder / ACCOUNT).read_text(encoding="utf-8"))
        return {str(name) for name in account["outputs"]} if account["program"] == "icqf" else set()
    except (OSError, ValueError, KeyError, TypeError):
        return set()


@contextmanager
def new_folder(folder: Path, *, force: bool = False) -> Iterator[Path]:
    """Give a folder to write into, which takes the place of `folder` when all went well."""
    refuse_existing(folder, force=force)
    target = folder.resolve()
    place = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    place.mkdir()
    try:
        yield place
        for path in place.iterdir():
            with path.open("rb") as stream:
                os.fsync(stream.fileno())
        refuse_existing(folder, force=force)
        _move(place, target)
    finally:
        if place.exists():
            shutil.rmtree(place, ignore_errors=True)


def _move(place: Path, target: Path) -> None:
    """Put `place` where `target` is; afterwards `place` is gone, or holds what stood there before."""
    if not target.exists() or not any(target.iterdir()):
        if target.exists():
            target.rmdir()
        place.rename(target)
        return
    if _exchange(place, target):
        return
    aside = place.with_suffix(".old")
    target.rename(aside)
    try:
        place.rename(target)
    except OSError:
        aside.rename(target)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _exchange(a: Path, b: Path) -> bool:
    """Swap two folders in one step where the system can; returns whether it did."""
    if not sys.platform.startswith("linux"):
        return False
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    return rename(_HERE, os.fsencode(a), _HERE, os.fsencode(b), _EXCHANGE) == 0


def refuse_file(path: Path, *, force: bool, format: str | None = None) -> None:
    """Refuse a file that may not be written, before any work is done."""
    if path.is_dir():
        raise InputError(f"{path}: this is a folder; name a file.")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {str(path.parent)!r} to put it in.")
    if path.exists() and not force:
        raise InputError(f"{path}: the file is already there. Choose another name, or add --force.")
    if (format or path.suffix.lower().lstrip(".")) not in FORMATS:
        raise InputError(
            f"{path}: a table is written as {', '.join(FORMATS)}; give the name one of these endings."
        )


@contextmanager
def new_file(path: Path, *, force: bool = False) -> Iterator[Path]:
    """Give a file to write, of the same ending, which takes the place of `path` when all went well."""
    if path.exists() and not force:
        raise InputError(f"{path}: the file is already there. Choose another name, or add --force.")
    place = path.with_name(f".{path.stem}.{secrets.token_hex(4)}{path.suffix}")
    try:
        yield place
        os.replace(place, path)
    finally:
        place.unlink(missing_ok=True)
