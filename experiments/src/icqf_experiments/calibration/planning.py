"""Planning: how likely studies of a size find a factor, said from a pilot, and what such studies find."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.analyses.planning import (
    BELOW,
    BEYOND,
    Population,
    Populations,
    simulated_agreement,
    subsampled_agreement,
)
from icqf.data.questionnaire import Questionnaire
from icqf.models.consensus import replication_probability
from icqf.models.icqf import ICQF
from icqf.report.blocks import Block, Grid
from icqf.resampling.bootstrap import best_fits
from icqf.resampling.matching import aligned
from icqf.resampling.replication import COEFFICIENTS, FOUND, ONE_ITEM, fisher_z, stepped_up, strongest_share
from icqf.workflow.evaluation import Design
from icqf_experiments.calibration.frame import SIMULATED, Statement, run_cases
from icqf_experiments.calibration.learning import Candidate, Candidates, best_candidate
from icqf_experiments.calibration.populations import FORMS, PUBLIC, behind, public_study
from icqf_experiments.calibration.populations import Population as Drawn
from icqf_experiments.calibration.replication import CANDIDATES as LIKELY
from icqf_experiments.calibration.replication import REPLICATION
from icqf_experiments.fit_parts import found_again

Array = NDArray[Any]
SEED = 27  # of divisions of public studies; the rule and the candidates were committed before they were seen
PILOTS = (200, 400)
SIZES = (50, 100, 200, 400, 800)
FACTORS = (3, 5)  # of public studies; of shorter ones 2
N_PAIRS = 20  # of subsamples or simulated studies of each size, the default of icqf plan
N_SIMULATED = 6
N_FOUND = 2  # pairs of other studies of each size
SIGNALS = ("weak", "middle", "strong")
TRUE_FACTORS = {4: 32, 3: 18}  # of simulated populations, with as many items
QUICK = ("five answers, strong, 200, 4, 0",)


def _agreement(table: pd.DataFrame) -> Array:
    return fisher_z(table["agreement"])


FROM_ANSWERS = Candidates(
    {
        "share": lambda table: table["counted"],
        "agreement": _agreement,
        "beyond half": lambda table: np.log(np.maximum(2 * table["size"] / table["pilot"], 1)),
        "size": lambda table: np.log(table["size"] / 200),
    },
    {
        "the share of pairs, as counted": Candidate(offset="counted"),
        "the share, learned": Candidate(("share",)),
        "the share, and steps beyond half": Candidate(("share", "beyond half")),
        "mean agreement": Candidate(("agreement",)),
        "mean agreement, and steps beyond half": Candidate(("agreement", "beyond half")),
        "mean agreement, and the size": Candidate(("agreement", "size")),
    },
)
FROM_MODEL = Candidates(
    {"agreement": _agreement, "size": lambda table: np.log(table["size"] / table["pilot"])},
    {
        "the curve of the replication probability": Candidate(offset="curve"),
        "this curve, and the size": Candidate(("size",), offset="curve"),
        "a curve of its own": Candidate(("agreement",)),
        "a curve of its own, and the size": Candidate(("agreement", "size")),
    },
)


def jobs_of(*, quick: bool = False) -> dict[str, tuple[Any, ...]]:
    """All pilots: a name, and the arguments of `planned` but the last."""
    jobs: dict[str, tuple[Any, ...]] = {}
    for number, (form, signal, n, k) in enumerate(product(FORMS, SIGNALS, PILOTS, TRUE_FACTORS)):
        population = Drawn(signal, form, k, TRUE_FACTORS[k], 0.1, 120_000 + number)
        jobs[f"{form}, {signal}, {n}, {k}, 0"] = (population, n, k, 0)
    if quick:
        return {name: jobs[name] for name in QUICK}
    for name, n in product(PUBLIC, PILOTS):
        study = public_study(name)
        if study.n_participants < n + 2 * SIZES[0]:
            continue
        ks = [k for k in FACTORS if 3 * k <= study.n_items + 2] or [2]
        jobs |= {f"{name}, {n}, {k}, {at}": (name, n, k, at) for at, k in enumerate(ks)}
    return jobs


def planned(drawn: Any, n: int, k: int, at: int, work: str, sizes: Sequence[int]) -> dict[str, Any]:
    """Cases of one pilot of n participants: what is said about each factor and size, and what others find."""
    if isinstance(drawn, Drawn):
        pilot = drawn.draw(n, 0)
        labels = {"source": SIMULATED, "study": f"population {drawn.seed}", "answers": drawn.answers}
    else:
        study = public_study(drawn)
        pilot = study.take(np.sort(_order(study, n, at)[:n]))
        labels = {"source": drawn, "study": behind(drawn), "answers": PUBLIC[drawn][1]}
    model = ICQF(k, smallest_category=1, random_state=0).fit(pilot)
    said = (_from_answers if work == "answers" else _from_model)(model, pilot, sizes)
    rows = []
    for size, number in product(sizes, range(N_FOUND)):
        if size not in said:
            continue
        pair = _other_studies(drawn, n, at, size, number)
        if pair is None:
            continue
        again = _again(model, *pair)
        for r in range(k):
            about = {"pilot": n, "at": at, "k": k, "size": size, "factor": r}
            values = {name: round(float(share[r]), 6) for name, share in said[size].items()}
            rows.append({**labels, **about, **values, "happened": int(again[r] >= FOUND)})
    return {"rows": rows}


def _order(study: Questionnaire, n: int, at: int) -> Array:
    """An order of a public study's participants: the pilot, then all others."""
    return np.random.default_rng([SEED, n, at]).permutation(study.n_participants)


