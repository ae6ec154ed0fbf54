"""What leaves a report: figures and tables, with the numbers of the page and of the model."""

import io
import os
import re
import shutil
import subprocess
import zipfile
import zlib
from html.parser import HTMLParser

import docx
import matplotlib
import numpy as np
import pytest
from fontTools import subset, ttLib
from matplotlib import image
from matplotlib.text import Text

from icqf.errors import InputError
from icqf.io.write import csv_text
from icqf.plotting.style import item_label
from icqf.report import Grid, as_html, draw_figure, figure_names, paper_tables, renamed
from icqf.report.gallery import WIDTHS, drawing, figure_bytes
from icqf.report.paper import write_paper_tables
from icqf.report.renderers.latex import latex_tables
from icqf.report.renderers.word import word_tables
from icqf.report.words import changed, number


class Cells(HTMLParser):
    """The loadings that the page shows, by item."""

    def __init__(self):
        super().__init__()
        self.rows, self.inside, self.text = [], False, None

    def handle_starttag(self, tag, attributes):
        kind = dict(attributes).get("class") or ""
        if tag == "table":
            self.inside = kind.startswith("heat") and not self.rows
        if self.inside and tag == "tr":
            self.rows.append([])
        if self.inside and tag in ("td", "th"):
            self.text = ""

    def handle_data(self, data):
        if self.text is not None:
            self.text += data

    def handle_endtag(self, tag):
        if self.inside and tag in ("td", "th") and self.text is not None:
            self.rows[-1].append(self.text.strip())
            self.text = None


def plain(text):
    """A LaTeX cell as plain text."""
    text = re.sub(r"\\textbf\{(.*)\}$", r"\1", text.strip())
    return text.replace("$-$", "−").replace(r"\%", "%")


def test_docx_latex_html_and_csv_have_the_same_numbers(report, model):
    table = paper_tables(report)[0]
    factors = [re.sub(r"Factor \d \((.*)\)", r"\1", factor.name) for factor in report.model.factors]
    document = docx.Document(io.BytesIO(word_tables([table])))
    word = [[cell.text for cell in row.cells] for row in document.tables[0].rows]
    assert tuple(word[0]) == table.head and list(table.head[1:-1]) == factors
    latex = [line for line in latex_tables([table]).splitlines() if line.endswith(r"\\") and " & " in line]
    latex = [[plain(cell) for cell in line.removesuffix(r"\\").split(" & ")] for line in latex]
    page = Cells()
    page.feed(as_html(report))
    shown = {row[0].split()[-1]: row for row in page.rows[1:] if len(row) > 2}
    lines = csv_text(model.loadings_.rename_axis("item"), decimals=6).splitlines()[1:]
    written = {line.split(",")[0]: [float(value) for value in line.split(",")[1:]] for line in lines}
    assert len(word) - 1 == len(latex) == len(written) == len(report.items)
    for word_row, latex_row in zip(word[1:], latex, strict=True):
        (item,) = [
            row for row in report.items if word_row[0].endswith(f"[{row.name}]") or word_row[0] == row.name
        ]
        values = [number(value) for value in written[item.name]]
        assert word_row[1:-1] == latex_row[1:-1] == values
        html_row = shown[item.name]
        assert html_row[-len(report.model.confounds) - len(factors) :][: len(factors)] == values
        assert item_label(item.name, item.wording, item.reverse) in word_row[0]


def test_the_table_of_fit_adds_up(report):
    fit = paper_tables(report)[1]
    shares = [float(row[1].rstrip("%")) for row in fit.rows]
    assert abs(sum(shares[:-1]) - shares[-1]) <= 0.05 * len(shares)
    assert [row[0] for row in fit.rows[: len(report.model.factors)]] == [f.name for f in report.model.factors]


def test_the_largest_loading_of_an_item_is_bold(report):
    table = paper_tables(report)[0]
    for at, row in enumerate(table.rows):
        values = [float(cell) for cell in row[1:-1]]
        bold = [column for r, column in table.bold if r == at]
        assert all(values[column - 1] == max(values) for column in bold)


def test_same_tables_same_bytes_and_any_text(report, tmp_path):
    odd = Grid("50% & more_or_less", ("a\\b", "{x}"), (("<#$~^>", "−1"),), note="β")
    assert word_tables([odd]) == word_tables([odd])
    assert r"50\% \& more\_or\_less" in latex_tables([odd]) and r"a\textbackslash{}b" in latex_tables([odd])
    first, second = write_paper_tables(tmp_path, report)
    assert (first.name, second.name) == ("tables.tex", "tables.docx") and zipfile.is_zipfile(second)


