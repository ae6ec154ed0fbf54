"""The tables of a paper: loadings, fit and confounds in the style of the APA, for Word and for LaTeX.

Each is made once as rows of texts, and both files show these: the numbers are those of the page.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from icqf.data.confounds import INTERCEPT
from icqf.io.atomic import write_bytes
from icqf.plotting.style import item_label
from icqf.report import words
from icqf.report.figures import item_groups
from icqf.report.psychometric_parts import Psychometrics
from icqf.report.schema import Confound, Factor, Report
from icqf.summary import LOADED

_DATE = (2020, 1, 1, 0, 0, 0)  # of the members of a Word file, so that the same tables are the same bytes
_ESCAPES = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$", "β": r"$\beta$",
    "²": r"\textsuperscript{2}", "<": r"\textless{}", ">": r"\textgreater{}", "ω": r"$\omega$",
    "α": r"$\alpha$", "\u202f": r"\,", "…": r"\ldots{}", "–": "--",
}  # fmt: skip


@dataclass(frozen=True)
class PaperTable:
    """A table of a paper, in texts.

    Attributes
    ----------
    title : str
    head : tuple of str
        Headings; the first is that of the rows.
    rows : tuple of tuple of str
    bold : frozenset of (row, column)
        Cells that stand out.
    note : str
        What a reader needs beside it.

    Examples
    --------
    >>> from icqf.report import PaperTable
    >>> PaperTable("Means", ("Item", "Mean"), (("q1", "0.50"),)).rows[0]
    ('q1', '0.50')
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    bold: frozenset[tuple[int, int]] = frozenset()
    note: str = ""


def paper_tables(report: Report) -> list[PaperTable]:
    """The tables of a report that a paper needs; that of the confounds only where there are any.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.report import analyse, paper_tables, report_of
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> model = ICQF(2, item_range=demo.ranges()).fit(demo.keyed_answers(), confounds=demo.confounds)
    >>> report = report_of(analyse(model, demo, n_bootstrap=0, compare=False))
    >>> [table.title for table in paper_tables(report)]
    ['Loadings of the items on the factors', 'Factors and fit of the model', 'Loadings of the confounds']
    """
    view = report.model
    confounds = [each for each in view.confounds if each.name != INTERCEPT]
    loadings = _loadings(
        report, view.factors, "Loadings of the items on the factors", explained=True,
        note="Loadings are points on the answer scale that a factor adds at a score of 1; the largest of "
        "an item is bold. Explained: share of the item's variance that the model explains.",
    )  # fmt: skip
    tables = [loadings, _fit(report)]
    if confounds:
        note = "Points that go with a confound, beside the factors; the largest of an item is bold."
        tables.append(_loadings(report, confounds, "Loadings of the confounds", note=note))
    if report.psychometrics is not None and report.psychometrics.scales:
        tables.append(_reliability(report.psychometrics))
    return tables


def _reliability(found: Psychometrics) -> PaperTable:
    rows = tuple(
        (
            row.name,
            str(row.n_items),
            words.number(row.alpha),
            f"[{words.number(row.alpha_low)}, {words.number(row.alpha_high)}]",
            words.number(row.omega),
            f"[{words.number(row.omega_low)}, {words.number(row.omega_high)}]",
        )
        for row in found.scales
    )
    note = f"KMO = {words.number(found.kmo)}. Intervals: of α by Feldt, of ω from resampled participants."
    head = ("Items of", "Items", "α", "95% CI", "ω", "95% CI")
    return PaperTable("Reliability of the items of factors and subscales", head, rows, note=note)


def _loadings(
    report: Report, parts: Sequence[Factor | Confound], title: str, *, note: str, explained: bool = False
) -> PaperTable:
    rows, bold = [], set()
    for at, j in enumerate(item_groups(report)[0]):
        item = report.items[j]
        label = item_label(item.name, item.wording, item.reverse)
        cells = [part.loadings[j] for part in parts]
        largest = max(each.share for each in cells)
        bold |= {(at, column) for column, each in enumerate(cells, 1) if each.share == largest >= LOADED}
        row = [
            f"{label} [{item.name}]" if item.wording else label,
            *(words.number(each.value) for each in cells),
        ]
        rows.append((*row, words.percent(item.explained)) if explained else tuple(row))
    head = ("Item", *(part.name for part in parts), *(("Explained",) if explained else ()))
    return PaperTable(title, head, tuple(rows), frozenset(bold), note)


def _fit(report: Report) -> PaperTable:
    view, fit = report.model, report.fit
    rows = [
        (
            factor.name,
            words.percent(factor.variance, 1),
            str(factor.n_items),
            words.LONG_DASH if factor.stability is None else words.number(factor.stability.agreement),
            words.LONG_DASH if factor.replication is None else words.percent(factor.replication.chance),
        )
        for factor in view.factors
    ]
    beside = [each.variance for each in view.confounds if each.name != INTERCEPT]
    rows += [("Confounds", words.percent(sum(beside), 1), "", "", "")] if beside else []
    rows.append(("Total", words.percent(view.variance, 1), "", "", ""))
    hidden = (
        ""
        if fit.r_squared_hidden is None
        else f"; of hidden answers {words.percent(fit.r_squared_hidden, 1)}"
    )
    note = (
        f"N = {words.whole(report.sample.n_fitted)}, {report.sample.n_items} items, β = {view.beta:g}. R² of "
        f"the model: {words.percent(fit.r_squared, 1)}{hidden}. Items: moved by a tenth of their range "
        "or more. Agreement: mean correlation of loadings with those of resamples. Found again: chance that "
        "an independent study of the same size finds the factor."
    )
    head = ("Factor", "Variance", "Items", "Agreement", "Found again")
    return PaperTable("Factors and fit of the model", head, tuple(rows), note=note)


