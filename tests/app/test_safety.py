"""The app answers its own pages on this machine, and nobody else."""

import asyncio
import os
import re
import shutil
import socket
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from app_server import QUICK, Server
from icqf.app import process
from icqf.app.guard import Guard
from icqf.app.runs import Runs
from icqf.app.server import is_loopback, make_app
from icqf.cli.program import cli
from icqf.errors import InputError
from icqf.io.formats import TEXT
from icqf.workflow.results_folder import safe_name
from small_study import table

SCRIPT = "<script>alert('x')</script>"


def everything_under(folder):
    return [folder, *folder.rglob("*")]


# --- who may speak with it --------------------------------------------------------------------------------


def test_it_listens_on_this_machine_only(server):
    table_of_sockets = Path("/proc/net/tcp")
    if not table_of_sockets.exists():
        pytest.skip("only Linux lists its sockets in a file")
    bound = re.findall(rf"([0-9A-F]{{8}}):{server.port:04X} 00000000:0000 0A", table_of_sockets.read_text())
    assert bound == ["0100007F"]


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.org"])
def test_an_address_that_others_reach_is_refused(host, tmp_path):
    assert not is_loopback(host)
    done = CliRunner().invoke(cli, ["app", "--folder", str(tmp_path), "--host", host, "--no-open"])
    assert done.exit_code == 2
    assert "other computers could reach the app" in done.stderr and "--allow-other-machines" in done.stderr


def test_with_the_flag_it_warns_and_every_start_has_its_own_token(server, tmp_path):
    found = Server(tmp_path, "--host", "0.0.0.0", "--allow-other-machines")
    try:
        assert "Warning: other computers can reach this app." in found.said
        assert len(server.token) >= 32 and found.token != server.token
        assert found.cookie.partition("=")[2] != server.cookie.partition("=")[2]
        assert found.get("/history").status == 200
        answer = found.post("/folder", {"folder": "/"})  # nobody else chooses where files are written
        assert answer.status == 400 and "chosen where the app is started" in answer.text
    finally:
        found.end()


def test_nobody_is_let_in_without_the_token(server):
    for path in ("/", "/history", "/static/app.js", "/compare"):
        answer = server.ask("GET", path)
        assert answer.status == 403 and "address that icqf app printed" in answer.text
    for token in ("", "x", server.token[:-1], server.token + "x"):
        answer = server.ask("GET", f"/start?token={token}")
        assert answer.status == 403 and answer.getheader("set-cookie") is None


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(server):
    given = server.ask("GET", f"/start?token={server.token}").getheader("set-cookie").lower()
    assert "httponly" in given and "samesite=strict" in given
    assert server.token not in given
    assert server.get("/", Cookie="icqf-1=x").status == 403
    assert server.get("/", Cookie=server.cookie.partition("=")[0] + "=").status == 403


@pytest.mark.parametrize("host", ["evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", None])
def test_a_name_that_points_here_is_refused(server, host):
    shown = None if host is None else host.format(port=server.port)
    assert server.get("/", Host=shown).status in (400, 421)


def test_localhost_is_an_address_of_its_own(server):
    host = f"localhost:{server.port}"
    assert server.get("/", Host=host).status == 200
    assert server.post("/demo", Host=host, Origin=f"http://{server.host}").status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": None},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Cookie": None},
    ],
    ids=str,
)
def test_forms_of_other_pages_change_nothing(server, headers):
    before = sorted(server.folder.iterdir())
    assert server.post("/demo", **headers).status == 403
    assert sorted(server.folder.iterdir()) == before


def test_other_sites_read_nothing(server):
    assert server.get("/", Origin="http://evil.example").status == 403
    assert server.get("/", **{"Sec-Fetch-Site": "cross-site"}).status == 403
    answer = server.get("/")
    assert answer.getheader("access-control-allow-origin") is None
    assert answer.getheader("cross-origin-resource-policy") == "same-origin"


def test_there_is_no_websocket(server):
    key = {"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", **key}
    for origin in (f"http://{server.host}", "http://evil.example"):
        assert server.get("/", Origin=origin, **upgrade).status != 101


def test_nothing_is_changed_by_following_a_link(server, done):
    for path in ("demo", "open", f"runs/{done}/cancel", f"runs/{done}/again", f"runs/{done}/names"):
        assert server.get(f"/{path}").status == 405


# --- what pages may do ------------------------------------------------------------------------------------


def test_pages_load_nothing_from_elsewhere_and_run_no_inline_script(server, done):
    steps = ("check", "fit", "results", "score", "compare", "codebook", "data", "remove")
    for path in ("/", "/history", "/compare", *(f"/runs/{done}/{step}" for step in steps)):
        answer = server.page(path)
        policy = answer.getheader("content-security-policy")
        assert answer.status == 200, answer.text
        assert "default-src 'none'" in policy and "script-src 'self';" in policy and "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy and answer.getheader("cache-control") == "no-store"
        assert not re.search(r"(?:src|href|action)=[\"']?(?:https?:|//)", answer.text)
        assert not re.search(r"<script(?! src=)|<style|\sstyle=|\son\w+=", answer.text)


