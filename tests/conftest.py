"""What all tests share: the slow reference beside them can be imported as `reference`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
