"""The steps of an analysis, asked for as the pages ask for them."""

import filecmp
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from app_server import QUICK, Server
from dictionaries import loris, nda, redcap_xml
from icqf.app import process
from icqf.app.runs import Run, Runs
from icqf.workflow.options import StudyOptions, read_config
from small_study import ITEMS, table, weak_study

# A search that takes about a second.
SLOW = {**QUICK, "n_components": "1-5", "beta": "0.05, 0.1", "n_splits": "10", "n_repeats": "2"}


def messy():
    """999 for no answer in a few cells, one item reversed, one that nobody answered, no codebook."""
    study = table().replace({"9": "999"}).assign(q99="")
    return study.to_csv(index=False).encode()


def options_of(server, run):
    return StudyOptions.of(read_config(server.folder / run / "config.toml"))


def remedies(text):
    return {label: key for key, label in re.findall(r'name="remedy" value="(\w+)">([^<]*)<', text)}


def remedy(server, run, label):
    found = remedies(server.page(f"/runs/{run}/check").text)
    assert label in found, found
    assert server.post(f"/runs/{run}/remedy", {"remedy": found[label]}).status == 303
    return server.page(f"/runs/{run}/check")


def version_in(page):
    return re.search(r'name="version" value="([^"]*)"', page)[1]


def finished(run, seconds=60):
    until = time.monotonic() + seconds
    while process.is_running(run):
        assert time.monotonic() < until
        time.sleep(0.05)


def members(leader):
    """Processes of a group that are not ended."""
    found = subprocess.run(["ps", "-eo", "pgid=,stat="], capture_output=True, text=True).stdout.splitlines()
    return [line for line in found if line.split()[0] == str(leader) and "Z" not in line.split()[1]]


# --- check ------------------------------------------------------------------------------------------------


def test_what_is_found_can_be_mended_by_one_click_each(server):
    run = server.opened(content=messy())
    page = server.page(f"/runs/{run}/check")
    assert "Must be fixed" in page.text and "Continue to the fit" not in page.text
    remedy(server, run, "Treat 999 as missing")
    page = remedy(server, run, "Reverse q03")
    assert "Continue to the fit" in page.text and "Must be fixed" not in page.text
    found = options_of(server, run)
    assert found.missing_codes == (999.0,) and found.reverse == ("q03",)


def test_two_opposite_ends_say_when_to_leave_them(server):
    rng = np.random.default_rng(0)
    mood = rng.normal(size=(300, 1)) * np.repeat([1, -1], 4) + 0.7 * rng.normal(size=(300, 8))
    names = ["happy", "glad", "merry", "cheerful", "sad", "blue", "gloomy", "unhappy"]
    answers = pd.DataFrame(np.clip(np.rint(mood + 2), 0, 4).astype(int), columns=names)
    page = server.page(f"/runs/{server.opened(content=answers.to_csv(index=False).encode())}/check")
    assert "if each end is a trait or mood of its own, leave them unchanged." in page.text
    assert "Reverse sad, blue, gloomy, unhappy" in remedies(page.text)


def test_a_table_without_items_says_what_to_do_on_the_page(server):
    run = server.opened(content=b"id,a,b\n1,x,y\n2,z,w\n")
    page = server.page(f"/runs/{run}/check").text
    assert "Name the items with the ticks under “Columns”, or describe them with a codebook." in page


def test_a_zero_for_no_answer_is_mended_by_one_click(server):
    """A scale from 1 to 5 on which some have 0: read as it stands, the range would begin at 0."""
    values = weak_study(300, loading=0.7) + 1
    rng = np.random.default_rng(0)
    values[rng.random(values.shape) < 0.01] = 0
    names = [f"q{j:02}" for j in range(values.shape[1])]
    content = pd.DataFrame(values.astype(int), columns=names).to_csv(index=False).encode()
    run = server.opened(content=content)
    page = server.page(f"/runs/{run}/check").text
    assert "below a scale from 1 to 5 that is complete without it" in page and "0 to 5" in page
    page = remedy(server, run, "Treat 0 as missing").text
    assert options_of(server, run).missing_codes == (0.0,)
    assert "1 to 5" in page and "0 to 5" not in page and "complete without it" not in page
    assert "Treat 0 as missing" not in remedies(page)


