"""A document as plain text of a given width, for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from icqf.report.blocks import Bullets, Details, Grid, Group, Picture, Section, on_the_page_alone, plain_text

if TYPE_CHECKING:
    from icqf.report.document import Document


def render(page: Document, width: int = 100) -> str:
    """The page as text: headings underlined, tables in columns; a long first column is wrapped."""
    parts = [f"{page.title}\n{'=' * min(len(page.title), width)}"] if page.title else []
    parts += [_wrapped(f"Take care: {each}", width) for each in page.cautions]
    parts += [_wrapped(plain_text(each), width) for each in page.lead]
    parts += [text for section in page.sections for text in _block(section, width)]
    parts += [_wrapped(page.footer, width)] if page.footer else []
    return "\n\n".join(part for part in parts if part) + "\n"


def _block(block: Any, width: int) -> list[str]:
    if on_the_page_alone(block):
        return []
    if isinstance(block, (Group, list, tuple)):
        parts = block.parts if isinstance(block, Group) else block
        return [text for each in parts for text in _block(each, width)]
    if isinstance(block, (Section, Details)):
        head = f"{_wrapped(block.heading, width)}\n{'-' * min(len(block.heading), width)}"
        return [head, *(text for each in block.parts for text in _block(each, width))]
    if isinstance(block, Bullets):
        entries = [plain_text(each) for each in block.entries]
        return ["\n".join(_wrapped(each, width, "- ", "  ") for each in entries)]
    if isinstance(block, Picture):
        return [_wrapped(f"[{block.name}.png: {block.caption}]", width)]
    if isinstance(block, Grid):
        return [part for part in (_wrapped(block.caption, width), _table(block, width)) if part] + (
            [_wrapped(block.note, width)] if block.note else []
        )
    return [_wrapped(plain_text(block), width)]


def _table(grid: Grid, width: int) -> str:
    head, rows = grid.texts()
    numeric = [each for each, column in zip(grid.numeric, grid.columns, strict=True) if not column.drawn]
    lines = [head, *rows] if head else rows
    if not lines:
        return ""
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    over = sum(widths) + 2 * (len(widths) - 1) - width
    if over > 0:  # the widest column gives way, and is wrapped
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
        set_out = [
            piece.rjust(width) if right else piece.ljust(width)
            for piece, width, right in zip(pieces, widths, numeric, strict=True)
        ]
        lines.append("  ".join(set_out).rstrip())
    return lines


def _wrapped(text: str, width: int, first: str = "", later: str = "") -> str:
    return textwrap.fill(text, width, initial_indent=first, subsequent_indent=later)
