"""A page: the same content in every format, nothing loaded, nothing taken for markup."""

import io
import json

import docx
import pytest
from markupsafe import Markup
from matplotlib.figure import Figure

from icqf.errors import InputError
from icqf.report import (
    Bullets,
    Cell,
    Column,
    Details,
    Document,
    Grid,
    Group,
    Picture,
    Prose,
    Section,
    Span,
    write_document,
)
from icqf.report.blocks import Bar, Histogram, Row
from icqf.report.svg import drawn

FORMATS = ("as_html", "as_markdown", "as_json", "as_text", "as_latex")


def page():
    figure = Figure(figsize=(2, 1))
    figure.add_subplot().plot([0, 1])
    grid = Grid(
        "Two <b>rows",
        ["name", "k", "share"],
        [["<script>x", "3", "12.5%"], ["b", "–", "-1"]],
        ["a/r.html", ""],
    )
    return Document(
        "T & <i>", ["A | lead."], [Section("One", [grid, "Words.", Picture("p", figure, "What it shows")])]
    )


def rich():
    """A page with every kind of block."""
    grid = Grid(
        "Items",
        ["Item", Column("Share", drawn=True, quiet=True), Column("Points", kind="up"), "Interval"],
        [
            Row(
                [Cell("Cries", note="q1"), Cell(drawing=Bar(0.5, 0.4, 0.7)), Cell("1.50", kind="q7"), "1–2"],
                kind="begin",
                data={"span": "2"},
            ),
            [Cell("Sleeps", link="#one"), Cell(drawing=Histogram((1, 2))), Cell("−0.2", tip="0–1"), "<1%"],
        ],
        note="Points are points.",
        bold=frozenset({(0, 2)}),
        kind="sortable",
    )
    drawing = drawn("line", lambda ax: ax.plot([0, 1]) and ax, "A line <up>", "It rises.")
    said = Prose(["Made by ", Span("icqf x", "code"), ", ", Span("boldly", "strong"), "."])
    deep = Details("Folded away", [Bullets(["first entry", said])])
    smaller = Section("Smaller", ["Inside."], key="small")
    sections = [
        Section("First", [grid, drawing, said, deep], key="one", title="First in short"),
        Section("Second", [Group([["Left."], smaller], "cols"), Markup("<hr>")], key="two"),
        Section("Third", ["Quoted."], key="three", data={"n": 3, "share": 1 / 3, "none": float("nan")}),
    ]
    return Document("Rich", [said], sections, "The end.", ["Doubt this."], interactive=True)


def test_what_a_file_says_is_never_markup():
    html, markdown = page().as_html(), page().as_markdown()
    assert "<script>" not in html and "&lt;script&gt;x" in html and "<i>" not in html
    assert "<script>" not in markdown and "A \\| lead." in markdown
    assert Document("a|b <script> *c* \\", [], []).as_markdown() == "# a\\|b &lt;script&gt; \\*c\\* \\\\\n"
    assert r"\textless{}script\textgreater{}x" in page().as_latex()


def test_nothing_is_loaded_from_elsewhere():
    html = page().as_html()
    assert "default-src 'none'" in html and 'src="data:image/png;base64,' in html
    assert "http://" not in html and "https://" not in html and "script-src" not in html


def test_numbers_stand_to_the_right_and_rows_lead_to_their_pages():
    html = page().as_html()
    assert '<td class="num">12.5%</td>' in html and '<a href="a/r.html">' in html
    assert "[&lt;script&gt;x](a/r.html)" in page().as_markdown()
    assert page().sections[0].parts[0].numeric == [False, True, True]


def test_a_picture_is_drawn_once_for_all_formats(tmp_path, monkeypatch):
    drawn, plain = [], Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda *a, **b: drawn.append(a) or plain(*a, **b))
    write_document(tmp_path / "page", page(), formats=(".html", ".md", ".docx"))
    assert len(drawn) == 1


def test_the_files_that_are_written(tmp_path):
    names = [path.name for path in write_document(tmp_path / "page.html", page())]
    assert names == ["page.html", "page.md", "p.png"]
    assert "![What it shows](p.png)" in (tmp_path / "page.md").read_text()
    first = (tmp_path / "p.png").read_bytes()
    write_document(tmp_path / "page.html", page())
    assert (tmp_path / "p.png").read_bytes() == first
    every = (".html", ".md", ".json", ".txt", ".tex", ".docx")
    written = write_document(tmp_path / "page", page(), formats=every)
    assert [path.name for path in written[:-1]] == [f"page{ending}" for ending in every]
    with pytest.raises(InputError, match=r"not as '\.pdf'"):
        write_document(tmp_path / "page", page(), formats=(".pdf",))


@pytest.mark.parametrize("view", FORMATS)
def test_every_format_shows_every_word(view):
    text = getattr(rich(), view)()
    said = ("Cries", "q1", "Sleeps", "1.50", "Points are points.", "Folded away", "first entry", "Left.")
    for words in (*said, "Inside.", "Doubt this.", "icqf x", "boldly"):
        assert words in text, words
    assert (view == "as_json") != ("Quoted." in text)  # a section with values of its own gives these


def test_word_shows_the_same():
    document = docx.Document(io.BytesIO(rich().as_word()))
    paragraphs = [each.text for each in document.paragraphs]
    assert {"Rich", "First", "Folded away", "first entry", "Made by icqf x, boldly.", "Inside."} <= {
        *paragraphs
    }
    cells = [[cell.text for cell in row.cells] for row in document.tables[0].rows]
    assert cells == [["Item", "Points", "Interval"], ["Cries (q1)", "1.50", "1–2"], ["Sleeps", "−0.2", "<1%"]]
    assert rich().as_word() == rich().as_word()


def test_drawings_are_on_the_page_alone():
    html, markdown = rich().as_html(), rich().as_markdown()
    assert '<i style="width:50.0%"></i><b style="left:40.0%;width:30.0%"></b>' in html
    assert 'class="histogram" viewBox="0 0 2 1"' in html
    assert '<td class="num q7"><strong>1.50</strong>' in html
    assert '<title id="line-title">A line &lt;up&gt;</title></svg>' in html and "<hr>" in html
    assert '<tr class="begin" data-span="2">' in html and 'data-ci="0–1"' in html
    assert "| Item | Points | Interval |" in markdown and "<" not in markdown.replace("&lt;", "")
    assert "| Cries (q1) | **1.50** | 1–2 |" in markdown


def test_what_leads_where():
    html = rich().as_html()
    assert (
        '<a href="#one">First in short</a>' in html and '<section id="one" aria-labelledby="one-h">' in html
    )
    assert '<a class="skip" href="#one">' in html and html.count("<script>") == 1
    assert "Made by `icqf x`, **boldly**." in rich().as_markdown()
    assert "#### Smaller" not in rich().as_markdown() and "### Smaller" in rich().as_markdown()


def test_json_has_values_or_content():
    found = json.loads(rich().as_json())
    assert found["three"] == {"n": 3, "share": 0.333333333333, "none": None}
    table = found["sections"]["one"]["parts"][0]
    assert table["head"] == ["Item", "Points", "Interval"] and table["rows"][1] == ["Sleeps", "−0.2", "<1%"]


def test_the_terminal_wraps_to_its_width():
    text = rich().as_text(width=34)
    assert max(map(len, text.splitlines())) <= 34
    wide = rich().as_text().splitlines()
    at = wide.index("Item        Points  Interval")
    assert wide[at + 2] == "Cries (q1)    1.50       1–2"
