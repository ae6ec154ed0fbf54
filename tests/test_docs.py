"""Every Python block of the README and the docs runs, links lead somewhere, and versions agree."""

import re
import shutil
import tomllib
from pathlib import Path

import pytest

import icqf
from icqf.datasets import demo_paths

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def blocks():
    return [
        pytest.param(page, "\n".join(BLOCK.findall(page.read_text(encoding="utf-8"))), id=page.name)
        for page in PAGES
        if BLOCK.search(page.read_text(encoding="utf-8")) and ">>>" not in page.read_text(encoding="utf-8")
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:PyTorch and Triton find no CUDA GPU")
@pytest.mark.parametrize(("page", "code"), blocks())
def test_code_blocks_run(page, code, tmp_path, monkeypatch):
    answers, codebook = demo_paths()
    shutil.copy(answers, tmp_path / "answers.csv")
    shutil.copy(codebook, tmp_path / "items.csv")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, str(page), "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_one_version_everywhere():
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert cited and cited[1] == icqf.__version__
    experiments = tomllib.loads((ROOT / "experiments" / "pyproject.toml").read_text(encoding="utf-8"))
    assert experiments["project"]["version"] == icqf.__version__
    latest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert latest and latest[1] == icqf.__version__
