"""Helpers of the package's own tests can be imported here as well."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
