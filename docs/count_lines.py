"""Modules, lines and the longest functions by folder: `python docs/count_lines.py [REVISION ...]`.

Counts the Python files of `src/icqf` and `experiments` in the working tree, beside those of git revisions.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACES = ("src/icqf/", "experiments/")
LONGEST = 15


def sources(revision: str | None) -> dict[str, str]:
    """The text of every Python file, by its place; of the working tree where no revision is named."""

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(ROOT), *words], check=True, capture_output=True, text=True
        ).stdout

    if revision is None:
        names = git("ls-files", "--cached", "--others", "--exclude-standard", *PLACES).split()
        paths = {name: ROOT / name for name in names if name.endswith(".py")}
        return {name: path.read_text(encoding="utf-8") for name, path in paths.items() if path.exists()}
    names = git("ls-tree", "-r", "--name-only", revision, "--", *PLACES).split()
    return {name: git("show", f"{revision}:{name}") for name in names if name.endswith(".py")}


def room(name: str) -> str:
    """The folder that a file is counted with: a package below icqf, icqf itself, or the experiments."""
    parts = name.split("/")
    if parts[0] == "experiments":
        return "experiments (tests)" if "tests" in parts else "experiments"
    return parts[2] if len(parts) > 3 else "icqf"


def counted(texts: dict[str, str]) -> dict[str, tuple[int, int]]:
    """Modules and lines by folder."""
    found: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for name, text in texts.items():
        modules, lines = found[room(name)]
        found[room(name)] = modules + 1, lines + text.count("\n")
    return dict(found)


def functions(texts: dict[str, str]) -> list[tuple[int, int, str]]:
    """Length, number of parameters and place of each function, the longest first; docstrings do not count."""
    found = []
    for name, text in texts.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.end_lineno is not None:
                said = ast.get_docstring(node, clean=False)
                length = node.end_lineno - node.lineno + 1 - (0 if said is None else said.count("\n") + 1)
                arguments = node.args
                width = len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs)
                found.append((length, width, f"{name}:{node.lineno} {node.name}"))
    return sorted(found, reverse=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("revisions", nargs="*", help="git revisions to show beside the working tree")
    names = [*parser.parse_args().revisions, None]
    versions = [sources(name) for name in names]
    tables = [counted(version) for version in versions]
    heads = [name or "now" for name in names]
    print(f"{'modules, lines':<22}" + "".join(f"{head[:16]:>18}" for head in heads))
    for folder in sorted({folder for table in tables for folder in table}):
        cells = [f"{table.get(folder, (0, 0))[0]:>8}{table.get(folder, (0, 0))[1]:>10}" for table in tables]
        print(f"{folder:<22}" + "".join(cells))
    package = [[size for folder, size in table.items() if not folder.startswith("exp")] for table in tables]
    totals = [(sum(size[0] for size in sizes), sum(size[1] for size in sizes)) for sizes in package]
    print(f"{'src/icqf together':<22}" + "".join(f"{modules:>8}{lines:>10}" for modules, lines in totals))
    for head, version in zip(heads, versions, strict=True):
        print(f"\nLongest functions, {head} (lines without docstring, parameters)")
        for length, width, place in functions(version)[:LONGEST]:
            print(f"{length:>6}{width:>4}  {place}")


if __name__ == "__main__":
    main()
