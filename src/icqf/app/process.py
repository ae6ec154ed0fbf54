"""Fits in processes of their own: begun, watched by a file, and ended with all that they started.

The process holds a lock on a file of its run for as long as it lives, whoever started it. A server that is
started again finds it by that lock. It ends the process whose number stands in the file only if that is at
work in the run's folder: the number may be that of another process, as in a folder that a container shares.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from icqf.app.runs import CONFIG, RESULTS, Run, readable
from icqf.errors import InputError
from icqf.io.study_files import FILES
from icqf.workflow.options import StudyOptions

LOCK = "fit.lock"
PROGRESS = "progress.json"
LOG = "log.txt"
JOURNAL = f"{RESULTS}.journal"
_SECONDS_TO_END = 10.0
_MOST_LOG = 20_000
_NOT_THROUGH_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_REFUSED = "Error: "  # how the command begins the sentence with which it refuses something
_STARTING = threading.Lock()
_CHILDREN: dict[Path, subprocess.Popen[bytes]] = {}  # of this server; a process that ended must be waited for


def status(run: Run) -> str:
    """Return "ready", "running", "done", "stopped" (it can be continued), "failed" or "damaged"."""
    if run.damage:
        return "damaged"
    if is_running(run):
        return "running"
    if run.done:
        return "done"
    if not os.path.exists(run.folder / LOG):
        return "ready"
    return "failed" if _REFUSED in said(run) else "stopped"


def start(run: Run) -> None:
    """Begin the fit of a run, or continue one that was stopped."""
    run.require_whole()
    scheduler = run.options.scheduler
    if scheduler:  # of a run from somebody else, whose cluster would get the answers and run what it likes
        raise InputError(
            f"The settings of this run name a cluster ({scheduler}); the app works on this machine alone.",
            code="elsewhere",
            remedy="Take engine and scheduler out of its config.toml, or use icqf fit --config.",
        )
    with _STARTING:
        if is_running(run) or run.done:
            return
        words = ["fit", "--config", CONFIG, "--out", RESULTS, "--progress", PROGRESS]
        words += ["--resume"] if (run.folder / JOURNAL).exists() else []
        lock, log = _opened_lock(run.folder / LOCK), -1
        try:
            if not _lock(lock):  # another server has begun it
                return
            os.truncate(lock, 0)
            (run.folder / PROGRESS).unlink(missing_ok=True)
            (run.folder / LOG).unlink(
                missing_ok=True
            )  # rather than emptied: it may be a name of another file
            log = os.open(run.folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            child = subprocess.Popen(
                [sys.executable, "-P", "-m", "icqf", *words],  # -P: nothing is imported from the run's folder
                cwd=run.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | {"NO_COLOR": "1"},
                **_apart(lock),
            )
            os.write(lock, str(child.pid).encode())
            _CHILDREN[run.folder] = child
        finally:
            os.close(lock)
            if log >= 0:
                os.close(log)


def stop(run: Run) -> None:
    """End the fit and every process that it started; what is finished of a search is kept."""
    if not is_running(run):
        return
    pid = _leader(run)
    if pid is None:
        raise InputError(
            "Somebody else started this fit, so it cannot be stopped here.",
            code="not-ours",
            remedy="Stop it where it was started.",
        )
    _end(pid, signal.SIGTERM)
    until = time.monotonic() + _SECONDS_TO_END
    while is_running(run) and time.monotonic() < until:
        time.sleep(0.05)
    if is_running(run):
        _end(pid, getattr(signal, "SIGKILL", signal.SIGTERM))
        until = time.monotonic() + _SECONDS_TO_END
        while is_running(run) and time.monotonic() < until:
            time.sleep(0.05)


def is_running(run: Run) -> bool:
    """Whether the fit's process lives: whether somebody holds its lock."""
    child = _CHILDREN.get(run.folder)
    if child is not None and child.poll() is not None:
        del _CHILDREN[run.folder]
        child = None
    try:
        fcntl: Any = importlib.import_module("fcntl")
        lock = os.open(run.folder / LOCK, os.O_RDWR | _NOT_THROUGH_LINKS)
    except ImportError:  # not on Windows, where only this server's own processes are known
        return child is not None
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False


