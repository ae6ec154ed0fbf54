"""Shorten a questionnaire: a model and a file of answers give a folder with the short form."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import effective_n_jobs
from matplotlib.figure import Figure

from icqf.analyses.adaptive_forms import adaptive_form
from icqf.analyses.short_forms import ShortForm, shortform
from icqf.data.battery import Battery
from icqf.data.questionnaire import Item
from icqf.data.settings import ADAPTIVE_WIDTH, check_parameter
from icqf.engines.parallel import processes_for
from icqf.engines.progress import Progress, Stages
from icqf.errors import InputError
from icqf.io.codebook import format_codebook
from icqf.io.readers.files import read_table
from icqf.io.write import write_table
from icqf.plotting import short_form_curve
from icqf.plotting.style import default_settings
from icqf.report import scoring_page
from icqf.workflow.new_answers import ModelledAnswers
from icqf.workflow.options import ShortFormOptions
from icqf.workflow.results_folder import DECIMALS, write_tool_folder

CHOOSING = "Choosing items"


def shorten_study(
    read: ModelledAnswers,
    *,
    callback: Callable[[Progress], object] | None = None,
    n_jobs: int = 1,
    **parameters: Any,
) -> ShortForm:
    """Choose a short form for a model and the answers of a file."""
    asked = read.questionnaire
    parts = list(asked.instruments.values()) if isinstance(asked, Battery) else [asked]
    # Items cost time, not participants: each is tried with about a thousand simulated ones.
    m = sum(part.n_items for part in parts)
    jobs = processes_for(n_jobs, 1000 * m, 300)
    stages = Stages(callback, {CHOOSING: _expected_seconds(m, parameters.get("max_items"), jobs)})
    stages.begin(CHOOSING)
    return shortform(read.model, asked, callback=stages, n_jobs=jobs, **parameters)


def _expected_seconds(m: int, length: int | None, jobs: int) -> float:
    """Return what it takes to choose so many of m items, and to write the form."""
    length = min(20, m // 2) if length is None else length
    return 1.2 + (0.24 + 0.001 * m) * length / min(effective_n_jobs(jobs), 6)


def write_short_form(
    form: ShortForm,
    folder: str | os.PathLike[str],
    *,
    read: ModelledAnswers,
    title: str = "Questionnaire",
    adaptive_width: float = ADAPTIVE_WIDTH,
    **how: Any,
) -> list[str]:
    """Write a short form: its codebook, a model that scores it, tables, a figure and a page to fill in.

    The page can also ask one question at a time, and stop when every interval is at most `adaptive_width`
    wide, if the model knows how its scores are distributed. For a battery, no page is written. `how` is for
    `write_tool_folder`.
    """
    battery = isinstance(read.questionnaire, Battery)

    def write(place: Path) -> None:
        items = items_of(form, read)
        (place / "items.csv").write_text(format_codebook(items), encoding="utf-8", newline="")
        if battery:
            form.model.save(place / "model.icqf")
        else:
            known = str(read.questionnaire.answers.index.name or "")
            form.model.save(place / "model.icqf", items=items, id=known)
            distributed = read.model.score_distribution_ is not None
            adaptive = adaptive_form(read.model, form.items, width=adaptive_width) if distributed else None
            page = scoring_page(form, title=title, items=items, adaptive=adaptive)
            (place / "form.html").write_text(page, encoding="utf-8", newline="\n")
        for name in ("curve", "factors", "bands"):
            write_table(getattr(form, name), place / f"{name}.csv", decimals=DECIMALS)
        with default_settings():
            figure = Figure(figsize=(7.0, 4.4), layout="constrained")
            short_form_curve(form.curve, ax=figure.add_subplot())
            figure.savefig(place / "curve.png", dpi=150)

    worst, least = form.worst
    result = {
        "items": list(form.items),
        "correlation": round(form.correlation, DECIMALS),
        "worst": {"factor": worst, "correlation": round(least, DECIMALS)},
        "participants": form.n_participants,
        "sentences": [form.sentence],
    }
    return write_tool_folder(folder, "shortform", write, read.files, result, read.notes, **how)


def items_of(form: ShortForm, read: ModelledAnswers) -> list[Item]:
    """Return the items of a form from the codebook; in a battery, their subscale is the instrument."""
    if isinstance(read.questionnaire, Battery):
        parts = read.questionnaire.instruments.items()
        known = {
            f"{name}: {item.name}": replace(item, subscale=name)
            for name, part in parts
            for item in part.items
        }
    else:
        known = {item.name: item for item in read.questionnaire.items}
    return [known.get(name, Item(name)) for name in form.items]


def parameters_of(options: ShortFormOptions) -> dict[str, Any]:
    """Return the parameters of `icqf.analyses.shortform`, with minutes read from their table if given."""
    names = ("max_items", "correlation", "keep", "drop", "max_minutes")
    check_parameter("adaptive_width", options.adaptive_width)
    minutes = minutes_in(options.minutes) if isinstance(options.minutes, Path) else options.minutes
    return {
        **{name: getattr(options, name) for name in names},
        "minutes": minutes,
        "random_state": options.seed,
        "n_jobs": options.jobs,
    }


def minutes_in(path: Path) -> dict[str, float]:
    """Return the minutes of each item from a table with the columns ``item`` and ``minutes``."""
    table = read_table(path, text=["item"])
    absent = [name for name in ("item", "minutes") if name not in table.frame.columns]
    if absent:
        raise InputError(
            f"{table.source}: there is no column {absent[0]!r}; a table of minutes has the columns item and "
            "minutes."
        )
    numbers = pd.to_numeric(table.frame["minutes"], errors="coerce")
    if numbers.isna().any():
        at = int(numbers.isna().to_numpy().argmax())
        raise InputError(
            f"{table.source}: the minutes of the item {str(table.frame['item'].iloc[at])!r} are not a number."
        )
    return dict(zip(table.frame["item"].astype(str), numbers.astype(float), strict=True))
