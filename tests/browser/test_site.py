"""The documentation site: built strictly, then opened in a real browser as files, without a server.

All that needs the built site is one test, because every worker of a parallel run would build it again.
"""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WIDTHS = (375, 768, 1440)
# Pages of every kind: lists, prose, results with wide tables and pictures, examples, the reference.
KINDS = (
    *("index.html", "guide.html", "faq.html", "results/stability.html", "results/selection.html"),
    *(
        "examples/index.html",
        "examples/big_five.html",
        "api.html",
        "api/icqf.html",
        "project/contributing.html",
    ),
)
READ_ALOUD = (
    *(("index.html", False), ("faq.html", True), ("results/stability.html", False)),
    *(("examples/big_five.html", True), ("api/icqf.html", False)),
)
TITLES = "return [...document.querySelectorAll('#search-results a')].map((e) => e.textContent)"
# Text that leaves the window and cannot be scrolled to, and cells whose words are cut into letters.
OUTSIDE = """
const wide = document.documentElement.scrollWidth > innerWidth ? ['the page is wider than the window'] : [];
for (const e of document.querySelectorAll('.bd-article :is(h1, h2, h3, p, li, dt, img, pre, table)')) {
  const box = e.getBoundingClientRect();
  if (box.width && box.right > innerWidth + 1 && !e.closest('pre, .pst-scrollable-table-container'))
    wide.push('outside the window: ' + e.tagName + ' ' + (e.alt || e.textContent).trim().slice(0, 50));
}
for (const e of document.querySelectorAll('.bd-article :is(td, th)')) {
  const words = e.textContent.trim();
  if (words.length > 8 && e.getBoundingClientRect().width < 60) wide.push('squeezed: ' + words.slice(0, 50));
}
return wide;
"""


@pytest.fixture(scope="module")
def made():
    """docs/make_site.py, as a module."""
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        spec = importlib.util.spec_from_file_location("make_site", ROOT / "docs" / "make_site.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(ROOT / "docs"))
    return module


def size(browser, width, *, dark=False):
    theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": [theme]})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def complaints(browser):
    """What the browser's console says of faults, and requests that are not for files of the site."""
    said = [e["message"] for e in browser.get_log("browser") if e["level"] in ("WARNING", "SEVERE")]
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    return said + [f"asks for {url}" for url in asked if not url.startswith(("file:", "data:"))]


@pytest.mark.slow
@pytest.mark.long
def test_the_site(made, request, tmp_path):
    site = tmp_path / "site"
    assert made.build(site) == 0  # any warning of Sphinx is an error
    browser, axe = request.getfixturevalue("browser"), request.getfixturevalue("axe")
    complaints(browser)
    pages = [
        str(path.relative_to(site)) for path in sorted(site.rglob("*.html")) if "_static" not in path.parts
    ]
    assert len(pages) > 50 and set(KINDS) <= set(pages)
    faults = {}
    for width in WIDTHS:
        size(browser, width)
        for page in pages if width == min(WIDTHS) else KINDS:
            browser.get((site / page).as_uri())
            faults[page, width] = browser.execute_script(OUTSIDE) + complaints(browser)
    assert {place: found for place, found in faults.items() if found} == {}
    assert "Confounds" in " ".join(found_by_search(browser, site, "confound"))
    assert (
        found_by_search(browser, site, "reverse")[0] == "The direction of items"
    )  # by relevance, not by title
    assert found_by_search(browser, site, "zzyzx") == []
    assert complaints(browser) == []
    unfit = {(page, dark): inaccessible(browser, axe, site / page, dark=dark) for page, dark in READ_ALOUD}
    assert {place: found for place, found in unfit.items() if found} == {}


def found_by_search(browser, site, word):
    """Titles of the pages found, typed and read as a reader would."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    size(browser, 1440)
    browser.get((site / "guide.html").as_uri())
    browser.find_element(By.CSS_SELECTOR, "button.search-button").click()
    field = browser.find_element(By.CSS_SELECTOR, "#pst-search-dialog input[type=search]")
    field.send_keys(word + "\n")
    WebDriverWait(browser, 20).until(
        lambda b: "Search finished" in b.page_source or "did not match" in b.page_source
    )
    return browser.execute_script(TITLES)


def inaccessible(browser, axe, page, *, dark):
    """Serious faults by axe-core."""
    size(browser, 1440, dark=dark)
    browser.get(page.as_uri())
    browser.execute_script(axe)
    run = "axe.run({resultTypes: ['violations']}).then((r) => arguments[arguments.length - 1](r.violations))"
    browser.set_script_timeout(60)
    serious = [v for v in browser.execute_async_script(run) if v["impact"] in ("serious", "critical")]
    return [f"{v['id']}: {v['nodes'][0]['html'][:120]}" for v in serious]


def test_what_is_not_there_fails_the_build(made, tmp_path):
    page = "# One\n\n[a link](no.md) [an anchor](#nowhere) ![a picture](no.png)\n"
    for name, text in {"index.md": page, "orphan.md": "# Two\n"}.items():
        made.write(tmp_path / "pages" / name, text)
    shutil.copytree(ROOT / "docs" / "site", tmp_path / "pages", dirs_exist_ok=True)
    ended = subprocess.run(made.sphinx(tmp_path / "pages", tmp_path / "site"), capture_output=True, text=True)
    assert ended.returncode != 0
    for fault in (
        "'no.md'",
        "'nowhere'",
        "no.png",
        "orphan.md: WARNING: document isn't included in any toctree",
    ):
        assert fault in ended.stderr
