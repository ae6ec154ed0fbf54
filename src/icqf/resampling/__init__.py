"""Folds, splits, halves, bootstrap, the error on hidden answers, and the matching of factors."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
