"""Plots of tables: each draws into the matplotlib Axes it is given (or new ones) and returns it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
