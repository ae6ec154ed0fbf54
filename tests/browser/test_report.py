"""The report in a real browser: numbers, behaviour, widths, themes, accessibility."""

import base64
import json
import re
import shlex
import time
from xml.etree import ElementTree

import pytest
from matplotlib import image
from matplotlib.figure import Figure

from icqf.report import Document, Picture, Section
from icqf.report.words import number
from looking import faults_of, show
from report_names import NASTY

pytestmark = pytest.mark.slow

WIDTHS = (375, 768, 1440)
SECTIONS = [
    *("factors", "count", "loadings", "confounds", "scores", "general", "psychometrics", "fit"),
    *("comparison", "analysed", "sample", "missing"),
    "methods",
]

# Text that leaves the window or its block, and labels of a figure that touch; scrolling regions may be wider.
FAULTS = """
const found = [];
const seen = (e) => getComputedStyle(e).visibility !== 'hidden' && getComputedStyle(e).display !== 'none';
if (document.documentElement.scrollWidth > innerWidth) found.push('the page is wider than the window');
for (const e of document.querySelectorAll('h1,h2,h3,p,li,caption,figcaption,summary,label,table,svg,th,td')) {
  if (!seen(e) || e.closest('.scroll,.quiet,.skip,[hidden],details:not([open]) > :not(summary)')) continue;
  const box = e.getBoundingClientRect();
  if (box.width === 0) continue;
  const block = e.closest('article,section,header,footer,nav').getBoundingClientRect();
  const name = e.tagName + ': ' + e.textContent.trim().slice(0, 50);
  if (box.left < -1 || box.right > innerWidth + 1) found.push('outside the window: ' + name);
  if (box.right > block.right + 1) found.push('outside its block: ' + name);
  if (e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 && !e.matches('svg,table,label'))
    found.push('cut off: ' + name);
}
for (const region of document.querySelectorAll('.scroll')) {
  if (region.closest('details:not([open])') || region.closest('[hidden]')) continue;
  const box = region.getBoundingClientRect();
  if (box.right > innerWidth + 1) found.push('a scrolling region leaves the window');
}
for (const plot of document.querySelectorAll('svg.plot, svg.map')) {
  if (plot.closest('details:not([open])') || plot.closest('[hidden]')) continue;
  const outer = plot.getBoundingClientRect();
  const box_of = (t) => [t.textContent.trim(), t.getBoundingClientRect()];
  const texts = [...plot.querySelectorAll('text')].map(box_of);
  texts.forEach(([text, box], at) => {
    if (box.left < outer.left - 1 || box.right > outer.right + 1
      || box.top < outer.top - 1 || box.bottom > outer.bottom + 1)
      found.push('cut off in a figure: ' + text);
    for (const [other, next] of texts.slice(at + 1)) {
      const across = Math.min(box.right, next.right) - Math.max(box.left, next.left);
      const down = Math.min(box.bottom, next.bottom) - Math.max(box.top, next.top);
      if (across > 1 && down > 2) found.push('overlapping in a figure: ' + text + ' / ' + other);
    }
  });
}
return found;
"""


def rows(browser, selector="table.heat"):
    script = """return [...document.querySelector(arguments[0]).tBodies[0].rows].filter((row) => !row.hidden)
        .map((row) => [...row.cells].map((cell) => cell.textContent.trim().replace(/\\s+/g, ' ')))"""
    return browser.execute_script(script, selector)


def type_into(browser, selector, value, event="input"):
    browser.execute_script(
        "const e = document.querySelector(arguments[0]); e.value = arguments[1];"
        "e.dispatchEvent(new Event(arguments[2]))",
        *(selector, value, event),
    )


def test_sections_and_numbers(browser, page, model, report):
    show(browser, page)
    ids = browser.execute_script("return [...document.querySelectorAll('main > section')].map((e) => e.id)")
    assert ids == SECTIONS
    table = model.loadings_.join(model.confound_loadings_)
    shown = {re.search(r"q\d+$", row[0])[0]: row[2:] for row in rows(browser)}
    assert shown == {str(item): [number(value) for value in table.loc[item]] for item in table.index}
    scores = rows(browser, "table.spread")
    assert [row[2] for row in scores] == [number(factor.mean) for factor in report.scores.factors]
    text = browser.execute_script("return document.body.innerText")
    for sentence in (*report.cautions, *report.headline, *report.count.words, report.methods.paragraph):
        assert sentence in text


