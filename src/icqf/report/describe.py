"""Who answered, how each item was answered, and (only when asked for) each participant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from icqf.data.questionnaire import Questionnaire
from icqf.estimator import ICQF
from icqf.report import words
from icqf.report.tree import Bin, Covariate, ItemRow, Participant, Sample
from icqf.summary import Summary

# Upper ends of the bands of missing answers a participant may fall into.
_BANDS = ((0.0, "none"), (0.01, "up to 1%"), (0.05, "1–5%"), (0.1, "5–10%"), (0.2, "10–20%"), (0.5, "20–50%"))


def describe_sample(
    questionnaire: Questionnaire,
    answers: pd.DataFrame,
    kept: np.ndarray,
    *,
    weighted: bool,
    groups: np.ndarray | None,
) -> Sample:
    """The sample in numbers and sentences; shares of missing answers are among the fitted participants."""
    missing = answers[kept].isna().to_numpy()
    n, m = missing.shape
    by_person = missing.mean(axis=1)
    share, complete = float(missing.mean()), float((by_person == 0).mean())
    structural = None
    if questionnaire.structural is not None:
        structural = float(questionnaire.structural[kept].to_numpy(dtype=bool).mean())
    confounds = questionnaire.confounds
    covariates = () if confounds is None else tuple(_covariate(confounds[kept][name]) for name in confounds)
    scales: dict[str, int] = {}
    for item in questionnaire.items:
        if item.subscale:
            scales[item.subscale] = scales.get(item.subscale, 0) + 1
    said = [f"{words.count_of(n, 'participant')} answered {words.count_of(m, 'item')}."]
    if len(answers) > n:
        said.append(
            f"{words.count_of(len(answers) - n, 'further participant')} answered nothing and took no part."
        )
    said.append(
        f"{words.percent(share, 1)} of the answers are missing, and {words.percent(complete)} of the "
        f"participants "
        "answered everything. Missing answers are left out of the fit; nothing is filled in."
        if share
        else "No answer is missing."
    )
    if structural:
        said.append(
            f"{words.percent(structural, 1)} of the answers are missing because the item was not asked."
        )
    for covariate in covariates:
        said.append(_covariate_words(covariate))
    turned = sum(item.reverse for item in questionnaire.items)
    if turned:
        said.append(
            f"{words.count_of(turned, 'item')} with the opposite direction "
            f"{'was' if turned == 1 else 'were'} "
            "turned, so that a high answer means more of a problem or trait throughout."
        )
    if weighted:
        said.append("The model was fitted with sample weights; the description of the sample is unweighted.")
    return Sample(
        words=tuple(said),
        source=questionnaire.source,
        n_participants=len(answers),
        n_fitted=n,
        n_items=m,
        n_groups=None if groups is None else int(groups.max()) + 1,
        weighted=weighted,
        share_missing=share,
        share_structural=structural,
        complete=complete,
        missing_by_person=_bands(by_person),
        covariates=covariates,
        subscales=tuple(scales.items()),
        notes=tuple(questionnaire.notes),
    )


def _bands(by_person: np.ndarray) -> tuple[Bin, ...]:
    bins, below = [], -1.0
    for end, label in (*_BANDS, (1.0, "over half")):
        n = int(((by_person > below) & (by_person <= end)).sum())
        bins.append(Bin(label, n, n / len(by_person)))
        below = end
    return tuple(bins)


def _covariate(values: pd.Series) -> Covariate:
    known = values.dropna()
    gaps = int(values.isna().sum())
    numeric = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if not numeric or known.nunique() <= 2:
        found = known.astype(str).value_counts().sort_index()
        bins = tuple(Bin(str(label), int(n), int(n) / len(known)) for label, n in found.items())
        return Covariate(str(values.name), gaps, categories=bins)
    number = known.astype(float)
    return Covariate(
        str(values.name),
        gaps,
        mean=float(number.mean()),
        sd=float(number.std()),
        low=float(number.min()),
        high=float(number.max()),
    )


def _covariate_words(covariate: Covariate) -> str:
    gap = f" ({words.count_of(covariate.n_missing, 'value')} missing)" if covariate.n_missing else ""
    if covariate.mean is not None:
        return (
            f"{covariate.name.capitalize()}: {covariate.low:g} to {covariate.high:g}, mean "
            f"{words.number(covariate.mean, 1)} (SD {words.number(covariate.sd, 1)}){gap}."
        )
    parts = [f"{words.whole(bin.n)} {bin.label} ({words.percent(bin.share)})" for bin in covariate.categories]
    return f"{covariate.name.capitalize()}: {words.joined(parts)}{gap}."


def describe_items(
    questionnaire: Questionnaire,
    answers: pd.DataFrame,
    model: ICQF,
    summary: Summary,
    names: Sequence[str],
    *,
    hidden: np.ndarray | None,
    rival: np.ndarray | None,
) -> tuple[ItemRow, ...]:
    """Every item with its answers (turned where it is keyed in reverse) and its fit."""
    table = answers.to_numpy(dtype=float, na_value=np.nan)
    low, high = (model.item_range_[end].to_numpy() for end in ("min", "max"))
    given = (~np.isnan(table)).sum(axis=0)
    shown = dict(zip(model.get_feature_names_out(), names, strict=True))
    rows = []
    for j, item in enumerate(questionnaire.items):
        values = table[~np.isnan(table[:, j]), j]
        rows.append(
            ItemRow(
                name=item.name,
                wording=item.wording,
                subscale=item.subscale,
                reverse=item.reverse,
                low=float(low[j]),
                high=float(high[j]),
                n_answered=int(given[j]),
                share_missing=1 - float(given[j]) / len(table),
                mean=float(values.mean()),
                sd=float(values.std(ddof=1)) if len(values) > 1 else 0.0,
                floor=float((values == low[j]).mean()),
                ceiling=float((values == high[j]).mean()),
                strongest=shown.get(summary.items["factor"].iloc[j], ""),
                fit=float(summary.items["variance_explained"].iloc[j]),
                fit_hidden=None if hidden is None else float(hidden[j]),
                fit_comparison=None if rival is None else float(rival[j]),
            )
        )
    return tuple(rows)


def participants(answers: pd.DataFrame, scores: np.ndarray) -> tuple[Participant, ...]:
    """Every participant's id, number of answers and scores (NaN for who answered nothing)."""
    given = answers.notna().to_numpy().sum(axis=1)
    return tuple(
        Participant(str(name), int(n), tuple(float(value) for value in row))
        for name, n, row in zip(answers.index, given, scores, strict=True)
    )
