"""A section that a package outside adds: one function, in every format, kept when factors are named."""

import json

import pytest

from icqf import ICQF
from icqf.datasets import load_demo
from icqf.errors import InputError
from icqf.report import (
    Grid,
    ReportSection,
    analyse,
    as_html,
    as_json,
    as_markdown,
    from_json,
    renamed,
    report_of,
    report_section,
)
from icqf.report.sections import SECTIONS, sections_of


@report_section("sizes", "Sizes <b>", title="Sizes", after="scores")
def sizes(report):
    """How large the scores' table is: worked out from the analysis, shown from what was kept."""
    kept = report.keep("sizes", lambda analysis: {"shape": analysis.scores.shape, "none": None})
    if kept is None:
        return None
    rows = [[factor.name, str(kept.shape[0])] for factor in report.model.factors]
    return ["All have scores.", Grid("Scores by factor", ["Factor", "Scores"], rows)]


@report_section("words", "Words alone")
def words_alone(report):
    return [f"The first factor is {report.model.factors[0].name}."]


@report_section("faulty", "A fault", after="no such section")
def faulty(report):
    raise ZeroDivisionError("no participants")


@pytest.fixture
def plain():
    demo = load_demo().select(["q00*", "q01*"])
    model = ICQF(2, n_init=1, tol=1e-3).fit(demo)
    return report_of(analyse(model, demo, n_bootstrap=0, compare=False))


@pytest.fixture
def added(monkeypatch):
    def add(*sections):
        load = SECTIONS.load
        found = {each.key: each for each in sections}
        monkeypatch.setattr(SECTIONS, "added", lambda: found)
        monkeypatch.setattr(SECTIONS, "load", lambda name: found.get(name) or load(name))

    return add


def test_it_appears_in_every_format(plain, added):
    added(sizes)
    html, markdown, values = as_html(plain), as_markdown(plain), json.loads(as_json(plain))
    assert '<section id="sizes"' in html and '<a href="#sizes">Sizes</a>' in html
    assert html.index('id="scores"') < html.index('id="sizes"') < html.index('id="fit"')
    assert "## Sizes &lt;b&gt;" in markdown and "| 600 |" in markdown
    assert values["sizes"] == {"shape": [600, 2], "none": None}


def test_it_is_kept_when_the_report_is_read_and_named_again(plain, added):
    added(sizes, words_alone)
    text = as_json(plain)
    assert json.loads(text)["sections"]["words"]["parts"] == [
        f"The first factor is {plain.model.factors[0].name}."
    ]
    again = from_json(text)
    assert again.analysis is None and as_html(again) == as_html(plain)
    named = renamed(again, ["Home", "School"])
    assert "| Home | 600 |" in as_markdown(named) and "The first factor is Home." in as_markdown(named)
    assert json.loads(as_json(named))["sections"]["words"]["parts"] == ["The first factor is Home."]
    assert json.loads(as_json(named))["sizes"] == {"shape": [600, 2], "none": None}


def test_what_was_not_kept_is_left_out(plain, added):
    text = as_json(plain)
    added(sizes)
    assert 'id="sizes"' not in as_html(from_json(text))


def test_a_fault_of_one_breaks_nothing_else(plain, added, monkeypatch):
    added(faulty)
    html = as_html(plain)
    assert "This section could not be made (ZeroDivisionError: no participants)." in html
    assert '<section id="methods"' in html
    monkeypatch.setattr(SECTIONS, "added", lambda: {"gone": None})
    load = SECTIONS.load

    def missing(name):
        if name == "gone":
            raise InputError("'gone' cannot be loaded.")
        return load(name)

    monkeypatch.setattr(SECTIONS, "load", missing)
    with pytest.warns(UserWarning, match="'gone' cannot be loaded"):
        assert sections_of(plain)[0].key == "factors"


def test_ours_are_in_the_registry_under_their_keys():
    for key in SECTIONS.own:
        assert isinstance(SECTIONS.load(key), ReportSection) and SECTIONS.load(key).key == key


@pytest.mark.parametrize("text", ["[1", "[]", "{}", '{"title": "x"}'])
def test_what_is_not_a_report(text):
    with pytest.raises(InputError, match="not the JSON of a report of this version"):
        from_json(text)


def test_a_damaged_report_is_refused(plain):
    values = json.loads(as_json(plain))
    del values["items"][0]["mean"]
    with pytest.raises(InputError, match="mean"):
        from_json(json.dumps(values))
