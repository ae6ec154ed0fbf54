"""Runs that somebody else has put into the folder: nothing outside is touched, and no page is lost."""

import contextlib
import json
import os
import re
import shutil
import socket
import time

import pytest

from app_server import QUICK, Server
from icqf.app import process
from icqf.app.runs import ABOUT, Runs
from icqf.workflow.results_folder import safe_name
from small_study import table

STEPS = (
    "",
    "/check",
    "/look",
    "/data",
    "/rows",
    "/codebook",
    "/fit",
    "/progress",
    "/results",
    "/report",
    "/all.zip",
    "/score",
)
FORMS = {
    **{"fit": QUICK | {"n_components": "2", "beta": "0.1"}, "continue": {}, "cancel": {}, "reset": {}},
    **{"columns": {"column": "age", "use-0": "confound"}, "remedy": {"remedy": "x"}},
    **{"codebook": {"name": "q01"}, "again": {}, "rows": {"header_row": "1"}},
    **{"names": {"name-factor1": "A", "name-factor2": "B"}, "number": {"n_components": "1"}},
}


def copied(server, done, *, fitted=True):
    """A run of one's own with data, and results where they are asked for."""
    run = Runs(server.folder).again(Runs(server.folder).get(done))
    if fitted:
        shutil.copytree(server.folder / done / "results", run.results)
    return run


def everything(folder):
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else b"" for p in folder.rglob("*")}


def try_all(server, run):
    """Click on everything there is; the answers' codes, without those of a run that is not there."""
    new = {"answers": ("people.csv", table(seed=1, n=9).to_csv(index=False).encode())}
    codes = {step: server.get(f"/runs/{run.id}{step}").status for step in STEPS}
    codes |= {name: server.post(f"/runs/{run.id}/{name}", form).status for name, form in FORMS.items()}
    codes["score"] = server.post(f"/runs/{run.id}/score", files=new).status
    codes["compare"] = server.post("/compare", {"first": run.id, "second": run.id}).status
    return codes


@pytest.fixture
def outside(tmp_path):
    """What no run may touch: a file, and a folder with one in it."""
    folder = tmp_path / "outside"
    (folder / "inner").mkdir(parents=True)
    (folder / "file.txt").write_text("of somebody else")
    (folder / "inner" / "file.txt").write_text("of somebody else")
    return folder


LINKS = [
    *("log.txt", "fit.lock", "progress.json", "results.journal", "config.toml", "run.json"),
    *("scores", "new", "data", "results", "results/figures", "results/scores.csv", "results/model.icqf"),
    *("data/answers.csv", "scores/people-scores.csv"),
]


@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.parametrize("name", LINKS)
def test_a_link_is_never_written_through(server, done, outside, name, fitted):
    run = copied(server, done, fitted=fitted)
    place = run.folder / name
    content = place.read_bytes() if place.is_file() else None
    target = outside / ("file.txt" if place.suffix or name == "fit.lock" else "inner")
    if content is not None:
        target.write_bytes(content)  # so that it looks right
    before = everything(outside)
    shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(target)
    codes = try_all(server, run)
    assert everything(outside) == before
    assert not [name for name, code in codes.items() if code >= 500], server.said[-3000:]
    assert "damaged" in server.get("/history").text
    assert server.post(f"/runs/{run.id}/remove").status == 303
    assert everything(outside) == before and not run.folder.exists()


@pytest.mark.parametrize(
    "name",
    ["log.txt", *(pytest.param(name, marks=pytest.mark.long) for name in ("fit.lock", "progress.json"))],
)
def test_a_second_name_of_a_file_is_not_written_to(server, done, outside, name):
    run = copied(server, done, fitted=False)
    (run.folder / "log.txt").touch()
    (run.folder / name).unlink(missing_ok=True)
    os.link(outside / "file.txt", run.folder / name)
    assert server.post(f"/runs/{run.id}/continue").status == 303
    server.page(f"/runs/{run.id}/fit")
    assert (outside / "file.txt").read_text() == "of somebody else"
    server.post(f"/runs/{run.id}/remove")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize(
    "name", ["log.txt", "fit.lock", "run.json", "config.toml", "results/provenance.json"]
)
def test_a_pipe_holds_nobody_up(server, done, name):
    run = copied(server, done)
    (run.folder / name).unlink(missing_ok=True)
    os.mkfifo(run.folder / name)
    assert server.get("/history").status == 200
    assert not [code for code in try_all(server, run).values() if code >= 500]
    server.post(f"/runs/{run.id}/remove")


