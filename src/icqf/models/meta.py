"""Meta-factors: what the factors of several instruments share, and whether a second level is worthwhile."""

from __future__ import annotations

import numbers
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import t as student
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from icqf.core.problem import Problem
from icqf.core.result import Factors
from icqf.core.start import Starts
from icqf.data.battery import Battery
from icqf.data.frames import as_pandas
from icqf.data.questionnaire import Item, Questionnaire
from icqf.data.settings import check_parameter
from icqf.data.validate import EmptyRowsWarning
from icqf.engines.choice import run
from icqf.engines.journal import WorkJournal
from icqf.engines.parallel import run_all
from icqf.engines.progress import Progress
from icqf.errors import InputError, did_you_mean, listed
from icqf.io.model_file import StoredModel, damage_refused, read_battery_model, write_battery_model
from icqf.models.icqf import ICQF
from icqf.models.icqfcv import ICQFCV
from icqf.models.persistence import rebuild
from icqf.models.statement import StatedProblem
from icqf.resampling import tolerances
from icqf.resampling.folds import folds_of, units_of
from icqf.resampling.hidden import HeldOut, HiddenError

Array = NDArray[Any]
META = "meta"  # name of the second stage
META_BETAS = (0.01, 0.05, 0.1)  # of its default search: stronger ones would hide weak relations
LEAST = 0.1  # loading of a factor from which it belongs to a meta-factor
CHANCE = 0.05  # how often unrelated instruments may seem to have a common factor
_SPLITS = 5  # folds in which instruments are hidden
Stage = ICQF | ICQFCV


def factor_name(instrument: str, factor: str) -> str:
    """Name of an instrument's factor as an item of the second stage."""
    return f"{instrument}: {factor}"


def scores_questionnaire(battery: Battery, scores: pd.DataFrame) -> Questionnaire:
    """The joined scores as a questionnaire with the range 0 to 1."""
    items = tuple(
        Item(str(name), wording=str(name), min=0.0, max=1.0, subscale=str(name).rpartition(": ")[0])
        for name in scores.columns
    )
    return Questionnaire(
        scores, items, confounds=battery.confounds, groups=battery.groups, weights=battery.weights
    )


def scores_table(name: str, model: ICQF, scores: Array, index: pd.Index) -> pd.DataFrame:
    columns = [factor_name(name, factor) for factor in model.get_feature_names_out()]
    return pd.DataFrame(scores, index=index, columns=columns)


def _as_questionnaire(name: str, model: ICQF, table: Any) -> Questionnaire:
    """A table of new participants as a questionnaire with the ranges of the fit."""
    frame = as_pandas(table)
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"Instrument {name!r} must be a questionnaire or a table indexed by participant id.")
    wanted = [str(item) for item in model.item_range_.index]
    absent = [item for item in wanted if item not in frame.columns]
    if absent:
        raise InputError(
            f"Instrument {name!r} lacks {len(absent)} of its {len(wanted)} items: {listed(absent)}. Give an "
            "item that was not asked as a column of missing answers."
        )
    ranges = model.item_range_.to_numpy().tolist()
    items = tuple(Item(item, min=low, max=high) for item, (low, high) in zip(wanted, ranges, strict=True))
    try:
        return Questionnaire(frame[wanted], items)
    except InputError as error:
        raise error.at(f"Instrument {name!r}") from None


def _check_joined(model: MetaICQF) -> None:
    """Refuse a second stage that does not belong to the instruments."""
    if any(each.score_max != 1 for each in (*model.instruments_.values(), model.meta_) if each is not None):
        raise ValueError("the scores of an instrument may exceed 1")
    if model.meta_ is None:
        return
    factors = [
        factor_name(name, factor)
        for name, each in model.instruments_.items()
        for factor in each.get_feature_names_out()
    ]
    if list(model.meta_.item_range_.index) != factors:
        raise ValueError("the meta-factors are those of other instruments")
    if not (model.meta_.item_range_.to_numpy() == [0.0, 1.0]).all():
        raise ValueError("the scores that the meta-factors describe do not lie between 0 and 1")


