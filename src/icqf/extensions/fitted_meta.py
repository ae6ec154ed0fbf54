"""What a fitted `MetaICQF` can do: score with any of its instruments, tell about itself, and be stored."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from icqf.data.battery import Battery
from icqf.data.questionnaire import Item, Questionnaire
from icqf.data.tables import as_pandas
from icqf.data.validate import EmptyRowsWarning
from icqf.errors import InputError, did_you_mean, listed
from icqf.io.modelfile import damage_refused, read_battery_model, write_battery_model
from icqf.models.icqf import ICQF
from icqf.models.persistence import rebuild
from icqf.selection.estimator import ICQFCV

Array = NDArray[Any]
META = "meta"  # how the second stage is called where instruments have names


class FittedMeta(TransformerMixin, BaseEstimator):
    """The side of `MetaICQF` that is used after `fit`; see there for settings and attributes."""

    instruments_: dict[str, ICQF]
    meta_: ICQF
    searches_: dict[str, ICQFCV]
    n_participants_: int

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

        Examples
        --------
        >>> from icqf import ICQF
        >>> from icqf.datasets import make_battery
        >>> from icqf.extensions import MetaICQF
        >>> battery = make_battery(n=150, n_items=(9, 9), n_factors=2, n_meta=2, random_state=0).battery
        >>> -0.2 < MetaICQF(ICQF(2), meta_estimator=ICQF(2)).fit(battery).score(battery) < 0
        True
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

        Examples
        --------
        >>> from icqf import ICQF
        >>> from icqf.datasets import make_battery
        >>> from icqf.extensions import MetaICQF
        >>> battery = make_battery(n=100, n_items=(9, 9), n_factors=2, n_meta=2, random_state=0).battery
        >>> MetaICQF(ICQF(2), meta_estimator=ICQF(2)).fit(battery).top_items(1).shape
        (4, 6)
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
        """Write the models of both stages to one file. It holds no participant's data.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from icqf import ICQF
        >>> from icqf.datasets import make_battery
        >>> from icqf.extensions import MetaICQF
        >>> battery = make_battery(n=100, n_items=(9, 9), n_factors=2, n_meta=2, random_state=0).battery
        >>> model = MetaICQF(ICQF(2), meta_estimator=ICQF(2)).fit(battery)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(pathlib.Path(folder, "meta.icqf"))
        ...     again = MetaICQF.load(pathlib.Path(folder, "meta.icqf"))
        >>> bool((again.item_loadings_ == model.item_loadings_).all(axis=None))
        True
        """
        check_is_fitted(self)
        parts = {name: model.describe() for name, model in self.instruments_.items()}
        write_battery_model(path, parts, self.meta_.describe())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote; a file that is damaged or made up is refused."""
        parts, meta = read_battery_model(path)
        with damage_refused(path):
            model = cls()
            model.instruments_ = {name: rebuild(ICQF, stored) for name, stored in parts.items()}
            model.meta_ = rebuild(ICQF, meta)
            model.searches_ = {}
            model.n_participants_ = model.meta_.n_participants_
            _check_joined(model)
        return model


def factor_name(instrument: str, factor: str) -> str:
    """How a factor of an instrument is called as an item of the second stage.

    Examples
    --------
    >>> factor_name("CES-D", "factor1")
    'CES-D: factor1'
    """
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


def _check_joined(model: FittedMeta) -> None:
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
