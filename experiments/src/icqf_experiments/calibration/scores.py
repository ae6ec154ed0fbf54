"""90 % intervals of scores, and reliable change: how often they hold, and how often they are wrong.

The populations, studies, sizes, seeds and candidates were committed before any of them was run. The method
was developed on other populations (seeds 999 and from 990 000), other simulated cohorts (seeds 77 and 78),
and on the public studies aggression, msq, epi, ability and abortion, which are not among those here.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr

from icqf.data.questionnaire import Questionnaire
from icqf.datasets import load_demo, make_cohort
from icqf.datasets.simulated import AGES, THRESHOLDS, Cohort
from icqf.models.icqf import ICQF
from icqf.models.score_intervals import (
    N_CELLS,
    RELIABLE,
    ScoreIntervals,
    quantiles_of,
    reliable_change,
    score_table,
    usual,
)
from icqf.report.blocks import Block, Grid
from icqf_experiments.calibration.frame import SIMULATED, Statement, from_jobs
from icqf_experiments.calibration.populations import FORMS, Array, Population, public_study

SAID = 0.9
SIGNALS, SIZES = ("none", "weak", "middle", "strong"), (300, 1000, 5000)
FACTORS, ITEMS, MINOR = 3, 24, 0.1
LENGTHS, POPULATIONS = (
    (9, 12, 24, 48),
    6,
)  # of each length, of five graded answers and a middle signal, n = 1000
COHORTS, COHORT_FACTORS = ("hbn", "abcd"), 8
PUBLIC = {"bfi": 5, "help": 4, "demo": 4, "phq9": 2, "spending": 3}  # and their numbers of factors
SPLITS = 4
NEW, HALVED = 40, 100  # new participants of each study who are cases: simulated, public
ABOVE = 0.1
WANTED = (0.87, 0.94)


def scores_jobs(*, quick: bool = False) -> dict[str, tuple[Any, ...]]:
    """All studies of intervals: a name, and the arguments of `covered`; a small one to be quick."""
    if quick:
        return {"quick": ("five answers", "strong", 300, ITEMS), "quick, phq9": ("public", "phq9", 300, 0)}
    jobs: dict[str, tuple[Any, ...]] = {
        f"{form}, {signal}, {n}": (form, signal, n, ITEMS)
        for form, signal, n in product(FORMS, SIGNALS, SIZES)
    }
    jobs |= {f"{m} items, {i}": ("length", str(i), 1000, m) for m, i in product(LENGTHS, range(POPULATIONS))}
    jobs |= {f"{name}, {n}": ("cohort", name, n, 0) for name, n in product(COHORTS, SIZES)}
    return jobs | {f"{name}, {split}": ("public", name, 0, split) for name, split in _halves()}


def change_jobs(*, quick: bool = False) -> dict[str, tuple[Any, ...]]:
    """All studies of change: a name, and the arguments of `changed`."""
    if quick:
        return {"quick": ("five answers", "strong", 300), "quick, phq9": ("public", "phq9", 0)}
    jobs: dict[str, tuple[Any, ...]] = {
        f"{form}, {signal}, {n}": (form, signal, n)
        for form, signal, n in product(FORMS, SIGNALS[1:], SIZES[:2])
    }
    return jobs | {f"{name}, {split}": ("public", name, split) for name, split in _halves()}


def _halves() -> product[tuple[Any, ...]]:
    return product(PUBLIC, range(SPLITS))


def _population(form: str, signal: str, m: int, offset: int) -> Population:
    number = list(FORMS).index(form) * len(SIGNALS) + SIGNALS.index(signal)
    return Population(signal, form, FACTORS, m, 0.0 if signal == "none" else MINOR, offset + number)


def _fitted(study: Questionnaire, k: int) -> ICQF:
    return ICQF(k, n_init=3).fit(study)


def _truth(model: ICQF, answers: pd.DataFrame, confounds: pd.DataFrame | None = None) -> Array:
    """Scores (n, k) of answers without error, which need no penalty."""
    return np.asarray(copy(model).set_params(beta=0.0).transform(answers, confounds=confounds))


def _expected(cohort: Cohort) -> pd.DataFrame:
    """The answers of a simulated cohort without error."""
    truth, confounds = cohort.truth, pd.DataFrame(cohort.questionnaire.confounds)
    old = (confounds["age"].to_numpy() - AGES[0]) / (AGES[1] - AGES[0])
    male = (confounds["sex"] == "male").to_numpy()
    design = np.column_stack([np.ones(len(old)), old, 1 - old, male, ~male])
    level = truth.scores.to_numpy() @ truth.loadings.to_numpy().T + design @ truth.effects.to_numpy().T
    noise = truth.noise.to_numpy()
    values = np.sum([ndtr((level - limit) / noise) for limit in THRESHOLDS], axis=0)
    return pd.DataFrame(values, index=confounds.index, columns=truth.loadings.index)


def _incomplete(answers: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Every second participant leaves out half of the items, at random."""
    hidden = np.random.default_rng([28, seed]).random(answers.shape) < 0.5
    hidden[::2] = False
    hidden[np.arange(len(hidden)), np.random.default_rng(seed).integers(0, hidden.shape[1], len(hidden))] = (
        False
    )
    return answers.mask(hidden)