class MetaICQF(TransformerMixin, BaseEstimator):
    """Factors across the instruments of a battery, in two stages.

    The first stage factorizes each instrument separately. The second factorizes the joined scores, which lie
    between 0 and 1: [W⁽¹⁾ … W⁽ᴾ⁾] ≈ [U, C]Vᵀ, with 0 ≤ U ≤ 1 and 0 ≤ V ≤ 1. A meta-factor is a pattern of
    factors, and through these a pattern of items. Scores of an instrument that was not given are missing.

    Where the second stage is a search, its number of factors may be 0. There is a common factor only if the
    scores of a hidden instrument, predicted from the participant's other instruments, correlate with those
    found, confounds removed, beyond chance (`common_`, one-sided p < 0.05); and a meta-factor that does not
    load on factors of two instruments at least is left out.

    Parameters
    ----------
    estimator : ICQF, ICQFCV, int, None, or mapping of str to these
        The first stage: one for all instruments, or one for each by name. An `ICQF` sets the number of
        factors and the penalty, a number only the former, as in ``{"mood": 2, "sleep": 3}``; an `ICQFCV`
        chooses both. None is ``ICQFCV()``.
    meta_estimator : ICQF, ICQFCV or None
        The second stage. None is ``ICQFCV(ICQF(item_weight="variance"), betas=[0.01, 0.05, 0.1])``, so that
        rare factors count as much as common ones. An `ICQF` sets the number of meta-factors.
    checkpoint, callback, random_state
        Of all searches, as for `icqf.ICQFCV`; the `stage` of a `Progress` is the instrument.

    Attributes
    ----------
    instruments_ : dict of str to ICQF
        The fitted models of the first stage.
    meta_ : ICQF or None
        The fitted model of the second: its items are the factors of the instruments. None if the instruments
        have no common factor.
    common_ : CommonFactor or None
        How well scores of a hidden instrument are predicted from the others: `correlation` and `p`; None for
        a model from a file.
    searches_ : dict of str to ICQFCV
        The searches by instrument, if any; that of the second stage is "meta".
    loadings_ : DataFrame (factors, K)
        What each meta-factor adds to each factor's score; rows are (instrument, factor).
    item_loadings_ : DataFrame (items, K)
        Loadings composed down to items, QV, in the items' own units; rows are (instrument, item).
    n_participants_ : int
        Participants who answered anything.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import make_battery
    >>> from icqf.models import MetaICQF
    >>> battery = make_battery(n=200, n_items=(9, 9, 9), n_factors=3, n_meta=3, random_state=0).battery
    >>> model = MetaICQF(ICQF(3), meta_estimator=ICQF(3)).fit(battery)
    >>> model.loadings_.shape, model.item_loadings_.shape
    ((9, 3), (27, 3))
    >>> new = {"B": battery.instruments["B"].answers.head(2)}
    >>> model.transform(new).shape
    (2, 3)
    """

    instruments_: dict[str, ICQF]
    meta_: ICQF | None
    common_: CommonFactor | None
    searches_: dict[str, ICQFCV]
    n_participants_: int

    def __init__(
        self,
        estimator: Stage | int | Mapping[str, Stage | int | None] | None = None,
        *,
        meta_estimator: Stage | None = None,
        checkpoint: str | os.PathLike[str] | WorkJournal | None = None,
        callback: Callable[[Progress], object] | None = None,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.meta_estimator = meta_estimator
        self.checkpoint = checkpoint
        self.callback = callback
        self.random_state = random_state

    # --- fitting -------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, confounds: Any = None) -> MetaICQF:
        """Factorize each instrument, and then the joined scores.

        Parameters
        ----------
        X : mapping of str to Questionnaire or table, list of these, or Battery
            The instruments, joined by participant id. Ranges, confounds, groups, weights and reverse-keyed
            items of questionnaires are used.
        confounds : table, optional
            By participant id, for both stages; replaces those of the questionnaires.
        """
        self.fit_transform(X, confounds=confounds)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, confounds: Any = None) -> pd.DataFrame:
        """Factorize, and return the meta-factors' scores (n, K) by participant id."""
        battery = Battery.of(X, confounds=confounds)
        for problem in battery.problems():
            if isinstance(problem, InputError):
                raise problem
            warnings.warn(problem, stacklevel=3)
        stages = self._stages(battery)
        self.searches_: dict[str, ICQFCV] = {}
        self.instruments_: dict[str, ICQF] = {}
        tables = []
        for name, questionnaire in battery.instruments.items():
            model, scores = self._fit_stage(name, stages[name], questionnaire)
            self.instruments_[name] = model
            tables.append(scores_table(name, model, scores, questionnaire.answers.index))
        joined = pd.concat(tables, axis=1).reindex(battery.ids)
        self.n_participants_ = int(joined.notna().any(axis=1).sum())
        scores = self._fit_second(stages[META], battery, scores_questionnaire(battery, joined))
        return pd.DataFrame(scores, index=battery.ids, columns=self.get_feature_names_out())

    def _fit_second(self, stage: Stage, battery: Battery, questionnaire: Questionnaire) -> Array:
        """Fit the second stage; with a search, keep what joins instruments beyond chance."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "All loadings are 0")  # that there is no common factor says it
            model, scores = self._fit_stage(META, stage, questionnaire)
        self.common_ = common_factor(model, questionnaire, self._columns(), random_state=self.random_state)
        self.meta_ = model if model.components_.any() else None
        if isinstance(stage, ICQFCV):
            joins = self._joins(model)
            while self.common_.p < CHANCE and joins.any() and not joins.all():
                start = np.nan_to_num(scores[:, joins]), model.components_[joins].T
                model = clone(model).set_params(n_components=int(joins.sum()), init=start)
                scores = np.asarray(model.fit_transform(questionnaire))
                model.set_params(init=ICQF().init)  # the model remembers nobody's scores
                joins = self._joins(model)
            self.meta_ = model if self.common_.p < CHANCE and joins.any() else None
        return scores if self.meta_ is not None else np.empty((len(scores), 0))

    def _joins(self, meta: ICQF) -> Array:
        """Whether each meta-factor (K,) loads on factors of at least two instruments."""
        parts = [meta.components_[:, own].max(axis=1) >= LEAST for own in self._columns().values()]
        return np.asarray(np.sum(parts, axis=0) >= 2)

    def _columns(self) -> dict[str, slice]:
        return {name: self.columns(name) for name in self.instruments_}

    def _stages(self, battery: Battery) -> dict[str, Stage]:
        """The estimator of each stage, unfitted."""
        given = self.estimator
        if isinstance(given, Mapping):
            for name in battery.names:
                if name not in given:
                    raise InputError(
                        f"estimator has none for the instrument {name!r}; it has {listed(given)}. Give one "
                        "for each instrument, or a single one for all."
                    )
            strange = [str(name) for name in given if name not in battery.instruments]
            if strange:
                raise InputError(
                    f"estimator names {strange[0]!r}, which is not an instrument."
                    f"{did_you_mean(strange[0], battery.names)}"
                )
            chosen: dict[str, Any] = {name: given[name] for name in battery.names}
        else:
            chosen = dict.fromkeys(battery.names, given)
        if META in chosen:
            raise InputError(
                f"An instrument cannot be called {META!r}, which names the second stage; rename it."
            )
        chosen[META] = self.meta_estimator
        journal = WorkJournal.at(self.checkpoint)
        return {name: self._stage(journal, name, stage) for name, stage in chosen.items()}

    def _stage(self, journal: WorkJournal | None, name: str, given: Any) -> Stage:
        if given is None or (isinstance(given, numbers.Integral) and name != META):
            model = ICQF(random_state=self.random_state)
            search: dict[str, Any] = {}
            if name == META:
                model.set_params(item_weight="variance")
                search["betas"] = META_BETAS
            elif given is not None:
                check_parameter("n_components", given)
                search["n_components"] = given
            given = ICQFCV(model, random_state=self.random_state, **search)
        which = "meta_estimator" if name == META else "estimator"
        if not isinstance(given, (ICQF, ICQFCV)):
            number = "" if name == META else ", or the number of factors"
            raise InputError(f"{which} must be an ICQF or ICQFCV{number}, not {type(given).__name__}.")
        stage: Any = clone(given)
        inner = stage.estimator if isinstance(stage, ICQFCV) else stage
        inner = ICQF() if inner is None else inner
        if inner.score_max != 1:
            raise InputError(
                f"{which} has score_max={inner.score_max}; scores must lie between 0 and 1 (score_max=1), "
                "the range of the second stage."
            )
        if isinstance(stage, ICQFCV):
            if self.callback is not None:
                stage.set_params(callback=_named_stage(self.callback, name))
            if journal is not None:
                stage.set_params(checkpoint=journal)
        return stage

    def _fit_stage(self, name: str, stage: Stage, questionnaire: Questionnaire) -> tuple[ICQF, Array]:
        with warnings.catch_warnings():
            if name != META:  # participants without an instrument are missing there
                warnings.simplefilter("ignore", EmptyRowsWarning)
            try:
                scores = np.asarray(stage.fit_transform(questionnaire))
            except InputError as error:
                place = "Meta-factors" if name == META else f"Instrument {name!r}"
                raise error.at(place, stage=name) from None
        if isinstance(stage, ICQFCV):
            self.searches_[name] = stage.set_params(checkpoint=self.checkpoint)
            return stage.best_estimator_, scores
        return stage, scores

    # --- using the fitted model ----------------------------------------------------------------------

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.two_d_array = False
        return tags

    def factor_scores(self, X: Any, *, confounds: Any = None) -> pd.DataFrame:
        """Scores of the instruments' factors (n, factors), missing without the instrument."""
        return self._factor_scores(self.as_battery(X, confounds))

    def transform(self, X: Any, *, confounds: Any = None) -> pd.DataFrame:
        """Scores of the meta-factors (n, K) by participant id, from all or some of the instruments.

        Parameters
        ----------
        X : mapping of str to Questionnaire or table, or Battery
            Any of the instruments, by name. Tables are indexed by participant id.
        confounds : table, optional
            By participant id, if the model has confounds and the questionnaires do not.
        """
        battery = self.as_battery(X, confounds)
        questionnaire = scores_questionnaire(battery, self._factor_scores(battery))
        scores = np.empty((battery.n_participants, 0))
        if self.meta_ is not None:
            scores = np.asarray(self.meta_.transform(questionnaire))
        return pd.DataFrame(scores, index=battery.ids, columns=self.get_feature_names_out())

    def inverse_transform(self, X: Any, *, confounds: Any = None) -> dict[str, pd.DataFrame]:
        """Reconstructed answers of each instrument, from scores of the meta-factors (n, K)."""
        check_is_fitted(self)
        scores = as_pandas(X)
        if not isinstance(scores, pd.DataFrame):
            scores = pd.DataFrame(np.asarray(scores, dtype=float))
        factors = np.asarray(self.second_stage.inverse_transform(scores.to_numpy(), confounds=confounds))
        answers_by_instrument = {}
        for name, model in self.instruments_.items():
            mine = np.clip(factors[:, self.columns(name)], 0, 1)
            answers = model.inverse_transform(mine, confounds=confounds)
            answers_by_instrument[name] = pd.DataFrame(
                answers, index=scores.index, columns=list(model.item_range_.index)
            )
        return answers_by_instrument

    def score(self, X: Any, y: Any = None, *, confounds: Any = None) -> float:
        """Minus the mean squared error of answers reconstructed from meta-factors, relative to the ranges."""
        battery = self.as_battery(X, confounds)
        scores = self.transform(battery).fillna(0.0)
        total, count = 0.0, 0
        for name, answers in self.inverse_transform(scores, confounds=battery.confounds).items():
            if name in battery.instruments:
                own = battery.instruments[name].keyed_answers()[answers.columns]
                ranges = self.instruments_[name].item_range_
                width = (ranges["max"] - ranges["min"]).to_numpy()
                off = (own.to_numpy() - answers.loc[own.index].to_numpy()) / width
                total += float(np.nansum(off**2))
                count += int(np.isfinite(off).sum())
        if not count:
            raise InputError(
                "No participant in this battery answered anything, so there is nothing to score."
            )
        return -total / count

    @property
    def second_stage(self) -> ICQF:
        """The model of the second stage; an error if the instruments have no common factor."""
        check_is_fitted(self)
        if self.meta_ is None:
            raise InputError(
                "The instruments have no common factor, and this needs one; use the instruments' own models, "
                "or set the number of meta-factors."
            )
        return self.meta_

    @property
    def loadings_(self) -> pd.DataFrame:
        """Loadings of the meta-factors, (instrument, factor) × meta-factors."""
        check_is_fitted(self)
        return pd.DataFrame(
            self._components().T, index=self._factor_index(), columns=self.get_feature_names_out()
        )

    def _components(self) -> Array:
        """Loadings of the meta-factors (K, factors); K may be 0."""
        return np.empty((0, len(self._factor_index()))) if self.meta_ is None else self.meta_.components_

    @property
    def item_loadings_(self) -> pd.DataFrame:
        """Loadings composed down to items, (instrument, item) × meta-factors, in the items' own units."""
        check_is_fitted(self)
        tables = []
        for name, model in self.instruments_.items():
            composed = model.components_.T @ self._components().T[self.columns(name)]
            index = pd.MultiIndex.from_product(
                [[name], model.item_range_.index], names=["instrument", "item"]
            )
            tables.append(pd.DataFrame(composed, index=index, columns=self.get_feature_names_out()))
        return pd.concat(tables)

    def top_items(self, n_top: int = 3) -> pd.DataFrame:
        """The strongest items of each instrument's factors, with their loadings as shares of the range."""
        check_is_fitted(self)
        rows = []
        for name, model in self.instruments_.items():
            about = {item.name: item for item in model.codebook_.items}
            width = (model.item_range_["max"] - model.item_range_["min"]).to_numpy()
            for factor, column in model.loadings_.items():
                shares = column.to_numpy() / width
                for at in np.argsort(-shares, kind="stable")[:n_top]:
                    if shares[at] > 0:
                        item = about.get(str(column.index[at]), Item(str(column.index[at])))
                        label = item.wording or item.name
                        label += " (reversed)" if item.reverse else ""
                        numbers = (float(column.iloc[at]), float(shares[at]))
                        rows.append((name, str(factor), item.name, label, *numbers))
        return pd.DataFrame(rows, columns=["instrument", "factor", "item", "label", "loading", "share"])

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """The meta-factors' names: meta1, meta2, …"""
        check_is_fitted(self)
        return np.array([f"{META}{r}" for r in range(1, len(self._components()) + 1)], dtype=object)

    def _factor_index(self) -> pd.MultiIndex:
        pairs = [
            (name, f"factor{r}")
            for name, model in self.instruments_.items()
            for r in range(1, len(model.components_) + 1)
        ]
        return pd.MultiIndex.from_tuples(pairs, names=["instrument", "factor"])

    def columns(self, name: str) -> slice:
        """Positions of an instrument's factors among all factors."""
        widths = {each: len(model.components_) for each, model in self.instruments_.items()}
        first = sum(list(widths.values())[: list(widths).index(name)])
        return slice(first, first + widths[name])

    def as_battery(self, X: Any, confounds: Any) -> Battery:
        """The instruments of participants to be scored, with the ranges of the fit."""
        check_is_fitted(self)
        if isinstance(X, (Mapping, Battery)):
            given: dict[str, Any] = dict(X.instruments if isinstance(X, Battery) else X)
        else:
            raise InputError(
                f"Give the instruments by name, as in {{{next(iter(self.instruments_))!r}: table}}, not "
                f"{type(X).__name__}."
            )
        for name in given:
            if name not in self.instruments_:
                raise InputError(
                    f"The model has no instrument "
                    f"{str(name)!r}.{did_you_mean(str(name), self.instruments_)} It has "
                    f"{listed(self.instruments_, most=12)}."
                )
        if not given:
            raise InputError("No instrument is given, so there is nothing to score.")
        known = {
            name: table
            if isinstance(table, Questionnaire)
            else _as_questionnaire(name, self.instruments_[name], table)
            for name, table in given.items()
        }
        return Battery.of(known, confounds=confounds)

    def _factor_scores(self, battery: Battery) -> pd.DataFrame:
        tables = []
        for name, model in self.instruments_.items():
            if name in battery.instruments:
                questionnaire = battery.instruments[name]
                with warnings.catch_warnings(action="ignore", category=EmptyRowsWarning):
                    scores = np.asarray(model.transform(questionnaire))
                table = scores_table(name, model, scores, questionnaire.answers.index).reindex(battery.ids)
            else:
                empty = np.full((battery.n_participants, len(model.components_)), np.nan)
                table = scores_table(name, model, empty, battery.ids)
            tables.append(table)
        return pd.concat(tables, axis=1)

    # --- the model file ------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the models of both stages to one file. It holds no participant's data."""
        check_is_fitted(self)
        parts = {name: model.describe() for name, model in self.instruments_.items()}
        meta = None if self.meta_ is None else self.meta_.describe()
        write_battery_model(path, parts, meta, self.n_participants_)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote; a damaged or forged file is refused."""
        stored = read_battery_model(path)
        with damage_refused(path):
            return cls.rebuilt(*stored)

    @classmethod
    def rebuilt(
        cls, instruments: Mapping[str, StoredModel], meta: StoredModel | None, n_participants: int
    ) -> Self:
        """The model from its description; any error means that the description is not valid."""
        model = cls()
        model.instruments_ = {name: rebuild(ICQF, stored) for name, stored in instruments.items()}
        model.meta_ = None if meta is None else rebuild(ICQF, meta)
        model.common_ = None
        model.searches_ = {}
        model.n_participants_ = n_participants
        _check_joined(model)
        return model


def _named_stage(callback: Callable[[Progress], object], name: str) -> Callable[[Progress], object]:
    return lambda progress: callback(replace(progress, stage=name))


@dataclass(frozen=True)
class CommonFactor:
    """How well the scores of a hidden instrument are predicted from the participant's other instruments."""

    correlation: float  # of predicted scores with those found, without what confounds explain of either
    p: float  # one-sided, that unrelated instruments would correlate as much


