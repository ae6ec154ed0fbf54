"""How long a command says it takes, soon after its start, and how long it takes: `python promised_times.py`.

Every long command runs with its defaults, all processors, and files of three studies (the demo, bfi, and a
battery of three instruments of the demo), in a process of its own. Noted are the seconds that it would print
after two seconds of work, or at its end if it is over before, and those from the start of its work to the
end. Words on the command line select commands. Run it on an idle computer: the estimate cannot know what
others will do.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from _measure import heading, report, run_script
from icqf.datasets import demo_paths, load_bfi, load_demo

WITHIN = 2.0  # times as long or as short
LEAST = 0.8  # share of the commands
WORTH = 5.0  # seconds: nobody plans around less

RUN = """
import json, sys, time
from icqf.cli import main, terminal
told = []
class Meter(terminal.Meter):
    def _promise(self):
        left, now = self._forecast.left(time.monotonic()), time.monotonic()
        if not self._promised and left is not None and self._forecast.whole:
            self.first = now - self._began + left
        super()._promise()
        if self._promised and not told:
            told.append(self.first)
    def __exit__(self, *how):
        super().__exit__(*how)
        last = told[0] if told else getattr(self, "first", None)
        print(json.dumps({"said": last, "took": time.monotonic() - self._began}), flush=True)
terminal.Meter = Meter
import icqf.cli.job
icqf.cli.job.Meter = Meter
main()
"""


def studies(folder: Path) -> dict[str, list[str]]:
    """The commands, with files of their studies, which are written into the folder."""
    answers, codebook = demo_paths()
    demo = [str(answers), "--codebook", str(codebook)]
    bfi = load_bfi()
    bfi.answers.join(bfi.confounds).to_csv(folder / "bfi.csv", index_label="id")
    table, items = str(folder / "bfi.csv"), ["--id", "id", "--items", *map(str, bfi.answers.columns)]
    parts = load_demo().answers
    (folder / "battery").mkdir()
    for at in range(3):
        parts.iloc[:, 40 * at : 40 * at + 39].to_csv(folder / "battery" / f"part{at}.csv", index_label="id")
    results = ["fit", table, *items, "--n-components", "5", "--beta", "0.1", "--no-figures"]
    quietly = [sys.executable, "-m", "icqf", *results, "-q", "--out", str(folder / "five")]
    subprocess.run(quietly, check=True, capture_output=True)
    five = str(folder / "five")
    return {
        "fit demo": ["fit", *demo, "--confounds", "age", "sex"],
        "fit bfi": ["fit", table, *items],
        "select --all-rules bfi": ["select", table, *items, "--all-rules"],
        "stability bfi": ["stability", table, *items],
        "stability demo": ["stability", *demo, "--confounds", "age", "sex"],
        "invariance bfi": ["invariance", five, table, "--by", "sex"],
        "shortform bfi": ["shortform", five, table],
        "plan bfi": ["plan", table, *items],
        "norms bfi": ["norms", five, table, "--by", "age", "sex"],
        "meta battery": ["meta", str(folder / "battery")],
        "batch battery": ["batch", str(folder / "battery")],
    }


def main() -> None:
    good = counted = 0
    heading(f"Promised and taken, seconds; load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for at, (name, words) in enumerate(studies(folder).items()):
            if sys.argv[1:] and not any(word in name for word in sys.argv[1:]):
                continue
            out = folder / f"out{at}{'.csv' if words[0] == 'select' else ''}"
            command = [sys.executable, "-c", RUN, *words, "--out", str(out)]
            done = subprocess.run(command, capture_output=True, text=True)
            lines = [line for line in done.stdout.splitlines() if line.startswith('{"said"')]
            if done.returncode or not lines:
                raise SystemExit(f"{name} failed:\n{done.stderr[-1500:]}")
            told = json.loads(lines[-1])
            said, took = told["said"], told["took"]
            within = said is not None and took / WITHIN <= said <= took * WITHIN
            if took >= WORTH:
                good, counted = good + within, counted + 1
            print(f"  {name:<24}{'nothing' if said is None else f'{said:.0f}':>8}{took:>8.0f}"
                  f"{'' if within else '   off'}", flush=True)  # fmt: skip
    share = good / counted if counted else 1.0
    print(f"  of {counted} commands that take {WORTH:g} s or more, {good} within a factor of {WITHIN:g}")
    report("share of promises that are off", 1 - share, 1 - LEAST)


if __name__ == "__main__":
    run_script(main)