def _scored(model: ICQF, answers: pd.DataFrame, confounds: pd.DataFrame | None = None) -> ScoreIntervals:
    return model.score_intervals(answers, confounds=confounds, level=SAID)


def covered(form: str, which: str, n: int, more: int) -> dict[str, Any]:
    """Whether intervals of one study hold the true scores of new participants."""
    if form == "public":
        return _covered_half(which, more)
    if form == "cohort":
        study = make_cohort(which, n, random_state=280).questionnaire
        new = make_cohort(which, NEW, random_state=281)
        model, asked = _fitted(study, COHORT_FACTORS), new.questionnaire
        answers, confounds = asked.keyed_answers(), asked.confounds
        true, m = _truth(model, _expected(new), confounds), answers.shape[1]
    else:
        if form == "length":
            population = _population("five answers", "middle", more, 283_000 + 100 * int(which) + more)
        else:
            population = _population(form, which, more, 280_000 + more)
        model, confounds, m = _fitted(population.draw(n, 0), FACTORS), None, more
        answers = population.draw(NEW, 1).keyed_answers()
        true = _truth(model, population.expected(NEW, 1))
    answers = _incomplete(answers, n)
    found, table = _scored(model, answers, confounds), score_table(model)
    complete = answers.notna().mean(axis=1).to_numpy() > 0.75
    rows = []
    for r in range(len(model.components_)):
        score, low, high = (each.iloc[:, r].to_numpy() for each in (found.scores, found.low, found.high))
        posterior = quantiles_of(table.posterior(r), np.array([(1 - SAID) / 2, (1 + SAID) / 2]))
        known = np.flatnonzero(~np.isnan(score))
        other = np.full((2, len(score)), np.nan)
        other[:, known] = table.at(r, posterior * table.top[r], score[known], found.fractions[known, r])
        inside = [(a <= true[:, r] + 1e-9) & (true[:, r] <= b + 1e-9) for a, b in ((low, high), other)]
        for i in range(len(score)):
            rows.append(
                _row(form, which, n, m, SAID if i in known else np.nan, inside[0][i])
                | {"other": int(inside[1][i]), "whole": int(complete[i]), "true": round(true[i, r], 2)}
                | {"score": _two(score[i]), "width": _two(high[i] - low[i])}
                | {"information": _two(found.information.to_numpy()[i, r])}
            )
    return {"rows": rows}


def _two(value: float) -> float | None:
    return None if np.isnan(value) else round(float(value), 2)


def _row(form: str, which: str, n: int, m: int, said: float, happened: Any) -> dict[str, Any]:
    simulated, named = form != "public", form in FORMS
    return {
        "said": None if np.isnan(said) else said,
        "happened": int(happened),
        "answers": "yes/no" if form == "yes/no" else "graded",
        "source": SIMULATED if simulated else which,
        "study": f"{m} items" if form == "length" else form if named else which,
        "signal": which if named else "",
        "n": n,
        "items": m,
    }


def _study(name: str) -> Questionnaire:
    return load_demo().with_confounds(None) if name == "demo" else public_study(name)