def test_the_report_is_shut_in(server, done):
    answer = server.get(f"/runs/{done}/report")
    policy = answer.getheader("content-security-policy")
    assert answer.status == 200 and policy.startswith("sandbox allow-scripts allow-downloads;")
    assert "allow-same-origin" not in policy and "frame-ancestors 'self'" in policy
    assert 'sandbox="allow-scripts allow-downloads"' in server.page(f"/runs/{done}/results").text


def test_names_of_files_items_and_factors_are_text(server):
    study = table().rename(columns={"q01": SCRIPT, "age": "<img src=x onerror=alert(1)>"})
    run = server.opened(f"{SCRIPT}.csv", study.to_csv(index=False).encode())
    for step in ("check", "data", "codebook", "fit"):
        text = server.page(f"/runs/{run}/{step}").text
        assert "<script>alert" not in text and "<img src=x" not in text
    assert "&lt;script&gt;alert" in server.page(f"/runs/{run}/check").text


# --- files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        *(
            "../../../../tmp/evil.csv",
            "..\\..\\evil.csv",
            "/etc/passwd.csv",
            "C:\\x\\evil.csv",
            "..",
            "....csv",
        ),
        *(
            "\x00evil.csv",
            "CON.csv",
            "evil\n.csv",
            "\u202evsc.exe",
            ".bashrc",
            "-rf.csv",
            "a" * 4000 + ".csv",
        ),
        *("~/x.csv", "$(id).csv", "%2e%2e%2fevil.csv", " .csv", "é名.csv"),
    ],
)
def test_a_files_name_stays_in_its_folder(name, tmp_path):
    kept = safe_name(name, otherwise="answers")
    assert (tmp_path / kept).resolve().parent == tmp_path.resolve()
    assert kept and not kept.startswith(".") and len(kept) < 120 and kept.isprintable()
    run = Runs(tmp_path).begin(name)
    with open(__file__, "rb") as stream:
        path = run.add(name, stream)
    assert path.parent == run.folder / "data" and run.folder.parent == tmp_path


def test_paths_in_addresses_reach_nothing_outside_a_run(server, done):
    (server.folder / "secret.txt").write_text("secret")
    places = (
        "..%2f..%2fsecret.txt",
        "../../secret.txt",
        "%2e%2e/%2e%2e/secret.txt",
        "/etc/passwd",
        "..\\secret",
    )
    for place in places:
        for kind in ("results", "scores", "..", "data"):
            answer = server.get(f"/runs/{done}/files/{kind}/{place}")
            assert answer.status in (400, 404) and "secret" not in answer.text.replace("secret.txt", "")
    for run in ("..", "%2e%2e", ".", "%2e", f"..%2f{server.folder.name}", "nobody"):
        assert server.get(f"/runs/{run}/check").status == 404
    (server.folder / "link").symlink_to(server.folder / done)
    assert server.get("/runs/link/check").status == 404
    (server.folder / "link").unlink()


def test_a_file_that_is_too_large_is_refused_with_a_sentence(server):
    before = sorted(server.folder.iterdir())
    answer = server.post("/open", files={"answers": ("big.csv", b"0,1\n" * 2**20)})
    assert answer.status == 413 and "files of at most 2 MB" in answer.text
    line = socket.create_connection(("127.0.0.1", server.port), 20)
    head = (
        *("POST /open HTTP/1.1", f"Host: {server.host}", f"Origin: http://{server.host}"),
        *(f"Cookie: {server.cookie}", "Content-Type: multipart/form-data; boundary=x"),
        *("Transfer-Encoding: chunked", "\r\n"),
    )
    line.sendall("\r\n".join(head).encode())
    start = b'--x\r\nContent-Disposition: form-data; name="answers"; filename="a.csv"\r\n\r\n'
    try:
        for part in (start, *([b"0,1\n" * 2**14] * 40)):  # its length is not said beforehand
            line.sendall(b"%x\r\n%s\r\n" % (len(part), part))
    except OSError:
        pass
    assert b" 413 " in line.recv(2**16).partition(b"\r\n")[0]
    line.close()
    assert sorted(server.folder.iterdir()) == before


def test_a_file_of_another_kind_leaves_nothing_behind(server):
    before = sorted(server.folder.iterdir())
    answer = server.post("/open", files={"answers": ("evil.exe", b"MZ")})
    assert answer.status == 400 and TEXT[0] in answer.text
    assert server.post("/open", files={}).status == 400
    assert sorted(server.folder.iterdir()) == before


def test_files_are_their_users_alone(server, done):
    for path in everything_under(server.folder / done):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert stat.S_IMODE((server.folder / ".icqf-app").stat().st_mode) == 0o600


def test_a_removed_run_is_gone(server):
    run = server.opened()
    server.page(f"/runs/{run}/check")
    assert "cannot be undone" in server.get(f"/runs/{run}/remove").text
    assert (server.folder / run).exists()
    assert server.post(f"/runs/{run}/remove").status == 303
    assert not (server.folder / run).exists() and server.get(f"/runs/{run}").status == 404


# --- runs of others ---------------------------------------------------------------------------------------


