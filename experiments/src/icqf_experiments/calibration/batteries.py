"""How often unrelated questionnaires seem to have a common factor, and how often a common one is found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from icqf import ICQF
from icqf.data.battery import Battery
from icqf.datasets import load_help_battery, make_battery
from icqf.models.meta import CHANCE, MetaICQF
from icqf.report.blocks import Block, Grid
from icqf.workflow.evaluation import Design
from icqf_experiments.calibration.frame import SIMULATED, Statement, run_cases

SIZES = (200, 400)
INSTRUMENTS = (2, 4)
ITEMS = 10  # of each instrument, with two factors
HIGHEST = {"graded": 4, "yes/no": 1}
SHARED = {0.0: 30, 0.3: 8, 0.5: 8, 0.7: 8}  # share of participants with the common scores: batteries of each
HELP_FACTORS = 2  # of each instrument of the HELP study
SHUFFLES = 40
FIRST_SEED = 5000


def _simulated(n: int, instruments: int, answers: str, shared: float, seed: int) -> dict[str, Any]:
    made = make_battery(
        n,
        n_items=(ITEMS,) * instruments,
        n_factors=2,
        n_meta=2,
        absent=0.2,
        shared=shared,
        highest=(HIGHEST[answers],),
        random_state=FIRST_SEED + seed,
    )
    about = {"answers": answers, "source": SIMULATED, "participants": n, "instruments": instruments}
    return {"rows": [_case(made.battery) | about | {"shared": shared}]}


def _shuffled(seed: int) -> dict[str, Any]:
    """The HELP study with the patients of every instrument shuffled, so that nothing is shared."""
    rng = np.random.default_rng([FIRST_SEED, seed])
    own = {}
    for name, each in load_help_battery().instruments.items():
        order = rng.permutation(each.n_participants)
        own[name] = type(each)(each.answers.iloc[order].set_axis(each.answers.index), each.items)
    battery = Battery(own)
    about = {"answers": "graded", "source": "help", "participants": battery.n_participants}
    return {"rows": [_case(battery) | about | {"instruments": len(own), "shared": 0.0}]}


def _case(battery: Battery) -> dict[str, Any]:
    model = MetaICQF(ICQF(HELP_FACTORS, n_init=1)).fit(battery)
    found = len(model.get_feature_names_out())
    p = 1.0 if model.common_ is None else model.common_.p
    return {"happened": int(found > 0), "n_components": found, "p": p}


def _cases(design: Design) -> pd.DataFrame:
    sizes, instruments = (SIZES[:1], INSTRUMENTS[:1]) if design.quick else (SIZES, INSTRUMENTS)
    jobs = {
        f"{n} × {number}, {answers}, shared {shared:g}, {seed}": (n, number, answers, shared, seed)
        for n in sizes
        for number in instruments
        for answers in HIGHEST
        for shared, batteries in SHARED.items()
        for seed in range(1 if design.quick else batteries)
    }
    tables = [run_cases(design, "batteries", jobs, _simulated)]
    if not design.quick:
        shuffles = {f"help, {seed}": (seed,) for seed in range(SHUFFLES)}
        tables.append(run_cases(design, "batteries-help", shuffles, _shuffled))
    table = pd.concat(tables, ignore_index=True)
    table.insert(0, "said", np.where(table["shared"] == 0, CHANCE, np.nan))
    return table


def _more(table: pd.DataFrame) -> Sequence[Block]:
    by = table.groupby(["source", "answers", "participants", "instruments", "shared"])
    rows = [
        [
            *map(str, key),
            str(len(part)),
            f"{part['happened'].mean():.2f}",
            f"{part['n_components'].mean():.2f}",
        ]
        for key, part in by
    ]
    head = [
        "source",
        "answers",
        "participants",
        "instruments",
        "shared",
        "batteries",
        "common",
        "mean number",
    ]
    return [
        Grid("How often a common factor was found, and how many (two are true where shared > 0)", head, rows)
    ]


BATTERIES = Statement(
    "batteries",
    "A common factor of several questionnaires",
    "Unrelated questionnaires have a common factor in at most 5 % (`icqf meta`: scores of a hidden "
    "instrument, predicted from the others, must correlate beyond chance). Simulated batteries of two or "
    "four instruments with two factors each, whose meta-factors are shared by a part of the participants "
    "(0: unrelated; a fifth lacks each instrument), and the seven instruments of the HELP study with the "
    "patients of each shuffled. Happened: a common factor was found. Numbers of factors of the first stage "
    "are set to two.",
    _cases,
    _more,
)
