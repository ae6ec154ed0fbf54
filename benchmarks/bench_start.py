"""CPU time of ``icqf --version`` and ``icqf fit --help``, best of nine.

Times are of user and system together, so that others who use the machine count little.
"""

from __future__ import annotations

import os
import subprocess
import sys

from _measure import heading, report, run_script

TIMES = 9
LIMITS = {("--version",): 0.15, ("fit", "--help"): 0.25}  # seconds


def cpu_seconds(command: tuple[str, ...]) -> float:
    """CPU time of one call of the program."""
    before = os.times()
    subprocess.run([sys.executable, "-m", "icqf", *command], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    spent = after.children_user - before.children_user + after.children_system - before.children_system
    return float(spent)


def main() -> None:
    """Measure both commands."""
    heading("The start of the program")
    for command, limit in LIMITS.items():
        shortest = min(cpu_seconds(command) for _ in range(TIMES))
        print(f"  icqf {' '.join(command)}: {shortest:.2f} s")
        report(f"icqf {' '.join(command)}, CPU time over {limit} s", shortest / limit, 1.0)


if __name__ == "__main__":
    run_script(main)
