"""The summary of a fitted model in tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from icqf import __version__
from icqf.data.about import plain_words
from icqf.data.confounds import INTERCEPT
from icqf.errors import counted, shown_share
from icqf.resampling.replication import FRAGILE

if TYPE_CHECKING:
    from icqf.models.icqf import ICQF
    from icqf.models.icqfcv import ICQFCV
    from icqf.resampling.hidden import HiddenFit

LOADED = 0.1
_MOST_TRIED = 1000


def is_loaded(shares: np.ndarray) -> np.ndarray:
    """Whether loadings, as shares of the item's range, are a tenth or more."""
    return np.asarray(shares) >= LOADED


@dataclass(frozen=True, eq=False)
class FitStatistics:
    """Sums over the participants of a fit."""

    sse: np.ndarray  # (m,), squared error of each item
    sst: np.ndarray  # (m,), sum of squares around the item's mean
    explained: np.ndarray  # (k + c, m), part of `sst` explained by each factor and confound column
    missing: np.ndarray  # (m,), number of missing answers


@dataclass(frozen=True)
class FitRecord:
    """How a fit was made, beyond its settings; `hidden` is R² of hidden answers with its standard error."""

    icqf: str = __version__
    weighted: bool = False
    tried: tuple[int, ...] = ()  # numbers of factors that cross-validation compared; none if it was set
    rule: str = ""
    n_splits: int = 0
    hidden: tuple[float, float] | None = None
    plan: str = ""  # how the fit compares with its preregistered plan

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> FitRecord:
        """The record from a model file, refused if it is not valid."""
        hidden = stored["hidden"]
        record = cls(
            plain_words(stored["icqf"]),
            bool(stored["weighted"]),
            tuple(int(k) for k in stored["tried"]),
            plain_words(stored["rule"]),
            int(stored["n_splits"]),
            None if hidden is None else (float(hidden[0]), float(hidden[1])),
            plain_words(stored["plan"]),
        )
        if len(record.tried) > _MOST_TRIED or not np.isfinite(record.hidden or 0).all():
            raise ValueError("its record of the fit is not valid")
        return record

    def chosen_by(self, search: ICQFCV) -> FitRecord:
        """The record of a model that this cross-validation chose."""
        tried = tuple(sorted({int(k) for k in search.errors_["n_components"]}))
        return replace(
            self.with_hidden(search.hidden_),
            tried=tried,
            rule=str(search.rule),
            n_splits=int(search.n_splits),
        )

    def with_hidden(self, hidden: HiddenFit | None) -> FitRecord:
        """The record with how well hidden answers were predicted, rounded; where they vary in every fold."""
        if hidden is None or not (hidden.sst.sum(axis=1) > 0).all():
            return self
        return replace(self, hidden=(round(float(hidden.overall), 2), round(float(hidden.std_error), 3)))


