"""What all tests share: the slow reference beside them can be imported as `reference`."""

import os
import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

# A reviewer's run draws the same examples every time; elsewhere each run looks at new ones.
settings.register_profile("same", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("same")
