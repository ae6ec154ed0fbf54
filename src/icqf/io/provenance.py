"""Where results come from: versions of packages and fingerprints of files."""

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
    """Return the name, size and SHA-256 of a file."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"file": path.name, "bytes": path.stat().st_size, "sha256": digest}


def fingerprints_of(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Return the fingerprints of files, and of each file in a folder that is read as one table."""
    prints = []
    for path in paths:
        if path.is_dir():
            named = ((each, f"{path.name}/{each.relative_to(path).as_posix()}") for each in files_in(path))
            prints += [fingerprint_of(each) | {"file": name} for each, name in named]
        else:
            prints.append(fingerprint_of(path))
    return prints


def versions() -> dict[str, str]:
    """Return the versions of icqf, Python and the numerical packages."""
    by_name = {"icqf": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            by_name[name] = version(name)
        except PackageNotFoundError:
            by_name[name] = "unknown"
    return by_name
