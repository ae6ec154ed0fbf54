"""What is being done and how long it still takes: stages with their expected costs, and a forecast."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

Callback = Callable[[Any], object]

_TRUSTED = 1.0  # seconds of a run before its own speed is believed
_EARLY = 0.05  # the share of a stage after which its own speed counts as much as its expected cost
_OVERRUN = 0.15  # of a stage that takes longer than expected, what is still to come


@dataclass(frozen=True)
class Progress:
    """How far the work has got, for callbacks.

    Attributes
    ----------
    done, total : int
        Jobs finished and jobs planned.
    best : str
        The best candidate so far, in words, if any.
    stage : str
        The part of the work, such as the instrument of a battery, if there are several.
    what : str
        What is being done, in words; may be empty.
    seconds, after : float
        Seconds that all of this and what follows it take on an ordinary computer; 0 and None if unknown.

    Examples
    --------
    >>> from icqf.engines import Progress
    >>> progress = Progress(done=3, total=12)
    >>> f"{progress.done / progress.total:.0%}"
    '25%'
    """

    done: int
    total: int
    best: str = ""
    stage: str = ""
    what: str = ""
    seconds: float = 0.0
    after: float | None = None


class Stages:
    """Tells a callback which stage of some work is running, and the cost of those still to come.

    Parameters
    ----------
    callback : callable or None
        Called with `icqf.engines.Progress`.
    expected : mapping of str to float
        The stages in their order, and the seconds that each takes on an ordinary computer with one process.
        A stage begins with `begin`, or with progress that has its name as `what` or as `stage`; what the
        latter says about its own stages is kept.

    Examples
    --------
    >>> from icqf.engines import Progress, Stages
    >>> stages = Stages(lambda now: print(now.what, now.seconds, now.after), {"Fitting": 5.0, "Writing": 2.0})
    >>> stages.begin("Fitting")
    Fitting 5.0 2.0
    >>> stages(Progress(done=1, total=4))
    Fitting 5.0 2.0
    """

    def __init__(
        self, callback: Callback | None = None, expected: Mapping[str, float] = MappingProxyType({})
    ) -> None:
        self._callback, self._left = callback, dict(expected)
        self._what, self._seconds = "", 0.0
        self._told: tuple[str, str] | None = None  # what was running when last told

    def __deepcopy__(self, memo: object) -> Stages:
        """A copied estimator tells the same callback."""
        return self

    def __reduce__(self) -> tuple[type[Stages], tuple[()]]:
        """In another process, nobody is told."""
        return Stages, ()

    def expect(self, seconds: Mapping[str, float]) -> None:
        """Replace the expected costs of stages that have not begun; others are unchanged."""
        self._left = {what: seconds.get(what, known) for what, known in self._left.items()}

    def begin(self, what: str) -> None:
        """Begin a stage; those before it are over, or were not needed."""
        self._enter(what)
        self(Progress(0, 0))

    def _enter(self, what: str) -> None:
        names = list(self._left)
        for over in names[: names.index(what) + 1] if what in names else ():
            self._seconds = self._left.pop(over)
        if what not in names:
            self._seconds = 0.0
        self._what, self._told = what, None

    def __call__(self, progress: Any) -> None:
        """Pass on the progress within the stage."""
        if self._callback is None:
            return
        if isinstance(progress, Progress):
            for name in (progress.what, progress.stage):
                if name in self._left:
                    self._enter(name)
            what = progress.what or ("" if self._what == progress.stage else self._what)
            if self._told not in (None, (progress.stage, what)):
                self._seconds = 0.0  # another part of the same stage
            self._told = progress.stage, what
            seconds, after = progress.seconds or self._seconds, sum(self._left.values(), 0.0)
            after += progress.after or 0.0
            progress = replace(progress, what=what, seconds=seconds, after=after)
        self._callback(progress)


class Forecast:
    """How long some work still takes, from its progress so far; times are in seconds of one clock.

    Expected costs are scaled by how long finished work has taken; within a stage that is counted, its own
    speed soon outweighs them.

    Examples
    --------
    >>> from icqf.engines import Forecast, Progress
    >>> forecast = Forecast(0.0)
    >>> forecast.update(Progress(0, 100), 0.0)
    >>> forecast.update(Progress(20, 100), 10.0)
    >>> round(forecast.left(10.0))
    40
    """

    def __init__(self, now: float) -> None:
        self._spent = self._cost = 0.0  # seconds taken by finished stages, and expected of them
        self._start = self._began = self._at = self._shown_at = now
        self._progress: Progress | None = None
        self._resumed = 0  # counted when the stage began
        self._shown: float | None = None

    def update(self, progress: Progress, now: float) -> None:
        """Note the progress at this moment."""
        last = self._progress
        if last is None or (last.stage, last.what) != (progress.stage, progress.what):
            if last is not None and last.seconds:
                self._spent += now - self._began
                self._cost += last.seconds
            self._began, self._resumed = now, progress.done
        elif not last.total and progress.total:
            self._resumed = progress.done
        self._progress, self._at = progress, now

    @property
    def whole(self) -> bool:
        """Whether all that is still to come is known, not only the present stage."""
        return self._progress is not None and self._progress.after is not None

    def left(self, now: float) -> float | None:
        """The seconds still to come, of all stages or of the present one (`whole`); None if unknown."""
        progress = self._progress
        if progress is None:
            return None
        spent, share, measured = now - self._began, 0.0, 0.0
        if progress.total and progress.done > self._resumed:
            share = (progress.done - self._resumed) / (progress.total - self._resumed)
            # Not faster than if the next job were finished now.
            soon = min(share + 1 / (progress.total - self._resumed), 1.0)
            measured = max((self._at - self._began) / share, spent / soon)
        speed = (self._spent + share * measured + _TRUSTED) / (
            self._cost + share * progress.seconds + _TRUSTED
        )
        if not progress.seconds and (not share or spent < _TRUSTED):
            return None
        trust = share / (share + _EARLY) if progress.seconds else 1.0
        here = trust * measured + (1 - trust) * speed * progress.seconds
        left = 0.0 if share == 1.0 else max(here - spent, _OVERRUN * max(here, spent) * (1 - share))
        return self._calm(left + speed * (progress.after or 0.0), now)

    def share(self, now: float, left: float) -> float:
        """The share of the time that has passed."""
        passed = now - self._start
        return passed / (passed + left) if passed + left > 0 else 1.0

    def _calm(self, left: float, now: float) -> float:
        """Follow a new estimate slowly, so that the time shown does not jump."""
        passed, self._shown_at = now - self._shown_at, now
        if self._shown is None:
            self._shown = left
        else:
            known = max(self._shown - passed, 0.0)
            self._shown = known + (left - known) * (1 - math.exp(-passed / max(1.5, 0.1 * left)))
        return self._shown
