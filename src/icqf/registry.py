"""Registries of what can be added: our own by name, and what installed packages add through entry points."""

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
    """Things of one kind by name, each imported when it is used."""

    def __init__(self, group: str, own: Mapping[str, str], what: str, kind: str) -> None:
        self.group, self.own, self.what, self.kind = group, dict(own), what, kind

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self.own or name in self.added())

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        yield from self.added()

    def added(self) -> dict[str, EntryPoint]:
        """What installed packages add, by name; looked up only when ours are not enough."""
        found = {entry.name: entry for entry in reversed(_entry_points(self.group, tuple(sys.path)))}
        return {name: found[name] for name in sorted(found) if name not in self.own}

    def load(self, name: str) -> Any:
        """Import what has this name."""
        if name in self.own:
            return _imported(self.own[name])
        entry = self.added()[name]
        package = entry.dist.name if entry.dist is not None else entry.value
        place = f"{name!r} ({self.group}) of the package {package!r}"
        remedy = "Update or uninstall that package."
        try:
            thing = entry.load()
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"
            raise InputError(f"{place} cannot be loaded ({fault}).", code="plug-in", remedy=remedy) from error
        kind = _imported(self.kind)
        if not (isinstance(thing, kind) or (isinstance(thing, type) and issubclass(thing, kind))):
            raise InputError(f"{place} is not {self.what}.", code="plug-in", remedy=remedy)
        return thing


@lru_cache
def _entry_points(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """The entry points of all packages on this path, which takes a moment to search."""
    from importlib.metadata import entry_points

    return tuple(entry_points(group=group))


def _imported(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)
