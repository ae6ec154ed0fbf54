"""Fits and other analyses run in separate processes: started, watched through a file, and stopped.

The process of a job holds a lock on a file in the job's folder, by which a restarted server recognises it.
The server stops the process whose id is in that file only if it works in that folder: in a folder shared with
a container, the id may belong to another process.
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
from typing import TYPE_CHECKING, Any, TypeVar

from icqf.app.runs import CONFIG, RESULTS, Job, Run, readable
from icqf.errors import InputError
from icqf.io.study_files import FILES
from icqf.workflow.options import StudyOptions

if TYPE_CHECKING:
    from icqf.io.readers.table import Table

LOCK = "fit.lock"
PROGRESS = "progress.json"
LOG = "log.txt"
JOURNAL = f"{RESULTS}.journal"
_SECONDS_TO_END = 10.0
_MOST_LOG = 20_000
_NOT_THROUGH_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_ERROR = "Error: "  # how the command begins an error message
_STARTING = threading.Lock()
_CHILDREN: dict[Path, subprocess.Popen[bytes]] = {}  # started by this server; they must be waited for


def status(job: Job) -> str:
    """Return "ready", "running", "done", "stopped" (it can be continued), "failed" or "damaged"."""
    if job.damage:
        return "damaged"
    if is_running(job):
        return "running"
    if job.done:
        return "done"
    if not os.path.exists(job.folder / LOG):
        return "ready"
    return "failed" if _ERROR in log_text(job) else "stopped"


def start(job: Job) -> None:
    """Begin a job, or continue one that was stopped."""
    job.require_whole()
    scheduler = getattr(job.options, "scheduler", None)
    if scheduler:  # somebody else's run must not send the answers to their cluster
        raise InputError(
            f"The settings of this run name a cluster ({scheduler}); the app works on this computer only.",
            code="elsewhere",
            remedy=f"Remove engine and scheduler from its config.toml, or use icqf {job.tool} --config.",
        )
    with _STARTING:
        if is_running(job) or job.done:
            return
        words = [job.tool, "--config", CONFIG, "--out", RESULTS, "--progress", PROGRESS]
        words += ["--resume"] if (job.folder / JOURNAL).exists() else []
        lock, log = _open_lock(job.folder / LOCK), -1
        try:
            if not _lock(lock):  # another server has started it
                return
            os.truncate(lock, 0)
            for name in (PROGRESS, LOG):  # removed, not emptied: they may be hard links
                (job.folder / name).unlink(missing_ok=True)
            log = os.open(job.folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            child = subprocess.Popen(
                [sys.executable, "-P", "-m", "icqf", *words],  # -P: import nothing from the job's folder
                cwd=job.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | {"NO_COLOR": "1"},
                **_detached(lock),
            )
            os.write(lock, str(child.pid).encode())
            _CHILDREN[job.folder] = child
        finally:
            os.close(lock)
            if log >= 0:
                os.close(log)


def stop(job: Job) -> None:
    """Stop a job and all its processes; finished work in its journal is kept."""
    if not is_running(job):
        return
    pid = _group_leader(job)
    if pid is None:
        raise InputError(
            "This was started elsewhere, so it cannot be stopped here.",
            code="not-ours",
            remedy="Stop it where it was started.",
        )
    for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        if is_running(job):
            _signal_group(pid, number)
            until = time.monotonic() + _SECONDS_TO_END
            while is_running(job) and time.monotonic() < until:
                time.sleep(0.05)


def is_running(job: Job) -> bool:
    """Whether the job's process is alive: whether its lock is held."""
    child = _CHILDREN.get(job.folder)
    if child is not None and child.poll() is not None:
        del _CHILDREN[job.folder]
        child = None
    try:
        fcntl: Any = importlib.import_module("fcntl")
        lock = os.open(job.folder / LOCK, os.O_RDWR | _NOT_THROUGH_LINKS)
    except ImportError:  # Windows: only this server's own processes are known
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


