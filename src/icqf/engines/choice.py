"""Which engine runs a fit."""

from __future__ import annotations

from typing import Any

from icqf.data.settings import ENGINES, check_parameter
from icqf.engines.base import Engine
from icqf.engines.local import LOCAL
from icqf.errors import Advice, InputError


def engine_of(engine: str | Engine, *, scheduler: str | None = None) -> Engine:
    """The engine of this name, or the engine itself; `scheduler` is the address of a Dask cluster.

    Engines are imported on first use; installed packages add engines by entry points of the group
    ``icqf.engines``.
    """
    if scheduler is not None and engine != "dask":
        raise InputError(
            "A scheduler is given, but the engine is not a Dask cluster.",
            code="scheduler-alone",
            remedy=Advice("Add {engine=}, or leave {scheduler} out.", engine="dask"),
        )
    if isinstance(engine, Engine):
        return engine
    check_parameter("engine", engine)
    if scheduler is not None:
        from icqf.engines.dask import Dask

        return Dask(scheduler=scheduler)
    loaded: Engine = ENGINES.load(engine)
    return loaded.here()


def run(problems: Any, starts: Any, *, engine: str | Engine = LOCAL, **settings: Any) -> Any:
    """Factorize each problem from its start; see `Engine.run`."""
    return engine_of(engine).run(problems, starts, **settings)
