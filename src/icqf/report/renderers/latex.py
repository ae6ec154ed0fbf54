"""A document, or tables alone, in LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icqf.report.blocks import Bullets, Grid, Heading, Leaf, Picture, plain_text
from icqf.report.renderers import layout

if TYPE_CHECKING:
    from icqf.report.document import Document

_ESCAPES = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$", "β": r"$\beta$",
    "²": r"\textsuperscript{2}", "<": r"\textless{}", ">": r"\textgreater{}", "ω": r"$\omega$",
    "α": r"$\alpha$", "\u202f": r"\,", "…": r"\ldots{}", "–": "--", "±": r"$\pm$",
}  # fmt: skip
_UPRIGHT, _TURNED = 72, 115  # characters of a line at \\small on an upright page, and on a turned one
_HEADINGS = (r"\section", r"\subsection", r"\subsubsection", r"\paragraph")


def render(page: Document) -> str:
    """The page in LaTeX, to be included in a document that uses the packages named in its first line."""
    lines = [
        "% Needs \\usepackage{array,booktabs,longtable,pdflscape,graphicx}; to be included with \\input."
    ]
    lines += [rf"\section*{{{_latex(page.title)}}}"]
    for leaf in ([Bullets(page.cautions)] if page.cautions else []) + list(page.in_order()):
        lines += ["", *_leaf(leaf)]
    return "\n".join(lines) + "\n"


def latex_tables(tables: Sequence[Grid]) -> str:
    """Tables alone, which need the packages array, booktabs, longtable and pdflscape."""
    lines = ["% Needs \\usepackage{array,booktabs,longtable,pdflscape}; to be included with \\input{tables}."]
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
    head = " & ".join(_latex(text) for text in titles) + r" \\ \midrule" if titles else ""
    set_as = layout(table, upright=_UPRIGHT, turned=_TURNED)
    columns = "".join(
        rf">{{\ragged{'left' if at and is_number else 'right'}\arraybackslash}}"
        rf"p{{\dimexpr {share:.3f}\linewidth-2\tabcolsep\relax}}"
        for at, (share, is_number) in enumerate(zip(set_as.shares, set_as.numeric, strict=True))
    )
    lines = [
        *([r"\begin{landscape}"] if set_as.turned else []),
        r"\begingroup\small\setlength{\tabcolsep}{3pt}",
        rf"\begin{{longtable}}{{@{{}}{columns}@{{}}}}",
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
    lines += [rf"\noindent\textit{{Note.}} {_latex(table.note)}"] if table.note else []
    lines.append(r"\par\endgroup")
    return [*lines, r"\end{landscape}"] if set_as.turned else lines


def _latex(text: str) -> str:
    return "".join(_ESCAPES.get(character, character) for character in text)
