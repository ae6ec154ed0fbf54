"""Short forms of a whole battery: which items, across instruments, recover the scores of its meta-factors."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.core.problem import Observations, Problem
from icqf.data.battery import Battery
from icqf.errors import InputError, counted
from icqf.extensions.fitted_meta import FittedMeta
from icqf.extensions.forms import correlation_by_row
from icqf.extensions.meta import MetaICQF
from icqf.extensions.recoveries import FEWEST, SIMULATED, AskedItems, SimulatedRecovery
from icqf.extensions.reduced import reduced_model
from icqf.extensions.simulation import like_others
from icqf.models.statement import state_others

Array = NDArray[Any]
_SWEEPS = 4


def reduced_battery(model: FittedMeta, items: Mapping[str, Iterable[str]]) -> MetaICQF:
    """Return a model of a battery that asks only some items of some of its instruments.

    Parameters
    ----------
    model : fitted MetaICQF
        The model of the whole battery.
    items : mapping of str to iterable of str
        Names or globs of the items to keep, by instrument; an instrument that is not there is not asked.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import make_battery
    >>> from icqf.extensions import MetaICQF, reduced_battery
    >>> battery = make_battery(n=120, n_items=(9, 9), n_factors=2, n_meta=2, random_state=0).battery
    >>> model = MetaICQF(ICQF(2), meta_estimator=ICQF(2)).fit(battery)
    >>> reduced_battery(model, {"A": ["a01", "a02", "a03"]}).item_loadings_.shape
    (3, 2)
    """
    asked: dict[str, list[str]] = {
        name: [names] if isinstance(names, str) else list(names) for name, names in items.items()
    }
    strange = [name for name in asked if name not in model.instruments_]
    if strange or not any(asked.values()):
        raise InputError(
            f"The model has no instrument {strange[0]!r}." if strange else "A form needs at least one item."
        )
    short = MetaICQF()
    short.instruments_ = {
        name: reduced_model(each, asked[name]) for name, each in model.instruments_.items() if asked.get(name)
    }
    factors = [
        str(model.meta_.item_range_.index[at])
        for name in short.instruments_
        for at in range(*model.columns(name).indices(len(model.meta_.item_range_)))
    ]
    short.meta_ = reduced_model(model.meta_, factors)
    short.searches_, short.n_participants_ = {}, model.n_participants_
    return short


@dataclass(frozen=True, eq=False)
class MetaRecovery:
    """How well forms across a battery's instruments recover the scores of its meta-factors.

    The counterpart of `icqf.extensions.recoveries.ModelRecovery` for a model in two stages.
    """

    model: FittedMeta
    battery: Battery
    ids: pd.Index  # the participants (n,) who answered anything, in order
    answered: Array  # who of the battery that is
    wanted: Array  # (K, n)

    @classmethod
    def of(cls, model: FittedMeta, X: Any, *, confounds: Any = None) -> MetaRecovery:
        """Of the participants of a battery."""
        battery = model.as_battery(X, confounds)
        given = dict(zip(battery.instruments, battery.answered.to_numpy().sum(axis=0).tolist(), strict=True))
        for name in model.instruments_:
            if given.get(name, 0) < FEWEST:
                raise InputError(
                    f"Instrument {name!r} was answered by {counted(given.get(name, 0), 'participant')}, but "
                    f"at least {FEWEST} are needed to choose among its items. Give the answers to every "
                    "instrument of the model."
                )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
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
        """Participants are not divided by their confounds."""
        return None

    @property
    def shares(self) -> Array:
        """Loadings composed down to items (K, m), as shares of the items' ranges."""
        spans = [np.ptp(each.item_range_.to_numpy(), axis=1) for each in self.model.instruments_.values()]
        return self.model.item_loadings_.to_numpy().T / np.concatenate(spans)

    def take(self, rows: Array) -> MetaRecovery:
        """Of some of these participants."""
        ids = self.ids[rows]
        parts = {
            name: each.take(np.flatnonzero(each.answers.index.isin(ids)))
            for name, each in self.battery.instruments.items()
        }
        battery = Battery({name: each for name, each in parts.items() if each.n_participants})
        return replace(self, battery=battery, ids=ids, wanted=self.wanted[:, rows])

    def reduced(self, form: Sequence[int]) -> MetaICQF:
        """The model of some of the items."""
        asked: dict[str, list[str]] = {}
        for item in sorted(form):
            name, own = self.places[item]
            asked.setdefault(name, []).append(own)
        return reduced_battery(self.model, asked)

    def exact(self, form: Sequence[int]) -> Array:
        """Scores (K, n) of those who are asked only these items; NaN for who was given none of them."""
        short = self.reduced(form)
        parts = {
            name: self.battery.instruments[name].select([str(item) for item in each.item_range_.index])
            for name, each in short.instruments_.items()
            if name in self.battery.instruments
        }
        if not parts:
            return np.full(self.wanted.shape, np.nan)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return short.transform(Battery(parts)).reindex(self.ids).to_numpy().T

    def accuracies(self, form: Sequence[int]) -> Array:
        """Correlation (K,) of a form's scores with the full battery's; NaN where all have one score there."""
        found = self.exact(form)
        asked = ~np.isnan(found).any(axis=0)
        found, wanted = found[:, asked], self.wanted[:, asked]
        if found.shape[1] < 2:
            return np.full(len(wanted), np.nan)
        return np.where(np.ptp(wanted, axis=1) > 0, correlation_by_row(found, wanted), np.nan)

    def simulated(self, rng: np.random.Generator, n: int = SIMULATED) -> SimulatedBatteryRecovery:
        """Of simulated participants who were given every instrument.

        Each has the factors' scores of a participant, or what the meta-factors expect where an instrument was
        not given, and answers items as others do of whom about the same is expected.
        """
        ids, confounds = self.ids, self.battery.confounds
        beside = None if confounds is None else confounds.reindex(ids)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            scores = self.model.factor_scores(self.battery).reindex(ids).to_numpy()
            expected = np.asarray(self.model.meta_.inverse_transform(self.wanted.T, confounds=beside))
        scores = np.where(np.isnan(scores), np.clip(expected, 0, 1), scores)
        drawn = rng.integers(0, self.n, n)
        chosen = None if beside is None else beside.iloc[drawn].reset_index(drop=True)
        parts = {
            name: self._simulated_part(name, scores[drawn][:, self.model.columns(name)], chosen, rng)
            for name in self.model.instruments_
        }
        joined = np.concatenate([part.wanted for part in parts.values()]).T
        table = pd.DataFrame(joined, columns=list(self.model.meta_.item_range_.index))
        problem, _ = state_others(self.model.meta_, table, chosen)
        return SimulatedBatteryRecovery(
            self.model, parts, problem, self.model.meta_.solve_scores(problem), tuple(self.places)
        )

    def _simulated_part(
        self, name: str, scores: Array, confounds: pd.DataFrame | None, rng: np.random.Generator
    ) -> SimulatedRecovery:
        model = self.model.instruments_[name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            real, _ = state_others(model, self.battery.instruments[name], None)
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
    """The same of simulated participants; see `icqf.extensions.Recovery`."""

    model: FittedMeta
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
        """Instrument of each item, and its place there."""
        return [(name, self.parts[name].items.index(item)) for name, item in self.places]

    @cached_property
    def loadings(self) -> Array:
        """Loadings of the meta-factors (K, factors), in the second stage's units."""
        return self.problem.scaled_loadings(self.model.meta_.components_)

    @cached_property
    def offset(self) -> Array:
        """What confounds and intercept add to the factors' scores (factors, n), in the same units."""
        loadings = self.problem.scaled_loadings(self.model.meta_.confound_components_)
        return loadings.T @ self.problem.design

    def nothing(self) -> AskedBattery:
        """The form that asks nothing."""
        return AskedBattery(self, {}, {}, np.zeros(self.wanted.shape))


@dataclass(frozen=True, eq=False)
class AskedBattery:
    """A form of items across instruments; instruments without an item are missing in the second stage."""

    recovery: SimulatedBatteryRecovery
    forms: dict[str, AskedItems]
    counts: dict[str, int]
    scores: Array  # (K, n)

    def plus(self, item: int) -> AskedBattery:
        """The form with one more item."""
        name, at = self.recovery.local[item]
        form = self.forms.get(name) or self.recovery.parts[name].nothing()
        return self._with(name, form.plus(at), self.counts.get(name, 0) + 1)

    def minus(self, item: int) -> AskedBattery:
        """The form without one of its items."""
        name, at = self.recovery.local[item]
        return self._with(name, self.forms[name].minus(at), self.counts[name] - 1)

    def _with(self, name: str, form: AskedItems, count: int) -> AskedBattery:
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
        return AskedBattery(recovery, forms, counts, scores)
