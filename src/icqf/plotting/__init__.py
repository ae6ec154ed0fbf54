"""Plots of tables: each draws into the matplotlib Axes it is given (or new ones) and returns it.

Save one with ``ax.figure.savefig("loadings.pdf")``; a notebook shows ``ax.figure``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