def test_an_old_page_cannot_undo_what_another_tab_did(server):
    run = server.opened(content=messy())
    old = remedies(server.page(f"/runs/{run}/check").text)["Treat 999 as missing"]
    remedy(server, run, "Treat 999 as missing")
    answer = server.post(f"/runs/{run}/remedy", {"remedy": old})
    assert answer.status == 400 and "changed in another tab" in answer.text


def test_the_codebook_is_edited_in_place(server):
    run = server.opened(content=messy())
    server.page(f"/runs/{run}/check")
    page = server.get(f"/runs/{run}/codebook").text
    names = re.findall(r'name="name" value="([^"]*)"', page)
    assert names[:2] == ["q01", "q02"] and {"q99", "age", "sex"} < set(names)
    form = {"name": names, "version": version_in(page)}
    for at, name in enumerate(names[:12]):
        form |= {
            f"min-{at}": "0",
            f"max-{at}": "3",
            f"missing-{at}": "999",
            f"wording-{at}": f"<b>{name}</b>",
        }
        form |= {f"use-{at}": "on"} if name != "q05" else {}
        form |= {f"reverse-{at}": "on"} if name == "q03" else {}
    wrong = server.post(f"/runs/{run}/codebook", form | {"max-1": "many"})
    assert wrong.status == 400 and "not a number" in wrong.text and 'value="many"' in wrong.text
    assert server.post(f"/runs/{run}/codebook", form).getheader("location").endswith("check")
    page = server.page(f"/runs/{run}/check")
    assert "11: q01–q04, q06–q12" in page.text and "q03 by the codebook" in page.text
    book = pd.read_csv(options_of(server, run).codebook)
    assert book["wording"][0] == "<b>q01</b>" and list(book["direction"].dropna()) == ["reverse"]
    assert "&lt;b&gt;q01&lt;/b&gt;" in server.get(f"/runs/{run}/codebook").text


def test_a_file_that_cannot_be_read_says_so(server):
    run = server.opened("broken.xlsx", b"no workbook")
    page = server.page(f"/runs/{run}/check")
    assert page.status == 200 and "broken.xlsx: this cannot be read" in page.text
    assert server.get(f"/runs/{run}/codebook").status == 400


def test_an_spss_file_is_described_by_its_own_labels(server, tmp_path):
    import pyreadstat

    study = table().replace({"": None, "9": None}).astype(dict.fromkeys(ITEMS, float))
    labels = {name: {0.0: "never", 1.0: "at times", 2.0: "often", 3.0: "always"} for name in ITEMS}
    path = tmp_path / "study.sav"
    pyreadstat.write_sav(study, path, variable_value_labels=labels, column_labels=dict.fromkeys(ITEMS, "<i>"))
    run = server.opened(path.name, path.read_bytes())
    page = server.page(f"/runs/{run}/check").text
    assert "0 to 3, from the file&#39;s own labels" in page and "Reverse q03" in remedies(page)
    assert 'value="&lt;i&gt;"' in server.get(f"/runs/{run}/codebook").text


def test_a_redcap_export_is_described_by_its_dictionary(server):
    study = table().replace({"9": ""}).drop(columns="weight").assign(mood_complete="2")
    choices = "0, Never | 1, At times | 2, Often | 3, Always"
    fields = [("record_id", "text", "Record", "")]
    fields += [(name, "radio", f"<p>Question {name}</p>", choices) for name in ITEMS]
    fields += [("age", "text", "Age", ""), ("sex", "text", "Sex", "")]
    heads = ["Variable / Field Name", "Field Type", "Field Label", "Choices, Calculations, OR Slider Labels"]
    dictionary = pd.DataFrame(fields, columns=heads).to_csv(index=False).encode()
    content = study.to_csv(index=False).encode()
    run = server.opened("export.csv", content, dictionary=("dictionary.csv", dictionary))
    page = server.page(f"/runs/{run}/check").text
    assert "12: q01–q12" in page and "from the file&#39;s own labels or description" in page
    assert options_of(server, run).dictionary.name == "dictionary.csv"


