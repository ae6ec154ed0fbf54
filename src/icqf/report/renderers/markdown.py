"""A document in Markdown; text from files is escaped."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from icqf.report.blocks import Bullets, Grid, Heading, Leaf, Picture, Prose, Span

if TYPE_CHECKING:
    from icqf.report.document import Document

_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def render(page: Document) -> str:
    """The page in Markdown; pictures are named by their files."""
    parts = [f"# {_safe(page.title)}"] if page.title else []
    if page.cautions:
        parts.append("\n".join(f"- **Take care.** {_safe(each)}" for each in page.cautions))
    parts += [text for leaf in page.in_order() for text in _leaf(leaf) if text]
    return "\n\n".join(parts).strip() + "\n"


def _leaf(leaf: Leaf) -> list[str]:
    if isinstance(leaf, Heading):
        return [f"{'#' * min(leaf.level + 1, 6)} {_safe(leaf.text)}"]
    if isinstance(leaf, Bullets):
        return ["\n".join(f"- {_inline(entry)}" for entry in leaf.entries)]
    if isinstance(leaf, Picture):
        return [f"![{_safe(leaf.alt or leaf.caption)}]({leaf.name.replace(' ', '%20')}.png)"]
    if isinstance(leaf, Grid):
        return _grid(leaf)
    quoted = isinstance(leaf, Prose) and leaf.kind == "quote"
    return [f"> {_inline(leaf)}" if quoted else _inline(leaf)]


def _grid(grid: Grid) -> list[str]:
    head, _ = grid.texts()
    shown = [at for at, column in enumerate(grid.columns) if not column.drawn]
    lines = ["| " + " | ".join(map(_safe, head or [""] * len(shown))) + " |", "|" + "---|" * len(shown)]
    for number, row in enumerate(grid.cells):
        link = grid.links[number] if grid.links else ""
        cells = []
        for at in shown:
            text = _safe(row[at].plain)
            text = f"**{text}**" if (number, at) in grid.bold and text else text
            leads = row[at].link or (link if at == 0 else "")
            cells.append(f"[{text}]({leads})" if leads and not leads.startswith("#") else text)
        lines.append("| " + " | ".join(cells) + " |")
    caption = f"{_safe(grid.caption.rstrip('.:'))}:" if grid.caption else ""
    return [caption, "\n".join(lines), _safe(grid.note)]


def _inline(text: str | Prose) -> str:
    """A sentence with bold words, code and links."""
    if isinstance(text, str):
        return _safe(text)
    return " ".join("".join(_span(part) for part in text.parts).split())


def _span(part: str | Span) -> str:
    if isinstance(part, str):
        edges = (" " * part[:1].isspace(), " " * part[-1:].isspace())
        return edges[0] + _safe(part) + edges[1]
    marks = {"strong": "**", "code": "`"}.get(part.kind, "")
    text = part.text.replace("`", "'") if part.kind == "code" else _safe(part.text)
    text = f"{marks}{text}{marks}"
    return f"[{text}]({part.link})" if part.link else text


def _safe(text: str) -> str:
    """A text that Markdown shows as it is, without control characters and marks that turn the direction."""
    text = _UNSEEN.sub("", " ".join(text.split()))
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\\\`*_{}\[\]|#~])", r"\\\1", text)
