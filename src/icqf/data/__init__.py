"""What a study is: questionnaire, confounds, and every check of what a user gives."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
