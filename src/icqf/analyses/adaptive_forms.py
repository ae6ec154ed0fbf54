"""Ask item by item: which item to ask next, and when the answers given are enough.

A few thousand participants are simulated from the model and the distribution of its scores. Each carries a
weight: the probability of the answers given so far, for somebody with its true scores. Its full-form score is
that of its own answers, with the answers given in place of those to the items asked. The weighted full-form
scores are what the answers say about the score of the whole questionnaire. The page of
`icqf.report.scoring_page` does the same arithmetic, with the same numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from icqf.analyses.short_forms import COVERED, reduced_model
from icqf.core.penalties import Penalty
from icqf.data.frames import as_pandas
from icqf.data.questionnaire import Questionnaire
from icqf.data.settings import ADAPTIVE_WIDTH, PENALTIES, check_parameter
from icqf.data.validate import EmptyRowsWarning
from icqf.errors import InputError, did_you_mean
from icqf.models.icqf import ICQF
from icqf.models.score_intervals import simulate_participants
from icqf.models.statement import NewAnswers, state

Array = NDArray[Any]
N_SIMULATED = 2048
LEAST_GAIN = 0.01  # by which a further question must be expected to narrow the intervals, all together
_CARELESS = 0.01  # share of answers that have nothing to do with the factors
_SWEEPS, _MOST_SWEEPS, _SETTLED = 20, 400, 1e-10


@dataclass(frozen=True, eq=False)
class Rounded:
    """Numbers (rows, n) as whole ones: low + step · values, for each row."""

    low: Array
    step: Array
    values: Array

    @classmethod
    def of(cls, numbers: Array, kind: type[np.unsignedinteger[Any]]) -> Rounded:
        """Round to as many steps as the kind of whole number has."""
        low, most = numbers.min(axis=1), np.iinfo(kind).max
        step = np.maximum(np.ptp(numbers, axis=1), 1e-12) / most
        return cls(low, step, np.round((numbers - low[:, None]) / step[:, None]).astype(kind))

    @cached_property
    def numbers(self) -> Array:
        """The rounded numbers."""
        return self.low[:, None] + self.step[:, None] * self.values


@dataclass(frozen=True)
class FormState:
    """What the answers given say."""

    scores: pd.Series  # expected scores of the full form
    low: pd.Series  # ends of their 90 % intervals
    high: pd.Series
    # the item to ask next; None if every interval is narrow enough, or no item left would narrow any, and
    # every factor has an answer to an item of its own
    next: str | None


@dataclass(frozen=True, eq=False)
class AdaptiveForm:
    """A form whose items are asked one at a time; made by `adaptive_form`.

    Attributes
    ----------
    model : ICQF
        Of the items that may be asked.
    width : float
        Asking stops when every factor's interval is at most this wide, but not before each has an answer to
        an item of its own.
    scores, others, residuals : Rounded
        Of simulated participants: true scores (k, n), what their answers to items outside of the form
        contribute to the scores (k, n), and their answers without the confounds' part (m, n).
    chances : tuple of array (33, levels)
        For each item, the probability of each answer at expected answers from 0 to 1.
    pulls : array (k, m)
        What an answer contributes to the scores.
    gram : array (k, k)
        Products of all loadings.
    penalty : Penalty
        Of the scores of the full form.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.analyses import adaptive_form
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> form = adaptive_form(ICQF(2).fit(demo), demo.answers.columns, width=0.4)
    >>> first = form.state({}, confounds={"age": 9, "sex": "female"}).next
    >>> form.state({first: 0}, confounds={"age": 9, "sex": "female"}).next != first
    True
    >>> len(form.ask(demo.take(range(5))))
    5
    """

    model: ICQF
    width: float
    scores: Rounded
    others: Rounded
    residuals: Rounded
    chances: tuple[Array, ...]
    pulls: Array
    gram: Array
    penalty: Penalty

    @property
    def items(self) -> tuple[str, ...]:
        """The items that may be asked."""
        return tuple(str(name) for name in self.model.item_range_.index)

    @cached_property
    def loadings(self) -> tuple[Array, Array]:
        """Loadings of factors (k, m) and confounds (c, m), as shares of the items' ranges."""
        span = np.ptp(self.model.item_range_.to_numpy(), axis=1)
        return self.model.components_ / span, self.model.confound_components_ / span

    def state(
        self,
        answers: Mapping[str, float],
        *,
        confounds: Mapping[str, Any] | None = None,
        skipped: Iterable[str] = (),
    ) -> FormState:
        """What some answers say, and which item to ask next.

        Parameters
        ----------
        answers : mapping of item to answer
            In any order; reversed items already reversed, as in a table for `transform`.
        confounds : mapping, optional
            Of this participant, where the model has confounds.
        skipped : iterable of str
            Items that were asked and not answered.
        """
        skipped = [skipped] if isinstance(skipped, str) else list(skipped)
        for name in (*answers, *skipped):
            if name not in self.items:
                raise InputError(f"The form has no item {name!r}.{did_you_mean(name, self.items)}")
        row = pd.DataFrame([{name: answers.get(name, np.nan) for name in self.items}], dtype=float)
        beside = None if confounds is None else pd.DataFrame([dict(confounds)])
        given, design = self._read(row, beside)
        session = _Session.of(self, design[0])
        for item in np.flatnonzero(~np.isnan(given[0])):
            session = session.with_answer(int(item), given[0, item])
        out = {self.items.index(name) for name in skipped}
        chosen = session.best([item for item in session.left() if item not in out])
        low, high = session.ends
        table = pd.DataFrame(
            {"scores": session.expected, "low": low, "high": high}, self.model.get_feature_names_out()
        )
        following = None if chosen is None else self.items[chosen]
        return FormState(table["scores"], table["low"], table["high"], following)

    def ask(self, X: Any, *, confounds: Any = None, width: float | None = None) -> pd.DataFrame:
        """Ask participants whose answers are known, and stop as the page would.

        Parameters
        ----------
        X : table, array (n, m) or Questionnaire
            Answers to all items of the form. A missing answer counts as a question that was skipped.
        confounds : table, optional
            Of the same participants, where the model has confounds.
        width : float, optional
            Another width to stop at. 0: ask as long as a further answer narrows any interval.

        Returns
        -------
        DataFrame
            For each participant ``n_asked``, ``asked`` (items in their order, separated by spaces), and for
            each factor its expected full-form score and interval: ``mood``, ``mood_low``, ``mood_high``.
        """
        form = self if width is None else replace(self, width=float(width))
        given, designs = form._read(X, confounds)
        rows, factors = [], form.model.get_feature_names_out()
        for answers, design in zip(given, designs, strict=True):
            session, left, asked = _Session.of(form, design), list(range(len(form.items))), []
            while (chosen := session.best(left)) is not None:
                left.remove(chosen)
                asked.append(form.items[chosen])
                if not np.isnan(answers[chosen]):
                    session = session.with_answer(chosen, answers[chosen])
            row: dict[str, Any] = {"n_asked": len(asked), "asked": " ".join(asked)}
            for name, *values in zip(factors, session.expected, *session.ends, strict=True):
                row |= dict(zip((name, f"{name}_low", f"{name}_high"), map(float, values), strict=True))
            rows.append(row)
        frame = as_pandas(X.answers if isinstance(X, Questionnaire) else X)
        return pd.DataFrame(rows, index=frame.index if isinstance(frame, pd.DataFrame) else None)

    def _read(self, X: Any, confounds: Any) -> tuple[Array, Array]:
        """Answers (n, m) from 0 to 1, NaN where missing, and the design (n, c)."""
        if isinstance(X, Questionnaire):
            X = X.select(list(self.items))
        elif isinstance(frame := as_pandas(X), pd.DataFrame):
            X = frame[[name for name in self.items if name in frame]]
        # nothing is answered before the first question
        with warnings.catch_warnings(action="ignore", category=EmptyRowsWarning):
            stated = state(self.model, NewAnswers(self.model, X, confounds))
        n, m = len(stated.kept), len(self.items)
        given = np.full((n, m), np.nan)
        own = stated.problem.unscaled()
        span = np.ptp(self.model.item_range_.to_numpy(), axis=1)
        given[stated.kept] = np.where(own.answers >= 0, own.answers / span, np.nan)
        if isinstance(X, Questionnaire) and confounds is None:
            confounds = X.confounds
        return given, self.model.confound_encoder_.transform(confounds, n_rows=n)

    def solved(self, pull: Array, start: Array) -> Array:
        """Full-form scores (k, n), within 0 and the highest score."""
        scores, top = start.copy(), self.model.score_max
        for _ in range(_MOST_SWEEPS // _SWEEPS):
            before = scores.copy()
            self.penalty.sweep(scores, self.gram, pull, top, scale=1.0, sweeps=_SWEEPS, xp=np)
            if np.abs(scores - before).max(initial=0.0) < _SETTLED:
                break
        return scores

    @cached_property
    def own(self) -> list[list[int]]:
        """For each factor its own items, strongest first: those that load on it most, or else at all."""
        shares = self.loadings[0]
        most = shares * (shares.argmax(axis=0) == np.arange(len(shares))[:, None])
        rows = np.where(most.any(axis=1, keepdims=True), most, shares)
        return [[int(j) for j in np.argsort(-row, kind="stable") if row[j] > 0] for row in rows]

    @cached_property
    def gains(self) -> Array:
        """How far an answer moves the full-form scores (k, m), away from their bounds."""
        return np.linalg.pinv(self.gram, hermitian=True) @ self.pulls

    @cached_property
    def beginning(self) -> tuple[Array, Array]:
        """What all answers of the simulated participants contribute (k, n), and their full-form scores."""
        pull = self.others.numbers + self.pulls @ self.residuals.numbers
        return pull, self.solved(pull, np.zeros_like(pull))


@dataclass(frozen=True, eq=False)
class _Session:
    """One participant who is asked: weights of the simulated ones, and their full-form scores."""

    form: AdaptiveForm
    offset: Array  # (m,), the confounds' part of the answers
    chances: list[Array]  # by item (levels, n)
    pull: Array  # (k, n)
    full: Array  # (k, n)
    log_weights: Array  # (n,)
    given: tuple[int, ...] = ()

    @classmethod
    def of(cls, form: AdaptiveForm, design: Array) -> _Session:
        """Before the first answer."""
        offset = design @ form.loadings[1]
        expected = np.clip(form.scores.numbers.T @ form.loadings[0] + offset, 0, 1)
        chances = []
        for item, table in enumerate(form.chances):
            place = expected[:, item] * (len(table) - 1)
            first = np.minimum(place.astype(int), len(table) - 2)
            along = (place - first)[:, None]
            chances.append(((1 - along) * table[first] + along * table[first + 1]).T)
        return cls(form, offset, chances, *form.beginning, np.zeros(len(expected)))

    def with_answer(self, item: int, answer: float) -> _Session:
        """After one more answer, from 0 to 1."""
        level = int(np.floor(answer * (len(self.chances[item]) - 1) + 0.5))
        apart = answer - self.offset[item] - self.form.residuals.numbers[item]
        pull = self.pull + self.form.pulls[:, item, None] * apart
        return replace(
            self,
            pull=pull,
            full=self.form.solved(pull, self.full),
            log_weights=self.log_weights + np.log(self.chances[item][level]),
            given=(*self.given, item),
        )

    def left(self) -> list[int]:
        """Items without an answer."""
        return [item for item in range(len(self.form.items)) if item not in self.given]

    @cached_property
    def weights(self) -> Array:
        weights = np.exp(self.log_weights - self.log_weights.max())
        return weights / weights.sum()

    @property
    def expected(self) -> Array:
        """Expected full-form scores (k,)."""
        return self.full @ self.weights

    @cached_property
    def ends(self) -> Array:
        """Both ends (2, k) of the interval.

        Where one in twenty or more has the lowest (or highest) score there is, the interval ends there, and
        all who may be outside are on the other side.
        """
        tail, top = (1 - COVERED) / 2, self.form.model.score_max
        found = []
        for scores in self.full:
            order = np.argsort(scores, kind="stable")
            ranked, weights = scores[order], self.weights[order]
            middles = np.cumsum(weights) - weights / 2
            at_bottom = weights[ranked <= 1e-9].sum() >= tail
            at_top = top is not None and weights[ranked >= top - 1e-9].sum() >= tail
            below, above = tail + tail * at_top, tail + tail * at_bottom
            low, high = np.interp([below, 1 - above], middles, ranked)
            found.append((0.0 if at_bottom else low, top if at_top else high))
        return np.array(found).T

    def best(self, left: Sequence[int]) -> int | None:
        """The item to ask next; None to stop.

        Where no further item is needed for the widths, the strongest one of a factor that has no answer to an
        item of its own: its score would be inferred from answers about other factors alone.
        """
        chosen = self._narrowing(left)
        if chosen is not None:
            return chosen
        unasked = (own for own in self.form.own if not set(own) & set(self.given))
        return next((item for own in unasked for item in own if item in left), None)

    def _narrowing(self, left: Sequence[int]) -> int | None:
        """The item from which the intervals are expected to come closest to the width, if one is needed.

        Widths are expected to shrink as the standard deviations do.
        """
        form, full, weights = self.form, self.full, self.weights
        widths = self.ends[1] - self.ends[0]
        missing = np.maximum(widths - form.width, 0).sum()
        if not left or missing <= 0:
            return None
        spread = np.sqrt(np.maximum((full**2) @ weights - self.expected**2, 0))
        ratio = widths / np.maximum(spread, 1e-12)
        top = np.inf if form.model.score_max is None else form.model.score_max
        inside = (full > 1e-9) & (full < top - 1e-9)
        after = []
        for item in left:
            joint = self.chances[item] * weights
            chance = joint.sum(axis=1, keepdims=True)
            answers = np.linspace(0, 1, len(chance))[:, None] - self.offset[item]
            # an answer also replaces that of the simulated participant
            gain = inside * form.gains[:, item, None]
            rest = full - gain * form.residuals.numbers[item]
            moments = np.concatenate([rest, gain, rest**2, rest * gain, gain**2]).T
            r, g, rr, rg, gg = np.split(joint @ moments / chance, 5, axis=1)
            variance = rr + 2 * answers * rg + answers**2 * gg - (r + answers * g) ** 2
            then = ratio * np.sqrt(np.maximum(variance, 0))
            after.append(float((chance * np.maximum(then - form.width, 0)).sum()))
        at = int(np.argmin(np.round(after, 9)))
        return left[at] if missing - after[at] >= LEAST_GAIN else None


def adaptive_form(
    model: ICQF, items: str | Iterable[str] = "*", *, width: float = ADAPTIVE_WIDTH
) -> AdaptiveForm:
    """Make a form that asks item by item and stops when every interval is narrow enough.

    The next item is the one whose answer is expected to bring the 90 % intervals of the full form's scores
    closest to the width. It also stops if no item left is expected to narrow them by 0.01 or more, all
    together, but never before each factor has an answer to an item of its own (which loads on it most). It
    needs the model alone, no answers.

    Parameters
    ----------
    model : fitted ICQF
        Of the full form, with the distribution of its scores (`score_distribution_`).
    items : str or iterable of str
        Names or globs of the items that may be asked, such as those of a short form.
    width : float
        Width to stop at.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.analyses import adaptive_form
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> form = adaptive_form(ICQF(2).fit(demo), "q00*", width=0.2)
    >>> len(form.items)
    9
    """
    check_is_fitted(model)
    check_parameter("width", width)
    short = reduced_model(model, items)
    names = [str(name) for name in model.item_range_.index]
    chosen = [names.index(str(name)) for name in short.item_range_.index]
    people = simulate_participants(model, N_SIMULATED)
    span = np.ptp(model.item_range_.to_numpy(), axis=1)
    loadings = model.components_ * model.item_scale_
    pulls = loadings * model.item_scale_ * span
    residuals = (people.answers - people.design @ (model.confound_components_ / span)).T
    others = np.delete(pulls, chosen, axis=1) @ np.delete(residuals, chosen, axis=0)
    chances = (people.chances[item] for item in chosen)
    return AdaptiveForm(
        short,
        float(width),
        Rounded.of(people.scores, np.uint16),
        Rounded.of(others, np.uint16),
        Rounded.of(residuals[chosen], np.uint8),
        tuple(np.round((1 - _CARELESS) * each + _CARELESS / each.shape[1], 5) for each in chances),
        pulls[:, chosen],
        loadings @ loadings.T,
        PENALTIES.load(model.penalty)(float(model.beta)),
    )
