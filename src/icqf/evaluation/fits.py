"""Fit methods to training sets of several sizes, over many splits of a study; on disk as they finish."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.data.questionnaire import Questionnaire
from icqf.errors import InputError, counted, listed
from icqf.evaluation.classify import classified
from icqf.evaluation.methods import Method, trained
from icqf.jobs.parallel import Progress, run_all
from icqf.resampling.splits import FULL, make_splits

Array = NDArray[Any]
Callback = Callable[[Progress], object]
FEWEST_CASES = 10
SIZES = (0.8, 0.6, 0.4, 0.2)  # training sets, as shares of the development set


@dataclass(frozen=True, eq=False)
class Part:
    """One method fitted to one training set."""

    split: int
    size: float
    n_training: int
    method: str
    n_components: int | None = None
    beta: float | None = None
    loadings: pd.DataFrame | None = None
    auc: dict[str, float] = field(default_factory=dict)
    failed: str = ""

    @property
    def factors(self) -> pd.DataFrame:
        """The loadings; an error for a method without factors."""
        if self.loadings is None:
            raise InputError(f"The method {self.method!r} has no loadings to compare; leave it out.")
        return self.loadings


def fit_parts(
    questionnaire: Questionnaire,
    labels: pd.DataFrame | None,
    methods: Sequence[Method],
    *,
    sizes: Sequence[float],
    n_splits: int,
    random_state: int,
    n_jobs: int | None,
    checkpoint: Any,
    callback: Callback | None,
) -> list[Part]:
    """Every method on every training set; with labels, also how well it predicts those held out."""
    study = answered(questionnaire).with_observed_ranges()
    _refuse_unknown_confounds(study)
    known = None if labels is None else checked_labels(labels, study)
    splits = make_splits(study, known, sizes=sizes, n_splits=n_splits, random_state=random_state)
    jobs, places = {}, {}
    for size in sorted(set(sizes), reverse=True):
        for number, split in enumerate(splits):
            seed = int(np.random.SeedSequence([random_state, number]).generate_state(1)[0] // 2)
            rows = (split.training[size], split.validation, split.held_out)
            tested = known if size != FULL else None
            for method in methods:
                name = f"{size} {number} {method!r}"
                jobs[name] = (study, tested, method, rows, seed)
                places[name] = (number, size, len(rows[0]), method.name)
    results = run_all(
        jobs,
        fit_part,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        callback=callback,
    )
    parts = [_part(places[name], results[name], study) for name in jobs]
    if all(part.failed for part in parts):
        raise InputError(f"No fit was possible. {parts[0].method}: {parts[0].failed}")
    return parts


def failures(parts: Sequence[Part]) -> tuple[str, ...]:
    """Say which fits were not possible, and why."""
    return tuple(
        f"{part.method}, size {part.size:g}, split {part.split + 1}: {part.failed}"
        for part in parts
        if part.failed
    )


def fit_part(
    study: Questionnaire,
    labels: pd.DataFrame | None,
    method: Method,
    rows: tuple[Array, Array, Array],
    seed: int,
) -> dict[str, Any]:
    """Fit a method to the training rows alone; score the validation and held-out rows with what it learned.

    `rows` are the positions of the training, validation and held-out participants.
    """
    fitted = trained(method, study.take(rows[0]), random_state=seed)
    if isinstance(fitted, str):
        return {"failed": fitted}
    found: dict[str, Any] = {"n_components": fitted.n_components, "beta": fitted.beta}
    if fitted.loadings is not None:
        found["loadings"] = fitted.loadings.to_numpy(dtype=float).tolist()
    if labels is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores = [fitted.features(study.take(part)) for part in rows]
        found["auc"] = {
            str(name): classified(scores, [labels[name].to_numpy()[part] for part in rows]) for name in labels
        }
    return found


def answered(questionnaire: Questionnaire) -> Questionnaire:
    """Return the questionnaire without those who answered nothing."""
    some = questionnaire.answers.notna().any(axis=1).to_numpy()
    return questionnaire if some.all() else questionnaire.take(np.flatnonzero(some))


def _refuse_unknown_confounds(study: Questionnaire) -> None:
    if study.confounds is None:
        return
    for name, column in study.confounds.items():
        unknown = column.index[column.isna()]
        if len(unknown):
            more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
            raise InputError(
                f"The confound {str(name)!r} is missing for participant {str(unknown[0])!r}{more}; leave "
                "them out, or leave out the confound."
            )


def checked_labels(labels: pd.DataFrame, study: Questionnaire) -> pd.DataFrame:
    """Return the labels of the study's participants as 1, 0 or NaN."""
    if isinstance(labels, pd.Series):
        labels = labels.to_frame()
    known = study.answers.index.intersection(labels.index)
    if not len(known):
        raise InputError(
            f"No participant of the labels is in the answers (the answers have "
            f"{listed(study.answers.index, most=3)}, the labels {listed(labels.index, most=3)}); index both "
            "by participant."
        )
    if not labels.index.is_unique:
        again = labels.index[labels.index.duplicated()][0]
        raise InputError(f"The labels have the participant {str(again)!r} twice; keep one row each.")
    table = labels.reindex(study.answers.index)
    for name in table:
        try:
            table[name] = table[name].astype(float)
        except (TypeError, ValueError):
            raise InputError(f"The label {str(name)!r} is not numeric; code it as 1 and 0.") from None
        other = table[name][table[name].notna() & ~table[name].isin([0, 1])]
        if len(other):
            raise InputError(
                f"The label {str(name)!r} is {other.iloc[0]:g} for participant {str(other.index[0])!r}; a "
                "label must be 1, 0 or missing."
            )
        for value, what in ((1, "case"), (0, "control")):
            number = int((table[name] == value).sum())
            if number < FEWEST_CASES:
                raise InputError(
                    f"The label {str(name)!r} has {counted(number, what)}; at least {FEWEST_CASES} are "
                    "needed to divide them into parts. Leave the label out."
                )
    return table


def _part(place: tuple[int, float, int, str], found: dict[str, Any], study: Questionnaire) -> Part:
    if "failed" in found:
        return Part(*place, failed=found["failed"])
    loadings = None
    if "loadings" in found:
        names = [f"factor{r + 1}" for r in range(found["n_components"])]
        loadings = pd.DataFrame(found["loadings"], index=study.answers.columns, columns=names)
    return Part(
        *place,
        n_components=found["n_components"],
        beta=found["beta"],
        loadings=loadings,
        auc=found.get("auc", {}),
    )
