"""Choosing the number of factors."""

from icqf.selection.count import FactorCount

__all__ = ["FactorCount"]