def progress(run: Run) -> dict[str, Any]:
    """Return how far the fit is: what is done, in words, and numbers done and in all (0: not counted)."""
    try:
        found = json.loads(_tail(run.folder / PROGRESS, _MOST_LOG))
        return {
            "what": readable(str(found["what"])),
            "text": readable(str(found["text"])),
            "done": int(found["done"]),
            "total": int(found["total"]),
        }
    except (OSError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return {"what": "Reading the file", "text": "", "done": 0, "total": 0}


def said(run: Run) -> str:
    """Return what the command wrote while it ran, its last part where that is long."""
    with suppress(OSError):
        return _tail(run.folder / LOG, _MOST_LOG).decode("utf-8", "replace").strip()
    return ""


def _tail(path: Path, most: int) -> bytes:
    """The last bytes of a file, which is not a link."""
    with open(os.open(path, os.O_RDONLY | _NOT_THROUGH_LINKS), "rb") as stream:
        stream.seek(max(os.fstat(stream.fileno()).st_size - most, 0))
        return stream.read(most)


def refusal(run: Run) -> str:
    """Return the sentence with which the command ended a fit that it refused; else all it wrote."""
    text = said(run)
    return text.rpartition(_REFUSED)[2] if _REFUSED in text else text


def require_idle(run: Run) -> None:
    """Refuse to change a run while it is fitted, or when it is done."""
    if run.done or is_running(run):
        raise InputError(
            "This run is being fitted or is finished, so its settings cannot be changed.",
            code="fixed",
            remedy="Make a new run from it to change them.",
        )


def _leader(run: Run) -> int | None:
    """The process that fits the run, which leads a group of its own; None where that is in doubt."""
    child = _CHILDREN.get(run.folder)
    if child is not None:
        return child.pid
    try:
        pid = int((run.folder / LOCK).read_text(encoding="ascii"))
        if pid < 2 or os.getpgid(pid) != pid:  # a group 0 would be this server's own, and 1 everybody
            return None
        place = Path(f"/proc/{pid}/cwd")
        return pid if not Path("/proc/self").exists() or place.samefile(run.folder) else None
    except ProcessLookupError:  # it ended before those that it started
        return pid
    except (OSError, ValueError, OverflowError, AttributeError):
        return None


def _apart(lock: int) -> dict[str, Any]:
    """How a process is begun in a group of its own, so that the end of the server is not its end."""
    if os.name == "nt":
        return {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}
    return {"start_new_session": True, "umask": 0o077, "pass_fds": (lock,)}


def _opened_lock(path: Path) -> int:
    """The file of the lock, made anew where it is a second name of another file."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | _NOT_THROUGH_LINKS, 0o600)
    if os.fstat(lock).st_nlink > 1:
        os.close(lock)
        path.unlink()
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    return lock


def _lock(descriptor: int) -> bool:
    """Take the lock; another server's look at it holds it for a moment only."""
    try:
        fcntl: Any = importlib.import_module("fcntl")
    except ImportError:
        return True
    for _ in range(50):
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(0.01)
    return False


def _end(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(pid, number)
        else:
            os.kill(pid, number)


Result = TypeVar("Result")
PATIENCE = 0.2  # seconds for which a page waits before it says what it waits for
_MOST_KEPT = 16


@dataclass
class Look:
    """A look under way or done."""

    future: Future = field(default_factory=Future)
    words: str = "Waiting for another file to be read"
    began: float = field(default_factory=time.monotonic)

    def ready(self, seconds: float = 0.0) -> bool:
        """Whether it is done, now or in so many seconds."""
        try:
            self.future.exception(timeout=seconds)
        except NotYet:
            return False
        return True

    @property
    def said(self) -> str:
        """What is being done, and for how long."""
        return f"{self.words} … {time.monotonic() - self.began:.0f} s"


class Desk:
    """Where the library's work is done for the pages: by one worker, so that none disturbs another."""

    def __init__(self) -> None:
        self._looks: OrderedDict[tuple[object, ...], Look] = OrderedDict()
        self._given: SimpleQueue[Callable[[], object]] = SimpleQueue()
        # A daemon: the end of the app does not wait for it, as it changes nothing that is not written whole.
        threading.Thread(target=self._work, name="icqf-app", daemon=True).start()

    def do(self, work: Callable[[], Result]) -> Result:
        """Do a piece of work when its turn comes, and wait for it."""
        done: Future[Result] = Future()
        self.begin(lambda: _settle(done, work))
        return done.result()

    def begin(self, work: Callable[[], object]) -> None:
        """Do a piece of work when its turn comes, without waiting for it."""
        self._given.put(work)

    def _work(self) -> None:
        while True:
            self._given.get()()

    def look_at(self, run: Run) -> Look:
        """Return the look at a run's files with its present options; begun, if it is new."""
        key = _state_of(run)
        if key not in self._looks:
            look = self._looks[key] = Look()
            options = run.options
            self.begin(lambda: self._make(look, options))
            while len(self._looks) > _MOST_KEPT:
                self._looks.popitem(last=False)
        return self._looks[key]

    def _make(self, look: Look, options: StudyOptions) -> None:
        from icqf.workflow.check import look_at_study

        def tell(words: str) -> None:
            look.words = words

        _settle(look.future, lambda: look_at_study(options, callback=tell))


def _settle(future: Future[Any], work: Callable[[], Any]) -> None:
    """Do the work, and give what comes of it to whoever waits for it."""
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001 - whoever waits for it gets it
        future.set_exception(error)


def _state_of(run: Run) -> tuple[object, ...]:
    """What a look depends on: the options, and the files as they are."""
    options = run.options
    files = [path for name in FILES if (path := getattr(options, name)) is not None]
    stamps = tuple((path, path.stat().st_mtime_ns, path.stat().st_size) for path in files if path.exists())
    return (run.folder, options, stamps)
