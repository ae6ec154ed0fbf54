"""Tests leave nothing in the checkout: the check of the session's end can fail."""

import os
import shutil
import subprocess
import sys
from pathlib import Path


def test_a_file_that_a_test_leaves_fails_the_run(tmp_path):
    """And one in the test's own folder does not count."""
    checkout = tmp_path / "checkout"
    (checkout / "tests").mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("conftest.py"), checkout / "tests")
    subprocess.run(["git", "init", "-q"], cwd=checkout, check=True)
    subprocess.run(["git", "add", "."], cwd=checkout, check=True)
    (checkout / "tests" / "test_one.py").write_text(
        "from pathlib import Path\n\ndef test_one(tmp_path):\n"
        "    Path('left.csv').write_text('1'), (tmp_path / 'mine.csv').write_text('1')\n"
    )
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    plain = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(words, cwd=checkout, capture_output=True, text=True, env=plain)
    assert ran.returncode == 1, ran.stdout
    assert "The tests left files in the checkout: left.csv\n" in ran.stdout
