"""A benchmark whose limit is missed fails."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.mark.parametrize(("ratio", "status"), [("0.9", 0), ("1.0", 0), ("1.1", 1), ("float('nan')", 1)])
def test_exit_status_says_whether_every_limit_was_reached(ratio, status):
    claims = f"[report('a', {ratio}, 1.0), report('b', 0.5, 1.0)]"
    code = f"from _measure import report, run_script; run_script(lambda: {claims})"
    done = subprocess.run([sys.executable, "-c", code], cwd=BENCHMARKS, capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    assert ("NOT reached" in done.stdout) == bool(status)


def test_every_benchmark_reports_its_claims_and_exits_by_them():
    for script in BENCHMARKS.glob("bench_*.py"):
        text = script.read_text(encoding="utf-8")
        assert " report(" in text and "run_script(main)" in text, script.name