ABOUTS = [
    b"[" * 10**5,
    b"\xff",
    b"null",
    b'{"title": 5, "created": []}',
    b'{"title": "a", "created": "0001-01-01T00:00:00+23:59"}',
    b'{"title": "a", "created": "9999-12-31T23:59:59-23:59"}',
    b'{"title": "a", "created": "2026-01-01T00:00:00", "of": {"a": 1}}',
    b'{"title": "\\ud800", "created": "2026-01-01T00:00:00+00:00"}',
    json.dumps({"title": "x" * 10**6, "created": "2026-01-01T00:00:00+00:00"}).encode(),
]
WHOLE = {"n_components": 2, "beta": 0.1, "chosen_by": "given"}
ACCOUNTS = [
    b"[" * 10**5,
    json.dumps({"model": WHOLE | {"beta": 10**401}, "rows": {"fitted": 1}, "items": 2}).encode(),
    json.dumps({"model": WHOLE | {"n_components": 10**401}, "rows": {"fitted": 1}, "items": 2}).encode(),
    json.dumps({"model": WHOLE | {"beta": float("nan")}, "rows": {"fitted": 1}, "items": 2}).encode(),
    b'{"model": {"n_components": 1, "beta": 1e999, "chosen_by": ""}, "rows": {"fitted": 1}, "items": 2}',
    json.dumps({"model": WHOLE | {"chosen_by": "\ud800"}, "rows": {"fitted": 1}, "items": 2}).encode(),
    json.dumps({"model": WHOLE, "rows": {"fitted": 1}, "items": 2, "warnings": 5}).encode(),
    json.dumps({"model": [], "rows": "a", "items": 2}).encode(),
]
PROGRESSES = [
    b'{"what": "\\ud800", "text": "", "done": 1e999, "total": 1}',
    b"[" * 10**5,
    b'{"what": "\\ud800", "text": "", "done": 1, "total": 1}',
]


