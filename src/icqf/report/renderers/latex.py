"""A document, or tables alone, in LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icqf.report.blocks import Bullets, Grid, Heading, Leaf, Picture, plain_text

if TYPE_CHECKING:
    from icqf.report.document import Document

_ESCAPES = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$", "β": r"$\beta$",
    "²": r"\textsuperscript{2}", "<": r"\textless{}", ">": r"\textgreater{}", "ω": r"$\omega$",
    "α": r"$\alpha$", "\u202f": r"\,", "…": r"\ldots{}", "–": "--", "±": r"$\pm$",
}  # fmt: skip
_HEADINGS = (r"\section", r"\subsection", r"\subsubsection", r"\paragraph")


def render(page: Document) -> str:
    """The page in LaTeX, to be included in a document that uses booktabs, longtable and graphicx."""
    lines = ["% Needs \\usepackage{booktabs,longtable,graphicx}; to be included with \\input."]
    lines += [rf"\section*{{{_latex(page.title)}}}"]
    for leaf in ([Bullets(page.cautions)] if page.cautions else []) + list(page.in_order()):
        lines += ["", *_leaf(leaf)]
    return "\n".join(lines) + "\n"


def latex_tables(tables: Sequence[Grid]) -> str:
    """Tables alone, which need the packages booktabs and longtable.

    Examples
    --------
    >>> from icqf.report import Grid
    >>> print(latex_tables([Grid("Means", ("Item", "Mean"), [("a_b", "0.50")])]).splitlines()[-3])
    a\\_b & 0.50 \\\\
    """
    lines = ["% Needs \\usepackage{booktabs,longtable}; to be included with \\input{tables}."]
    for table in tables:
        lines += ["", *_table(table)]
    return "\n".join(lines) + "\n"


def _leaf(leaf: Leaf) -> list[str]:
    if isinstance(leaf, Heading):
        return [rf"{_HEADINGS[min(leaf.level, len(_HEADINGS)) - 1]}{{{_latex(leaf.text)}}}"]
    if isinstance(leaf, Bullets):
        entries = [rf"\item {_latex(plain_text(each))}" for each in leaf.entries]
        return [r"\begin{itemize}", *entries, r"\end{itemize}"]
    if isinstance(leaf, Picture):
        return [
            r"\begin{figure}",
            rf"\includegraphics[width=\linewidth]{{{leaf.name}}}",
            rf"\caption{{{_latex(leaf.caption)}}}",
            r"\end{figure}",
        ]
    return _table(leaf) if isinstance(leaf, Grid) else [_latex(plain_text(leaf))]


def _table(table: Grid) -> list[str]:
    titles, rows = table.texts()
    width = len(rows[0]) if rows else len(titles)
    head = " & ".join(_latex(text) for text in titles) + r" \\ \midrule" if titles else ""
    lines = [
        r"\begin{longtable}{l" + "r" * (width - 1) + "}",
        *([rf"\caption{{{_latex(table.caption)}}}\\"] if table.caption else []),
        rf"\toprule {head} \endfirsthead",
        rf"\toprule {head} \endhead",
        r"\bottomrule \endfoot",
    ]
    for at, row in enumerate(rows):
        cells = [
            rf"\textbf{{{_latex(text)}}}" if (at, column) in table.bold else _latex(text)
            for column, text in enumerate(row)
        ]
        lines.append(" & ".join(cells) + r" \\")
    lines.append(r"\end{longtable}")
    lines.append(rf"\noindent\textit{{Note.}} {_latex(table.note)}" if table.note else "")
    return lines


def _latex(text: str) -> str:
    return "".join(_ESCAPES.get(character, character) for character in text)
