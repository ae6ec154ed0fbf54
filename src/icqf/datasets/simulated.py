"""Simulated studies: the embedded demo, one questionnaire, a battery, visits over age, and two cohorts."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.data.battery import Battery
from icqf.data.questionnaire import Item, Questionnaire
from icqf.errors import InputError, did_you_mean, listed
from icqf.io.codebook import read_codebook
from icqf.io.readers.questionnaires import read_questionnaire

Array = NDArray[Any]


class DemoPaths(NamedTuple):
    """Paths of the demo's two files, which `python benchmarks/_demo.py` made."""

    answers: Path
    codebook: Path


def demo_paths() -> DemoPaths:
    """Return the paths of the embedded answers and codebook.

    Examples
    --------
    >>> from icqf.datasets import demo_paths
    >>> demo_paths().answers.name
    'demo_answers.csv'
    """
    folder = Path(__file__).parent / "data"
    return DemoPaths(folder / "demo_answers.csv", folder / "demo_codebook.csv")


def load_demo() -> Questionnaire:
    """Load the demo: 600 simulated children, 119 items (0-2) in eight syndromes, age, sex and family.

    Examples
    --------
    >>> from icqf.datasets import load_demo
    >>> demo = load_demo()
    >>> demo.answers.shape, sum(item.reverse for item in demo.items)
    ((600, 119), 2)
    """
    answers, codebook = demo_paths()
    return read_questionnaire(
        answers, codebook=codebook, id="child_id", confounds=("age", "sex"), groups="family"
    )


@cache
def demo_items() -> tuple[Item, ...]:
    """Return the demo's items, the syndromes in turn."""
    return tuple(read_codebook(demo_paths().codebook))


HIGHEST = 100.0


@dataclass(frozen=True, eq=False)
class Synthetic:
    """Synthetic answers, and the truth behind them.

    Attributes
    ----------
    answers : array (n, m)
        Noisy answers between 0 and 100; NaN where missing.
    scores : array (n, k)
        True scores.
    loadings : array (m, k)
        True loadings.
    clean : array (n, m)
        Answers before noise.
    confounds : array (n, 2) or None
        Age (6 to 18) and sex (0 or 1), if `confounded`.
    """

    answers: Array
    scores: Array
    loadings: Array
    clean: Array
    confounds: Array | None = None


def make_synthetic(
    n: int = 200,
    m: int = 100,
    k: int = 10,
    *,
    noise: float = 0.3,
    missing: float = 0.0,
    confounded: bool = False,
    random_state: int = 0,
) -> Synthetic:
    """Make the paper's synthetic questionnaire.

    Each factor is present alone in n/(2k) participants, and in as many together with the one before and with
    the one after (the first has none before it, the last none after it); its scores are U(0.5, 1), and one in
    ten is set to 0. Loadings are U(0, 100), and seven in ten are set to 0.
    A share `noise` of the answers is shifted by U(−100, 100), and everything is clipped to 0…100.

    Parameters
    ----------
    n, m, k : int
        Participants, items and factors.
    noise : float
        Share of answers with noise (the paper's δ).
    missing : float
        Share of answers to remove at random.
    confounded : bool
        Whether a third of the items also increase by up to 20 with age, and a third by up to 20 with sex.

    Examples
    --------
    >>> from icqf.datasets import make_synthetic
    >>> data = make_synthetic(noise=0.1, random_state=0)
    >>> data.answers.shape, data.scores.shape, data.loadings.shape
    ((200, 100), (200, 10), (100, 10))
    """
    rng = np.random.default_rng(random_state)
    present = np.zeros((n, k), dtype=bool)
    edges = np.linspace(0, n, k + 1)
    for r in range(k):
        end = edges[r + 1] + (edges[r + 1] - edges[r]) / 2
        present[round(edges[r]) : round(min(end, n)), r] = True
    scores = present * rng.uniform(0.5, 1.0, (n, k)) * (rng.random((n, k)) < 0.9)
    loadings = rng.uniform(0.0, HIGHEST, (m, k)) * (rng.random((m, k)) < 0.3)
    clean = scores @ loadings.T
    moved = rng.random((n, m)) < noise
    shift = rng.uniform(-HIGHEST, HIGHEST, (n, m))
    confounds = None
    if confounded:
        confounds = np.column_stack([rng.uniform(6, 18, n), rng.integers(0, 2, n)])
        by_age = rng.uniform(0, 20, m) * (rng.random(m) < 1 / 3)
        by_sex = rng.uniform(0, 20, m) * (rng.random(m) < 1 / 3)
        clean = clean + np.outer((confounds[:, 0] - 6) / 12, by_age) + np.outer(confounds[:, 1], by_sex)
    clean = np.clip(clean, 0.0, HIGHEST)
    answers = np.clip(clean + moved * shift, 0.0, HIGHEST)
    if missing:
        answers[rng.random((n, m)) < missing] = np.nan
    return Synthetic(answers, scores, loadings, clean, confounds)


