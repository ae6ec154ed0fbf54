"""The paper's table of 21 questionnaires, and what cross-validation chooses for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from icqf.data.questionnaire import Item, Questionnaire
from icqf.datasets.simulated import make_battery
from icqf.errors import InputError, counted, listed
from icqf.io.codebook import write_codebook
from icqf.io.readers.questionnaires import read_questionnaire
from icqf.io.readers.table import Table
from icqf.plotting.comparison import battery_overview
from icqf.report.blocks import Grid, Picture
from icqf.workflow.evaluation import Design, prose, results_page
from icqf_experiments.exports import hbn_id, read_export
from icqf_experiments.studies import QUICK_PARTICIPANTS

FitAll = Callable[[dict[str, Any], Path], tuple[pd.DataFrame, dict[str, Exception]]]
PARTICIPANTS = 1000
_FEWEST_ITEMS = 3


@dataclass(frozen=True)
class Layout:
    """A questionnaire in the paper's appendix."""

    title: str
    name: str  # the abbreviation that HBN's columns begin with
    items: int
    subscales: int | None  # None if the paper gives none
    k: int  # chosen by the paper's cross-validation
    beta: float
    answers: tuple[int, int]  # lowest and highest answer of the published form


LAYOUTS = tuple(
    Layout(*row)
    for row in (
        ("Affective Reactivity Index (Parent-Report)", "ARI_P", 7, None, 2, 0.01, (0, 2)),
        ("Affective Reactivity Index (Self-Report)", "ARI_S", 7, None, 2, 0.01, (0, 2)),
        ("Autism Spectrum Screening Questionnaire", "ASSQ", 27, None, 2, 0.01, (0, 2)),
        ("Conners 3 (Self-Report)", "C3SR", 9, None, 4, 0.05, (0, 3)),
        ("Child Behavior Checklist", "CBCL", 119, 9, 8, 0.5, (0, 2)),
        (
            "Extended Strengths and Weaknesses Assessment of Normal Behavior",
            *("ESWAN", 65, None, 13, 0.2, (-3, 3)),
        ),
        ("Inventory of Callous-Unemotional Traits (Parent-Report)", "ICU_P", 24, 3, 4, 0.1, (0, 3)),
        ("Inventory of Callous-Unemotional Traits (Self-Report)", "ICU_SR", 24, 3, 3, 0.1, (0, 3)),
        ("Mood and Feelings Questionnaire (Parent-Report)", "MFQ_P", 34, None, 2, 0.1, (0, 2)),
        ("Mood and Feelings Questionnaire (Self-Report)", "MFQ_SR", 33, None, 2, 0.1, (0, 2)),
        ("The Positive and Negative Affect Schedule", "PANAS", 20, 2, 2, 0.05, (1, 5)),
        ("Repetitive Behaviors Scale", "RBS", 43, 5, 3, 0.1, (0, 3)),
        ("Screen for Child Anxiety Related Disorders (Parent-Report)", "SCARED_P", 41, 5, 3, 0.1, (0, 2)),
        ("Screen for Child Anxiety Related Disorders (Self-Report)", "SCARED_SR", 41, 5, 3, 0.3, (0, 2)),
        ("Social Communication Questionnaire", "SCQ", 40, None, 4, 0.02, (0, 1)),
        ("Strength and Difficulties Questionnaire", "SDQ", 33, 9, 6, 0.05, (0, 2)),
        ("Social Responsiveness Scale (School Age)", "SRS", 65, 7, 3, 0.5, (0, 3)),
        (
            "The Strengths and Weaknesses Assessment of Normal Behavior Rating Scale for ADHD",
            *("SWAN", 18, 2, 3, 0.02, (-3, 3)),
        ),
        ("Symptom Checklist (Parent-Report)", "SympChck", 63, None, 3, 0.1, (0, 1)),
        ("Teacher Report Form (School Age)", "TRF", 116, 19, 8, 0.5, (0, 2)),
        ("Youth Self Report", "YSR", 119, 11, 3, 0.2, (0, 2)),
    )
)


def simulated(layout: Layout, n: int, *, seed: int) -> Questionnaire:
    """Simulate a questionnaire with the paper's number of items and factors.

    Examples
    --------
    >>> from icqf_experiments.questionnaires import LAYOUTS, simulated
    >>> simulated(LAYOUTS[0], 50, seed=0).answers.shape
    (50, 7)
    """
    k = min(layout.k, layout.items)
    low, high = layout.answers
    made = make_battery(
        n,
        n_items=[layout.items],
        n_factors=k,
        n_meta=k,
        absent=0,
        own=0.0,
        highest=[high - low],
        random_state=seed,
    )
    (own,) = made.battery.instruments.values()
    names = [f"{layout.name}_{j:02d}" for j in range(1, layout.items + 1)]
    items = tuple(Item(name, min=float(low), max=float(high)) for name in names)
    return Questionnaire(low + own.answers.set_axis(names, axis=1), items)


