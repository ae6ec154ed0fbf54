"""Is the second level worthwhile? Two stages beside one flat factorization, on the same hidden answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from icqf.core.problem import Problem
from icqf.core.result import Factors
from icqf.core.start import Starts
from icqf.data.battery import Battery
from icqf.data.parameters import check_parameter
from icqf.engines.choice import run
from icqf.engines.parallel import Progress, run_all
from icqf.errors import InputError
from icqf.models.icqf import ICQF
from icqf.models.icqfcv import ICQFCV
from icqf.models.meta import MetaICQF, scores_questionnaire
from icqf.models.statement import StatedProblem
from icqf.resampling import tolerances
from icqf.resampling.folds import folds_of
from icqf.resampling.hidden import HeldOut, HiddenError

Array = NDArray[Any]
Hide = Literal["answers", "instruments"]
MEANS, ALONE, TWO_STAGES, FLAT = "item means", "each instrument alone", "two stages", "one flat"
ALL = "all instruments"


@dataclass(frozen=True, eq=False)
class HierarchyComparison:
    """How well hidden answers are predicted by two stages and by one flat factorization of all items.

    Attributes
    ----------
    table : DataFrame
        One row per instrument (and for all together) and method: `error`, the root mean squared error as a
        share of the item's range; `predicted`, by how much the squared error is smaller than that of the
        items' means, as a share (below 0 the means predict better); and `n_hidden` answers.
    hide : {"answers", "instruments"}
        What was hidden.
    flat : ICQF
        The flat factorization, fitted to all answers.
    n_splits : int

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import make_battery
    >>> from icqf.models import MetaICQF, compare_hierarchy
    >>> battery = make_battery(n=120, n_items=(6, 6), n_factors=2, n_meta=2, random_state=0).battery
    >>> model = MetaICQF(ICQF(2), meta_estimator=ICQF(2)).fit(battery)
    >>> found = compare_hierarchy(model, battery, flat=ICQF(2), n_splits=3)
    >>> sorted(found.overall)
    ['each instrument alone', 'item means', 'one flat', 'two stages']
    """

    table: pd.DataFrame
    hide: Hide
    flat: ICQF
    n_splits: int

    @property
    def overall(self) -> dict[str, float]:
        """Share of the variance predicted over all instruments, by method."""
        mine = self.table[self.table["instrument"] == ALL]
        return dict(zip(mine["method"], mine["predicted"].astype(float), strict=True))

    def __str__(self) -> str:
        hidden = "answers" if self.hide == "answers" else "whole instruments"
        wide = self.table.pivot(index="instrument", columns="method", values="predicted")
        wide = wide.reindex(list(dict.fromkeys(self.table["instrument"])))
        wide = wide[[name for name in (ALONE, TWO_STAGES, FLAT) if name in wide]]
        head = f"Share of the variance of hidden {hidden} that is predicted ({self.n_splits} folds):\n"
        return head + wide.to_string(float_format="{:.3f}".format) + "\n" + self.verdict

    __repr__ = __str__

    @property
    def verdict(self) -> str:
        """In one sentence, whether the hierarchy pays.

        Two shares that differ by less than a hundredth count as alike.
        """
        two, flat = self.overall[TWO_STAGES], self.overall[FLAT]
        what = "hidden answers" if self.hide == "answers" else "an instrument that was not given"
        if abs(two - flat) < 0.01:
            said = f"about as well as one flat factorization ({two:.1%}, {flat:.1%})"
        else:
            word = "better" if two > flat else "worse"
            said = f"{word} than one flat factorization ({two:.1%} against {flat:.1%})"
        # A share below 0 is a larger error than that of the items' means.
        tail = ", but both do worse than the items' means" if max(two, flat) < 0 else ""
        return f"Two stages predict {what} {said}{tail}."


def compare_hierarchy(
    model: MetaICQF,
    X: Any,
    *,
    confounds: Any = None,
    flat: ICQF | ICQFCV | None = None,
    hide: Hide = "answers",
    n_splits: int = 10,
    n_jobs: int | None = None,
    checkpoint: Any = None,
    callback: Callable[[Progress], object] | None = None,
    random_state: int = 0,
) -> HierarchyComparison:
    """Hide answers, fit both stages and one flat factorization to the rest, and predict what was hidden.

    Each fold is fitted afresh, and nothing of a hidden answer reaches a fit. The numbers of factors and the
    penalties are those of the models, which were chosen with all answers, for the flat model as for the two
    stages. Ranges that are not declared are those of the whole table.

    Parameters
    ----------
    model : fitted MetaICQF
    X, confounds
        The data that it was fitted to.
    flat : ICQF, ICQFCV or None
        The flat factorization of all items: one that is fitted already, one to fit, or a search. None
        searches.
    hide : {"answers", "instruments"}
        Blocks of answers, as in the choice of the number of factors; or whole instruments of participants
        who have others, which tells how well an instrument that was not given is made up for.
    n_splits : int
        Number of folds.
    n_jobs : int, optional
        Processes.
    checkpoint : path, optional
        Journal of the folds, from which an interrupted comparison continues.
    callback : callable, optional
        Told how many folds are done.
    random_state : int
        Seed of the folds.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import make_battery
    >>> from icqf.models import MetaICQF, compare_hierarchy
    >>> battery = make_battery(n=120, n_items=(6, 6, 6), n_factors=2, n_meta=2, random_state=0).battery
    >>> model = MetaICQF(ICQF(2), meta_estimator=ICQF(2)).fit(battery)
    >>> found = compare_hierarchy(model, battery, flat=ICQF(2), hide="instruments", n_splits=3)
    >>> found.overall["two stages"] > found.overall["item means"]
    True
    """
    check_is_fitted(model)
    check_parameter("n_splits", n_splits)
    if hide not in ("answers", "instruments"):
        raise InputError(f"hide must be 'answers' or 'instruments', not {hide!r}.")
    battery = Battery.of(X, confounds=confounds)
    if battery.names != list(model.instruments_):
        raise InputError("The battery is not the one that the model was fitted to: its instruments differ.")
    plan = FoldPlan.of(model, battery, _fitted(flat, battery, random_state))
    masks = plan.masks(hide, n_splits, random_state)
    found = run_all(
        {f"fold {fold}": (plan, mask, hide) for fold, mask in enumerate(masks)},
        _judged,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        callback=callback,
    )
    return HierarchyComparison(_table(plan, list(found.values())), hide, plan.flat_model, n_splits)


def _fitted(flat: ICQF | ICQFCV | None, battery: Battery, seed: int) -> ICQF:
    if isinstance(flat, ICQF) and hasattr(flat, "components_"):
        if len(flat.item_range_) != sum(each.n_items for each in battery.instruments.values()):
            raise InputError("flat was fitted to other items than those of the battery.")
        return flat
    search: Any = ICQFCV(random_state=seed) if flat is None else clone(flat)
    fitted = search.fit(battery.flat())
    return fitted.best_estimator_ if isinstance(fitted, ICQFCV) else fitted


@dataclass(frozen=True, eq=False)
class FoldPlan:
    """What all folds share: the stated problems, who is in which, and the settings of the fits."""

    battery: Battery
    stated: dict[str, StatedProblem]  # of each instrument
    flat: StatedProblem  # of all items
    models: dict[str, ICQF]  # of each instrument
    meta: ICQF  # of the instruments' scores, and of all items
    flat_model: ICQF
    rows: dict[str, Array]  # where each instrument's participants stand among those of the flat problem
    columns: dict[str, slice]  # where each instrument's items stand among all

    @classmethod
    def of(cls, model: MetaICQF, battery: Battery, flat_model: ICQF) -> FoldPlan:
        """State all problems."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the fits have said what there is to say
            flat = flat_model.state(battery.flat())
            stated = {name: model.instruments_[name].state(q) for name, q in battery.instruments.items()}
        place = np.cumsum(flat.kept) - 1
        rows, columns, first = {}, {}, 0
        for name, each in stated.items():
            rows[name] = place[battery.rows(name)[each.kept]]
            columns[name] = slice(first, first + each.problem.m)
            first += each.problem.m
        return cls(battery, stated, flat, model.instruments_, model.meta_, flat_model, rows, columns)

    def masks(self, hide: Hide, n_splits: int, seed: int) -> list[Array]:
        """Which answers (n, items) each fold hides."""
        rng = np.random.default_rng(seed)
        groups = self.battery.groups
        together = None
        if groups is not None:
            together = np.unique(groups[self.flat.kept].astype(str), return_inverse=True)[1]
        if hide == "answers":
            folds = folds_of(self.flat.problem, groups=together, n_splits=n_splits, rng=rng)
            return [folds.mask(fold) for fold in range(n_splits)]
        units = np.arange(self.flat.problem.n) if together is None else together
        names = list(self.columns)
        # In each unit (a participant or a family) the instruments are dealt to folds that follow each other.
        ranks = rng.permuted(np.tile(np.arange(len(names)), (units.max() + 1, 1)), axis=1)
        fold_of = (ranks + rng.integers(0, n_splits, len(ranks))[:, None]) % n_splits
        answered = self.battery.answered.to_numpy()[self.flat.kept]
        masks = []
        for fold in range(n_splits):
            hidden = (fold_of == fold)[units] & answered
            hidden &= (answered & ~hidden).any(axis=1)[:, None]  # something must be left to predict from
            mask = np.zeros((self.flat.problem.n, self.flat.problem.m), dtype=bool)
            for at, name in enumerate(names):
                mask[:, self.columns[name]] = hidden[:, at, None]
            masks.append(mask)
        return masks


