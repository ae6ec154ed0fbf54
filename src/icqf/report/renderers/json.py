"""A document as JSON: the values of its sections, or their words and tables where they have none."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from icqf.report.blocks import Bullets, Details, Grid, Group, Picture, Section, on_the_page_alone, plain_text

if TYPE_CHECKING:
    from icqf.report.document import Document

_DIGITS = 12  # significant ones: all that a page shows follows from these


def render(page: Document) -> str:
    """The page as JSON: its title, its data and those of its sections, and what the others say."""
    found: dict[str, Any] = {"title": page.title}
    if page.data is None:
        found |= {"cautions": list(page.cautions), "lead": [_content(each) for each in page.lead]}
    found |= plain(page.data or {})
    content = {}
    for number, section in enumerate(page.sections, 1):
        key = section.key or f"section{number}"
        if section.data is None:
            content[key] = _content(section)
        elif section.data:
            found[key] = plain(section.data)
    found |= {"sections": content} if content else {}
    return json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def plain(value: Any) -> Any:
    """A value as JSON has it: numbers to twelve digits, null for what does not exist."""
    if isinstance(value, SimpleNamespace):
        value = vars(value)
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return value


def _content(block: Any) -> Any:
    """The words and tables of a block as plain values."""
    if isinstance(block, (Section, Details)):
        return {"heading": block.heading, "parts": _contents(block.parts)}
    if isinstance(block, (Group, list, tuple)):
        return _contents(block.parts if isinstance(block, Group) else block)
    if isinstance(block, Bullets):
        return [_content(entry) for entry in block.entries]
    if isinstance(block, Picture):
        return {"picture": block.name, "caption": block.caption}
    if isinstance(block, Grid):
        head, rows = block.texts()
        return {"caption": block.caption, "head": head, "rows": rows, "note": block.note}
    return plain_text(block)


def _contents(blocks: Any) -> list[Any]:
    return [_content(block) for block in blocks if not on_the_page_alone(block)]
