"""The columns of the Check page, the Data page, and uploads that cannot be read."""

import html
import re

import numpy as np
import pandas as pd

from icqf.app.runs import Run
from icqf.io.codebook import read_codebook
from icqf.workflow.options import StudyOptions, read_config
from small_study import ITEMS, table


def options_of(server, run):
    return StudyOptions.of(read_config(server.folder / run / "config.toml"))


def plain(**more):
    """The small study without its missing code."""
    return table().replace({"9": ""}).assign(**more)


def opened(server, frame, **files):
    return server.opened(content=frame.to_csv(index=False).encode(), **files)


def test_columns_are_chosen_and_left_out_by_their_ticks(server):
    run = opened(server, plain())
    server.use(run, q05="", q06="", age="confound", sex="confound", weight="weight")
    found = options_of(server, run)
    assert found.items == tuple(name for name in ITEMS if name not in ("q05", "q06"))
    assert (found.confounds, found.weights, found.id) == (("age", "sex"), "weight", None)
    page = server.page(f"/runs/{run}/check").text
    assert 'value="q05" aria-label="q05 is an item">' in page  # and is not ticked
    server.use(run, q05="item", sex="")
    assert "q05" in options_of(server, run).items and options_of(server, run).confounds == ("age",)


def test_a_column_that_a_codebook_lacks_becomes_an_item(server, described):
    run = opened(server, plain(mood=table()["q01"].replace({"": "2", "9": "2"})), codebook=described)
    server.use(run, mood="item", q12="")
    assert "12: q01–q11, mood" in server.page(f"/runs/{run}/check").text
    entries = {item.name: item for item in read_codebook(options_of(server, run).codebook)}
    assert entries["q01"].wording == "Question q01" and entries["q03"].reverse and "q12" not in entries


def test_uses_that_cannot_be_are_refused(server):
    run = opened(server, plain())
    for uses, said in (
        ({"age": "group", "sex": "group"}, "Two columns are marked as families or sites"),
        (dict.fromkeys(ITEMS, ""), "No item is left"),
        ({"age": "nonsense"}, "changed in another tab"),
    ):
        answer = server.use(run, **uses)
        assert answer.status == 400 and said in html.unescape(answer.text)
    assert options_of(server, run).items == () and server.use(run, nobody="confound").status == 303


def test_going_on_keeps_what_was_changed(server):
    run = opened(server, plain())
    assert server.use(run, {"onward": "1"}).getheader("location").endswith("/fit")  # nothing to check again
    checked = server.use(run, {"onward": "1"}, age="confound").getheader("location")
    assert checked.endswith("check?onward=1") and options_of(server, run).confounds == ("age",)
    assert server.page(checked).getheader("location").endswith("/fit")
    stopped = server.use(run, {"onward": "1", "missing_codes": "0, 1, 2, 3"}).getheader("location")
    assert server.page(stopped).status == 200  # stays where what must be fixed is read


def test_two_columns_are_one_id_together(server):
    frame = pd.concat([plain(study="A"), plain(study="B").head(60)])
    run = opened(server, frame)
    server.use(run, study="id")
    assert options_of(server, run).id == "record_id + study"
    page = server.page(f"/runs/{run}/check").text
    assert "Continue to the fit" in page
    page = server.get(f"/runs/{run}/data?who=001%20%2B%20B").text
    assert '<tr class="here"><th scope="row">001 + B</th>' in page
    server.use(run, study="")
    assert options_of(server, run).id == "record_id"


def test_a_visit_is_chosen_in_a_menu(server):
    run = opened(server, pd.concat([plain(wave=1), plain(wave=2).head(60)]))
    page = server.page(f"/runs/{run}/check").text
    keys = [html.unescape(key) for key in re.findall(r'<option value="([^"]+)"[^>]*>wave \d', page)]
    assert "wave 1 (80 rows)" in page and "wave 2 (60 rows)" in page and len(keys) == 2
    server.use(run, {"visit": keys[1]})
    assert options_of(server, run).visit == (("wave", "2"),)
    page = server.page(f"/runs/{run}/check").text
    assert "59 of 60 rows" in page and "wave 1 (80 rows)" in page
    server.use(run, {"visit": ""})
    assert options_of(server, run).visit == ()


def cells(page, row):
    """The cells of a row of the Data page."""
    found = re.search(rf'<th scope="row">{row}</th>(.*?)</tr>', page)[1]
    return re.findall(r"<td[^>]*>(?:<span[^>]*>)?([^<]*)", found)


def test_the_data_are_shown_in_parts(server):
    frame = plain(**{f"r{j:02}": j % 4 for j in range(20)}).replace({"": None})
    run = opened(server, frame)
    server.page(f"/runs/{run}/check")
    page = server.get(f"/runs/{run}/data").text
    assert "Rows 1–50 of 80, columns 1–24 of 35" in page
    assert cells(page, "002")[:12] == [value or "·" for value in frame.loc[1, ITEMS].fillna("")]
    page = server.get(f"/runs/{run}/data?row=50&column=24").text
    assert "Rows 51–80 of 80, columns 25–35 of 35" in page and "Next rows" not in page
    for query, place in (
        ("who=077", "Rows 51–80"),
        ("who=78", "Rows 51–80"),
        ("find=q0", "columns 1–9 of 9"),
    ):
        assert place in server.get(f"/runs/{run}/data?{query}").text
    assert server.get(f"/runs/{run}/data?who=nobody").status == 404
    assert "No column is called" in server.get(f"/runs/{run}/data?find=%3Cscript%3E").text
    for wild in ("row=-1", "row=9999999999999", "column=x", "row=80"):
        assert "Rows 1–50 of 80" in server.get(f"/runs/{run}/data?{wild}").text


