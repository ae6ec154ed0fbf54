"""Interpretable factors from questionnaires."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from icqf.estimator import ICQF
    from icqf.selection.consensus import consensus
    from icqf.selection.estimator import ICQFCV

__version__ = "0.1.0"
__all__ = ["ICQF", "ICQFCV", "__version__", "consensus"]

_HOMES = {
    "ICQF": "icqf.estimator",
    "ICQFCV": "icqf.selection.estimator",
    "consensus": "icqf.selection.consensus",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `icqf --help` starts at once."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'icqf' has no attribute {name!r}")
