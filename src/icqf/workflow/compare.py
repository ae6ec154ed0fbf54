"""Match the factors of two models."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from icqf.models.icqf import ICQF
from icqf.resampling.matching import Match, match_factors

METHODS = ("greedy", "optimal")
SIMILARITIES = ("pearson", "congruence")


@dataclass(frozen=True, eq=False)
class ModelPair:
    """The matched factors of two models, with notes on the comparison."""

    match: Match
    notes: tuple[str, ...]


def compare_models(
    first: str | os.PathLike[str],
    second: str | os.PathLike[str],
    *,
    method: Literal["greedy", "optimal"] = "greedy",
    similarity: Literal["pearson", "congruence"] = "pearson",
) -> ModelPair:
    """Pair the factors of two model files by their loadings on the items they share, by `match_factors`."""
    a, b = ICQF.load(first), ICQF.load(second)
    items_a, items_b = a.codebook_.items, b.codebook_.items
    match = match_factors(a, b, method=method, similarity=similarity)
    keyed_a, keyed_b = ({item.name for item in items if item.reverse} for items in (items_a, items_b))
    differ = [name for name in a.loadings_.index if name in keyed_a ^ keyed_b and name in b.loadings_.index]
    note = f"Reversed in only one of the studies: {', '.join(map(str, differ))}."
    return ModelPair(match, (note,) if differ else ())
