"""Methods to compare with: exploratory factor analysis and its rules for the number of factors."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
