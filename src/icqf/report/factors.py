"""The section on the factors: one fitted model with its loadings, top items, stability and confounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from icqf.data.confounds import INTERCEPT
from icqf.data.questionnaire import Item
from icqf.models.names import default_names, suggested_names, themes, top_places
from icqf.models.summary import Summary
from icqf.report import words
from icqf.report.schema import (
    Confound,
    Factor,
    FactorLink,
    FactorReplication,
    FactorStability,
    Loading,
    ModelView,
)
from icqf.resampling.replication import chance_in_words


@dataclass(frozen=True, eq=False)
class LoadingTables:
    """Loadings of the factors and then the confounds (m, K), in points and as shares of each item's range.

    `low` and `high` are the ends of their intervals, where there are any.
    """

    points: pd.DataFrame
    shares: pd.DataFrame
    low: pd.DataFrame | None = None
    high: pd.DataFrame | None = None

    def rows(self, column: str) -> tuple[Loading, ...]:
        """The loadings of one factor or confound."""
        present = [table for table in (self.points, self.shares, self.low, self.high) if table is not None]
        columns = zip(*(table[column].tolist() for table in present), strict=True)
        return tuple(
            Loading(str(item), *values) for item, values in zip(self.points.index, columns, strict=True)
        )


def model_view(
    tables: LoadingTables,
    summary: Summary,
    names: Sequence[str],
    items: Sequence[Item],
    confound_words: Sequence[str],
    *,
    beta: float,
    converged: bool,
    n_iter: int,
    stability: pd.DataFrame | None = None,
    replication: pd.DataFrame | None = None,
    n_resamples: int = 0,
) -> ModelView:
    """A model with the names of its factors; `stability` is what `Resamples.factors` gives, and
    `replication` the model's `replication_`."""
    keys = [str(name) for name in tables.points.columns]

    def ranked(column: str, rows: tuple[Loading, ...]) -> tuple[Loading, ...]:
        return tuple(rows[j] for j in top_places(tables.shares[column]))

    shares = tables.shares.iloc[:, : len(names)]
    suggestions = suggested_names(shares, items)
    about = themes(shares, [item.subscale for item in items])
    factors = []
    for r, (name, own_key) in enumerate(zip(names, default_names(len(names)), strict=True)):
        rows = tables.rows(keys[r])
        top = ranked(keys[r], rows)
        factors.append(
            Factor(
                key=own_key,
                name=name,
                suggested=suggestions[r],
                theme=about[r].words,
                variance=float(summary.factors["variance_explained"].iloc[r]),
                n_items=int(summary.factors["n_items"].iloc[r]),
                loadings=rows,
                top=top,
                stability=None if stability is None else _stability(stability.iloc[r], n_resamples),
                replication=None if replication is None else _replication(replication.iloc[r]),
            )
        )
    confounds = []
    variances = summary.confounds["variance_explained"].tolist()
    for key, said, variance in zip(keys[len(names) :], confound_words, variances, strict=True):
        rows = tables.rows(key)
        confounds.append(Confound(key, said, variance, rows, ranked(key, rows)))
    return ModelView(
        n_components=len(names),
        beta=beta,
        variance=float(summary.variance_explained),
        converged=converged,
        n_iter=n_iter,
        factors=tuple(factors),
        confounds=tuple(confounds),
    )


def _stability(row: pd.Series, n_resamples: int) -> FactorStability:
    agreement, n_top, kept = float(row["agreement"]), int(row["n_top"]), float(row["top_kept"])
    return FactorStability(
        agreement=agreement,
        low=float(row["low"]),
        n_top=n_top,
        top_kept=kept,
        words=words.stability_words(agreement, kept, n_top, n_resamples),
    )


def _replication(row: pd.Series) -> FactorReplication:
    chance, fragile = float(row["chance"]), bool(row["fragile"])
    return FactorReplication(
        agreement=float(row["agreement"]),
        low=float(row["low"]),
        high=float(row["high"]),
        chance=chance,
        fragile=fragile,
        words=f"{'Fragile: it' if fragile else 'It'} {chance_in_words(chance)}.",
    )


def confound_sentences(columns: Sequence[Any], names: Sequence[str]) -> list[str]:
    """What the loadings of each confound column mean; `columns` are those of a fitted `ConfoundEncoder`."""
    said = []
    for column in columns:
        if column.categories is not None:
            said += [
                f"Points added to the answers of participants with {column.name} {category}, whatever their "
                "scores."
                for category in column.categories
            ]
        else:
            said += [
                f"Points added to the answers at {column.name} {end:g}, decreasing linearly to none at "
                f"{other:g}."
                for end, other in ((column.high, column.low), (column.low, column.high))
            ]
    if names and names[-1] == INTERCEPT and len(said) < len(names):
        said.append("Points above the lowest answer that are added to everyone's answers.")
    return said


def factor_links(table: pd.DataFrame) -> tuple[FactorLink, ...]:
    """The links that `factor_lineage` finds."""
    return tuple(
        FactorLink(int(k), int(factor), int(next_k), int(next_factor), float(value))
        for k, factor, next_k, next_factor, value in table.itertuples(index=False)
    )
