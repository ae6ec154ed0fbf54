"""Text and tables that Markdown shows as they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


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
