"""Further analyses: each form is sent as it is shown, with few repetitions, and its page is read."""

import html
import re
from pathlib import Path

import pandas as pd
from lxml import html as pages

from icqf.app.offers import OFFERS
from icqf.app.pages import as_in_forms
from icqf.data.settings import options_in
from icqf.workflow.options import InvarianceOptions
from small_study import ITEMS, table

FEW = {"permutations": "19", "bootstrap": "2"}


def filled(text):
    """The fields of the form of an analysis, as they are shown."""
    (form,) = [each for each in pages.fromstring(text).forms if "/more/" in each.action]
    return {name: value for name, value in form.form_values() if value != ""}


def started(server, run, tool, **changes):
    """Send the form as it is shown, with changes, and wait for its end."""
    shown = filled(server.page(f"/runs/{run}/more/{tool}").text)
    fields = {name: value for name, value in {**shown, **changes}.items() if value != ""}
    answer = server.post(f"/runs/{run}/more/{tool}", fields, files={})
    assert answer.status == 303, answer.text
    place = answer.getheader("location")
    return place, server.page(place)


def document(server, page):
    """The page inside the page."""
    place = re.search(r'<iframe class="report" src="([^"]+)"', page.text)
    assert place, page.text
    answer = server.get(html.unescape(place[1]))
    assert "sandbox" in answer.getheader("content-security-policy")
    return answer.text


def test_every_option_shown_has_a_label_and_exists():
    for tool, offer in OFFERS.items():
        known = options_in(offer.kind)
        for name in (*offer.usual, *offer.advanced, *offer.of_study):
            assert known[name].label, (tool, name)


def test_messages_of_a_command_name_the_fields_of_the_form():
    assert as_in_forms("Add --by, or --other.", InvarianceOptions) == "Add “Column of groups”, or --other."


def test_groups(server, done):
    assert "Are the factors the same in every group?" in server.get(f"/runs/{done}/results").text
    shown = filled(server.page(f"/runs/{done}/more/invariance").text)
    refused = server.post(f"/runs/{done}/more/invariance", shown, files={})
    assert refused.status == 400 and "No column of groups is given" in refused.text
    place, page = started(server, done, "invariance", by="sex", **FEW)
    assert "Groups of sex" in document(server, page)
    assert server.get(f"{place}/files/factors.csv").text.startswith("factor")
    assert server.get(f"{place}/all.zip").text.startswith("PK")
    assert place in server.get(f"/runs/{done}/more").text
    again = filled(server.page(f"/runs/{done}/more/invariance?from={place.rpartition('/')[2]}").text)
    assert again["by"] == "sex" and again["permutations"] == "19"


def test_a_short_form(server, done):
    place, page = started(server, done, "shortform", max_items="4", title="Mood")
    assert "Mood" in document(server, page) and '<div class="lead"><p>' in page.text
    assert server.post(f"{place}/remove").status == 303
    assert server.get(place).status == 404 and place not in server.get(f"/runs/{done}/more").text


def test_norms_and_a_person_with_percentiles(server, done):
    _, page = started(server, done, "norms", by="sex", sample="a small study")
    assert "a small study" in document(server, page)
    ids = table().iloc[:, 0].astype(str)
    shown = filled(server.page(f"/runs/{done}/more/person").text)
    assert not shown.get("norms")
    norms = re.search(r"<option>(norms-\d+: sex)<", server.page(f"/runs/{done}/more/person").text)[1]
    place, page = started(server, done, "person", who=ids[2], norms=norms)
    assert f"Answers of {ids[2]}" in document(server, page)
    names = re.findall(r"[\w./-]+[.](?:html|icqf|toml)", server.get(f"/runs/{done}/all.zip").text)
    assert any("model.icqf" in name for name in names)
    assert not any("person" in name or ids[2] in Path(name).name for name in names)
    assert server.get(f"{place}/page/..%2F..%2Frun.json").status in (400, 404)


def test_a_person_of_another_file_and_one_who_is_not_there(server, done):
    content = table().head(5).to_csv(index=False).encode()
    answer = server.post(f"/runs/{done}/more/person", {"who": "002"}, files={"answers": ("new.csv", content)})
    assert "Answers of 002" in document(server, server.page(answer.getheader("location")))
    place, page = started(server, done, "person", who="nobody")
    assert "This did not work" in page.text and "no participant has the id" in html.unescape(page.text)
    assert f"?from={place.rpartition('/')[2]}" in page.text
    refused = server.post(f"/runs/{done}/more/person", {"who": ""}, files={})
    page = server.page(refused.getheader("location"))
    assert "No participant is named" in page.text


def test_a_plan_from_results(server, done):
    _, page = started(server, done, "plan", sizes="40", repeats="1")
    assert "How many participants?" in document(server, page)


def test_visits(server):
    """A file with one row per visit ends the check, and begins the analysis of visits."""
    first = table(n=60)
    later = first.assign(age=first["age"] + 1)
    run = server.opened(content=pd.concat([first, later]).to_csv(index=False).encode())
    checked = server.page(f"/runs/{run}/check").text
    assert f"/runs/{run}/more/longitudinal" in checked
    shown = server.page(f"/runs/{run}/more/longitudinal").text
    assert '<option value="">recognised by name' in shown and ">age<" in shown
    _, page = started(
        *(server, run, "longitudinal"),
        **{
            "id": "record_id",
            "age": "age",
            "n_components": "2",
            "beta": "0.1",
            "smoothness": "inf",
            "missing_codes": "9",
        },
        **{"permutations": "0", "bootstrap": "2"},
    )
    assert "visits" in document(server, page)


def test_several_questionnaires(server):
    first, second = (table(seed=seed)[["record_id", *ITEMS]] for seed in (0, 1))
    content = {"files": ("mood.csv", first.to_csv(index=False).encode())}
    answer = server.post("/several", files=content)
    assert answer.status == 303
    run = answer.getheader("location").split("/")[2]
    (server.folder / run / "data" / "sleep.csv").write_text(second.to_csv(index=False))
    assert server.get(f"/runs/{run}").getheader("location").endswith("/more")
    shown = server.get(f"/runs/{run}/more").text
    assert "batch" in shown and "meta" in shown and "Check" not in shown
    _, page = started(
        server, run, "batch", n_components="1", beta="0.1", bootstrap="0", figures="", missing_codes="9"
    )
    assert "2 instruments" in document(server, page)
    report = re.search(r'href="([^"]+/mood/report.html)"', page.text)[1]
    assert server.get(report).status == 200


def test_what_is_not_possible_is_refused(server, done):
    assert server.get(f"/runs/{done}/more/longitudinals").status == 400
    assert server.get(f"/runs/{done}/analyses/invariance-99").status == 404
    assert server.get(f"/runs/{done}/analyses/..").status in (400, 404)
