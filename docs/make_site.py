"""Builds the documentation site: `python docs/make_site.py [folder]`, or `make docs`.

Pages stay where a reader of the repository finds them, with links that work there. They are gathered into one
folder, links follow them, and Sphinx builds the site from it. Any warning is an error: a link, an anchor or a
picture that is not there, and a page that no list of pages names.

The lists of pages are those in `LISTS`: whatever a line there that begins with `- [` links to stands below it
in the navigation.
"""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from os.path import relpath
from pathlib import Path, PurePosixPath
from typing import Any

import make_api
import make_examples

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
SITE = ROOT / "build" / "site"
LISTS = (
    *("index.md", "start.md", "guide.md", "examples/index.md", "results/index.md"),
    *("reference.md", "project.md"),
)
PROJECT = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
LINK = re.compile(r"(?<=\]\()([^)#\s]+)(?=[)#])")
LISTED = re.compile(r"^- \[(.+?)\]\(([^)#\s]+)\)", re.MULTILINE)


def places() -> dict[Path, PurePosixPath]:
    """Every page of the repository that the site shows, and its place there."""
    pages = {path: PurePosixPath(path.relative_to(DOCS).as_posix()) for path in sorted(DOCS.rglob("*.md"))}
    pages |= {ROOT / name: PurePosixPath("project", name.lower().replace("_", "-")) for name in PROJECT}
    pages[ROOT / "examples" / "README.md"] = PurePosixPath("examples/index.md")
    pages |= {path: PurePosixPath("examples", f"{path.stem}.md") for path in make_examples.examples()}
    return pages


