"""Interpretable factors from questionnaires."""

__version__ = "0.1.0"