@dataclass(frozen=True, eq=False)
class Summary:
    """Shares of variance, top items and fit of a fitted model.

    An item's share of variance explained is the covariance of its answers with their reconstruction, divided
    by the variance of the answers; the shares of factors and confounds add up to that of the model.
    `r_squared` is 1 − (squared error / variance), for comparisons with hidden answers and with other models.

    Attributes
    ----------
    factors : DataFrame
        One row per factor: `variance_explained` (its share of the variance of all answers), `n_items` (items
        with a loading of at least a tenth of their range), the replication `probability`, if it was
        estimated (`icqf.replication_probability`), and `top_items`.
    confounds : DataFrame
        One row per confound column: `variance_explained`; 0 for the intercept.
    items : DataFrame
        One row per item: `variance_explained` and `r_squared` in this sample (missing for an item without
        variance), `n_missing`, and the `factor` with the highest loading.
    shares : DataFrame
        Share of each item's variance (rows) that each factor and confound column (columns) explains.
    variance_explained : float
        Share of the variance explained by the whole model, in this sample.
    r_squared : float
        Reduction in squared error relative to the items' means.
    n_participants, n_missing : int
    share_missing : float
    """

    factors: pd.DataFrame
    confounds: pd.DataFrame
    items: pd.DataFrame
    shares: pd.DataFrame
    variance_explained: float
    r_squared: float
    n_participants: int
    n_missing: int
    share_missing: float

    @classmethod
    def of(cls, model: ICQF, *, n_top: int = 5) -> Summary:
        """The summary of a fitted model."""
        statistics = model.fit_statistics_
        sse, sst, explained = statistics.sse, statistics.sst, statistics.explained
        missing = statistics.missing.astype(int)
        span = (model.item_range_["max"] - model.item_range_["min"]).to_numpy()
        relative, k = model.components_ / span, len(model.components_)
        names, items = model.get_feature_names_out(), pd.Index(model.loadings_.index, name="item")
        total = float(sst.sum()) or np.inf  # where nothing varies, nothing is explained
        overall = explained.sum(axis=1) / total
        factors = pd.DataFrame(
            {
                "variance_explained": overall[:k],
                "n_items": is_loaded(relative).sum(axis=1),
                "top_items": [_top(items.to_numpy(), row, n_top) for row in relative],
            },
            index=pd.Index(names, name="factor"),
        )
        if model.replication_ is not None:
            factors.insert(2, "probability", model.replication_["probability"].to_numpy())
        confounds = pd.DataFrame(
            {"variance_explained": overall[k:]}, index=pd.Index(model.confound_names_, name="confound")
        )
        varying = np.where(sst > 0, sst, np.nan)
        shares = pd.DataFrame((explained / varying).T, index=items, columns=[*names, *model.confound_names_])
        strongest = np.where(relative.max(axis=0) > 0, names[relative.argmax(axis=0)], "")
        by_item = pd.DataFrame(
            {
                "variance_explained": explained.sum(axis=0) / varying,
                "r_squared": 1 - sse / varying,
                "n_missing": missing,
                "factor": strongest,
            },
            index=items,
        )
        n_answers = model.n_participants_ * len(items)
        return cls(
            factors,
            confounds,
            by_item,
            shares,
            float(overall.sum()),
            1 - float(sse.sum()) / total if np.isfinite(total) else 0.0,
            model.n_participants_,
            int(missing.sum()),
            float(missing.sum()) / n_answers,
        )

    def __str__(self) -> str:
        head = (
            f"{counted(len(self.factors), 'factor')} behind {counted(len(self.items), 'item')}, from "
            f"{counted(self.n_participants, 'participant')}; {self.n_missing} answers missing "
            f"({self.share_missing:.1%}).\n"
            f"The model explains {shown_share(self.variance_explained)} of the variance of the answers; "
            "the shares of its parts add up to this.\n"
        )
        rows = {"confounds": self.confounds["variance_explained"].sum(), "total": self.variance_explained}
        if all(name == INTERCEPT for name in self.confounds.index):
            del rows["confounds"]
        factors = pd.concat([self.factors, pd.DataFrame({"variance_explained": rows})])
        table = pd.DataFrame(
            {
                "variance_explained": factors["variance_explained"].map(shown_share),
                "n_items": [*self.factors["n_items"].map(str), *[""] * len(rows)],
                **(
                    {"replication": _replication(self.factors, len(rows))}
                    if "probability" in self.factors
                    else {}
                ),
                "top_items": factors["top_items"].fillna(""),
            }
        ).rename_axis("factor")
        items = self.items.dropna(subset="variance_explained")
        items = items.sort_values("variance_explained", ascending=False)
        best, worst = items.head(3), items.tail(3)
        lines = [
            f"Best described items: {_with_share(best)}.",
            f"Least described items: {_with_share(worst)}.",
        ]
        with pd.option_context("display.width", 120, "display.max_colwidth", 70):
            return head + "\n" + table.to_string(justify="left") + "\n\n" + "\n".join(lines)

    __repr__ = __str__


def _replication(factors: pd.DataFrame, blank: int) -> list[str]:
    """The replication probability of each factor, fragile ones marked, and empty cells for other rows."""
    marks = (f"{each:.0%}{' (fragile)' if each < FRAGILE else ''}" for each in factors["probability"])
    return [*marks, *[""] * blank]


def _top(items: np.ndarray, row: np.ndarray, n_top: int) -> str:
    order = np.argsort(-row, kind="stable")[:n_top]
    return ", ".join(str(items[j]) for j in order if row[j] > 0)


def _with_share(items: pd.DataFrame) -> str:
    shares = items["variance_explained"].round(2) + 0.0  # no "-0%"
    return ", ".join(f"{name} ({share:.0%})" for name, share in shares.items())