def test_no_error_and_no_request(browser, page):
    browser.get_log("browser"), browser.get_log("performance")
    show(browser, page, opened=True)
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert asked and all(url.startswith(("file:", "data:")) for url in asked)


def test_a_script_in_the_wording_is_text(browser, page):
    show(browser, page)
    assert any(NASTY in row[0] for row in rows(browser))
    assert browser.execute_script("return document.scripts.length") == 1


def test_sort(browser, page, model):
    from selenium.webdriver.common.by import By

    show(browser, page)
    before = rows(browser)
    heading = browser.find_elements(By.CSS_SELECTOR, "table.heat thead th")[2]
    heading.find_element(By.TAG_NAME, "button").click()
    values = [float(row[2]) for row in rows(browser)]
    assert values == sorted(values, reverse=True) and heading.get_attribute("aria-sort") == "descending"
    assert values[0] == round(model.components_[0].max(), 2)
    heading.find_element(By.TAG_NAME, "button").send_keys("\n")
    values = [float(row[2]) for row in rows(browser)]
    assert values == sorted(values) and heading.get_attribute("aria-sort") == "ascending"
    assert sorted(before) == sorted(rows(browser))


def test_filter(browser, page, study):
    show(browser, page)
    type_into(browser, "#find", "door")
    wanted = [item.name for item in study[0].items if "door" in item.wording.lower()]
    assert sorted(row[0].split()[-1] for row in rows(browser)) == sorted(wanted)
    assert browser.execute_script("return document.getElementById('shown').textContent").startswith(
        f"{len(wanted)} of {len(study[0].items)}"
    )
    type_into(browser, "#find", "")
    type_into(browser, "#scale", "Worry", "change")
    assert {row[1] for row in rows(browser)} == {"Worry"}


def test_slider(browser, page, model):
    show(browser, page)
    type_into(browser, "#cut", "0.3")
    hidden = browser.execute_script(
        "return document.querySelector('table.heat').querySelectorAll('td.low').length"
    )
    table = model.loadings_.join(model.confound_loadings_).round(2) / 2
    assert hidden == int((table < 0.3).sum().sum())
    assert browser.execute_script("return document.getElementById('cut-value').textContent") == "30%"


def test_hover_shows_the_wording(browser, page):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    show(browser, page)
    cell = browser.find_element(By.CSS_SELECTOR, "table.heat tbody tr td.q8, table.heat tbody tr td.q9")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", cell)
    ActionChains(browser).move_to_element(cell).perform()
    tip = browser.find_element(By.ID, "tip")
    wording = browser.execute_script("return arguments[0].parentNode.cells[0].textContent.trim()", cell)
    assert tip.is_displayed() and wording in tip.text and "95% interval" in tip.text and cell.text in tip.text


def test_switch_the_number_of_factors(browser, page, report):
    show(browser, page)
    visible = (
        "return [...document.querySelectorAll('.model')].filter((e) => !e.hidden).map((e) => e.dataset.model)"
    )
    assert browser.execute_script(visible) == ["0"]
    browser.execute_script('document.querySelector(\'input[name="k"][value="2"]\').click()')
    assert browser.execute_script(visible) == ["2"]
    heads = browser.execute_script(
        "return document.querySelector('.model:not([hidden]) table.heat').tHead.rows[0].cells.length"
    )
    assert heads == 2 + report.models[2].n_components + len(report.model.confounds)


def test_complete_without_scripts(bare, page, report):
    bare.get(page.as_uri())
    text = bare.execute_cdp_cmd("DOM.getDocument", {"depth": 0})
    html = bare.execute_cdp_cmd("DOM.getOuterHTML", {"nodeId": text["root"]["nodeId"]})["outerHTML"]
    assert html.count('<table class="heat sortable') == len(report.models)
    assert 'id="tools" hidden' in html
    assert html.count("<button") == 1 and 'popovertarget="contents"' in html  # which works without scripts


HERE = "return document.querySelector('#contents [aria-current]')?.hash"


