"""How good factors are: whether they agree between fits, samples and studies, and what they predict."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
