"""Two norms files of samples that differ by one participant: what they tell of this participant's score.

The attacker has both files, knows this participant's age and sex, the number of participants, how norms are
learned (every line, and how the seed is made) and the law by which scores arise, and has practised on samples
of this law. He knows nothing else of the other participants: whoever has their scores can try every score for
the last one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from icqf.analyses import Norms, learn_norms

Array = np.ndarray
Drawn = Callable[[int, np.random.Generator], tuple[pd.DataFrame, pd.DataFrame | None]]
PLACES = 24  # scores at which two files are compared


def skewed(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores with some zeros that rise with age, more so in girls; and age and sex."""
    age, sex = rng.uniform(6, 18, n), rng.choice(["female", "male"], n)
    level = 0.3 + (age - 12) / 15 + 0.3 * (sex == "female")
    scores = np.clip(np.maximum(level + 0.5 * rng.normal(size=n), 0) / 2, 0, 1)
    return pd.DataFrame({"mood": scores.round(6)}), pd.DataFrame({"age": age, "sex": sex})


def alone(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, None]:
    """The same scores, for norms of everybody."""
    return skewed(n, rng)[0], None


@dataclass(frozen=True)
class Told:
    """How well scores are told, on new samples."""

    right: float  # how often the true score is picked from it and another participant's; 0.5 is chance
    error: float  # mean error of the score named
    chance: float  # the same from the norms alone
    close: float  # how often the score named is within 0.02
    close_by_chance: float


def pair(drawn: Drawn, n: int, rng: np.random.Generator) -> tuple[Array, float, float]:
    """What an attacker sees of two files, and the scores of this participant and another one."""
    scores, covariates = drawn(n + 1, rng)
    without, within = (
        learn_norms(scores.iloc[rows], None if covariates is None else covariates.iloc[rows])
        for rows in (slice(n), slice(None))
    )
    at = None if covariates is None else covariates.iloc[n:]
    seen = np.concatenate([_difference(without, within, at), _difference(without, within, None)])
    own = float(scores["mood"].iloc[n])
    return seen, own, float(drawn(400, rng)[0]["mood"].iloc[rng.integers(400)])


def _difference(without: Norms, within: Norms, at: pd.DataFrame | None) -> Array:
    """How much higher percentiles are in one file, at these covariates or on average over all."""
    grid = np.linspace(0, 1, PLACES)
    if at is None:
        at = without.places(6)
    rows = np.repeat(np.arange(len(at)), PLACES)
    scores = pd.DataFrame({"mood": np.tile(grid, len(at))})
    place = at.iloc[rows].reset_index(drop=True) if len(at.columns) else None
    one, other = (each.percentiles(scores, place)["mood"].to_numpy() for each in (without, within))
    return np.nan_to_num(other - one).reshape(len(at), PLACES).mean(axis=0)


def told(drawn: Drawn, n: int, *, practice: int, tries: int, seed: int = 0) -> Told:
    """Learn to read the difference from pairs of samples, and try it on new ones."""
    rng = np.random.default_rng(seed)
    pairs = [pair(drawn, n, rng) for _ in range(practice + tries)]
    seen, own, other = (np.array(each) for each in zip(*pairs, strict=True))
    old, new = slice(practice), slice(practice, None)
    found = []
    for reader in (
        make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 5, 17))),
        RandomForestRegressor(60, min_samples_leaf=3, random_state=0),
    ):
        named = reader.fit(seen[old], own[old]).predict(seen[new])
        error, usual = np.abs(named - own[new]), np.abs(np.median(own[old]) - own[new])
        farther = np.abs(named - other[new])
        right = np.mean((error < farther) + 0.5 * (error == farther))
        means = (right, error.mean(), usual.mean(), (error < 0.02).mean(), (usual < 0.02).mean())
        found.append(Told(*map(float, means)))
    return min(found, key=lambda each: each.error)