@dataclass(frozen=True, eq=False)
class SimulatedBattery:
    """A simulated battery, and the truth behind it.

    Attributes
    ----------
    battery : Battery
        Answers as they would be collected: whole numbers, and whole instruments missing.
    meta_scores : DataFrame (n, K)
        Scores of the participants on the meta-factors.
    factor_loadings : DataFrame (factors, K)
        Loadings of the instruments' factors on the meta-factors; rows are (instrument, factor).
    item_loadings : DataFrame (items, K)
        Loadings of the items on the meta-factors, through the factors; rows are (instrument, item).
    """

    battery: Battery
    meta_scores: pd.DataFrame
    factor_loadings: pd.DataFrame
    item_loadings: pd.DataFrame


def make_battery(
    n: int = 400,
    *,
    n_items: Sequence[int] = (12, 12, 12, 12, 12, 12),
    n_factors: int = 3,
    n_meta: int = 3,
    absent: float = 0.4,
    own: float = 0.3,
    shared: float = 1.0,
    noise: float = 0.15,
    highest: Sequence[int] = (2, 3, 4, 1),
    random_state: int = 0,
) -> SimulatedBattery:
    """Simulate a battery with known meta-factors, in which many participants lack whole instruments.

    Every meta-factor is present in half of the participants, with scores U(0.2, 1). Every factor of an
    instrument loads on one meta-factor (U(0.6, 0.9)) and, with probability 1/5, on a second one
    (U(0.2, 0.4)); part of its scores is specific. Every item loads on one factor of its instrument
    (U(0.5, 1) of its range) and, with probability 1/5, on another. Answers are rounded to whole numbers after
    normal noise.

    Parameters
    ----------
    n : int
        Participants.
    n_items : sequence of int
        Items of each instrument.
    n_factors, n_meta : int
        Factors of each instrument, and meta-factors behind all of them.
    absent : float
        Share of participants who lack an instrument, drawn for each instrument separately. Everybody has at
        least one.
    own : float
        Largest part of a factor's score that no meta-factor explains.
    shared : float
        Share of participants whose meta-factors' scores are behind an instrument, drawn for each instrument
        separately; behind those of the others are scores of its own. At 0 the instruments are unrelated.
    noise : float
        Standard deviation of the noise, as a share of the item's range.
    highest : sequence of int
        Highest answers of the instruments, in turn; the lowest is 0.

    Examples
    --------
    >>> from icqf.datasets import make_battery
    >>> made = make_battery(n=100, n_items=(8, 9), n_factors=2, n_meta=2, random_state=0)
    >>> [(name, each.n_items) for name, each in made.battery.instruments.items()]
    [('A', 8), ('B', 9)]
    """
    if not 0 <= absent < 1:
        raise InputError(f"absent must be a share from 0 to below 1, not {absent!r}.")
    if not 0 <= shared <= 1:
        raise InputError(f"shared must be a share from 0 to 1, not {shared!r}.")
    if not 1 <= len(n_items) <= 26:
        raise InputError(f"n_items must list the items of 1 to 26 instruments, not of {len(n_items)}.")
    rng = np.random.default_rng(random_state)
    names = [chr(ord("A") + at) for at in range(len(n_items))]
    metas = [f"meta{r}" for r in range(1, n_meta + 1)]
    ids = pd.Index([f"P{i:05d}" for i in range(1, n + 1)], name="id")
    U = rng.uniform(0.2, 1.0, (n, n_meta)) * (rng.random((n, n_meta)) < 0.5)
    given = rng.random((n, len(names))) >= absent
    given[np.flatnonzero(~given.any(axis=1)), rng.integers(0, len(names), (~given.any(axis=1)).sum())] = True
    instruments, factor_tables, item_tables = {}, [], []
    for at, (name, m) in enumerate(zip(names, n_items, strict=True)):
        V = _loadings(rng, n_factors, n_meta, (0.6, 0.9), offset=at * n_factors)
        behind = U
        if shared < 1:
            other = rng.uniform(0.2, 1.0, (n, n_meta)) * (rng.random((n, n_meta)) < 0.5)
            behind = np.where(rng.random((n, 1)) < shared, U, other)
        specific = own * rng.random((n, n_factors)) * (rng.random((n, n_factors)) < 0.5)
        W = np.clip(behind @ V.T + specific, 0, 1)
        top = highest[at % len(highest)]
        Q = top * _loadings(rng, m, n_factors, (0.5, 1.0))
        answers = np.clip(np.rint(W @ Q.T + noise * top * rng.standard_normal((n, m))), 0, top)
        items = tuple(Item(f"{name.lower()}{j:02d}", min=0.0, max=float(top)) for j in range(1, m + 1))
        table = pd.DataFrame(answers, index=ids, columns=[item.name for item in items])[given[:, at]]
        instruments[name] = Questionnaire(table, items, source=name)
        factors = [f"factor{r}" for r in range(1, n_factors + 1)]
        factor_tables.append(pd.DataFrame(V, index=_index(name, "factor", factors), columns=metas))
        item_tables.append(
            pd.DataFrame(Q @ V, index=_index(name, "item", list(table.columns)), columns=metas)
        )
    return SimulatedBattery(
        Battery(instruments),
        pd.DataFrame(U, index=ids, columns=metas),
        pd.concat(factor_tables),
        pd.concat(item_tables),
    )


