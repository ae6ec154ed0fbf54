"""One person's answers: which of them raise each score, and which are unexpected given the scores."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.data.questionnaire import Item, Questionnaire
from icqf.errors import InputError
from icqf.models.score_intervals import ScoreIntervals, reliable_change, simulate_participants

if TYPE_CHECKING:
    from icqf.models.icqf import ICQF

Array = NDArray[Any]
UNEXPECTED = 0.01  # share of the answers of simulated participants
N_SIMULATED = 2000


@dataclass(frozen=True, eq=False)
class Unexpected:
    """Answers that hardly anyone with the same scores gives.

    Attributes
    ----------
    answers : DataFrame
        One row per unexpected answer, rarest first: `item`, `answer`, `expected` (both as the person would
        give them) and `tail`, the probability of an answer so high, or so low, given the scores.
    by_chance : float
        How many there are on average if a person answers as the model expects.
    probability : float
        Of at least as many by chance.
    """

    answers: pd.DataFrame
    by_chance: float
    probability: float


@dataclass(frozen=True, eq=False)
class Person:
    """What one person's answers say.

    Attributes
    ----------
    id : str
    questionnaire : Questionnaire
        The answers of this person alone.
    scores : Series
        By factor.
    intervals : ScoreIntervals or None
        Scores with their intervals, one row; None where the model gives none.
    raises : DataFrame (items, factors)
        How much lower each score would be if this one question had been answered at the other end of its
        range, where the factor adds nothing; 0 where it was, NaN where it was left out.
    unexpected : Unexpected or None
        None where the model does not say how answers vary.
    change : DataFrame or None
        Since the visit before, as in `icqf.models.reliable_change`, by factor.
    """

    id: str
    questionnaire: Questionnaire
    scores: pd.Series
    intervals: ScoreIntervals | None
    raises: pd.DataFrame
    unexpected: Unexpected | None
    change: pd.DataFrame | None = None

    @property
    def missing(self) -> list[str]:
        """The items that were left out."""
        row = self.questionnaire.answers.iloc[0]
        return [str(name) for name in row.index[row.isna()]]


def describe_person(
    model: ICQF,
    answers: Questionnaire,
    *,
    before: Questionnaire | None = None,
    usual: UsualAnswers | None = None,
) -> Person:
    """Describe the answers of one person.

    Parameters
    ----------
    model : ICQF
        A fitted model of the items.
    answers : Questionnaire
        The answers of one participant.
    before : Questionnaire, optional
        The answers of the same participant at the visit before.
    usual : UsualAnswers, optional
        Of this model, if the answers of several persons are described.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.analyses import describe_person
    >>> from icqf.datasets import load_demo
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> person = describe_person(ICQF(2).fit(demo), demo.take([7]))
    >>> person.raises.shape, person.unexpected.by_chance < 1
    ((19, 2), True)
    """
    if answers.n_participants != 1:
        raise InputError(f"The answers are of {answers.n_participants} participants; give those of one.")
    # the command has said it once for all participants
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        intervals, change, unexpected = None, None, None
        if model.score_distribution_ is not None:
            intervals = model.score_intervals(answers)
            unexpected = (usual or UsualAnswers.of(model)).among(model, answers)
            if before is not None:
                change = reliable_change(model.score_intervals(before), intervals).droplevel(0)
        scores = np.asarray(model.transform(answers))[0] if intervals is None else intervals.scores.iloc[0]
        return Person(
            str(answers.answers.index[0]),
            answers,
            pd.Series(scores, model.get_feature_names_out(), dtype=float),
            intervals,
            _raises(model, answers),
            unexpected,
            change,
        )


def _raises(model: ICQF, answers: Questionnaire) -> pd.DataFrame:
    """How much each answer raises each score: the score as it is, minus the score with the lowest answer."""
    given = answers.keyed_answers().to_numpy(dtype=float)[0]
    lowest = model.item_range_["min"].to_numpy()
    raised = np.flatnonzero(given > lowest)
    rows = np.tile(given, (1 + len(raised), 1))
    rows[1 + np.arange(len(raised)), raised] = lowest[raised]
    effect = np.zeros((len(given), len(model.components_)))
    if np.isfinite(given).any():
        frame, confounds = pd.DataFrame(rows, columns=list(model.item_range_.index)), answers.confounds
        if confounds is not None:
            confounds = confounds.iloc[np.zeros(len(rows), dtype=int)].set_axis(frame.index)
        scores = np.asarray(model.transform(frame, confounds=confounds))
        effect[raised] = scores[0] - scores[1:]
    effect[np.isnan(given)] = np.nan
    return pd.DataFrame(effect, list(model.item_range_.index), model.get_feature_names_out())


@dataclass(frozen=True, eq=False)
class UsualAnswers:
    """What simulated participants of a model answer, and how rare an answer is that is called unexpected.

    Attributes
    ----------
    limit : float
        Probability below which an answer is unexpected, given the scores: that of 1 in 100 answers of
        simulated participants.
    counts : array
        How many unexpected answers each simulated participant has.
    chances : tuple of array
        Probability of each answer by expected answer, as in `icqf.models.score_intervals`.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.analyses import UsualAnswers, describe_person
    >>> from icqf.datasets import load_demo
    >>> demo = load_demo().select(["q00*"])
    >>> model = ICQF(1).fit(demo)
    >>> usual = UsualAnswers.of(model)
    >>> [describe_person(model, demo.take([row]), usual=usual).id for row in (0, 1)]
    ['C0001', 'C0002']
    """

    limit: float
    counts: Array
    chances: tuple[Array, ...] = field(repr=False)

    @classmethod
    def of(cls, model: ICQF) -> UsualAnswers:
        """Simulate participants of a model, always the same ones."""
        drawn = simulate_participants(model, N_SIMULATED)
        low, high = model.item_range_.to_numpy(dtype=float).T
        answers = pd.DataFrame(low + drawn.answers * (high - low), columns=list(model.item_range_.index))
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            tails, _ = answer_tails(model, drawn.chances, answers, drawn.confounds)
        limit = float(np.quantile(tails, UNEXPECTED))
        return cls(limit, (tails <= limit).sum(axis=1), drawn.chances)

    def among(self, model: ICQF, person: Questionnaire) -> Unexpected:
        """The unexpected answers of one person."""
        keyed = person.keyed_answers().reset_index(drop=True)
        confounds = None if person.confounds is None else person.confounds.reset_index(drop=True)
        tails, expected = (part[0] for part in answer_tails(model, self.chances, keyed, confounds))
        given = keyed.to_numpy(dtype=float)[0]
        found = [
            (item.name, _as_given(item, given[j]), _as_given(item, expected[j]), tails[j])
            for j, item in enumerate(person.items)
            if tails[j] <= self.limit
        ]
        table = pd.DataFrame(found, columns=["item", "answer", "expected", "tail"])
        share = np.isfinite(tails).mean()
        return Unexpected(
            table.sort_values("tail", kind="stable", ignore_index=True),
            float(self.counts.mean() * share),
            float((self.counts * share >= len(found)).mean()),
        )


def answer_tails(
    model: ICQF, chances: Sequence[Array], keyed: pd.DataFrame, confounds: pd.DataFrame | None
) -> tuple[Array, Array]:
    """Return the probability (n, m) of answers as high or as low as these or more so, and expected answers.

    Both are given the scores; the probability of a missing answer is NaN.
    """
    scores = np.nan_to_num(np.asarray(model.transform(keyed, confounds=confounds)))
    expected = np.asarray(model.inverse_transform(scores, confounds=confounds))
    low, high = model.item_range_.to_numpy(dtype=float).T
    given, tails = keyed.to_numpy(dtype=float), np.full(expected.shape, np.nan)
    for j, by_mean in enumerate(chances):
        rows, width = np.flatnonzero(np.isfinite(given[:, j])), high[j] - low[j]
        mean = np.clip((expected[rows, j] - low[j]) / width, 0, 1) * (len(by_mean) - 1)
        cell = np.minimum(mean.astype(int), len(by_mean) - 2)
        part = (mean - cell)[:, None]
        chance = (1 - part) * by_mean[cell] + part * by_mean[cell + 1]
        at = np.rint((given[rows, j] - low[j]) / width * (chance.shape[1] - 1)).astype(int)
        here = np.arange(len(rows))
        upto = np.cumsum(chance, axis=1)[here, at]
        tails[rows, j] = np.minimum(upto, 1 - upto + chance[here, at])
    return tails, expected


def _as_given(item: Item, keyed: float) -> float:
    """An answer as the person would give it: reversed items count from the highest answer."""
    return float(item.min + item.max - keyed) if item.reverse else float(keyed)  # type: ignore[operator]
