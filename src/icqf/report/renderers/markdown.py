"""A document in Markdown, in tables that paste well; what a file says is never markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from icqf.report.blocks import Bullets, Details, Grid, Group, Picture, Prose, Section, Span, on_the_page_alone

if TYPE_CHECKING:
    from icqf.report.document import Document


def safe(text: str) -> str:
    """A text that Markdown shows as it is.

    Examples
    --------
    >>> print(safe("a|b <script> *c*"))
    a\\|b &lt;script&gt; \\*c\\*
    """
    text = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\\\`*_{}\[\]|#~])", r"\\\1", text)


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown.

    Examples
    --------
    >>> print(markdown_table(["item", "mean"], [["q1", "0.5"]]))
    | item | mean |
    |---|---|
    | q1 | 0.5 |
    """
    lines = ["| " + " | ".join(safe(cell) for cell in head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(safe(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def render(page: Document) -> str:
    """The page in Markdown; pictures are named by their files."""
    parts = [f"# {safe(page.title)}"] if page.title else []
    if page.cautions:
        parts.append("\n".join(f"- **Take care.** {safe(each)}" for each in page.cautions))
    parts += [_inline(sentence) for sentence in page.lead]
    parts += _blocks(page.sections, 2)
    return "\n\n".join([*parts, safe(page.footer)]).strip() + "\n"


def _blocks(blocks: Sequence[Any], level: int) -> list[str]:
    found: list[str] = []
    for block in blocks:
        found += _block(block, level)
    return [text for text in found if text]


def _block(block: Any, level: int) -> list[str]:
    """One block as paragraphs of Markdown; a drawing that only the page shows gives none."""
    if on_the_page_alone(block):
        return []
    if isinstance(block, (list, tuple)):
        return _blocks(block, level)
    if isinstance(block, Group):
        return _blocks(block.parts, level)
    if isinstance(block, (Section, Details)):
        below = _blocks(block.parts, level + 1)
        return [f"{'#' * min(level, 6)} {safe(block.heading)}", *below] if below or level == 2 else []
    if isinstance(block, Bullets):
        return ["\n".join(f"- {_inline(entry)}" for entry in block.entries)]
    if isinstance(block, Picture):
        address = block.name.replace(" ", "%20")
        return [f"![{safe(block.alt or block.caption)}]({address}.png)"]
    if isinstance(block, Grid):
        return _grid(block)
    quoted = isinstance(block, Prose) and block.kind == "quote"
    return [f"> {_inline(block)}" if quoted else _inline(block)]


def _grid(grid: Grid) -> list[str]:
    head, _ = grid.texts()
    shown = [at for at, column in enumerate(grid.columns) if not column.drawn]
    lines = ["| " + " | ".join(map(safe, head or [""] * len(shown))) + " |", "|" + "---|" * len(shown)]
    for number, row in enumerate(grid.cells):
        link = grid.links[number] if grid.links else ""
        cells = []
        for at in shown:
            text = safe(row[at].plain)
            text = f"**{text}**" if (number, at) in grid.bold and text else text
            leads = row[at].link or (link if at == 0 else "")
            cells.append(f"[{text}]({leads})" if leads and not leads.startswith("#") else text)
        lines.append("| " + " | ".join(cells) + " |")
    caption = f"{safe(grid.caption.rstrip('.:'))}:" if grid.caption else ""
    return [caption, "\n".join(lines), safe(grid.note)]


def _inline(text: str | Prose) -> str:
    """A sentence with its marked words."""
    if isinstance(text, str):
        return safe(text)
    return " ".join("".join(_span(part) for part in text.parts).split())


def _span(part: str | Span) -> str:
    if isinstance(part, str):
        edges = (" " * part[:1].isspace(), " " * part[-1:].isspace())
        return edges[0] + safe(part) + edges[1]
    marks = {"strong": "**", "code": "`"}.get(part.kind, "")
    text = part.text.replace("`", "'") if part.kind == "code" else safe(part.text)
    text = f"{marks}{text}{marks}"
    return f"[{text}]({part.link})" if part.link else text
