"""Draw one figure of a results folder, in the size and format that a journal requires."""

from __future__ import annotations

import os
from pathlib import Path

from icqf.errors import Advice, InputError
from icqf.io.atomic import write_bytes
from icqf.report import Report, draw_figure
from icqf.report.gallery import FORMATS, figure_bytes, figure_names
from icqf.workflow.naming import provenance_in, report_in
from icqf.workflow.results_folder import refuse_file


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
    report = _report_in(folder)
    format = out.suffix.lower().lstrip(".").replace("tiff", "tif")
    if format not in FORMATS:
        raise InputError(f"{out}: figures are written as {', '.join(FORMATS)}; use one of these endings.")
    refuse_file(out, force=force)
    if not 50 <= dpi <= 2400:
        raise InputError(f"dpi is {dpi}; choose a number between 50 and 2400.")
    drawn = draw_figure(report, figure, columns=columns, items=items, factor=factor)
    write_bytes(out, figure_bytes(drawn, format, dpi=dpi))
    return out


def figures_of(folder: str | os.PathLike[str]) -> list[str]:
    """Return the figures available for a results folder."""
    return figure_names(_report_in(Path(folder)))


def _report_in(folder: Path) -> Report:
    provenance_in(folder)
    report = report_in(folder)
    if report is None:
        raise InputError(
            f"{folder}: the fit wrote no report, so no figures can be drawn.",
            code="no-report",
            remedy=Advice("Fit again with {report=}.", report=True),
        )
    return report
