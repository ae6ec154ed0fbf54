"""Models that are fitted: ICQF, its cross-validated, longitudinal and two-level forms, and L1-NMF."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
