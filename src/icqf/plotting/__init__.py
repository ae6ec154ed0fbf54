"""Plots of answers, fitted models and comparisons: each takes a matplotlib Axes and returns it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
