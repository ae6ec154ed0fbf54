"""The page to fill in, in a real browser: it scores as `icqf score` does, and sends and keeps nothing."""

import json

import numpy as np
import pytest

from icqf import ICQF
from icqf.analyses import adaptive_form, shortform
from icqf.datasets import make_synthetic
from icqf.report import scoring_page

pytestmark = pytest.mark.slow

FILL = """
const [answers, confounds] = arguments;
const tell = (e) => e.dispatchEvent(new Event('input', {bubbles: true}));
document.querySelector('button[type=reset]').click();
confounds.forEach((value, at) => {
  const field = document.getElementById('c' + at);
  if (field) { field.value = value; tell(field); }
});
answers.forEach((value, at) => {
  const fields = [...document.querySelectorAll(`[name=i${at}]`)];
  if (fields[0].type === 'radio') {
    const field = fields.find((e) => e.value === (value === null ? '' : String(value)));
    field.checked = true;
    tell(field);
  } else { fields[0].value = value === null ? '' : value; tell(fields[0]); }
});
return [...document.querySelectorAll('#profile tbody tr')].map((row) => [
  Number(row.dataset.score), ...[...row.cells].map((cell) => cell.textContent.trim())]);
"""


ONE_BY_ONE = """
const [answers, confounds] = arguments;
const tell = (e, kind) => e.dispatchEvent(new Event(kind, {bubbles: true}));
document.querySelector('[name=way][value=one]').click();
confounds.forEach((value, at) => {
  const field = document.getElementById('c' + at);
  if (field) { field.value = value; tell(field, 'input'); }
});
const order = [];
for (;;) {
  const now = document.querySelector('.ask.now');
  if (!now || order.length > 50) break;
  const fields = [...now.querySelectorAll('input')];
  const at = Number(fields[0].name.slice(1));
  order.push(at);
  if (answers[at] === null) { document.getElementById('skip').click(); continue; }
  if (fields[0].type === 'radio') fields.find((e) => e.value === String(answers[at])).click();
  else fields[0].value = answers[at];
  document.getElementById('next').click();
}
return [order, [...document.querySelectorAll('#profile tbody tr')].map(
  (row) => [row.dataset.expected, ...row.dataset.interval.split(' ')].map(Number))];
"""


def made(model, study, folder, *, width=0.3, **more):
    form = shortform(model, study, **{"max_items": 8} | more)
    page, adaptive = folder / "form.html", adaptive_form(model, form.items, width=width)
    text = scoring_page(form, title="Eight <b>questions</b>", adaptive=adaptive)
    page.write_text(text, encoding="utf-8")
    return form, page


@pytest.fixture(scope="module")
def usual(demo, tmp_path_factory):
    """A short form of the demo, and its page."""
    return made(ICQF(3, beta=0.3).fit(demo), demo, tmp_path_factory.mktemp("form"))


@pytest.mark.parametrize("settings", [{}, {"penalty": "l2"}, {"penalty": "l21"}, {"score_max": None}])
def test_the_page_scores_as_the_program_does(browser, demo, tmp_path, settings):
    """Reversed items, gaps, confounds, ranges that press, every penalty: the same scores to four digits."""
    demo = demo.select(["q00*", "q01*"])
    form, page = made(ICQF(3, beta=0.3, n_init=1, **settings).fit(demo), demo, tmp_path, max_items=4)
    part = demo.select(form.items)
    rows = [*range(12), *np.argsort(-part.answers.mean(axis=1).to_numpy())[:12]]  # high answers press
    browser.get(page.as_uri())
    scores = form.model.transform(part.take(rows))
    categories = [str(value) for value in form.model.confound_encoder_.columns[1].categories]
    worst = 0.0
    for answers, (_, beside), wanted in zip(
        part.answers.iloc[rows].to_numpy(), part.confounds.iloc[rows].iterrows(), scores, strict=True
    ):
        plain = [None if np.isnan(value) else int(value) for value in answers]
        if all(value is None for value in plain):
            continue
        found = browser.execute_script(
            FILL, plain, [float(beside["age"]), str(categories.index(str(beside["sex"])))]
        )
        worst = max(worst, float(np.abs(np.array([row[0] for row in found]) - wanted).max()))
        assert [row[3] for row in found] == [f"{row[0]:.2f}" for row in found]
        for row in found if None not in plain else ():
            low, high = map(float, row[-1].split("–"))
            assert 0 <= low <= high <= (form.model.score_max or np.inf)
    assert worst < 1e-4


