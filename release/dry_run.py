"""Everything of a release but the upload: `make release`, or `python release/dry_run.py [--python PATH ...]`.

Each step is one line, and its output is in dist/release.log. The wheel is tried with every Python 3.11 to
3.14 on the search path or named with --python. What a step needs is installed into build/release-tools; a
step that needs R says where it is not installed.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
TOOLS = ROOT / "build" / "release-tools"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
NEEDS = ("check-jsonschema", "jsonschema>=4.18", "zizmor", "py-rattler-build")
LONGEST_PAPER = 1100  # words; the journal asks for about a thousand


class Skipped(Exception):
    """A step that this computer cannot do, and why."""


class StepFailed(Exception):
    """What went wrong in a step."""


def run(*words: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    with open(DIST / "release.log", "a", encoding="utf-8") as log:
        log.write(f"$ {' '.join(str(word) for word in words)}\n{done.stdout}\n")
    if done.returncode:
        raise StepFailed(
            done.stdout.strip().splitlines()[-1] if done.stdout.strip() else f"exit {done.returncode}"
        )
    return done.stdout


def tool(name: str) -> Path:
    if not (TOOLS / "bin" / "python").exists():
        run(sys.executable, "-m", "venv", TOOLS)
        run(TOOLS / "bin" / "python", "-m", "pip", "install", "--quiet", *NEEDS)
    return TOOLS / "bin" / name


def version() -> str:
    text = (ROOT / "src" / "icqf" / "__init__.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)[1]  # type: ignore[index]


def versions() -> str:
    run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_docs.py", "-k", "version")
    return f"{version()} everywhere"


def changelog() -> str:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(version())} \((.+)\)$", text, re.MULTILINE)
    if found is None:
        raise StepFailed(f"CHANGELOG.md has no section {version()}")
    if found[1] == "unreleased":
        return "has a section for it; replace (unreleased) with the date"
    return f"dated {found[1]}"


def packages() -> str:
    run("make", "dist")
    return ", ".join(sorted(path.name for path in DIST.iterdir() if path.suffix in (".whl", ".gz")))


def wheel_with(name: str, python: str | None) -> Callable[[], str]:
    def step() -> str:
        if python is None:
            raise Skipped(f"Python {name} is not installed here")
        wheel = next(DIST.glob("icqf-*.whl"))
        with tempfile.TemporaryDirectory() as folder:
            run(python, "-m", "venv", Path(folder) / "venv")
            own = Path(folder) / "venv" / "bin"
            run(own / "python", "-m", "pip", "install", "--quiet", "--only-binary", ":all:", wheel)
            run(own / "icqf", "demo", "--out", Path(folder) / "demo", cwd=Path(folder))
            return run(own / "icqf", "--version").strip() + ", and the demo runs"

    return step


def recipe() -> str:
    code = "import sys, rattler_build; rattler_build.Stage0Recipe.from_file(sys.argv[1])"
    run(tool("python"), "-c", code, "release/recipe.yaml")
    return "release/recipe.yaml is a valid recipe of rattler-build"


def workflows() -> str:
    files = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    run(tool("check-jsonschema"), "--builtin-schema", "vendor.github-workflows", *files)
    run(tool("zizmor"), "--offline", ".github")
    return f"{len(files)} files agree with the schema, and zizmor finds nothing"


def metadata() -> str:
    run(tool("check-jsonschema"), "--builtin-schema", "vendor.citation-file-format", "CITATION.cff")
    deposit = json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))
    missing = {"title", "description", "creators", "license", "upload_type"} - set(deposit)
    if missing:
        raise StepFailed(f".zenodo.json lacks {', '.join(sorted(missing))}")
    return "CITATION.cff agrees with its schema, .zenodo.json is complete"


def site() -> str:
    run("make", "docs")
    artefact = DIST / f"icqf-docs-{version()}.tar.gz"
    with tarfile.open(artefact, "w:gz") as archive:
        archive.add(ROOT / "build" / "site", arcname=f"icqf-docs-{version()}")
    return artefact.name


def r_package() -> str:
    if shutil.which("R") is None:
        raise Skipped("R is not installed here")
    found = re.search(r"^Status: (.+)$", run("make", "r"), re.MULTILINE)
    if found is None or "ERROR" in found[1] or "WARNING" in found[1]:
        raise StepFailed(found[1] if found else "R CMD check gave no status")
    return f"R CMD check: {found[1]}"


def paper() -> str:
    text = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
    body = text.split("---", 2)[2].split("# References")[0]
    words = len(
        re.findall(r"\b[\w’'-]+\b", re.sub(r"!\[.*?\]\(.*?\)|`[^`]*`|\[@.*?\]", "", body, flags=re.DOTALL))
    )
    cited = set(re.findall(r"@([A-Za-z]\w+)", body))
    known = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "paper" / "paper.bib").read_text("utf-8"), re.MULTILINE))
    if cited - known:
        raise StepFailed(f"paper.bib lacks {', '.join(sorted(cited - known))}")
    if words > LONGEST_PAPER:
        raise StepFailed(f"{words} words; the journal asks for about 1000")
    for picture in re.findall(r"!\[.*?\]\((.+?)\)", body, flags=re.DOTALL):
        if not (ROOT / "paper" / picture).is_file():
            raise StepFailed(f"the figure {picture} is missing")
    return f"{words} words, {len(cited)} references, all known"


def steps(pythons: list[str]) -> Iterator[tuple[str, Callable[[], str]]]:
    yield "versions", versions
    yield "changelog", changelog
    yield "wheel and sdist", packages
    named = {
        str(run(path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])")).strip(): path
        for path in pythons
    }
    for name in PYTHONS:
        yield f"wheel, Python {name}", wheel_with(name, named.get(name) or shutil.which(f"python{name}"))
    yield "conda recipe", recipe
    yield "hosted workflows", workflows
    yield "citation, Zenodo", metadata
    yield "documentation site", site
    yield "R package", r_package
    yield "paper", paper


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--python", action="append", default=[], help="a further interpreter to try the wheel with"
    )
    arguments = parser.parse_args()
    DIST.mkdir(exist_ok=True)
    failed = 0
    for name, step in steps(arguments.python):
        try:
            result, said = "ok", step()
        except Skipped as reason:
            result, said = "not here", str(reason)
        except StepFailed as reason:
            result, said, failed = "FAILED", str(reason), failed + 1
        print(f"{result:9} {name:22} {said}", flush=True)
    print(
        f"{failed} steps failed."
        if failed
        else "Ready; what is left is the tag and the upload (CONTRIBUTING.md, A release)."
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
