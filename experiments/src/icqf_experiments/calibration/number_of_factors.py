"""Which number of factors would be chosen with another seed, and by another sample: said and happened.

The grids, the public studies and the numbers of seeds below were committed before any of them was run.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pandas as pd

from icqf.data.questionnaire import Questionnaire
from icqf.datasets import load_bfi
from icqf.models.icqfcv import ICQFCV
from icqf.report.blocks import Block, Grid
from icqf.workflow.evaluation import Design
from icqf_experiments.calibration.frame import SIMULATED, Statement, run_cases
from icqf_experiments.calibration.populations import FORMS, PUBLIC, Population, pairs_of_parts

SIGNALS = ("none", "weak", "middle", "strong")
FACTORS = {"none": 1, "weak": 4, "middle": 3, "strong": 5}  # of simulated populations, with 8 items each
SIZES = (150, 400)  # participants, simulated and in parts of public studies
N_SEEDS = 3
# The whole bfi study, with and without its confounds, with more seeds.
WHOLE, N_SEEDS_WHOLE = {"whole bfi": False, "whole bfi with age and sex": True}, 20
_RAN = "The searches behind the published table ran on a GPU (engine torch)."
LEAST = 0.05  # numbers of factors said to be less likely are not cases


def searched(study: Questionnaire, seed: int) -> ICQFCV:
    """The default search."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ICQFCV(random_state=seed).fit(study)


def populations() -> dict[str, Population]:
    """One simulated population for each form of answers and strength of signal."""
    return {
        f"{form}, {signal}": Population(
            signal, form, FACTORS[signal], 8 * max(FACTORS[signal], 2), 0.05, 500 + at
        )
        for at, (form, signal) in enumerate(product(FORMS, SIGNALS))
    }


def _whole(name: str) -> Questionnaire:
    study = load_bfi()
    return study if WHOLE[name] else replace(study, confounds=None)


# --- other seeds ------------------------------------------------------------------------------------------


def of_seeds(source: Any, told: Any, n_seeds: int) -> dict[str, Any]:
    """One row per seed: what it says about its choice, and whether the next seed makes the same one."""
    if isinstance(source, Population):
        study, labels = source.draw(told, 0), {"source": SIMULATED, "answers": source.answers}
    elif told in WHOLE:
        study, labels = _whole(told), {"source": told, "answers": "graded"}
    else:
        study, labels = source, {"source": told, "answers": PUBLIC[told][1]}
    found = [searched(study, seed) for seed in range(n_seeds)]
    rows = []
    for seed, (one, other) in enumerate(zip(found, [*found[1:], found[0]], strict=True)):
        k = one.n_components_
        said = float(one.choice_.by_k().get(k, 0.0))
        row = {"seed": seed, "k": k, "said": said, "happened": int(other.n_components_ == k)}
        rows.append({**labels, **row, "n_fits": len(one.cv_results_)})
    return {"rows": rows}


def cases_of_seeds(design: Design) -> pd.DataFrame:
    """All cases of the statement about other seeds."""
    jobs: dict[str, tuple[Any, ...]] = {name: (None, name, N_SEEDS_WHOLE) for name in WHOLE}
    for name, population in populations().items():
        jobs |= {f"{name}, {n}": (population, n, N_SEEDS) for n in SIZES}
    for name in PUBLIC:
        for size in SIZES:
            for parts in pairs_of_parts(name, size, 1):
                jobs[f"{name}, {size}"] = (parts[0], name, N_SEEDS)
    if design.quick:
        jobs = {
            name: (*job[:2], 2)
            for name, job in jobs.items()
            if name in ("yes/no, none, 150", "aggression, 150")
        }
    return run_cases(design, "seeds", jobs, of_seeds)


def more_on_seeds(table: pd.DataFrame) -> Sequence[Block]:
    """The whole bfi study: the most frequent number, how often it was chosen, and what was said."""
    rows = []
    for name in WHOLE:
        mine = table[table["source"] == name]
        if len(mine):
            chosen = mine["k"].value_counts()
            rows.append(
                [
                    name,
                    str(chosen.index[0]),
                    f"{chosen.iloc[0]} of {len(mine)}",
                    f"{mine['said'].mean():.2f} ({mine['said'].min():.2f} to {mine['said'].max():.2f})",
                ]
            )
    head = ["study", "number of factors", "chosen by seeds", "said (mean, range)"]
    return [Grid("One study, many seeds", head, rows)] if rows else []


SEEDS = Statement(
    "seeds",
    "The number of factors with another seed",
    "`choice_` of the default search says how often another seed, which divides the same answers into other "
    "folds, would choose the same number of factors. It happened where the next seed did. Simulated "
    "questionnaires and parts of public studies with three seeds each, and the whole bfi study with twenty. "
    f"{_RAN}",
    cases_of_seeds,
    more_on_seeds,
)


# --- other samples ----------------------------------------------------------------------------------------


def of_samples(drawn: Any, told: Any) -> dict[str, Any]:
    """One row per sample and number of factors that it calls likely: whether the other sample chose it."""
    if isinstance(drawn, Population):
        studies = [drawn.draw(told, seed) for seed in (0, 1)]
        labels = {"source": SIMULATED, "answers": drawn.answers}
    else:
        studies, labels = list(drawn), {"source": told, "answers": PUBLIC[told][1]}
    found = [searched(study, 0) for study in studies]
    rows = []
    for one, other in zip(found, reversed(found), strict=True):
        shares = one.sample_choice_.by_k()
        for k, said in zip(shares.index.tolist(), shares.tolist(), strict=True):
            if said >= LEAST:
                row = {"n": one.best_estimator_.n_participants_, "k": k, "said": said}
                row |= {"chosen": int(k == one.n_components_), "happened": int(other.n_components_ == k)}
                rows.append({**labels, **row})
    return {"rows": rows}


def cases_of_samples(design: Design) -> pd.DataFrame:
    """All cases of the statement about other samples."""
    jobs: dict[str, tuple[Any, ...]] = {}
    for name, population in populations().items():
        jobs |= {f"{name}, {n}": (population, n) for n in SIZES}
    for name in PUBLIC:
        for size in SIZES:
            for parts in pairs_of_parts(name, size, 1):
                jobs[f"{name}, {size}"] = (parts, name)
    if design.quick:
        jobs = {name: job for name, job in jobs.items() if name in ("yes/no, none, 150", "aggression, 150")}
    return run_cases(design, "samples", jobs, of_samples)


def more_on_samples(table: pd.DataFrame) -> Sequence[Block]:
    """What was said of the chosen numbers alone, by size."""
    chosen = table[table["chosen"] == 1]
    rows = [
        [str(n), str(len(part)), f"{part['said'].mean():.2f}", f"{part['happened'].mean():.2f}"]
        for n, part in chosen.groupby("n")
    ]
    head = ["participants", "samples", "said of the choice (mean)", "the other sample chose the same"]
    return [Grid("The chosen number alone", head, rows)]


SAMPLES = Statement(
    "samples",
    "The number of factors in another sample",
    "`sample_choice_` of the default search says how often other samples of the same size would choose each "
    f"number of factors. Every number said to be chosen in {LEAST:.0%} or more is a case; it happened where "
    "a second, independent sample chose it. Simulated questionnaires, and disjoint parts of public studies. "
    "The constant behind it was set on other simulated populations and on parts of bfi and msq, so that "
    f"these two studies are not left out of it. {_RAN}",
    cases_of_samples,
    more_on_samples,
)