def _loadings(
    rng: np.random.Generator, rows: int, columns: int, main: tuple[float, float], *, offset: int = 0
) -> np.ndarray:
    """Loadings (rows, columns): each row on one column in turn, and one row in five also on another."""
    loadings = np.zeros((rows, columns))
    own = (np.arange(rows) + offset) % columns
    loadings[np.arange(rows), own] = rng.uniform(*main, rows)
    crossing = np.flatnonzero(rng.random(rows) < 0.2) if columns > 1 else np.empty(0, dtype=int)
    other = (own[crossing] + rng.integers(1, max(columns, 2), len(crossing))) % columns
    loadings[crossing, other] = rng.uniform(0.2, 0.4, len(crossing))
    return loadings


def _index(instrument: str, kind: str, names: Sequence[str]) -> pd.MultiIndex:
    return pd.MultiIndex.from_product([[instrument], list(names)], names=["instrument", kind])


TOP = 4  # highest answer of simulated visits


@dataclass(frozen=True, eq=False)
class Longitudinal:
    """Simulated visits, and the truth behind them.

    Attributes
    ----------
    visits : DataFrame
        Columns ``participant``, ``age`` (0, 1, …) and the items, answered 0 to 4; one row per visit.
    scores : array (n, k)
    loadings : array (items, k, bins)
        True loadings at each age.
    changing : bool array (items, k)
        Which of them change.
    """

    visits: pd.DataFrame
    scores: Array
    loadings: Array
    changing: Array


