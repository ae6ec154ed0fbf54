"""Where batches of tensors run, and how many problems fit there at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

from icqf.errors import InputError

T = TypeVar("T")
_SHARE = 0.7  # of the memory that is free, for a batch
_ON_CPU = 2**28  # bytes of a batch where there is no GPU: larger ones gain nothing


def device() -> torch.device:
    """The first CUDA device, or the processor."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def memory() -> int:
    """Bytes that a batch may take."""
    if not torch.cuda.is_available():
        return _ON_CPU
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
                remedy="Free memory on it, or use engine='local'.",
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
