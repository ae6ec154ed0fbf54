"""Files in and out: readers for a study's tables, codebooks, and result tables."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