def gather(source: Path) -> None:
    """Fill a folder with everything that the site is built from."""
    pages = places()
    for path, place in pages.items():
        text = example_page(path) if path.suffix == ".py" else path.read_text(encoding="utf-8")
        text = relinked(text, path, pages, source)
        if str(place) in LISTS:
            text += navigation(text)
        write(source / place, text)
    write(source / "api.md", api_contents())
    for name in make_api.PACKAGES:
        write(source / "api" / f"{name}.md", api_page(name))
    shutil.copytree(DOCS / "site", source, dirs_exist_ok=True)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def relinked(text: str, page: Path, pages: dict[Path, PurePosixPath], source: Path) -> str:
    """A page's text with its links leading to where their targets are in the site.

    Files that are not pages (pictures, tables, scripts) are copied along. What is not there stays as it is,
    and Sphinx says so.
    """

    def moved(link: re.Match[str]) -> str:
        target = (page.parent / link[1]).resolve()
        if "://" in link[1] or not target.is_file():
            return link[1]
        place = pages.get(target)
        if place is None:
            inside = DOCS if target.is_relative_to(DOCS) else ROOT
            place = PurePosixPath(target.relative_to(inside).as_posix())
            (source / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(target, source / place)
        return PurePosixPath(relpath(place, pages[page].parent)).as_posix()

    return LINK.sub(moved, text)


def navigation(text: str) -> str:
    """What Sphinx is told of the pages below a list of pages."""
    entries = [f"{title.replace('`', '')} <{target}>" for title, target in LISTED.findall(text)]
    return "\n".join(["", "```{toctree}", ":hidden:", "", *entries, "```", ""])


def example_page(path: Path) -> str:
    """An example as a page: what its docstring says, its picture, what it prints, and its code."""
    code = path.read_text(encoding="utf-8")
    said, code = re.fullmatch(r'"""(.*?)"""\n+(.*)', code, re.DOTALL).groups()  # type: ignore[union-attr]
    title, _, rest = said.partition("\n\n")
    printed = (make_examples.OUTPUT / f"{path.stem}.txt").read_text(encoding="utf-8")
    return "\n".join(
        [
            f"# {title.strip().rstrip('.')}",
            "",
            rest.strip(),
            "",
            f"![What {path.name} draws](output/{path.stem}.png)",
            "",
            *("## What it prints", "", "```", printed.rstrip("\n"), "```", ""),
            *(f"## The code: `examples/{path.name}`", "", "```python", code.rstrip("\n"), "```", ""),
        ]
    )


def api_contents() -> str:
    """The reference's first page: every public name by package, and a scikit-learn pipeline."""
    return "\n".join([make_api.HEAD, *api_names(), make_api.PIPELINE.strip(), "", *api_packages(), ""])


def api_names() -> Iterator[str]:
    yield from ("| package | names |", "|---|---|")
    for name in make_api.PACKAGES:
        names = make_api.public(importlib.import_module(name))
        yield f"| [`{name}`](api/{name}.md) | {', '.join(f'{{py:obj}}`~{name}.{one}`' for one in names)} |"
    yield ""


def api_packages() -> Iterator[str]:
    yield from ("```{toctree}", ":hidden:", "", *(f"api/{name}" for name in make_api.PACKAGES), "```")


def api_page(name: str) -> str:
    """One package of the reference: Sphinx fills it in from the docstrings."""
    package = importlib.import_module(name)
    out = [
        f"# `{name}`",
        "",
        make_api.summary(package),
        "",
        "```{eval-rst}",
        f".. currentmodule:: {name}",
        "",
    ]
    for one, thing in make_api.public(package).items():
        out += [f".. auto{kind(thing)}:: {one}", *(members(thing) if inspect.isclass(thing) else []), ""]
        result = returned(thing)
        if results().get(result) == thing:
            out += [f".. autoclass:: {result.__module__}.{result.__qualname__}", *members(result), ""]
    return "\n".join([*out, "```", ""])


def returned(thing: Any) -> Any:
    """The class that a function of icqf says it returns; None for a class or another annotation."""
    name = None if inspect.isclass(thing) else inspect.signature(thing).return_annotation
    return getattr(inspect.getmodule(thing), str(name).removesuffix(" | None"), None)


@cache
def results() -> dict[type, Any]:
    """Classes without an entry of their own that public functions return, and the first such function."""
    packages = [make_api.public(importlib.import_module(name)) for name in make_api.PACKAGES]
    named = {id(thing) for public in packages for thing in public.values()}
    functions = [thing for public in packages for thing in public.values() if not inspect.isclass(thing)]
    pairs = {returned(thing): thing for thing in reversed(functions)}
    return {
        result: thing
        for result, thing in pairs.items()
        if inspect.isclass(result) and result.__module__.startswith("icqf.") and id(result) not in named
    }


def members(thing: type) -> list[str]:
    """Options that list a class's members, including those of its bases in icqf but not of other packages."""
    others = [base.__name__ for base in thing.__mro__ if not base.__module__.startswith("icqf")]
    return ["   :members:", f"   :inherited-members: {', '.join(others)}"]


def kind(thing: Any) -> str:
    if inspect.isclass(thing):
        return "exception" if issubclass(thing, BaseException) else "class"
    return "function"


def build(site: Path) -> int:
    """Gather the pages beside the site's folder and build it; Sphinx's exit code."""
    source = site.with_name(f"{site.name}-pages")
    for folder in (source, site):
        shutil.rmtree(folder, ignore_errors=True)
    gather(source)
    return subprocess.run(sphinx(source, site)).returncode


def sphinx(source: Path, site: Path) -> list[str]:
    """The command that builds a site, with warnings as errors."""
    options = ["-b", "html", "-W", "--keep-going", "-q", "-d", str(source / ".doctrees")]
    return [sys.executable, "-m", "sphinx", *options, str(source), str(site)]


if __name__ == "__main__":
    folder = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else SITE
    if code := build(folder):
        print(f"The site is not whole: see the warnings above. Its pages were gathered in {folder}-pages.")
    else:
        print(f"Open {folder / 'index.html'}")
    sys.exit(code)
