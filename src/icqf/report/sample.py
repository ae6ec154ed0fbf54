"""The section on the sample: who answered, how each item was answered, and (if asked) by whom."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from icqf.data.questionnaire import Questionnaire
from icqf.report import words
from icqf.report.schema import Bin, ConfoundSummary, ItemRow, Participant, Sample


def sample_section(
    questionnaire: Questionnaire,
    answered: pd.DataFrame,
    bands: pd.DataFrame,
    confounds: Sequence[ConfoundSummary],
    *,
    n_fitted: int,
    n_groups: int | None,
    weighted: bool,
    share_structural: float | None,
    limit: int,
) -> Sample:
    """The sample in numbers and sentences; shares of missing answers are among the fitted participants.

    `answered` describes the answers to each item (`describe_answers`), and `bands` counts participants by
    their missing answers (`missing_bands`). Numbers of participants below `limit` are not shown.
    """
    n, m, everyone = n_fitted, len(answered), questionnaire.n_participants
    share = (n * m - int(answered["n_answered"].sum())) / (n * m)
    complete = float(bands["share"].iloc[0])
    said = [f"{words.count_of(n, 'participant')} answered {words.count_of(m, 'item')}."]
    if everyone > n:
        said.append(
            f"{words.count_of(everyone - n, 'further participant')} gave no answers (or had a weight of 0) "
            f"and {'was' if everyone - n == 1 else 'were'} left out."
        )
    said.append(
        f"{words.percent(share, 1)} of the answers are missing, and {words.percent(complete)} of the "
        "participants answered everything. Missing answers are left out of the fit; nothing is imputed."
        if share
        else "No answer is missing."
    )
    if share_structural:
        said.append(
            f"{words.percent(share_structural, 1)} of the answers are missing because the item was not asked."
        )
    said += [_confound_words(confound, limit) for confound in confounds]
    n_reversed = sum(item.reverse for item in questionnaire.items)
    if n_reversed:
        said.append(
            f"{words.count_of(n_reversed, 'item')} worded in the opposite direction "
            f"{'was' if n_reversed == 1 else 'were'} reversed, so that a high answer always means more of a "
            "problem or trait."
        )
    if weighted:
        said.append("The model was fitted with sample weights; this description of the sample is unweighted.")
    subscales = Counter(item.subscale for item in questionnaire.items if item.subscale)
    return Sample(
        words=tuple(said),
        source=questionnaire.source,
        n_participants=everyone,
        n_fitted=n,
        n_items=m,
        n_groups=n_groups,
        weighted=weighted,
        share_missing=share,
        share_structural=share_structural,
        complete=complete,
        missing_by_participant=tuple(
            Bin.of(label, number, n, limit=limit)
            for label, number in bands[["label", "n"]].itertuples(index=False)
        ),
        confounds=tuple(confounds),
        subscales=tuple(subscales.items()),
        notes=tuple(questionnaire.notes),
    )


def confound_summary(name: str, n_missing: int, table: pd.Series, *, limit: int) -> ConfoundSummary:
    """A confound as `describe_confound` describes it."""
    if table.name != "n":
        low, high = float(table["low"]), float(table["high"])
        # To a hundredth of the range or so: whole years of ages, not the digits by which somebody is known.
        digits = max(0, 1 - math.floor(math.log10(high - low))) if high > low else 0
        low, high = round(low, digits), round(high, digits)
        return ConfoundSummary(
            name, n_missing, mean=float(table["mean"]), sd=float(table["sd"]), low=low, high=high
        )
    bins = tuple(Bin.of(label, n, int(table.sum()), limit=limit) for label, n in table.items())
    return ConfoundSummary(name, n_missing, categories=bins)


def _category(label: str) -> str:
    """A category in a sentence: its label, or its number where no label is known."""
    number = pd.to_numeric(label, errors="coerce")
    return label if np.isnan(number) else f"coded {number:g}"


def _confound_words(confound: ConfoundSummary, limit: int) -> str:
    n = confound.n_missing
    missing = f"fewer than {limit} values" if n < limit else words.count_of(n, "value")
    gap = f" ({missing} missing)" if n else ""
    name = confound.name[:1].upper() + confound.name[1:]
    if confound.mean is not None:
        return (
            f"{name}: {confound.low:g} to {confound.high:g}, mean {words.number(confound.mean, 1)} "
            f"(SD {words.number(confound.sd, 1)}){gap}."
        )
    parts = [
        f"{words.members(bin)} {_category(bin.label)}"
        + ("" if bin.n is None else f" ({words.percent(bin.share)})")
        for bin in confound.categories
    ]
    return f"{name}: {words.joined(parts)}{gap}."


def item_rows(
    questionnaire: Questionnaire,
    answered: pd.DataFrame,
    ranges: pd.DataFrame,
    fit: pd.DataFrame,
    names: Mapping[str, str],
    *,
    hidden: np.ndarray | None,
    rival: pd.Series | None,
) -> tuple[ItemRow, ...]:
    """Every item with its answers (reversed where it is keyed in reverse) and how well it is described.

    `fit` is the summary's table of items, `names` the shown name of every factor, and `hidden` and `rival`
    the R² of hidden answers and of the factor analysis.
    """
    return tuple(
        ItemRow(
            name=item.name,
            wording=item.wording,
            subscale=item.subscale,
            reverse=item.reverse,
            low=float(ranges["min"].iloc[j]),
            high=float(ranges["max"].iloc[j]),
            n_answered=int(row["n_answered"]),
            share_missing=float(row["share_missing"]),
            mean=float(row["mean"]),
            sd=float(row["sd"]),
            floor=float(row["floor"]),
            ceiling=float(row["ceiling"]),
            strongest=names.get(fit["factor"].iloc[j], ""),
            explained=float(fit["variance_explained"].iloc[j]),
            fit=float(fit["r_squared"].iloc[j]),
            fit_hidden=None if hidden is None else float(hidden[j]),
            fit_comparison=None if rival is None else float(rival.iloc[j]),
        )
        for j, (item, (_, row)) in enumerate(zip(questionnaire.items, answered.iterrows(), strict=True))
    )


def participant_rows(answers: pd.DataFrame, scores: pd.DataFrame) -> tuple[Participant, ...]:
    """Every participant's id, number of answers and scores (NaN for those who gave no answers)."""
    given = answers.notna().sum(axis=1)
    return tuple(
        Participant(str(name), int(n), tuple(float(value) for value in row))
        for name, n, row in zip(answers.index, given, scores.to_numpy(dtype=float), strict=True)
    )
