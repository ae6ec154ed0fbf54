"""A short page: the same content as HTML and Markdown, nothing loaded, nothing taken for markup."""

from matplotlib.figure import Figure

from icqf.report import Document, Grid, Picture, Section, write_document


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


def test_what_a_file_says_is_never_markup():
    html, markdown = page().as_html(), page().as_markdown()
    assert "<script>" not in html and "&lt;script&gt;x" in html and "<i>" not in html
    assert "<script>" not in markdown and "A \\| lead." in markdown


def test_nothing_is_loaded_from_elsewhere():
    html = page().as_html()
    assert "default-src 'none'" in html and 'src="data:image/png;base64,' in html
    assert "http://" not in html and "https://" not in html


def test_numbers_stand_to_the_right_and_rows_lead_to_their_pages():
    html = page().as_html()
    assert '<td class="num">12.5%</td>' in html and '<a href="a/r.html">' in html
    assert page().sections[0].parts[0].numeric == [False, True, True]


def test_the_files_that_are_written(tmp_path):
    names = [path.name for path in write_document(tmp_path / "page.html", page())]
    assert names == ["page.html", "page.md", "p.png"]
    assert "![What it shows](p.png)" in (tmp_path / "page.md").read_text()
    first = (tmp_path / "p.png").read_bytes()
    write_document(tmp_path / "page.html", page())
    assert (tmp_path / "p.png").read_bytes() == first
