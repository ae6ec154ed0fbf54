"""Where results come from: the versions of what computed, and the fingerprints of files."""

from __future__ import annotations

import hashlib
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from icqf import __version__

PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "joblib")


def fingerprint_of(path: Path) -> dict[str, Any]:
    """Return the name, the size and the SHA-256 of a file.

    Examples
    --------
    >>> from icqf.datasets import demo_paths
    >>> fingerprint_of(demo_paths().answers)["file"]
    'demo_answers.csv'
    """
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"file": path.name, "bytes": path.stat().st_size, "sha256": digest}


def versions() -> dict[str, str]:
    """Return the versions of this package, of Python and of what computes."""
    found = {"icqf": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found
