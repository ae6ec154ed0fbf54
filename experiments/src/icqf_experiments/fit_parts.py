"""Fit every part of every study with every number of factors, for the evaluation of all rules."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.baselines import every_rule
from icqf.data.questionnaire import Questionnaire
from icqf.engines.parallel import run_all
from icqf.engines.progress import Progress
from icqf.errors import InputError
from icqf.models import ICQFCV
from icqf.models.icqf import ICQF
from icqf.models.selection_rules import best_by_k, best_row
from icqf.resampling.bootstrap import agreement_of
from icqf.resampling.matching import correlations, paired
from icqf_experiments.split_studies import SplitStudy

Array = NDArray[Any]


@dataclass(frozen=True)
class Effort:
    """How much is fitted of each part."""

    most_factors: int = 14  # the largest number of factors tried
    beyond: int = 2  # numbers of factors above the best-predicting one that are resampled
    fixed: int = 7  # the largest number that is always fitted
    n_starts: int = 4  # starts of a final fit
    n_resamples: int = 10  # resamples, and divisions into halves, of its participants


@dataclass(frozen=True, eq=False)
class FittedPart:
    """One part of a study, fitted with each number of factors from 1 on."""

    ground: str  # the name of the split study
    number: int  # which part it is
    n: int
    m: int
    errors: pd.DataFrame  # cross-validated errors, as `ICQFCV.errors_`
    stability: pd.DataFrame  # agreement between halves, as `ICQFCV.stability_`
    # (k, m) of the final fit (best of four starts) with each number of factors, at that number's best β, in
    # the problem's units; up to the largest number that any rule chooses
    loadings: list[Array]
    agreement: list[
        Array
    ]  # (B, k) of each factor with resamples, up to two beyond the best-predicting number
    halves: list[Array]  # the same between halves
    # the number of factors by each rule of factor analysis; None if it cannot be run
    counts: dict[str, int | None]


def collect(
    grounds: Iterable[SplitStudy],
    *,
    effort: Effort | None = None,
    checkpoint: Path | None = None,
    n_jobs: int | None = None,
    callback: Callable[[Progress], object] | None = None,
) -> list[FittedPart]:
    """Fit all parts, except those finished in the journal."""
    effort = effort or Effort()
    jobs: dict[str, tuple[Any, ...]] = {}
    for ground in grounds:
        for number, part in enumerate(ground.parts()):
            # On simulated cohorts, the rules of factor analysis are compared in docs/results/rules.md.
            jobs[f"{ground.name}/{number}"] = (part, ground.n_major is None, effort)
    results = run_all(jobs, _fit, n_jobs=n_jobs, checkpoint=checkpoint, callback=callback, mixed=True)
    return [_part(name, result) for name, result in results.items()]


def found_again(a: Array, b: Array) -> Array:
    """Return the correlation of each factor in a (k, m) with its counterpart in b (k', m); 0 without one."""
    similarity = correlations(a, b)
    rows, columns = paired(similarity)
    values = np.zeros(len(a))
    values[rows] = similarity[rows, columns]
    return values


def _fit(part: Questionnaire, other_rules: bool, effort: Effort) -> dict[str, Any]:
    with warnings.catch_warnings(action="ignore"):
        return _fit_all_numbers(part, _counts(part) if other_rules else {}, effort)


def _fit_all_numbers(part: Questionnaire, counts: dict[str, int | None], effort: Effort) -> dict[str, Any]:
    most = min(effort.most_factors, part.n_items // 3 + 1)
    ks = range(1, most + 1)
    search = ICQFCV(ICQF(), n_components=ks, n_repeats=1, stability=True, random_state=0).fit(part)
    resampled = min(best_row(search.errors_)[0] + effort.beyond, most)
    highest = min(max(resampled, effort.fixed, *(k for k in counts.values() if k is not None)), most)
    rows = best_by_k(search.errors_)
    rows = rows[rows["n_components"] <= highest]
    problem, models = ICQF(1).state(part).problem, []
    for k, beta in zip(rows["n_components"], rows["beta"], strict=True):
        model = ICQF(int(k), beta=float(beta), n_init=effort.n_starts, random_state=0).fit(part)
        models.append((float(beta), problem.scaled_loadings(model.components_)))
    agreement = agreement_of(
        problem, models[:resampled], n_resamples=effort.n_resamples, rng=np.random.default_rng(1)
    )
    return {
        "n": part.n_participants,
        "m": part.n_items,
        "errors": search.errors_.to_dict("list"),
        "stability": [] if search.stability_ is None else search.stability_.to_dict("list"),
        "loadings": [loadings.round(6).tolist() for _, loadings in models],
        "agreement": [each.resampled.round(6).tolist() for each in agreement],
        "halves": [each.halves.round(6).tolist() for each in agreement],
        "counts": counts,
    }


def _counts(part: Questionnaire) -> dict[str, int | None]:
    """Return the number of factors by each rule of factor analysis; empty if they cannot be run.

    They need correlations, and in some studies not all pairs of items were answered together.
    """
    try:
        table = every_rule(part.keyed_answers(), random_state=0).table
    except InputError:
        return {}
    return {
        str(rule): None if pd.isna(k) else int(k)
        for rule, k in zip(table["rule"], table["n_components"], strict=True)
    }


def _part(name: str, result: dict[str, Any]) -> FittedPart:
    ground, _, number = name.partition("/")
    return FittedPart(
        ground,
        int(number),
        result["n"],
        result["m"],
        pd.DataFrame(result["errors"]),
        pd.DataFrame(result["stability"]),
        [np.array(each) for each in result["loadings"]],
        [np.array(each) for each in result["agreement"]],
        [np.array(each) for each in result["halves"]],
        result["counts"],
    )
