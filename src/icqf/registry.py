"""Registries of built-in components by name, and of those that installed packages add by entry points."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from icqf.errors import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Registry:
    """Components of one kind by name, each imported on first use."""

    def __init__(self, group: str, own: Mapping[str, str], what: str, kind: str) -> None:
        self.group, self.own, self.what, self.kind = group, dict(own), what, kind

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self.own or name in self.added())

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        yield from self.added()

    def added(self) -> dict[str, EntryPoint]:
        """Entry points of installed packages by name; searched only for names that are not built in."""
        entries = {entry.name: entry for entry in reversed(_entry_points(self.group, tuple(sys.path)))}
        return {name: entries[name] for name in sorted(entries) if name not in self.own}

    def load(self, name: str) -> Any:
        """Import the component of this name."""
        if name in self.own:
            return _import(self.own[name])
        entry = self.added()[name]
        package = entry.dist.name if entry.dist is not None else entry.value
        place = f"{name!r} ({self.group}) of the package {package!r}"
        remedy = "Update or uninstall that package."
        try:
            component = entry.load()
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"
            raise InputError(f"{place} cannot be loaded ({fault}).", code="plug-in", remedy=remedy) from error
        kind = _import(self.kind)
        if not (isinstance(component, kind) or (isinstance(component, type) and issubclass(component, kind))):
            raise InputError(f"{place} is not {self.what}.", code="plug-in", remedy=remedy)
        return component


@lru_cache
def _entry_points(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """The entry points of all packages on this path; cached, as the search is slow."""
    from importlib.metadata import entry_points

    return tuple(entry_points(group=group))


def _import(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)