def make_longitudinal(
    n: int = 400,
    n_items: int = 24,
    n_bins: int = 6,
    k: int = 3,
    *,
    seen: float = 0.5,
    drift: float = 0.5,
    noise: float = 0.7,
    unanswered: float = 0.0,
    random_state: int = 0,
) -> Longitudinal:
    """Simulate visits of participants with constant scores, and loadings that change with age.

    A score is 0 for four in ten and U(0, 1) for the others. An item belongs to one factor and, with
    probability 1/5, to a second one; its loading is U(1.6, 4). The loadings of a share `drift` of the items
    change linearly with age to newly drawn ones (on the same or another factor). Answers are rounded to 0…4
    after normal noise.

    Parameters
    ----------
    n, n_items, n_bins, k : int
        Participants, items, ages and factors.
    seen : float
        Share of visits that take place; everybody has at least one.
    drift : float
        Share of items that change.
    noise : float
        Standard deviation of the noise.
    unanswered : float
        Share of missing answers at a visit.

    Examples
    --------
    >>> from icqf.datasets import make_longitudinal
    >>> make_longitudinal(n=50, n_items=6, n_bins=4, k=2, random_state=0).visits.columns[:3].tolist()
    ['participant', 'age', 'q1']
    """
    rng = np.random.default_rng(random_state)
    scores = rng.random((n, k)) * (rng.random((n, k)) < 0.6)
    early, late = _drawn_loadings(n_items, k, rng), _drawn_loadings(n_items, k, rng)
    moves = rng.permutation(n_items) < round(drift * n_items)
    late = np.where(moves[:, None], late, early)
    share = np.linspace(0, 1, n_bins)
    loadings = early[:, :, None] * (1 - share) + late[:, :, None] * share
    came = rng.random((n, n_bins)) < seen
    came[~came.any(axis=1), 0] = True
    who, when = np.nonzero(came)
    clean = np.einsum("vk,vkj->vj", scores[who], loadings.transpose(2, 1, 0)[when])
    answers = np.clip(np.rint(clean + rng.normal(0, noise, clean.shape)), 0, TOP) + 0.0  # no -0
    answers[rng.random(answers.shape) < unanswered] = np.nan
    width = len(str(n_items))
    table = pd.DataFrame(answers, columns=[f"q{j + 1:0{width}d}" for j in range(n_items)])
    table.insert(0, "participant", [f"P{i + 1:04d}" for i in who])
    table.insert(1, "age", when)
    return Longitudinal(table, scores, loadings, early != late)


def _drawn_loadings(n_items: int, k: int, rng: np.random.Generator) -> Array:
    belongs = np.arange(n_items)[:, None] % k == np.arange(k)
    belongs |= rng.random((n_items, k)) < 0.2 if k > 1 else False
    belongs = belongs[rng.permutation(n_items)]
    return rng.uniform(1.6, TOP, (n_items, k)) * belongs


# Two simulated studies of one questionnaire: a care-seeking and a community sample with known factors.
#
# The questionnaire (loadings, base levels, age and sex effects, item noise) is drawn once, with its own seed,
# and is the same in both studies and for every ``random_state``; only the participants differ. Every number
# is explained in ``docs/simulated-cohorts.md``. The numbers were chosen by marginals (means, zeros, gaps,
# prevalences), never by results of a factorization.

SYNDROMES = {
    "Worry": "Anxious/Depressed",
    "Low mood": "Withdrawn/Depressed",
    "Body complaints": "Somatic Complaints",
    "Peer difficulties": "Social Problems",
    "Unusual thoughts": "Thought Problems",
    "Inattention": "Attention Problems",
    "Rule breaking": "Rule-Breaking Behavior",
    "Temper": "Aggressive Behavior",
}
FACTORS = tuple(SYNDROMES.values())
NEIGHBOURS = {
    "Anxious/Depressed": ("Withdrawn/Depressed", "Somatic Complaints", "Thought Problems"),
    "Withdrawn/Depressed": ("Anxious/Depressed", "Social Problems"),
    "Somatic Complaints": ("Anxious/Depressed", "Withdrawn/Depressed"),
    "Social Problems": ("Withdrawn/Depressed", "Attention Problems", "Thought Problems"),
    "Thought Problems": ("Anxious/Depressed", "Social Problems", "Attention Problems"),
    "Attention Problems": ("Aggressive Behavior", "Social Problems"),
    "Rule-Breaking Behavior": ("Aggressive Behavior", "Attention Problems"),
    "Aggressive Behavior": ("Rule-Breaking Behavior", "Attention Problems"),
}
EFFECTS = {
    "old": ("Withdrawn/Depressed", "Rule-Breaking Behavior"),
    "young": ("Attention Problems", "Aggressive Behavior"),
    "male": ("Attention Problems", "Rule-Breaking Behavior"),
    "female": ("Anxious/Depressed", "Somatic Complaints"),
}
REWORDED = {
    "Makes friends easily": "Finds it hard to make friends",
    "Stays with a task until it is done": "Stops before a task is done",
}
NOT_FOR_THE_YOUNG = (
    "Smokes or vapes",
    "Drinks alcohol",
    "Skips lessons",
    "Stays out late without asking",
    "Leaves home without telling",
    "Spends time with children in trouble",
)
NOT_FOR_THE_OLD = (
    "Needs a light on to fall asleep",
    "Clings when it is time to part",
    "Plays with much younger children",
    "Is not invited to birthdays",
    "Waits to be asked to play",
    "Is scared of being alone in a room",
)

