"""Files with the names of factors: written by a fit, and rewritten when factors are renamed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from icqf.errors import Advice, InputError, listed
from icqf.io.atomic import new_folder, recover, write_bytes
from icqf.io.formats import WRITABLE
from icqf.io.readers.files import read_table
from icqf.io.write import csv_text, write_table
from icqf.models.icqf import ICQF
from icqf.models.persistence import rebuild
from icqf.models.summary import (
    checked_names,
    default_names,
    refuse_swapped,
    shown_names,
    suggested_names,
)
from icqf.report import Report, draw_figure, from_json, renamed, write_report
from icqf.report.document import FORMATS
from icqf.report.fit_report import document_of
from icqf.report.gallery import FORMATS as FIGURE_FORMATS
from icqf.report.gallery import drawing, figure_bytes, figure_names
from icqf.report.paper import write_paper_tables
from icqf.workflow.results_folder import DECIMALS, PROVENANCE, files_in, refuse_file

FIGURES = "figures"


def factors_table(model: ICQF) -> pd.DataFrame:
    """Return the content of ``factors.csv``: one row per factor, with its name and a suggested name.

    Examples
    --------
    >>> from icqf import ICQF
    >>> model = ICQF(1, item_range=(0, 2)).fit([[0, 1], [2, 2], [0, 0]])
    >>> factors_table(model.name_factors(["Worry"])).loc["factor1", ["name", "top_items"]].tolist()
    ['Worry', 'item1, item2']
    """
    model = rebuild(ICQF, model.describe())  # rounded as in its file, so that both give the same table
    table = model.summary().factors
    if model.replication_ is not None:
        table = table.drop(columns="probability").join(model.replication_)
    keys = default_names(len(table))
    named = ["" if name == key else name for name, key in zip(model.factor_names_, keys, strict=True)]
    table = table.set_axis(pd.Index(keys, name="factor"), axis=0)
    table.insert(0, "name", named)
    table.insert(1, "suggested_name", suggestions(model))
    return table


def suggestions(model: ICQF) -> list[str]:
    """Return a suggested name for each factor, from its items."""
    spans = model.item_range_["max"] - model.item_range_["min"]
    return suggested_names(model.loadings_.div(spans, axis=0), model.codebook_.items)


def write_named(
    place: Path, model: ICQF, report: Report | None, *, format: str, figures: bool, n_jobs: int | None = None
) -> None:
    """Write loadings, factors, the model and the report, with the model's names of factors.

    With `figures`, the report's figures and tables are also written as separate files; other processes draw
    them meanwhile.
    """
    if report is not None and figures:
        with drawing(place / FIGURES, report, n_jobs=n_jobs) as write_figures:
            write_named(place, model, report, format=format, figures=False)
            write_paper_tables(place, report)
            write_figures()
        return
    loadings = model.loadings_.rename_axis("item")
    write_table(loadings, place / f"loadings.{format}", decimals=DECIMALS)
    write_table(factors_table(model), place / f"factors.{format}", decimals=DECIMALS)
    model.save(place / "model.icqf")
    if report is not None:
        write_report(place / "report.html", report)


_NO_FIGURES = "no figures can be drawn"
_COLUMNS = ("factor", "name", "top_items")


@dataclass(frozen=True, eq=False)
class Rewritten:
    """A results folder that was rewritten."""

    names: tuple[str, ...]
    report: Report | None
    files: tuple[str, ...]


def rewrite_results(
    folder: str | os.PathLike[str], *, names: Sequence[str] | Mapping[str, str] | None = None
) -> Rewritten:
    """Rewrite the tables, the model and the report of a results folder, with names for its factors.

    Nothing is refitted. If anything fails, the folder is unchanged.

    Parameters
    ----------
    folder : path
        A folder written by `write_results` (or ``icqf fit``).
    names : sequence or mapping, optional
        One name per factor in order, or a mapping from current to new names. None takes them from the column
        ``name`` of the folder's table of factors, which may have been edited.

    Examples
    --------
    >>> import tempfile
    >>> from icqf.datasets import demo_paths
    >>> from icqf.workflow import fit_study, rewrite_results, write_results
    >>> answers, codebook = demo_paths()
    >>> fit = fit_study(answers, codebook=codebook, n_components=2, beta=0.1, report=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = write_results(fit, f"{folder}/results")
    ...     rewrite_results(f"{folder}/results", names=["Acting out", "Holding in"]).names
    ('Acting out', 'Holding in')
    """
    folder = Path(folder)
    recover(folder)
    provenance = provenance_in(folder)
    for name in files_in(folder):
        if (folder / name).is_symlink() or not (folder / name).is_file():
            raise InputError(
                f"{folder / name}: this is a link or not a file, so the results cannot be rewritten.",
                code="link",
                remedy="Move it elsewhere.",
            )
    model = ICQF.load(folder / "model.icqf")
    format = _format_in(folder)
    old = list(model.factor_names_)
    if names is None:
        model.name_factors(_names_in(folder / f"factors.{format}", model))
    else:
        given = checked_names(old, names, taken=model.confound_names_)
        table = factors_table(model)
        known = [[own, suggested] for own, suggested in zip(old, suggestions(model), strict=True)]
        refuse_swapped(given, known, [str(items).split(", ") for items in table["top_items"]])
        model.name_factors(given)
    report, shown = report_in(folder), shown_names(model.factor_names_, suggestions(model))
    if report is not None:
        report = renamed(report, shown)
    with new_folder(folder) as place:
        for name in files_in(folder):
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(folder / name, place / name)
        write_named(place, model, report, format=format, figures=(folder / FIGURES).is_dir())
        _rename_scores(place / f"scores.{format}", old, model.factor_names_, format)
        provenance["outputs"] = sorted(
            {*provenance["outputs"], *(set(files_in(place)) - set(files_in(folder)))}
        )
        provenance["names"] = shown
        text = json.dumps(provenance, indent=2, ensure_ascii=False)
        (place / PROVENANCE).write_text(text + "\n", encoding="utf-8")
        files = tuple(sorted(path.name for path in place.iterdir()))
    return Rewritten(tuple(model.factor_names_), report, files)


def check_report_file(folder: Path, path: Path, *, force: bool = False) -> None:
    """Refuse a file that a folder's report cannot be written to."""
    provenance_in(folder)
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path}: a report is written as {', '.join(FORMATS)}; use one of these endings.")
    _required_report(folder, f"{path.name} cannot be written")
    refuse_file(path, force=force)


