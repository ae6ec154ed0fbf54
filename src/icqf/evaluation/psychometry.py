"""What reviewers of a questionnaire study ask for beside the factors: reliability, adequacy, residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from icqf.baselines import (
    KMO,
    Sphericity,
    bartlett_sphericity,
    item_moments,
    item_shape,
    kmo,
    reliability,
)
from icqf.data.questionnaire import Item
from icqf.errors import InputError
from icqf.models.names import own_items

LARGEST_RESIDUALS = 10
_MOST_ITEMS = 1000  # beyond, tables of all pairs say nothing to a reader


@dataclass(frozen=True, eq=False)
class Psychometry:
    """Item statistics, reliability of scales, adequacy and residuals.

    Attributes
    ----------
    items : DataFrame (m, 3)
        ``skew``, ``kurtosis``, and ``item_rest``: the correlation with the rest of the item's subscale, or of
        its factor's items where it has none.
    standardised : DataFrame (m, k)
        Loadings in standard deviations: what a score one deviation higher adds, as a share of the item's own.
    scales : DataFrame
        One row per factor's items and per subscale: ``kind``, ``place`` (of the factor), ``name``, and the
        fields of `icqf.baselines.Reliability`.
    kmo : KMO
    bartlett : Sphericity
    residuals : DataFrame
        The pairs of items whose residuals correlate most: ``item``, ``other``, ``correlation``.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.evaluation import psychometrics
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> model = ICQF(2).fit(demo)
    >>> found = psychometrics(model, demo.keyed_answers(), items=demo.items, confounds=demo.confounds)
    >>> found.residuals.shape, 0.5 < found.kmo.overall < 1
    ((10, 3), True)
    """

    items: pd.DataFrame
    standardised: pd.DataFrame
    scales: pd.DataFrame
    kmo: KMO
    bartlett: Sphericity
    residuals: pd.DataFrame


def psychometrics(
    model: Any,
    answers: pd.DataFrame,
    *,
    items: Sequence[Item] = (),
    confounds: pd.DataFrame | None = None,
    scores: Any = None,
    n_resamples: int = 100,
    random_state: int | np.random.Generator = 0,
) -> Psychometry:
    """Item statistics, reliability, sampling adequacy and residual correlations of a fitted model's data.

    Parameters
    ----------
    model : fitted ICQF
    answers : DataFrame (n, m)
        The answers it was fitted to, reversed items reversed; NaN is missing.
    items : sequence of Item
        Their subscales, where there are any.
    confounds : DataFrame, optional
        The confounds it was fitted with.
    scores : array (n, k), optional
        The participants' scores, where they are already solved for.
    n_resamples : int
        How often participants are drawn for the intervals of ω.
    random_state : int or Generator

    Returns
    -------
    Psychometry

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.evaluation import psychometrics
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> model = ICQF(2).fit(demo)
    >>> found = psychometrics(model, demo.keyed_answers(), items=demo.items, confounds=demo.confounds)
    >>> found.scales["kind"].unique().tolist()
    ['factor', 'subscale']
    """
    values = answers.to_numpy(dtype=float, na_value=np.nan)
    if values.shape[1] > _MOST_ITEMS:
        raise InputError(
            f"There are {values.shape[1]} items; their pairs are compared for at most {_MOST_ITEMS}."
        )
    names = [str(name) for name in model.item_range_.index]
    if scores is None:
        scores = model.transform(answers, confounds=confounds)
    scores = np.asarray(scores, dtype=float)
    varying = np.flatnonzero(np.nanstd(values, axis=0) > 0)
    R = item_moments(values[:, varying]).correlation
    span = (model.item_range_["max"] - model.item_range_["min"]).to_numpy()
    own = own_items(model.components_.T / span[:, None])
    subscales = {item.name: item.subscale for item in items}
    groups = [("factor", r, "", np.flatnonzero(own[:, r])) for r in range(own.shape[1])]
    for scale in dict.fromkeys(subscales.get(name, "") for name in names):
        if scale:
            held = [j for j, name in enumerate(names) if subscales.get(name) == scale]
            groups.append(("subscale", -1, scale, np.array(held)))
    rng = np.random.default_rng(random_state)
    rows, rest = [], np.full(len(names), np.nan)
    for kind, place, name, members in groups:
        members = np.intersect1d(members, varying)
        if len(members) < 2:
            continue
        found = reliability(values[:, members], n_resamples=n_resamples, random_state=rng)
        plain = {key: value for key, value in vars(found).items() if key != "item_rest"}
        rows.append({"kind": kind, "place": place, "name": name, **plain})
        # the subscale, which comes later, has precedence
        rest[members] = found.item_rest
    with np.errstate(invalid="ignore", divide="ignore"):
        spread, own_spread = np.nanstd(values, axis=0, ddof=1), np.nanstd(scores, axis=0, ddof=1)
        standardised = model.components_.T * own_spread / spread[:, None]
    rebuilt = np.asarray(model.inverse_transform(scores, confounds=confounds), dtype=float)
    return Psychometry(
        items=item_shape(values).set_axis(names, axis=0).assign(item_rest=rest),
        standardised=pd.DataFrame(standardised, index=names, columns=model.factor_names_),
        scales=pd.DataFrame(rows),
        kmo=kmo(R),
        bartlett=bartlett_sphericity(R, int((~np.isnan(values)).any(axis=1).sum())),
        residuals=_largest(values[:, varying] - rebuilt[:, varying], [names[j] for j in varying]),
    )


def _largest(residuals: np.ndarray, names: Sequence[str]) -> pd.DataFrame:
    """The pairs of items whose residuals correlate most, whatever the sign."""
    R = pd.DataFrame(residuals).corr().to_numpy()
    one, other = np.tril_indices(len(R), -1)
    order = np.argsort(-np.abs(np.nan_to_num(R[one, other])), kind="stable")[:LARGEST_RESIDUALS]
    return pd.DataFrame(
        [(names[other[at]], names[one[at]], float(R[one[at], other[at]])) for at in order],
        columns=["item", "other", "correlation"],
    )