# Liability weights in the order of FACTORS, and the share of the liability's variance due to the factors.
LIABILITIES = {
    "depression": ((0.5, 1.0, 0.3, 0.0, 0.0, 0.0, 0.0, 0.0), 0.40),
    "generalized_anxiety": ((1.0, 0.0, 0.4, 0.0, 0.0, 0.0, 0.0, 0.0), 0.40),
    "adhd": ((0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.3), 0.45),
    "suspected_autism": ((0.0, 0.3, 0.0, 1.0, 0.6, 0.0, 0.0, 0.0), 0.40),
    "panic_agoraphobia_separation_social": ((0.8, 0.3, 0.4, 0.3, 0.0, 0.0, 0.0, 0.0), 0.35),
    "bipolar": ((0.0, 0.4, 0.0, 0.0, 0.5, 0.0, 0.0, 0.7), 0.30),
    "phobia": ((0.7, 0.0, 0.0, 0.0, 0.2, 0.0, 0.0, 0.0), 0.25),
    "ocd": ((0.5, 0.0, 0.0, 0.0, 0.8, 0.0, 0.0, 0.0), 0.35),
    "eating_disorder": ((0.3, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0), 0.20),
    "ptsd": ((0.6, 0.3, 0.0, 0.0, 0.4, 0.0, 0.3, 0.0), 0.25),
    "sleep_problems": ((0.4, 0.0, 0.6, 0.0, 0.0, 0.3, 0.0, 0.0), 0.25),
}

QUESTIONNAIRE_SEED = 119
AGES = (5.0, 21.0)
GENERAL_SHARE = 0.40
CHANCE_SHARED = 0.25
MISPLACED, CROSS_LOADING, CARRIES_EFFECT = 0.10, 0.35, 0.40
THRESHOLDS = (0.5, 1.2)
# Minor factors: their share of an item's noise variance, their number, the decrease of loadings from one to
# the next, and the seed of their loadings.
MODEL_ERROR = {"none": 0.0, "fair": 0.10, "poor": 0.20}
N_MINOR, MINOR_DECAY, MINOR_SEED = 50, 0.02, 1969


@dataclass(frozen=True)
class Population:
    """The population of one of the two studies, in the order of `FACTORS` and `LIABILITIES`."""

    n: int
    age: tuple[float, float]
    age_shape: tuple[float, float]
    boys: float
    center: tuple[float, ...]
    spread: float
    careless: float
    prevalence: tuple[float, ...]


POPULATIONS = {
    "hbn": Population(
        n=1335,
        age=(5.0, 21.0),
        age_shape=(2.0, 3.6),
        boys=0.64,
        center=(0.10, 0.00, -0.10, 0.05, -0.10, 0.30, -0.20, 0.15),
        spread=0.36,
        careless=0.10,
        prevalence=(0.12, 0.16, 0.60, 0.16, 0.24, 0.03, 0.14, 0.05, 0.03, 0.05, 0.12),
    ),
    "abcd": Population(
        n=11681,
        age=(9.0, 11.0),
        age_shape=(1.0, 1.0),
        boys=0.52,
        center=(-0.20, -0.30, -0.30, -0.30, -0.35, -0.15, -0.40, -0.20),
        spread=0.40,
        careless=0.04,
        prevalence=(0.04, 0.03, 0.10, 0.02, 0.12, 0.025, 0.20, 0.03, 0.015, 0.03, 0.15),
    ),
}


