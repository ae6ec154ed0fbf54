"""Data to try things on: an embedded simulated demo, simulated studies with known factors, and real
public questionnaires from other packages.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