def wide(k, names=("Mood", "Worry")):
    """A table of loadings with k columns."""
    rows = [[f"An item with a wording of some length [q{j}]", *["0.55"] * k] for j in range(3)]
    return Grid("Loadings", ["Item", *(names[at % 2] for at in range(k))], rows, note="Points.")


def test_tables_stand_upright_where_no_word_is_broken_and_are_as_wide_as_the_page():
    document = docx.Document(io.BytesIO(word_tables([wide(3), wide(9), wide(3)])))
    turned = [section.page_width > section.page_height for section in document.sections]
    assert turned == [False, True, False]
    for table, section in zip(document.tables, document.sections, strict=True):
        room = section.page_width - section.left_margin - section.right_margin
        widths = [column.width for column in table.columns]
        assert 0.5 * room < sum(widths) <= 1.001 * room and min(widths) > 0.05 * room
    for k, landscape in ((3, 0), (9, 1), (12, 1)):
        text = latex_tables([wide(k)])
        assert text.count(r"\begin{landscape}") == text.count(r"\end{landscape}") == landscape
        assert 0.5 < sum(float(share) for share in re.findall(r"dimexpr ([\d.]+)", text)) <= 1.03


def test_long_and_many_names_of_factors_are_numbers_with_a_key(report):
    k = len(report.model.factors)
    few = paper_tables(renamed(report, ["Mood", "Worry", "Body", "Sleep", "Temper"][:k]))[0]
    assert few.head[1 : k + 1] == ("Mood", "Worry", "Body", "Sleep", "Temper")[:k]
    assert few.note.startswith("Loadings are")
    long = paper_tables(renamed(report, ["Conscientiousness", "Worry", "Body", "Sleep", "Temper"][:k]))[0]
    assert long.head[1 : k + 1] == tuple(str(at + 1) for at in range(k))
    assert long.note.startswith("1 Conscientiousness; 2 Worry")


@pytest.mark.long
def test_latex_compiles_within_the_margins(report, tmp_path):
    if shutil.which("pdflatex") is None:
        if os.environ.get("ICQF_LATEX") == "required":
            pytest.fail("pdflatex is not installed")
        pytest.skip("pdflatex is not installed")
    (tmp_path / "tables.tex").write_text(
        latex_tables([*paper_tables(report), wide(3), wide(9), wide(12, ["é ß", "% _ & ω"])])
    )
    packages = r"\usepackage[T1]{fontenc}\usepackage{array,booktabs,longtable,pdflscape}"
    (tmp_path / "main.tex").write_text(
        rf"\documentclass[11pt]{{article}}{packages}\begin{{document}}\input{{tables}}\end{{document}}"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "main.tex"]
    for _ in range(2):  # the widths of a longtable are settled in the second run
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout and (tmp_path / "main.pdf").exists()


# --- figures ---------------------------------------------------------------------------------------------


def shown_texts(figure):
    """All texts that are seen: ticks outside of the view have labels, too."""
    ticks = [
        (tick, axis)
        for ax in figure.axes
        for axis in (ax.xaxis, ax.yaxis)
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
    ]
    outside = {
        id(label)
        for tick, axis in ticks
        if not min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
        for label in (tick.label1, tick.label2)
    }
    found = [text for text in figure.findobj(Text) if text.get_text().strip() and text.get_visible()]
    return [text for text in found if id(text) not in outside]


@pytest.mark.parametrize("columns", [1, 2])
def test_figures_are_legible_at_their_width(report, columns):
    for name in figure_names(report):
        figure = draw_figure(report, name, columns=columns)
        assert figure.get_figwidth() == WIDTHS[columns] and figure.get_figheight() <= 9.0
        picture = image.imread(io.BytesIO(figure_bytes(figure, "png", dpi=100)))
        assert abs(picture.shape[1] - 100 * WIDTHS[columns]) <= 1 and picture[:, :, :3].min() < 0.5
        sizes = [text.get_fontsize() for text in shown_texts(figure)]
        assert min(sizes) >= 6, name


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("columns", [1, 2])
def test_no_text_leaves_a_figure(report, columns, long):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    if long:
        k = len(report.model.factors)
        report = renamed(report, [f"{at} Agreeableness, kindness to others and trust" for at in range(k)])
    for name in figure_names(report):
        figure = draw_figure(report, name, columns=columns)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        width, height = figure.bbox.x1 + 1.5, figure.bbox.y1 + 1.5
        for text in shown_texts(figure):
            box = text.get_window_extent(canvas.get_renderer())
            inside = -1.5 <= box.x0 <= box.x1 <= width and -1.5 <= box.y0 <= box.y1 <= height
            assert inside, (name, text.get_text())