@dataclass(frozen=True, eq=False)
class Truth:
    """The truth behind the answers."""

    loadings: pd.DataFrame  # (119, 8): answer points that a score of 1 adds to each item; between 0 and 2
    scores: pd.DataFrame  # (n, 8): scores between 0 and 1, indexed by participant
    # (119, 5): effects in answer points of ``intercept, old, young, male, female``; ``old`` runs from 0 at
    # age 5 to 1 at age 21, and ``young`` is 1 minus ``old``
    effects: pd.DataFrame
    noise: pd.Series  # (119,): standard deviation of each item's noise, in answer points
    minor_loadings: pd.DataFrame  # (119, 50): of both signs; no columns without minor factors
    minor_scores: pd.DataFrame  # (n, 50): standard normal, indexed by participant

    @property
    def n_major(self) -> int:
        """The number of major factors, which a rule for the number of factors should find."""
        return self.loadings.shape[1]


@dataclass(frozen=True, eq=False)
class Cohort:
    """A simulated study: answers, diagnoses, and the truth behind them.

    Parameters
    ----------
    name : str
        ``"hbn"`` or ``"abcd"``.
    questionnaire : Questionnaire
        119 items from 0 to 2, with age and sex as confounds.
    diagnoses : DataFrame of shape (n, 11)
        1 where the diagnosis was given, else 0, indexed by participant.
    truth : Truth
        Loadings, scores, and item effects.
    """

    name: str
    questionnaire: Questionnaire
    diagnoses: pd.DataFrame
    truth: Truth