@pytest.mark.parametrize(
    ("name", "content"),
    [(ABOUT, each) for each in ABOUTS]
    + [("results/provenance.json", each) for each in ACCOUNTS]
    + [("progress.json", each) for each in PROGRESSES],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_one_damaged_run_leaves_every_page(server, done, name, content):
    run = copied(server, done)
    (run.folder / name).write_bytes(content)
    try:
        for path in ("/", "/history", "/compare", f"/runs/{done}/results", f"/runs/{run.id}/remove"):
            assert server.get(path).status == 200, path
        assert not [code for code in try_all(server, run).values() if code >= 500]
    finally:
        assert server.post(f"/runs/{run.id}/remove").status == 303


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may read everything")
def test_a_run_that_may_not_be_read_is_damaged(server, done):
    run = copied(server, done)
    run.folder.chmod(0)
    try:
        assert server.get("/").status == 200
    finally:
        run.folder.chmod(0o700)
        server.post(f"/runs/{run.id}/remove")


CONFIGS = [
    b'answers = "~nouser/answers.csv"',
    b'answers = "/etc/passwd"',
    b'answers = "../../outside.csv"',
    b'answers = "data/a\\u0000b.csv"',
    b'answers = "data/nothing.csv"',
    b"answers = " + b"[" * 10**4,
    b'answers = "data"',
    b'answers = "' + b"a" * 5000 + b'"',
    b'answers = "data/answers.csv"\njobs = 99999999999999999999',
    b'answers = "data/answers.csv"\nseed = -1\nbeta = [1e999]',
    b"\xff",
    b"",
]


@pytest.mark.parametrize("content", CONFIGS, ids=range(len(CONFIGS)))
def test_settings_that_cannot_be_are_said(server, done, content):
    run = copied(server, done, fitted=False)
    run.config.write_bytes(content)
    codes = try_all(server, run)
    assert not [name for name, code in codes.items() if code >= 500], server.said[-3000:]
    server.page(f"/runs/{run.id}/fit")
    for other in Runs(server.folder):
        if other.about["of"] == run.id:
            server.post(f"/runs/{other.id}/remove")
    server.post(f"/runs/{run.id}/remove")


def test_a_file_outside_its_folder_is_not_read(server, done, outside):
    run = copied(server, done, fitted=False)
    (outside / "answers.csv").write_bytes(table().to_csv(index=False).encode())
    run.config.write_text(f'answers = "{outside / "answers.csv"}"\n')
    answer = server.get(f"/runs/{run.id}/check")
    assert answer.status == 400 and "outside its folder" in answer.text
    assert server.post(f"/runs/{run.id}/fit", FORMS["fit"]).status == 400
    server.post(f"/runs/{run.id}/remove")


def test_no_new_run_is_made_from_one_without_data(server, done):
    run = copied(server, done)
    shutil.rmtree(run.folder / "data")
    before = len(list(Runs(server.folder)))
    answer = server.post(f"/runs/{run.id}/again")
    assert answer.status == 400 and "files of this run are missing" in answer.text
    assert len(list(Runs(server.folder))) == before
    server.post(f"/runs/{run.id}/remove")


def test_nothing_in_a_run_is_imported(server, done, tmp_path):
    """Modules beside the data, which processes that are started in the run's folder would find first."""
    run = copied(server, done, fitted=False)
    code = f"open({str(tmp_path / 'imported')!r}, 'a').write(__name__)\n"
    for name in ("joblib", "numpy", "icqf", "sitecustomize", "encodings"):
        (run.folder / name).mkdir()
        (run.folder / name / "__init__.py").write_text(code)
        (run.folder / f"{name}.py").write_text(code)
    server.fitted(run.id, n_components="1-2", beta="0.1, 0.5", n_splits="3", jobs="2")
    assert run.done, process.log_text(run)
    assert not (tmp_path / "imported").exists()
    server.post(f"/runs/{run.id}/remove")


@pytest.mark.parametrize(
    "tried", [5, "text", [1], [{"n_components": "x"}], [{"n_components": 1, "beta": None}]]
)
def test_a_provenance_that_describes_no_search_is_refused(server, done, tried):
    run = copied(server, done)
    path = run.results / "provenance.json"
    kept = json.loads(path.read_text())
    kept["model"]["tried"] = tried
    path.write_text(json.dumps(kept))
    assert server.get(f"/runs/{run.id}/results").status == 400
    assert server.post(f"/runs/{run.id}/number", {"n_components": "1"}).status == 400
    server.post(f"/runs/{run.id}/remove")


def test_results_from_before_the_first_zip_come_in_one_archive(server, done, tmp_path):
    run = copied(server, done)
    os.utime(run.results / "scores.csv", (0, 0))
    assert server.get(f"/runs/{run.id}/all.zip").status == 200
    server.post(f"/runs/{run.id}/remove")


# --- names, tabs, connections -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["ä" * 200 + ".csv", "😀" * 100 + ".csv", "a" * 3000 + ".csv", "." * 50 + ".csv", "con.csv", "-.csv"]
    + [" .csv", "%00.csv", "a\tb.csv", "‮.csv", "ZÄ̈̈̈" * 60 + ".csv", "NUL", "..", "a.csv."],
)
def test_any_name_of_a_file_is_taken_or_refused(server, name):
    content = table().to_csv(index=False).encode()
    answer = server.post("/open", files={"answers": (name, content)})
    assert answer.status in (303, 400), answer.text
    if answer.status == 303:
        run = answer.getheader("location").split("/")[2]
        assert server.page(f"/runs/{run}/check").status == 200
        server.post(f"/runs/{run}/remove")
    assert len(safe_name(name).encode()) < 200


@pytest.mark.parametrize("charset", ["utf-7", "unicode_escape", "punycode", "undefined", "x-none"])
def test_names_in_unusual_alphabets(server, charset):
    body = (
        b'--m\r\nContent-Disposition: form-data; name=answers; filename="\\ud800.csv"\r\n\r\n'
        + table().to_csv(index=False).encode()
        + b"\r\n--m--\r\n"
    )
    kind = f"multipart/form-data; boundary=m; charset={charset}"
    more = {"Cookie": server.cookie, "Origin": f"http://{server.host}", "Content-Type": kind}
    assert server.ask("POST", "/open", body, **more).status in (303, 400)


def test_a_second_file_of_the_same_stem_keeps_the_scores_of_the_first(server, done):
    comma = table(seed=1, n=9).to_csv(index=False).encode()
    tab = table(seed=2, n=7).to_csv(index=False, sep="\t").encode()
    made = []
    for name, content in (("people.csv", comma), ("people.tsv", tab), ("people.csv", comma)):
        page = server.post(f"/runs/{done}/score", files={"answers": (name, content)})
        assert page.status == 200, page.text
        made += re.findall(r'files/scores/([^"]*)" download>Download', page.text)
    lines = [len(server.get(f"/runs/{done}/files/scores/{name}").text.splitlines()) for name in made]
    assert len(set(made)) == 3 and lines == [10, 8, 10]


def fields_of(page):
    """What a browser would send of the codebook's page."""
    names = re.findall(r'name="name" value="([^"]*)"', page)
    form = {"name": names, "version": re.search(r'name="version" value="([^"]*)"', page)[1]}
    form |= dict(
        re.findall(r'name="((?:wording|min|max|subscale|missing|labels)-\d+)" value="([^"]*)"', page)
    )
    return form | dict.fromkeys(re.findall(r'name="((?:use|reverse)-\d+)"[^>]* checked', page), "on")


