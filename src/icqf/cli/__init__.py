"""The command line: each command parses its options, calls the library once, and writes the result."""

from icqf.cli.program import main

__all__ = ["main"]
