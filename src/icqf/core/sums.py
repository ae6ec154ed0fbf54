"""Sums that add: what a pass over some participants finds, joined with what it finds over others."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Self

import numpy as np

_HOW = "how"


LARGEST: dict[str, Any] = {_HOW: np.maximum}  # metadata of a field of which the larger value is kept
SMALLEST: dict[str, Any] = {_HOW: np.minimum}


class Adding:
    """A dataclass whose instances add with ``+``, field by field; a field that is None adds nothing."""

    def __add__(self, other: Self) -> Self:
        together = {}
        for each in fields(self):  # type: ignore[arg-type]
            mine, theirs = getattr(self, each.name), getattr(other, each.name)
            if mine is None or theirs is None:
                together[each.name] = theirs if mine is None else mine
            else:
                together[each.name] = each.metadata.get(_HOW, np.add)(mine, theirs)
        return type(self)(**together)