def test_the_navigation_follows_the_reading_and_is_folded_on_a_phone(browser, page):
    from selenium.webdriver.support.ui import WebDriverWait

    shown = "return document.getElementById('contents').getClientRects().length > 0"
    move = "document.querySelector(arguments[0]).scrollIntoView({behavior: 'instant'})"
    for width, beside in ((1440, True), (375, False)):
        show(browser, page, width=width)
        assert browser.execute_script(shown) == beside
        for key in ("#factor2", "#methods", "#loadings"):
            browser.execute_script(move, key)
            WebDriverWait(browser, 10).until(lambda tab, key=key: tab.execute_script(HERE) == key)
    label = browser.find_element("css selector", ".contents-button")
    assert label.text == "All loadings"
    label.click()
    assert browser.execute_script(shown)
    browser.find_element("css selector", "#contents a[href='#scores']").click()
    assert not browser.execute_script(shown)
    WebDriverWait(browser, 10).until(lambda tab: tab.execute_script(HERE) == "#scores")


def test_a_factor_is_named_where_it_stands(browser, page):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    show(browser, page)
    card = browser.find_element(By.ID, "factor1")
    before = card.find_element(By.TAG_NAME, "h3").text
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", card)
    card.find_element(By.CSS_SELECTOR, ".rename").click()
    ActionChains(browser).send_keys("Nothing", Keys.ESCAPE).perform()
    assert card.find_element(By.TAG_NAME, "h3").text == before
    card.find_element(By.CSS_SELECTOR, ".rename").click()
    ActionChains(browser).send_keys("Kate's <b>worries</b>", Keys.ENTER).perform()  # in place of the old name
    assert card.find_element(By.TAG_NAME, "h3").text == "Kate's <b>worries</b>"
    assert (
        browser.find_element(By.CSS_SELECTOR, "#contents a[href='#factor1']").text == "Kate's <b>worries</b>"
    )
    told = browser.find_element(By.CSS_SELECTOR, "#renamed code").text
    assert shlex.split(told) == [
        *("icqf", "report", str(page.parent), "--names", "factor1=Kate's <b>worries</b>"),
    ]


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_cut_off_or_overlaps(browser, page, width):
    for opened in (False, True):
        show(browser, page, width=width, opened=opened)
        assert browser.execute_script(FAULTS) == []


ASTRAY = """
return [...document.querySelectorAll('.cols table')].filter((table) => {
  const button = (table.closest('.scroll') || table).nextElementSibling.getBoundingClientRect();
  const box = table.getBoundingClientRect();
  return box.width && (button.top < box.bottom - 1 || Math.abs(button.left - box.left) > 1);
}).map((table) => table.textContent.trim().slice(0, 60));
"""


def test_the_button_of_a_table_is_below_it_where_tables_stand_side_by_side(browser, page):
    show(browser, page, width=1440, opened=True)
    assert browser.execute_script(ASTRAY) == []


def test_what_is_cut_off_would_be_found(browser, page):
    show(browser, page, width=375)
    browser.execute_script("document.querySelector('h2').style.width = '500px'")
    browser.execute_script(
        "document.querySelectorAll('svg.plot text').forEach((t) => { t.style.font = '40px serif'; })"
    )
    found = " ".join(browser.execute_script(FAULTS))
    assert "outside the window" in found and "overlapping in a figure" in found


@pytest.mark.parametrize("dark", [False, True])
def test_accessibility(browser, page, axe, dark):
    show(browser, page, dark=dark, opened=True)
    browser.set_script_timeout(60)
    assert faults_of(browser, axe) == []


PAPER = {"A4": (8.27, 11.69), "Letter": (8.5, 11.0)}

# Figures, cards and tables that are higher than a page would be cut; all others are kept whole by the style.
CUT = """
const high = arguments[0];
const kept = [];
for (const e of document.querySelectorAll('article, figure, table, .lead, .care, blockquote')) {
  const style = getComputedStyle(e);
  const box = e.getBoundingClientRect();
  if (style.display === 'none' || box.height === 0 || e.closest('details:not([open])')) continue;
  if (style.breakInside !== 'avoid') kept.push('may be cut: ' + e.tagName + ' ' + e.className);
  if (box.height > high) kept.push('higher than a page: ' + e.tagName + ' ' + e.className);
}
return kept;
"""


