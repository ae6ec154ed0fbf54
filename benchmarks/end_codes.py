"""How often a code for "no answer" at the end of a scale is found, and a rare answer taken for one.

`python benchmarks/end_codes.py [STUDIES]`. Every simulated study has its own seed, 150 to 2 000 participants,
10 to 60 items, loadings of .3 to .8, and some items reversed. Public studies are taken as they are, and once
more with some answers replaced by a code. docs/command-line.md tells the numbers.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd

from icqf.datasets import real
from icqf.errors import InputError
from icqf.workflow import check_table

STUDIES = 25
LOADERS = ("load_bfi", "load_help", "load_phq9", "load_msq")


def simulated(
    rng: np.random.Generator, *, shift: float = 0.0, levels: int = 5, careless: float = 0.0
) -> np.ndarray:
    """Answers 0, 1, …; a shift makes the lowest ones rare, careless participants answer at random."""
    n, m, k = int(rng.integers(150, 2001)), int(rng.integers(10, 61)), int(rng.integers(1, 6))
    loadings = rng.uniform(0.3, 0.8, m) * np.where(rng.random(m) < 0.2, -1, 1) ** (shift == 0)
    latent = loadings * rng.normal(size=(n, k))[:, np.arange(m) % k]
    latent += np.sqrt(1 - loadings**2) * rng.normal(size=(n, m)) + shift + rng.normal(0, 0.4, m)
    answers = np.searchsorted(np.linspace(-1.5, 1.5, levels - 1), latent).astype(float)
    random = rng.random(n) < careless
    answers[random] = rng.integers(0, levels, (int(random.sum()), m))
    return answers


def coded(answers: np.ndarray, code: float, share: float, rng: np.random.Generator) -> np.ndarray:
    """Some answers replaced by a code: at random, and all that follow for a few who stopped."""
    answers = answers.copy()
    answers[rng.random(answers.shape) < share] = code
    stopped = rng.random(len(answers)) < share
    answers[stopped, answers.shape[1] // 2 :] = code
    return answers


def studies(number: int) -> Iterator[tuple[str, bool, np.ndarray]]:
    """Kind, whether it has a code, and answers of each simulated study."""
    for seed in range(number):
        rng = np.random.default_rng(seed)
        for share in (0.0015, 0.005, 0.01):
            yield f"0 on 1-5, {share:.2%} of answers", True, coded(simulated(rng) + 1, 0, share, rng)
        levels = int(rng.choice([3, 4, 7, 10]))
        yield (
            "0 on 1-3, 1-4, 1-7 or 1-10, 0.5 %",
            True,
            coded(simulated(rng, levels=levels) + 1, 0, 0.005, rng),
        )
        yield "-1 on 0-3, 0.5 %", True, coded(simulated(rng, levels=4), -1, 0.005, rng)
        yield "6 on 1-5, 0.5 %", True, coded(simulated(rng) + 1, 6, 0.005, rng)
        levels, shift = int(rng.choice([4, 5, 6, 7, 8, 11])), float(rng.uniform(0.6, 1.8))
        yield "rare lowest answer (0-3 to 0-10)", False, simulated(rng, levels=levels, shift=shift)
        yield "the same, 5 % careless", False, simulated(rng, levels=levels, shift=shift, careless=0.05)
        yield (
            "rare highest answer (symptoms 0-2, 0-3)",
            False,
            simulated(rng, levels=int(rng.choice([3, 4])), shift=-float(rng.uniform(0.6, 1.8))),
        )
        yield "yes or no", False, simulated(rng, levels=2, shift=1.0)


def finds(answers: np.ndarray | pd.DataFrame) -> bool:
    """Whether `check` reports a code at an end."""
    table = answers if isinstance(answers, pd.DataFrame) else pd.DataFrame(answers).add_prefix("q")
    return bool(check_table(table).of("end-code"))


def public() -> Iterator[tuple[str, pd.DataFrame]]:
    """Public studies that are installed, as they are."""
    for name in LOADERS:
        try:
            yield name.removeprefix("load_"), getattr(real, name)().answers.reset_index(drop=True)
        except (AttributeError, InputError, ImportError):
            continue


def main(number: int) -> None:
    """Print hits and false alarms by kind of study."""
    warnings.simplefilter("ignore")
    rows = [(kind, code, finds(answers)) for kind, code, answers in studies(number)]
    table = pd.DataFrame(rows, columns=["study", "has a code", "found"])
    print(table.groupby(["has a code", "study"], sort=False)["found"].mean().map("{:.1%}".format).to_string())
    for name, answers in public():
        low = float(np.nanmin(answers.to_numpy(dtype=float)))
        plain = finds(answers)
        rng = np.random.default_rng(0)
        within = [finds(coded_frame(answers, low - 1, share, rng)) for share in (0.0015, 0.005, 0.01)]
        print(f"{name}: {answers.shape[0]} × {answers.shape[1]}; as it is {plain}; with a code {within}")


def coded_frame(answers: pd.DataFrame, code: float, share: float, rng: np.random.Generator) -> pd.DataFrame:
    """A table with some of its answers replaced by a code."""
    values = coded(answers.to_numpy(dtype=float), code, share, rng)
    return pd.DataFrame(values, columns=answers.columns)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else STUDIES)
