"""The tables of a small study."""

import numpy as np
import pandas as pd

ITEMS = [f"q{j:02d}" for j in range(1, 13)]
REVERSED = "q03"


def table(seed=0, n=80):
    """Answers 0-3 behind two factors: ids, age, sex, a weight, gaps empty or coded 9, somebody silent."""
    rng = np.random.default_rng(seed)
    scores, loadings = rng.random((n, 2)), np.zeros((2, 12))
    loadings[0, :6] = loadings[1, 6:] = 3
    answers = np.clip(np.rint(scores @ loadings + rng.normal(0, 0.5, (n, 12))), 0, 3)
    answers[:, 2] = 3 - answers[:, 2]
    cells = answers.astype(int).astype(str).astype(object)
    gaps = rng.random((n, 12))
    cells[gaps < 0.03] = ""
    cells[gaps > 0.97] = "9"
    cells[5] = ""
    frame = pd.DataFrame(cells, columns=ITEMS)
    frame.insert(0, "record_id", [f"{i:03d}" for i in range(1, n + 1)])
    frame["age"] = np.round(6 + 10 * rng.random(n), 1)
    frame["sex"] = np.where(rng.random(n) < 0.5, "f", "m")
    frame["weight"] = np.where(np.arange(n) == 7, 0, 1.5)
    return frame


def codebook():
    return pd.DataFrame(
        {
            "name": ITEMS,
            "wording": [f"Question {name}" for name in ITEMS],
            "min": 0,
            "max": 3,
            "direction": ["reverse" if name == REVERSED else "" for name in ITEMS],
            "subscale": ["Mood"] * 6 + ["Temper"] * 6,
            "missing": "9",
        }
    )


def weak_study(n, m=24, k=3, loading=0.45, seed=0):
    """Answers from 0 to 4 with a few weak factors, without a codebook."""
    rng = np.random.default_rng(seed)
    scores, noise = rng.normal(size=(n, k)), rng.normal(size=(n, m))
    of_factor = np.arange(m) % k
    latent = loading * scores[:, of_factor] + np.sqrt(1 - loading**2) * noise
    return np.clip(np.round(1.2 * latent + 2), 0, 4)