@pytest.mark.parametrize("paper", list(PAPER))
def test_print_is_short_and_cuts_nothing(browser, page, paper):
    show(browser, page)
    width, height = PAPER[paper]
    inner = [round(96 * (side - 2 * 14 / 25.4)) for side in (width, height)]  # within the margins
    size = {"width": inner[0], "height": inner[1], "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": []})
    gone = (
        "return [...document.querySelectorAll('nav, .take, .hint')].map((e) => getComputedStyle(e).display)"
    )
    assert set(browser.execute_script(gone)) == {"none"}
    assert browser.execute_script(CUT, inner[1]) == []
    assert browser.execute_script(FAULTS) == []
    sheet = {"printBackground": True, "paperWidth": width, "paperHeight": height}
    pdf = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", sheet)["data"])
    assert 2 <= len(re.findall(rb"/Type */Page\b", pdf)) < 10


# --- what leaves the page --------------------------------------------------------------------------------


def saved(browser, folder, figure, kind):
    """The file that a figure's button saves."""
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})
    path = folder / f"{figure}.{kind.lower()}"
    script = """[...document.querySelectorAll(`figure[data-name="${arguments[0]}"] .take button`)]
        .find((e) => e.textContent === arguments[1]).click()"""
    browser.execute_script(script, figure, kind)
    for _ in range(100):
        if path.exists() and path.stat().st_size:
            return path
        time.sleep(0.1)
    raise AssertionError(f"{path.name} was not saved")


@pytest.mark.parametrize("dark", [False, True])
def test_every_figure_is_saved_as_svg_and_png(browser, page, tmp_path, dark):
    browser.get_log("browser"), browser.get_log("performance")
    show(browser, page, dark=dark)
    names = browser.execute_script(
        "return [...document.querySelectorAll('figure.take-figure')].map((e) => e.dataset.name)"
    )
    assert {"map", "cv", "scree", "splits", "convergence"} <= set(names)
    for name in names:
        drawing = ElementTree.parse(saved(browser, tmp_path, name, "SVG")).getroot()
        assert drawing.tag == "{http://www.w3.org/2000/svg}svg" and float(drawing.get("width")) > 100
        text = (tmp_path / f"{name}.svg").read_text(encoding="utf-8")
        assert "var(--" not in text and "class=" not in text
    for name in ("map", "scree"):
        picture = image.imread(saved(browser, tmp_path, name, "PNG"))
        assert picture.shape[1] >= 2000 and picture[0, 0, :3].tolist() == [1, 1, 1]  # on white, also at night
        assert picture[:, :, :3].min() < 0.4
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked)


def test_a_table_is_copied_as_it_is_shown(browser, page, report):
    show(browser, page)
    browser.execute_cdp_cmd(
        "Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    )
    from selenium.webdriver.common.by import By

    button = browser.find_element(By.XPATH, "//table[@class='overview']/../following-sibling::*//button")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()
    assert button.text == "Copied"
    got = browser.execute_async_script(
        "navigator.clipboard.readText().then(arguments[0], (e) => arguments[0](String(e)))"
    )
    rows_copied = [line.split("\t") for line in got.splitlines()]
    assert rows_copied[0][0] == "Factor"
    assert [row[0] for row in rows_copied[1:]][: len(report.model.factors)] == [
        f.name for f in report.model.factors
    ]
    shown = rows(browser, "table.overview")
    assert rows_copied[1:] == shown


def test_tables_that_scroll_say_so(browser, page):
    for width, some in ((375, True), (1440, False)):
        show(browser, page, width=width)
        seen = browser.execute_script(
            "return [...document.querySelectorAll('.scroll')].filter((e) => e.clientWidth).map((e) =>"
            "[e.scrollWidth > e.clientWidth + 1, e.querySelector('.hint').offsetHeight > 0])"
        )
        assert all(wide == said for wide, said in seen)
        assert any(said for _, said in seen) == some


def test_size(page):
    assert page.stat().st_size < 2_000_000


@pytest.mark.parametrize("width", WIDTHS)
def test_a_wide_figure_of_a_page_fits_the_window(browser, tmp_path, width):
    """Groups, batteries, visits and plans have figures that are wider than the text."""
    picture = Picture("wide", Figure(figsize=(14, 4)), "Nothing")
    file = tmp_path / "page.html"
    file.write_text(Document("Groups", [], [Section("Items", [picture])]).as_html(), encoding="utf-8")
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(file.as_uri())
    assert browser.execute_script("return document.images[0].naturalWidth") > width
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
