"""Answers of very many simulated participants, made a part at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from icqf import ICQF
from icqf.core.problem import Problem

TOP = 3  # answers are 0, 1, 2 or 3
ROWS = 65_536


def parts(n: int, m: int, k: int, *, missing: float = 0.02, seed: int = 0) -> Iterator[np.ndarray]:
    """Answers (B, m) as int8, -1 where missing.

    Each item belongs to one of k factors, and one item in ten to a second one, as in a questionnaire with
    scales; most participants have a factor a little or not at all.
    """
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, k, m), rng.integers(0, k, m)
    Q = np.zeros((k, m))
    Q[second, np.arange(m)] = TOP * rng.uniform(0.2, 0.4, m) * (rng.random(m) < 0.1)
    Q[first, np.arange(m)] = TOP * rng.uniform(0.4, 0.9, m)
    for start in range(0, n, ROWS):
        rows = min(ROWS, n - start)
        W = np.maximum(rng.random((rows, k), dtype=np.float32) * 1.5 - 0.5, 0) ** 2
        X = W @ Q.astype(np.float32) + 0.5 * rng.standard_normal((rows, m), dtype=np.float32)
        codes = np.rint(np.clip(X, 0, TOP)).astype(np.int8)
        codes[rng.random((rows, m), dtype=np.float32) < missing] = -1
        yield codes


def answers(n: int, m: int, k: int, **settings: float) -> np.ndarray:
    """All of them (n, m)."""
    found = np.empty((n, m), dtype=np.int8)
    at = 0
    for part in parts(n, m, k, **settings):
        found[at : at + len(part)] = part
        at += len(part)
    return found


def problem_of(codes: np.ndarray, beta: float = 0.1) -> Problem:
    """The problem of a fit to these answers, which stay as they are stored."""
    from dataclasses import replace

    few = np.where(codes[:100] < 0, np.nan, codes[:100])
    stated = ICQF(item_range=(0, TOP), beta=beta, dtype="float32").state(few).problem
    observations = replace(stated.observations, answers=codes, design=np.ones((1, len(codes))))
    return replace(stated, observations=observations)