@pytest.mark.parametrize("kind", [nda, loris, redcap_xml])
def test_dictionaries_are_recognised_where_a_codebook_is_dropped(server, tmp_path, kind):
    data, *book = [kind(tmp_path)] if kind is redcap_xml else kind(tmp_path)
    more = {"codebook": (book[0].name, book[0].read_bytes())} if book else {}
    run = server.opened(data.name, data.read_bytes(), **more)
    page = server.page(f"/runs/{run}/check").text
    assert "10: " in page and "from the file&#39;s own labels or description" in page
    if kind is loris:
        return
    assert "147 answers (12.3 % of all) to 3 items were not asked for" in page
    assert "Count them as the lowest answer" in remedies(page)
    remedy(server, run, "Count them as the lowest answer")
    assert options_of(server, run).not_asked == "lowest"
    assert "6 answers (0.5 % of all)" in server.page(f"/runs/{run}/check").text


def test_confounds_come_from_a_table_of_participants_and_settings_are_forgotten(server):
    study = table().replace({"9": ""})
    people = study[["record_id", "age", "sex"]].assign(site="<i>a</i>").to_csv(index=False).encode()
    answers = study.drop(columns=["age", "sex"]).to_csv(index=False).encode()
    run = server.opened(content=answers, participants=("people.csv", people))
    names = re.findall(r'name="column" value="([^"]*)"', server.page(f"/runs/{run}/check").text)
    assert names == ["record_id", *ITEMS, "weight", "age", "sex", "site"]
    ranges = {"missing_codes": "", "confound_ranges": "age=5:21"}
    server.use(run, ranges, age="confound", site="group")
    found = options_of(server, run)
    assert (found.confounds, found.confound_ranges, found.groups) == (("age",), (("age", 5.0, 21.0),), "site")
    assert "Continue to the fit" in server.page(f"/runs/{run}/check").text
    Run(server.folder / run).save(replace(found, confounds=("nobody",)))
    page = server.page(f"/runs/{run}/check").text
    assert "Must be fixed" in page and "Discard all settings" in page
    server.post(f"/runs/{run}/reset")
    assert options_of(server, run).confounds == () and options_of(server, run).participants is not None
    assert "Continue to the fit" in server.page(f"/runs/{run}/check").text


# --- fit --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"n_components": "many"}, "“Number of factors” must be &#39;auto&#39;"),
        ({"beta": "-1"}, "“Penalty β” must be a number of at least 0"),
        ({"n_splits": "1"}, "“Folds” must be a whole number of at least 2"),
        ({"rule": "best"}, "“Selection rule” &#39;best&#39; is not known"),
        ({"tol": "x"}, "“Tolerance” must be a number"),
    ],
)
def test_options_that_mean_nothing_are_refused_where_they_are_typed(server, given, said):
    run = server.opened()
    answer = server.post(f"/runs/{run}/fit", {"n_components": "2", "beta": "0.1", **QUICK, **given})
    assert answer.status == 400 and said in answer.text, answer.text
    assert not process.is_running(Run(server.folder / run))


def test_a_fit_that_is_refused_says_why(server):
    run = server.opened(content=messy())
    page = server.fitted(run)
    assert "The fit failed" in page.text and "999" in page.text


def test_the_command_line_repeats_a_run_to_the_byte(server, done, tmp_path):
    shown = re.search(r'<pre class="command"[^>]*>(icqf fit [^<]*)<', server.get(f"/runs/{done}/fit").text)[1]
    words = shown.replace("--out results", f"--out {tmp_path / 'again'}").split()[1:]
    subprocess.run([sys.executable, "-m", "icqf", *words, "--quiet"], check=True)
    ours, again = server.folder / done / "results", tmp_path / "again"
    names = sorted(path.name for path in ours.iterdir())
    assert names == sorted(path.name for path in again.iterdir())
    told = {"provenance.json", "config.toml"}  # these say when it was, and where the files are
    same, other, absent = filecmp.cmpfiles(ours, again, [name for name in names if name not in told], False)
    assert (other, absent) == ([], [])
    assert {"loadings.csv", "scores.csv", "factors.csv", "model.icqf", "report.html"} < set(same)


