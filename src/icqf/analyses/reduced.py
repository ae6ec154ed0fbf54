"""A fitted model of some of its items: what scores a questionnaire that asks only these."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icqf.core.problem import scale_of
from icqf.data.questionnaire import match_names
from icqf.io.model_file import StoredModel
from icqf.models.base import FittedModel
from icqf.models.icqf import ICQF
from icqf.models.persistence import rebuild

Array = NDArray[Any]
_BY_ITEM = (
    "components",
    "confound_components",
    "explained",
    "item_range",
    "item_scale",
    "sse",
    "sst",
    "missing",
)


def reduced_model(model: FittedModel, items: Iterable[str]) -> ICQF:
    """Return a model that scores a questionnaire of some of the items as if the others were missing.

    Loadings stay as they were fitted; nothing is fitted anew. What the model says of its fit (objective,
    certificate, starts, chances of replication) is said of the whole questionnaire.

    Parameters
    ----------
    model : fitted ICQF
        The model of all items.
    items : iterable of str
        Names or globs of the items to keep; they stay in the model's order.

    Returns
    -------
    ICQF

    Examples
    --------
    >>> import numpy as np
    >>> from icqf import ICQF
    >>> from icqf.datasets import make_synthetic
    >>> from icqf.analyses import reduced_model
    >>> answers = make_synthetic(noise=0.1, random_state=0).answers
    >>> model = ICQF(10, item_range=(0, 100)).fit(answers)
    >>> short = reduced_model(model, [f"item{j}" for j in range(1, 41)])
    >>> short.transform(answers[:, :40]).shape, short.loadings_.shape
    ((200, 10), (40, 10))
    """
    names = [str(name) for name in model.item_range_.index]
    chosen = match_names([items] if isinstance(items, str) else items, names)
    return with_items(model, chosen)


def with_items(model: FittedModel, items: list[str]) -> ICQF:
    """The model of these items, in this order."""
    return rebuild(ICQF, _reduced(model.describe(), items))


def _reduced(stored: StoredModel, chosen: list[str]) -> StoredModel:
    at = [stored.header["items"].index(name) for name in chosen]
    arrays = dict(stored.arrays)
    for name in _BY_ITEM:
        arrays[name] = (
            arrays[name][:, at]
            if name in ("components", "confound_components", "explained")
            else arrays[name][at]
        )
    parameters = dict(stored.header["parameters"])
    if isinstance(parameters["item_weight"], list):
        parameters["item_weight"] = [parameters["item_weight"][item] for item in at]
    # Items are counted in units of the widest range that is left. Where that changes, all errors change by
    # one factor, and the penalty has to follow for the scores to be the same.
    scale = _scale(parameters["item_weight"], arrays["item_scale"], np.ptp(arrays["item_range"], axis=1))
    parameters["beta"] = float(parameters["beta"] * (scale[0] / arrays["item_scale"][0]) ** 2)
    arrays["item_scale"] = scale
    header = {**stored.header, "items": chosen, "parameters": parameters, "dtype": "float64"}
    known = {item.name: item for item in stored.codebook.items}
    entries = tuple(known[name] for name in chosen if name in known)
    return StoredModel(header, arrays, replace(stored.codebook, items=entries))


def _scale(item_weight: Any, before: Array, span: Array) -> Array:
    """What answers to the items that are left are multiplied by: as before, but for one factor."""
    if isinstance(item_weight, str) and item_weight == "variance":
        return before * (span.max() / (before * span).max())
    scale = scale_of(item_weight, span)
    return np.ones(len(span)) if scale is None else scale