def common_factor(
    meta: ICQF, questionnaire: Questionnaire, columns: Mapping[str, slice], *, random_state: Any = 0
) -> CommonFactor:
    """Hide whole instruments, fit the second stage to the other scores, and correlate predicted and found.

    Parameters
    ----------
    meta : ICQF
        The second stage: its number of factors and its penalty are used.
    questionnaire : Questionnaire
        The joined scores.
    columns : mapping of str to slice
        The factors of each instrument.
    """
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # the fit has already warned
        stated = meta.state(questionnaire)
    problem, k = stated.problem, len(meta.components_)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    units = units_of(problem, questionnaire.groups, stated.kept)
    units = np.arange(problem.n) if units is None else units
    observed = problem.observations.observed
    answered = np.column_stack([observed[:, own].any(axis=1) for own in columns.values()])
    found = np.concatenate([block.X for block in problem.precise_blocks()])
    design = np.vstack([problem.design, np.ones(problem.n)]).T
    residuals = np.zeros((2, problem.n, problem.m))  # of the scores found, and of those predicted
    for mask in instrument_masks(units, answered, list(columns.values()), _SPLITS, rng):
        hidden = mask & observed
        held = HeldOut(problem.with_beta(float(meta.beta)), hidden, given=stated.given)
        factors = _factors(held.visible, meta, k)
        predicted = factors.scores.T @ held.visible.own_loadings(factors.loadings)[:k]
        for item in range(problem.m):
            rows, seen = np.flatnonzero(hidden[:, item]), np.flatnonzero(observed[:, item] & ~hidden[:, item])
            if min(len(rows), len(seen)) > design.shape[1]:
                confounded = design[rows] @ _regression(design[seen], found[seen, item])
                residuals[0, rows, item] = found[rows, item] - confounded
                own = predicted[rows, item]
                residuals[1, rows, item] = own - design[rows] @ _regression(design[rows], own)
    return _correlated(residuals, units, problem.weights)


