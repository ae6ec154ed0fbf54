"""95 % intervals of loadings, of confounds and of intercepts: how often they hold the population's value.

The populations, sizes and candidates were committed before any of them was run; they are others than those by
which it was decided that intercepts near 0 have no interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from icqf.core.certificate import finish
from icqf.data.questionnaire import Questionnaire
from icqf.datasets import make_cohort
from icqf.models.icqf import ICQF
from icqf.report.blocks import Block, Grid
from icqf.report.sections.factors import NEAR_BOUND
from icqf.resampling.bootstrap import Z, bootstrap
from icqf.resampling.matching import aligned, correlations
from icqf.workflow.evaluation import Design
from icqf_experiments.calibration.frame import SIMULATED, Statement, run_cases
from icqf_experiments.calibration.populations import FORMS, Population

SAID = 0.95
SIGNALS, SIZES, STUDIES = ("middle", "strong"), (300, 1200), 3
FACTORS, ITEMS = 3, 24
COHORTS, COHORT_SIZES, COHORT_FACTORS, COHORT_STUDIES = ("hbn", "abcd"), (1000,), 8, 2
WHOLE = 20_000  # participants whose fit is the population's value
N_RESAMPLES = 100
STRONG = 0.15  # of the item's range: loadings that are judged
FOUND = 0.9  # correlation with the population's factor from which a factor is the same one
WIDE = 2.6  # standard errors, instead of 1.96


def jobs_of(*, quick: bool = False) -> dict[str, tuple[Any, ...]]:
    """All studies: a name, and the arguments of `covered`; a small one to be quick."""
    if quick:
        return {"quick": ("five answers", "strong", 300, 0, 2000, 20)}
    jobs: dict[str, tuple[Any, ...]] = {
        f"{form}, {signal}, {n}, {study}": (form, signal, n, study, WHOLE, N_RESAMPLES)
        for form, signal, n, study in product(FORMS, SIGNALS, SIZES, range(STUDIES))
    }
    for name, n, study in product(COHORTS, COHORT_SIZES, range(COHORT_STUDIES)):
        jobs[f"{name}, {n}, {study}"] = ("cohort", name, n, study, WHOLE, N_RESAMPLES)
    return jobs


@cache
def _population(form: str, which: str, whole: int) -> tuple[Questionnaire, ICQF]:
    """The whole population, and the fit of it."""
    if form == "cohort":
        everyone, k = make_cohort(which, whole, random_state=30).questionnaire, COHORT_FACTORS
    else:
        number = list(FORMS).index(form) * len(SIGNALS) + SIGNALS.index(which)
        population = Population(which, form, FACTORS, ITEMS, 0.1, 150_000 + number)
        everyone, k = population.draw(whole, 0), FACTORS
    return everyone, ICQF(k, tol=1e-4, max_iter=2000, confound_ranges=_ranges(everyone)).fit(everyone)


def _ranges(everyone: Questionnaire) -> dict[str, tuple[float, float]] | None:
    """The ranges of continuous confounds in the population: those of a sample would change their meaning."""
    if everyone.confounds is None:
        return None
    numbers = everyone.confounds.select_dtypes("number")
    return {str(name): (float(column.min()), float(column.max())) for name, column in numbers.items()}


def covered(form: str, which: str, n: int, study: int, whole: int, n_resamples: int) -> dict[str, Any]:
    """Whether the intervals of one study hold the loadings of the whole population."""
    everyone, truth = _population(form, which, whole)
    rng = np.random.default_rng([30, study, n])
    sample = everyone.take(np.sort(rng.choice(everyone.n_participants, n, replace=False)))
    model = ICQF(truth.n_components, confound_ranges=_ranges(everyone)).fit(sample)
    stated = model.state(sample)
    problem, k = stated.problem, len(truth.components_)
    estimate = np.concatenate([model.components_, model.confound_components_])
    scores = finish(problem, problem.scaled_loadings(estimate), tol=model.tol).factors.scores
    drawn = bootstrap(problem, scores, estimate, n_resamples=n_resamples, rng=rng)
    order, _ = aligned(model.components_, truth.components_)
    value = np.concatenate([truth.components_[order], truth.confound_components_])
    same = np.diag(correlations(estimate[:k], value[:k])) >= FOUND
    span = np.ptp(model.item_range_.to_numpy(), axis=1)
    error, se = estimate - value, drawn.loadings.std(axis=0, ddof=1)
    low, high = drawn.interval(estimate, span)
    inside = (low <= value) & (value <= high)
    middle = 2 * estimate - drawn.loadings.mean(axis=0)
    ends = np.quantile(drawn.loadings, [0.025, 0.975], axis=0)
    kinds = ["factor"] * k + [
        "intercept" if name == "Intercept" else "confound" for name in model.confound_names_
    ]
    yes_no = form == "yes/no"
    rows = []
    for r, j in np.argwhere((estimate / span > STRONG) | (np.array(kinds) == "intercept")[:, None]):
        if r < k and not same[r]:
            continue
        rows.append(
            {
                "said": SAID,
                "happened": int(inside[r, j]),
                "answers": "yes/no" if yes_no else "graded",
                "source": SIMULATED,
                "kind": kinds[r],
                "n": n,
                "at_zero": int(estimate[r, j] / span[j] < NEAR_BOUND),
                "wide": int(abs(error[r, j]) <= WIDE * se[r, j]),
                "shifted": int(abs(middle[r, j] - value[r, j]) <= Z * se[r, j]),
                "percentile": int(ends[0, r, j] <= value[r, j] <= ends[1, r, j]),
            }
        )
    return {"rows": rows}


def cases(design: Design) -> pd.DataFrame:
    """One row for every interval."""
    table = run_cases(design, "intervals", jobs_of(quick=design.quick), covered)
    without = (table["kind"] == "intercept") & (table["at_zero"] == 1)
    return table.assign(said=np.where(without, np.nan, SAID))


def _more(table: pd.DataFrame) -> Sequence[Block]:
    """Every candidate, by what the interval is of."""
    names = {
        "happened": "± 1.96",
        "wide": f"± {WIDE}",
        "shifted": "bias-corrected",
        "percentile": "percentile",
    }
    groups = {
        "loadings of factors": table[table["kind"] == "factor"],
        "loadings of confounds": table[table["kind"] == "confound"],
        "intercepts": table[table["kind"] == "intercept"],
        "intercepts away from 0": table[(table["kind"] == "intercept") & (table["at_zero"] == 0)],
        "intercepts near 0": table[(table["kind"] == "intercept") & (table["at_zero"] == 1)],
    }
    rows = [
        [name, f"{len(part)}", *(f"{part[column].mean():.3f}" for column in names)]
        for name, part in groups.items()
        if len(part)
    ]
    return [
        "No interval is given of an intercept below 0.03 of its item's range: at the bound, resamples do not "
        "vary as samples do.",
        Grid("Share of intervals that hold the value", ["interval of", "cases", *names.values()], rows),
    ]


INTERVALS = Statement(
    "intervals",
    "95 % intervals of loadings",
    f"""Studies of {" and ".join(map(str, SIZES))} participants drawn from simulated populations, and of
    {COHORT_SIZES[0]} from simulated cohorts with age and sex as confounds. Judged are
    loadings above {STRONG:.0%} of the item's range, of factors that correlate by {FOUND} or more with one of
    the population. It happened where the interval holds the loading in a fit of {WHOLE} participants.""",
    cases,
    _more,
)
