"""The page about one person, in a real browser: one sheet of A4, offline, accessible, at every width."""

import base64
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF
from icqf.analyses import describe_person
from icqf.data.questionnaire import Questionnaire
from icqf.datasets import load_demo
from icqf.report import person_page
from report_names import NASTY

pytestmark = pytest.mark.slow

LONG = (
    "Has, for at least two weeks and on most days, had so little energy that even small things took an effort"
)


def written(folder, questionnaire, model, **more):
    one, before = questionnaire.take([5]), questionnaire.take([8])
    index = one.answers.index
    before = Questionnaire(
        answers=before.answers.set_axis(index),
        items=before.items,
        confounds=before.confounds.set_axis(index),
    )
    person = describe_person(model, one, before=before)
    page = folder / "person.html"
    page.write_text(person_page(person, model, visit="2", before="1", **more).as_html(), encoding="utf-8")
    return page


@pytest.fixture(scope="module")
def demo():
    return load_demo()


@pytest.fixture(scope="module")
def plain(demo, tmp_path_factory):
    """All 119 items of the demo, six factors."""
    model = ICQF(6, beta=0.2, n_init=1).fit(demo)
    return written(tmp_path_factory.mktemp("plain"), demo, model)


@pytest.fixture(scope="module")
def crowded(demo, tmp_path_factory):
    """As much as a page can hold: sixteen factors, long and hostile texts, many gaps, percentiles."""
    items = tuple(
        replace(item, wording=f"{NASTY if at % 9 == 0 else ''} {LONG} ({item.name})")
        for at, item in enumerate(demo.items)
    )
    answers = demo.answers.copy()
    answers.iloc[5, 40:70] = np.nan
    answers.iloc[5, 70:80] = 2
    other = Questionnaire(answers=answers, items=items, confounds=demo.confounds)
    names = ["A rather long name of an area of life", NASTY, *(f"Area {at}" for at in range(14))]
    model = ICQF(16, beta=0.05, n_init=1, max_iter=25).fit(other).name_factors(names)
    more = {
        "percentiles": pd.DataFrame({"percentile": 73.0, "low": 8.0, "high": 99.0}, index=names),
        "reference": "Reference sample: 600 participants (age 6 to 17; sex: female 52%, male 48%), "
        "weighted to the population; percentiles are accurate to 3 points on average.",
    }
    more["informant"] = "the mother, and the teacher where she did not know"
    return written(tmp_path_factory.mktemp("crowded"), other, model, **more)


@pytest.fixture(params=["plain", "crowded"])
def page(request):
    return request.getfixturevalue(request.param)


@pytest.mark.filterwarnings("ignore")
def test_it_is_printed_on_one_sheet_of_a4(browser, page):
    browser.get(page.as_uri())
    sheet = {"printBackground": True, "preferCSSPageSize": True}
    pdf = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", sheet)["data"])
    assert len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf)) == 1
    width, height = map(float, re.search(rb"/MediaBox ?\[0 0 ([\d.]+) ([\d.]+)\]", pdf).groups())
    assert (round(width), round(height)) == (595, 842)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("width", [375, 768, 1440])
def test_it_fits_the_window(browser, page, width):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(page.as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.filterwarnings("ignore")
def test_nothing_is_loaded_and_no_text_is_run(browser, page):
    browser.get_log("browser"), browser.get_log("performance")
    browser.get(page.as_uri())
    assert browser.execute_script("return document.scripts.length") == 0
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert asked and all(url.startswith(("file:", "data:")) for url in asked)
    assert "one person’s answers" in browser.find_element("tag name", "body").text


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dark", [False, True])
def test_accessible(browser, page, axe, dark):
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    browser.get(page.as_uri())
    browser.execute_script(axe)
    found = browser.execute_async_script(
        "const done = arguments[0]; axe.run().then((r) => done(r.violations.map((v) => v.id)))"
    )
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert found == []


@pytest.mark.filterwarnings("ignore")
def test_without_colours_everything_is_said(browser, plain):
    """Bars are drawn in addition to numbers: every row has its score and likely range as text."""
    browser.get(plain.as_uri())
    rows = browser.execute_script(
        "return [...document.querySelector('table').tBodies[0].rows].map((row) => row.innerText)"
    )
    assert len(rows) == 6
    assert all(re.search(r"\d\.\d\d\s+\d\.\d\d–\d\.\d\d", " ".join(row.split())) for row in rows)
