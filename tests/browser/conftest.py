"""A headless Chromium, and a report with all of its parts in a file.

Without chromium and chromedriver (or selenium) these tests are skipped; with ICQF_BROWSER=required they fail.
axe-core is looked for in the file that AXE_CORE names.
"""

import os
import shutil
from pathlib import Path

import pytest

from icqf import ICQF, ICQFCV
from icqf.datasets import load_demo
from icqf.report import analyse, report_of, write_report
from report_names import nasty


def _missing(what):
    if os.environ.get("ICQF_BROWSER") == "required":
        pytest.fail(f"{what} is not installed")
    pytest.skip(f"{what} is not installed")


@pytest.fixture(scope="session")
def chromium():
    """A function that opens a browser with or without scripts; all are closed at the end."""
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        _missing("selenium")
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not binary or not driver:
        _missing("chromium or chromium-driver")
    opened = []

    def start(*, scripts=True):
        options = webdriver.ChromeOptions()
        for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
            options.add_argument(word)
        options.add_argument("--hide-scrollbars")
        options.binary_location = binary
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        browser = webdriver.Chrome(options=options, service=Service(driver))
        opened.append(browser)
        if not scripts:
            browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        return browser

    yield start
    for browser in opened:
        browser.quit()


@pytest.fixture(scope="session")
def browser(chromium):
    return chromium()


@pytest.fixture(scope="session")
def bare(chromium):
    """A browser in which scripts are switched off."""
    return chromium(scripts=False)


@pytest.fixture(scope="session")
def axe():
    path = os.environ.get("AXE_CORE", "")
    if not Path(path).is_file():
        _missing("axe-core (AXE_CORE names no file)")
    return Path(path).read_text(encoding="utf-8")


@pytest.fixture(scope="session", params=["q0[0-3]*", pytest.param("*", marks=pytest.mark.long)])
def study(request):
    """Items of the demo, one worded like a script, with a search and two other fits."""
    questionnaire = nasty(load_demo().select([request.param]))
    answers, confounds = questionnaire.keyed_answers(), questionnaire.confounds
    ranges = questionnaire.ranges()
    search = ICQFCV(
        ICQF(item_range=ranges), n_components=[4, 5], betas=[0.2, 0.5], n_splits=4, random_state=0
    )
    search.fit(answers, confounds=confounds)
    others = [ICQF(k, beta=0.2, item_range=ranges).fit(answers, confounds=confounds) for k in (3, 7)]
    return questionnaire, search, others


@pytest.fixture(scope="session")
def model(study):
    return study[1].best_estimator_


@pytest.fixture(scope="session")
def report(study, model):
    questionnaire, search, others = study
    return report_of(
        analyse(model, questionnaire, search=search, n_bootstrap=10, other_models=others),
        names={"factor2": "A rather long name <b>with</b> markup & more"},
    )


@pytest.fixture(scope="session")
def page(report, tmp_path_factory):
    return write_report(tmp_path_factory.mktemp("report") / "report.html", report)[0]
