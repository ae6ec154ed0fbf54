"""Short forms: the fewest items whose answers recover the scores of a questionnaire or a battery."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from icqf.core.problem import Observations, Problem, scale_of
from icqf.core.result import Factors
from icqf.data.battery import Battery
from icqf.data.questionnaire import Questionnaire, match_names
from icqf.data.settings import check_parameter, parameter_error
from icqf.engines.parallel import closing_quietly, effective_n_jobs, start_calls
from icqf.engines.progress import Progress
from icqf.errors import InputError, counted, did_you_mean, listed
from icqf.io.model_file import StoredModel
from icqf.models.icqf import ICQF
from icqf.models.meta import MetaICQF
from icqf.models.persistence import rebuild
from icqf.models.statement import NewAnswers, state
from icqf.resampling.bootstrap import refits
from icqf.resampling.folds import deal_evenly, deal_groups, strata_of

_BY_ITEM = (
    "components",
    "confound_components",
    "explained",
    "item_range",
    "item_scale",
    "sse",
    "sst",
    "missing",
)


def reduced_model(model: ICQF, items: Iterable[str]) -> ICQF:
    """Return a model that scores some of the items as if the others were missing.

    Loadings stay as fitted; fit statistics (objective, certificate, starts, replication) are those of the
    full model.

    Parameters
    ----------
    model : fitted ICQF
        The model of all items.
    items : iterable of str
        Names or globs of the items to keep; they stay in the model's order.

    Examples
    --------
    >>> import numpy as np
    >>> from icqf import ICQF
    >>> from icqf.datasets import make_synthetic
    >>> from icqf.analyses import reduced_model
    >>> answers = make_synthetic(noise=0.1, random_state=0).answers
    >>> model = ICQF(10, item_range=(0, 100)).fit(answers)
    >>> short = reduced_model(model, [f"item{j}" for j in range(1, 41)])
    >>> short.transform(answers[:, :40]).shape, short.loadings_.shape
    ((200, 10), (40, 10))
    """
    names = [str(name) for name in model.item_range_.index]
    chosen = match_names([items] if isinstance(items, str) else items, names)
    return with_items(model, chosen)


def with_items(model: ICQF, items: list[str]) -> ICQF:
    """The model of these items, in this order."""
    return rebuild(ICQF, _reduced(model.describe(), items))


def _reduced(stored: StoredModel, chosen: list[str]) -> StoredModel:
    at = [stored.header["items"].index(name) for name in chosen]
    arrays = dict(stored.arrays)
    for name in _BY_ITEM:
        arrays[name] = (
            arrays[name][:, at]
            if name in ("components", "confound_components", "explained")
            else arrays[name][at]
        )
    scores = {}
    if "score_zeros" in arrays:
        arrays |= {name: arrays[name][at] for name in ("score_residual", "score_variance")}
        scores = {"scores_of_more_items": True}
    parameters = dict(stored.header["parameters"])
    if isinstance(parameters["item_weight"], list):
        parameters["item_weight"] = [parameters["item_weight"][item] for item in at]
    before, span = arrays["item_scale"], np.ptp(arrays["item_range"], axis=1)
    arrays["item_scale"] = _scale(parameters["item_weight"], before, span)
    parameters["beta"] = _beta(parameters["beta"], before, arrays["item_scale"])
    header = {**stored.header, **scores, "items": chosen, "parameters": parameters, "dtype": "float64"}
    known = {item.name: item for item in stored.codebook.items}
    entries = tuple(known[name] for name in chosen if name in known)
    return StoredModel(header, arrays, replace(stored.codebook, items=entries))


def _scale(item_weight: Any, before: Array, span: Array) -> Array:
    """The scale of the remaining items, as before up to a common factor."""
    if isinstance(item_weight, str) and item_weight == "variance":
        return before * (span.max() / (before * span).max())
    scale = scale_of(item_weight, span)
    return np.ones(len(span)) if scale is None else scale


def _beta(beta: float, before: Array, scale: Array) -> float:
    """The penalty with which scores stay the same.

    The scale is relative to the widest range. If that changes, all errors change by one factor, and so must
    the penalty.
    """
    return float(beta * (scale[0] / before[0]) ** 2)


Array = NDArray[Any]
_GAIN = 1e-6  # smallest gain of an exchange
_MOST_ROUNDS = 10
FEWEST = 30  # participants
FOLDS = 5
FEWEST_GROUPS = 3
SIMULATED = 1000  # simulated participants of a search
_SWEEPS = 4
COVERED = 0.9
_KNOTS = 21
_NEIGHBOURS = 40  # held-out participants behind an interval, at least
_MOST = 400  # participants of a fold whose items are left out one by one
_LEAST_REACH = 5  # participants on either side whose answers may be taken


def search_forms(
    recovery: SimulatedRecovery | SimulatedBatteryRecovery,
    *,
    max_items: int,
    keep: Sequence[int] = (),
    drop: Collection[int] = (),
    minutes: Array | None = None,
    max_minutes: float = np.inf,
    begin: Sequence[int] = (),
    callback: Callable[[Progress], object] | None = None,
) -> list[tuple[int, ...]]:
    """Search for the items that best recover the scores of the full form.

    Forward selection by the gain in mean correlation with the full form's scores (per minute). After every
    addition the least useful item is exchanged for a better one, if any; at the last length any item may be.

    Parameters
    ----------
    recovery : SimulatedRecovery or SimulatedBatteryRecovery
        Simulated participants, with the scores to recover.
    max_items : int
        Most items; the kept ones count.
    keep : sequence of int
        Positions of items that every form has.
    drop : collection of int
        Positions of items that no form has.
    minutes : array (m,), optional
        Time of each item; None: all the same. Without `max_minutes`, no item is exchanged for a slower one.
    max_minutes : float
        Most minutes of a form.
    begin : sequence of int
        Items in an order, such as by loading; each form is at least as good as the same number of these.
    callback : callable, optional
        Called with the progress.

    Returns
    -------
    list of tuple of int
        Positions of the items of one form of each length, from the kept items (or one item) on, in the order
        in which they were chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.analyses import search_forms
    >>> from icqf.analyses.short_forms import ModelRecovery
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> participants = ModelRecovery.of(ICQF(2).fit(demo), demo)
    >>> forms = search_forms(participants.simulated(np.random.default_rng(0)), max_items=4)
    >>> [len(form) for form in forms]
    [1, 2, 3, 4]
    """
    search = _Search(recovery, frozenset(keep), frozenset(drop), minutes, max_minutes)
    chosen = other = search.of(keep)
    forms = [chosen] if len(keep) else []
    _report_progress(callback, len(chosen.items), max_items)
    while len(chosen.items) < max_items:
        longer = search.longer(chosen)
        if longer is None:
            break
        other = search.of(begin[: len(longer.items)] or longer.items, other)
        if search.allowed(other.items, longer.items) and other.correlation > longer.correlation:
            longer = other
        chosen = search.improved(longer)
        forms.append(chosen)
        _report_progress(callback, len(chosen.items), max_items)
    if forms:
        forms[-1] = search.exchanged(chosen)
    return [form.items for form in forms]


def correlation_by_row(a: Array, b: Array) -> Array:
    """Pearson correlation (k,) of each row of a with the same row of b; 0 where either is constant."""
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    length = np.sqrt(np.einsum("rn,rn->r", a, a) * np.einsum("rn,rn->r", b, b))
    some = length > 1e-12 * a.shape[1]
    return np.where(some, np.einsum("rn,rn->r", a, b) / np.where(some, length, 1.0), 0.0)


@dataclass(frozen=True)
class _Candidate:
    items: tuple[int, ...]
    form: Any
    correlation: float


class _Search:
    def __init__(
        self,
        recovery: SimulatedRecovery | SimulatedBatteryRecovery,
        keep: frozenset[int],
        drop: frozenset[int],
        minutes: Array | None,
        max_minutes: float,
    ) -> None:
        self.keep, self.recovery = keep, recovery
        m = len(recovery.items)
        self.candidates = [item for item in range(m) if item not in drop]
        self.minutes = np.ones(m) if minutes is None else np.asarray(minutes, dtype=float)
        self.max_minutes = max_minutes if minutes is not None else np.inf
        # Constant scores are recovered by any form.
        self.some = np.ptp(recovery.wanted, axis=1) > 0

    def correlation(self, form: Any) -> float:
        r = correlation_by_row(form.scores, self.recovery.wanted)
        return float(r[self.some].mean()) if self.some.any() else 1.0

    def of(self, items: Sequence[int], before: _Candidate | None = None) -> _Candidate:
        """The form of these items, extending `before` if they begin with it."""
        known = before is not None and tuple(items[: len(before.items)]) == before.items
        form, begun = (before.form, len(before.items)) if before and known else (self.recovery.nothing(), 0)
        for item in items[begun:]:
            form = form.plus(item)
        return _Candidate(tuple(items), form, self.correlation(form))

    def allowed(self, items: Sequence[int], instead: Sequence[int]) -> bool:
        """Whether these items may replace others."""
        limit = self.minutes[list(instead)].sum() if np.isinf(self.max_minutes) else self.max_minutes
        within = self.minutes[list(items)].sum() <= limit + _GAIN
        return bool(within) and {*items} <= {*self.candidates} and self.keep <= {*items}

    def longer(self, chosen: _Candidate) -> _Candidate | None:
        """The form with the item that gains most per minute; None if no item fits."""
        room = self.max_minutes - self.minutes[list(chosen.items)].sum()
        best, most = None, -np.inf
        for item, form, correlation in self._with_one_more(chosen.form, chosen.items, room):
            gain = (correlation - chosen.correlation) / self.minutes[item] if chosen.items else correlation
            if gain > most:
                best, most = _Candidate((*chosen.items, item), form, correlation), gain
        return best

    def improved(self, chosen: _Candidate) -> _Candidate:
        """The form after exchanging its least useful item for a better one, as long as there is one."""
        for _ in range(_MOST_ROUNDS):
            loose = [item for item in chosen.items if item not in self.keep]
            if len(chosen.items) < 2 or not loose:
                return chosen
            least = max(loose, key=lambda item: self.correlation(chosen.form.minus(item)))
            better = self._replaced(chosen, least)
            if better is None:
                return chosen
            chosen = better
        return chosen

    def exchanged(self, chosen: _Candidate) -> _Candidate:
        """The form after exchanging any of its items for better ones, as long as there are any."""
        for _ in range(_MOST_ROUNDS):
            before = chosen
            for item in [item for item in chosen.items if item not in self.keep]:
                chosen = self._replaced(chosen, item) or chosen
            if chosen is before:
                break
        return chosen

    def _replaced(self, chosen: _Candidate, item: int) -> _Candidate | None:
        """The form with a better item in place of one of its own; None if there is none."""
        room = self.max_minutes - self.minutes[[other for other in chosen.items if other != item]].sum()
        room = room if np.isfinite(room) else self.minutes[item]  # without a limit, no slower item
        best = None
        most = chosen.correlation + _GAIN
        for other, form, correlation in self._with_one_more(chosen.form.minus(item), chosen.items, room):
            if correlation > most:
                items = tuple(other if each == item else each for each in chosen.items)
                best, most = _Candidate(items, form, correlation), correlation
        return best

    def _with_one_more(self, form: Any, items: Sequence[int], room: float) -> Any:
        for item in self.candidates:
            if item not in items and self.minutes[item] <= room + _GAIN:
                longer = form.plus(item)
                yield item, longer, self.correlation(longer)


def _report_progress(callback: Callable[[Progress], object] | None, done: int, total: int) -> None:
    if callback is not None:
        callback(Progress(done, total))


@dataclass(frozen=True, eq=False)
class ModelRecovery:
    """How well forms of a model's items recover the scores of participants."""

    model: ICQF
    problem: Problem  # of the participants with answers
    answered: Array  # (n,), which participants of the table these are
    wanted: Array  # (k, n), their scores from all items

    @classmethod
    def of(cls, model: ICQF, X: Any, *, confounds: Any = None) -> ModelRecovery:
        """For the participants of a table."""
        stated = state(model, NewAnswers(model, X, confounds))
        problem, answered = stated.problem, stated.kept
        if not answered.any():
            raise InputError(
                "No participant answered any of the model's items, so no short form can be tried.",
                code="no-answers",
                remedy="Give the answers of participants, and check the missing codes.",
            )
        return cls(model, problem, answered, model.solve_scores(problem))

    @property
    def items(self) -> tuple[str, ...]:
        """Names of the items."""
        return tuple(str(name) for name in self.model.item_range_.index)

    @property
    def n(self) -> int:
        """Number of participants."""
        return self.problem.n

    @property
    def strata(self) -> Array | None:
        """Strata of the confounds (n,), or None."""
        return strata_of(self.problem)

    @property
    def shares(self) -> Array:
        """Loadings (k, m) as shares of the items' ranges."""
        return self.model.components_ / np.ptp(self.model.item_range_.to_numpy(), axis=1)

    def reduced(self, form: Sequence[int]) -> ICQF:
        """The model of some of the items."""
        return reduced_model(self.model, [self.items[item] for item in form])

    def fitted_to(self, rows: Array) -> ModelRecovery:
        """With the loadings that a fit to some of these participants gives, starting from the model's.

        The model stays as it is if it was fitted to another number of participants, and so to others.
        """
        if self.n != self.model.n_participants_:
            return self
        k = len(self.wanted)
        loadings = np.concatenate([self.model.components_, self.model.confound_components_])
        start = Factors(self.wanted, self.problem.scaled_loadings(loadings))
        counts = np.bincount(rows, minlength=self.n)
        fitted = self.problem.own_loadings(refits(self.problem, start, [counts])[0])
        model = copy(self.model)
        # The solver's order of the factors decides nothing here.
        model.components_, model.confound_components_ = fitted[:k], fitted[k:]
        return replace(self, model=model, wanted=model.solve_scores(self.problem))

    def take(self, rows: Array) -> ModelRecovery:
        """For some of these participants."""
        return ModelRecovery(self.model, self.problem.of_rows(rows), self.answered, self.wanted[:, rows])

    def exact(self, form: Sequence[int]) -> Array:
        """Scores (k, n) from these items alone, within all bounds; NaN for participants without any."""
        short, problem = self._stated(form)
        answered = (problem.answers >= 0).any(axis=1)
        return np.where(answered, short.solve_scores(problem), np.nan)

    def complete(self, form: Sequence[int]) -> Array:
        """Which participants (n,) answered all of these items."""
        return np.asarray((self.problem.answers[:, list(form)] >= 0).all(axis=1))

    def _stated(self, form: Sequence[int]) -> tuple[ICQF, Problem]:
        """The problem of these items, and a model that solves it (but is not a whole one, to save time)."""
        items, model = np.sort(form), self.model
        weight = model.item_weight
        if weight is not None and not isinstance(weight, str):
            weight = np.asarray(weight)[items]
        problem, before = self.problem.of_items(items), model.item_scale_[items]
        scale = _scale(weight, before, problem.span)
        problem = problem.with_beta(_beta(float(model.beta), before, scale))
        problem = replace(problem, observations=replace(problem.observations, dtype=np.dtype(np.float64)))
        short = copy(model)
        short.components_ = model.components_[:, items]
        short.confound_components_ = model.confound_components_[:, items]
        return short, problem.scaled(scale)

    def errors(self, form: Sequence[int]) -> _Errors:
        """What the errors of single answers do to the scores of the form and of the full form."""
        some = self.take(np.unique(np.linspace(0, self.n - 1, _MOST).astype(int)))
        items = np.sort(form)
        full = _items_left_out(self.model, some.problem, some.wanted)
        short = _items_left_out(*some._stated(form))
        m, k = some.problem.m, len(some.wanted)
        found = _Errors(np.array(some.n), np.zeros((m, 2)), full.products(full), *np.zeros((2, m, k + 1)))
        found.variance[:, 0] = (full.residuals * full.apart).sum(axis=1)
        found.variance[items, 1] = found.variance[items, 0]
        found.short[items] = short.products(short)
        found.shared[items] = short.products(full.of(items))
        return found

    def simulated(self, rng: np.random.Generator, n: int = SIMULATED) -> SimulatedRecovery:
        """For participants simulated from the model, in whom searches overfit less (docs/short-forms.md)."""
        problem = drawn_from(self.model, self.problem, self.wanted, rng, n, gaps=False)
        return SimulatedRecovery(self.model, problem, self.model.solve_scores(problem))


