"""The files of a results folder that name factors: written by a fit, and again when factors are named."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from icqf.io.write import write_table
from icqf.models.factor_names import default_names, suggested_names
from icqf.models.icqf import ICQF
from icqf.models.persistence import rebuild
from icqf.report import Report, write_report
from icqf.report.gallery import write_figures
from icqf.report.paper import write_paper_tables

FIGURES = "figures"
DECIMALS = 6  # scores are solved for to about 1e-5


def factors_table(model: ICQF) -> pd.DataFrame:
    """What ``factors.csv`` holds: one row per factor, with a column for its name and what might stand there.

    Examples
    --------
    >>> from icqf import ICQF
    >>> model = ICQF(1, item_range=(0, 2)).fit([[0, 1], [2, 2], [0, 0]])
    >>> factors_table(model.name_factors(["Worry"])).loc["factor1", ["name", "top_items"]].tolist()
    ['Worry', 'item1, item2']
    """
    model = rebuild(ICQF, model.describe())  # with the digits of its file: the same table from either
    table = model.summary().factors
    if model.replication_ is not None:
        table = table.drop(columns="chance").join(model.replication_)
    keys = default_names(len(table))
    named = ["" if name == key else name for name, key in zip(model.factor_names_, keys, strict=True)]
    table = table.set_axis(pd.Index(keys, name="factor"), axis=0)
    table.insert(0, "name", named)
    table.insert(1, "suggested_name", suggestions(model))
    return table


def suggestions(model: ICQF) -> list[str]:
    """What the items of each factor suggest to call it."""
    spans = model.item_range_["max"] - model.item_range_["min"]
    return suggested_names(model.loadings_.div(spans, axis=0), model.codebook_.items)


def write_named(place: Path, model: ICQF, report: Report | None, *, format: str, figures: bool) -> None:
    """Write loadings, factors, the model and the report, under the names that the model's factors have.

    With `figures`, those of the report and its tables are written as files of their own.
    """
    loadings = model.loadings_.rename_axis("item")
    write_table(loadings, place / f"loadings.{format}", decimals=DECIMALS)
    write_table(factors_table(model), place / f"factors.{format}", decimals=DECIMALS)
    model.save(place / "model.icqf")
    if report is not None:
        write_report(place / "report.html", report)
    if report is not None and figures:
        (place / FIGURES).mkdir(exist_ok=True)
        write_figures(place / FIGURES, report)
        write_paper_tables(place, report)
