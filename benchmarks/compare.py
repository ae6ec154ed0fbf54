"""Two versions of the package, measured side by side: `python benchmarks/compare.py OLD NEW`.

OLD and NEW are folders (checkouts) or git revisions. For each case both versions are loaded, each in a
process of its own on one thread, and take turns, so that both meet the same machine. Processor time is
counted, as a busy machine changes it least, and the shortest of each counts. The cases use only public names
that old and new versions have in common. Exits with 1 when NEW takes more than 1.05 times as long in any
case.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 1.05
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}

Work = Callable[[], Any]


# --- the cases: each prepares its data and returns what is timed --------------------------------------------


def answers_of(name: str, n: int, *, missing: float = 0.1) -> tuple[Any, Any, Any]:
    """A simulated cohort: answers as float32 with gaps, confounds, and the questionnaire."""
    import numpy as np

    from icqf.datasets import make_cohort

    questionnaire = make_cohort(name, n).questionnaire
    answers = questionnaire.answers.to_numpy(np.float32)
    if missing:
        answers = np.where(np.random.default_rng(0).random(answers.shape) < missing, np.nan, answers)
    return answers.astype(np.float32), questionnaire.confounds, questionnaire


def fit(name: str, n: int) -> Work:
    from icqf import ICQF

    answers, confounds, _ = answers_of(name, n)
    return lambda: ICQF(8, beta=0.1, item_range=(0, 2), n_init=1).fit(answers, confounds=confounds).objective_


def fit_without_bounds() -> Work:
    import numpy as np

    from icqf import ICQF

    answers = np.nan_to_num(answers_of("abcd", 11_681, missing=0)[0])
    free = {"score_max": None, "loading_max": None, "reconstruction_max": None, "intercept": False}
    return lambda: ICQF(8, beta=0.1, item_range=(0, 2), n_init=1, **free).fit(answers).objective_


def search() -> Work:
    from icqf import ICQF, ICQFCV

    answers, confounds, _ = answers_of("hbn", 1_335)
    ks = [4, 6, 8, 10]
    common = {"betas": [0.05, 0.1, 0.5], "n_splits": 5, "random_state": 0}
    try:
        model = ICQFCV(ICQF(item_range=(0, 2), n_init=1), n_components=ks, **common)
    except TypeError:  # before the estimator was an argument
        model = ICQFCV(ks, item_range=(0, 2), **common)
    return lambda: model.fit(answers, confounds=confounds).errors_["error"].sum()


def transform() -> Work:
    from icqf import ICQF

    answers, confounds, _ = answers_of("abcd", 11_681)
    model = ICQF(8, beta=0.1, item_range=(0, 2), n_init=1).fit(answers, confounds=confounds)
    return lambda: model.transform(answers, confounds=confounds).sum()


def report() -> Work:
    from icqf import ICQF
    from icqf import report as pages

    _, confounds, questionnaire = answers_of("hbn", 1_335)
    model = ICQF(8, beta=0.1, item_range=(0, 2), n_init=1).fit(questionnaire.answers, confounds=confounds)
    options = {"n_bootstrap": 50, "compare": False}
    if "build_report" in dir(pages):  # before there was an analysis
        return lambda: pages.build_report(model, questionnaire, **options) and 0
    return lambda: pages.report_of(pages.analyse(model, questionnaire, **options)) and 0


def model_file() -> Work:
    """Save and load twenty times: one takes milliseconds."""
    from icqf import ICQF

    answers, confounds, _ = answers_of("hbn", 1_335)
    model = ICQF(8, beta=0.1, item_range=(0, 2), n_init=1).fit(answers, confounds=confounds)
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name, "model.icqf")

    def work() -> Any:
        for _ in range(20):
            model.save(path)
            loaded = ICQF.load(path)
        return loaded.components_.sum() + 0 * len(folder.name)  # the folder is there as long as this

    return work


def text_in_parts() -> Work:
    import numpy as np

    from icqf.io import open_stream

    rng, folder = np.random.default_rng(0), tempfile.TemporaryDirectory()
    path, names = Path(folder.name, "answers.csv"), [f"q{j}" for j in range(119)]
    np.savetxt(path, rng.integers(0, 5, (80_000, 119)), "%d", ",", header=",".join(names), comments="")

    def work() -> Any:
        batches = open_stream(path).batches(names)
        return sum(batch.matrix(names).sum() for batch in batches) + 0 * len(folder.name)

    return work


CASES: dict[str, tuple[str, Callable[[], Work]]] = {
    "small": ("a full fit, 1 335 × 119", lambda: fit("hbn", 1_335)),
    "large": ("a full fit, 11 681 × 119", lambda: fit("abcd", 11_681)),
    "nmf": ("no bounds, complete answers, 11 681 × 119", fit_without_bounds),
    "search": ("a search of 60 fits, 1 335 × 119", search),
    "transform": ("transform, 11 681 × 119", transform),
    "report": ("a report with 50 resamples, 1 335 × 119", report),
    "files": ("20 model files saved and loaded, 119 items", model_file),
    "text": ("a text of 19 MB in parts, 80 000 × 119", text_in_parts),
}


def serve(case: str) -> None:
    """Prepare a case, and run it whenever a line comes in; say its seconds and a number to compare."""
    import warnings

    import icqf

    warnings.simplefilter("ignore")
    work = CASES[case][1]()
    work()  # imports and caches are warm for both
    print(icqf.__file__, flush=True)
    for _ in sys.stdin:
        clock = time.process_time()
        value = work()
        print(time.process_time() - clock, float(value), flush=True)


# --- the comparison -----------------------------------------------------------------------------------------


class Version:
    """One version at work on one case, in a process of its own."""

    def __init__(self, source: Path, case: str) -> None:
        command = [sys.executable, __file__, "--serve", case]
        environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(source)}
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.seconds, self.value = float("inf"), float("nan")

    def answer(self) -> str:
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"a version could not run the case (exit status {self.process.wait()})")
        return line

    def run(self) -> None:
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        seconds, self.value = map(float, self.answer().split())
        self.seconds = min(self.seconds, seconds)

    def end(self) -> None:
        self.process.communicate()


def compare(case: str, sources: tuple[Path, Path], repeats: int) -> float:
    """Print a line of the table, and return the ratio."""
    versions = []
    for source in sources:  # one after the other: preparing needs the machine too
        versions.append(Version(source, case))
        loaded = versions[-1].answer()
        if not Path(loaded).is_relative_to(source):
            raise SystemExit(f"{loaded.strip()} was measured instead of {source}")
    for turn in range(repeats):
        for version in versions if turn % 2 == 0 else reversed(versions):
            version.run()
    for version in versions:
        version.end()
    old, new = versions
    ratio = new.seconds / old.seconds
    differ = abs(new.value - old.value) > 1e-6 * abs(old.value)
    note = f"  results differ: {old.value:.8g}, {new.value:.8g}" if differ else ""
    print(f"{CASES[case][0]:<45}{old.seconds:>9.3f}{new.seconds:>9.3f}{ratio:>8.3f}{note}", flush=True)
    return ratio


def source_of(version: str, folder: Path) -> Path:
    """The `src` folder of a checkout, or of a git revision unpacked below `folder`."""
    if Path(version).is_dir():
        return Path(version).resolve() / "src"
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", version, "src"], check=True, capture_output=True
    )
    target = folder / version.replace("/", "-")
    target.mkdir()
    subprocess.run(["tar", "-x", "-C", str(target)], input=archive.stdout, check=True)
    return target / "src"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", nargs="?", help="a folder or a git revision")
    parser.add_argument("new", nargs="?", default=str(ROOT), help="the same (default: this checkout)")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--serve", choices=CASES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve)
        return 0
    if given.old is None:
        parser.error("name the old version")
    with tempfile.TemporaryDirectory() as folder:
        sources = source_of(given.old, Path(folder)), source_of(given.new, Path(folder))
        print(f"best of {given.repeats}, in seconds of processor time{'':<6}{'old':>9}{'new':>9}{'ratio':>8}")
        ratios = [compare(case, sources, given.repeats) for case in given.cases]
    worst = max(ratios)
    print(f"worst ratio {worst:.3f} (limit {LIMIT}) {'NOT reached' if worst > LIMIT else 'reached'}")
    return 1 if worst > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