def test_the_heatmap_shows_the_loadings_and_never_cuts_reversed(report, model):
    figure = draw_figure(report, "heatmap", columns=2)
    meshes = [mesh for ax in figure.axes for mesh in ax.collections if mesh.get_cmap().name == "icqf_blue"]
    values = np.concatenate([np.asarray(mesh.get_array()).ravel() for mesh in meshes[:1]])
    np.testing.assert_allclose(sorted(values), sorted((model.loadings_ / 2).to_numpy().ravel()), atol=1e-12)
    labels = [label.get_text() for ax in figure.axes for label in ax.get_yticklabels()]
    assert sum(label.endswith("(reversed)") for label in labels) == sum(row.reverse for row in report.items)


def test_a_figure_drawn_with_other_names(report):
    names = [f"New {r}" for r in range(len(report.model.factors))]
    assert "New 0" in figure_bytes(draw_figure(renamed(report, names), "heatmap"), "svg").decode()
    assert matplotlib.rcParams["font.size"] == 10  # the print style is not left behind


def test_fonts_are_embedded_without_tables_that_lay_out_text(report):
    before = list(subset.Options().drop_tables)
    content = figure_bytes(draw_figure(report, "scores"), "pdf")
    fonts = [
        ttLib.TTFont(io.BytesIO(zlib.decompress(found)))
        for found in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", content, re.DOTALL)
        if zlib.decompress(found).startswith(b"\x00\x01\x00\x00")
    ]
    assert fonts
    assert all("glyf" in font and "GSUB" not in font for font in fonts)
    assert subset.Options().drop_tables == before


def test_figures_that_there_are_not(report):
    with pytest.raises(InputError, match="Did you mean 'heatmap'"):
        draw_figure(report, "heatmp")
    with pytest.raises(InputError, match="1 or 2 columns"):
        draw_figure(report, "heatmap", columns=3)
    with pytest.raises(InputError, match="There is no factor 'Sleep'"):
        draw_figure(report, "top-items", factor="Sleep")
    with pytest.raises(InputError, match="not as 'doc'"):
        figure_bytes(draw_figure(report, "scores"), "doc")


def test_texts_that_mean_something_elsewhere(report, tmp_path):
    """Dollar signs, control characters and letters that the font lacks are drawn and written as they are."""
    odd = "Costs $5 or \\frac{1}{2}$ \x0b\x00 of 我的钱 & 100% _x_ ^{2"
    items = tuple(changed(row, wording=odd, subscale="$a$") for row in report.items)
    names = [f"$x_{r} & 我 {r}" for r in range(len(report.model.factors))]
    strange = renamed(changed(report, items=items), names)
    with drawing(tmp_path, strange) as write:
        written = write()
    assert {path.name for path in written} == {f"{name}.png" for name in figure_names(strange)}
    assert figure_bytes(draw_figure(strange, "heatmap"), "pdf").startswith(b"%PDF")
    again = figure_bytes(draw_figure(strange, "heatmap"), "png")  # drawn again, the same bytes
    assert again == (tmp_path / "heatmap.png").read_bytes()
    heatmap, again = (figure_bytes(draw_figure(strange, "heatmap"), "svg") for _ in range(2))
    assert heatmap == again and b"<svg" in heatmap
    for name in figure_names(strange):
        drawn = figure_bytes(draw_figure(strange, name), "svg").decode()
        assert name != "top-items" or "Costs $5" in drawn
    write_paper_tables(tmp_path, strange)
    (table, *_) = docx.Document(tmp_path / "tables.docx").tables
    assert "Costs $5" in table.rows[1].cells[0].text
    assert r"Costs \$5" in (tmp_path / "tables.tex").read_text(encoding="utf-8")
    assert "Costs $5" in as_html(strange)
