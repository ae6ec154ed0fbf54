"""A benchmark whose limit is missed fails."""

import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def test_exit_status_says_whether_every_limit_was_reached():
    ratios = {"0.9": 0, "1.0": 0, "1.1": 1, "float('nan')": 1}
    code = (
        f"import _measure\nfor ratio in ({', '.join(ratios)}):\n"
        "    _measure.missed.clear()\n"
        "    claims = lambda: [_measure.report('a', ratio, 1.0), _measure.report('b', 0.5, 1.0)]\n"
        "    try: _measure.run_script(claims)\n"
        "    except SystemExit as ended: print(1 if ended.code else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=BENCHMARKS, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [int(line) for line in lines[2::3]] == list(ratios.values())
    assert ["NOT reached" in line for line in lines[0::3]] == [bool(status) for status in ratios.values()]


def test_every_benchmark_reports_its_claims_and_exits_by_them():
    for script in BENCHMARKS.glob("bench_*.py"):
        text = script.read_text(encoding="utf-8")
        assert " report(" in text and "run_script(main)" in text, script.name
