"""Meta-factors: what the factors of several instruments have in common."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from icqf.data.battery import Battery
from icqf.data.questionnaire import Questionnaire
from icqf.data.validate import EmptyRowsWarning
from icqf.errors import InputError, did_you_mean, listed
from icqf.extensions.fitted_meta import META, FittedMeta, scores_questionnaire, scores_table
from icqf.jobs.journal import WorkJournal
from icqf.jobs.parallel import Progress
from icqf.models.icqf import ICQF
from icqf.selection.estimator import ICQFCV

Array = NDArray[Any]
Stage = ICQF | ICQFCV


class MetaICQF(FittedMeta):
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
    >>> from icqf.extensions import MetaICQF
    >>> battery = make_battery(n=200, n_items=(9, 9, 9), n_factors=3, n_meta=3, random_state=0).battery
    >>> model = MetaICQF(ICQF(3), meta_estimator=ICQF(3)).fit(battery)
    >>> model.loadings_.shape, model.item_loadings_.shape
    ((9, 3), (27, 3))
    >>> new = {"B": battery.instruments["B"].answers.head(2)}
    >>> model.transform(new).shape
    (2, 3)
    """

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
                    f"estimator names {strange[0]!r}, which is no instrument."
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
                raise error.at("Meta-factors" if name == META else f"Instrument {name!r}") from None
        if isinstance(stage, ICQFCV):
            self.searches_[name] = stage.set_params(checkpoint=self.checkpoint)
            return stage.best_estimator_, scores
        return stage, scores


def _say(battery: Battery) -> None:
    for found in battery.problems():
        if isinstance(found, InputError):
            raise found
        warnings.warn(found, stacklevel=4)


def _named_stage(callback: Callable[[Progress], object], name: str) -> Callable[[Progress], object]:
    return lambda progress: callback(replace(progress, stage=name))
