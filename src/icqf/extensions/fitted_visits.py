"""What a fitted longitudinal model shows of itself: loadings by item, factor and age."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from icqf.data.confounds import ConfoundEncoder
from icqf.data.questionnaire import StoredCodebook
from icqf.data.visits import AgeBins
from icqf.models.icqf import ICQF

Array = NDArray[Any]


class FittedVisits(BaseEstimator):
    """The side of `LongitudinalICQF` that is looked at after `fit`; see there."""

    model_: ICQF
    bins_: AgeBins
    items_: list[str]
    gaps_: pd.DataFrame
    codebook_: StoredCodebook

    @property
    def loadings_by_age_(self) -> Array:
        """Loadings (items, k, bins)."""
        check_is_fitted(self, "model_")
        shape = (len(self.model_.components_), len(self.bins_), len(self.items_))
        return np.ascontiguousarray(self.model_.components_.reshape(shape).transpose(2, 0, 1))

    @property
    def loadings_(self) -> pd.DataFrame:
        """Loadings (items × bins, k), indexed by item and bin."""
        return self._by_item(self.loadings_by_age_, list(self.get_feature_names_out()))

    @property
    def focus_(self) -> pd.DataFrame:
        """How much of each factor's squared loadings (as shares of the ranges) lies in each bin (k, bins).

        A factor that lies in one bin tells how participants were at that time, not something that lasts.
        """
        span = np.ptp(self.item_range_.to_numpy(), axis=1)[:, None, None]
        squares = ((self.loadings_by_age_ / span) ** 2).sum(axis=0)
        shares = squares / np.maximum(squares.sum(axis=1, keepdims=True), 1e-300)
        return pd.DataFrame(shares, index=self.get_feature_names_out(), columns=list(self.bins_.labels))

    @property
    def confound_loadings_(self) -> pd.DataFrame:
        """Loadings of the confounds (items × bins, c), indexed by item and bin."""
        check_is_fitted(self, "model_")
        own = self.model_.confound_components_
        cube = own.reshape(len(own), len(self.bins_), len(self.items_)).transpose(2, 0, 1)
        return self._by_item(cube, self.model_.confound_names_)

    def _by_item(self, cube: Array, columns: list[str]) -> pd.DataFrame:
        index = pd.MultiIndex.from_product([self.items_, self.bins_.labels], names=["item", "bin"])
        return pd.DataFrame(cube.transpose(0, 2, 1).reshape(len(index), -1), index=index, columns=columns)

    @property
    def item_range_(self) -> pd.DataFrame:
        """Lowest and highest answer of each item."""
        check_is_fitted(self, "model_")
        ends = self.model_.item_range_.to_numpy()[: len(self.items_)]
        return pd.DataFrame(ends, index=pd.Index(self.items_, name="item"), columns=["min", "max"])

    @property
    def confound_encoder_(self) -> ConfoundEncoder:
        """How confounds become columns between 0 and 1."""
        check_is_fitted(self, "model_")
        return self.model_.confound_encoder_

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """The factors' names: factor1, factor2, …"""
        check_is_fitted(self, "model_")
        return self.model_.get_feature_names_out()