@dataclass(frozen=True, eq=False)
class FoldFit:
    """The fits of a fold: by instrument, its own scores, those from the meta-factors, and loadings."""

    held: dict[str, HeldOut]  # what the fits of each instrument saw
    alone: dict[str, Factors]  # scores of the first stage, and of the second, with the loadings of the first
    two_stages: dict[str, Factors]
    flat_held: HeldOut
    flat: Factors


def fit_fold(plan: FoldPlan, mask: Array) -> FoldFit:
    """Fit both stages and the flat model without the answers that `mask` (n, items) hides."""
    held, alone, tables = {}, {}, []
    for name, stated in plan.stated.items():
        own = plan.models[name]
        hidden = mask[plan.rows[name], plan.columns[name]]
        held[name] = HeldOut(stated.problem.with_beta(float(own.beta)), hidden, given=stated.given)
        seen = ((stated.problem.answers >= 0) & ~hidden).any(axis=1)
        k = len(own.components_)
        factors = _factors(held[name].visible.of_rows(np.flatnonzero(seen)), own, k)
        scores = np.full((k, stated.problem.n), np.nan)
        scores[:, seen] = factors.scores
        alone[name] = Factors(scores, factors.loadings)
        table = np.full((plan.flat.problem.n, k), np.nan)
        table[plan.rows[name]] = scores.T
        tables.append(table)
    expected = _expected(plan, np.concatenate(tables, axis=1))
    two_stages, first = {}, 0
    for name, factors in alone.items():
        last = first + len(factors.scores)
        two_stages[name] = Factors(expected[plan.rows[name], first:last].T, factors.loadings)
        first = last
    flat_problem = plan.flat.problem.with_beta(float(plan.flat_model.beta))
    flat_held = HeldOut(flat_problem, mask, given=plan.flat.given)
    flat = _factors(flat_held.visible, plan.flat_model, len(plan.flat_model.components_))
    return FoldFit(held, alone, two_stages, flat_held, flat)


