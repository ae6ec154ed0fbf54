"""A longitudinal model as a plain description, and back: that of its columns, and what makes them visits."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import pandas as pd

from icqf.data.parameters import check_parameter
from icqf.data.visits import AgeBins
from icqf.extensions.visit_problem import column_names
from icqf.io.modelfile import StoredModel, read_model
from icqf.models.icqf import ICQF
from icqf.models.persistence import described, rebuild, refuse_other_words

if TYPE_CHECKING:
    from icqf.extensions.longitudinal import LongitudinalICQF

    Model = TypeVar("Model", bound=LongitudinalICQF)

KIND = "longitudinal"
_SETTINGS = ("participant", "age", "confounds", "binning", "within_bin", "smoothness", "weigh_nonresponse")
_SHARED = (
    *("beta", "confound_ranges", "intercept", "n_init", "tol", "max_iter", "dtype"),
    *("missing_confounds", "smallest_category"),
)


def is_longitudinal(path: str | os.PathLike[str]) -> bool:
    """Return whether a model file holds a model of repeated visits."""
    return KIND in read_model(path).header


def described_visits(model: LongitudinalICQF) -> StoredModel:
    """The description of a fitted model; see `LongitudinalICQF.describe`."""
    stored = model.model_.describe()
    own = {name: getattr(model, name) for name in _SETTINGS} | {
        "confounds": list(model.confounds),
        "bins": asdict(model.bins_),
        "items": model.items_,
        "gaps": model.gaps_.to_dict("list"),
    }
    header = {**stored.header, KIND: json.loads(json.dumps(own))}
    return StoredModel(header, stored.arrays, described(model, model.codebook_))


def rebuilt_visits(kind: type[Model], stored: StoredModel) -> Model:
    """The fitted model that `described_visits` described; errors of all kinds for what makes no sense."""
    own = stored.header[KIND]
    header = {name: value for name, value in stored.header.items() if name != KIND}
    inner = rebuild(ICQF, StoredModel(header, stored.arrays))
    bins = AgeBins(**{name: tuple(values) for name, values in own["bins"].items()})
    items = [str(item) for item in own["items"]]
    ends = inner.item_range_.to_numpy()[: len(items)]
    weight = inner.item_weight
    model = kind(
        inner.n_components,
        **{name: own[name] for name in _SETTINGS},
        **{name: getattr(inner, name) for name in _SHARED},
        item_range=pd.DataFrame(ends, index=items, columns=["min", "max"]),
        item_weight=weight if isinstance(weight, str | None) else weight[: len(items)],
        bins=list(bins.visits or bins.edges),
    )
    model.model_, model.bins_, model.items_, model.codebook_ = inner, bins, items, stored.codebook
    model.gaps_ = pd.DataFrame(own["gaps"], index=pd.Index(bins.labels, name="bin"))
    check_parameter("smoothness", model.smoothness)
    for name in ("binning", "within_bin", "weigh_nonresponse"):
        check_parameter(name, getattr(model, name))
    names = (model.participant, model.age, *model.confounds)
    right = all(isinstance(name, str) for name in names)
    right &= list(inner.item_range_.index) == column_names(items, bins)
    right &= len(bins.places) == len(bins) >= 2 and len(bins) in (len(bins.visits), len(bins.edges) - 1)
    right &= _numbers(bins.places) and _numbers(bins.edges)
    right &= all(lower < upper for lower, upper in pairwise(bins.edges))
    right &= all(isinstance(text, str) for text in (*bins.labels, *bins.visits))
    right &= all(isinstance(count, int) and count >= 0 for counts in own["gaps"].values() for count in counts)
    if not right:
        raise ValueError("its description of visits is not valid")
    refuse_other_words(described_visits(model), stored)
    return model


def _numbers(ages: tuple[float, ...]) -> bool:
    return all(isinstance(age, (int, float)) and math.isfinite(age) for age in ages)
