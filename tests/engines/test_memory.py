"""How a process keeps its memory is set in workers of a cluster, never in the process of the user."""

import ctypes
import multiprocessing

import pytest

from icqf.engines import dask as chunks


class Library:
    def __init__(self):
        self.set = []

    def mallopt(self, option, size):
        self.set.append(option)


@pytest.mark.parametrize(
    ("worker", "dask", "touched"), [(False, True, False), (True, False, False), (True, True, True)]
)
def test_only_a_worker_of_dask_is_touched(monkeypatch, worker, dask, touched):
    library = Library()
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    monkeypatch.setattr(chunks.sys, "platform", "linux")
    monkeypatch.setattr(
        chunks, "parent_process", lambda: multiprocessing.current_process() if worker else None
    )
    if dask:
        monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "65536")
    else:
        monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    chunks.keep_memory.__wrapped__()
    assert bool(library.set) is touched
