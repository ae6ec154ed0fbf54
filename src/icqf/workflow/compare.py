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
    """Pair the factors of two model files by their loadings on the items they share.

    Parameters
    ----------
    first, second : path
        Model files.
    method, similarity
        As in `icqf.resampling.match_factors`.

    Examples
    --------
    >>> import tempfile
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.workflow import compare_models
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ICQF(2).fit(load_demo()).save(f"{folder}/model.icqf")
    ...     pair = compare_models(f"{folder}/model.icqf", f"{folder}/model.icqf")
    >>> pair.match.n_items, round(pair.match.mean, 3)
    (119, 1.0)
    """
    a, b = ICQF.load(first), ICQF.load(second)
    items_a, items_b = a.codebook_.items, b.codebook_.items
    match = match_factors(a, b, method=method, similarity=similarity)
    keyed_a, keyed_b = ({item.name for item in items if item.reverse} for items in (items_a, items_b))
    differ = [name for name in a.loadings_.index if name in keyed_a ^ keyed_b and name in b.loadings_.index]
    note = f"Reversed in only one of the studies: {', '.join(map(str, differ))}."
    return ModelPair(match, (note,) if differ else ())
