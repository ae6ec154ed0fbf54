"""How likely another study finds a factor: said by the calibrated model, and what a second sample found.

The grid, the public studies, the sizes of their parts and the candidates for the model below were committed
before any of them was run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import skew
from sklearn.utils import check_random_state

from icqf import ICQFCV
from icqf.data.questionnaire import Questionnaire
from icqf.models.icqf import ICQF
from icqf.report.blocks import Block
from icqf.resampling.bootstrap import agreement_of
from icqf.resampling.folds import units_of
from icqf.resampling.replication import FOUND, ONE_ITEM, fisher_z, stepped_up, strongest_share
from icqf.workflow.evaluation import Design
from icqf_experiments.calibration.frame import SIMULATED, Statement, run_cases
from icqf_experiments.calibration.learning import Candidate, Candidates, told_of_noise
from icqf_experiments.calibration.populations import FORMS, PUBLIC, Population, behind, pairs_of_parts
from icqf_experiments.fit_parts import found_again

Array = NDArray[Any]
SIZES = (150, 300, 600, 1200)
SEED = (
    26  # of this grid and these divisions, which were not seen before the rule and candidates were committed
)
REPEATS = 4  # populations for each form, signal and size; studies of the first one choose k themselves
CHOSEN = 1
OFFSETS = (-1, 0, 0, 2)  # fitted factors less true ones, in the others
NOISE_SIZES = (300, 1000, 3000)
NOISE_REPEATS = 4
PUBLIC_SIZES = SIZES
PUBLIC_PAIRS = 2
PUBLIC_FACTORS = (2, 3, 5, 7)
N_RESAMPLES = 10  # as many as divisions into halves
QUICK = ("five answers, strong, 150, 2", "yes/no, none, 300, 3")
OWN = 0  # stands for the number of factors that a study chooses


# --- cases ------------------------------------------------------------------------------------------------


def jobs_of(*, quick: bool = False) -> dict[str, tuple[Any, ...]]:
    """All pairs of studies: a name, and the arguments of `compared`; a few small ones to be quick."""
    if quick:
        few = {name: job for name, job in _simulations().items() if name in QUICK}
        return few | {name: (*job[:2], job[2][1:3]) for name, job in _parts(("aggression",), (150,)).items()}
    return _simulations() | _parts(PUBLIC, PUBLIC_SIZES)


def _simulations() -> dict[str, tuple[Any, ...]]:
    jobs: dict[str, tuple[Any, ...]] = {}
    for number, (form, signal, n, repeat) in enumerate(
        product(FORMS, ("weak", "middle", "strong"), SIZES, range(REPEATS))
    ):
        rng = np.random.default_rng([SEED, 1, number])
        k, items = int(rng.choice([1, 2, 4, 6])), int(rng.choice([4, 8, 12]))
        population = Population(
            signal, form, k, max(k * items, 10), float(rng.choice([0.0, 0.1])), 100_000 + number
        )
        fitted = OWN if repeat < CHOSEN else max(1, k + int(rng.choice(OFFSETS)))
        jobs[f"{form}, {signal}, {n}, {repeat}"] = (population, n, (fitted,))
    for number, (form, n, repeat) in enumerate(product(FORMS, NOISE_SIZES, range(NOISE_REPEATS))):
        rng = np.random.default_rng([SEED, 2, number])
        population = Population("none", form, 1, int(rng.choice([12, 24, 40])), 0.0, 110_000 + number)
        fitted = OWN if repeat < NOISE_REPEATS // 2 else int(rng.choice([1, 2, 3, 5]))
        jobs[f"{form}, none, {n}, {repeat}"] = (population, n, (fitted,))
    return jobs


def _parts(names: Iterable[str], sizes: Sequence[int]) -> dict[str, tuple[Any, ...]]:
    jobs: dict[str, tuple[Any, ...]] = {}
    for name, size in product(names, sizes):
        for at, parts in enumerate(pairs_of_parts(name, size, PUBLIC_PAIRS, seed=SEED)):
            ks = tuple(k for k in PUBLIC_FACTORS if 3 * k <= parts[0].n_items + 2)
            jobs[f"{name}, {size}, {at}"] = (parts, name, (OWN, *ks) if at == 0 else ks)
    return jobs


def compared(drawn: Any, told: Any, ks: Sequence[int]) -> dict[str, Any]:
    """Cases of two studies, each fitted with these numbers of factors: one row per factor of each.

    The studies are drawn from a population (`told` is their size), or are two parts (`told` is the name).
    """
    labels: dict[str, Any]
    if isinstance(drawn, Population):
        studies = [drawn.draw(told, seed) for seed in (0, 1)]
        labels = {"source": SIMULATED, "study": f"population {drawn.seed}", "answers": drawn.answers}
        labels |= {"form": drawn.form, "signal": drawn.signal, "k_true": drawn.k * (drawn.signal != "none")}
    else:
        studies, labels = list(drawn), {"source": told, "study": behind(told), "answers": PUBLIC[told][1]}
        labels |= {"form": "", "signal": "", "k_true": -1}
    rows = [row for k in ks for row in _rows(studies, k)]
    return {"rows": [{**labels, **row} for row in rows]}


def _rows(studies: Sequence[Questionnaire], k: int) -> list[dict[str, Any]]:
    own = [_chosen(study) for study in studies] if k == OWN else [k, k]
    fits: dict[tuple[int, int], Array] = {}

    def loadings(which: int, number: int) -> Array:
        if (which, number) not in fits:
            model = ICQF(number, random_state=0).fit(studies[which])
            problem = model.state(studies[which]).problem
            fits[which, number] = problem.scaled_loadings(model.components_)
        return fits[which, number]

    rows = []
    for a, b in ((0, 1), (1, 0)):
        mine = loadings(a, own[a])
        again = found_again(mine, loadings(b, own[a])) >= FOUND
        by_own = found_again(mine, loadings(b, own[b])) >= FOUND
        measured = _measured(studies[a], mine)
        for r in range(own[a]):
            row = {name: float(np.round(values[r], 6)) for name, values in measured.items()}
            row |= {"which": a, "factor": r, "k": own[a], "chosen": int(k == OWN)}
            row |= {"happened": int(again[r]), "with_own_k": int(by_own[r]) if k == OWN else -1}
            rows.append(row)
    return rows


def _chosen(study: Questionnaire) -> int:
    """The number of factors by cross-validation at the default penalty."""
    most = min(8, study.n_items // 3 + 1)
    search = ICQFCV(ICQF(), n_components=range(1, most + 1), betas=[0.1], n_splits=5, random_state=0)
    return int(search.fit(study).n_components_)


def _measured(study: Questionnaire, loadings: Array) -> dict[str, Array]:
    """What may predict whether a factor is found again, (k,) each."""
    stated, k = ICQF(1).state(study), len(loadings)
    problem, beta = stated.problem, float(ICQF(1).beta)
    rng = np.random.default_rng(check_random_state(0).randint(2**31 - 1))
    groups = units_of(problem, None, stated.kept)
    model = (beta, loadings)
    ((between, resampled),) = agreement_of(problem, [model], n_resamples=N_RESAMPLES, groups=groups, rng=rng)
    answers = study.keyed_answers().to_numpy(dtype=float)
    weight = loadings / np.maximum(loadings.sum(axis=1, keepdims=True), 1e-12)
    two = np.array([len(np.unique(column[~np.isnan(column)])) <= 2 for column in answers.T], dtype=float)
    skewness = np.abs(np.nan_to_num(skew(answers, axis=0, nan_policy="omit")))
    return {
        "n": np.full(k, study.n_participants),
        "m": np.full(k, study.n_items),
        "largest": strongest_share(loadings),
        "resampled": np.mean(resampled, axis=0),
        "halves": np.mean(between, axis=0),
        "often": np.mean(stepped_up(between) >= FOUND, axis=0),
        "yes_no": weight @ two,
        "ends": weight @ at_ends(answers, [(item.min, item.max) for item in study.items]),
        "skewness": weight @ skewness,
    }


def at_ends(answers: Array, ranges: Sequence[tuple[Any, Any]]) -> Array:
    """How far each item's answers lie at the ends of its range: 1 for yes and no, less for graded answers.

    It is the variance as a share of the largest one that answers with this mean can have.
    """
    low, high = np.array(ranges, dtype=float).T
    scaled = (answers - low) / (high - low)
    mean, variance = np.nanmean(scaled, axis=0), np.nanvar(scaled, axis=0)
    return np.asarray(variance / np.maximum(mean * (1 - mean), 1e-12))


# --- the model --------------------------------------------------------------------------------------------


def _halves(table: pd.DataFrame) -> Array:
    return fisher_z(stepped_up(table["halves"]))


CANDIDATES = Candidates(
    {
        "resamples": lambda table: fisher_z(table["resampled"]),
        "halves": _halves,
        # The log odds that halves agree as studies must to count as found; half a division is added.
        "often": lambda table: np.log((table["often"] + 0.05) / (1.05 - table["often"])),
        # How many standard errors of a correlation over the items halves lie above what counts as found.
        "margin": lambda table: (_halves(table) - fisher_z(FOUND)) * np.sqrt(table["m"] - 3),
        "participants": lambda table: np.log(table["n"] / 300),
        "items": lambda table: np.log(table["m"] / 30),
        "factors": lambda table: np.log(table["k"]),
        "yes/no": lambda table: table["yes_no"],
        "ends": lambda table: table["ends"],
        "skewness": lambda table: table["skewness"],
    },
    {
        "resamples alone": Candidate(("resamples",), open=False),
        "resamples and halves": Candidate(("resamples", "halves"), open=False),
        "halves alone": Candidate(("halves",)),
        "how often halves agree": Candidate(("often",)),
        "halves, and how often they agree": Candidate(("halves", "often")),
        "halves and the margin": Candidate(("halves", "margin")),
        "halves and participants": Candidate(("halves", "participants")),
        "halves and sizes": Candidate(("halves", "participants", "items", "factors")),
        "halves and kinds of items": Candidate(("halves", "yes/no", "skewness")),
        "halves, sizes and answers at the ends": Candidate(
            ("halves", "participants", "items", "factors", "ends")
        ),
        "everything": Candidate(
            ("resamples", "halves", "often", "margin", "participants", "items", "factors", "yes/no", "ends",
             "skewness"),
            open=False,
        ),
    },
)  # fmt: skip


USED = "halves alone"  # by icqf; what the rule takes is on the page


def cases(design: Design) -> pd.DataFrame:
    """All cases, with what the model in use says in studies that it was not learned from."""
    table = run_cases(design, "replication", jobs_of(quick=design.quick), compared)
    table.insert(0, "said", np.nan)
    shared = table["largest"] <= ONE_ITEM
    mine = table[shared]
    table.loc[shared, "said"] = np.round(CANDIDATES.predicted(mine, USED), 6)
    return table


# --- the page ---------------------------------------------------------------------------------------------


def more(table: pd.DataFrame) -> Sequence[Block]:
    """All candidates, the coefficients, noise, and what happens when the second study chooses its own k."""
    said = table.dropna(subset="said")
    told, studies = told_of_noise(said)
    return [
        *CANDIDATES.blocks(said, USED),
        f"{len(table) - len(said)} further factors are carried by one item (more than {ONE_ITEM:.0%} of the "
        "squared loadings). Such a factor is that item: nothing is said of it; it is not among the cases.",
        f"Independent items (300 to 3 000 participants): {told} of {studies} studies are told of a factor "
        "that another study finds with a probability above one half."
        if studies
        else "",
        own_words(said),
    ]


def own_words(table: pd.DataFrame) -> str:
    """What is found when the second study chooses its own number of factors."""
    mine = table[table["chosen"] == 1]
    if mine.empty:
        return ""
    return (
        f"Where studies choose k by cross-validation ({len(mine)} cases), {mine['said'].mean():.2f} is said; "
        f"{mine['happened'].mean():.2f} is found by a second study fitted with as many factors, and "
        f"{mine['with_own_k'].mean():.2f} by one that chooses its own number."
    )


REPLICATION = Statement(
    "replication",
    "Replication probability of a factor",
    f"""Said: how likely another study like this one, fitted with as many factors, finds the factor. Happened:
    an independent sample of the same size, fitted with as many factors, has a factor whose loadings
    correlate with it by {FOUND} or more after the factors were paired. Simulated populations have weak,
    middle and strong signals (loadings of 0.35, 0.5 and 0.7) or none, four kinds of answers, 150 to 3 000
    participants, 10 to 72 items, and are fitted with the number of factors that cross-validation chooses,
    or with one less, as many, or two more than there are. Public studies are cut into disjoint parts of 150
    to 1 200 participants. The model that says it was learned without the study, or the tenth of the
    populations, that it is judged on.""",
    cases,
    more,
)
