"""Commands ended at random moments: results are whole or absent, and the next run makes them whole."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from hostile.tally import Tally
from small_study import codebook, table

STUDY = ("answers.csv", "--codebook", "items.csv", "--confounds", "age", "sex", "--quiet")
GRID = ("--n-components", "1-3", "--beta", "0.1", "0.5", "--n-splits", "3")
COMMANDS = {
    "fit": (*STUDY, *GRID, "--no-report", "--out", "out"),
    "select": (*STUDY, *GRID, "--out", "out.csv"),
    "stability": (
        *(*STUDY, "--n-components", "2", "--beta", "0.1", "--methods", "icqf", "--sizes", "0.8", "0.5"),
        *("--splits", "3", "--out", "out"),
    ),
}
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
INPUTS = ("answers.csv", "items.csv")
PATIENCE = 180


def prepare(folder: Path) -> Path:
    folder.mkdir()
    table(n=60).to_csv(folder / "answers.csv", index=False)
    codebook().to_csv(folder / "items.csv", index=False)
    return folder


def start(command: str, folder: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "icqf", command, *COMMANDS[command], *more],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"},
    )


def results(folder: Path) -> dict[str, object]:
    """What a command wrote, without times; empty when nothing is there."""
    out = [path for path in folder.rglob("*") if path.is_file() and path.name not in INPUTS]
    found = {
        str(path.relative_to(folder)): _without_times(path)
        for path in out
        if not path.name.endswith(".journal") and not _hidden(path.relative_to(folder))
    }
    return dict(sorted(found.items()))


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _without_times(path: Path) -> object:
    if path.name == "provenance.json":
        account = json.loads(path.read_text())
        options = {name: value for name, value in account.get("options", {}).items() if name != "jobs"}
        times = ("started", "seconds")  # a folder of several results has them once all are written
        return {name: value for name, value in account.items() if name not in times} | {"options": options}
    if path.name == "config.toml":
        return [line for line in path.read_text().splitlines() if not line.startswith("jobs")]
    if path.suffix == ".csv":
        head, *lines = path.read_text().splitlines()
        names = head.split(",")
        kept = [i for i, name in enumerate(names) if name != "seconds"]
        return [[line.split(",")[i] for i in kept if i < len(line.split(","))] for line in (head, *lines)]
    if path.suffix == ".html":  # without the command, which differs in --resume
        return [line for line in path.read_text().splitlines() if "Made by <code>" not in line]
    return path.read_bytes() if path.suffix != ".md" else path.read_text().split("\n", 3)[-1]


def leftovers(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.iterdir() if path.name.startswith("."))


def alive(session: int) -> list[int]:
    """Processes of a session that still run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def run(n: int, seed: int, folder: Path, *, jobs: tuple[int, ...] = (1, 2)) -> Tally:
    tally, rng = Tally("ended at a random moment"), random.Random(seed)
    known: dict[str, tuple[dict[str, object], float]] = {}
    for i in range(n):
        command = list(COMMANDS)[i % len(COMMANDS)]
        if command not in known:
            place = prepare(folder / f"known-{command}")
            began = time.monotonic()
            program = start(command, place)
            _, said = program.communicate(timeout=PATIENCE)
            if program.returncode != 0:
                raise RuntimeError(f"icqf {command} fails by itself: {said}")
            known[command] = results(place), time.monotonic() - began
        ending = rng.choice(SIGNALS)
        moment = rng.uniform(0.2, 1.0)
        more = ("--jobs", str(rng.choice(jobs)))
        everybody = ending != signal.SIGKILL and rng.random() < 0.5  # as Ctrl-C does: workers, too
        place = prepare(folder / f"try-{i}")
        what = f"{command} {' '.join(more)} {ending.name}{' to all' * everybody} at {moment:.0%}"
        after, whole = moment * known[command][1], known[command][0]
        for outcome, text in ended(command, place, more, ending, after, whole, everybody=everybody):
            tally.add(outcome, f"{what}: {text}".strip(": "))
    return tally


def ended(command, place, more, ending, after, known, *, everybody=False):
    """What became of one run that was ended, and of the run after it."""
    program = start(command, place, *more)
    try:
        _, said = program.communicate(timeout=after)
        finished = True
    except subprocess.TimeoutExpired:
        finished = False
        (os.killpg if everybody else os.kill)(program.pid, ending)
        try:
            _, said = program.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            said = ""
    left = orphans(program.pid)
    if left:
        yield "orphan", f"{len(left)} processes after 10 s"
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        program.wait()
    if "Traceback" in said:
        yield "foreign exception", said.strip().splitlines()[-1]
    if ending != signal.SIGKILL and leftovers(place):
        yield "left behind", f"at once: {', '.join(leftovers(place))}"
    if not finished and command != "stability" and results(place) not in ({}, known):
        yield "half-written", ", ".join(results(place))
    whole = results(place) == known
    written = whole or (place / "out" / "stability.md").exists()
    resume = (*(() if command == "stability" else ("--resume",)), *(("--force",) if written else ()))
    again = start(command, place, *more, *resume)
    _, said = again.communicate(timeout=PATIENCE)
    if again.returncode != 0:
        yield ("foreign exception" if "Traceback" in said else "no message"), f"again: {said.strip()[-160:]}"
    elif results(place) != known:
        other = [name for name, content in results(place).items() if known.get(name) != content]
        yield "silently different", ", ".join(other)
    elif leftovers(place):
        yield "left behind", ", ".join(leftovers(place))
    else:
        yield ("finished before" if finished else "made whole"), ""


def orphans(session: int) -> list[int]:
    deadline = time.monotonic() + 10
    while alive(session) and time.monotonic() < deadline:
        time.sleep(0.1)
    return alive(session)
