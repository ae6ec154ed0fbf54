"""Two simulated studies of one questionnaire: a care-seeking and a community sample with known factors.

The questionnaire (loadings, base levels, age and sex effects, item noise) is drawn once, from a seed of its
own, and is the same in both studies and for every ``random_state``; only the participants differ. Every
number is explained in ``docs/simulated-cohorts.md``. They were set by looking at marginals (means, zeros,
gaps, prevalences), never at what a factorization makes of the data.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from icqf.data.questionnaire import Item, Questionnaire
from icqf.datasets.demo import demo_items
from icqf.errors import InputError, did_you_mean, listed

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

# Liability weights in the order of FACTORS, and the share of the liability's variance that the factors carry.
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
# Minor factors: the share of an item's noise that they carry, how many there are, by how much the loadings of
# each are smaller than those of the one before, and the seed of their loadings.
MODEL_ERROR = {"none": 0.0, "fair": 0.10, "poor": 0.20}
N_MINOR, MINOR_DECAY, MINOR_SEED = 50, 0.02, 1969


@dataclass(frozen=True)
class Population:
    """Who is drawn: numbers of one of the two studies, in the order of `FACTORS` and `LIABILITIES`."""

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
    """What the answers were made from.

    Parameters
    ----------
    loadings : DataFrame of shape (119, 8)
        Answer points that a score of 1 adds to each item; between 0 and 2.
    scores : DataFrame of shape (n, 8)
        Scores between 0 and 1, indexed by participant.
    effects : DataFrame of shape (119, 5)
        Answer points of ``intercept, old, young, male, female``. ``old`` runs from 0 at age 5 to 1 at age 21,
        ``young`` is 1 minus it.
    noise : Series of shape (119,)
        Standard deviation of each item's noise, in answer points.
    minor_loadings : DataFrame of shape (119, 50) or (119, 0)
        Answer points that a minor score of 1 adds to each item, of both signs; no column where there are no
        minor factors.
    minor_scores : DataFrame of shape (n, 50) or (n, 0)
        Standard normal scores on the minor factors, indexed by participant.
    """

    loadings: pd.DataFrame
    scores: pd.DataFrame
    effects: pd.DataFrame
    noise: pd.Series
    minor_loadings: pd.DataFrame
    minor_scores: pd.DataFrame

    @property
    def n_major(self) -> int:
        """The number of major factors, which is what a rule for the number of factors should find."""
        return self.loadings.shape[1]


@dataclass(frozen=True, eq=False)
class Cohort:
    """A simulated study: its answers, its diagnoses, and the truth behind them.

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

    Examples
    --------
    >>> from icqf.datasets import make_cohort
    >>> cohort = make_cohort("hbn", 200)
    >>> cohort.name, cohort.questionnaire.n_items, int(cohort.diagnoses["adhd"].sum())
    ('hbn', 119, 120)
    """

    name: str
    questionnaire: Questionnaire
    diagnoses: pd.DataFrame
    truth: Truth


def make_cohort(
    name: str, n: int | None = None, *, minor: float | str | None = None, random_state: int = 0
) -> Cohort:
    """Simulate a study of the kind of HBN (care-seeking, 5-21 years) or ABCD (community, 9-10 years).

    Each participant has eight scores between 0 and 1, which share a general tendency. An item's propensity,
    in answer points, is its base level plus age and sex effects plus scores times loadings plus normal noise;
    the answer is the propensity rounded to 0, 1 or 2. A diagnosis is given to those highest on a liability,
    which is part factors and part chance. Some answers are then left out, more often where an item does not
    fit the child's age.

    Parameters
    ----------
    name : {"hbn", "abcd"}
        Which population to draw from. Both answer the same questionnaire, with the same true loadings.
    n : int, optional
        Number of participants. None: 1 335 and 11 681, as in the paper.
    minor : {"none", "fair", "poor"} or float, optional
        Model error: the share, at least 0 and below 1, of each item's noise variance that 50 weak minor
        factors carry, which items share in no order. "fair" is 0.10 and "poor" 0.20. None, "none" and 0 make
        no minor factors. The participants, their scores and diagnoses, and which answers are missing do not
        depend on it.
    random_state : int
        Seed of the participants and their answers.

    Returns
    -------
    Cohort

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
    # Random numbers of their own, so that everything else is the same with and without them.
    own = np.random.default_rng([list(POPULATIONS).index(name), random_state, MINOR_SEED])
    minor_scores = own.standard_normal((n, minor_loadings.shape[1]))
    if share:
        propensity = propensity + minor_scores @ minor_loadings.to_numpy().T
    # Rounding keeps the last bits of a matrix product, which differ between machines, out of the answers.
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
    """Loadings of the minor factors, and the noise that they leave: together as much variance as before."""
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
    """Say which answers are missing: a few of each participant, more where the item does not fit the age."""
    grown = np.array([item.wording in NOT_FOR_THE_YOUNG for item in items])
    childish = np.array([item.wording in NOT_FOR_THE_OLD for item in items])
    too_young = np.clip((11 - age) / 6, 0, 1)[:, None]
    too_old = np.clip((age - 14) / 7, 0, 1)[:, None]
    anyone = careless * rng.random((len(age), 1)) ** 3
    chance = anyone + 0.25 * (too_young * grown + too_old * childish)
    return rng.random(chance.shape) < chance
