"""What all tests share: the slow reference beside them can be imported as `reference`."""

import os
import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

# A reviewer's run draws the same examples every time; elsewhere each run looks at new ones. How long an
# example takes says more about the machine than about the code.
settings.register_profile("new", deadline=None)
settings.register_profile("same", deadline=None, derandomize=True)
settings.load_profile("same" if os.environ.get("CI") else "new")
