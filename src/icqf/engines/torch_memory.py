"""Where kernels run, and how many problems fit there at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TypeVar

import torch

from icqf.errors import Advice, InputError

T = TypeVar("T")
_SHARE = 0.7  # of the memory that is free, for a batch
_INTERPRETED = 2**28  # bytes of a batch where there is no GPU


def device() -> torch.device | None:
    """The first CUDA device; None where PyTorch and Triton find none.

    With TRITON_INTERPRET=1 in the environment, Triton runs kernels on the processor, very slowly: that is how
    they are tested without a GPU.
    """
    if find_spec("triton") is None:
        return None
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("cpu") if os.environ.get("TRITON_INTERPRET") == "1" else None


def memory() -> int:
    """Bytes that a batch may take."""
    if not torch.cuda.is_available():
        return _INTERPRETED
    free, _ = torch.cuda.mem_get_info()
    unused = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    return int(_SHARE * (free + unused))


def in_batches(things: Sequence[T], size: int, work: Callable[[Sequence[T]], object]) -> None:
    """Work through things so many at a time; where memory does not suffice, half as many."""
    first = 0
    while first < len(things):
        if _fits(work, things[first : first + size]):
            first += size
        elif size == 1:
            raise InputError(
                "The GPU has not enough memory for even one fit of this table.",
                code="gpu-memory",
                remedy=Advice("Free memory on it, or use {engine=}.", engine="local"),
            )
        else:
            size = max(1, min(size, len(things) - first) // 2)


def _fits(work: Callable[[Sequence[T]], object], part: Sequence[T]) -> bool:
    try:
        work(part)
    except torch.OutOfMemoryError:
        pass  # what the failed attempt holds is let go only when this block is left
    else:
        return True
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return False
