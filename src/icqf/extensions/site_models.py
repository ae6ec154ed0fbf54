"""Models of several sites: which of them can be pooled, and what is different about those that cannot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from icqf.data.confounds import ConfoundEncoder
from icqf.errors import InputError, counted, listed
from icqf.extensions.reduced import with_items
from icqf.models.icqf import ICQF

# What decides how answers become scores, and what a user calls it.
_SETTINGS = {
    "beta": "a penalty beta of",
    "penalty": "the penalty",
    "item_weight": "an item weighting of",
    "intercept": "intercept",
    "score_max": "a highest score of",
    "loading_max": "a highest loading of",
    "reconstruction_max": "a highest reconstructed answer of",
}


def alike(models: Mapping[str, ICQF]) -> list[ICQF]:
    """The models with their items in the first one's order; refused where they are of different kinds."""
    first, *others = models
    for name in others:
        difference = _difference(models[first], models[name])
        if difference:
            raise InputError(
                f"{name}: the model has {difference[0]}, and that of {first} has {difference[1]}.",
                code="different-sites",
                remedy="Fit all sites with one codebook and one config.toml that sets n_components and beta.",
                site=name,
            )
    reference = models[first]
    if isinstance(reference.item_weight, str) and reference.item_weight == "variance":
        raise InputError(
            f"{first}: its items are weighted by the variance of the site's own answers, which differs "
            "between sites.",
            code="learned-weights",
            remedy='Fit all sites with item_weight="range".',
        )
    items = list(reference.item_range_.index)
    return [
        model if list(model.item_range_.index) == items else with_items(model, items)
        for model in models.values()
    ]


def _difference(a: ICQF, b: ICQF) -> tuple[str, str] | None:
    """What `b` and `a` have that does not go together, in words; None where they can be pooled."""
    ours, theirs = list(a.item_range_.index), list(b.item_range_.index)
    if {*ours} != {*theirs}:
        more = [name for name in theirs if name not in {*ours}]
        fewer = [name for name in ours if name not in {*theirs}]
        if more:
            return f"the item {more[0]!r}", f"no such item ({counted(len(ours), 'item')})"
        return f"no item {fewer[0]!r}", f"it ({counted(len(ours), 'item')})"
    for name in ours:
        (low, high), (other_low, other_high) = a.item_range_.loc[name], b.item_range_.loc[name]
        if (low, high) != (other_low, other_high):
            return (
                f"the range {other_low:g} to {other_high:g} for the item {name!r}",
                f"{low:g} to {high:g}",
            )
    if len(a.components_) != len(b.components_):
        return counted(len(b.components_), "factor"), str(len(a.components_))
    if bool(a.codebook_.items) != bool(b.codebook_.items):
        return tuple(
            "a codebook" if model.codebook_.items else "none, so that its reversed items are not known"
            for model in (b, a)
        )  # type: ignore[return-value]
    known, other = ({item.name: item.reverse for item in model.codebook_.items} for model in (a, b))
    for name in known:
        if known[name] != other[name]:
            return tuple(f"the item {name!r} {_keyed(each[name])}" for each in (other, known))  # type: ignore[return-value]
    for name, words in _SETTINGS.items():
        values = [_plain(getattr(model, name)) for model in (b, a)]
        if values[0] != values[1]:
            return f"{words} {values[0]}", str(values[1])
    return _different_confounds(a.confound_encoder_, b.confound_encoder_)


def _different_confounds(a: ConfoundEncoder, b: ConfoundEncoder) -> tuple[str, str] | None:
    ours, theirs = ({column.name: column for column in encoder.columns} for encoder in (a, b))
    if {*ours} != {*theirs}:
        said = [f"the confounds {listed(each)}" if each else "no confounds" for each in (theirs, ours)]
        return said[0], said[1]
    for name in ours:
        kinds = [
            "numbers" if each.categories is None else f"the categories {listed(map(str, each.categories))}"
            for each in (theirs[name], ours[name])
        ]
        mine, other = ours[name].categories, theirs[name].categories
        if (None if mine is None else {*mine}) != (None if other is None else {*other}):
            return f"{kinds[0]} for the confound {name!r}", kinds[1]
    return None


def _keyed(reverse: bool) -> str:
    return "reversed" if reverse else "not reversed"


def _plain(value: Any) -> Any:
    return [float(each) for each in value] if isinstance(value, list | tuple | np.ndarray) else value
