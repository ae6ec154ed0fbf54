"""Three views of one tree: HTML, Markdown and JSON."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from markupsafe import escape

from icqf.report import analyse, as_html, as_json, as_markdown, renamed, report_of, words, write_report
from icqf.report.fit_report import with_words
from icqf.report.words import Values, bar_of, changed, number, percent
from report_names import NASTY

SECTIONS = [
    *("factors", "count", "loadings", "confounds", "scores", "general", "psychometrics", "fit"),
    *("comparison", "analysed", "sample", "missing"),
    "methods",
]


class _Page(HTMLParser):
    """Cells of every table, and all ids and addresses."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.ids, self.addresses, self._cell, self.tags = [], [], [], None, []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.tags.append(tag)
        self.ids += [found["id"]] if "id" in found else []
        self.addresses += [found[name] for name in ("href", "src", "xlink:href") if name in found]
        if tag == "table":
            self.tables.append((found.get("class", ""), []))
        elif tag == "tr":
            self.tables[-1][1].append([])
        elif tag in ("td", "th"):
            self._cell = ""

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.tables[-1][1][-1].append(" ".join(self._cell.split()))
            self._cell = None

    def handle_data(self, data):
        if self._cell is not None:
            self._cell += data


@pytest.fixture(scope="module")
def html(report):
    return as_html(report)


@pytest.fixture(scope="module")
def page(html):
    return _Page(html)


def test_sections(html):
    found = re.findall(r'<section id="(\w+)"', html)
    assert found == SECTIONS


def test_the_loadings_table_holds_the_models_numbers(page, model, report):
    tables = [rows for kind, rows in page.tables if kind.startswith("heat")]
    assert len(tables) == len(report.models)
    table = model.loadings_.join(model.confound_loadings_)
    rows = {re.search(r"q\d+$", row[0])[0]: row[2:] for row in tables[0][1:]}
    assert sorted(rows) == sorted(table.index)
    for item, cells in rows.items():
        assert cells == [number(value) for value in table.loc[item]]


def test_sentences_are_the_same_in_all_views(report, html):
    from html import unescape

    text, markdown, plain = unescape(html), unescape(as_markdown(report)).replace("\\", ""), as_json(report)
    for sentence in (*report.headline, *report.count.words, *report.scores.words, report.methods.paragraph):
        assert sentence in text and sentence in markdown.replace("\\", "")
        assert json.dumps(sentence, ensure_ascii=False) in plain


def test_json_holds_the_whole_tree(report):
    def same(value, stored):
        if isinstance(value, Values):
            assert set(stored) == set(vars(value))
            for name, part in vars(value).items():
                same(part, stored[name])
        elif isinstance(value, tuple):
            assert len(value) == len(stored)
            for one, two in zip(value, stored, strict=True):
                same(one, two)
        elif isinstance(value, float):
            assert stored == pytest.approx(value, abs=1e-6)
        else:
            assert stored == value

    same(report, json.loads(as_json(report)))


def test_user_text_is_escaped(report, html):
    assert NASTY not in html and "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert html.count("<script>") == 1
    assert NASTY not in as_markdown(report)
    assert NASTY in json.loads(as_json(report))["items"][2]["wording"]
    assert "Name 1 &amp; co" in html


def test_nothing_is_fetched_and_ids_are_unique(page, html):
    assert all(address.startswith(("#", "data:")) for address in page.addresses)
    assert len(page.ids) == len(set(page.ids))
    targets = {address[1:] for address in page.addresses if address.startswith("#")}
    assert targets <= set(page.ids)
    assert not re.search(r"@import|url\((?!#)", html)


def test_every_figure_has_a_name_and_a_table_or_sentence(html):
    drawings = re.findall(r'<svg class="plot"[^>]*aria-labelledby="([\w-]+)"', html)
    assert drawings == ["cv-title", "cv-all-title", "scree-title", "splits-title", "convergence-title"]
    for title in drawings:
        assert f'<title id="{title}">' in html
    assert "#010203" not in html and "var(--ink)" in html


