"""Choosing the number of factors."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from icqf.selection.count import FactorCount

if TYPE_CHECKING:
    from icqf.jobs.parallel import Progress
    from icqf.selection.consensus import consensus
    from icqf.selection.criteria import bic, cophenetic, dispersion
    from icqf.selection.estimator import ICQFCV

__all__ = ["FactorCount", "ICQFCV", "Progress", "bic", "consensus", "cophenetic", "dispersion"]

_HOMES = {
    "ICQFCV": "icqf.selection.estimator",
    "Progress": "icqf.jobs.parallel",
    "bic": "icqf.selection.criteria",
    "consensus": "icqf.selection.consensus",
    "cophenetic": "icqf.selection.criteria",
    "dispersion": "icqf.selection.criteria",
}


def __getattr__(name: str) -> Any:
    """Imported when first used: worker processes need only the search itself."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'icqf.selection' has no attribute {name!r}")
