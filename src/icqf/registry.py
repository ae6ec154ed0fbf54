"""Registries of what can be added: our own by name, and what installed packages add through entry points."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from icqf.errors import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Registry:
    """Things of one kind by name, each imported when it is used.

    Parameters
    ----------
    group : str
        The entry points by which an installed package adds its own, such as ``"icqf.engines"``.
    own : mapping of str
        Where ours are: ``"module:attribute"`` by name. They come first; none can be replaced from outside.
    what : str
        What an entry of this kind must be, with its article, such as ``"a click command"``.
    accepts : callable
        Whether something is that.

    Examples
    --------
    >>> from icqf.registry import Registry
    >>> rounding = Registry("icqf.rounding", {"down": "math:floor"}, "a function", callable)
    >>> rounding.load("down")(2.7), "up" in rounding, list(rounding)
    (2, False, ['down'])
    """

    def __init__(self, group: str, own: Mapping[str, str], what: str, accepts: Callable[[Any], bool]) -> None:
        self.group, self.own, self.what, self.accepts = group, dict(own), what, accepts

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in self.added()

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        yield from self.added()

    def added(self) -> dict[str, EntryPoint]:
        """What installed packages add, by name; read anew, and only when ours are not enough."""
        from importlib.metadata import entry_points

        found = {entry.name: entry for entry in reversed(tuple(entry_points(group=self.group)))}
        return {name: found[name] for name in sorted(found) if name not in self.own}

    def load(self, name: str) -> Any:
        """Import what has this name."""
        if name in self.own:
            module, _, attribute = self.own[name].partition(":")
            return getattr(importlib.import_module(module), attribute)
        entry = self.added()[name]
        package = entry.dist.name if entry.dist is not None else entry.value
        place = f"{name!r} ({self.group}) of the package {package!r}"
        remedy = "Update or uninstall that package."
        try:
            thing = entry.load()
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"
            raise InputError(f"{place} cannot be loaded ({fault}).", code="plug-in", remedy=remedy) from error
        if not self.accepts(thing):
            raise InputError(f"{place} is not {self.what}.", code="plug-in", remedy=remedy)
        return thing
