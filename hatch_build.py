"""What the package index shows of the README, and where the project lives; part of every build.

Links in the README lead to files of the repository, so that they work there, on any host and in a checkout.
On the index they would lead nowhere. They become links to the tag of the release under `address` in
pyproject.toml's table `tool.icqf`; as long as no address is given there, links become plain text and pictures
are left out.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
ELSEWHERE = re.compile(r"[a-z]+:|#")
VERSION = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)


def for_the_index(readme: str, address: str, version: str) -> str:
    """The README with links that work away from the repository, or, without an address, with none."""

    def rewritten(link: re.Match[str]) -> str:
        if ELSEWHERE.match(link["target"]):
            return link[0]
        if not address:
            return "" if link["picture"] else link["text"]
        kind = "raw" if link["picture"] else "blob"
        return f"{link['picture']}[{link['text']}]({address}/{kind}/v{version}/{link['target']})"

    return re.sub(r"\n{3,}", "\n\n", LINK.sub(rewritten, readme))


def places(address: str) -> dict[str, str]:
    """The links that the index shows beside the README."""
    found = {"Paper": "https://openreview.net/forum?id=1Yq6INJwiO"}
    if address:
        found |= {"Source": address, "Issues": f"{address}/issues"}
        found["Changelog"] = f"{address}/blob/main/CHANGELOG.md"
    return found


class IndexHook(MetadataHookInterface):
    """Fills in what pyproject.toml calls dynamic: readme and urls."""

    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["icqf"]
        address = settings["address"].rstrip("/")
        version = VERSION.search((root / "src" / "icqf" / "__init__.py").read_text(encoding="utf-8"))[1]  # type: ignore[index]
        readme = (root / "README.md").read_text(encoding="utf-8")
        text = for_the_index(readme, address, version)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = places(address)
