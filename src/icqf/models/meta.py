"""Meta-factors: what the factors of several instruments have in common."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from icqf.data.battery import Battery
from icqf.data.frames import as_pandas
from icqf.data.questionnaire import Item, Questionnaire
from icqf.data.validate import EmptyRowsWarning
from icqf.engines.journal import WorkJournal
from icqf.engines.parallel import Progress
from icqf.errors import InputError, did_you_mean, listed
from icqf.io.model_file import StoredModel, damage_refused, read_battery_model, write_battery_model
from icqf.models.icqf import ICQF
from icqf.models.icqfcv import ICQFCV
from icqf.models.persistence import rebuild

Array = NDArray[Any]
META = "meta"  # how the second stage is called where instruments have names
Stage = ICQF | ICQFCV


def factor_name(instrument: str, factor: str) -> str:
    """How a factor of an instrument is called as an item of the second stage."""
    return f"{instrument}: {factor}"


def scores_questionnaire(battery: Battery, scores: pd.DataFrame) -> Questionnaire:
    """The joined scores as a questionnaire whose items have the range 0 to 1."""
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


def _as_fitted(name: str, model: ICQF, table: Any) -> Questionnaire:
    """A table of new participants as a questionnaire with the ranges of the fit; answers as they stand."""
    frame = as_pandas(table)
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"Instrument {name!r} must be a questionnaire or a table indexed by participant id.")
    wanted = [str(item) for item in model.item_range_.index]
    absent = [item for item in wanted if item not in frame.columns]
    if absent:
        raise InputError(
            f"Instrument {name!r} lacks {len(absent)} of its {len(wanted)} items: {listed(absent)}. A "
            f"question that "
            "was not asked is a column of missing answers."
        )
    ranges = model.item_range_.to_numpy().tolist()
    items = tuple(Item(item, min=low, max=high) for item, (low, high) in zip(wanted, ranges, strict=True))
    try:
        return Questionnaire(frame[wanted], items)
    except InputError as error:
        raise error.at(f"Instrument {name!r}") from None


def _check_joined(model: MetaICQF) -> None:
    """Refuse a second stage that is not one of these instruments' factors."""
    factors = [
        factor_name(name, factor)
        for name, each in model.instruments_.items()
        for factor in each.get_feature_names_out()
    ]
    if list(model.meta_.item_range_.index) != factors:
        raise ValueError("the meta-factors are those of other instruments")
    if not (model.meta_.item_range_.to_numpy() == [0.0, 1.0]).all():
        raise ValueError("the scores that the meta-factors describe do not lie between 0 and 1")
    if any(each.score_max != 1 for each in (*model.instruments_.values(), model.meta_)):
        raise ValueError("the scores of an instrument may exceed 1")