def read_hbn_questionnaires(paths: Sequence[Path]) -> dict[str, Questionnaire]:
    """Read the paper's questionnaires from exports of the Healthy Brain Network, by abbreviation.

    Items are columns such as ``ARI_P,ARI_P_01`` (LORIS) or ``ARI_P_01`` (COINS); sums and dates are left out.
    Ranges are the observed ones.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from icqf_experiments.questionnaires import read_hbn_questionnaires
    >>> rows = ["EID,ARI_P_01,ARI_P_02,ARI_P_03,ARI_P_Total"]
    >>> rows += [f"NDAR{i},{i % 3},{(i + 1) % 3},{i % 2},3" for i in range(30)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "ari.csv")
    ...     _ = file.write_text("\\n".join(rows))
    ...     {name: each.answers.shape for name, each in read_hbn_questionnaires([file]).items()}
    {'ARI_P': (30, 3)}
    """
    found: dict[str, Questionnaire] = {}
    for path in paths:
        for layout in LAYOUTS:
            table = read_export(path, hbn_id, partial(_item, layout))
            names = [str(name) for name in table.frame.columns if name != "participant"]
            if len(names) < _FEWEST_ITEMS:
                continue
            if layout.name in found:
                raise InputError(
                    f"{table.source}: the items of {layout.name} are also in another file. Give only one."
                )
            found[layout.name] = _read(table, names)
    if not found:
        raise InputError(
            f"No questionnaire of the paper was found in {listed(path.name for path in paths)}: columns must "
            "be named ARI_P_01 or ARI_P,ARI_P_01, and so on."
        )
    return found


def _item(layout: Layout, column: str) -> str | None:
    """Return our name of a column if it is an item of the questionnaire, else None."""
    form, comma, plain = column.rpartition(",")
    if comma and form.lower() != layout.name.lower():
        return None
    pattern = r"[A-Za-z0-9_]*?_?\d+[a-zA-Z]?" if comma else rf"{layout.name}_\d+[a-zA-Z]?"
    return plain if re.fullmatch(pattern, plain, flags=re.IGNORECASE) else None


def _read(table: Table, names: list[str]) -> Questionnaire:
    answered = (
        table.frame[names].notna().any(axis=1).to_numpy()
        & ~table.frame["participant"].duplicated().to_numpy()
    )
    return read_questionnaire(replace(table.take(answered), id="participant"), items=names)


def questionnaires(design: Design, fit_all: FitAll, *, files: Sequence[Path] = ()) -> Path:
    """Search and fit the paper's 21 questionnaires, and compare with the paper's table.

    `fit_all` fits every questionnaire of a folder, like `icqf.workflow.run_batch`: it receives the options
    and the results folder, and returns the summary table and the failures. `files` are exports of HBN;
    questionnaires not in them are simulated.
    """
    real = read_hbn_questionnaires(files) if files else {}
    folder = design.out / "questionnaires"
    study = folder / "answers"
    study.mkdir(parents=True, exist_ok=True)
    for at, layout in enumerate(LAYOUTS):
        n = QUICK_PARTICIPANTS if design.quick else PARTICIPANTS
        own = real.get(layout.name) or simulated(layout, n, seed=design.random_state + at)
        own.answers.to_csv(study / f"{layout.name}.csv")
        write_codebook(own.with_observed_ranges().items, study / f"{layout.name}_codebook.csv")
    options: dict[str, Any] = {"answers": study, "seed": design.random_state, "report": not design.quick}
    options |= {"bootstrap": 20, "jobs": design.n_jobs or 1, "n_splits": design.n_folds}
    if design.quick:
        options |= {"n_components": "1-9", "beta": list(design.betas)}
    table, failures = fit_all(options, folder / "results")
    return _page(design, folder, table.set_index("name"), failures, set(real))


def _page(
    design: Design, folder: Path, table: pd.DataFrame, failures: dict[str, Exception], real: set[str]
) -> Path:
    lines, rows = [], []
    found_rows = table.to_dict("index")
    for layout in LAYOUTS:
        own = found_rows.get(layout.name, {})
        kind = "HBN" if layout.name in real else "simulated"
        paper = [str(layout.items), "–" if layout.subscales is None else str(layout.subscales)]
        rows.append(
            {"name": layout.name, "data": kind, "paper_k": layout.k, "paper_beta": layout.beta, **own}
        )
        if own:
            again = "–" if pd.isna(own["found_again"]) else f"{int(own['found_again'])}"
            ours = [str(own["participants"]), str(own["k"]), f"{own['beta']:g}", f"{own['explained']:.0%}"]
        else:
            ours, again = ["–"] * 4, "–"
        paper += [str(layout.k), f"{layout.beta:g}"]
        lines.append([layout.title, layout.name, *paper, kind, *ours, again])
    pd.DataFrame(rows).to_csv(design.out / "questionnaires.csv", index=False)
    drawn: Any = battery_overview(table.reset_index()).figure
    chosen = table["k"].astype(int).to_dict()
    known = [each for each in LAYOUTS if each.name in chosen and each.name not in real]
    off = [abs(chosen[each.name] - each.k) for each in known]
    head = [
        *("questionnaire", "abbreviation", "items", "subscales", "k (paper)", "β (paper)", "data"),
        *("participants", "k", "β", "explained", "found again"),
    ]
    simulated_words = prose(
        f"""{counted(len(off), "questionnaire")} without files were simulated with the paper's numbers of
        items and factors, to test whether the procedure finds a known number: k is right for
        {sum(each == 0 for each in off)} of {len(off)}, and off by {np.mean(off):.2f} on average. This says
        nothing about the real questionnaires, and there is no true β to compare with. The ranges of answers
        are those of the published forms."""
    )
    return results_page(
        design,
        "questionnaires",
        "The 21 questionnaires of the paper's appendix",
        "Each questionnaire is searched and fitted separately, as icqf batch does.",
        [
            Grid("Questionnaires, the paper's numbers and ours", head, lines),
            Picture("questionnaires", drawn, "Factors of each questionnaire"),
            *(f"Not fitted: {name} ({error})" for name, error in failures.items()),
            f"The table is in questionnaires.csv, and reports are in {folder.name}/results.",
        ],
        lead=[simulated_words if off else ""],
    )
