"""The whole analysis of a study's files: read, choose k and β, fit, score, and write the results."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
