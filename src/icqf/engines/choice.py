"""Which engine runs a fit."""

from __future__ import annotations

from typing import Any

from icqf.engines.base import Engine
from icqf.engines.local import LOCAL
from icqf.errors import InputError


def engine_of(engine: str | Engine, *, scheduler: str | None = None) -> Engine:
    """The engine of a name, or the engine itself; `scheduler` is the address of a Dask cluster.

    Engines that need more than this package are imported when they are asked for.
    """
    if scheduler is not None and engine != "dask":
        raise InputError(
            "A scheduler is named, and the engine is not a Dask cluster.",
            code="scheduler-alone",
            remedy='Set engine="dask", or leave the scheduler out.',
        )
    if isinstance(engine, Engine):
        return engine
    if engine == "local":
        return LOCAL
    if engine == "torch":
        from icqf.engines.torch import TORCH

        return TORCH
    if engine == "dask":
        from icqf.engines.dask import DASK, Dask

        return DASK if scheduler is None else Dask(scheduler=scheduler)
    raise InputError(f"The engine {engine!r} is not to be had.", code="no-engine", engine=engine)


def run(problems: Any, starts: Any, *, engine: str | Engine = LOCAL, **settings: Any) -> Any:
    """Factorize each problem from its start; see `Engine.run`."""
    return engine_of(engine).run(problems, starts, **settings)
