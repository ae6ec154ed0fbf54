"""Where results come from: the versions of what computed, and the fingerprints of files."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from icqf import __version__
from icqf.io.readers.streams import files_in

PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "joblib")


def fingerprint_of(path: Path) -> dict[str, Any]:
    """Return the name, the size and the SHA-256 of a file."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"file": path.name, "bytes": path.stat().st_size, "sha256": digest}


def fingerprints_of(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Return the fingerprints of files, and of each file of a folder that is read as one table."""
    found = []
    for path in paths:
        if path.is_dir():
            named = ((each, f"{path.name}/{each.relative_to(path).as_posix()}") for each in files_in(path))
            found += [fingerprint_of(each) | {"file": name} for each, name in named]
        else:
            found.append(fingerprint_of(path))
    return found


def versions() -> dict[str, str]:
    """Return the versions of this package, of Python and of what computes."""
    found = {"icqf": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found
