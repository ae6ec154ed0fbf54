"""The app in a real browser: whole analyses, by mouse and by keyboard, at three widths, light and dark."""

import json

import pandas as pd
import pytest

from app_server import Server
from icqf.workflow.options import read_config
from looking import faults_of
from small_study import ITEMS, codebook, table

pytestmark = pytest.mark.slow

WIDTHS = (375, 768, 1440)
WIDER = "return document.documentElement.scrollWidth > innerWidth"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    found = Server(tmp_path_factory.mktemp("runs"))
    yield found
    found.end()


class Tab:
    """A tab of the app, and what somebody does in it."""

    def __init__(self, browser, server):
        self.browser, self.server = browser, server
        browser.switch_to.new_window("tab")
        self.handle = browser.current_window_handle
        self.look()
        browser.get(server.url)
        self.wait("#own")

    def look(self, *, width=1440, dark=False):
        self.browser.switch_to.window(self.handle)
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": [theme]})
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def wait(self, selector, text=""):
        """The element, once it is there and holds the text."""
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.support.ui import WebDriverWait

        def there(browser):
            found = browser.find_elements("css selector", selector)
            return next((each for each in found if text in each.text), None)

        faults = [StaleElementReferenceException]
        return WebDriverWait(self.browser, 60, 0.15, ignored_exceptions=faults).until(there)

    def press(self, text, selector="button, a.button"):
        button = self.wait(selector, text)
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
        button.click()

    def fill(self, name, value):
        field = self.wait(f"[name='{name}']")
        field.clear()
        field.send_keys(value)

    def choose(self, column, use):
        """Use a column that is not an item."""
        place = f"//tr[th[normalize-space()='{column}']]//option[normalize-space()='{use}']"
        option = self.browser.find_element("xpath", place)
        self.browser.execute_script("arguments[0].parentElement.scrollIntoView({block: 'center'})", option)
        option.click()

    def unfold(self):
        self.browser.execute_script("document.querySelectorAll('details').forEach((e) => { e.open = true; })")

    def open(self, **files):
        self.browser.get(f"http://{self.server.host}/")
        self.unfold()
        for name, path in files.items():
            self.wait(f"input[name='{name}']").send_keys(str(path))
        self.press("Open and check")
        self.wait("#analysed")

    def fit(self):
        """Fit with quick settings; ends at the results."""
        self.begin()
        self.wait("iframe.report")

    def begin(self, k="2", beta="0.1"):
        """Begin a fit with quick settings."""
        self.press("Continue to the fit")
        self.wait("[name='n_components']")
        self.unfold()
        for name, value in (("n_components", k), ("beta", beta), ("bootstrap", "0")):
            self.fill(name, value)
        self.press("Figures", "label")
        self.press("Start the fit")

    @property
    def text(self):
        return self.browser.find_element("tag name", "main").text

    @property
    def run(self):
        return self.server.folder / self.browser.current_url.split("/")[4]


@pytest.fixture
def tab(browser, server):
    browser.get_log("browser"), browser.get_log("performance")
    home = browser.current_window_handle
    found = Tab(browser, server)
    yield found
    for handle in browser.window_handles:
        if handle != home:
            browser.switch_to.window(handle)
            browser.close()
    browser.switch_to.window(home)