def test_items_without_labels_or_confounds(browser, tmp_path):
    answers = make_synthetic(n=120, m=20, k=2, noise=0.2, random_state=0).answers
    form, page = made(ICQF(2, item_range=(0, 100)).fit(answers), answers, tmp_path)
    browser.get(page.as_uri())
    places = [int(name.removeprefix("item")) - 1 for name in form.items]
    for row in answers[:8, places]:
        found = browser.execute_script(FILL, row.tolist(), [])
        np.testing.assert_allclose([each[0] for each in found], form.model.transform(row[None])[0], atol=1e-4)


@pytest.mark.parametrize(
    "settings",
    [{}, {"penalty": "l2"}, {"score_max": None}, pytest.param({"penalty": "l21"}, marks=pytest.mark.long)],
)
def test_one_question_at_a_time_as_in_python(browser, demo, tmp_path, settings):
    """The same questions in the same order, expected scores and intervals; with reversed items and gaps."""
    model = ICQF(3, beta=0.3, n_init=1, **settings).fit(demo)
    form, page = made(model, demo, tmp_path)
    part = demo.select(form.items)
    rows = [0, 1, *np.flatnonzero(part.answers.isna().any(axis=1))[:2]]
    asked = adaptive_form(model, form.items).ask(part.take(rows))
    categories = [str(value) for value in form.model.confound_encoder_.columns[1].categories]
    names = model.get_feature_names_out()
    for row, (_, wanted) in zip(rows, asked.iterrows(), strict=True):
        plain = [None if np.isnan(value) else int(value) for value in part.answers.iloc[row]]
        beside = part.confounds.iloc[row]
        browser.get(page.as_uri())
        order, found = browser.execute_script(
            ONE_BY_ONE, plain, [float(beside["age"]), str(categories.index(str(beside["sex"])))]
        )
        assert [form.items[at] for at in order] == wanted["asked"].split()
        expected = [[wanted[f"{name}{end}"] for end in ("", "_low", "_high")] for name in names]
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_one_question_at_a_time_without_labels_or_confounds(browser, tmp_path):
    answers = make_synthetic(n=120, m=20, k=2, noise=0.2, random_state=0).answers
    model = ICQF(2, item_range=(0, 100)).fit(answers)
    form, page = made(model, answers, tmp_path, width=0.1)
    places = [int(name.removeprefix("item")) - 1 for name in form.items]
    asked = adaptive_form(model, form.items, width=0.1).ask(answers[:2, places])
    for row, (_, wanted) in zip(answers[:2, places], asked.iterrows(), strict=True):
        browser.get(page.as_uri())
        order, found = browser.execute_script(ONE_BY_ONE, row.tolist(), [])
        assert [form.items[at] for at in order] == wanted["asked"].split()
        np.testing.assert_allclose(np.ravel(found), wanted.to_numpy()[2:].astype(float), atol=1e-4)


def test_one_question_at_a_time_with_the_keyboard(browser, usual):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    form, page = usual
    progress = "return document.getElementById('progress').textContent"
    now = "const e = document.querySelector('.ask.now'); return e && e.querySelector('legend').textContent"

    def press(*keys):
        ActionChains(browser).send_keys(*keys).perform()

    browser.get(page.as_uri())
    browser.execute_script("document.querySelector('[name=way]').focus()")
    press(Keys.ARROW_DOWN)
    assert "Fill in the fields" in browser.execute_script(progress)
    browser.execute_script(
        "document.getElementById('c0').value = '9'; const e = document.getElementById('c1');"
        "e.value = '1'; e.dispatchEvent(new Event('input', {bubbles: true}))"
    )
    first = browser.execute_script(now)
    assert browser.execute_script(progress).startswith("Question 1, of at most 8. 0 questions answered;")
    browser.execute_script("document.querySelector('.ask.now input').focus()")
    press(Keys.ENTER)
    assert browser.execute_script(progress) == "Choose an answer, or skip the question."
    press(Keys.SPACE, Keys.ENTER)
    second = browser.execute_script(now)
    assert second not in (None, first)
    assert browser.execute_script("return document.activeElement.closest('.ask.now') !== null")
    browser.find_element("id", "skip").click()
    assert ", 1 skipped" in browser.execute_script(progress)
    browser.find_element("id", "back").click()
    assert browser.execute_script(now) == second
    browser.find_element("id", "back").click()
    assert browser.execute_script(now) == first
    assert browser.execute_script("return document.querySelector('.ask.now input').checked")
    press(Keys.ENTER)
    assert browser.execute_script(now) == second  # the same answers, the same question
    browser.find_element("css selector", "[name=way][value=all]").click()
    shown = "return [...document.querySelectorAll('.ask')].filter((e) => e.offsetParent).length"
    assert browser.execute_script(shown) == len(form.items)
    assert browser.execute_script("return document.getElementById('status').textContent").startswith("1 of 8")