def progress(job: Job) -> dict[str, Any]:
    """Return the progress of a job: its stage, a line of text, and the share that is over."""
    try:
        content = json.loads(_tail(job.folder / PROGRESS, _MOST_LOG))
        what, text = (readable(str(content[name])) for name in ("what", "text"))
        share = min(max(float(content["share"]), 0.0), 1.0)
    except (OSError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
        what, text, share = "Reading the file", "", 0.0
    return {"what": what, "text": f"{what}: {text}" if text else f"{what} …", "share": share}


def log_text(job: Job) -> str:
    """Return the output of the command, its last part if long."""
    with suppress(OSError):
        return _tail(job.folder / LOG, _MOST_LOG).decode("utf-8", "replace").strip()
    return ""


def _tail(path: Path, most: int) -> bytes:
    """Return the last bytes of a file; links are refused."""
    with open(os.open(path, os.O_RDONLY | _NOT_THROUGH_LINKS), "rb") as stream:
        stream.seek(max(os.fstat(stream.fileno()).st_size - most, 0))
        return stream.read(most)


def error_text(job: Job) -> str:
    """Return the command's error message, or else all its output."""
    text = log_text(job)
    return text.rpartition(_ERROR)[2] if _ERROR in text else text


def _group_leader(job: Job) -> int | None:
    """Return the id of the process that does the job and leads its process group; None if uncertain."""
    child = _CHILDREN.get(job.folder)
    if child is not None:
        return child.pid
    try:
        pid = int((job.folder / LOCK).read_text(encoding="ascii"))
        if pid < 2 or os.getpgid(pid) != pid:  # group 0 is this server's own, 1 is everybody's
            return None
        folder = Path(f"/proc/{pid}/cwd")
        return pid if not Path("/proc/self").exists() or folder.samefile(job.folder) else None
    except ProcessLookupError:  # it ended before its children
        return pid
    except (OSError, ValueError, OverflowError, AttributeError):
        return None


def _detached(lock: int) -> dict[str, Any]:
    """Return the arguments that start a process in its own group, so that it outlives the server."""
    if os.name == "nt":
        return {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}
    return {"start_new_session": True, "umask": 0o077, "pass_fds": (lock,)}


def _open_lock(path: Path) -> int:
    """Open the lock file; a hard link is replaced by a new file."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | _NOT_THROUGH_LINKS, 0o600)
    if os.fstat(lock).st_nlink > 1:
        os.close(lock)
        path.unlink()
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    return lock


def _lock(descriptor: int) -> bool:
    """Take the lock, which another server may hold for a moment to check it."""
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


def _signal_group(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(pid, number)
        else:
            os.kill(pid, number)


Result = TypeVar("Result")
PATIENCE = 0.2  # seconds that a page waits before it shows what it is waiting for
_MOST_KEPT = 16
_MOST_TABLES = 2
_MOST_PREVIEWS = 64


@dataclass
class PendingCheck:
    """A check of a study's files, running or finished."""

    future: Future = field(default_factory=Future)
    words: str = "Waiting for another file to be read"
    began: float = field(default_factory=time.monotonic)

    def ready(self, seconds: float = 0.0) -> bool:
        """Whether it is finished, or finishes within this time."""
        try:
            self.future.exception(timeout=seconds)
        except NotYet:
            return False
        return True

    @property
    def text(self) -> str:
        """The current stage, and the time since the start."""
        return f"{self.words} … {time.monotonic() - self.began:.0f} s"


class Worker:
    """Does the library's work for the pages in one thread, one task at a time."""

    def __init__(self) -> None:
        self._checks: OrderedDict[tuple[object, ...], PendingCheck] = OrderedDict()
        self._tables: OrderedDict[tuple[object, ...], Table] = OrderedDict()
        self._problems: OrderedDict[tuple[object, ...], Any] = OrderedDict()
        self._previews: OrderedDict[tuple[object, ...], dict[str, Any]] = OrderedDict()
        self._tasks: SimpleQueue[Callable[[], object]] = SimpleQueue()
        # A daemon, so that the app can end without it: all files are written atomically.
        threading.Thread(target=self._work, name="icqf-app", daemon=True).start()

    def do(self, work: Callable[[], Result]) -> Result:
        """Queue a task, and wait for its result."""
        done: Future[Result] = Future()
        self.begin(lambda: _resolve(done, work))
        return done.result()

    def begin(self, work: Callable[[], object]) -> None:
        """Queue a task without waiting for it."""
        self._tasks.put(work)

    def _work(self) -> None:
        while True:
            self._tasks.get()()

    def check_of(self, run: Run) -> PendingCheck:
        """Return the check of a run's files with its current options, started if new."""
        options = run.options

        def begin() -> PendingCheck:
            check = PendingCheck()
            self.begin(lambda: self._check(check, options))
            return check

        return _kept(self._checks, _state_of(run), begin, _MOST_KEPT)

    def table_of(self, run: Run) -> Table:
        """Return a run's table of answers as it was read; the latest ones are kept in memory."""
        key = _state_of(run, for_table=True)

        def read() -> Table:
            from icqf.io.readers.questionnaires import read_files

            return read_files(run.options).table

        return self.do(lambda: _kept(self._tables, key, read, _MOST_TABLES))

    def preview(self, run: Run, k: int, beta: float, make: Callable[..., dict[str, Any]]) -> dict[str, Any]:
        """Return a preview of a run's loadings, made from its stated problem; the latest ones are kept."""
        key = (*_state_of(run), run.done)

        def state() -> Any:
            from icqf.workflow.preview import preview_problem

            return preview_problem(run.options)

        def look() -> dict[str, Any]:
            return make(run, _kept(self._problems, key, state, _MOST_TABLES), k, beta)

        return self.do(lambda: _kept(self._previews, (*key, k, beta), look, _MOST_PREVIEWS))

    def _check(self, check: PendingCheck, options: StudyOptions) -> None:
        from icqf.workflow.check import inspect_study

        def report(words: str) -> None:
            check.words = words

        _resolve(check.future, lambda: inspect_study(options, callback=report))


def _kept(
    kept: OrderedDict[tuple[object, ...], Result],
    key: tuple[object, ...],
    make: Callable[[], Result],
    most: int,
) -> Result:
    """Return what is kept under a key, made if it is new; the oldest are forgotten."""
    if key not in kept:
        kept[key] = make()
    kept.move_to_end(key)
    while len(kept) > most:
        kept.popitem(last=False)
    return kept[key]


def _resolve(future: Future[Any], work: Callable[[], Any]) -> None:
    """Do the work, and pass its result or its error to the future."""
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
        future.set_exception(error)


def _state_of(run: Run, *, for_table: bool = False) -> tuple[object, ...]:
    """Return what a check, or only the table, depends on: the options, and the state of the files."""
    options = run.options
    files = [path for name in FILES if (path := getattr(options, name)) is not None]
    stamps = tuple((path, path.stat().st_mtime_ns, path.stat().st_size) for path in files if path.exists())
    decides: object = options
    if for_table:
        names = ("id", "about_participants", "visit", "doubled", "long", "header_row", "sheet")
        decides = tuple(getattr(options, name) for name in names)
    return (run.folder, decides, stamps)
