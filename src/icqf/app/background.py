"""Looks at studies, made one after the other beside the pages, which meanwhile say how far they are."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, TypeVar

from icqf.app.runs import Run
from icqf.io.study_files import FILES
from icqf.workflow.options import StudyOptions

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
