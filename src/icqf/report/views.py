"""One fitted model as a report shows it: factors with their top items and stability, and confounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from icqf.data.confounds import INTERCEPT
from icqf.estimator import ICQF
from icqf.evaluation.lineage import factor_lineage
from icqf.report import words
from icqf.report.tree import Confound, Factor, Loading, ModelView, Split, Stability
from icqf.resampling.bootstrap import Resamples
from icqf.summary import Summary

N_TOP = 10
WORTH_SHOWING = 0.05  # of the range: a smaller loading is not listed among the top items


def model_view(
    model: ICQF, summary: Summary, names: list[str], subscales: dict[str, str], resamples: Resamples | None
) -> ModelView:
    """A model with its names; `resamples` gives intervals and stability."""
    span = (model.item_range_["max"] - model.item_range_["min"]).to_numpy()
    low = high = None
    if resamples is not None:
        estimate = np.concatenate([model.components_, model.confound_components_])
        low, high = resamples.interval(estimate, span if model.loading_max == "item_range" else None)
    items = [str(name) for name in model.loadings_.index]
    k = len(names)

    def loadings(row: int, values: np.ndarray) -> tuple[Loading, ...]:
        return tuple(
            Loading(
                item,
                float(values[j]),
                float(values[j] / span[j]),
                None if low is None else float(low[row, j]),
                None if high is None else float(high[row, j]),
            )
            for j, item in enumerate(items)
        )

    factors = []
    for r, name in enumerate(names):
        mine = loadings(r, model.components_[r])
        top = _top(mine)
        factors.append(
            Factor(
                key=f"factor{r + 1}",
                name=name,
                theme=words.theme(top, subscales),
                variance=float(summary.factors["variance_explained"].iloc[r]),
                n_items=int(summary.factors["n_items"].iloc[r]),
                loadings=mine,
                top=top,
                stability=None if resamples is None else _stability(resamples, r, mine, items, span),
            )
        )
    explained = _confound_words(model)
    confounds = []
    for c, name in enumerate(model.confound_names_):
        mine = loadings(k + c, model.confound_components_[c])
        confounds.append(Confound(str(name), explained[c], mine, _top(mine)))
    return ModelView(
        n_components=k,
        beta=float(model.beta),
        variance=float(summary.variance_explained),
        converged=bool(model.converged_),
        n_iter=int(model.n_iter_),
        factors=tuple(factors),
        confounds=tuple(confounds),
    )


def _top(loadings: Sequence[Loading]) -> tuple[Loading, ...]:
    ranked = sorted(loadings, key=lambda loading: -loading.share)
    return tuple(loading for loading in ranked[:N_TOP] if loading.share >= WORTH_SHOWING)


def _stability(
    resamples: Resamples, r: int, mine: Sequence[Loading], items: list[str], span: np.ndarray
) -> Stability:
    top = [items.index(loading.item) for loading in _top(mine)]
    n_top = len(top)
    shares = resamples.loadings[:, r] / span
    ranked = np.argsort(-shares, axis=1, kind="stable")[:, :n_top]
    kept = float(np.isin(ranked, top).sum(axis=1).mean()) if n_top else 0.0
    agreement = float(resamples.agreement[:, r].mean())
    return Stability(
        agreement=agreement,
        low=float(np.quantile(resamples.agreement[:, r], 0.05)),
        n_top=n_top,
        top_kept=kept,
        words=words.stability_words(agreement, kept, n_top, len(resamples.loadings)),
    )


def _confound_words(model: ICQF) -> list[str]:
    said = []
    for column in model.confound_encoder_.columns:
        if column.categories is not None:
            said += [
                f"Points added to the answers of participants with {column.name} {category}, whatever their "
                f"scores."
                for category in column.categories
            ]
        else:
            ends = (column.high, column.low)
            said += [
                f"Points added to the answers at {column.name} {end:g}, falling evenly to none at {other:g}."
                for end, other in (ends, ends[::-1])
            ]
    if (
        model.confound_names_
        and model.confound_names_[-1] == INTERCEPT
        and len(said) < len(model.confound_names_)
    ):
        said.append("Points above the lowest answer that are added to everybody's answers.")
    return said


def factor_splits(models: Sequence[ICQF]) -> tuple[Split, ...]:
    """The predecessors of every factor, model by model; none for one model alone."""
    if len(models) < 2:
        return ()
    table = factor_lineage([each.loadings_ for each in models])
    return tuple(
        Split(int(k), int(factor), int(next_k), int(next_factor), float(value))
        for k, factor, next_k, next_factor, value in table.itertuples(index=False)
    )
