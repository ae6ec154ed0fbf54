"""Templates of the package, and the files that pages are made of."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def environment(package: str = "icqf.report", **options: Any) -> Environment:
    """Return what renders a package's templates: everything is escaped, and nothing may be undefined."""
    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        **options,
    )


def file_of(found: Environment, name: str) -> str:
    """Return a file of the package as it is, without the template language."""
    loader: Any = found.loader
    text: str = loader.get_source(found, name)[0]
    return text
