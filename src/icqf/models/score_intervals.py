"""How sure a score is: an interval for every score, its information, and reliable change between visits."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.data.frames import AnswersInParts, as_pandas, is_dask_array
from icqf.data.questionnaire import Questionnaire
from icqf.data.settings import parameter_error
from icqf.engines.threads import one_blas_thread
from icqf.errors import Advice, InputError
from icqf.models.score_table import N_CELLS, ScoreTable, score_table
from icqf.models.statement import NewAnswers, state

if TYPE_CHECKING:
    from icqf.models.base import FittedModel

Array = NDArray[Any]

LEAST_INFORMATION = 0.1  # below this share of the variance, a score is left out
NOTHING_ANSWERED = "no answers"
TOO_LITTLE = "the answers given say next to nothing about this factor"
NOT_MEASURED = "the items say next to nothing about this factor"
RELIABLE = 0.05  # p-value of a reliable change


@dataclass(frozen=True, eq=False)
class ScoreIntervals:
    """Scores with their intervals; one row per participant, one column per factor.

    Attributes
    ----------
    scores, low, high : DataFrame
        Each score and the ends of its interval; NaN where the answers say next to nothing.
    information : DataFrame
        Share of the variance of true scores that the answers given resolve, between 0 and 1: the reliability
        of the score for these answers.
    reasons : DataFrame of str
        Why a score is missing; empty where there is one.
    level : float
        Probability that the interval holds the true score.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> study = load_demo()
    >>> scored = ICQF(4).fit(study).score_intervals(study)
    >>> width = scored.high - scored.low
    >>> width.shape, scored.level
    ((600, 4), 0.9)
    """

    scores: pd.DataFrame
    low: pd.DataFrame
    high: pd.DataFrame
    information: pd.DataFrame
    reasons: pd.DataFrame
    level: float
    model_table: ScoreTable = field(repr=False)
    fractions: Array = field(repr=False)

    def rows(self, ids: Sequence[Any]) -> ScoreIntervals:
        """The intervals of these participants, whose ids are unique."""
        at = self.scores.index.get_indexer(pd.Index(ids))
        names = ("scores", "low", "high", "information", "reasons")
        parts = {name: getattr(self, name).iloc[at] for name in names}
        return replace(self, **parts, fractions=self.fractions[at])

    def table(self) -> pd.DataFrame:
        """All numbers in one table: mood, mood_low, mood_high, mood_information and so on."""
        parts = {"": self.scores, "_low": self.low, "_high": self.high, "_information": self.information}
        columns = {
            f"{name}{ending}": part.iloc[:, at].to_numpy()
            for at, name in enumerate(self.scores.columns)
            for ending, part in parts.items()
        }
        return pd.DataFrame(columns, index=self.scores.index)


@one_blas_thread()
def score_intervals(
    model: FittedModel, X: Any, *, confounds: Any = None, level: float = 0.9
) -> ScoreIntervals:
    """Scores of participants with their intervals; see `FittedModel.score_intervals`."""
    if isinstance(level, bool) or not isinstance(level, (int, float)) or not 0.5 <= level < 1:
        raise parameter_error("level", f"={level!r} is not a probability from 0.5 to below 1, such as 0.9.")
    if is_dask_array(X) or isinstance(X, (str, os.PathLike)) or AnswersInParts.of(X) is not None:
        raise InputError(
            "Intervals of scores need the answers in memory.",
            remedy=Advice("Give a table; `icqf score` writes them for files of any size."),
        )
    table = score_table(model)
    stated = state(model, NewAnswers(model, X, confounds))
    names = model.get_feature_names_out()
    shape = (len(stated.kept), len(names))
    scores, low, high, fractions = (np.full(shape, np.nan) for _ in range(4))
    fractions[:] = 0
    if stated.kept.any():
        scores[stated.kept] = model.solve_scores(stated.problem).T
        answered = np.concatenate(
            [block.observed().astype(bool) for block in stated.problem.observations.blocks()]
        )
        fractions[stated.kept] = table.fractions(answered)
    information = table.informations(fractions)
    told = stated.kept[:, None] & (information >= LEAST_INFORMATION)
    for r in range(shape[1]):
        rows = told[:, r]
        low[rows, r], high[rows, r] = table.at(r, table.ends(r, level), scores[rows, r], fractions[rows, r])
    scores[~told] = np.nan
    reasons = np.full(shape, "", dtype=object)
    reasons[~told] = TOO_LITTLE
    reasons[:, table.information[:, -1] < LEAST_INFORMATION] = NOT_MEASURED
    reasons[~stated.kept] = NOTHING_ANSWERED
    frame = as_pandas(X.answers if isinstance(X, Questionnaire) else X)
    index = frame.index if isinstance(frame, pd.DataFrame) else None
    parts = [pd.DataFrame(each, index, names) for each in (scores, low, high, information)]
    parts.append(pd.DataFrame(reasons, index, names, dtype=object))
    return ScoreIntervals(parts[0], parts[1], parts[2], parts[3], parts[4], float(level), table, fractions)


def reliable_change(before: ScoreIntervals, after: ScoreIntervals) -> pd.DataFrame:
    """How far the scores of the same participants have changed between two visits.

    Parameters
    ----------
    before, after : ScoreIntervals
        Of the same model and the same participants, in any order. The level of the intervals is that of
        `after`.

    Returns
    -------
    DataFrame
        One row per participant and factor: `difference` of the scores; `low` and `high`, the interval of the
        true difference (from the two intervals, after Zou and Donner, 2008); `probability` of a change, if
        half of all participants did not change and the scores of the others were drawn anew; and `p_value`:
        how often chance gives so unusual a second score where nothing changed, given the first, which allows
        for regression to the mean. A change is reliable where it is below 0.05. NaN where either score is
        missing.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.models import reliable_change
    >>> study = load_demo()
    >>> scored = ICQF(4).fit(study).score_intervals(study)
    >>> change = reliable_change(scored, scored)
    >>> list(change.columns), bool((change["difference"].dropna() == 0).all())
    (['difference', 'low', 'high', 'probability', 'p_value'], True)
    """
    table, names = after.model_table, after.scores.columns
    if not before.scores.columns.equals(names) or not table.same_as(before.model_table):
        raise InputError(
            "The scores before and after come from different models; score both visits with one."
        )
    ids = after.scores.index
    if not ids.is_unique or not before.scores.index.is_unique:
        raise InputError("A participant appears twice in one visit; give one row per participant.")
    at = before.scores.index.get_indexer(ids)
    if len(ids) != len(before.scores) or (at < 0).any():
        alone = ids[at < 0].union(before.scores.index.difference(ids)).tolist()
        raise InputError(f"Participant {alone[0]!r} has only one of the two visits; give both, or neither.")
    first, second = before.scores.to_numpy()[at], after.scores.to_numpy()
    found = np.full((*second.shape, 5), np.nan)
    for r in range(len(names)):
        rows = np.flatnonzero(~np.isnan(first[:, r]) & ~np.isnan(second[:, r]))
        old = (first[rows, r], before.fractions[at][rows, r])
        new = (second[rows, r], after.fractions[rows, r])
        found[rows, r] = _changed(table, r, old, new, after.level)
    whole = [(name, factor) for name in ids for factor in names]
    index = pd.MultiIndex.from_tuples(whole, names=[str(ids.name or "participant"), "factor"])
    columns = ["difference", "low", "high", "probability", "p_value"]
    return pd.DataFrame(found.reshape(-1, 5), index, columns)


def _changed(
    table: ScoreTable, r: int, old: tuple[Array, Array], new: tuple[Array, Array], level: float
) -> Array:
    """Difference, its interval, probability and p-value (n, 5), of scores and fractions of information."""
    before = table.at(r, np.moveaxis(table.posterior(r), 2, 0), *old)
    # What the second score would be if nothing had changed (given the first), or if everything had.
    same, anew = table.again(r, before, new[1]), table.again(r, table.prior[r][:, None], new[1])
    cell, through = table.cells(r, new[0])
    mass, other = (np.take_along_axis(part, cell[None], 0)[0] for part in (same, anew))
    below = np.take_along_axis(np.cumsum(same, axis=0), cell[None], 0)[0] - mass
    at_end = (cell == 0) | (cell == N_CELLS)  # many scores share the lowest or the highest value
    down, up = below + mass * np.where(at_end, 1, through), 1 - below - mass * np.where(at_end, 0, through)
    # The other tail counts as well, unless scores at its end are so common that it is never that small.
    down, up = down + np.where(same[-1] <= down, down, 0), up + np.where(same[0] <= up, up, 0)
    ends = table.ends(r, level)
    (low, high), (new_low, new_high) = table.at(r, ends, *old), table.at(r, ends, *new)
    less = np.hypot(np.maximum(new[0] - new_low, 0), np.maximum(high - old[0], 0))
    more = np.hypot(np.maximum(new_high - new[0], 0), np.maximum(old[0] - low, 0))
    difference, probability = new[0] - old[0], other / np.maximum(other + mass, 1e-300)
    # Only in the direction of the change: a score that stays where most would fall has not changed.
    p_value = np.clip(np.where(difference > 0, up, np.where(difference < 0, down, 1.0)), 0, 1)
    return np.column_stack([difference, difference - less, difference + more, probability, p_value])
