"""A document, or tables alone, as a Word file in APA style."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from icqf.report.blocks import Bullets, Grid, Heading, Leaf, Picture, Prose
from icqf.report.renderers import layout
from icqf.report.words import printable

if TYPE_CHECKING:
    from icqf.report.document import Document

_UPRIGHT, _TURNED = 82, 128  # characters of a line of 10 points on an upright page, and on a turned one
_TWIP = 635  # twentieths of a point, in the units of python-docx
_DATE = (2020, 1, 1, 0, 0, 0)  # of the members of a Word file: same tables, same bytes


def render(page: Document) -> bytes:
    """The page as the content of a Word file."""
    document, tables = _new(), 0
    document.add_heading(printable(page.title), 0)
    for leaf in ([Bullets(page.cautions)] if page.cautions else []) + list(page.in_order()):
        tables += isinstance(leaf, Grid)
        _add(document, leaf, tables)
    return _content(document)


def word_tables(tables: Sequence[Grid]) -> bytes:
    """Tables alone, each on a page with its number, title and note; upright where no word is broken."""
    from docx.enum.section import WD_ORIENT

    document = _new()
    for number, table in enumerate(tables, 1):
        section = document.sections[0] if number == 1 else document.add_section()
        turned = layout(table, upright=_UPRIGHT, turned=_TURNED).turned
        short, long = sorted((section.page_width, section.page_height))
        section.orientation = WD_ORIENT.LANDSCAPE if turned else WD_ORIENT.PORTRAIT
        section.page_width, section.page_height = (long, short) if turned else (short, long)
        _numbered(document, table, number)
    return _content(document)


def _new() -> Any:
    import docx
    from docx.shared import Mm, Pt

    document = docx.Document()
    page = document.sections[0]
    page.page_width, page.page_height = Mm(210), Mm(297)
    page.left_margin = page.right_margin = page.top_margin = page.bottom_margin = Mm(25)
    style: Any = document.styles["Normal"]
    style.font.name, style.font.size = "Times New Roman", Pt(10)
    style.paragraph_format.space_after = Pt(4)
    return document


def _add(document: Any, leaf: Leaf, number: int) -> None:
    """Add a block; `number` is that of the table."""
    if isinstance(leaf, Heading):
        document.add_heading(printable(leaf.text), min(leaf.level, 9))
    elif isinstance(leaf, Bullets):
        for entry in leaf.entries:
            _runs(document.add_paragraph(style="List Bullet"), entry)
    elif isinstance(leaf, Grid):
        _numbered(document, leaf, number)
    elif isinstance(leaf, Picture):
        if leaf.figure is not None:
            from docx.shared import Inches

            document.add_picture(io.BytesIO(leaf.png), width=Inches(6))
        document.add_paragraph().add_run(printable(leaf.caption)).italic = True
    else:
        _runs(document.add_paragraph(), leaf)


def _runs(paragraph: Any, text: str | Prose) -> None:
    for part in [text] if isinstance(text, str) else text.parts:
        run = paragraph.add_run(printable(part if isinstance(part, str) else part.text))
        if not isinstance(part, str):
            run.bold = part.kind == "strong"


def _numbered(document: Any, table: Grid, number: int) -> None:
    document.add_paragraph().add_run(f"Table {number}").bold = True
    if table.caption:
        document.add_paragraph().add_run(printable(table.caption)).italic = True
    _table(document, table)
    if table.note:
        note = document.add_paragraph()
        note.add_run("Note. ").italic = True
        note.add_run(printable(table.note))


def _table(document: Any, table: Grid) -> None:
    """Add a table as XML; cell by cell, python-docx takes ten times as long."""
    from docx.oxml import parse_xml
    from docx.oxml.ns import nsdecls, qn

    head, rows = table.texts()
    lines = [head, *rows] if head else rows
    document.add_table(rows=0, cols=len(lines[0]) if lines else 1)
    *_, element = document.element.body.iter(qn("w:tbl"))
    section = document.sections[-1]
    room = (section.page_width - section.left_margin - section.right_margin) / _TWIP
    set_as = layout(table, upright=_UPRIGHT, turned=_TURNED)
    widths = [str(round(share * room)) for share in set_as.shares]
    for column, width in zip(element.iter(qn("w:gridCol")), widths, strict=True):
        column.set(qn("w:w"), width)
    margins = "".join(f'<w:{side} w:w="60" w:type="dxa"/>' for side in ("left", "right"))
    look = element.find(qn("w:tblPr")).find(qn("w:tblLook"))  # the order of these elements is prescribed
    for fixed in ('<w:tblLayout {} w:type="fixed"/>', "<w:tblCellMar {}>" + margins + "</w:tblCellMar>"):
        look.addprevious(parse_xml(fixed.format(nsdecls("w"))))
    first = 1 if head else 0
    for at, row in enumerate(lines):
        below = at == len(lines) - 1 or (head and at == 0)
        edges = (["top"] if at == 0 else []) + (["bottom"] if below else [])
        cells = (
            _cell(
                text,
                width,
                edges,
                bold=(at - first, column) in table.bold,
                right=column > 0 and set_as.numeric[column],
            )
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        repeated = "<w:trPr><w:tblHeader/></w:trPr>" if head and not at else ""
        element.append(parse_xml(f"<w:tr {nsdecls('w')}>{repeated}{''.join(cells)}</w:tr>"))


def _cell(text: str, width: str, edges: Sequence[str], *, bold: bool, right: bool) -> str:
    lines = "".join(f'<w:{edge} w:val="single" w:sz="6" w:space="0" w:color="000000"/>' for edge in edges)
    borders = f"<w:tcBorders>{lines}</w:tcBorders>" if lines else ""
    side = '<w:jc w:val="right"/>' if right else ""
    shown = printable(text)
    spaces = "" if shown == shown.strip() else ' xml:space="preserve"'
    content = f"<w:t{spaces}>{escape(shown)}</w:t>" if shown else ""
    weight = "<w:b/>" if bold else '<w:b w:val="0"/>'
    return (
        f'<w:tc><w:tcPr><w:tcW w:type="dxa" w:w="{width}"/>{borders}</w:tcPr>'
        f'<w:p><w:pPr><w:spacing w:after="0"/>{side}</w:pPr><w:r><w:rPr>{weight}</w:rPr>'
        f"{content}</w:r></w:p></w:tc>"
    )


def _content(document: Any) -> bytes:
    """A Word file whose members have a fixed date."""
    saved, content = io.BytesIO(), io.BytesIO()
    document.save(saved)
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(content, "w") as new:
        for entry in old.infolist():
            undated = zipfile.ZipInfo(entry.filename, date_time=_DATE)
            undated.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(undated, old.read(entry.filename))
    return content.getvalue()