def test_odd_cells_are_marked(server, described):
    frame = table()
    frame.loc[0, "q01"], frame.loc[1, "q01"] = "9", "7"
    run = opened(server, frame, codebook=described)
    server.page(f"/runs/{run}/check")
    page = server.get(f"/runs/{run}/data").text
    assert re.search(r'>001</th><td class="code">9<', page)
    assert re.search(r'>002</th><td class="outside">7<', page)


def test_an_upload_that_cannot_be_read_is_no_run_and_is_replaced(server):
    bad = server.opened("broken.xlsx", b"no workbook")
    page = server.page(f"/runs/{bad}/check").text
    assert "Choose another file" in page and "Remove this file" in page
    listed = server.get("/history").text
    assert f"/runs/{bad}/check" in listed.partition("Files that could not be read")[2]
    assert bad not in server.get("/").text
    content = table().to_csv(index=False).encode()
    answer = server.post("/open", {"instead_of": bad}, files={"answers": ("good.csv", content)})
    good = answer.getheader("location").split("/")[2]
    assert not (server.folder / bad).exists()
    server.page(f"/runs/{good}/check")
    server.post("/open", {"instead_of": good}, files={"answers": ("other.csv", content)})
    assert (server.folder / good).exists()  # only what cannot be read is replaced
    for _ in range(2):
        server.page(f"/runs/{server.opened('letter.csv', b'Dear all,')}/check")
    assert "Remove all 2" in server.get("/history").text
    server.post("/unread")
    assert "could not be read" not in server.get("/history").text and (server.folder / good).exists()


def test_an_upload_that_becomes_readable_is_a_run(server):
    run = Run(server.folder / server.opened("letter.csv", b"Dear all,"))
    server.page(f"/runs/{run.id}/check")
    assert run.unread
    (run.folder / "data" / "letter.csv").write_text(table().to_csv(index=False))
    server.page(f"/runs/{run.id}/check")
    assert not run.unread


def test_like_findings_stand_in_one_card(server):
    frame = plain()
    for name in ("q08", "q10"):
        frame[name] = [str(3 - int(cell)) if cell else "" for cell in frame[name]]
    page = server.page(f"/runs/{opened(server, frame)}/check").text
    assert page.count("Reverse q03, q08, q10") == 1
    assert "3 items run against the others, so they look reversed: q03, q08, q10." in page
    for name in ("q03", "q08", "q10"):
        assert page.count(f">Reverse {name}</button>") == 1


def test_loadings_are_previewed_before_a_fit(server, described):
    run = server.opened(codebook=described)
    server.page(f"/runs/{run}/check")
    assert "data-at-once" in server.get(f"/runs/{run}/fit").text
    page = server.get(f"/runs/{run}/preview?k=3&beta=0.2")
    assert page.status == 200 and "3 factors, β 0.2, from 79 participants" in page.text
    shown = re.findall(r'<th scope="row">(q\d+)<small', page.text)
    assert sorted(shown) == ITEMS and "Question q01" in page.text
    for wrong in ("k=0&beta=0.1", "k=99&beta=0.1", "k=x&beta=0.1", "k=2&beta=-1", "k=2&beta=nan"):
        assert server.get(f"/runs/{run}/preview?{wrong}").status == 400
    bad = opened(server, table().replace({"9": "999"}))
    server.page(f"/runs/{bad}/check")
    assert "data-at-once" not in server.get(f"/runs/{bad}/fit").text
    refused = server.get(f"/runs/{bad}/preview?k=2&beta=0.1")
    assert refused.status == 400 and "999" in refused.text


def test_other_numbers_of_factors_are_seen_beside_the_results(server, done):
    assert 'id="look-k"' in server.get(f"/runs/{done}/results").text
    page = server.get(f"/runs/{done}/preview?k=2&beta=0.1").text
    assert "<small>like Mood</small>" in page and "<small>like Temper</small>" in page
    assert server.get(f"/runs/{done}/preview?k=1&beta=0.5").text.count("<small>like") <= 1


def test_columns_can_be_chosen_where_none_looks_like_an_item(server):
    frame = pd.DataFrame({"id": range(90), "wages": [j * 1.7 for j in range(90)], "hours": range(100, 190)})
    run = opened(server, frame)
    page = server.page(f"/runs/{run}/check").text
    assert "no column looks like answers" in page and 'value="wages"' in page and "Continue" not in page
    assert server.get(f"/runs/{run}/data").status == 200 and server.get(f"/runs/{run}/fit").status == 200
    assert not Run(server.folder / run).unread
    server.use(run, wages="item", hours="item")
    assert options_of(server, run).items == ("wages", "hours")
    assert "2: wages, hours" in server.page(f"/runs/{run}/check").text


def test_answers_under_names_that_say_nothing_are_asked_about(server):
    rng = np.random.default_rng(0)
    pairs = [(s, d) for s in range(60) for d in rng.choice(40, 25, replace=False)]
    frame = pd.DataFrame(pairs, columns=["s", "d"]).assign(y=rng.integers(1, 6, 1500))
    run = opened(server, frame)
    page = server.page(f"/runs/{run}/check").text
    assert "each row looks like one answer" in page and "Read each row as a participant" in page
    key = re.search(r'value="([^"]*)">Read s as participants, d as items and y as answers<', page)[1]
    server.post(f"/runs/{run}/remedy", {"remedy": html.unescape(key)})
    assert options_of(server, run).long == ("d", "y") and options_of(server, run).id == "s"
    assert "60 of 60 rows" in server.page(f"/runs/{run}/check").text