def test_a_link_in_a_run_leads_nowhere_else(server, done, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    run = Runs(server.folder).again(Runs(server.folder).get(done))
    shutil.copytree(server.folder / done / "results", run.results)
    (run.folder / "scores").mkdir()
    places = {"results": run.results / "notes.txt", "scores": run.folder / "scores" / "notes.txt"}
    for kind, place in places.items():
        place.symlink_to(secret)
        answer = server.get(f"/runs/{run.id}/files/{kind}/notes.txt")
        assert answer.status == 400 and "secret" not in answer.text
    (run.results / "gone.txt").symlink_to(tmp_path / "nothing")
    (run.results / "report.html").unlink()
    (run.results / "report.html").symlink_to(secret)
    for page in ("results", "report", "all.zip", "score", "check", "fit"):
        answer = server.get(f"/runs/{run.id}/{page}")
        assert answer.status == 400 and "This run is damaged" in answer.text and "secret" not in answer.text
    server.post(f"/runs/{run.id}/remove")
    assert secret.read_text() == "secret"


@pytest.mark.skipif(os.name == "nt", reason="locks of other processes are not known there")
@pytest.mark.parametrize("number", ["theirs", "0", "1", "-5", "9" * 30, ""])
def test_only_a_fit_of_the_run_is_ended(number, tmp_path):
    import fcntl

    run = Runs(tmp_path).begin("answers.csv")
    other = subprocess.Popen(["sleep", "60"], start_new_session=True, cwd=tmp_path)
    try:
        with (run.folder / process.LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.write(str(other.pid) if number == "theirs" else number)
            lock.flush()
            ended = []
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(process, "_signal_group", lambda *given: ended.append(given))
                with pytest.raises(InputError, match="This was started elsewhere"):
                    process.stop(run)
        assert ended == [] and other.poll() is None
    finally:
        other.kill()
        other.wait()


@pytest.mark.parametrize(
    "account",
    [b"[]", b"{", b"null", b"\xff", b'{"model": 5}', b"[" * 10**5]
    + [b'{"model": {"n_components": 1, "beta": "x"}, "rows": {"fitted": 1}, "items": 2}'],
)
def test_a_damaged_run_does_not_hide_the_others(account, server, done):
    run = Runs(server.folder).again(Runs(server.folder).get(done))
    run.results.mkdir()
    (run.results / "provenance.json").write_bytes(account)
    run.config.write_bytes(account)
    for path in ("/", "/history", "/compare", f"/runs/{done}/results"):
        assert server.get(path).status == 200, path
    assert "results/provenance.json cannot be read" in server.get("/history").text
    answer = server.get(f"/runs/{run.id}/results")
    assert answer.status == 400, answer.text
    assert server.post(f"/runs/{run.id}/remove").status == 303


@pytest.mark.parametrize("folder", ["/tmp/a\0b", "~nobody-of-this-name/runs", "/tmp/" + "a" * 300])
def test_a_folder_that_cannot_be_is_said(folder, server):
    answer = server.post("/folder", {"folder": folder})
    assert answer.status == 400 and "This cannot be done" in answer.text


@pytest.mark.parametrize("first", ["%C2%B2", "9" * 5000, "-1"])
def test_rows_that_cannot_be_are_the_first(first, server, done):
    assert server.page(f"/runs/{done}/codebook?from={first}").status == 200


def test_what_the_browser_is_opened_with_is_taken_once():
    guard = Guard(None, hosts=["here"], token="a" * 43, once="b" * 43, session="s", cookie="c", limit=1)

    def answered(token):
        sent = []

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "method": "GET", "path": "/start", "headers": [(b"host", b"here")]}
        asyncio.run(guard({**scope, "query_string": f"token={token}".encode()}, None, send))
        return sent[0]["status"]

    assert [answered("b" * 43), answered("b" * 43)] == [200, 403]
    assert [answered("a" * 43), answered("a" * 43), answered("")] == [200, 200, 403]


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="files have no such owner there")
def test_a_secret_that_somebody_else_has_put_there_is_not_taken(tmp_path, monkeypatch):
    theirs = tmp_path / ".icqf-app"
    theirs.write_text("x" * 43)
    theirs.chmod(0o600)
    monkeypatch.setattr(os, "getuid", lambda: theirs.stat().st_uid + 1)
    make_app(Runs(tmp_path), hosts=(), token="t", cookie="c")
    assert theirs.read_text() != "x" * 43


def test_answers_are_sent_to_no_cluster_that_a_run_names(server):
    run = Runs(server.folder).get(server.opened())
    with socket.create_server(("127.0.0.1", 0)) as cluster:
        cluster.settimeout(0.5)
        address = f"tcp://127.0.0.1:{cluster.getsockname()[1]}"
        run.save(replace(run.options, engine="dask", scheduler=address))
        for step in ("fit", "continue"):
            answer = server.post(f"/runs/{run.id}/{step}", {**QUICK, "n_components": "2", "beta": "0.1"})
            assert answer.status == 400 and "works on this computer only" in answer.text
        with pytest.raises(TimeoutError):
            cluster.accept()
    assert server.post(f"/runs/{run.id}/remove").status == 303