def make_cohort(
    name: str, n: int | None = None, *, minor: float | str | None = None, random_state: int = 0
) -> Cohort:
    """Simulate a study like HBN (care-seeking, 5-21 years) or ABCD (community, 9-10 years).

    Each participant has eight scores between 0 and 1, which share a general tendency. An item's propensity,
    in answer points, is its base level plus age and sex effects plus scores times loadings plus normal noise;
    the answer is the propensity rounded to 0, 1 or 2. A diagnosis is given to those highest on a liability,
    which is part factors and part chance. Some answers are then removed, more often if an item does not fit
    the child's age.

    Parameters
    ----------
    name : {"hbn", "abcd"}
        Which population to draw from. Both answer the same questionnaire, with the same true loadings.
    n : int, optional
        Number of participants. None: 1 335 and 11 681, as in the paper.
    minor : {"none", "fair", "poor"} or float, optional
        Model error: the share, at least 0 and below 1, of each item's noise variance that is due to 50 weak
        minor factors with random loadings. "fair" is 0.10 and "poor" 0.20. None, "none" and 0: no minor
        factors. Participants, their scores and diagnoses, and missing answers do not depend on it.
    random_state : int
        Seed of the participants and their answers.

    Notes
    -----
    Prevalences are round numbers. Community: near the lifetime rates of the National Comorbidity Survey
    Adolescent Supplement (Merikangas et al. 2010), lowered for disorders that begin later than age 10, with
    autism after the surveillance reports of the CDC and sleep after Falch-Madsen et al. (2020). Care-seeking:
    a sample in which more than half have ADHD and about three in four have at least one of the eleven, as the
    paper reports for HBN.

    Minor factors follow L. R. Tucker, R. F. Koopman, R. L. Linn (1969), Evaluation of factor analytic
    research procedures by means of simulated correlation matrices, Psychometrika 34, 421-459.

    Examples
    --------
    >>> from icqf.datasets import make_cohort
    >>> cohort = make_cohort("hbn", 200)
    >>> cohort.questionnaire.answers.shape, cohort.diagnoses.shape, cohort.truth.loadings.shape
    ((200, 119), (200, 11), (119, 8))
    >>> harder = make_cohort("hbn", 200, minor="poor")
    >>> harder.truth.n_major, harder.truth.minor_loadings.shape
    (8, (119, 50))
    >>> make_cohort("abcd", 200).truth.loadings.equals(cohort.truth.loadings)
    True
    """
    if name not in POPULATIONS:
        raise InputError(
            f"There is no simulated cohort {name!r}; choose one of {listed(POPULATIONS)}."
            f"{did_you_mean(str(name), POPULATIONS)}"
        )
    population = POPULATIONS[name]
    n = population.n if n is None else n
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise InputError(f"A cohort needs a whole number of participants, at least 1; n is {n!r}.")
    share = _minor_share(minor)
    items, loadings, effects, noise = _questionnaire_truth()
    minor_loadings, noise = _minor_truth(noise, share)
    rng = np.random.default_rng([list(POPULATIONS).index(name), random_state])
    participants = pd.Index([f"SIM-{name.upper()}-{i:05d}" for i in range(1, n + 1)], name="participant")

    youngest, oldest = population.age
    age = np.floor(100 * (youngest + (oldest - youngest) * rng.beta(*population.age_shape, n))) / 100
    male = rng.random(n) < population.boys
    scores = _scores(rng, n, population)
    old = (age - AGES[0]) / (AGES[1] - AGES[0])
    design = np.column_stack([np.ones(n), old, 1 - old, male, ~male])
    level = scores @ loadings.to_numpy().T + design @ effects.to_numpy().T
    propensity = level + noise.to_numpy() * rng.standard_normal(level.shape)
    # From a separate generator, so that everything else is the same with and without them.
    own = np.random.default_rng([list(POPULATIONS).index(name), random_state, MINOR_SEED])
    minor_scores = own.standard_normal((n, minor_loadings.shape[1]))
    if share:
        propensity = propensity + minor_scores @ minor_loadings.to_numpy().T
    # Rounding removes the last bits of a matrix product, which differ between machines.
    answers = np.searchsorted(THRESHOLDS, np.round(propensity, 9)).astype(float)
    diagnoses = _diagnoses(rng, scores, population)
    answers[_left_out(rng, age, items, population.careless)] = np.nan

    questionnaire = Questionnaire(
        pd.DataFrame(answers, index=participants, columns=list(loadings.index)),
        items,
        confounds=pd.DataFrame({"age": age, "sex": np.where(male, "male", "female")}, index=participants),
        notes=(_note(name, share, random_state),),
        source=f"simulated {name}",
    )
    return Cohort(
        name,
        questionnaire,
        diagnoses=pd.DataFrame(diagnoses, index=participants, columns=list(LIABILITIES)),
        truth=Truth(
            loadings,
            pd.DataFrame(scores, index=participants, columns=list(FACTORS)),
            effects,
            noise,
            minor_loadings,
            pd.DataFrame(minor_scores, index=participants, columns=list(minor_loadings)),
        ),
    )


def _note(name: str, share: float, random_state: int) -> str:
    minor = f", minor={share:g}" if share else ""
    return f"Simulated ({name}{minor}, random_state={random_state})."


def _minor_share(minor: float | str | None) -> float:
    if minor is None:
        return 0.0
    if isinstance(minor, str):
        if minor in MODEL_ERROR:
            return MODEL_ERROR[minor]
        hint = did_you_mean(minor, MODEL_ERROR)
        raise InputError(f"minor is {minor!r}; choose one of {listed(MODEL_ERROR)}, or a share.{hint}")
    if isinstance(minor, bool) or not isinstance(minor, numbers.Real) or not 0 <= float(minor) < 1:
        raise InputError(f"minor is {minor!r}; give a share of at least 0 and below 1, such as 0.1.")
    return float(minor)


def _minor_truth(noise: pd.Series, share: float) -> tuple[pd.DataFrame, pd.Series]:
    """Loadings of the minor factors, and the remaining noise, with the same total variance."""
    names = [f"minor{i}" for i in range(1, N_MINOR + 1)] if share else []
    if not share:
        return pd.DataFrame(index=noise.index, columns=names, dtype=float), noise
    rng = np.random.default_rng(MINOR_SEED)
    drawn = rng.standard_normal((len(noise), N_MINOR)) * (1 - MINOR_DECAY) ** np.arange(N_MINOR)
    unit = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    loadings = unit * (np.sqrt(share) * noise.to_numpy())[:, None]
    return pd.DataFrame(loadings, index=noise.index, columns=names), noise * np.sqrt(1 - share)


