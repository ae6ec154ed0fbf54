"""The report of a fitted model: one offline HTML page, and the same content as Markdown and JSON."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