def test_the_demo_from_the_first_page_to_names(tab, axe):
    """With every step looked at in all widths and both themes, and by a checker of accessibility."""
    from selenium.webdriver import ActionChains

    seen = []

    def look_around(place, dark=()):
        for width in WIDTHS:
            tab.look(width=width)
            assert not tab.browser.execute_script(WIDER), (place, width)
        for each in (False, *dark):
            tab.look(dark=each)
            seen.extend(f"{place}: {fault}" for fault in faults_of(tab.browser, axe))

    look_around("open", dark=(True,))
    tab.press("Try the demo")
    tab.wait("#analysed")
    assert "119: q001–q119" in tab.text and "Ready to fit." in tab.text
    tab.unfold()
    look_around("check", dark=(True,))
    tab.press("Look at the first rows", "a")
    tab.wait("h1", "First rows")
    look_around("first rows", dark=(True,))
    tab.press("Back to the check", "a")
    tab.press("Data", ".views a")
    tab.wait("table.sheet")
    look_around("data", dark=(True,))
    tab.press("Codebook", ".views a")
    tab.wait(".grid")
    look_around("codebook")
    tab.press("Check", ".views a")
    tab.press("Continue to the fit")
    tab.wait("[name='n_components']")
    tab.unfold()
    look_around("fit")
    for name, value in (("n_components", "2"), ("beta", "0.5"), ("bootstrap", "0")):
        tab.fill(name, value)
    tab.press("Figures", "label")
    tab.press("Start the fit")
    tab.wait("h1", "Fitting")
    tab.wait("iframe.report")
    assert "2 factors behind 119 items, from 600 participants" in tab.text
    look_around("results")
    tab.browser.switch_to.frame(tab.wait("iframe.report"))
    assert "Factors behind demo_answers.csv" in tab.browser.find_element("tag name", "h1").text
    tab.browser.switch_to.default_content()
    tab.fill("name-factor1", "Rules & <b>limits</b>")
    tab.browser.execute_script(
        "new MutationObserver(() => sessionStorage.setItem('said', busy.textContent))"
        ".observe(busy, {childList: true, attributes: true})"
    )
    tab.press("Save the names")
    tab.wait("[value='Rules & <b>limits</b>']")
    said = tab.browser.execute_script("return sessionStorage.getItem('said')")
    assert said.startswith("Writing the report, tables and figures with these names")
    assert "Saved: the names are in the report" in tab.text
    tab.press("Read the report in full width")
    frame = tab.wait("iframe.report")
    look_around("the report in full width")
    tab.look()
    assert frame.size["width"] == 1440
    tab.browser.switch_to.frame(frame)
    tab.press("Rename")
    tab.wait("h3 input")
    ActionChains(tab.browser).send_keys("Restless\n").perform()
    tab.wait("#renamed", "Saved: “Restless” is in the report")
    assert "Restless" in tab.wait("table.overview").text
    tab.browser.switch_to.default_content()
    tab.press("Results of", ".back a")
    assert tab.wait("[value='Restless']").get_attribute("name") == "name-factor1"
    tab.press("Score", ".steps a")
    tab.wait("#answers")
    look_around("score")
    tab.browser.get(f"http://{tab.server.host}/history")
    tab.wait(".runs")
    look_around("history")
    assert seen == []
    asked = [json.loads(entry["message"])["message"] for entry in tab.browser.get_log("performance")]
    urls = [e["params"]["request"]["url"] for e in asked if e["method"] == "Network.requestWillBeSent"]
    assert urls and all(url.startswith((f"http://{tab.server.host}/", "data:", "blob:")) for url in urls)
    assert [entry for entry in tab.browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_a_messy_csv_is_mended_scored_and_compared(tab, tmp_path):
    study = table().replace({"9": "999"})
    study.to_csv(tmp_path / "messy answers.csv", index=False)
    study.head(12).to_csv(tmp_path / "new.csv", index=False)
    tab.open(answers=tmp_path / "messy answers.csv")
    assert "Fix what must be fixed before fitting." in tab.text
    tab.press("Treat 999 as missing")
    tab.press("Reverse q03")
    tab.wait(".verdict", "A fit is possible")
    assert "q03 at your request" in tab.text
    tab.choose("age", "confound")
    tab.press("Apply and check again")
    tab.wait("#analysed")
    assert "Confounds\nage" in tab.text.replace(" age", "\nage")
    tab.fit()
    tab.press("Score", ".steps a")
    tab.wait("input[name='answers']").send_keys(str(tmp_path / "new.csv"))
    tab.press("Score", "button.main")
    tab.wait("#made", "Scores of 12 participants")
    tab.press("Compare", ".steps a")
    options = tab.browser.find_elements("css selector", "#second option")
    next(each for each in options if "messy answers" in each.text).click()
    tab.press("Compare", "button.main")
    tab.wait("#pairs", "2 matched pairs over 12 items")


@pytest.mark.long
def test_an_spss_file(tab, tmp_path):
    import pyreadstat

    study = table().replace({"": None, "9": None}).astype(dict.fromkeys(ITEMS, float))
    labels = {name: {0.0: "never", 1.0: "at times", 2.0: "often", 3.0: "always"} for name in ITEMS}
    wordings = {name: f"Question {name} <i>" for name in ITEMS}
    path = tmp_path / "study.sav"
    pyreadstat.write_sav(study, path, variable_value_labels=labels, column_labels=wordings)
    tab.open(answers=path)
    assert "0 to 3, from the file's own labels" in tab.text
    tab.press("Reverse q03")
    tab.wait(".verdict", "A fit is possible")
    tab.fit()
    assert "Question q" in tab.text and "2 factors behind 12 items, from 79 participants" in tab.text


@pytest.mark.long
def test_a_redcap_export_with_its_dictionary(tab, tmp_path):
    study = table().replace({"9": ""}).drop(columns="weight")
    study.assign(mood_complete="2").to_csv(tmp_path / "export.csv", index=False)
    choices = "0, Never | 1, At times | 2, Often | 3, Always"
    fields = [("record_id", "text", "Record", "")]
    fields += [(name, "radio", f"<p>Question {name}</p>", choices) for name in ITEMS]
    fields += [("age", "text", "Age", ""), ("sex", "text", "Sex", "")]
    heads = ["Variable / Field Name", "Field Type", "Field Label", "Choices, Calculations, OR Slider Labels"]
    pd.DataFrame(fields, columns=heads).to_csv(tmp_path / "dictionary.csv", index=False)
    tab.open(answers=tmp_path / "export.csv", dictionary=tmp_path / "dictionary.csv")
    assert "12: q01–q12" in tab.text and "from the file's own labels or description" in tab.text
    tab.press("Reverse q03")
    tab.wait(".verdict", "A fit is possible")
    tab.fit()
    assert "dictionary" in (tab.run / "config.toml").read_text()


def test_the_keyboard_is_enough(tab, tmp_path):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    def reach(wanted):
        """Press Tab until what is wanted has the focus, which must be seen."""
        for _ in range(80):
            ActionChains(tab.browser).send_keys(Keys.TAB).perform()
            here = tab.browser.switch_to.active_element
            if wanted in (here.text or here.get_attribute("value") or here.get_attribute("name") or ""):
                outline = "return getComputedStyle(document.activeElement).outlineStyle"
                assert tab.browser.execute_script(outline) != "none", wanted
                return ActionChains(tab.browser)
        raise AssertionError(f"{wanted} is not reached")

    reach("Try the demo").send_keys(Keys.ENTER).perform()
    tab.wait("#analysed")
    reach("Skip to the content").send_keys(Keys.ENTER).perform()
    reach("Skip the table of columns").send_keys(Keys.ENTER).perform()
    reach("Continue to the fit").send_keys(Keys.ENTER).perform()
    tab.wait("[name='n_components']")
    reach("Start the fit").send_keys(Keys.ENTER).perform()
    tab.wait("h1", "Fitting")
    reach("Cancel").send_keys(Keys.ENTER).perform()
    tab.wait("h2", "The fit was stopped")
    tab.browser.get(f"http://{tab.server.host}/runs/{tab.run.name}/remove")
    reach("Remove this run").send_keys(Keys.ENTER).perform()
    tab.wait("h1", "Runs")


def test_columns_are_found_and_ticked_together_and_rows_are_turned(tab, tmp_path):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    table().replace({"9": ""}).to_csv(tmp_path / "answers.csv", index=False)
    tab.open(answers=tmp_path / "answers.csv")
    box = "input[name='use'][value='q{}']".format
    tab.wait("#narrow").send_keys("q")
    tab.press("Untick those shown")
    assert tab.wait("[data-counted]").text == "0 of 16 columns are items"
    tab.wait(box("02")).click()
    tab.browser.execute_script("document.querySelector('#column-rows').scrollIntoView()")
    with_shift = ActionChains(tab.browser).key_down(Keys.SHIFT).click(tab.wait(box("09")))
    with_shift.key_up(Keys.SHIFT).perform()
    assert tab.wait("[data-counted]").text == "8 of 16 columns are items"
    tab.wait("#narrow").send_keys(Keys.BACKSPACE)
    tab.choose("q09", "confound")
    assert tab.wait("[data-counted]").text == "7 of 16 columns are items"
    tab.wait(box("09")).click()  # an item again, and so no confound
    tab.choose("age", "confound")
    tab.press("Continue to the fit")
    tab.wait("#preview table.loadings")  # small enough to be shown at once
    slider = "arguments[0].value = 2; arguments[0].dispatchEvent(new Event('input', {bubbles: true}))"
    tab.browser.execute_script(slider, tab.wait("#look-k"))
    tab.wait("#preview .hint-text", "2 factors, β 0.1, from 79 participants")
    tab.press("Use these two")
    chosen = [tab.wait(f"input[name='{name}']").get_attribute("value") for name in ("n_components", "beta")]
    assert chosen == ["2", "0.1"]
    options = read_config(tab.run / "config.toml")
    assert options["confounds"] == ["age"] and options["items"] == ITEMS[1:9]
    tab.browser.back()
    tab.press("Data", ".views a")
    tab.press("Next rows", "#grid a")
    assert tab.wait("#grid .place", "Rows 51–80 of 80") and "row=50" in tab.browser.current_url
    tab.wait("#grid [type=checkbox][value='q02']").click()
    tab.press("Apply the ticks")
    tab.wait("#analysed")
    assert "7: q03–q09" in tab.text


def test_two_tabs_and_a_file_that_is_too_large(tab, browser, server, tmp_path):
    """Each tab has its own run; what one does the other finds."""
    table().to_csv(tmp_path / "one.csv", index=False)
    codebook().to_csv(tmp_path / "items.csv", index=False)
    (tmp_path / "large.csv").write_bytes(b"q1,q2\n" + b"0,1\n" * 2**20)
    tab.open(answers=tmp_path / "one.csv", codebook=tmp_path / "items.csv")
    other = Tab(browser, server)
    other.wait("input[name='answers']").send_keys(str(tmp_path / "large.csv"))
    other.press("Open and check")
    said = other.wait("#too-large", "large.csv has 4.0 MB")
    assert "at most 2 MB" in said.text and browser.current_url == f"http://{server.host}/"
    other.press("Try the demo")
    other.wait("#analysed")
    tab.look()
    assert "12: q01–q12" in tab.text
    run = tab.run.name
    other.look()
    assert "119: q001–q119" in other.text and other.run.name != run
    browser.get(f"http://{server.host}/runs/{run}/check")
    other.choose("age", "confound")
    other.press("Apply and check again")
    other.wait(".plain", "Confounds")
    tab.look()
    browser.refresh()
    tab.wait(".plain", "Confounds")


@pytest.mark.long
def test_the_page_goes_on_when_the_app_is_started_again(browser, tmp_path):
    first = Server(tmp_path / "runs")
    home = browser.current_window_handle
    tab = Tab(browser, first)
    table().to_csv(tmp_path / "answers.csv", index=False)
    codebook().to_csv(tmp_path / "items.csv", index=False)
    tab.open(answers=tmp_path / "answers.csv", codebook=tmp_path / "items.csv")
    tab.begin()
    tab.wait("h1", "Fitting")
    first.process.kill()
    first.end()
    tab.wait("#busy", "The app is not responding. Start it again with icqf app")
    second = Server(tmp_path / "runs", port=first.port)
    try:
        tab.wait("iframe.report")
        assert "2 factors behind 12 items" in tab.text
    finally:
        browser.close()
        browser.switch_to.window(home)
        second.end()


def test_groups_are_compared_from_the_results(browser, server, axe, tmp_path):
    """From the results to a comparison of groups and back, accessible at every width, light and dark."""
    path, book = tmp_path / "answers.csv", tmp_path / "items.csv"
    table().to_csv(path, index=False)
    codebook().to_csv(book, index=False)
    tab = Tab(browser, server)
    tab.open(answers=path, codebook=book)
    tab.fit()
    tab.press("Groups", ".offers a")
    tab.wait("h1", "Are the factors the same in every group?")
    tab.unfold()
    tab.wait("select[name='by'] option[value='sex'], select[name='by'] option", "sex").click()
    tab.fill("permutations", "19")
    tab.fill("bootstrap", "2")
    tab.press("Compare the groups")
    tab.wait("iframe.report")
    pages = [browser.current_url]
    tab.press("Back to all analyses")
    tab.wait(".done a", "Groups: sex")
    pages += [browser.current_url, browser.current_url.replace("/more", "/more/person")]
    for page in pages:
        for width in WIDTHS:
            for dark in (False, True):
                tab.look(width=width, dark=dark)
                browser.get(page)
                tab.wait("h1")
                assert not browser.execute_script(WIDER), (page, width)
                assert not faults_of(browser, axe), (page, width, dark)
