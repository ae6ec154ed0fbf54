"""Which engine runs a fit."""

from __future__ import annotations

from typing import Any

from icqf.engines.base import Engine
from icqf.engines.local import LOCAL

NAMES = ("local",)


def engine_of(engine: str | Engine) -> Engine:
    """The engine of a name, or the engine itself."""
    if isinstance(engine, Engine):
        return engine
    return LOCAL


def run(problems: Any, starts: Any, *, engine: str | Engine = LOCAL, **settings: Any) -> Any:
    """Factorize each problem from its start; see `Engine.run`."""
    return engine_of(engine).run(problems, starts, **settings)