def _from_answers(model: ICQF, pilot: Questionnaire, sizes: Sequence[int]) -> dict[int, dict[str, Array]]:
    """By size: how well pairs of subsamples agree, stepped up beyond half of the pilot."""
    half = pilot.n_participants // 2
    sizes = [size for size in sizes if size <= BEYOND * pilot.n_participants]
    below = sorted({min(size, half) for size in sizes})
    agreement = subsampled_agreement(model, pilot, sizes=below, n_repeats=N_PAIRS)
    said = {}
    for size in sizes:
        grown = stepped_up(agreement[min(size, half)], max(size / half, 1))
        found = (grown >= FOUND).sum(axis=0)
        counted = np.log((found + 0.5) / (N_PAIRS - found + 0.5))
        said[size] = {"share": found / N_PAIRS, "counted": counted, "agreement": grown.mean(axis=0)}
    return said


def _from_model(model: ICQF, pilot: Questionnaire, sizes: Sequence[int]) -> dict[int, dict[str, Array]]:
    """By size: what the model's halves say, and what is said where studies are simulated from it."""
    table = replication_probability(model, pilot, random_state=0)
    n = pilot.n_participants
    sizes = [size for size in sizes if n <= BELOW * size and size <= BEYOND * n]
    said = {
        size: {
            "agreement": stepped_up(stepped_up(table["halves"], size / pilot.n_participants)),
            "largest": table["largest"].to_numpy(),
        }
        for size in sizes
    }
    if pilot.n_participants > PILOTS[0]:
        return said  # simulations of the smaller pilots show what there is to see
    corrected = Populations.behind(model, np.random.default_rng(0))
    certain = Populations(Population.of(model), np.zeros_like(corrected.errors))
    simulated = simulated_agreement(model, corrected, sizes=sizes, n_repeats=N_SIMULATED)
    as_fitted = simulated_agreement(model, certain, sizes=sizes, n_repeats=N_SIMULATED // 2)
    for size in sizes:
        said[size]["simulated"] = (simulated[size] >= FOUND).mean(axis=0)
        said[size]["as fitted"] = (as_fitted[size] >= FOUND).mean(axis=0)
    return said


def _other_studies(
    drawn: Any, n: int, at: int, size: int, number: int
) -> tuple[Questionnaire, Questionnaire] | None:
    """Two studies of a size, of participants who are not in the pilot; None where there are too few."""
    if isinstance(drawn, Drawn):
        return drawn.draw(size, 10 + 2 * number), drawn.draw(size, 11 + 2 * number)
    study = public_study(drawn)
    others = _order(study, n, at)[n:]
    if 2 * size > len(others):
        return None
    order = np.random.default_rng([SEED, n, at, size, number]).permutation(others)
    return study.take(np.sort(order[:size])), study.take(np.sort(order[size : 2 * size]))


def _again(model: ICQF, one: Questionnaire, other: Questionnaire) -> Array:
    """Agreement of the counterparts (k,) of the model's factors in two studies."""
    k, found = len(model.components_), []
    for study in (one, other):
        problem = ICQF(k, smallest_category=1).state(study).problem
        found.append((problem, best_fits(problem, [(k, float(model.beta))])[0][:k]))
    (problem, a), (_, b) = found
    order, _ = aligned(problem.scaled_loadings(model.components_), a)
    again = found_again(a[order], b)
    return np.where(strongest_share(a[order]) > ONE_ITEM, 0.0, again)


def cases(work: str, design: Design) -> pd.DataFrame:
    """All cases of plans from answers, or from models alone."""
    sizes = SIZES[:2] if design.quick else SIZES
    jobs = {name: (*job, work, sizes) for name, job in jobs_of(quick=design.quick).items()}
    table = run_cases(design, f"planning-{work}", jobs, planned)
    if work == "answers":
        return table.assign(said=_said(FROM_ANSWERS, table))
    table.insert(0, "curve", curve_of_others(table, design.out / REPLICATION.file()))
    shared = table["largest"] <= ONE_ITEM
    table.loc[shared, "said"] = _said(FROM_MODEL, table[shared])
    return table


def _said(candidates: Candidates, table: pd.DataFrame) -> Array:
    chosen = best_candidate(candidates.compared(table))
    return np.round(candidates.predicted(table, chosen), 6)


def curve_of_others(table: pd.DataFrame, known: Path) -> Array:
    """Log odds by the curve of the replication probability, learned without the case's study.

    Where the cases that it is learned from are not `known`, it is the package's own curve.
    """
    z = _agreement(table)
    if not known.is_file():
        return np.round(COEFFICIENTS["intercept"] + COEFFICIENTS["halves"] * z, 6)
    others = pd.read_csv(known).dropna(subset="said")
    found = np.zeros(len(table))
    for study in table["study"].unique():
        intercept, slope = LIKELY.learned(others[others["study"] != study], "halves alone")
        own = (table["study"] == study).to_numpy()
        found[own] = intercept + slope * z[own]
    return np.round(found, 6)


def more(candidates: Candidates, names: Sequence[str], every: pd.DataFrame) -> Iterator[Block]:
    """Said and found by size; all candidates; then other ways that were tried."""
    table, rows = every.dropna(subset="said"), []
    for (source, answers), part in table.groupby(["source", "answers"], sort=False):
        row = [str(source), str(answers)]
        for size in SIZES:
            mine = part[part["size"] == size]
            row.append(f"{mine['said'].mean():.2f} / {mine['happened'].mean():.2f}" if len(mine) else "–")
        rows.append(row)
    yield Grid(
        "Share of factors, said / found, by participants", ["study", "answers", *map(str, SIZES)], rows
    )
    yield from candidates.blocks(table)
    if len(every) > len(table):
        yield (
            f"{len(every) - len(table)} further cases are of factors that one item carries in the pilot: "
            "nothing is said about them."
        )
    lines = []
    for label, part in (
        ("up to half of the pilot", table[table["size"] <= table["pilot"] / 2]),
        ("beyond half of the pilot", table[table["size"] > table["pilot"] / 2]),
    ):
        for name in names:
            mine = part.dropna(subset=[name])
            if mine.empty:
                continue
            shares = mine.groupby(["source", "pilot", "at", "k", "size"])
            off = shares[name].mean() - shares["happened"].mean()
            brier = float(((mine[name] - mine["happened"]) ** 2).mean())
            lines.append([label, name, f"{off.mean():+.3f}", f"{off.abs().mean():.3f}", f"{brier:.3f}"])
    head = ["sizes", "how", "said less found", "mean distance of shares", "Brier score"]
    yield Grid("By size, and without learning", head, lines)


_FOUND = f"""Happened: of two independent studies of that size, both fitted with as many factors, the
    first one's counterpart of the factor agrees with one of the second by {FOUND} or more. Pilots have
    {PILOTS[0]} and {PILOTS[1]} participants; none of them is in the studies that judge. Public studies are
    fitted with {FACTORS[0]} and {FACTORS[1]} factors, populations of 3 and 4 factors with as many."""

ANSWERS = Statement(
    "planning-answers",
    "Planning from the answers of a pilot",
    f"""Said: how likely studies of 50 to 800 participants find a factor of the pilot, by icqf plan with the
    pilot's answers: from disjoint subsamples up to half of the pilot, stepped up from its halves beyond,
    and up to {BEYOND} times the pilot. One pilot is one sample, so that shares of its subsamples are learned
    to mean what other studies find, without the study they are judged on. {_FOUND}""",
    partial(cases, "answers"),
    lambda table: list(more(FROM_ANSWERS, ["said", "share"], table)),
)
MODEL = Statement(
    "planning-model",
    "Planning from a model alone",
    f"""Said: the same, by icqf plan with the pilot's model file, which holds no answers:
    by the agreement of halves that the model remembers, stepped to the size (Spearman–Brown); what is said
    was learned without the study it is judged on. Sizes below a quarter of the pilot are left out since a
    first run, in which they were said too high. {_FOUND}""",
    partial(cases, "model"),
    lambda table: list(more(FROM_MODEL, ["said", "simulated", "as fitted"], table)),
)