def test_an_older_tab_does_not_undo_the_codebook_of_a_newer(server, described):
    run = server.opened(codebook=described)
    server.page(f"/runs/{run}/check")
    address = f"/runs/{run}/codebook"
    one, two = (fields_of(server.page(address).text) for _ in range(2))
    assert server.post(address, one | {"wording-0": "of the first tab"}).status == 303
    server.page(f"/runs/{run}/check")
    answer = server.post(address, two | {"wording-1": "of the second tab"})
    assert answer.status == 409 and "Changed in another tab" in answer.text
    assert "saved “of the first tab”, yours “Question q01”" in answer.text
    assert 'value="of the second tab"' in answer.text  # what was typed is not lost
    assert "of the first tab" in server.page(address).text
    mine = fields_of(answer.text)
    assert server.post(address, mine).status == 303  # it was seen, and is wanted
    server.page(f"/runs/{run}/check")
    page = server.page(address).text
    assert "of the second tab" in page and "of the first tab" not in page
    server.post(f"/runs/{run}/remove")


HALVES = {
    "nothing": b"",
    "half a line": b"GET / HT",
    "half a head": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Much: ",
    "half a second request": b"GET / HTTP/1.1\r\nHost: elsewhere\r\n\r\nGET / HTTP/1.1\r\nHost",
}


@pytest.fixture(scope="module")
def impatient(tmp_path_factory):
    """An app that waits for the head of a request for two seconds, and looks often."""
    seconds = "from icqf.app import guard as g; g.SECONDS_FOR_HEAD, g._EACH = 2.0, 0.1"
    found = Server(tmp_path_factory.mktemp("impatient"), before=seconds)
    yield found
    found.end()


def test_half_a_request_and_a_head_that_comes_in_drops_are_not_waited_for(impatient):
    """The other side falls silent or dawdles, and the connection is closed after a while; all at once."""
    address, until = ("127.0.0.1", impatient.port), time.monotonic() + 60
    with contextlib.ExitStack() as lines:
        silent = {half: lines.enter_context(socket.create_connection(address)) for half in HALVES}
        for half, line in silent.items():
            line.sendall(HALVES[half])
        drops, ended = lines.enter_context(socket.create_connection(address)), False
        drops.settimeout(0.1)
        drops.sendall(b"GET / HTTP/1.1\r\n")
        while not ended and time.monotonic() < until:
            with contextlib.suppress(TimeoutError):
                try:
                    drops.sendall(b"x")
                    ended = drops.recv(1) == b""
                except (BrokenPipeError, ConnectionResetError):
                    ended = True
        assert ended
        for line in silent.values():
            line.settimeout(30)
            while line.recv(2**16):
                pass  # the answer to the first request, where there was a whole one


def test_somebody_who_comes_back_to_a_kept_connection_is_answered(impatient):
    import http.client

    line = http.client.HTTPConnection("127.0.0.1", impatient.port, timeout=30)
    for _ in range(3):
        line.request("GET", "/history", headers={"Host": impatient.host, "Cookie": impatient.cookie})
        answer = line.getresponse()
        assert answer.status == 200 and answer.read()
        time.sleep(0.3)  # the app looks at the connection meanwhile
    line.close()


def test_a_fault_page_leads_back_to_the_app_only(server):
    for came in ("http://[", "http://elsewhere//evil", f"http://{server.host}//elsewhere", "javascript:a"):
        answer = server.get("/runs/none-0/check", Referer=came)
        assert answer.status == 404
        answer = server.post("/folder", {"folder": ""}, Referer=came)
        assert answer.status == 400 and 'class="button" href="/">Back' in answer.text


def test_what_a_fit_says_at_its_end_is_true(server, described):
    """Ended at once: no results, and it is not said that nothing was written, as there is a progress file."""
    run = server.opened(codebook=described)
    asked = QUICK | {"n_components": "1-8", "beta": "auto", "n_splits": "10", "n_repeats": "20"}
    server.post(f"/runs/{run}/fit", asked)
    place = server.folder / run
    until = time.monotonic() + 60
    while not (place / process.PROGRESS).exists() and time.monotonic() < until:
        time.sleep(0.01)
    server.post(f"/runs/{run}/cancel")
    said = (place / process.LOG).read_text()
    assert "Stopped." in said and "Nothing was written" not in said
    server.post(f"/runs/{run}/remove")
