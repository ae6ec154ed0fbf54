"""Analyses of fitted models: groups, sample size, short forms, pooling, other methods."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
