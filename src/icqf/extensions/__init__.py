"""Beyond one questionnaire and one fit: what is built on fitted models."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