def test_no_statistics_of_another_model(report, html):
    for text in (html, as_markdown(report), as_json(report)):
        assert not re.search(r"χ|RMSEA|\bCFI\b|chi-square|chi2", text)


def test_the_same_report_gives_the_same_bytes(report, html, model, questionnaire, search, others, names):
    again = report_of(
        analyse(model, questionnaire, search=search, n_bootstrap=20, other_models=others, random_state=3),
        names=names,
    )
    assert as_html(again) == html
    assert as_json(again) == as_json(report)


def test_markdown_tables_are_whole(report):
    width = None
    for line in as_markdown(report).splitlines():
        if not line.startswith("|"):
            width = None
            continue
        cells = len(re.findall(r"(?<!\\)\|", line))
        assert width in (None, cells), line
        width = cells


def test_files(report, tmp_path):
    paths = write_report(tmp_path / "report.html", report)
    assert [path.name for path in paths] == ["report.html", "report.md", "report.json"]
    assert paths[0].read_text(encoding="utf-8") == as_html(report)


def test_words():
    assert percent(0.123456, 1) == "12.3%"
    assert [percent(share) for share in (0.4567, 0.001, 0.0, 0.999, None)] == [
        "46%",
        "<1%",
        "0%",
        ">99%",
        "–",
    ]
    values = (1.236, -0.5, -0.001, None, float("nan"))
    assert [number(value) for value in values] == ["1.24", "−0.50", "0.00", "–", "–"]
    assert (words.interval(0.5, 0.75), words.interval(None, None)) == ("0.50–0.75", "–")
    assert (words.at_least(0.934), words.at_least(0.999)) == ("0.93 or higher", "1.00")
    assert (words.joined(["a"]), words.joined(["a", "b", "c"])) == ("a", "a, b and c")
    assert (words.spelled(8), words.spelled(13)) == ("eight", "13")
    assert (words.count_of(1, "factor"), words.count_of(11681, "item")) == ("1 factor", "11\u202f681 items")
    many, few = bar_of("none", 12, 20, limit=10), bar_of("half", 3, 20, limit=10)
    assert (words.members(many), words.members(few), few.share) == ("12", "fewer than 10", None)


def test_what_was_not_given_has_no_section(model, questionnaire):
    from icqf import ICQF

    plain = ICQF(2, item_range=questionnaire.ranges()).fit(questionnaire.keyed_answers())
    html = as_html(
        report_of(analyse(plain, replace(questionnaire, confounds=None), n_bootstrap=0, compare=False))
    )
    assert 'id="confounds"' not in html and "#confounds" not in html


def test_cautions_come_first_and_no_number_is_of_numpy(report, html):
    doubted = changed(
        report, direction="Two items look reversed.", fit=changed(report.fit, doubtful=("factor1",))
    )
    doubted = with_words(doubted)
    assert doubted.cautions[0] == "Two items look reversed."
    assert any(report.model.factors[0].name in each for each in doubted.cautions)
    page = as_html(doubted)
    assert page.index("Two items look reversed.") < page.index(doubted.headline[0][:40])
    for text in (html, as_markdown(report), as_json(report)):
        assert not re.search(r"np\.|nan|1\.00 or (higher|more)|\b1 (factors|items|participants)", text)


def test_the_results_paragraph_tells_the_numbers_of_the_tree(report, html):
    said = report.results
    assert str(escape(said)) in html
    for factor in report.model.factors:
        assert factor.name in said and f"{factor.variance:.1%}" in said
        assert number(factor.top[0].value) in said
    assert f"R² = {number(report.fit.r_squared)}" in said
    assert "Reversed items: q004, q006" in report.methods.paragraph
    assert "Answer ranges: 0 to 2 (declared)" in report.methods.paragraph
    new = renamed(report, [f"Renamed {r}" for r in range(len(report.model.factors))])
    assert "Renamed 0" in new.results and report.model.factors[0].name not in new.results
