"""The app as it is started by its command, and somebody who speaks plain HTTP with it."""

import http.client
import os
import re
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from urllib.parse import urlencode

from small_study import table

LIMIT = 2  # MB


class Server:
    """A started app: its address, its folder, and requests with or without its cookie."""

    def __init__(self, folder, *more, port=None, limit=LIMIT, before=""):
        """Start it; `before` is Python that its process runs first, to change a constant."""
        self.folder = Path(folder)
        words = ["app", "--folder", str(folder), "--no-open", "--limit", str(limit), *more]
        words += [] if port is None else ["--port", str(port)]
        program = ["-c", f"{before}\nfrom icqf.cli import main\nmain()"] if before else ["-m", "icqf"]
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed at the end
        self.process = subprocess.Popen(
            [sys.executable, "-P", *program, *words],
            stdout=self.log,
            stderr=self.log,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        while "Stop it with" not in self.said:
            assert self.process.poll() is None, self.said
            time.sleep(0.02)
        self.url = re.search(r"http://\S+", self.said)[0]
        self.port = int(re.search(r":(\d+)/", self.url)[1])
        self.host = f"127.0.0.1:{self.port}"
        self.token = self.url.rpartition("=")[2]
        self.cookie = self.ask("GET", f"/start?token={self.token}").getheader("set-cookie").split(";")[0]

    @property
    def said(self):
        """What the command wrote so far."""
        return os.pread(self.log.fileno(), 2**20, 0).decode()

    def ask(self, method, path, body=b"", **headers):
        """One request, as raw as is asked for; None leaves a header out."""
        given = {"Host": self.host, **{k.replace("_", "-"): v for k, v in headers.items()}}
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        line.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for key, value in given.items():
            if value is not None:
                line.putheader(key, value)
        if body or method == "POST":
            line.putheader("Content-Length", str(len(body)))
        line.endheaders(body)
        answer = line.getresponse()
        answer.text = answer.read().decode("utf-8", "replace")
        line.close()
        return answer

    def get(self, path, **headers):
        return self.ask("GET", path, **{"Cookie": self.cookie, **headers})

    def post(self, path, fields=None, files=None, **headers):
        """A form as a page of the app would send it."""
        more = {"Cookie": self.cookie, "Origin": f"http://{self.host}", **headers}
        if files is None:
            kind, body = "application/x-www-form-urlencoded", urlencode(fields or {}, doseq=True).encode()
        else:
            mark = uuid.uuid4().hex
            kind = f"multipart/form-data; boundary={mark}"
            body = b""
            for key, value in (fields or {}).items():
                body += (
                    f'--{mark}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode()
                )
            for key, (name, content) in files.items():
                head = f'Content-Disposition: form-data; name="{key}"; filename="{name}"'
                body += f"--{mark}\r\n{head}\r\n\r\n".encode() + content + b"\r\n"
            body += f"--{mark}--\r\n".encode()
        return self.ask("POST", path, body, **{"Content-Type": kind, **more})

    def opened(self, name="answers.csv", content=None, **files):
        """Open a file; the id of its run."""
        content = table().to_csv(index=False).encode() if content is None else content
        answer = self.post("/open", files={"answers": (name, content), **files})
        assert answer.status == 303, answer.text
        return answer.getheader("location").split("/")[2]

    def use(self, run, settings=None, **uses):
        """Say what columns are used for, as the form does: "item", "confound", …, or "" to leave one out."""
        form = {"column": list(uses), "use": [name for name, use in uses.items() if use == "item"]}
        form |= {f"use-{at}": "" if use == "item" else use for at, use in enumerate(uses.values())}
        self.page(f"/runs/{run}/check")
        return self.post(f"/runs/{run}/columns", form | (settings or {}))

    def page(self, path, seconds=60):
        """A page, once what it waits for is done."""
        until = time.monotonic() + seconds
        while True:
            answer = self.get(path)
            if "data-poll" not in answer.text:
                return answer
            assert time.monotonic() < until, answer.text
            time.sleep(0.15)

    def fitted(self, run, **options):
        """Begin a fit and wait for its end."""
        asked = {"n_components": "2", "beta": "0.1", **QUICK, **options}
        answer = self.post(f"/runs/{run}/fit", asked)
        assert answer.status == 303, answer.text
        return self.page(f"/runs/{run}/fit")

    def end(self):
        self.process.terminate()
        self.process.wait(10)
        self.log.close()


# What the form of the fit holds when nothing is changed, without resamples and figures.
QUICK = {
    **{"rule": "min", "n_splits": "10", "n_repeats": "1", "item_weight": "range", "penalty": "l1"},
    **{"intercept": "on", "missing_confounds": "error", "smallest_category": "20", "n_init": "auto"},
    **{"tol": "0.001", "max_iter": "500", "bootstrap": "0", "format": "csv", "jobs": "1", "seed": "0"},
}