def _halved(name: str, split: int, seed: int) -> tuple[ICQF, int, pd.DataFrame, pd.DataFrame]:
    """A model of half of the participants, its n, and the others' answers to either half of the items."""
    study, rng = _study(name), np.random.default_rng([seed, split])
    order = rng.permutation(study.n_participants)
    half = min(len(order) // 2, 2000)
    model = _fitted(study.take(np.sort(order[:half])), PUBLIC[name])
    answers = study.take(np.sort(order[half : half + 1000])).keyed_answers()
    first = np.isin(np.arange(answers.shape[1]), rng.permutation(answers.shape[1])[::2])
    one, two = (
        answers.mask(~first[None, :].repeat(len(answers), 0)),
        answers.mask(first[None].repeat(len(answers), 0)),
    )
    both = one.notna().any(axis=1) & two.notna().any(axis=1)
    return model, half, one[both], two[both]


def _covered_half(name: str, split: int) -> dict[str, Any]:
    """Whether the scores of one half of the items are where those of the other half say."""
    model, n, one, two = _halved(name, split, 30)
    one, two = one.iloc[:HALVED], two.iloc[:HALVED]
    table, known, later = score_table(model), _scored(model, one), _scored(model, two)
    rows = []
    for r in range(len(model.components_)):
        score, new = known.scores.iloc[:, r].to_numpy(), later.scores.iloc[:, r].to_numpy()
        at = np.flatnonzero(~np.isnan(score) & ~np.isnan(new))
        posterior = table.at(r, np.moveaxis(table.posterior(r), 2, 0), score[at], known.fractions[at, r])
        predicted = table.again(r, posterior, later.fractions[at, r]).T
        first, last, held = _shortest(predicted, SAID)
        cells, _ = table.cells(r, new[at])
        inside, width = (first <= cells) & (cells <= last), (last - first) / N_CELLS * table.top[r]
        low, high = (each * table.top[r] for each in usual(predicted, SAID))
        other = (low <= new[at] + 1e-9) & (new[at] <= high + 1e-9)
        for j, i in enumerate(at):
            rows.append(
                _row("public", name, n, one.shape[1], round(float(held[j]), 3), inside[j])
                | {"other": int(other[j]), "whole": 0, "true": _two(new[i]), "score": _two(score[i])}
                | {"width": _two(width[j]), "information": _two(known.information.to_numpy()[i, r])}
            )
    return {"rows": rows}


def _shortest(predicted: Array, level: float) -> tuple[Array, Array, Array]:
    """The first and last cell of the shortest interval of this probability, and its probability.

    That is more than `level` where scores of few items take few values.
    """
    below = np.cumsum(np.pad(predicted, ((0, 0), (1, 0))), axis=1)
    first, last = (each.ravel() for each in np.indices((predicted.shape[1],) * 2))
    held = below[:, last + 1] - below[:, first]
    at = np.where(held >= level - 1e-12, last - first, len(first)).argmin(axis=1)
    return first[at], last[at], held[np.arange(len(held)), at]


def changed(form: str, which: str, n: int) -> dict[str, Any]:
    """What is said about change: every second participant is another person at the second visit."""
    if form == "public":  # of these, the other half of the items is the second visit
        model, _, one, two = _halved(which, n, 29)
        one, two = one.iloc[: 2 * NEW], two.iloc[: 2 * NEW]
        m, fitted = one.shape[1], model.n_participants_
    else:
        population, m, fitted = _population(form, which, ITEMS, 281_000), ITEMS, n
        model = _fitted(population.draw(n, 0), FACTORS)
        one, two = (each.keyed_answers() for each in population.administrations(4 * NEW, 1, times=2))
    moved = np.arange(len(two)) % 2 == 1
    values = two.to_numpy().copy()
    values[moved] = np.roll(values[moved], 1, axis=0)
    two = pd.DataFrame(values, index=one.index, columns=one.columns)
    found = reliable_change(_scored(model, one), _scored(model, two))
    rows = []
    for i, (_, part) in enumerate(found.groupby(level=0, sort=False)):
        for value in part.to_dict("records"):
            rows.append(
                _row(form, which, fitted, m, value["probability"], moved[i])
                | {"said": None if np.isnan(value["probability"]) else round(value["probability"], 3)}
                | {"alarm": int(value["p_value"] < RELIABLE), "difference": _two(value["difference"])}
                | {"holds_zero": int(value["low"] <= 0 <= value["high"])}
            )
    return {"rows": rows}


def _coverage(table: pd.DataFrame) -> Sequence[Block]:
    """Coverage over all and for true scores above 0.1, of both candidates; widths."""
    told = table[table["said"].notna()]
    simulated = told["source"] == SIMULATED
    signal = told["signal"].fillna("")
    groups = {"simulated, all": told[simulated & (signal != "none")], "pure noise": told[signal == "none"]}
    groups |= {f"simulated, n = {n}": told[simulated & (signal != "none") & (told["n"] == n)] for n in SIZES}
    groups |= {f"{name} signal": told[signal == name] for name in SIGNALS[1:]}
    lengths = [f"{m} items" for m in LENGTHS]
    groups |= {str(name): told[told["study"] == name] for name in (*FORMS, *COHORTS, *lengths)}
    groups |= {"half of the items left out": told[simulated & (told["whole"] == 0) & (signal != "none")]}
    groups |= {f"{name}, other half of the items": told[told["study"] == name] for name in PUBLIC}
    rows = []
    for name, part in groups.items():
        above = part[part["true"] > ABOVE]
        shares = [part["happened"].mean(), above["happened"].mean()]
        held = "yes" if all(WANTED[0] <= share <= WANTED[1] for share in shares) else "no"
        others = [f"{each['other'].mean():.3f}" for each in (part, above)]
        said = f"{part['said'].mean():.3f}"
        rows.append([name, str(len(part)), said, *(f"{share:.3f}" for share in shares), held, *others])
    head = [
        "intervals of",
        "n",
        "said",
        "hold",
        f"above {ABOVE}",
        "within .87–.94",
        "other candidate: hold",
        f"above {ABOVE}",
    ]
    whole = told[told["study"].isin(lengths) & (told["whole"] == 1)]
    width = [
        [
            f"{m}",
            *(
                f"{part[name].mean():.{d}f}"
                for name, d in (("width", 2), ("information", 2), ("happened", 3))
            ),
        ]
        for m, part in whole.groupby("items")
    ]
    missing = (
        f"{1 - len(told) / len(table):.1%} of the scores were left out, because the answers said too little."
    )
    return [
        Grid("Share of intervals that hold the true score", head, rows),
        "In simulations, the other candidate is the posterior: shorter, right over all, and too low for high "
        "scores where they are rare. In public studies, the posterior predicts the score of the other half "
        "of the items: by the shortest interval that holds 90 % or more or, as the other candidate, by the "
        "one with equal tails. Scores of few items take few values, so more than 90 % is said.",
        Grid("Width, three factors", ["items", "mean width", "information", "hold"], width),
        missing,
    ]


def _alarms(table: pd.DataFrame) -> Sequence[Block]:
    """False alarms, and change that is found."""
    told = table[table["said"].notna()]
    rows = []
    for (source, study), part in told.groupby(["source", "study"]):
        still, moved = (part[part["happened"] == each] for each in (0, 1))
        numbers = [still["alarm"].mean(), moved["alarm"].mean(), still["holds_zero"].mean()]
        rows.append([f"{source}, {study}" if source == SIMULATED else source, str(len(part))])
        rows[-1] += [f"{number:.3f}" for number in numbers]
    simulated = told[(told["source"] == SIMULATED) & (told["happened"] == 0)]
    every = f"Over all simulations, {simulated['alarm'].mean():.1%} of unchanged scores gave an alarm."
    head = [
        "study",
        "cases",
        "false alarms",
        "found where another person answered",
        "interval holds 0, unchanged",
    ]
    return [f"A change is reliable at p < {RELIABLE}. {every}", Grid("Reliable change", head, rows)]


SCORES = Statement(
    "scores",
    "90 % intervals of scores",
    f"""Simulated studies of {", ".join(map(str, SIZES))} participants ({FACTORS} factors and {ITEMS} items,
    pure noise and yes/no items among them, and cohorts with age and sex as confounds), and the intervals of
    {NEW} new participants each, every second of whom left out half of the items. It happened where the
    interval holds the true score: the score of the participant's answers without error. In public studies,
    where it is unknown, a model of half of the participants scores the others by half of the items, and it
    happened where the score of the other items is inside the 90 % prediction, whose probability is said.
    {POPULATIONS} populations each have {", ".join(map(str, LENGTHS))} items.""",
    from_jobs("scores", scores_jobs, covered),
    _coverage,
)

CHANGE = Statement(
    "change",
    "Change between two visits",
    """New participants answer twice; at the second visit, every second one is another person. Said is the
    probability of a change. In public studies, two halves of the items stand for two visits.""",
    from_jobs("change", change_jobs, changed),
    _alarms,
)
