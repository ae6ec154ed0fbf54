"""What all tests share: helpers beside them can be imported, and nothing is left in the checkout."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from icqf.datasets import load_demo
from icqf.engines import parallel

sys.path.insert(0, str(Path(__file__).parent))
ROOT = Path(__file__).parent.parent

# A reviewer's run draws the same examples every time; elsewhere each run looks at new ones. How long an
# example takes says more about the machine than about the code.
settings.register_profile("new", deadline=None)
settings.register_profile("same", deadline=None, derandomize=True)
settings.load_profile("same" if os.environ.get("CI") else "new")

# No test cuts the power: what is written need not have reached the disk, which takes longer than many fits.
os.fsync = os.fstat

# Processes start only where a test asks for them: that takes longer than most of its fits.
parallel._WORTH_PROCESSES = parallel._SECONDS_TO_START = float("inf")

BEFORE = pytest.StashKey[set[str]]()


def untracked() -> set[str]:
    """Files and folders of the checkout that git does not track, but for caches and what is built."""
    listing = ["git", "ls-files", "--others", "--directory", "--no-empty-directory"]
    try:
        found = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):  # not a checkout
        return set()
    names = {name for name in found.splitlines() if "__pycache__" not in name}
    return {
        name for name in names if not name.startswith((".", "build/", "dist/")) and "egg-info" not in name
    }


def pytest_sessionstart(session):
    session.config.stash[BEFORE] = untracked()


def pytest_sessionfinish(session):
    """Fail where tests left files in the checkout."""
    if hasattr(session.config, "workerinput"):
        return
    left = sorted(untracked() - session.config.stash[BEFORE])
    if left:
        print(f"\nThe tests left files in the checkout: {', '.join(left)}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def demo():
    """600 participants and 29 items of eight subscales, with age and sex as confounds."""
    return load_demo().select(["q00*", "q01*", "q02*"])
