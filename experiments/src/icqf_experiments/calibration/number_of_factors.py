"""Which number of factors would be chosen with another seed, and by another sample: said and happened.

The grids, the public studies and the numbers of seeds below were committed before any of them was run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from icqf.data.questionnaire import Questionnaire
from icqf.datasets import load_bfi
from icqf.errors import listed
from icqf.models.icqfcv import ICQFCV
from icqf.models.selection_rules import choice_frequencies
from icqf.report.blocks import Block, Grid
from icqf.workflow.evaluation import Design
from icqf_experiments.calibration.frame import SIMULATED, Statement, off_bins, run_cases
from icqf_experiments.calibration.learning import left_out, weights
from icqf_experiments.calibration.populations import FORMS, PUBLIC, Population, behind, pairs_of_parts

SIGNALS = ("none", "weak", "middle", "strong")
FACTORS = {"none": 1, "weak": 4, "middle": 3, "strong": 5}  # of simulated populations, with 8 items each
SIZES = (150, 400)  # participants, simulated and in parts of public studies
SEED = 28  # of divisions; constants and rules were committed before these and the populations were seen
N_SEEDS = 2
N_POPULATIONS = 2  # for each form of answers and strength of signal
RATIOS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0)  # variance between samples to that between participants
# The whole bfi study, with and without its confounds, with more seeds.
WHOLE, N_SEEDS_WHOLE = {"whole bfi": False, "whole bfi with age and sex": True}, 20
LEAST = 0.05  # numbers of factors said to be less likely are not cases


def searched(study: Questionnaire, seed: int, **options: Any) -> ICQFCV:
    """The default search."""
    return ICQFCV(random_state=seed, **options).fit(study)


def populations(first: int) -> dict[str, Population]:
    """One simulated population for each form of answers and strength of signal."""
    return {
        f"{form}, {signal}": Population(
            signal, form, FACTORS[signal], 8 * max(FACTORS[signal], 2), 0.05, first + at
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
    thorough = -1 if told in WHOLE else searched(study, 0, thorough=True).n_components_
    rows = []
    for seed, (one, other) in enumerate(zip(found, [*found[1:], found[0]], strict=True)):
        k = one.n_components_
        said = float(one.choice_.by_k().get(k, 0.0))
        row = {"seed": seed, "k": k, "said": said, "happened": int(other.n_components_ == k)}
        rows.append({**labels, **row, "two_starts": thorough if seed == 0 else -1})
    return {"rows": rows}


def cases_of_seeds(design: Design) -> pd.DataFrame:
    """All cases of the statement about other seeds."""
    jobs: dict[str, tuple[Any, ...]] = {name: (None, name, N_SEEDS_WHOLE) for name in WHOLE}
    for name, population in populations(130_000).items():
        jobs |= {f"{name}, {n}": (population, n, N_SEEDS) for n in SIZES}
    for name in PUBLIC:
        for size in SIZES:
            for parts in pairs_of_parts(name, size, 1, seed=SEED):
                jobs[f"{name}, {size}"] = (parts[0], name, N_SEEDS)
    if design.quick:
        jobs = {
            name: (*job[:2], 2)
            for name, job in jobs.items()
            if name in ("yes/no, none, 150", "aggression, 150")
        }
    return run_cases(design, "seeds", jobs, of_seeds)


def more_on_seeds(table: pd.DataFrame) -> Sequence[Block]:
    """The whole bfi study: how often a number was chosen, and what was said; searches from two starts."""
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
    twice = table[table["two_starts"] > 0] if "two_starts" in table else table[:0]
    found: list[Block] = [Grid("One study, many seeds", head, rows)] if rows else []
    if len(twice):
        same, steady = int((twice["two_starts"] == twice["k"]).sum()), int(twice["happened"].sum())
        found.append(
            "Searches from two starts (`thorough=True`) chose the same number of factors as those from "
            f"one in {same} of {len(twice)} questionnaires and parts; the next seed did in {steady}."
        )
    return found


SEEDS = Statement(
    "seeds",
    "The number of factors with another seed",
    "`choice_` of the default search says how often another seed, which divides the same answers into other "
    "folds, would choose the same number of factors. It happened where the next seed did. Simulated "
    "questionnaires and parts of public studies with two seeds or more, and the whole bfi study with 20.",
    cases_of_seeds,
    more_on_seeds,
)


# --- other samples ----------------------------------------------------------------------------------------


def of_samples(drawn: Any, told: Any) -> dict[str, Any]:
    """One row per sample and number of factors: what each ratio says, and whether the other chose it."""
    if isinstance(drawn, Population):
        studies = [drawn.draw(told, seed) for seed in (0, 1)]
        labels = {"source": SIMULATED, "study": f"population {drawn.seed}", "answers": drawn.answers}
    else:
        studies = list(drawn)
        labels = {"source": told, "study": behind(told), "answers": PUBLIC[told][1]}
    found = [searched(study, 0) for study in studies]
    rows = []
    for one, other in zip(found, reversed(found), strict=True):
        shares = {
            str(ratio): choice_frequencies(
                one.evidence_, one.evidence_.between_samples(ratio), one.rule, rng=np.random.default_rng(SEED)
            ).by_k()
            for ratio in RATIOS
        }
        table = pd.DataFrame(shares).fillna(0.0).sort_index()
        for k, said in table[table.max(axis=1) >= LEAST].iterrows():
            row = {"n": one.best_estimator_.n_participants_, "k": k, **said.round(6)}
            row |= {"chosen": int(k == one.n_components_), "happened": int(other.n_components_ == k)}
            rows.append({**labels, **row})
    return {"rows": rows}


def best_ratio(table: pd.DataFrame) -> str:
    """The ratio with the lowest Brier score; simulations and public studies count alike."""
    weight = weights(table)
    scores = {str(ratio): weight @ (table[str(ratio)] - table["happened"]) ** 2 for ratio in RATIOS}
    return min(scores, key=scores.__getitem__)


def cases_of_samples(design: Design) -> pd.DataFrame:
    """All cases of the statement about other samples, each said with the ratio that other studies give."""
    jobs: dict[str, tuple[Any, ...]] = {}
    for at in range(N_POPULATIONS):
        for name, population in populations(131_000 + 100 * at).items():
            jobs |= {f"{name}, {n}, {at}": (population, n) for n in SIZES}
    for name in PUBLIC:
        for size in SIZES:
            for parts in pairs_of_parts(name, size, 1, seed=SEED):
                jobs[f"{name}, {size}, 0"] = (parts, name)
    if design.quick:
        few = ("yes/no, none, 150, 0", "aggression, 150, 0")
        jobs = {name: job for name, job in jobs.items() if name in few}
    table = run_cases(design, "samples", jobs, of_samples)
    together = left_out(table)
    for each in np.unique(together):
        out = together == each
        ratio = best_ratio(table[~out] if not out.all() else table)
        table.loc[out, "ratio"] = float(ratio)
        table.loc[out, "said"] = table.loc[out, ratio]
    return table.assign(said=table["said"].where(table["said"] >= LEAST))


def more_on_samples(every: pd.DataFrame) -> Sequence[Block]:
    """All ratios; then what was said of the chosen numbers alone, by size."""
    weight, happened = weights(every), every["happened"]
    ratios = []
    for ratio in RATIOS:
        said = every[str(ratio)]
        likely = every.assign(said=said)[said >= LEAST]
        score = f"{weight @ (said - happened) ** 2:.4f}"
        ratios.append(
            [f"{ratio}{' (used)' * (str(ratio) == best_ratio(every))}", score, f"{len(off_bins(likely))}"]
        )
    chosen = every[every["chosen"] == 1]
    rows = [
        [str(n), str(len(part)), f"{part['said'].fillna(0).mean():.2f}", f"{part['happened'].mean():.2f}"]
        for n, part in chosen.groupby("n")
    ]
    head = ["participants", "samples", "said of the choice (mean)", "the other sample chose the same"]
    without = [f"{ratio:g}" for ratio in np.unique(every["ratio"])]
    return [
        Grid(
            "Variance between samples to that between participants",
            ["ratio", "Brier score", "bins off"],
            ratios,
        ),
        f"Leaving out one study at a time, the ratio with the lowest score is {listed(without)}.",
        Grid("The chosen number alone", head, rows),
    ]


SAMPLES = Statement(
    "samples",
    "The number of factors in another sample",
    "`sample_choice_` of the default search says how often other samples of the same size would choose each "
    f"number of factors. Every number said to be chosen in {LEAST:.0%} or more is a case; it happened where "
    "a second, independent sample chose it. Simulated questionnaires, and disjoint parts of public studies. "
    "Errors vary more between samples than between the participants of one, by a ratio that is learned, as "
    "the one with the lowest Brier score, without the study that is judged or the tenth of the populations.",
    cases_of_samples,
    more_on_samples,
)