def _regression(design: Array, values: Array) -> Array:
    return np.asarray(np.linalg.lstsq(design, values, rcond=None)[0])


def _correlated(residuals: Array, units: Array, weights: Array | None) -> CommonFactor:
    """The mean correlation over factors, and how far it is from 0 for how units (families) differ."""
    found, predicted = residuals[:, :, residuals[1].std(axis=0) > 1e-9]
    size = np.sqrt((found**2).sum(axis=0) * (predicted**2).sum(axis=0))
    sums = (found * predicted / np.where(size > 0, size, 1.0)).sum(axis=1)
    by_unit = np.bincount(units, weights=sums if weights is None else sums * weights / weights.mean())
    by_unit = by_unit[by_unit != 0]
    if len(by_unit) < 2:
        return CommonFactor(0.0, 1.0)
    z = by_unit.sum() / np.sqrt((by_unit**2).sum())
    return CommonFactor(float(sums.sum() / found.shape[1]), float(student.sf(z, len(by_unit) - 1)))


def instrument_masks(
    units: Array, answered: Array, columns: Sequence[slice], n_splits: int, rng: np.random.Generator
) -> list[Array]:
    """Which columns (n, columns) each fold hides: whole instruments of participants who have others.

    `units` (n,) are the participants or their families, and `answered` (n, instruments) who has what.
    """
    # Within each unit (a participant or a family) the instruments go to consecutive folds.
    ranks = rng.permuted(np.tile(np.arange(len(columns)), (units.max() + 1, 1)), axis=1)
    fold_of = (ranks + rng.integers(0, n_splits, len(ranks))[:, None]) % n_splits
    masks = []
    for fold in range(n_splits):
        hidden = (fold_of == fold)[units] & answered
        hidden &= (answered & ~hidden).any(axis=1)[:, None]  # something must be left to predict from
        mask = np.zeros((len(units), max(own.stop for own in columns)), dtype=bool)
        for at, own in enumerate(columns):
            mask[:, own] = hidden[:, at, None]
        masks.append(mask)
    return masks


