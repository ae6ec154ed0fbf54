"""Counts of what became of hostile tries, and what each of the kinds of try shares."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
from collections import Counter
from dataclasses import dataclass, field

MEGABYTE = 2**20
MOST_MEMORY = 500 * MEGABYTE
EXAMPLES = int(os.environ.get("ICQF_EXAMPLES", "4"))

# What may not happen; everything else that is counted is fine.
FAULTS = (
    *("silently different", "foreign exception", "over 500 MB", "hang", "leaked warning", "not finite"),
    *("half-written", "left behind", "orphan", "leak", "escape sequence", "no message", "recovered", "abort"),
)


@dataclass
class Tally:
    """How many tries of one kind ended in which way, with a few examples of those that may not be."""

    kind: str
    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, outcome: str, example: str = "") -> None:
        self.counts[outcome] += 1
        if outcome in FAULTS and example not in (shown := self.examples.setdefault(outcome, [])):
            shown.extend([example][: EXAMPLES - len(shown)])

    @property
    def faults(self) -> dict[str, int]:
        return {outcome: n for outcome, n in self.counts.items() if outcome in FAULTS}

    def lines(self) -> list[str]:
        total = sum(self.counts.values())
        parts = ", ".join(f"{n} {outcome}" for outcome, n in sorted(self.counts.items()))
        head = f"{self.kind:<28} {total:>7} {sum(self.faults.values()):>7}   {parts}"
        shown = [f"    {name}: {text}" for name in self.faults for text in self.examples.get(name, [])]
        return [head, *shown]


def table(tallies: list[Tally]) -> str:
    """Return one table of counts; below a kind stand examples of its faults."""
    head = f"{'kind':<28} {'tries':>7} {'faults':>7}   outcomes"
    return "\n".join([head, *(line for tally in tallies for line in tally.lines())])


def in_short(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:140]}"


class Hang(BaseException):
    """Not an Exception, so that no handler for damaged files takes it for one."""


@contextlib.contextmanager
def time_limit(seconds: float):
    def stop(*_):
        raise Hang(f"more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Memory:
    """The memory that this process takes more than at the start, at its highest, while inside `limit`."""

    def __init__(self, most: int = 3000 * MEGABYTE) -> None:
        self.most = most
        self.peak = 0

    def __enter__(self):
        with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as stream:
            stream.write("5")
        self.start = _status("VmRSS")
        self.limits = resource.getrlimit(resource.RLIMIT_AS)
        # An address space with an end: a bomb then ends in a MemoryError instead of taking the machine down.
        resource.setrlimit(resource.RLIMIT_AS, (_status("VmSize") + self.most, self.limits[1]))
        return self

    def __exit__(self, *_):
        resource.setrlimit(resource.RLIMIT_AS, self.limits)
        self.peak = _status("VmHWM") - self.start

    @property
    def too_much(self) -> bool:
        return self.peak > MOST_MEMORY


def _status(name: str) -> int:
    """One of the sizes that the kernel knows of this process, in bytes."""
    with open(f"/proc/{os.getpid()}/status") as stream:
        for line in stream:
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    return 0


def size(short: int, long: int) -> int:
    """How many tries: a few in the tests, many in the long form (ICQF_TORTURE=long, or a factor)."""
    wanted = os.environ.get("ICQF_TORTURE", "")
    return long if wanted == "long" else int(short * float(wanted)) if wanted else short