def _questionnaire_truth() -> tuple[tuple[Item, ...], pd.DataFrame, pd.DataFrame, pd.Series]:
    """Draw what both studies share: items, loadings, effects and noise."""
    rng = np.random.default_rng(QUESTIONNAIRE_SEED)
    items = tuple(
        replace(
            item,
            wording=REWORDED.get(item.wording, item.wording),
            subscale=SYNDROMES[item.subscale],
            reverse=False,
            missing_codes=(),
        )
        for item in demo_items()
    )
    names = pd.Index([item.name for item in items], name="item")
    loadings = pd.DataFrame(0.0, index=names, columns=list(FACTORS))
    effects = pd.DataFrame(0.0, index=names, columns=["intercept", *EFFECTS])
    for item in items:
        misplaced, crossed, carries = (rng.random(3) < (MISPLACED, CROSS_LOADING, CARRIES_EFFECT)).tolist()
        near = rng.permutation(np.array(NEIGHBOURS[item.subscale])).tolist()
        main, second = (near[0], item.subscale) if misplaced else (item.subscale, near[0])
        loadings.loc[item.name, main] = rng.uniform(0.6, 1.8)
        weaker = rng.uniform(0.2, 0.7)
        if crossed:
            loadings.loc[item.name, second] = weaker
        effects.loc[item.name, "intercept"] = 0.4 * rng.beta(1, 6)
        for effect, syndromes in EFFECTS.items():
            size = rng.uniform(0.1, 0.25)
            if carries and item.subscale in syndromes:
                effects.loc[item.name, effect] = size
    noise = pd.Series(rng.uniform(0.15, 0.45, len(items)), index=names, name="noise")
    return items, loadings, effects, noise


def _scores(rng: np.random.Generator, n: int, population: Population) -> np.ndarray:
    general = rng.standard_normal((n, 1))
    own = rng.standard_normal((n, len(FACTORS)))
    tendency = np.sqrt(GENERAL_SHARE) * general + np.sqrt(1 - GENERAL_SHARE) * own
    return np.clip(np.array(population.center) + population.spread * tendency, 0, 1)


def _diagnoses(rng: np.random.Generator, scores: np.ndarray, population: Population) -> np.ndarray:
    """Give each diagnosis to the share of participants highest on its liability."""
    weights = np.array([weights for weights, _ in LIABILITIES.values()])
    share = np.array([share for _, share in LIABILITIES.values()])
    driven = scores @ weights.T
    spread = driven.std(axis=0)
    driven = (driven - driven.mean(axis=0)) / np.where(spread > 0, spread, 1)
    own, common = rng.standard_normal(driven.shape), rng.standard_normal((len(scores), 1))
    chance = np.sqrt(1 - CHANCE_SHARED) * own + np.sqrt(CHANCE_SHARED) * common
    liability = np.sqrt(share) * driven + np.sqrt(1 - share) * chance
    ranks = np.argsort(np.argsort(-liability, axis=0), axis=0)
    return (ranks < np.round(len(scores) * np.array(population.prevalence))).astype(np.int8)


def _left_out(
    rng: np.random.Generator, age: np.ndarray, items: tuple[Item, ...], careless: float
) -> np.ndarray:
    """Which answers are missing: a few of each participant, more if the item does not fit the age."""
    grown = np.array([item.wording in NOT_FOR_THE_YOUNG for item in items])
    childish = np.array([item.wording in NOT_FOR_THE_OLD for item in items])
    too_young = np.clip((11 - age) / 6, 0, 1)[:, None]
    too_old = np.clip((age - 14) / 7, 0, 1)[:, None]
    anyone = careless * rng.random((len(age), 1)) ** 3
    chance = anyone + 0.25 * (too_young * grown + too_old * childish)
    return rng.random(chance.shape) < chance