def _factors(problem: Problem, model: ICQF, k: int) -> Factors:
    """Scores inside their bounds and loadings of one fit, as fits of a search are made."""
    init = model.init if isinstance(model.init, str) else "nndsvd"
    start = Starts(problem).make(init, k, np.random.default_rng(0))
    (found,) = run(problem, start, tol=tolerances.SEARCH, max_iter=tolerances.MAX_ITER, exact=False)
    return Factors(np.clip(found.factors.scores, 0, 1), found.factors.loadings)


def _expected(plan: FoldPlan, scores: Array) -> Array:
    """The factors' scores (n, factors) that the meta-factors of these scores give."""
    meta, battery = plan.meta, plan.battery
    ids = battery.ids[plan.flat.kept]
    table = pd.DataFrame(scores, index=ids, columns=list(meta.item_range_.index)).reindex(battery.ids)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a factor may vanish in a fold
        stated = meta.state(scores_questionnaire(battery, table))
    problem = stated.problem.with_beta(float(meta.beta)).without_reconstruction_bound()
    factors = _factors(problem, meta, len(meta.components_))
    loadings = problem.own_loadings(factors.loadings)
    expected = np.full((len(battery.ids), scores.shape[1]), np.nan)
    expected[stated.kept] = np.clip(problem.with_confounds(factors.scores, np.float64).T @ loadings, 0, 1)
    expected = np.where(np.isfinite(expected), expected, np.nanmean(expected, axis=0))
    return np.asarray(expected[plan.flat.kept])