def test_a_fit_outlives_its_server_and_is_cancelled_and_continued(tmp_path, described):
    first = Server(tmp_path)
    run = Run(tmp_path / first.opened(codebook=described))
    first.post(f"/runs/{run.id}/fit", SLOW)
    leader = int((run.folder / process.LOCK).read_text())
    os.killpg(leader, signal.SIGSTOP)  # until another server is there
    process.start(run)  # as another server would: one process fits a run
    first.post(f"/runs/{run.id}/continue")
    assert int((run.folder / process.LOCK).read_text()) == leader
    first.process.kill()
    first.end()
    second = Server(tmp_path, port=first.port)
    try:
        tab = second.get(f"/runs/{run.id}/fit", Cookie=first.cookie)  # which was open all the time
        assert tab.status == 200 and process.is_running(run) and "Cancel</button>" in tab.text
        assert "running" in second.get("/history").text
        os.killpg(leader, signal.SIGCONT)
        until = time.monotonic() + 60
        journal = run.folder / process.JOURNAL
        while not journal.exists() or journal.read_bytes().count(b"\n") < 2:
            assert time.monotonic() < until and process.is_running(run)
            time.sleep(0.02)
        assert second.post(f"/runs/{run.id}/cancel").status == 303
        assert not process.is_running(run) and members(leader) == []
        page = second.get(f"/runs/{run.id}/fit").text
        assert "The fit was stopped" in page and "Continue the fit" in page
        assert journal.read_bytes().count(b"\n") > 1  # finished fits are kept
        second.post(f"/runs/{run.id}/continue")
        assert second.page(f"/runs/{run.id}/fit").status == 200
        assert run.done and not journal.exists()
    finally:
        second.end()


def test_a_run_that_is_being_fitted_is_ended_before_it_is_removed(server, described):
    run = Run(server.folder / server.opened(codebook=described))
    server.post(f"/runs/{run.id}/fit", SLOW)
    leader = (run.folder / process.LOCK).read_text()
    server.post(f"/runs/{run.id}/remove")
    assert not run.folder.exists() and members(int(leader)) == []


# --- results ----------------------------------------------------------------------------------------------


def test_factors_are_named_and_counted_otherwise(server, described):
    run = server.opened(codebook=described)
    server.fitted(run, n_components="1-3", beta="0.1, 0.2", n_splits="3")
    page = server.get(f"/runs/{run}/results").text
    assert "shown here" in page and page.count("(reversed)</p>") + page.count("(reversed) · ") > 0
    suggested = re.findall(r'name="name-factor\d" value="" placeholder="(\w+)"', page)
    assert sorted(suggested) == ["Mood", "Temper"]
    given = [f"{name} & more <b>" for name in suggested]
    assert (
        server.post(f"/runs/{run}/names", {"name-factor1": given[0], "name-factor2": given[1]}).status == 303
    )
    page = server.get(f"/runs/{run}/results").text
    assert f'value="{suggested[0]} &amp; more &lt;b&gt;"' in page and "icqf report results --names" in page
    scores = server.get(f"/runs/{run}/files/results/scores.csv")
    assert scores.text.startswith(f"record_id,{given[0]},{given[1]}")
    assert scores.getheader("content-disposition").startswith("attachment")
    swapped = server.post(f"/runs/{run}/names", {"name-factor1": given[1], "name-factor2": given[0]})
    assert swapped.status == 400 and "order" in swapped.text
    other = server.post(f"/runs/{run}/number", {"n_components": "3"}).getheader("location").split("/")[2]
    finished(Run(server.folder / other))
    account = json.loads((server.folder / other / "results" / "provenance.json").read_text())
    assert account["model"]["n_components"] == 3 and account["model"]["chosen_by"] == "given"
    assert f"/runs/{other}" in server.get(f"/runs/{run}/results").text
    assert server.post(f"/runs/{run}/number", {"n_components": "7"}).status == 400


