"""A document as plain text of a given width, for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from icqf.report.blocks import Bullets, Grid, Heading, Leaf, Picture, plain_text

if TYPE_CHECKING:
    from icqf.report.document import Document


def render(page: Document, width: int = 100) -> str:
    """The page as text: headings underlined, tables in columns."""
    parts = [f"{page.title}\n{'=' * min(len(page.title), width)}"] if page.title else []
    parts += [_wrapped(f"Take care: {each}", width) for each in page.cautions]
    parts += [_leaf(leaf, width) for leaf in page.in_order()]
    return "\n\n".join(part for part in parts if part) + "\n"


def _leaf(leaf: Leaf, width: int) -> str:
    if isinstance(leaf, Heading):
        return f"{_wrapped(leaf.text, width)}\n{'-' * min(len(leaf.text), width)}"
    if isinstance(leaf, Bullets):
        return "\n".join(_wrapped(plain_text(each), width, "- ", "  ") for each in leaf.entries)
    if isinstance(leaf, Picture):
        return _wrapped(f"[{leaf.name}.png: {leaf.caption}]", width)
    if isinstance(leaf, Grid):
        parts = (_wrapped(leaf.caption, width), _table(leaf, width), _wrapped(leaf.note, width))
        return "\n\n".join(part for part in parts if part)
    return _wrapped(plain_text(leaf), width)


def _table(grid: Grid, width: int) -> str:
    head, rows = grid.texts()
    numeric = [each for each, column in zip(grid.numeric, grid.columns, strict=True) if not column.drawn]
    lines = [head, *rows] if head else rows
    if not lines:
        return ""
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    over = sum(widths) + 2 * (len(widths) - 1) - width
    if over > 0:  # the widest column is wrapped
        widest = widths.index(max(widths))
        widths[widest] = max(12, widths[widest] - over)
    shown = [text for line in lines for text in _line(line, widths, numeric)]
    if head:
        below = len(_line(head, widths, numeric))
        shown.insert(below, "  ".join("-" * each for each in widths))
    return "\n".join(shown)


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> list[str]:
    """A row of a table, over as many lines as its longest cell needs."""
    parts = [textwrap.wrap(cell, width or 1) or [""] for cell, width in zip(cells, widths, strict=True)]
    lines = []
    for at in range(max(map(len, parts))):
        pieces = [part[at] if at < len(part) else "" for part in parts]
        padded = (
            piece.rjust(width) if right else piece.ljust(width)
            for piece, width, right in zip(pieces, widths, numeric, strict=True)
        )
        lines.append("  ".join(padded).rstrip())
    return lines


def _wrapped(text: str, width: int, first: str = "", later: str = "") -> str:
    return textwrap.fill(text, width, initial_indent=first, subsequent_indent=later)
