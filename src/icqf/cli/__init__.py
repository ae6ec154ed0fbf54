"""The command line: each command parses, makes one call to the library, and writes what comes back."""

from icqf.cli.program import main

__all__ = ["main"]