def write_paper_tables(folder: Path, report: Report) -> list[Path]:
    """Write ``tables.tex``, and ``tables.docx`` where python-docx is installed."""
    tables = paper_tables(report)
    written = [folder / "tables.tex"]
    write_bytes(written[0], as_latex(tables).encode())
    if find_spec("docx") is not None:
        written.append(folder / "tables.docx")
        write_bytes(written[1], as_word(tables))
    return written


def as_latex(tables: Sequence[PaperTable]) -> str:
    """Tables as LaTeX, which needs the packages booktabs and longtable.

    Examples
    --------
    >>> from icqf.report import PaperTable
    >>> from icqf.report.paper import as_latex
    >>> print(as_latex([PaperTable("Means", ("Item", "Mean"), (("a_b", "0.50"),))]).splitlines()[-3])
    a\\_b & 0.50 \\\\
    """
    lines = ["% Needs \\usepackage{booktabs,longtable}; to be included with \\input{tables}."]
    for table in tables:
        head = " & ".join(_latex(text) for text in table.head) + r" \\"
        lines += [
            "",
            r"\begin{longtable}{l" + "r" * (len(table.head) - 1) + "}",
            rf"\caption{{{_latex(table.title)}}}\\",
            rf"\toprule {head} \midrule \endfirsthead",
            rf"\toprule {head} \midrule \endhead",
            r"\bottomrule \endfoot",
        ]
        for at, row in enumerate(table.rows):
            cells = [
                rf"\textbf{{{_latex(text)}}}" if (at, column) in table.bold else _latex(text)
                for column, text in enumerate(row)
            ]
            lines.append(" & ".join(cells) + r" \\")
        lines.append(r"\end{longtable}")
        lines.append(rf"\noindent\textit{{Note.}} {_latex(table.note)}" if table.note else "")
    return "\n".join(lines) + "\n"


def _latex(text: str) -> str:
    return "".join(_ESCAPES.get(character, character) for character in text)


def as_word(tables: Sequence[PaperTable]) -> bytes:
    """Tables as a Word document, each with its number, title and note as the APA has them."""
    import docx
    from docx.enum.section import WD_ORIENT
    from docx.shared import Pt

    document = docx.Document()
    section = document.sections[0]
    section.orientation = WD_ORIENT.LANDSCAPE
    section.page_width, section.page_height = section.page_height, section.page_width
    style: Any = document.styles["Normal"]
    style.font.name, style.font.size = "Times New Roman", Pt(10)
    style.paragraph_format.space_after = Pt(4)
    for number, table in enumerate(tables, 1):
        document.add_paragraph().add_run(f"Table {number}").bold = True
        document.add_paragraph().add_run(table.title).italic = True
        _word_table(document, table)
        if table.note:
            note = document.add_paragraph()
            note.add_run("Note. ").italic = True
            note.add_run(table.note)
        if number < len(tables):
            document.add_page_break()
    content = io.BytesIO()
    document.save(content)
    return _undated(content.getvalue())


def _word_table(document: Any, table: PaperTable) -> None:
    """Add a table, its rows written as XML: cell by cell python-docx takes ten times as long."""
    from docx.oxml import parse_xml
    from docx.oxml.ns import nsdecls, qn

    document.add_table(rows=0, cols=len(table.head))
    *_, element = document.element.body.iter(qn("w:tbl"))
    widths = [column.get(qn("w:w")) for column in element.iter(qn("w:gridCol"))]
    for at, row in enumerate((table.head, *table.rows)):
        edges = (["top"] if at == 0 else []) + (["bottom"] if at in (0, len(table.rows)) else [])
        cells = (
            _word_cell(text, width, edges, bold=(at - 1, column) in table.bold, right=column > 0)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        repeated = "" if at else "<w:trPr><w:tblHeader/></w:trPr>"
        element.append(parse_xml(f"<w:tr {nsdecls('w')}>{repeated}{''.join(cells)}</w:tr>"))


def _word_cell(text: str, width: str, edges: Sequence[str], *, bold: bool, right: bool) -> str:
    lines = "".join(f'<w:{edge} w:val="single" w:sz="6" w:space="0" w:color="000000"/>' for edge in edges)
    borders = f"<w:tcBorders>{lines}</w:tcBorders>" if lines else ""
    side = '<w:jc w:val="right"/>' if right else ""
    shown = _printable(text)
    spaces = "" if shown == shown.strip() else ' xml:space="preserve"'
    said = f"<w:t{spaces}>{escape(shown)}</w:t>" if shown else ""
    weight = "<w:b/>" if bold else '<w:b w:val="0"/>'
    return (
        f'<w:tc><w:tcPr><w:tcW w:type="dxa" w:w="{width}"/>{borders}</w:tcPr>'
        f'<w:p><w:pPr><w:spacing w:after="0"/>{side}</w:pPr><w:r><w:rPr>{weight}</w:rPr>'
        f"{said}</w:r></w:p></w:tc>"
    )


def _printable(text: str) -> str:
    """A text without the control characters that a Word file cannot hold."""
    return "".join(mark if mark.isprintable() else " " for mark in text)


def _undated(document: bytes) -> bytes:
    """A Word file whose members have a fixed date."""
    content = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(document)) as old, zipfile.ZipFile(content, "w") as new:
        for entry in old.infolist():
            plain = zipfile.ZipInfo(entry.filename, date_time=_DATE)
            plain.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(plain, old.read(entry.filename))
    return content.getvalue()
