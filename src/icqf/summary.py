"""What a fitted model says, in tables that print well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from icqf.errors import counted

if TYPE_CHECKING:
    from icqf.fitted import FittedModel

_NO_VARIANCE = 1e-12  # of the item that varies most; the sums of a constant item leave rounding behind
_LOADED = 0.1


def is_loaded(shares: np.ndarray) -> np.ndarray:
    """Whether loadings, as shares of the item's range, count as more than a trace: a tenth or more.

    Examples
    --------
    >>> import numpy as np
    >>> is_loaded(np.array([0.09, 0.1, 0.5]))
    array([False,  True,  True])
    """
    return np.asarray(shares) >= _LOADED


@dataclass(frozen=True, eq=False)
class FitStatistics:
    """Sums over the participants of a fit.

    Attributes
    ----------
    sse, sst : array (m,)
        Squared error of each item, and its sum of squares around the item's mean.
    removal : array (k, m)
        By how much each item's squared error would grow without the factor.
    missing : array (m,)
        How many answers each item lacks.
    """

    sse: np.ndarray
    sst: np.ndarray
    removal: np.ndarray
    missing: np.ndarray


@dataclass(frozen=True, eq=False)
class Summary:
    """The meaning of a fitted model's numbers.

    Attributes
    ----------
    factors : DataFrame
        One row per factor: `variance_explained` (by how much the share of explained answer variance
        would fall without it), `n_items` (items it moves by a tenth of their range or more) and
        `top_items`.
    items : DataFrame
        One row per item: `variance_explained` in this sample (missing for an item everybody answered
        alike), `n_missing`, and the `factor` that moves it most.
    variance_explained : float
        Share of all answers' variance explained by the whole model, in this sample.
    n_participants, n_missing : int
    share_missing : float
    """

    factors: pd.DataFrame
    items: pd.DataFrame
    variance_explained: float
    n_participants: int
    n_missing: int
    share_missing: float

    @classmethod
    def of(cls, model: FittedModel, *, n_top: int = 5) -> Summary:
        """The summary of a fitted model."""
        statistics = model.fit_statistics_
        sse, sst, removal = statistics.sse, statistics.sst, statistics.removal
        missing = statistics.missing.astype(int)
        span = (model.item_range_["max"] - model.item_range_["min"]).to_numpy()
        relative = model.components_ / span
        names, items = model.get_feature_names_out(), np.array(model.loadings_.index)
        total = float(sst.sum())
        if total <= _NO_VARIANCE * model.n_participants_ * float((span**2).sum()):
            total = np.inf  # nothing varies, and nothing is explained
        factors = pd.DataFrame(
            {
                "variance_explained": removal.sum(axis=1) / total,
                "n_items": is_loaded(relative).sum(axis=1),
                "top_items": [_top(items, row, n_top) for row in relative],
            },
            index=pd.Index(names, name="factor"),
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            varies = sst / span**2 > _NO_VARIANCE * (sst / span**2).max()
            explained = np.where(varies, 1 - sse / sst, np.nan)
        strongest = np.where(relative.max(axis=0) > 0, names[relative.argmax(axis=0)], "")
        by_item = pd.DataFrame(
            {"variance_explained": explained, "n_missing": missing, "factor": strongest},
            index=pd.Index(items, name="item"),
        )
        n_answers = model.n_participants_ * len(items)
        return cls(
            factors,
            by_item,
            (1 - float(sse.sum()) / total) if np.isfinite(total) else 0.0,
            model.n_participants_,
            int(missing.sum()),
            float(missing.sum()) / n_answers,
        )

    def __str__(self) -> str:
        head = (
            f"{counted(len(self.factors), 'factor')} behind {counted(len(self.items), 'item')}, from "
            f"{counted(self.n_participants, 'participant')}; {self.n_missing} answers missing "
            f"({self.share_missing:.1%}).\n"
            f"The model explains {self.variance_explained:.1%} of the variance of the answers.\n"
        )
        factors = self.factors.assign(
            variance_explained=self.factors["variance_explained"].map("{:.1%}".format)
        )
        items = self.items.dropna(subset="variance_explained")
        items = items.sort_values("variance_explained", ascending=False)
        best, worst = items.head(3), items.tail(3)
        lines = [
            f"Best described items: {_with_share(best)}.",
            f"Least described items: {_with_share(worst)}.",
        ]
        with pd.option_context("display.width", 120, "display.max_colwidth", 70):
            return head + "\n" + factors.to_string(justify="left") + "\n\n" + "\n".join(lines)

    __repr__ = __str__


def _top(items: np.ndarray, row: np.ndarray, n_top: int) -> str:
    order = np.argsort(-row, kind="stable")[:n_top]
    return ", ".join(str(items[j]) for j in order if row[j] > 0)


def _with_share(items: pd.DataFrame) -> str:
    shares = items["variance_explained"].round(2) + 0.0  # no "-0%"
    return ", ".join(f"{name} ({share:.0%})" for name, share in shares.items())