def test_a_fitted_run_stays_as_it_is(server, done):
    before = (server.folder / done / "config.toml").read_bytes()
    for path, form in (
        ("columns", {"column": "age", "use-0": "id"}),
        ("fit", {"n_components": "3"}),
        ("codebook", {}),
    ):
        answer = server.post(f"/runs/{done}/{path}", form)
        assert answer.status == 400 and "cannot be changed" in answer.text
    assert (server.folder / done / "config.toml").read_bytes() == before
    new = server.post(f"/runs/{done}/again").getheader("location").split("/")[2]
    assert new != done and options_of(server, new).confounds == ("age", "sex")
    assert options_of(server, new).answers.parent.parent.name == new


def test_new_participants_are_scored(server, done):
    new = table(seed=1, n=9).to_csv(index=False).encode()
    page = server.post(f"/runs/{done}/score", files={"answers": ("new & old.csv", new)})
    assert page.status == 200 and "Scores of 9 participants" in page.text
    (name,) = re.findall(r'files/scores/([^"]*)" download>Download', page.text)
    assert len(server.get(f"/runs/{done}/files/scores/{name.replace(' ', '%20')}").text.splitlines()) == 10
    wrong = server.post(f"/runs/{done}/score", files={"answers": ("x.csv", b"a,b\n1,2\n")})
    assert wrong.status == 400 and "is not a column of the table" in wrong.text


def test_what_was_chosen_can_be_undone(server):
    run = server.opened()
    assert "Discard all settings" not in server.page(f"/runs/{run}/check").text
    server.use(run, age="confound")
    assert "Discard all settings" in server.page(f"/runs/{run}/check").text
    server.post(f"/runs/{run}/reset")
    assert options_of(server, run).confounds == ()


def test_one_visit_of_several_is_scored(server, done):
    new = table(seed=1, n=9)
    both = pd.concat([new.assign(wave=wave) for wave in (1, 2)]).to_csv(index=False).encode()
    asked = server.post(f"/runs/{done}/score", files={"answers": ("visits.csv", both)})
    assert asked.status == 400 and "distinguishes visits. Choose the file again" in asked.text
    assert 'name="visit"' in asked.text and 'value="wave=1"' in asked.text and "visit={" not in asked.text
    page = server.post(f"/runs/{done}/score", {"visit": "wave=2"}, files={"answers": ("visits.csv", both)})
    assert page.status == 200 and "Scores of 9 participants" in page.text and "--visit wave=2" in page.text


def test_two_models_are_compared(server, done):
    page = server.post("/compare", {"first": done, "second": done})
    assert "2 matched pairs over 12 items" in page.text and "1.000" in page.text
    model = (server.folder / done / "results" / "model.icqf").read_bytes()
    page = server.post("/compare", {"first": done}, files={"model": ("other.icqf", model)})
    assert "2 matched pairs" in page.text
    assert server.post("/compare", {"first": done, "second": ""}).status == 400
    assert server.post("/compare", {"first": done}, files={"model": ("x.icqf", b"no model")}).status == 400


def test_all_files_come_in_one_archive(server, done):
    answer = server.get(f"/runs/{done}/all.zip")
    assert answer.getheader("content-type") == "application/zip" and answer.text.startswith("PK")


# --- start ------------------------------------------------------------------------------------------------


def test_a_folder_is_chosen_on_the_page(server, tmp_path):
    before = sorted(server.folder.iterdir())
    assert server.post("/folder", {"folder": str(tmp_path / "two")}).status == 303
    try:
        assert server.post("/demo").status == 303 and len(list(Runs(tmp_path / "two"))) == 1
        for wrong in ("", "two", f"{server.folder}/.icqf-app"):
            assert server.post("/folder", {"folder": wrong}).status == 400
    finally:
        server.post("/folder", {"folder": str(server.folder)})
    assert sorted(server.folder.iterdir()) == before


def test_a_port_that_is_taken_is_said(server, tmp_path):
    words = ["app", "--folder", str(tmp_path), "--port", str(server.port), "--no-open"]
    done = subprocess.run([sys.executable, "-m", "icqf", *words], capture_output=True, text=True)
    assert done.returncode == 2 and "--port" in done.stderr and "Traceback" not in done.stderr
