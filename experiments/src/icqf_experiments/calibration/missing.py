"""Leaving answers out said to depend on scores or confounds: false alarms, and the power next to them.

The scenarios, sizes, seeds and number of studies below were committed before any of them was run in full.
Development used other seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import spearmanr

from icqf.analyses.missingness import score_tests
from icqf.data.missing_answers import ALPHA, confound_tests, share_left_out
from icqf.data.questionnaire import Questionnaire
from icqf.models.icqf import ICQF
from icqf.report.blocks import Block, Grid
from icqf.resampling.folds import units_of
from icqf_experiments.calibration.frame import SIMULATED, Statement, from_jobs
from icqf_experiments.calibration.populations import Population, public_study

Array = NDArray[Any]
SAID = 0.05
STUDIES, POWER_STUDIES = 240, 60
AT_ONCE = 20  # studies of one job
N_PERMUTATIONS = 199
SEED = 40_000  # of the first study; development used seeds below 1000
FACTORS, ITEMS = 3, 24
PUBLIC_FACTORS = {"bfi": 5, "epi": 2}
PUBLIC_SIZE = 300


@dataclass(frozen=True)
class Scenario:
    """How a study is drawn, and how its participants leave answers out."""

    signal: str = "middle"  # as in `Population`
    form: str = "five answers"
    n: int = 300  # participants
    share: float = 0.08  # of answers left out, on average
    spread: float = 1.2  # standard deviation, between participants, of the log-odds of leaving an item out
    by_score: float = 0.0  # what one standard deviation of the first true factor adds to these log-odds
    by_age: float = 0.0  # what one standard deviation of age adds to them
    by_item: float = 0.5  # standard deviation of the log-odds between items
    families: bool = False  # whether participants come in pairs with the same factors who leave out alike
    study: str = ""  # a public study that answers come from; empty for simulated ones

    @property
    def answers(self) -> str:
        """Whether the items are graded."""
        return "yes/no" if self.form == "yes/no" or self.study == "epi" else "graded"

    def draw(self, seed: int) -> tuple[Questionnaire, int]:
        """A study with missing answers and the confounds age and sex, and its number of factors."""
        rng = np.random.default_rng([11, seed])
        k, factors = FACTORS, np.zeros(self.n)
        if self.study:
            k, whole = PUBLIC_FACTORS[self.study], public_study(self.study)
            complete = np.flatnonzero(whole.answers.notna().all(axis=1))
            study = whole.take(np.sort(rng.choice(complete, self.n, replace=False)))
        else:
            population = Population(self.signal, self.form, FACTORS, ITEMS, 0.05, seed)
            if self.families:
                twice = population.administrations(self.n // 2, 0, times=2)
                table = pd.concat([each.answers for each in twice], ignore_index=True)
                study = replace(twice[0], answers=table.set_axis([str(i) for i in range(1, len(table) + 1)]))
                factors = np.tile(population.factors(self.n // 2, 0)[:, 0], 2)
            else:
                study, factors = population.draw(self.n, 0), population.factors(self.n, 0)[:, 0]
        age = rng.normal(size=self.n)
        own = rng.normal(size=self.n // 2 if self.families else self.n)
        odds = self.spread * np.resize(own, self.n) + self.by_score * factors + self.by_age * age
        level = np.log(self.share / (1 - self.share))
        odds = level + odds[:, None] + self.by_item * rng.normal(size=len(study.items))
        gone = rng.random(odds.shape) < 1 / (1 + np.exp(-odds))
        confounds = pd.DataFrame(
            {"age": np.round(12 + 3 * age, 1), "sex": rng.choice(["f", "m"], self.n)},
            index=study.answers.index,
        )
        groups = None
        if self.families:
            numbers = np.resize(np.arange(self.n // 2), self.n)
            groups = pd.Series(numbers, index=study.answers.index, name="family")
        answers = study.answers.mask(gone)
        return replace(study, answers=answers, confounds=confounds, groups=groups), k


SCENARIOS: dict[str, Scenario] = {
    "middle signal": Scenario(),
    "weak signal": Scenario("weak"),
    "strong signal": Scenario("strong"),
    "skewed items": Scenario(form="skewed"),
    "yes/no items": Scenario(form="yes/no"),
    "yes/no items, weak signal": Scenario("weak", "yes/no"),
    "100 participants": Scenario(n=100),
    "100 participants, yes/no items": Scenario(n=100, form="yes/no"),
    "60 participants, skewed items": Scenario(n=60, form="skewed"),
    "1 000 participants": Scenario(n=1000),
    "3 % left out": Scenario(share=0.03),
    "25 % left out, skewed items": Scenario(share=0.25, form="skewed"),
    "very uneven between participants": Scenario(spread=2.5),
    "families": Scenario(families=True),
    "bfi": Scenario(study="bfi", n=PUBLIC_SIZE),
    "epi": Scenario(study="epi", n=PUBLIC_SIZE),
    "depends on score, 0.5": Scenario(by_score=0.5),
    "depends on score, 1": Scenario(by_score=1.0),
    "depends on score, 1, weak signal": Scenario("weak", by_score=1.0),
    "depends on score, 1, skewed items": Scenario(form="skewed", by_score=1.0),
    "depends on score, 1, yes/no items": Scenario(form="yes/no", by_score=1.0),
    "depends on score, 1, 100 participants": Scenario(n=100, by_score=1.0),
    "depends on score, 0.5, 1 000 participants": Scenario(n=1000, by_score=0.5),
    "depends on score, 1, families": Scenario(by_score=1.0, families=True),
    "depends on age, 0.5": Scenario(by_age=0.5),
    "depends on age, 0.5, 100 participants": Scenario(n=100, by_age=0.5),
}


def jobs_of(*, quick: bool = False) -> dict[str, tuple[Any, ...]]:
    """Batches of studies: a name, and the arguments of `tested`; two small ones to be quick."""
    if quick:
        return {name: (name, (0, 1)) for name in ("100 participants", "depends on score, 1")}
    return {
        f"{name} {first}": (name, tuple(range(SEED + first, SEED + first + AT_ONCE)))
        for name, each in SCENARIOS.items()
        for first in range(0, POWER_STUDIES if each.by_score or each.by_age else STUDIES, AT_ONCE)
    }


def tested(name: str, seeds: Sequence[int]) -> dict[str, Any]:
    """What is said about some studies of a kind."""
    return {"rows": [_row(name, seed) for seed in seeds]}


def _row(name: str, seed: int) -> dict[str, Any]:
    scenario = SCENARIOS[name]
    study, k = scenario.draw(seed)
    model = ICQF(k, beta=0.1, n_init=1)
    stated = model.state(replace(study, confounds=None))
    found = model.solve(stated)
    model.keep(stated, found)
    share = share_left_out(study.answers.notna().to_numpy()[stated.kept])
    units = units_of(stated.problem, study.groups, stated.kept)
    table, n_pairs = score_tests(
        model, stated.problem, share, units=units, n_permutations=N_PERMUTATIONS, random_state=seed
    )
    by_confound = confound_tests(
        share, pd.DataFrame(study.confounds)[stated.kept], units=units, random_state=seed
    )
    called = by_confound["p_adjusted"] <= ALPHA
    by_rank = [float(spearmanr(share, each).pvalue) for each in found.factors.scores]
    naive = min(1.0 if np.isnan(each) else each for each in by_rank) * k
    p = float(table["p_adjusted"].min()) if len(table) else None
    return {
        "said": SAID if not scenario.by_score else None,
        "happened": int(p is not None and p <= ALPHA),
        "answers": scenario.answers,
        "source": scenario.study or SIMULATED,
        "kind": name,
        "seed": seed,
        "p": p,
        "pairs": n_pairs,
        "by_age": int((called & (by_confound["confound"] == "age")).any()),
        "by_confound": int(called.any()),
        "naive": int(naive <= ALPHA),
    }


def _more(table: pd.DataFrame) -> Sequence[Block]:
    """False alarms and power of every kind of study, with binomial standard errors."""
    head = ["studies", "n", "by score", "± SE", "by age or sex", "by age", "naive, by score", "pairs"]
    same = table["said"].notna() & ~table["kind"].str.startswith("depends on age")
    return [
        Grid("False alarms: answers left out at random", head, _rates(table[same])),
        Grid("Power: leaving out depends on the first true factor, or on age", head, _rates(table[~same])),
        "“Naive” is the rank correlation of the share left out with the scores of the fit, which are shrunk "
        "where answers are missing; it is shown for comparison and not used. Where leaving out depends on "
        "age alone, the columns by score are false alarms; where it depends on scores, those of age are.",
    ]


def _rates(table: pd.DataFrame) -> list[list[str]]:
    rows = []
    for name, part in table.groupby("kind", sort=False):
        n, share = len(part), float(part["happened"].mean())
        error = np.sqrt(share * (1 - share) / n)
        others = [float(part[column].mean()) for column in ("by_confound", "by_age", "naive")]
        shown = [f"{value:.3f}" for value in (share, error, *others)]
        rows.append([str(name), str(n), *shown, f"{part['pairs'].mean():.0f}"])
    return rows


MISSING = Statement(
    "missing",
    "Leaving answers out depends on scores",
    f"""The report says that leaving out depends on a score at p ≤ 0.05, adjusted for the number of factors:
    where answers are missing at random, that is to happen in 5 % of studies. Simulated studies have {ITEMS}
    items behind {FACTORS} factors and 300 participants, who leave out 8 % of the answers, unless
    something else is said; participants and items differ in how often answers are left out. The public
    studies are {PUBLIC_SIZE} complete participants of bfi and epi whose answers are deleted in the same way.
    Where leaving out depends on the first true factor (log-odds of 0.5 or 1 per standard deviation), the
    second table below shows the power; those studies are not in the reliability table. Age and sex are drawn
    at random.""",
    from_jobs("missing", jobs_of, tested),
    _more,
)
