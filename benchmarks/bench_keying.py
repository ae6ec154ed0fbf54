"""Items wrongly said to run against the others, in simulated studies without and with reversed items.

``python benchmarks/bench_keying.py [STUDIES] [FIRST_SEED]``; the limit is 1 item in 500. The constants of
`icqf.data.direction` were set on the seeds 0 to 799, of these settings. What is
reported are the seeds from 10 000 on, which were looked at only afterwards.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from dataclasses import dataclass

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd

from _measure import report, run_script
from icqf.data.direction import find_reversed
from icqf.data.questionnaire import Questionnaire

STUDIES, FIRST_SEED = 2000, 10_000
PER_ITEMS, LIMIT = 500, 1.0
PARTICIPANTS = (200, 300, 500, 1000, 2000)
ANSWERS = {"0/1": 2, "0-2": 3, "0-3": 4, "1-5": 5, "1-7": 7}
MOST_FACTORS = 8
ITEMS_PER_FACTOR = (4, 10)
FACTORS = ("uncorrelated", "positive", "negative")  # negative: half of the pairs, -0.09 to -0.30
PILES = ("even", "floor", "mixed")  # where answers pile up
MISSING = (0.0, 0.05, 0.2)
LOADINGS, CROSS_LOADINGS, CROSS_LOADING = (0.35, 0.8), (-0.2, 0.2), 0.2


@dataclass(frozen=True, eq=False)
class Simulated:
    """Answers, which items are reversed, and the settings they were drawn with."""

    answers: pd.DataFrame
    turned: np.ndarray
    settings: dict[str, object]


def simulate(seed: int, *, reverse: bool) -> Simulated:
    """Draw the settings of a study, then its answers; reversed are at most a third of a factor, or two."""
    rng = np.random.default_rng(seed)
    n, steps = int(rng.choice(PARTICIPANTS)), list(ANSWERS)[rng.integers(len(ANSWERS))]
    k = int(rng.integers(1, MOST_FACTORS + 1))
    related, pile = FACTORS[rng.integers(len(FACTORS))], PILES[rng.integers(len(PILES))]
    sizes = rng.integers(ITEMS_PER_FACTOR[0], ITEMS_PER_FACTOR[1] + 1, k)
    m, factor = int(sizes.sum()), np.repeat(np.arange(k), sizes)
    general = {
        "uncorrelated": np.zeros(k),
        "positive": rng.uniform(0.3, 0.75, k),
        "negative": rng.uniform(0.3, 0.55, k) * np.where(np.arange(k) % 2, -1, 1),
    }[related]
    own = rng.standard_normal((n, k)) * np.sqrt(1 - general**2)
    scores = rng.standard_normal((n, 1)) * general + own
    loadings = np.zeros((m, k))
    loadings[np.arange(m), factor] = rng.uniform(*LOADINGS, m)
    crossed = np.flatnonzero(rng.random(m) < CROSS_LOADING)
    if k > 1:
        other = (factor[crossed] + 1 + rng.integers(0, k - 1, len(crossed))) % k
        loadings[crossed, other] = rng.uniform(*CROSS_LOADINGS, len(crossed))
    common = scores @ loadings.T
    noise = np.sqrt(np.maximum(1 - common.var(axis=0), 0.2))
    propensity = common + rng.standard_normal((n, m)) * noise
    shift = {
        "even": rng.normal(0, 0.3, m),
        "floor": rng.uniform(0.3, 1.3, m),
        "mixed": rng.normal(0, 0.8, m),
    }[pile]
    count = ANSWERS[steps]
    thresholds = np.linspace(-1.4, 1.4, count - 1) if count > 2 else np.zeros(1)
    answers = (propensity[:, :, None] > thresholds + shift[:, None]).sum(axis=2).astype(float)
    turned = np.zeros(m, dtype=bool)
    if reverse:
        for f in range(k):
            items = np.flatnonzero(factor == f)
            most = min((len(items) - 1) // 2, max(2, len(items) // 3))
            turned[rng.choice(items, int(rng.integers(0, most + 1)), replace=False)] = True
        answers[:, turned] = count - 1 - answers[:, turned]
    answers[rng.random(answers.shape) < rng.choice(MISSING)] = np.nan
    settings = {"participants": n, "answers": steps, "factors": k, "related": related, "pile": pile}
    return Simulated(pd.DataFrame(answers, columns=[f"q{j}" for j in range(m)]), turned, settings)


def main() -> None:
    """Print false alarms, overall and by setting, and hits."""
    studies, first = (int(word) for word in (*sys.argv[1:], *(STUDIES, FIRST_SEED)[len(sys.argv) - 1 :]))
    wrong: Counter[tuple[str, object]] = Counter()
    asked: Counter[tuple[str, object]] = Counter()
    hits = reversed_ = ends = mistaken = unreversed = 0
    for seed in range(first, first + studies):
        plain = simulate(seed, reverse=False)
        found = find_reversed(Questionnaire.of(plain.answers), resamples=1)
        for setting in [("all", ""), *plain.settings.items()]:
            wrong[setting] += len(found.looks_reversed)
            asked[setting] += len(plain.turned)
        mixed = simulate(seed, reverse=True)
        found = find_reversed(Questionnaire.of(mixed.answers), resamples=1)
        flagged = np.isin(mixed.answers.columns, found.looks_reversed)
        sides = [name for each in found.ends for name in each.one + each.other]
        at_ends = np.isin(mixed.answers.columns, sides)
        hits, reversed_ = hits + int((flagged & mixed.turned).sum()), reversed_ + int(mixed.turned.sum())
        ends += int((at_ends & mixed.turned).sum())
        mistaken += int((flagged & ~mixed.turned).sum())
        unreversed += int((~mixed.turned).sum())
    print(f"{studies} studies without reversed items, seeds from {first}; then the same with some reversed")
    for setting in sorted(asked, key=str):
        name, rate = " ".join(map(str, setting)).strip(), wrong[setting] / asked[setting]
        print(f"  {name:<24} {wrong[setting]:>4} of {asked[setting]:>6} items: {rate:.5f}")
    print(f"reversed items: {reversed_}, found {hits / max(reversed_, 1):.3f}, and said to be at one of two")
    print(f"opposite ends {ends / max(reversed_, 1):.3f}")
    everything = ("all", "")
    alone, beside = wrong[everything] / asked[everything], mistaken / max(unreversed, 1)
    report("false alarms in 500 items, none reversed", PER_ITEMS * alone, LIMIT)
    report("false alarms in 500 items, others reversed", PER_ITEMS * beside, LIMIT)


if __name__ == "__main__":
    run_script(main)