def _judged(plan: FoldPlan, mask: Array, hide: Hide) -> dict[str, Any]:
    """Squared errors of each method by item, as shares of its range, and the weights of the answers."""
    fit = fit_fold(plan, mask)
    result: dict[str, Any] = {
        FLAT: _relative(fit.flat_held.error(fit.flat), plan.flat.problem),
        MEANS: _relative(fit.flat_held.error_of_means(), plan.flat.problem),
    }
    parts = {TWO_STAGES: fit.two_stages} | ({ALONE: fit.alone} if hide == "answers" else {})
    for method, factors in parts.items():
        errors = []
        for name, own in factors.items():
            mean = np.nanmean(own.scores, axis=1, keepdims=True)
            filled = Factors(np.where(np.isfinite(own.scores), own.scores, mean), own.loadings)
            errors.append(_relative(fit.held[name].error(filled), plan.stated[name].problem))
        result[method] = [value for each in errors for value in each]
    error = fit.flat_held.error_of_means()
    return result | {"weights": error.weights.tolist(), "counts": _counts(plan, mask)}


def _relative(error: HiddenError, problem: Problem) -> list[float]:
    squares: list[float] = (error.squares / problem.span**2).tolist()
    return squares


def _counts(plan: FoldPlan, mask: Array) -> list[int]:
    counts: list[int] = ((plan.flat.problem.answers >= 0) & mask).sum(axis=0).tolist()
    return counts


def _table(plan: FoldPlan, folds: list[dict[str, Any]]) -> pd.DataFrame:
    sums = {key: np.sum([fold[key] for fold in folds], axis=0) for key in folds[0]}
    rows = []
    everything = slice(0, plan.flat.problem.m)
    for name, part in {**plan.columns, ALL: everything}.items():
        for method in (MEANS, ALONE, TWO_STAGES, FLAT):
            if method in sums:
                squares, base = float(sums[method][part].sum()), float(sums[MEANS][part].sum())
                weight = max(float(sums["weights"][part].sum()), 1e-300)
                rows.append(
                    {
                        "instrument": name,
                        "method": method,
                        "error": np.sqrt(squares / weight),
                        "predicted": 1 - squares / base if base > 0 else np.nan,
                        "n_hidden": int(sums["counts"][part].sum()),
                    }
                )
    return pd.DataFrame(rows)