class MetaICQF(TransformerMixin, BaseEstimator):
    """Factors across the instruments of a battery, in two stages.

    The first stage factorizes each instrument by itself. The second factorizes the joined scores, which lie
    between 0 and 1 like answers with that range: [W⁽¹⁾ … W⁽ᴾ⁾] ≈ [U, C]Vᵀ, with 0 ≤ U ≤ 1 and 0 ≤ V ≤ 1. A
    meta-factor is a pattern of factors, and through these a pattern of items. A participant who was not given
    an instrument has missing scores there and takes part all the same.

    Parameters
    ----------
    estimator : ICQF, ICQFCV, mapping of str to these, or None
        The first stage: one for all instruments, or one for each by its name. An `ICQF` states the number of
        factors; an `ICQFCV` chooses it. None is ``ICQFCV()``.
    meta_estimator : ICQF, ICQFCV or None
        The second stage. None is ``ICQFCV(ICQF(item_weight="variance"))``: a factor that few participants
        have counts as much as one that many have.
    checkpoint : path, optional
        The journal of all searches: a fit that was interrupted continues from there.
    callback : callable, optional
        Told of the progress of each search (`Progress`, whose `stage` names the instrument).
    random_state : int
        Seed of the searches that are made here, where no estimator is given.

    Attributes
    ----------
    instruments_ : dict of str to ICQF
        The fitted models of the first stage.
    meta_ : ICQF
        The fitted model of the second: its items are the factors of the instruments.
    searches_ : dict of str to ICQFCV
        The searches of the first stage, by instrument, where there were any; that of the second is "meta".
    loadings_ : DataFrame (factors, K)
        What each meta-factor adds to each factor's score; rows are (instrument, factor).
    item_loadings_ : DataFrame (items, K)
        Loadings composed down to items, QV: what a meta-factor adds to each answer through the factors, in
        the item's own units; rows are (instrument, item).
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
    meta_: ICQF
    searches_: dict[str, ICQFCV]
    n_participants_: int

    def __init__(
        self,
        estimator: Stage | Mapping[str, Stage] | None = None,
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
            The instruments, joined by participant id. Questionnaires bring ranges, confounds, groups and
            weights, and their reverse-keyed items are reversed.
        y : ignored
        confounds : table, optional
            By participant id, for both stages; instead of those of the questionnaires.
        """
        self.fit_transform(X, confounds=confounds)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, confounds: Any = None) -> pd.DataFrame:
        """Factorize, and return the meta-factors' scores (n, K) by participant id."""
        battery = Battery.of(X, confounds=confounds)
        _say(battery)
        stages = self._stages(battery)
        self.searches_: dict[str, ICQFCV] = {}
        self.instruments_: dict[str, ICQF] = {}
        tables = []
        for name, questionnaire in battery.instruments.items():
            model, scores = self._fit_stage(name, stages[name], questionnaire)
            self.instruments_[name] = model
            tables.append(scores_table(name, model, scores, questionnaire.answers.index))
        joined = pd.concat(tables, axis=1).reindex(battery.ids)
        self.meta_, scores = self._fit_stage(META, stages[META], scores_questionnaire(battery, joined))
        self.n_participants_ = self.meta_.n_participants_
        return pd.DataFrame(scores, index=battery.ids, columns=self.get_feature_names_out())

    def _stages(self, battery: Battery) -> dict[str, Stage]:
        """The estimator of each stage, unfitted."""
        given = self.estimator
        if isinstance(given, Mapping):
            for name in battery.names:
                if name not in given:
                    raise InputError(
                        f"estimator has none for the instrument {name!r}; it has {listed(given)}. Give one "
                        f"for "
                        "each instrument, or a single one for all."
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
        if given is None:
            model = ICQF(random_state=self.random_state)
            if name == META:
                model.set_params(item_weight="variance")
            given = ICQFCV(model, random_state=self.random_state)
        which = "meta_estimator" if name == META else "estimator"
        if not isinstance(given, (ICQF, ICQFCV)):
            raise InputError(f"{which} must be an ICQF or ICQFCV, not {type(given).__name__}.")
        stage: Any = clone(given)
        inner = stage.estimator if isinstance(stage, ICQFCV) else stage
        inner = ICQF() if inner is None else inner
        if inner.score_max != 1:
            raise InputError(
                f"{which} has score_max={inner.score_max}; scores must lie between 0 and 1 (score_max=1), "
                f"because "
                "the second stage takes them for answers with that range."
            )
        if isinstance(stage, ICQFCV):
            if self.callback is not None:
                stage.set_params(callback=_named_stage(self.callback, name))
            if journal is not None:
                stage.set_params(checkpoint=journal)
        return stage

    def _fit_stage(self, name: str, stage: Stage, questionnaire: Questionnaire) -> tuple[ICQF, Array]:
        with warnings.catch_warnings():
            if name != META:  # who answered nothing of an instrument is missing there
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
        """Scores of the instruments' factors (n, factors); missing where a participant lacks the instrument.

        Parameters
        ----------
        X, confounds
            As for `transform`.
        """
        return self._factor_scores(self.as_battery(X, confounds))

    def transform(self, X: Any, *, confounds: Any = None) -> pd.DataFrame:
        """Scores of the meta-factors (n, K) by participant id, from whichever instruments there are.

        Parameters
        ----------
        X : mapping of str to Questionnaire or table, or Battery
            Any of the instruments, by the names that they had in the fit. Tables are indexed by participant
            id.
        confounds : table, optional
            By participant id, where the model has confounds and the questionnaires do not bring them.
        """
        battery = self.as_battery(X, confounds)
        questionnaire = scores_questionnaire(battery, self._factor_scores(battery))
        scores = np.asarray(self.meta_.transform(questionnaire))
        return pd.DataFrame(scores, index=battery.ids, columns=self.get_feature_names_out())

    def inverse_transform(self, X: Any, *, confounds: Any = None) -> dict[str, pd.DataFrame]:
        """Reconstructed answers of each instrument, from scores of the meta-factors.

        Parameters
        ----------
        X : DataFrame (n, K)
            Scores by participant id, as `transform` gives them.
        confounds : table, optional
            By participant id, where the model has confounds.
        """
        check_is_fitted(self)
        scores = as_pandas(X)
        if not isinstance(scores, pd.DataFrame):
            scores = pd.DataFrame(np.asarray(scores, dtype=float))
        factors = np.asarray(self.meta_.inverse_transform(scores.to_numpy(), confounds=confounds))
        found = {}
        for name, model in self.instruments_.items():
            mine = np.clip(factors[:, self.columns(name)], 0, 1)
            answers = model.inverse_transform(mine, confounds=confounds)
            found[name] = pd.DataFrame(answers, index=scores.index, columns=list(model.item_range_.index))
        return found

    def score(self, X: Any, y: Any = None, *, confounds: Any = None) -> float:
        """Minus the mean squared error of the answers reconstructed from the meta-factors.

        Over the observed answers of all instruments, each as a share of its item's range.
        """
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
            raise InputError("Nobody in this battery answered anything, so there is nothing to score.")
        return -total / count

    @property
    def loadings_(self) -> pd.DataFrame:
        """Loadings of the meta-factors, (instrument, factor) × meta-factors."""
        check_is_fitted(self)
        return pd.DataFrame(
            self.meta_.components_.T, index=self._factor_index(), columns=self.get_feature_names_out()
        )

    @property
    def item_loadings_(self) -> pd.DataFrame:
        """Loadings composed down to items, (instrument, item) × meta-factors, in the items' own units."""
        check_is_fitted(self)
        tables = []
        for name, model in self.instruments_.items():
            composed = model.components_.T @ self.meta_.components_.T[self.columns(name)]
            index = pd.MultiIndex.from_product(
                [[name], model.item_range_.index], names=["instrument", "item"]
            )
            tables.append(pd.DataFrame(composed, index=index, columns=self.get_feature_names_out()))
        return pd.concat(tables)

    def top_items(self, n_top: int = 3) -> pd.DataFrame:
        """The strongest items of each instrument's factors: what the factors are.

        Returns
        -------
        DataFrame
            ``instrument``, ``factor``, ``item``, ``label`` (its wording, or name), ``loading`` and ``share``
            (the loading as a share of the item's range), the strongest first; items without a loading are
            left out.
        """
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
        return np.array([f"{META}{r}" for r in range(1, len(self.meta_.components_) + 1)], dtype=object)

    def _factor_index(self) -> pd.MultiIndex:
        pairs = [
            (name, f"factor{r}")
            for name, model in self.instruments_.items()
            for r in range(1, len(model.components_) + 1)
        ]
        return pd.MultiIndex.from_tuples(pairs, names=["instrument", "factor"])

    def columns(self, name: str) -> slice:
        """Where the factors of an instrument stand among all."""
        widths = {each: len(model.components_) for each, model in self.instruments_.items()}
        first = sum(list(widths.values())[: list(widths).index(name)])
        return slice(first, first + widths[name])

    def as_battery(self, X: Any, confounds: Any) -> Battery:
        """The instruments of participants to be scored, as the model knows them."""
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
            else _as_fitted(name, self.instruments_[name], table)
            for name, table in given.items()
        }
        return Battery.of(known, confounds=confounds)

    def _factor_scores(self, battery: Battery) -> pd.DataFrame:
        tables = []
        for name, model in self.instruments_.items():
            if name in battery.instruments:
                questionnaire = battery.instruments[name]
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", EmptyRowsWarning)
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
        write_battery_model(path, parts, self.meta_.describe())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote; a file that is damaged or made up is refused."""
        stored = read_battery_model(path)
        with damage_refused(path):
            return cls.rebuilt(*stored)

    @classmethod
    def rebuilt(cls, instruments: Mapping[str, StoredModel], meta: StoredModel) -> Self:
        """The model that a file describes; errors of all kinds for what makes no sense."""
        model = cls()
        model.instruments_ = {name: rebuild(ICQF, stored) for name, stored in instruments.items()}
        model.meta_ = rebuild(ICQF, meta)
        model.searches_ = {}
        model.n_participants_ = model.meta_.n_participants_
        _check_joined(model)
        return model


def _say(battery: Battery) -> None:
    for found in battery.problems():
        if isinstance(found, InputError):
            raise found
        warnings.warn(found, stacklevel=4)


def _named_stage(callback: Callable[[Progress], object], name: str) -> Callable[[Progress], object]:
    return lambda progress: callback(replace(progress, stage=name))