def save_report(report: Report, path: Path) -> None:
    """Write the whole report in the format given by the ending of `path`."""
    content = FORMATS[path.suffix.lower()](document_of(report))
    write_bytes(path, content if isinstance(content, bytes) else content.encode())


def provenance_in(folder: Path) -> dict[str, Any]:
    """Read ``provenance.json`` of a results folder; other folders are refused."""
    remedy = "Give the folder that icqf fit wrote its results to."
    if not folder.exists():
        raise InputError(f"{folder}: there is no such folder.", code="no-results", remedy=remedy)
    if not folder.is_dir():
        raise InputError(f"{folder}: this is a file, not a folder.", code="no-results", remedy=remedy)
    try:
        provenance = json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))
        valid = provenance["program"] == "icqf" and isinstance(provenance["outputs"], list)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        valid = False
    if not valid or not (folder / "model.icqf").is_file():
        raise InputError(
            f"{folder}: the folder contains no results of icqf fit ({PROVENANCE} and model.icqf).",
            code="no-results",
            remedy=remedy,
        )
    result: dict[str, Any] = provenance
    return result


def report_in(folder: Path) -> Report | None:
    """Read a folder's report from its JSON file; None if the fit wrote none."""
    path = folder / "report.json"
    if not path.is_file():
        return None
    try:
        return from_json(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise InputError(f"{path}: this is not a text file. Fit again to replace it.") from None
    except InputError as error:
        raise error.at(str(path)) from None


def _format_in(folder: Path) -> str:
    format = next((form for form in WRITABLE if (folder / f"scores.{form}").is_file()), None)
    if format is None:
        raise InputError(
            f"{folder}: the folder contains no table of scores.", code="no-results", remedy="Fit again."
        )
    return format


def _names_in(path: Path, model: ICQF) -> list[str]:
    """Return the names in an edited table of factors; rows that do not match their factor are refused."""
    if not path.is_file():
        raise InputError(
            f"{path}: there is no such file.",
            code="no-factors",
            remedy=Advice("Give the names with {names}, one for each factor."),
        )
    table = read_table(path, text=_COLUMNS).frame
    absent = [column for column in _COLUMNS if column not in table.columns]
    if absent:
        raise InputError(
            f"{path}: there is no column {absent[0]!r}; the table of factors has the columns factor, name "
            "and top_items."
        )
    keys = default_names(len(model.factor_names_))
    tops = dict(zip(keys, factors_table(model)["top_items"], strict=True))
    names: dict[str, str] = {}
    for key, name, top in table[list(_COLUMNS)].fillna("").astype(str).itertuples(index=False):
        key = key.strip()
        if key not in tops or key in names:
            why = "occurs twice" if key in names else "is not a factor of this model"
            raise InputError(f"{path}: {key!r} {why}; do not change the column factor.")
        if _content(top) != _content(tops[key]):
            others = [other for other in keys if _content(tops[other]) == _content(top)]
            whose = f" (those of {others[0]})" if others else ""
            raise InputError(
                f"{path}: the row of {key!r} has the top items {listed(_content(top), most=3)}{whose}, but "
                f"{key} of this model has {listed(_content(tops[key]), most=3)}.",
                code="other-content",
                remedy="A name belongs to a factor's content: change only the column name.",
            )
        names[key] = name.strip()
    lacking = [key for key in keys if key not in names]
    if lacking:
        raise InputError(f"{path}: the row of {lacking[0]!r} is missing; keep one row for each factor.")
    return [names[key] or key for key in keys]


def _content(top: str) -> list[str]:
    return [part.strip() for part in top.split(",") if part.strip()]


def _rename_scores(path: Path, old: list[str], new: list[str], format: str) -> None:
    """Rename the columns of the scores, without changing the scores."""
    if old == new:
        return
    changed = InputError(
        f"{path.name}: its columns are not the factors of the model.",
        code="no-results",
        remedy="Fit again, or restore the file.",
    )
    if format == "csv":
        head, line, rest = path.read_bytes().decode("utf-8").partition("\n")
        ends = [csv_text(pd.DataFrame(columns=names)).rstrip("\n") for names in (old, new)]
        if not head.endswith(ends[0]):
            raise changed
        path.write_bytes((head.removesuffix(ends[0]) + ends[1] + line + rest).encode())
        return
    table = read_table(path).frame
    if table.shape[1] != len(old) + 1:
        raise changed
    write_table(table.set_axis([table.columns[0], *new], axis=1), path, decimals=DECIMALS)


@dataclass(frozen=True)
class TriedNumber:
    """A number of factors tried by a search, with its best penalty."""

    n_components: int
    beta: float
    error: float
    standard_error: float
    chosen: bool


def tried_numbers(folder: str | os.PathLike[str]) -> tuple[TriedNumber, ...]:
    """Return the numbers of factors tried by the search of a results folder; empty without a search."""
    model = provenance_in(Path(folder))["model"]
    try:
        return tuple(
            TriedNumber(
                int(row["n_components"]),
                float(row["beta"]),
                float(row["error"]),
                float(row["standard_error"]),
                int(row["n_components"]) == model["n_components"],
            )
            for row in model.get("tried", ())
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError(
            "provenance.json: this does not describe a search.",
            code="no-results",
            remedy="Fit again, or restore the file.",
        ) from None


def plot_results(
    folder: str | os.PathLike[str],
    figure: str,
    out: str | os.PathLike[str],
    *,
    columns: int | None = None,
    items: int = 5,
    factor: str | None = None,
    dpi: int = 300,
    force: bool = False,
) -> Path:
    """Draw one figure of a results folder (`icqf.report.figure_names`) into a file; its ending is the format.

    `columns` is the width in columns of a journal, 85 or 178 mm; by default, whichever suits the figure.
    """
    folder, out = Path(folder), Path(out)
    report = _required_report(folder, _NO_FIGURES)
    format = out.suffix.lower().lstrip(".").replace("tiff", "tif")
    if format not in FIGURE_FORMATS:
        known = ", ".join(FIGURE_FORMATS)
        raise InputError(f"{out}: figures are written as {known}; use one of these endings.")
    refuse_file(out, force=force)
    if not 50 <= dpi <= 2400:
        raise InputError(f"dpi is {dpi}; choose a number between 50 and 2400.")
    drawn = draw_figure(report, figure, columns=columns, items=items, factor=factor)
    write_bytes(out, figure_bytes(drawn, format, dpi=dpi))
    return out


def figures_of(folder: str | os.PathLike[str]) -> list[str]:
    """Return the figures available for a results folder."""
    return figure_names(_required_report(Path(folder), _NO_FIGURES))


def _required_report(folder: Path, otherwise: str) -> Report:
    provenance_in(folder)
    report = report_in(folder)
    if report is None:
        raise InputError(
            f"{folder}: the fit wrote no report, so {otherwise}.",
            code="no-report",
            remedy=Advice("Fit again with {report=}.", report=True),
        )
    return report
