"""Short forms: whether their intervals hold the full form's score, and what their scores are worth."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.analyses.short_forms import COVERED, ShortForm, correlation_by_row, shortform
from icqf.data.questionnaire import Questionnaire
from icqf.models.icqf import ICQF
from icqf.report.blocks import Block, Grid
from icqf_experiments.calibration.frame import SIMULATED, Statement, from_jobs
from icqf_experiments.calibration.populations import FORMS, PUBLIC, Population, public_study

Array = NDArray[Any]
SIZES = (200, 500, 1000)
SIGNALS = ("middle", "strong")
TRUE_FACTORS, ITEMS = 4, 32  # of simulated populations
FACTORS = 4  # of public studies; of shorter ones 2
LENGTH = 12  # or half of the items
NEW, FEWEST = 1000, 200  # new participants, at most and at least
SHOWN = 20  # of them in the table of cases, for every factor
LIMITS = (0.0, 0.1, 0.3, np.inf)  # of short scores
MEASURES = ("correlation", "corrected", "reliability", "true score")


def jobs_of(*, quick: bool = False) -> dict[str, tuple[Any, ...]]:
    """All studies: a name, and the arguments of `judged`."""
    jobs: dict[str, tuple[Any, ...]] = {}
    for number, (form, signal, n) in enumerate(product(FORMS, SIGNALS, SIZES)):
        population = Population(signal, form, TRUE_FACTORS, ITEMS, 0.1, 31_000 + number)
        jobs[f"{form}, {signal}, {n}"] = (population, n, TRUE_FACTORS)
    if quick:
        return dict(list(jobs.items())[:1])
    for name, n in product(PUBLIC, SIZES):
        study = public_study(name)
        if study.n_participants >= n + FEWEST:
            jobs[f"{name}, {n}"] = (name, n, FACTORS if study.n_items >= 3 * FACTORS else 2)
    return jobs


def judged(drawn: Any, n: int, k: int) -> dict[str, Any]:
    """Cases of one study: the full-form scores of new participants, and whether intervals hold them."""
    if isinstance(drawn, Population):
        study, new, again = drawn.draw(n, 0), *drawn.administrations(NEW, 1, times=2)
        labels = {"source": SIMULATED, "answers": drawn.answers, "signal": drawn.signal, "form": drawn.form}
    else:
        whole, again = public_study(drawn), None
        order = np.random.default_rng([n, 31]).permutation(whole.n_participants)
        study, new = (whole.take(np.sort(rows)) for rows in (order[:n], order[n : n + NEW]))
        labels = {"source": drawn, "answers": PUBLIC[drawn][1], "signal": "", "form": ""}
    model = ICQF(k, smallest_category=1, random_state=0).fit(study)
    form = shortform(model, study, max_items=min(LENGTH, study.n_items // 2))
    asked = new.select(form.items).answers.notna().all(axis=1).to_numpy()
    if asked.sum() < SHOWN:  # items of a split ballot: nobody is asked all of them
        return {"rows": []}
    short, full = _scores(form, model, new.take(np.flatnonzero(asked)))
    inside = _inside(form, short, full)
    realised = {"correlation": correlation_by_row(short, full)}
    if again is not None:
        realised |= _true_of(drawn, short, full, *_scores(form, model, again))
    rng = np.random.default_rng([n, 32])
    rows = []
    for r in range(k):
        about: dict[str, Any] = {"n": n, "k": k, "items": len(form.items), "factor": r}
        about |= {"coverage": round(float(inside[r].mean()), 4)}
        for name in MEASURES[:3]:
            about[f"stated {name}"] = round(float(form.factors[name].iloc[r]), 4)
        for name, values in realised.items():
            about[f"found {name}"] = round(float(values[r]), 4)
        for i in rng.choice(short.shape[1], min(SHOWN, short.shape[1]), replace=False):
            case: dict[str, Any] = {
                "said": COVERED,
                "happened": int(inside[r, i]),
                "score": round(float(short[r, i]), 3),
            }
            rows.append({**case, **labels, **about})
    return {"rows": rows}


def _scores(form: ShortForm, model: ICQF, study: Questionnaire) -> tuple[Array, Array]:
    """Scores (k, n) from the short form and from the full form."""
    return form.model.transform(study.select(form.items)).T, model.transform(study).T


def _inside(form: ShortForm, short: Array, full: Array) -> Array:
    found = []
    for (_, band), a, b in zip(form.bands.groupby("factor", sort=False), short, full, strict=True):
        low, high = (np.interp(a, band["score"], band[end]) for end in ("low", "high"))
        found.append((b - a >= low - 1e-9) & (b - a <= high + 1e-9))
    return np.array(found)


def _true_of(
    population: Population, short: Array, full: Array, short_again: Array, full_again: Array
) -> dict[str, Array]:
    """What asking the same participants twice shows, and the correlation with the factor behind the items."""
    steady = np.maximum(correlation_by_row(full, full_again), 1e-6)
    apart = (correlation_by_row(short, full_again) + correlation_by_row(short_again, full)) / 2
    behind = population.factors(short.shape[1], 1)
    return {
        "corrected": apart / np.sqrt(steady),
        "reliability": correlation_by_row(short, short_again),
        "true score": np.corrcoef(short, behind.T)[: len(short), len(short) :].max(axis=1),
    }


def more(table: pd.DataFrame) -> Iterator[Block]:
    """Coverage by size and by score, and stated against found correlations."""
    kinds = table["answers"] + np.where(table["source"] == SIMULATED, ", simulated", ", public")
    one = table.drop_duplicates(["source", "signal", "form", "n", "factor"])
    rows = []
    for kind in sorted(kinds.unique()):
        mine, cut = one[kinds[one.index] == kind], table[kinds == kind]
        by_size = [mine.loc[mine["n"] == n, "coverage"].mean() for n in SIZES]
        bands = pd.cut(cut["score"], LIMITS, include_lowest=True)
        by_score = cut.groupby(bands, observed=False)["happened"].mean()
        rows.append([kind, *(f"{x:.2f}" if np.isfinite(x) else "–" for x in [*by_size, *by_score])])
    head = ["studies", *(f"n = {n}" for n in SIZES), "score to 0.1", "to 0.3", "above"]
    yield Grid(
        "Share of full-form scores inside their interval, by participants and by short score", head, rows
    )
    rows = []
    for kind, name in product(sorted(kinds.unique()), MEASURES):
        said = "corrected" if name == "true score" else name
        if f"found {name}" not in one:
            continue
        mine = one[kinds[one.index] == kind].dropna(subset=[f"found {name}", f"stated {said}"])
        if mine.empty:
            continue
        error = mine[f"stated {said}"] - mine[f"found {name}"]
        numbers = [mine[f"stated {said}"].mean(), mine[f"found {name}"].mean()]
        shown = [f"{numbers[0]:.3f}", f"{numbers[1]:.3f}", f"{error.mean():+.3f}", f"{error.std():.3f}"]
        rows.append([kind, _NAMES[name], str(len(mine)), *shown])
    head = ["studies", "measure", "factors", "stated", "found", "mean error", "its spread"]
    yield Grid("What scores are worth: stated from the study, and found in new participants", head, rows)


_NAMES = {
    "correlation": "correlation with the full form",
    "corrected": "correlation with what the full form measures",
    "reliability": "reliability",
    "true score": "the same, against the factor behind the items",
}

SHORT_FORMS = Statement(
    "short-forms",
    "Short forms",
    f"""Said: the score of the full form lies in the interval of a short form's score, for {COVERED:.0%} of
    new participants who answer the whole short form. Happened: it did. Studies have {SIZES[0]} to
    {SIZES[-1]} participants; a model is fitted, and icqf shortform chooses up to {LENGTH} items. New
    participants are others of the same public study or population, up to {NEW}, of whom {SHOWN} for each
    factor are in the table. Populations have {TRUE_FACTORS} factors, 20 minor ones and {ITEMS} items; their
    new participants are asked twice, which shows the reliability and the correlation without shared errors.
    The minor factors are the same both times, so that the reliability found includes them. Where fewer than
    {SHOWN} new participants answered the whole short form (a split ballot), there are no cases.""",
    from_jobs("short-forms", jobs_of, judged),
    lambda table: list(more(table)),
)
