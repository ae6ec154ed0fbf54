"""The wheel and the sdist: what is in them, and what the package index would show."""

import importlib.util
import json
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

import icqf

ROOT = Path(__file__).parent.parent
ADDRESS = "https://example.org/someone/icqf"
RELATIVE = re.compile(r"\]\((?![a-z]+:|#)")


@pytest.fixture(scope="module")
def hook():
    """hatch_build.py, as a module."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel and the sdist; nothing is fetched to build them."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", folder], cwd=ROOT, check=True)
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


@pytest.mark.slow
def test_what_is_built(built):
    wheel, sdist = built
    assert wheel.name == f"icqf-{icqf.__version__}-py3-none-any.whl"  # no compiler, any system
    held = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("icqf/")}
    files = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src" / "icqf").rglob("*.*")}
    assert held == {name for name in files if not name.endswith(".pyc")}
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if "experiments" in name]
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"hatch_build.py", "README.md", "docs/site/conf.py", "examples/big_five.py", "Makefile"} <= names
    assert {"experiments/pyproject.toml", "experiments/src/icqf_experiments/command.py"} <= names
    described = zipfile.ZipFile(wheel).read(f"icqf-{icqf.__version__}.dist-info/METADATA")
    metadata = message_from_bytes(described)
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload().startswith("# icqf\n") and not RELATIVE.search(metadata.get_payload())
    assert "Paper, https://openreview.net/forum?id=1Yq6INJwiO" in metadata.get_all("Project-URL")


def test_the_index_shows_links_that_lead_somewhere(hook):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = hook.for_the_index(readme, ADDRESS, "1.2.3")
    assert not RELATIVE.search(shown)
    pictures = re.findall(rf"!\[[^\]]+\]\({ADDRESS}/raw/v1\.2\.3/([^)]+)\)", shown)
    links = re.findall(rf"\]\({ADDRESS}/blob/v1\.2\.3/([^)]+)\)", shown)
    assert len(pictures) >= 1 and len(links) >= 8
    for target in pictures + links:
        assert (ROOT / target).exists(), target
    assert hook.places(ADDRESS)["Source"] == ADDRESS


def test_without_an_address_the_index_shows_no_link_that_leads_nowhere(hook):
    text = "See [here](docs/a.md), [there](https://example.org).\n\n![Seen](docs/a.png)\n\nEnd [up](#top)."
    shown = hook.for_the_index(text, "", "1.2.3")
    assert shown == "See here, [there](https://example.org).\n\nEnd [up](#top)."
    assert set(hook.places("")) == {"Paper"}


def test_one_address_everywhere():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["icqf"]
    cited = re.search(
        r"^repository-code: \"?([^\"\n]+)", (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE
    )
    assert settings["address"] == (cited[1] if cited else "")


def test_the_container_starts_a_command_that_there_is():
    from icqf.cli.program import cli

    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    starts = [json.loads(line.removeprefix("CMD ")) for line in lines if line.startswith("CMD ")]
    (name, *words) = starts[-1]
    parent = cli.make_context("icqf", [name])  # a command remembers the names of its --help
    given = cli.get_command(parent, name).make_context(name, words, parent=parent).params
    assert (given["host"], given["allow_other_machines"], given["opens"]) == ("0.0.0.0", True, False)
    assert f"EXPOSE {given['port']}" in lines and f"VOLUME {given['folder']}" in lines
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (extras,) = re.findall(r"whl\)\[(.+?)\]", "\n".join(lines))
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