def drawn_from(
    model: ICQF, problem: Problem, scores: Array, rng: np.random.Generator, n: int, *, gaps: bool
) -> Problem:
    """The problem of n simulated participants: the scores of one, and the answers of others like it.

    An item's answer is that of a participant for whom the model expects about the same answer to it, each
    item of another one, so that all that goes together in the answers goes by the factors and confounds.
    """
    own = problem.unscaled()
    expected = scores.T @ model.components_ + own.design.T @ model.confound_components_
    drawn = rng.integers(0, own.n, n)
    answers = like_others(own.answers, expected, expected[drawn], rng)
    if gaps:
        given = (own.answers >= 0).mean(axis=0)
        answers[rng.random(answers.shape) >= given] = np.nan
    design = np.ascontiguousarray(own.design[:, drawn])
    observations = Observations(answers, design, dtype=np.dtype(np.float64))
    return replace(own, observations=observations).scaled(model.item_scale_)


def like_others(answers: Array, expected: Array, wanted: Array, rng: np.random.Generator) -> Array:
    """Answers (n, m), each of a participant with about the same expected answer; NaN where none answered."""
    n, m = wanted.shape
    found = np.full((n, m), np.nan)
    for item in range(m):
        given = np.flatnonzero(answers[:, item] >= 0)
        if not len(given):
            continue
        given = given[np.argsort(expected[given, item], kind="stable")]
        reach = max(_LEAST_REACH, len(given) // 20)
        place = np.searchsorted(expected[given, item], wanted[:, item]) + rng.integers(-reach, reach + 1, n)
        found[:, item] = answers[given[np.clip(place, 0, len(given) - 1)], item]
    return found


class _Errors(NamedTuple):
    """Sums over participants, by item; those of several folds add up."""

    n: Array  # participants
    variance: Array  # (m, 2): of the item's error, in all folds and in those whose form has the item
    full: Array  # (m, k + 1): products of changes of the full form's scores, and of what goes with them
    short: Array  # of the short form's scores
    shared: Array  # of the one with the other

    @classmethod
    def added(cls, several: Iterable[_Errors]) -> _Errors:
        return cls(*(np.sum(each, axis=0) for each in zip(*several, strict=True)))

    def variances(self) -> tuple[Array, Array, Array]:
        """Error variances (k,) of the full form and the short form, and the covariance of their errors."""

        def of(variance: Array, found: Array) -> Array:
            scale = variance / np.where(found[:, -1] > 0, found[:, -1], np.inf)
            return np.asarray(scale @ found[:, :-1] / self.n)

        every, some = self.variance.T
        return of(every, self.full), of(some, self.short), of(some, self.shared)


@dataclass(frozen=True, eq=False)
class _ItemsLeftOut:
    """What changes if one item is left out: the scores, and how far its answer is from the expected one."""

    changes: Array  # (m, k, n)
    residuals: Array  # (m, n), with the item; 0 where it was not answered
    apart: Array  # (m, n), without it

    def of(self, items: Array) -> _ItemsLeftOut:
        return _ItemsLeftOut(self.changes[items], self.residuals[items], self.apart[items])

    def products(self, other: _ItemsLeftOut) -> Array:
        changes = np.einsum("jkn,jkn->jk", self.changes, other.changes)
        return np.column_stack([changes, (self.apart * other.apart).sum(axis=1)])


def _items_left_out(model: ICQF, problem: Problem, scores: Array | None = None) -> _ItemsLeftOut:
    scores = model.solve_scores(problem) if scores is None else scores
    own, Q = problem.unscaled(), model.components_
    seen = own.answers.T >= 0
    left = own.answers.T - model.confound_components_.T @ own.design
    changes, apart = np.zeros((problem.m, *scores.shape)), np.zeros(seen.shape)
    for item in range(problem.m):
        mask = np.zeros(problem.answers.shape, dtype=bool)
        mask[:, item] = True
        without = model.solve_scores(problem.hide(mask))
        changes[item] = (scores - without) * seen[item]
        apart[item] = left[item] - Q[:, item] @ without
    return _ItemsLeftOut(changes, np.where(seen, left - Q.T @ scores, 0), np.where(seen, apart, 0))


@dataclass(frozen=True, eq=False)
class SimulatedRecovery:
    """The same for simulated participants, without the bound on reconstructed answers."""

    model: ICQF
    problem: Problem
    wanted: Array  # (k, n)

    @property
    def items(self) -> tuple[str, ...]:
        """Names of the items."""
        return tuple(str(name) for name in self.model.item_range_.index)

    def nothing(self) -> ItemForm:
        """The empty form."""
        return ItemForm(self, np.zeros((len(self.wanted),) * 2), *np.zeros((2, *self.wanted.shape)))

    @cached_property
    def loadings(self) -> Array:
        """Loadings (k, m), in the problem's units."""
        return self.problem.scaled_loadings(self.model.components_)

    @cached_property
    def residuals(self) -> Array:
        """Answers minus the part of the confounds (m, n)."""
        offset = self.problem.scaled_loadings(self.model.confound_components_)
        return np.concatenate([(block.X - block.C.T @ offset).T for block in self.problem.blocks()], axis=1)


@dataclass(frozen=True, eq=False)
class ItemForm:
    """A form of a model's items that is updated by one item at little cost."""

    recovery: SimulatedRecovery
    gram: Array  # (k, k)
    pull: Array  # (k, n)
    scores: Array  # (k, n)

    def plus(self, item: int) -> ItemForm:
        """The form with one more item."""
        return self._with(item, 1.0)

    def minus(self, item: int) -> ItemForm:
        """The form without one of its items."""
        return self._with(item, -1.0)

    def _with(self, item: int, sign: float) -> ItemForm:
        recovery, q = self.recovery, self.recovery.loadings[:, item]
        gram = self.gram + sign * np.outer(q, q)
        pull = self.pull + sign * q[:, None] * recovery.residuals[item]
        penalty, top = recovery.problem.penalty, recovery.problem.bounds.score
        scores = penalty.sweep(self.scores.copy(), gram, pull, top, scale=1.0, sweeps=_SWEEPS, xp=np)
        return ItemForm(recovery, gram, pull, scores)


def folds_of(recovery: Any, groups: Any, rng: np.random.Generator) -> Array:
    """The fold (n,) of each participant; groups stay together."""
    n = recovery.n
    if n < FEWEST:
        raise InputError(
            f"{counted(n, 'participant')} answered anything, but at least {FEWEST} are needed to choose "
            "items and to evaluate the form."
        )
    if groups is None:
        return deal_evenly(n, FOLDS, recovery.strata, rng)
    together = np.asarray(groups)[recovery.answered].astype(str)
    number = len(np.unique(together))
    if number < FEWEST_GROUPS:
        raise InputError(
            f"There {'is' if number == 1 else 'are'} {counted(number, 'group')} (family or site), and whole "
            f"groups are held out; at least {FEWEST_GROUPS} are needed. Leave the groups out."
        )
    return deal_groups(together, min(FOLDS, number), recovery.strata, rng)


def top_loading(
    shares: Array, length: int, keep: Sequence[int] = (), drop: Iterable[int] = ()
) -> tuple[int, ...]:
    """The items with each factor's largest loadings, the factors in turn."""
    ranked = [iter(order.tolist()) for order in np.argsort(-shares, axis=1, kind="stable")]
    chosen, out = list(keep), {*drop, *keep}
    while len(chosen) < length:
        for items in ranked:
            following = next((item for item in items if item not in out), None)
            if following is not None and len(chosen) < length:
                chosen.append(following)
                out.add(following)
    return tuple(chosen)


def reduced_battery(model: MetaICQF, items: Mapping[str, Iterable[str]]) -> MetaICQF:
    """Return a model of some items of some instruments of a battery.

    Parameters
    ----------
    model : fitted MetaICQF
        The model of the whole battery.
    items : mapping of str to iterable of str
        Names or globs of the items to keep, by instrument; other instruments are left out.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import make_battery
    >>> from icqf.analyses import reduced_battery
    >>> from icqf.models import MetaICQF
    >>> battery = make_battery(n=120, n_items=(9, 9), n_factors=2, n_meta=2, random_state=0).battery
    >>> model = MetaICQF(ICQF(2), meta_estimator=ICQF(2)).fit(battery)
    >>> reduced_battery(model, {"A": ["a01", "a02", "a03"]}).item_loadings_.shape
    (3, 2)
    """
    kept: dict[str, list[str]] = {
        name: [names] if isinstance(names, str) else list(names) for name, names in items.items()
    }
    strange = [name for name in kept if name not in model.instruments_]
    if strange or not any(kept.values()):
        raise InputError(
            f"The model has no instrument {strange[0]!r}." if strange else "A form needs at least one item."
        )
    short = MetaICQF()
    short.instruments_ = {
        name: reduced_model(each, kept[name]) for name, each in model.instruments_.items() if kept.get(name)
    }
    factors = [
        str(model.second_stage.item_range_.index[at])
        for name in short.instruments_
        for at in range(*model.columns(name).indices(len(model.second_stage.item_range_)))
    ]
    short.meta_ = reduced_model(model.second_stage, factors)
    short.searches_, short.n_participants_, short.common_ = {}, model.n_participants_, None
    return short


@dataclass(frozen=True, eq=False)
class MetaRecovery:
    """How well forms across a battery's instruments recover the scores of its meta-factors."""

    model: MetaICQF
    battery: Battery
    ids: pd.Index  # the participants (n,) with answers, in order
    answered: Array  # which participants of the battery these are
    wanted: Array  # (K, n)

    @classmethod
    def of(cls, model: MetaICQF, X: Any, *, confounds: Any = None) -> MetaRecovery:
        """For the participants of a battery."""
        battery = model.as_battery(X, confounds)
        given = dict(zip(battery.instruments, battery.answered.to_numpy().sum(axis=0).tolist(), strict=True))
        for name in model.instruments_:
            if given.get(name, 0) < FEWEST:
                raise InputError(
                    f"Instrument {name!r} was answered by {counted(given.get(name, 0), 'participant')}, but "
                    f"at least {FEWEST} are needed to choose among its items. Give the answers to every "
                    "instrument of the model."
                )
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            scores = model.transform(battery)
        answered = scores.notna().all(axis=1).to_numpy()
        return cls(model, battery, battery.ids[answered], answered, scores.to_numpy()[answered].T)

    @cached_property
    def places(self) -> list[tuple[str, str]]:
        """Instrument and name of each item."""
        return [
            (name, str(item))
            for name, each in self.model.instruments_.items()
            for item in each.item_range_.index
        ]

    @property
    def items(self) -> tuple[str, ...]:
        """Names of the items, with their instruments."""
        return tuple(f"{name}: {item}" for name, item in self.places)

    @property
    def n(self) -> int:
        """Number of participants."""
        return len(self.ids)

    @property
    def strata(self) -> None:
        """No strata."""
        return None

    @property
    def shares(self) -> Array:
        """Loadings composed down to items (K, m), as shares of the items' ranges."""
        spans = [np.ptp(each.item_range_.to_numpy(), axis=1) for each in self.model.instruments_.values()]
        return self.model.item_loadings_.to_numpy().T / np.concatenate(spans)

    def fitted_to(self, rows: Array) -> MetaRecovery:
        """The same: the two stages are not fitted again."""
        return self

    def take(self, rows: Array) -> MetaRecovery:
        """For some of these participants."""
        ids = self.ids[rows]
        parts = {
            name: each.take(np.flatnonzero(each.answers.index.isin(ids)))
            for name, each in self.battery.instruments.items()
        }
        battery = Battery({name: each for name, each in parts.items() if each.n_participants})
        return replace(self, battery=battery, ids=ids, wanted=self.wanted[:, rows])

    def reduced(self, form: Sequence[int]) -> MetaICQF:
        """The model of some of the items."""
        kept: dict[str, list[str]] = {}
        for item in sorted(form):
            name, own = self.places[item]
            kept.setdefault(name, []).append(own)
        return reduced_battery(self.model, kept)

    def exact(self, form: Sequence[int]) -> Array:
        """Scores (K, n) from these items alone; NaN for participants without any of them."""
        short = self.reduced(form)
        parts = {
            name: self.battery.instruments[name].select([str(item) for item in each.item_range_.index])
            for name, each in short.instruments_.items()
            if name in self.battery.instruments
        }
        if not parts:
            return np.full(self.wanted.shape, np.nan)
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            return short.transform(Battery(parts)).reindex(self.ids).to_numpy().T

    def complete(self, form: Sequence[int]) -> Array:
        """All participants (n,): hardly anybody has every item of every instrument."""
        return np.ones(self.n, dtype=bool)

    def errors(self, form: Sequence[int]) -> None:
        """Not known: errors of items are not followed through two stages."""

    def simulated(self, rng: np.random.Generator, n: int = SIMULATED) -> SimulatedBatteryRecovery:
        """For simulated participants with every instrument, drawn from the real ones and the meta-factors."""
        ids, confounds = self.ids, self.battery.confounds
        own = None if confounds is None else confounds.reindex(ids)
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            scores = self.model.factor_scores(self.battery).reindex(ids).to_numpy()
            expected = np.asarray(self.model.second_stage.inverse_transform(self.wanted.T, confounds=own))
        scores = np.where(np.isnan(scores), np.clip(expected, 0, 1), scores)
        drawn = rng.integers(0, self.n, n)
        chosen = None if own is None else own.iloc[drawn].reset_index(drop=True)
        parts = {
            name: self._simulated_part(name, scores[drawn][:, self.model.columns(name)], chosen, rng)
            for name in self.model.instruments_
        }
        joined = np.concatenate([part.wanted for part in parts.values()]).T
        table = pd.DataFrame(joined, columns=list(self.model.second_stage.item_range_.index))
        problem = state(self.model.second_stage, NewAnswers(self.model.second_stage, table, chosen)).problem
        return SimulatedBatteryRecovery(
            self.model, parts, problem, self.model.second_stage.solve_scores(problem), tuple(self.places)
        )

    def _simulated_part(
        self, name: str, scores: Array, confounds: pd.DataFrame | None, rng: np.random.Generator
    ) -> SimulatedRecovery:
        model = self.model.instruments_[name]
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            real = state(model, NewAnswers(model, self.battery.instruments[name], None)).problem
        own = real.unscaled()
        known = model.solve_scores(real).T @ model.components_ + own.design.T @ model.confound_components_
        design = model.confound_encoder_.transform(confounds, n_rows=len(scores))
        wanted = scores @ model.components_ + design @ model.confound_components_
        answers = np.nan_to_num(like_others(own.answers, known, wanted, rng))
        observations = Observations(answers, np.ascontiguousarray(design.T), dtype=np.dtype(np.float64))
        problem = replace(own, observations=observations).scaled(model.item_scale_)
        return SimulatedRecovery(model, problem, model.solve_scores(problem))


@dataclass(frozen=True, eq=False)
class SimulatedBatteryRecovery:
    """The same for simulated participants."""

    model: MetaICQF
    parts: dict[str, SimulatedRecovery]
    problem: Problem  # of the second stage
    wanted: Array  # (K, n)
    places: tuple[tuple[str, str], ...]

    @property
    def items(self) -> tuple[str, ...]:
        """Names of the items, with their instruments."""
        return tuple(f"{name}: {item}" for name, item in self.places)

    @cached_property
    def local(self) -> list[tuple[str, int]]:
        """Instrument of each item, and its position there."""
        return [(name, self.parts[name].items.index(item)) for name, item in self.places]

    @cached_property
    def loadings(self) -> Array:
        """Loadings of the meta-factors (K, factors), in the second stage's units."""
        return self.problem.scaled_loadings(self.model.second_stage.components_)

    @cached_property
    def offset(self) -> Array:
        """The part of confounds and intercept in the factors' scores (factors, n), in the same units."""
        loadings = self.problem.scaled_loadings(self.model.second_stage.confound_components_)
        return loadings.T @ self.problem.design

    def nothing(self) -> BatteryForm:
        """The empty form."""
        return BatteryForm(self, {}, {}, np.zeros(self.wanted.shape))


@dataclass(frozen=True, eq=False)
class BatteryForm:
    """A form of items across instruments; instruments without an item are missing in the second stage."""

    recovery: SimulatedBatteryRecovery
    forms: dict[str, ItemForm]
    counts: dict[str, int]
    scores: Array  # (K, n)

    def plus(self, item: int) -> BatteryForm:
        """The form with one more item."""
        name, at = self.recovery.local[item]
        form = self.forms.get(name) or self.recovery.parts[name].nothing()
        return self._with(name, form.plus(at), self.counts.get(name, 0) + 1)

    def minus(self, item: int) -> BatteryForm:
        """The form without one of its items."""
        name, at = self.recovery.local[item]
        return self._with(name, self.forms[name].minus(at), self.counts[name] - 1)

    def _with(self, name: str, form: ItemForm, count: int) -> BatteryForm:
        recovery = self.recovery
        forms = {each: old for each, old in self.forms.items() if each != name}
        counts = {**self.counts, name: count}
        if count:
            forms[name] = form
        if not forms:
            return replace(recovery.nothing(), counts=counts)
        columns = np.concatenate(
            [np.r_[recovery.model.columns(each)] for each in recovery.parts if each in forms]
        )
        given = np.concatenate([forms[each].scores for each in recovery.parts if each in forms])
        V, scaling = recovery.loadings[:, columns], recovery.problem.scaling
        scale = 1.0 if scaling is None else scaling.scale[columns][:, None]
        pull = V @ (given * scale - recovery.offset[columns])
        penalty, top = recovery.problem.penalty, recovery.problem.bounds.score
        scores = penalty.sweep(self.scores.copy(), V @ V.T, pull, top, scale=1.0, sweeps=_SWEEPS, xp=np)
        return BatteryForm(recovery, forms, counts, scores)


@dataclass(frozen=True, eq=False)
class ShortForm:
    """A short form of a questionnaire, with what its scores are worth.

    Parameters
    ----------
    items : tuple of str
        The items, in the questionnaire's order.
    model : ICQF or MetaICQF
        The model of these items, which scores the short form.
    curve : DataFrame
        One row per length: ``n_items``, ``minutes``, ``added`` and ``dropped`` (items, in words),
        ``correlation`` (of the scores with those of the full form, mean of the factors, cross-validated),
        ``worst`` (the lowest of any factor), ``top_loading`` (the mean for the same number of items with the
        largest loadings), and the correlation of each factor.
    factors : DataFrame
        One row per factor: ``factor``, ``correlation`` (with the full form's score, cross-validated),
        ``reliability`` (of the short form's score), and ``corrected``: the expected correlation with what the
        full form measures, without the errors that the two forms share. The last two are NaN in a battery.
    bands : DataFrame
        ``factor, score, low, high``: 90 % interval of the full form's score relative to the short form's,
        for participants who answer every item of the short form.
    n_items : int
        Items of the full form.
    n_participants : int
        Participants of the evaluation, each left out of the choice of the items they were scored with.
    """

    items: tuple[str, ...]
    model: Any
    curve: pd.DataFrame
    factors: pd.DataFrame
    bands: pd.DataFrame
    n_items: int
    n_participants: int

    @property
    def correlation(self) -> float:
        """Mean correlation of the scores with those of the full form, cross-validated."""
        return float(self.curve["correlation"].iloc[-1])

    @property
    def worst(self) -> tuple[str, float]:
        """The factor with the lowest correlation, and that correlation."""
        by_factor = self.factors.set_index("factor")["correlation"]
        return str(by_factor.idxmin()), float(by_factor.min())

    @property
    def minutes(self) -> float | None:
        """Time of the form, or None."""
        last = self.curve["minutes"].iloc[-1]
        return None if np.isnan(last) else float(last)

    @property
    def sentence(self) -> str:
        """What the scores are worth, in words."""
        name, least = self.worst
        time = "" if self.minutes is None else f", about {counted(round(self.minutes), 'minute')}"
        number, top = len(self.items), self.curve["top_loading"].iloc[-1]
        reliability, corrected = self.factors[["reliability", "corrected"]].mean()
        worth = (
            "Reliability was not estimated for a battery."
            if np.isnan(corrected)
            else f"Their reliability is {reliability:.2f}. Their expected correlation with what the full "
            f"form measures is {corrected:.2f}: the first figure also counts the errors that the two forms "
            "share."
        )
        return (
            f"{number} of {counted(self.n_items, 'item')}{time}: in new participants, scores correlate "
            f"{self.correlation:.2f} with those of the full form on average over the factors, and "
            f"{least:.2f} for {name} (cross-validated in {counted(self.n_participants, 'participant')}); the "
            f"{counted(number, 'highest-loading item')} reach {top:.2f}. {worth}"
        )


def shortform(
    model: ICQF | MetaICQF,
    X: Any,
    *,
    confounds: Any = None,
    groups: Any = None,
    max_items: int | None = None,
    correlation: float | None = None,
    keep: str | Iterable[str] = (),
    drop: str | Iterable[str] = (),
    minutes: float | Mapping[str, float] | None = None,
    max_minutes: float | None = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
    callback: Callable[[Progress], object] | None = None,
) -> ShortForm:
    """Choose the items that best recover the scores of the full form, and evaluate the choice.

    Items are chosen in participants simulated from the model and the real ones, by forward selection with
    exchanges (`search_forms`). If the same number of items with the largest loadings do better in the real
    participants, these are used. The evaluation repeats all of it in five folds: loadings are fitted and
    items chosen without the participants of a fold, who are then scored with these items alone. (Loadings
    are not fitted again for a battery, or where X has another number of participants than the fit.)

    Parameters
    ----------
    model : fitted ICQF or MetaICQF
        The model of the full form. For a battery, the scores to recover are those of its meta-factors, and
        items are named ``instrument: item``.
    X : table, array (n, m) or Questionnaire; Battery or mapping of instruments
        Answers to all items.
    confounds : table, optional
        Of the same participants, where the model has confounds.
    groups : array (n,), optional
        Families or sites, which are held out together. None: those of the questionnaire, if X is one.
    max_items : int, optional
        Length of the form. None: 20, or half of the items where these are fewer than 40.
    correlation : float, optional
        Sufficient mean correlation with the full form; the shortest form that reaches it is used.
    keep, drop : str or iterable of str
        Names or globs of items that must be asked, and of items that must not.
    minutes : number or mapping, optional
        Time per item, or of each item; items are then chosen by their gain per minute.
    max_minutes : float, optional
        Most minutes of the form.
    random_state, n_jobs, callback
        As for `icqf.ICQFCV`.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.analyses import shortform
    >>> demo = load_demo().select(["q00*", "q01*", "q02*"])
    >>> model = ICQF(3, beta=0.1).fit(demo)
    >>> form = shortform(model, demo, max_items=10, keep="q001", drop=["q02*"], minutes=0.2)
    >>> "q001" in form.items, form.curve["n_items"].tolist()[-1], form.minutes
    (True, 10, 2.0)
    """
    check_is_fitted(model)
    if isinstance(X, (Questionnaire, Battery)) and groups is None:
        groups = X.groups
    recovery = MetaRecovery if isinstance(model, MetaICQF) else ModelRecovery
    everyone: Any = recovery.of(model, X, confounds=confounds)
    names = list(everyone.items)
    choice = _Choice(*_form_limits(names, keep, drop, max_items), *_minutes(names, minutes, max_minutes))
    if correlation is not None:
        check_parameter("correlation", correlation)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    fold = folds_of(everyone, groups, rng)
    if not np.ptp(everyone.wanted, axis=1).any():
        raise InputError(
            "All participants have the same scores, so no item can tell them apart. Give the answers of "
            "participants who differ."
        )
    number = int(fold.max()) + 1
    streams = rng.spawn(number + 1)

    def reporting(done: int) -> Callable[[Progress], object] | None:
        whole = (number + 1) * choice.length
        return callback and (lambda now: callback(Progress(done * choice.length + now.done, whole)))

    alone = effective_n_jobs(n_jobs) == 1  # only then can each fold tell its progress
    calls = (
        (choice.held_out, everyone, fold == at, streams[at + 1], reporting(at + 1) if alone else None)
        for at in range(number)
    )
    with closing_quietly(start_calls(calls, n_jobs=n_jobs)) as found:
        forms = choice.forms(everyone, streams[0], reporting(0))
        if not forms:
            raise parameter_error(
                "max_minutes", f" is {max_minutes:g}, but every item takes longer; give more."
            )
        folds = []
        for each in found:
            folds.append(each)
            if callback is not None:
                callback(Progress((1 + len(folds)) * choice.length, (1 + number) * choice.length))
    curve = _curve(everyone, folds, forms, choice.minutes)
    if correlation is not None:
        curve = _up_to(curve, correlation)
    form = forms[len(curve) - 1]
    factors = list(model.get_feature_names_out())
    short, full, complete = _pooled(folds, len(form))
    return ShortForm(
        tuple(names[item] for item in sorted(form)),
        everyone.reduced(form),
        curve,
        _worth(folds, len(form), factors),
        _bands(
            *((short[:, complete], full[:, complete]) if complete.sum() >= FEWEST else (short, full)), factors
        ),
        len(names),
        everyone.n,
    )


@dataclass(frozen=True, eq=False)
class _HeldOut:
    """Participants of a fold, with a model and forms of every length that were found without them."""

    participants: Any
    forms: dict[int, tuple[int, ...]]
    ranked: tuple[int, ...]

    def form(self, length: int) -> tuple[int, ...]:
        """The form of this length, or the longest where the minutes allow no longer one."""
        return self.forms[min(length, max(self.forms))]


@dataclass(frozen=True, eq=False)
class _Choice:
    """How items are chosen."""

    keep: tuple[int, ...]
    drop: frozenset[int]
    length: int
    minutes: Array | None
    max_minutes: float | None

    def ranked(self, participants: Any) -> tuple[int, ...]:
        return top_loading(participants.shares, self.length, self.keep, self.drop)

    def forms(
        self, participants: Any, rng: np.random.Generator, callback: Callable[[Progress], object] | None
    ) -> list[tuple[int, ...]]:
        """A form of each length: of the search, or of the largest loadings if these do better."""
        ranked, limit = self.ranked(participants), self.max_minutes
        forms = search_forms(
            participants.simulated(rng),
            max_items=self.length,
            keep=self.keep,
            drop=self.drop,
            minutes=self.minutes,
            max_minutes=np.inf if limit is None else limit,
            begin=ranked,
            callback=callback,
        )
        chosen = []
        for form in forms:
            other = ranked[: len(form)]
            if self.minutes is not None:
                most = self.minutes[list(form)].sum() if limit is None else limit
                other = other if self.minutes[list(other)].sum() <= most else form
            if {*form} != {*other}:
                own, theirs = (
                    np.nanmean(_correlations(participants.exact(each), participants.wanted))
                    for each in (form, other)
                )
                form = other if theirs > own else form
            chosen.append(form)
        return chosen

    def held_out(
        self,
        everyone: Any,
        outside: Array,
        rng: np.random.Generator,
        callback: Callable[[Progress], object] | None,
    ) -> _HeldOut:
        """Choose without some participants."""
        inside = np.flatnonzero(~outside)
        apart = everyone.fitted_to(inside)
        choosing = apart.take(inside)
        forms = {len(form): form for form in self.forms(choosing, rng, callback)}
        return _HeldOut(apart.take(np.flatnonzero(outside)), forms, self.ranked(choosing))


def _up_to(curve: pd.DataFrame, correlation: float) -> pd.DataFrame:
    """The lengths up to the first that is sufficient; all if none is."""
    enough = np.flatnonzero(curve["correlation"] >= correlation)
    if len(enough):
        return curve.iloc[: enough[0] + 1]
    warnings.warn(
        f"No form of up to {counted(int(curve['n_items'].iloc[-1]), 'item')} reaches a mean correlation of "
        f"{correlation:g} with the full form; the best found has {curve['correlation'].max():.3f}.",
        stacklevel=3,
    )
    return curve


def _form_limits(
    names: list[str], keep: str | Iterable[str], drop: str | Iterable[str], max_items: int | None
) -> tuple[tuple[int, ...], frozenset[int], int]:
    """Positions of the items to keep and to drop, and the length of the form, checked."""
    if max_items is not None:
        check_parameter("max_items", max_items)
    kept, dropped = (
        [*match_names([which] if isinstance(which, str) else which, names)] for which in (keep, drop)
    )
    both = [name for name in kept if name in set(dropped)]
    if both:
        raise InputError(f"Item {both[0]!r} is to be both kept and dropped; choose one.")
    left = len(names) - len(dropped)
    if not left:
        raise InputError("All items are to be dropped, so none is left to ask; drop fewer.")
    if max_items is None:
        max_items = max(min(20, (left + 1) // 2), len(kept))
    if max_items > left:
        raise parameter_error(
            "max_items",
            f" is {max_items}, and there {'is' if left == 1 else 'are'} {counted(left, 'item')} to choose "
            f"from; give at most {left}.",
            value=max_items,
        )
    if len(kept) > max_items:
        raise parameter_error(
            "max_items",
            f" is {max_items}, and {counted(len(kept), 'item')} must be kept ({listed(kept)}); give at least "
            f"{len(kept)}, or keep fewer.",
            value=max_items,
        )
    places = {name: at for at, name in enumerate(names)}
    return tuple(places[name] for name in kept), frozenset(places[name] for name in dropped), max_items


def _minutes(
    names: list[str], minutes: float | Mapping[str, float] | None, max_minutes: float | None
) -> tuple[Array | None, float | None]:
    """Minutes (m,) of each item, and the most that a form may take."""
    if minutes is None:
        if max_minutes is not None:
            raise parameter_error("max_minutes", " needs minutes: give the time that an item takes.")
        return None, None
    if max_minutes is not None:
        check_parameter("max_minutes", max_minutes)
    if not isinstance(minutes, Mapping):
        check_parameter("minutes", minutes)
        return np.full(len(names), float(minutes)), max_minutes
    strange = [str(name) for name in minutes if str(name) not in names]
    if strange:
        raise parameter_error(
            "minutes",
            f" names {strange[0]!r}, which is not an item of the model.{did_you_mean(strange[0], names)}",
        )
    absent = [name for name in names if name not in minutes]
    if absent:
        raise parameter_error("minutes", f" has no time for the item {absent[0]!r}; give one for every item.")
    for name in names:
        if not (np.isfinite(minutes[name]) and minutes[name] > 0):
            raise parameter_error(
                "minutes", f" of the item {name!r} must be a number above 0, not {minutes[name]!r}."
            )
    return np.array([float(minutes[name]) for name in names]), max_minutes


def _correlations(short: Array, full: Array) -> Array:
    """Correlation (k,) of scores, among participants who have them; NaN if the full form's are constant."""
    scored = ~np.isnan(short).any(axis=0)
    if scored.sum() < 2:
        return np.full(len(full), np.nan)
    short, full = short[:, scored], full[:, scored]
    return np.where(np.ptp(full, axis=1) > 0, correlation_by_row(short, full), np.nan)


def _pooled(folds: Sequence[_HeldOut], length: int, *, ranked: bool = False) -> tuple[Array, Array, Array]:
    """Held-out participants' scores (k, n) from a form and all items, and who answered the whole form."""
    found = []
    for fold in folds:
        form, who = fold.ranked[:length] if ranked else fold.form(length), fold.participants
        found.append((who.exact(form), who.wanted, who.complete(form)))
    short, full, complete = (np.concatenate(each, axis=-1) for each in zip(*found, strict=True))
    scored = ~np.isnan(short).any(axis=0)
    return short[:, scored], full[:, scored], complete[scored]


def _curve(
    everyone: Any, folds: Sequence[_HeldOut], forms: Sequence[tuple[int, ...]], minutes: Array | None
) -> pd.DataFrame:
    """The form of each length, with the correlation that its choice reaches in held-out participants."""
    names, factors = everyone.items, list(everyone.model.get_feature_names_out())
    rows, before = [], frozenset[int]()
    for form in forms:
        by_factor, picked = (
            _correlations(*_pooled(folds, len(form), ranked=ranked)[:2]) for ranked in (False, True)
        )
        rows.append(
            {
                "n_items": len(form),
                "minutes": np.nan if minutes is None else float(minutes[list(form)].sum()),
                "added": "; ".join(names[item] for item in form if item not in before),
                "dropped": "; ".join(names[item] for item in sorted(before - {*form})),
                "correlation": float(np.nanmean(by_factor)),
                "worst": float(np.nanmin(by_factor)),
                "top_loading": float(np.nanmean(picked)),
                **dict(zip(factors, by_factor.tolist(), strict=True)),
            }
        )
        before = frozenset(form)
    return pd.DataFrame(rows)


def _worth(folds: Sequence[_HeldOut], length: int, factors: list[str]) -> pd.DataFrame:
    """By factor: correlation with the full form, reliability, and correlation with what it measures.

    See docs/short-forms.md for the formulas.
    """
    short, full, _ = _pooled(folds, length)
    table = pd.DataFrame({"factor": factors, "correlation": _correlations(short, full)})
    errors = [fold.participants.errors(fold.form(length)) for fold in folds]
    if any(each is None for each in errors):
        return table.assign(reliability=np.nan, corrected=np.nan)
    error_full, error_short, error_shared = _Errors.added(errors).variances()
    spread = np.maximum(short.var(axis=1), 1e-12)
    steady = full.var(axis=1) - error_full
    together = ((short - short.mean(axis=1, keepdims=True)) * full).mean(axis=1) - error_shared
    size = np.sqrt(np.where(steady > 0, steady * spread, np.nan))  # no factor where all is error
    return table.assign(
        reliability=np.clip(1 - error_short / spread, 0, 1), corrected=np.clip(together / size, 0, 1)
    )


def _bands(short: Array, full: Array, factors: list[str]) -> pd.DataFrame:
    """90 % intervals of the full form's score relative to the short form's, among participants near it.

    Where one in twenty or more has the lowest (or highest) score there is, the interval ends there, and all
    who may be outside are on the other side.
    """
    n = short.shape[1]
    near, tail = min(n, max(_NEIGHBOURS, n // 6)), (1 - COVERED) / 2
    rows = []
    for name, scores, wanted in zip(factors, short, full, strict=True):
        bottom, top = 0.0, max(1.0, float(wanted.max()))
        for knot in np.linspace(0.0, max(1.0, float(scores.max())), _KNOTS):
            distance = np.abs(scores - knot)
            close = distance <= np.partition(distance, near - 1)[near - 1]
            own, apart = wanted[close], (wanted - scores)[close]
            at_bottom, at_top = (own <= bottom + 1e-6).mean() >= tail, (own >= top - 1e-6).mean() >= tail
            below = 0.0 if at_bottom else 2 * tail if at_top else tail
            above = 0.0 if at_top else 2 * tail if at_bottom else tail
            grown = 1 + 1 / len(apart)  # one more participant is to be inside
            low = -np.quantile(-apart, min((1 - below) * grown, 1.0), method="higher")
            high = np.quantile(apart, min((1 - above) * grown, 1.0), method="higher")
            rows.append((name, float(knot), float(low), float(high)))
    return pd.DataFrame(rows, columns=["factor", "score", "low", "high"])
