"""What a folder of results holds. Nothing heavy is imported with this module."""

from __future__ import annotations

from pathlib import Path

ACCOUNT = "provenance.json"


def files_in(folder: Path) -> list[str]:
    """The files and links of a folder of results and of folders in it, by their place in it."""
    inside = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return sorted(path.relative_to(folder).as_posix() for path in inside)
