"""A document as JSON: the values of its sections, or else their words and tables."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from icqf.report.blocks import Bullets, Grid, Heading, Leaf, Picture, in_order, plain_text

if TYPE_CHECKING:
    from icqf.report.document import Document

_DIGITS = 12  # significant digits


def render(page: Document) -> str:
    """The page as JSON: its title, its data and those of its sections, and the text of the others."""
    values: dict[str, Any] = {"title": page.title}
    if page.data is None:
        values |= {"cautions": list(page.cautions), "lead": [_content(each) for each in page.lead]}
    values |= plain(page.data or {})
    content = {}
    for number, section in enumerate(page.sections, 1):
        key = section.key or f"section{number}"
        if section.data is None:
            parts = [_content(leaf) for leaf in in_order(section.parts)]
            content[key] = {"heading": section.heading, "parts": parts}
        elif section.data:
            values[key] = plain(section.data)
    values |= {"sections": content} if content else {}
    # One line for each part: with an indent, Python writes JSON five times as slowly.
    how: dict[str, Any] = {"ensure_ascii": False, "allow_nan": False}
    lines = (f" {json.dumps(name, **how)}: {json.dumps(part, **how)}" for name, part in values.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def plain(value: Any) -> Any:
    """A value for JSON: numbers to twelve digits, null for NaN."""
    if isinstance(value, SimpleNamespace):
        value = vars(value)
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return value


def _content(leaf: Leaf) -> Any:
    """The words or the table of a block as plain values."""
    if isinstance(leaf, Heading):
        return {"heading": leaf.text}
    if isinstance(leaf, Bullets):
        return [plain_text(entry) for entry in leaf.entries]
    if isinstance(leaf, Picture):
        return {"picture": leaf.name, "caption": leaf.caption}
    if isinstance(leaf, Grid):
        head, rows = leaf.texts()
        return {"caption": leaf.caption, "head": head, "rows": rows, "note": leaf.note}
    return plain_text(leaf)