def test_nothing_is_sent_kept_or_run(browser, usual):
    form, page = usual
    browser.get_log("browser"), browser.get_log("performance")
    browser.get(page.as_uri())
    assert (
        browser.execute_script("return document.querySelector('h1').textContent") == "Eight <b>questions</b>"
    )
    browser.execute_script(FILL, [1] * len(form.items), ["10", "0"])
    assert browser.execute_script("return document.getElementById('status').textContent").startswith("All 8")
    blocked = browser.execute_async_script(
        "const done = arguments[0];"
        "fetch('https://example.org/').then(() => done('sent'), () => done('blocked'))"
    )
    assert blocked == "blocked"
    kept = browser.execute_script("return [document.cookie, location.hash, location.search]")
    assert kept == ["", "", ""]
    browser.refresh()
    assert browser.execute_script("return document.querySelectorAll('.ask input:checked').length") == 8
    assert browser.execute_script("return document.getElementById('profile').hidden")
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert asked and all(url.startswith(("file:", "data:")) for url in asked if "example.org" not in url)


@pytest.mark.parametrize("adaptive", [True, False])
def test_what_is_said_on_the_way(browser, usual, tmp_path, adaptive):
    form, page = usual
    if not adaptive:
        page = tmp_path / "plain.html"
        page.write_text(scoring_page(form), encoding="utf-8")
    browser.get(page.as_uri())
    status = "return document.getElementById('status').textContent"
    assert browser.execute_script(status) == "No question is answered yet."
    browser.execute_script(FILL, [2] * len(form.items), ["", ""])
    assert browser.execute_script(status).startswith("Fill in the fields at the top")
    found = browser.execute_script(FILL, [2, None] + [1] * (len(form.items) - 2), ["9", "1"])
    assert browser.execute_script(status).startswith("7 of 8 questions are answered")
    # intervals of complete forms are for those who answer everything
    assert [row[-1] == "–" for row in found] == [not adaptive] * 3
    plain = browser.find_element("tag name", "body").text
    assert ("Intervals are shown once all are answered." in plain) == (not adaptive)


def test_the_same_answers_give_the_same_profile_however_they_are_asked(browser, usual):
    """All answered, and some: scores as of `icqf score`, and what to expect of the full form."""
    _, page = usual
    table = "return [...document.querySelectorAll('#profile tbody tr')].map((row) => row.innerText)"
    for answers in ([1] * 8, [2, 0, 1, 2, 0, 1, 2, 1]):
        browser.get(page.as_uri())
        order, found = browser.execute_script(ONE_BY_ONE, answers, ["9", "1"])
        one, asked = browser.execute_script(table), [answers[j] if j in order else None for j in range(8)]
        browser.get(page.as_uri())
        together = browser.execute_script(FILL, asked, ["9", "1"])
        assert browser.execute_script(table) == one
        np.testing.assert_allclose([[float(row[4])] for row in together], np.array(found)[:, :1], atol=0.006)
        browser.find_element("css selector", "[name=way][value=one]").click()
        assert browser.execute_script(table) == one


@pytest.mark.parametrize("width", [375, 1440])
def test_the_page_fits_the_window(browser, usual, width):
    _, page = usual
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(page.as_uri())
    for fill in (FILL, ONE_BY_ONE):
        browser.execute_script(fill, [1] * 8, ["9", "1"])
        assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")


def test_without_scripts_the_questions_are_there(bare, usual):
    form, page = usual
    bare.get(page.as_uri())
    text = bare.find_element("tag name", "body").text
    assert "switched off in this browser" in text
    assert all(item.wording in text for item in form.model.codebook_.items)


@pytest.mark.parametrize("way", ["all", "asking", "done"])
def test_accessible(browser, usual, axe, way):
    _, page = usual
    browser.get(page.as_uri())
    if way == "all":
        browser.execute_script(FILL, [1] * 8, ["9", "1"])
    else:
        browser.execute_script(ONE_BY_ONE, [1] * 8, ["9", "1"])
    if way == "asking":
        browser.find_element("id", "back").click()
    browser.execute_script(axe)
    found = browser.execute_async_script(
        "const done = arguments[0]; axe.run().then((r) => done(r.violations.map((v) => v.id)))"
    )
    assert found == []