Hide = Literal["answers", "instruments"]
MEANS, ALONE, TWO_STAGES, FLAT = "item means", "each instrument alone", "two stages", "one flat"
ALL = "all instruments"


@dataclass(frozen=True, eq=False)
class HierarchyComparison:
    """Prediction of hidden answers by two stages and by one flat factorization of all items.

    Attributes
    ----------
    table : DataFrame
        One row per instrument (and for all together) and method: `error`, the root mean squared error as a
        share of the item's range; `predicted`, the reduction in squared error relative to the items' means
        (negative if the means predict better); and `n_hidden` answers.
    hide : {"answers", "instruments"}
        What was hidden.
    flat : ICQF
        The flat factorization, fitted to all answers.
    n_splits : int
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
        """In one sentence, whether the second level is worthwhile; a difference below 0.01 does not count."""
        two, flat = self.overall[TWO_STAGES], self.overall[FLAT]
        what = "hidden answers" if self.hide == "answers" else "an instrument that was not given"
        if abs(two - flat) < 0.01:
            comparison = f"about as well as one flat factorization ({_percent(two)}, {_percent(flat)})"
        else:
            word = "better" if two > flat else "worse"
            comparison = f"{word} than one flat factorization ({_percent(two)} against {_percent(flat)})"

        tail = ", but both do worse than the items' means" if max(two, flat) < 0 else ""
        return f"Two stages predict {what} {comparison}{tail}."


def _percent(share: float) -> str:
    return f"{share:.1%}".replace("-", "−")


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

    Each fold is fitted from scratch, without its hidden answers. The numbers of factors and the penalties are
    those of the models, chosen with all answers. Ranges that are not declared are those of the whole table.

    Parameters
    ----------
    X, confounds
        The data that it was fitted to.
    flat : ICQF, ICQFCV or None
        The flat factorization of all items: a fitted one, one to fit, or a search (the default).
    hide : {"answers", "instruments"}
        Blocks of answers, as in cross-validation; or whole instruments of participants who have others.
    n_splits : int
        Number of folds.
    n_jobs, checkpoint, callback, random_state
        As for `icqf.ICQFCV`.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import make_battery
    >>> from icqf.models import MetaICQF, compare_hierarchy
    >>> battery = make_battery(n=120, n_items=(6, 6, 6), n_factors=2, n_meta=2, random_state=0).battery
    >>> model = MetaICQF(ICQF(2), meta_estimator=ICQF(2)).fit(battery)
    >>> comparison = compare_hierarchy(model, battery, flat=ICQF(2), hide="instruments", n_splits=3)
    >>> comparison.overall["two stages"] > comparison.overall["item means"]
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
    folds = run_all(
        {f"fold {fold}": (plan, mask, hide) for fold, mask in enumerate(masks)},
        _fold_errors,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        callback=callback,
    )
    return HierarchyComparison(_table(plan, list(folds.values())), hide, plan.flat_model, n_splits)


def _fitted(flat: ICQF | ICQFCV | None, battery: Battery, seed: int) -> ICQF:
    if isinstance(flat, ICQF) and hasattr(flat, "components_"):
        if len(flat.item_range_) != sum(each.n_items for each in battery.instruments.values()):
            raise InputError("flat was not fitted to the items of the battery; give one that was.")
        return flat
    search: Any = ICQFCV(random_state=seed) if flat is None else clone(flat)
    fitted = search.fit(battery.flat())
    return fitted.best_estimator_ if isinstance(fitted, ICQFCV) else fitted


@dataclass(frozen=True, eq=False)
class FoldPlan:
    """What all folds share: the stated problems and the settings of the fits."""

    battery: Battery
    stated: dict[str, StatedProblem]  # of each instrument
    flat: StatedProblem  # of all items
    models: dict[str, ICQF]  # of each instrument
    meta: ICQF  # of the instruments' scores, and of all items
    flat_model: ICQF
    rows: dict[str, Array]  # positions of each instrument's participants in the flat problem
    columns: dict[str, slice]  # positions of each instrument's items among all

    @classmethod
    def of(cls, model: MetaICQF, battery: Battery, flat_model: ICQF) -> FoldPlan:
        """State all problems."""
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # the fits have already warned
            flat = flat_model.state(battery.flat())
            stated = {name: model.instruments_[name].state(q) for name, q in battery.instruments.items()}
        place = np.cumsum(flat.kept) - 1
        rows, columns, first = {}, {}, 0
        for name, each in stated.items():
            rows[name] = place[battery.rows(name)[each.kept]]
            columns[name] = slice(first, first + each.problem.m)
            first += each.problem.m
        return cls(battery, stated, flat, model.instruments_, model.second_stage, flat_model, rows, columns)

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
        answered = self.battery.answered.to_numpy()[self.flat.kept]
        return instrument_masks(units, answered, list(self.columns.values()), n_splits, rng)


@dataclass(frozen=True, eq=False)
class FoldFit:
    """The fits of a fold: by instrument, its own scores, those from the meta-factors, and loadings."""

    held: dict[str, HeldOut]
    alone: dict[str, Factors]  # scores and loadings of the first stage
    two_stages: dict[str, Factors]  # scores expected from the second stage, loadings of the first
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
    """Scores inside their bounds and loadings of one fit, with the settings of a search."""
    init = model.init if isinstance(model.init, str) else "nndsvd"
    start = Starts(problem).make(init, k, np.random.default_rng(0))
    (fit,) = run(problem, start, tol=tolerances.SEARCH, max_iter=tolerances.MAX_ITER, exact=False)
    return Factors(np.clip(fit.factors.scores, 0, 1), fit.factors.loadings)


def _expected(plan: FoldPlan, scores: Array) -> Array:
    """The factors' scores (n, factors) expected from the meta-factors of these scores."""
    meta, battery = plan.meta, plan.battery
    ids = battery.ids[plan.flat.kept]
    table = pd.DataFrame(scores, index=ids, columns=list(meta.item_range_.index)).reindex(battery.ids)
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # a factor may vanish in a fold
        stated = meta.state(scores_questionnaire(battery, table))
    problem = stated.problem.with_beta(float(meta.beta)).without_reconstruction_bound()
    factors = _factors(problem, meta, len(meta.components_))
    loadings = problem.own_loadings(factors.loadings)
    expected = np.full((len(battery.ids), scores.shape[1]), np.nan)
    expected[stated.kept] = np.clip(problem.with_confounds(factors.scores, np.float64).T @ loadings, 0, 1)
    expected = np.where(np.isfinite(expected), expected, np.nanmean(expected, axis=0))
    return np.asarray(expected[plan.flat.kept])


def _fold_errors(plan: FoldPlan, mask: Array, hide: Hide) -> dict[str, Any]:
    """Squared errors of each method by item, relative to its range, and the weights of the answers."""
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
    return (error.squares / problem.span**2).tolist()


def _counts(plan: FoldPlan, mask: Array) -> list[int]:
    return ((plan.flat.problem.answers >= 0) & mask).sum(axis=0).tolist()


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
