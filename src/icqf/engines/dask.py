"""The engine of a Dask cluster: its workers hold chunks of participants, and only sums come back."""

from __future__ import annotations

import ctypes
import os
import socket
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from multiprocessing import parent_process
from typing import Any, Self

import numpy as np

from icqf.core.block_step import Multipliers
from icqf.core.observations import Array, Observations
from icqf.core.problem import Problem
from icqf.core.result import Factors
from icqf.core.rows import BlockState, Pass, Rows, RowsHere, total
from icqf.engines.base import Engine
from icqf.engines.local import LOCAL
from icqf.engines.threads import one_blas_thread
from icqf.errors import Advice, InputError

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # options of glibc's mallopt
MOST_CHUNKS = 512  # of one study, as a scheduler remembers every pass over each
CHUNK = 131_072  # participants: 64 blocks, or most of a second per pass
_BRANCHES = 8  # sums that are added at each node of the tree
_CONNECT_SECONDS = 5
_LONGEST_GREETING = 2**20  # bytes
_WORKERS_SECONDS = 15
_TRIES = 20  # of one pass, if workers are lost repeatedly
_SECONDS_BETWEEN_TRIES = 0.2


@dataclass(frozen=True)
class Chunk:
    """Some participants of a study, beginning at position `first`."""

    observations: Observations
    first: int

    def rows(self, states: Sequence[BlockState] | None = None) -> RowsHere:
        """Its participants, with their states."""
        return RowsHere(self.observations, first=self.first, states=states)


@dataclass(frozen=True)
class ChunkState:
    """The state of a chunk after a pass over it, and the result of that pass."""

    blocks: tuple[BlockState, ...]
    result: Any = None


@dataclass(frozen=True)
class RemoteTable(Observations):
    """Answers that stay with the workers, and what is known about all of them.

    `answers` is (0, m) and `design` (c, 0). The `parts` are futures of the engine.
    """

    parts: tuple[Any, ...] = ()
    counts: tuple[int, ...] = ()  # participants of each part
    answered: Array = field(default_factory=lambda: np.zeros(0))  # (m,), how many answered each item
    sums: Array = field(default_factory=lambda: np.zeros((3, 0)))  # see `item_sums`, in the items' own units
    total_weight: float = 0.0  # Σω
    fetch: Callable[[RemoteTable, Array], Observations] | None = None  # reads some participants

    @property
    def n(self) -> int:
        return sum(self.counts)

    @property
    def here(self) -> bool:
        return False

    def answer_counts(self) -> Array:
        return self.answered

    def item_sums(self) -> Array:
        return self.sums

    @property
    def size(self) -> float:
        return self.total_weight

    def take(self, rows: Array) -> Observations:
        """The observations of some participants (in order), which are fetched."""
        if self.fetch is None:
            raise self._not_here()
        return self.fetch(self, rows)

    def hide(self, mask: Array) -> Observations:
        raise self._not_here()

    def _of_participants(self, rows: Array | slice, stored: Array | slice, **others: Any) -> Observations:
        raise self._not_here()

    def _table(self, rows: slice) -> tuple[Array, Array]:
        raise self._not_here()

    @staticmethod
    def _not_here() -> InputError:
        return InputError(
            "This needs the answers in memory.",
            code="answers-elsewhere",
            remedy="A dask array can be fitted with solver='fast' from a named start, and scored; for "
            "anything else give a table.",
        )


def scaled_chunk(observations: Observations, scale: Array | None, first: int) -> Chunk:
    """A chunk in the units of a problem."""
    return Chunk(replace(observations, scale=scale), first)


def take_rows(observations: Observations, rows: Array) -> Observations:
    """The observations of some participants."""
    return observations.take(rows)


def join_parts(parts: Sequence[Observations], scale: Array | None) -> Observations:
    """The participants of several parts, one after the other."""
    weights = [part.weights for part in parts if part.weights is not None]
    return Observations(
        np.concatenate([part.answers for part in parts]),
        np.concatenate([part.design for part in parts], axis=1),
        np.concatenate(weights) if weights else None,
        scale=scale,
        dtype=parts[0].dtype,
    )


def start_chunk(chunk: Chunk, start: Factors) -> ChunkState:
    """The state of a chunk at the start."""
    rows = chunk.rows()
    rows.start_at(start)
    return ChunkState(rows.states)


def run_pass(chunk: Chunk, before: ChunkState | None, step: Pass) -> ChunkState:
    """A pass over a chunk; the arguments do not change."""
    keep_memory()
    rows = chunk.rows(None if before is None else before.blocks)
    with one_blas_thread():
        result = rows.apply(step)
    return ChunkState(rows.states, result)


def result_of(state: ChunkState) -> Any:
    """The result of the last pass, which is all that leaves a chunk during a fit."""
    return state.result


def factors_of(chunk: Chunk, state: ChunkState, loadings: Array) -> Factors:
    """These loadings with the scores and multipliers of a chunk, numbered from its first participant."""
    return chunk.rows(state.blocks).factors(loadings)


def n_factors_of(state: ChunkState) -> int:
    """The number of factors of the scores."""
    return len(state.blocks[0].current)


def exact_scores_of(chunk: Chunk, state: ChunkState) -> Array:
    """The scores at the end of a fit."""
    return chunk.rows(state.blocks).exact_scores()


def add_results(results: Sequence[Any]) -> Any:
    """The sum of the results of several chunks, in their order."""
    return total(results)


def size_of(part: Chunk | ChunkState) -> int:
    """Bytes to transfer to another worker."""
    return _bytes(vars(part))


def _bytes(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, dict):
        return sum(map(_bytes, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(_bytes, value))
    return _bytes(vars(value)) if hasattr(value, "__dict__") else 8


@cache
def keep_memory() -> None:
    """Let a worker process reuse the memory of arrays that come and go with every block.

    Dask starts workers with MALLOC_TRIM_THRESHOLD_ set, so that glibc returns every such array to the system,
    which takes longer than the arithmetic. These are the values that glibc adapts to by itself if nothing is
    set. Other systems do not need this, and a process that the user started is not changed.
    """
    worker = parent_process() is not None and "MALLOC_TRIM_THRESHOLD_" in os.environ
    if not worker:
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        for option, size in ((_MMAP_THRESHOLD, 2**25), (_TRIM_THRESHOLD, 2**26)):
            mallopt(option, size)


try:
    import dask
    import distributed
    from dask.sizeof import sizeof
    from distributed.comm import parse_address, parse_host_port
    from distributed.comm.registry import get_backend
except ModuleNotFoundError as error:
    raise InputError(
        "The engine 'dask' needs the packages dask and distributed, which are not installed.",
        code="no-dask",
        remedy=Advice("Install them with pip install 'icqf[cluster]', or use {engine=}.", engine="local"),
    ) from error


# The scheduler runs a task where its large arguments are.
sizeof.register(Chunk, size_of)
sizeof.register(ChunkState, size_of)


class Dask(Engine):
    """A Dask cluster. Answers and scores stay with its workers; a fit transfers only sums and loadings.

    If a worker is lost, the others repeat its work. The result is that of the local engine, to rounding,
    however many workers there are.

    Parameters
    ----------
    client : distributed.Client, optional
        The cluster; None: the one at `scheduler`, or else the current client.
    scheduler : str, optional
        The address of a scheduler, such as ``"tcp://10.0.0.5:8786"``.
    chunk : int
        Participants that are sent together and handled by one thread. Answers in this process that fit into
        one chunk are fitted here.

    Examples
    --------
    A running cluster, and one of your own::

        ICQF(8, engine=Dask(scheduler="tcp://10.0.0.5:8786")).fit(answers)

        with distributed.Client(n_workers=4) as client:
            ICQF(8, engine=Dask(client)).fit(answers)

    Few participants make one chunk, which does not use the cluster:

    >>> from icqf.engines import Dask
    >>> Dask(scheduler="tcp://10.0.0.5:8786").chunk
    131072
    """

    def __init__(self, client: Any = None, *, scheduler: str | None = None, chunk: int = CHUNK) -> None:
        if client is not None and scheduler is not None:
            raise InputError("Give a client or the address of a scheduler, not both.", code="two-clusters")
        self._given, self.scheduler, self.chunk = client, scheduler, chunk
        self._own: Any = None
        self._sent: _SentChunks | None = None

    # --- the cluster ---------------------------------------------------------------------------------

    @property
    def client(self) -> Any:
        """The client, once it has workers."""
        client = self._connected_client()
        if not client.nthreads():
            try:
                client.wait_for_workers(1, timeout=_WORKERS_SECONDS)
            except TimeoutError:
                address = client.scheduler.address
                raise InputError(
                    f"The Dask scheduler at {address} has had no worker for {_WORKERS_SECONDS} seconds.",
                    code="no-workers",
                    remedy=f"Start some: dask worker {address}",
                    address=address,
                ) from None
        return client

    def _connected_client(self) -> Any:
        if self._given is not None:
            return self._given
        address = self.scheduler
        if address is None:
            try:
                return distributed.get_client()
            except ValueError:
                address = dask.config.get("scheduler-address", None)
        if address is None:
            raise InputError(
                "There is no Dask client in this process.",
                code="no-client",
                remedy=Advice(
                    "Make one with distributed.Client(…), or name the scheduler: "
                    'engine=icqf.engines.Dask(scheduler="tcp://…").',
                    typed=Advice("Name the cluster's scheduler with {scheduler} tcp://…."),
                ),
            )
        if self._own is None or self._own.status != "running":
            self._own = _connect(address)
            weakref.finalize(self, self._own.close)
        return self._own

    def close(self) -> None:
        """Close the connection, if this engine opened it."""
        self._sent = None
        if self._own is not None:
            self._own.close()
            self._own = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __deepcopy__(self, memo: Any) -> Self:
        return self  # a cluster is not copied with the settings of a model

    def __reduce__(self) -> tuple[Any, ...]:
        return _local, ()  # work that was sent to a worker runs there, not on the cluster again

    def processes(self, shared: Sequence[Any]) -> dict[str, Any]:
        """The workers, through joblib's backend for Dask; each gets what the fits share."""
        return {"backend": "dask", "client": self.client, "scatter": list(shared)}

    # --- participants --------------------------------------------------------------------------------

    @contextmanager
    def participants(self, problem: Problem) -> Iterator[Rows]:
        """The participants of a problem, with the workers."""
        observations, client = problem.observations, self.client
        if len(chunk_edges(observations.n, self.chunk)) == 2 and not isinstance(observations, RemoteTable):
            yield RowsHere(observations)
            return
        if self._sent is None or not self._sent.is_of(observations, client):
            self._sent = _SentChunks(client, observations, self.chunk)
        rows = DaskRows(client, self._sent)
        with translate_errors():
            yield rows

    def fetch(self, observations: RemoteTable, rows: Array) -> Observations:
        """Fetch some participants (in order) from the cluster."""
        edges = np.cumsum([0, *observations.counts])
        wanted = [rows[slice(*np.searchsorted(rows, ends))] - ends[0] for ends in pairwise(edges)]
        some = [(part, own) for part, own in zip(observations.parts, wanted, strict=True) if len(own)]
        parts = self.client.gather(self.client.map(take_rows, *zip(*some, strict=True), pure=False))
        return join_parts(parts, observations.scale)


def chunk_edges(n: int, chunk: int) -> list[int]:
    """Where chunks of about this size begin among n participants, and where the last one ends."""
    number = min(MOST_CHUNKS, max(1, round(n / chunk)))
    return [round(at * n / number) for at in range(number + 1)]


class _SentChunks:
    """The chunks of some observations as futures; lost ones are sent again."""

    def __init__(self, client: Any, observations: Observations, chunk: int) -> None:
        self.client = client
        self._observations = weakref.ref(observations, self._release)
        self.elsewhere = isinstance(observations, RemoteTable)
        if isinstance(observations, RemoteTable):
            self.edges = [0, *np.cumsum(observations.counts).tolist()]
            self.futures = list(client.compute(chunks_elsewhere(observations)))
        else:
            self.edges = chunk_edges(observations.n, chunk)
            self.futures = self._send(range(len(self.edges) - 1))

    @property
    def observations(self) -> Observations:
        """The observations that were sent."""
        observations = self._observations()
        if observations is None:
            raise ValueError("These observations no longer exist.")
        return observations

    def _release(self, _: object) -> None:
        """Free the chunks of observations that no longer exist."""
        self.futures = []

    def is_of(self, observations: Observations, client: Any) -> bool:
        """Whether these are the chunks of exactly these observations, and still exist."""
        lost = any(future.cancelled() or future.status == "error" for future in self.futures)
        return self._observations() is observations and self.client is client and not lost

    def spans(self) -> list[slice]:
        """The participants of each chunk."""
        return [slice(first, last) for first, last in pairwise(self.edges)]

    def resend(self) -> list[int]:
        """Send lost chunks again, and return which these are."""
        lost = [at for at, future in enumerate(self.futures) if future.cancelled()]
        if lost and self.elsewhere:
            raise InputError(
                "The workers that held the answers are gone, and the answers cannot be rebuilt.",
                code="answers-lost",
                remedy="Use a dask array that is read from a file, or scatter its parts to several workers.",
            )
        for at, future in zip(lost, self._send(lost), strict=True):
            self.futures[at] = future
        return lost

    def _send(self, which: Sequence[int]) -> list[Any]:
        spans = [slice(*self.edges[at : at + 2]) for at in which]
        chunks = [Chunk(self.observations.part(rows), rows.start) for rows in spans]
        # Directly to the workers; the scheduler only learns where a chunk is.
        return list(self.client.scatter(chunks, direct=True, hash=False)) if chunks else []


def chunks_elsewhere(observations: RemoteTable) -> list[Any]:
    """The parts of answers on a cluster as chunks, which are made there."""
    firsts = np.cumsum([0, *observations.counts[:-1]]).tolist()
    make = dask.delayed(scaled_chunk, pure=True)
    parts = zip(observations.parts, firsts, strict=True)
    return [make(part, observations.scale, first) for part, first in parts]


class DaskRows:
    """All participants of a problem, in chunks on the workers of a cluster.

    Every pass is one task per chunk, which starts from the result of the task before. The scheduler knows
    this chain and repeats it if a worker is lost. Only chunks that were sent from here must be sent again,
    with all passes, which are recorded for this.
    """

    def __init__(self, client: Any, sent: _SentChunks) -> None:
        self._client, self._sent = client, sent
        self._start: Factors | None = None
        self._steps: list[Pass] = []
        self._states: list[Any] = [None] * len(sent.futures)

    def start_at(self, start: Factors) -> None:
        """Begin at these scores and multipliers."""
        self._start, self._steps = start, []
        self._states = self._initial_states(range(len(self._states)))

    def apply(self, step: Pass) -> Any:
        """Make a pass over all chunks and return the sum of the results."""
        result = self._retry(lambda: self._pass(step))
        self._steps.append(step)
        return result

    def factors(self, loadings: Array) -> Factors:
        """These loadings with the current scores and multipliers of all participants."""
        if not self._sent.observations.here:
            return Factors(np.empty((len(loadings) - self._sent.observations.c, 0)), loadings)
        parts = self._gathered(factors_of, loadings=loadings)
        at_bound = [
            (rows.start, part.multipliers)
            for rows, part in zip(self._sent.spans(), parts, strict=True)
            if part.multipliers is not None
        ]
        scores = np.concatenate([part.scores for part in parts], axis=1)
        return Factors(scores, loadings, Multipliers.joined(at_bound) if at_bound else None)

    def exact_scores(self) -> Array:
        """The scores (k, n) at the end of the fit; (k, 0) if they stay on the cluster."""
        if not self._sent.observations.here:
            k = self._retry(lambda: self._client.submit(n_factors_of, self._states[0]).result())
            return np.empty((k, 0))
        return np.concatenate(self._gathered(exact_scores_of), axis=1)

    # --- passes --------------------------------------------------------------------------------------

    def _pass(self, step: Pass) -> Any:
        states = self._next_states(self._sent.futures, self._states, step)
        level = self._client.map(result_of, states, pure=False)
        while len(level) > 1:
            groups = [level[at : at + _BRANCHES] for at in range(0, len(level), _BRANCHES)]
            level = self._client.map(add_results, groups, pure=False)
        result = level[0].result()
        self._states = states  # releases the earlier ones; the scheduler still knows how to make them
        return result

    def _next_states(self, chunks: Sequence[Any], states: Sequence[Any], step: Pass) -> list[Any]:
        return list(self._client.map(run_pass, chunks, states, step=step, pure=False))

    def _gathered(self, work: Callable[..., Any], **settings: Any) -> list[Any]:
        """The results of `work` on each chunk."""
        return self._retry(
            lambda: self._client.gather(
                self._client.map(work, self._sent.futures, self._states, pure=False, **settings)
            )
        )

    def _initial_states(self, which: Sequence[int]) -> list[Any]:
        """States of some chunks before the first pass."""
        if self._start is None:
            return [None for _ in which]
        start, spans = self._start, self._sent.spans()
        known = start.multipliers
        parts = [
            Factors(start.scores[:, rows], start.loadings, None if known is None else known.within(rows))
            for rows in (spans[at] for at in which)
        ]
        sent = self._client.scatter(parts, direct=True, hash=False)
        return list(self._client.map(start_chunk, [self._sent.futures[at] for at in which], sent, pure=False))

    # --- lost workers --------------------------------------------------------------------------------

    def _retry(self, work: Callable[[], Any]) -> Any:
        """The result of `work`; if chunks were lost, they are restored and the work is repeated."""
        for _ in range(_TRIES):
            try:
                return work()
            except CancelledError:
                if self._client.status != "running":
                    break
                time.sleep(_SECONDS_BETWEEN_TRIES)  # until the scheduler has reported all losses
                self._restore()
        raise InputError(
            "The Dask cluster was lost during the fit.",
            code="cluster-lost",
            remedy="Check that its scheduler and workers are running, and fit again.",
        )

    def _restore(self) -> None:
        """Send lost chunks again, and repeat the earlier passes over them."""
        resent = self._sent.resend()
        gone = [at for at, state in enumerate(self._states) if state is not None and state.cancelled()]
        lost = sorted({*resent, *gone})
        chunks, states = [self._sent.futures[at] for at in lost], self._initial_states(lost)
        for step in self._steps:
            states = self._next_states(chunks, states, step)
        for at, state in zip(lost, states, strict=True):
            self._states[at] = state


@contextmanager
def translate_errors() -> Iterator[None]:
    """Turn errors of a cluster into messages for users."""
    try:
        yield
    except distributed.KilledWorker as error:
        raise InputError(
            f"{error.allowed_failures + 1} workers died one after another on the same chunk of participants.",
            code="workers-killed",
            remedy=Advice(
                "They may need more memory, or smaller chunks: Dask(chunk=…).",
                typed="They may need more memory.",
            ),
        ) from error
    except (TimeoutError, CancelledError) as error:
        raise InputError(
            "No worker of the Dask cluster responds.",
            code="no-workers",
            remedy="Start workers again, and fit again.",
        ) from error
    except OSError as error:
        raise InputError(
            f"A worker of the cluster cannot read the answers ({error}).",
            code="worker-cannot-read",
            remedy="Store them in a folder that all workers can read; for tables in parts, set TMPDIR.",
        ) from error


def _connect(address: str) -> Any:
    try:
        _check_reachable(address)
        return distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(
            f"No Dask scheduler responds at {address} ({str(error).splitlines()[0].rstrip('.')}).",
            code="no-scheduler",
            remedy="Start one with `dask scheduler`, which prints its address, or correct the address.",
            address=address,
        ) from None


def _check_reachable(address: str) -> None:
    """Check that a scheduler listens, as a client would wait long and fail obscurely otherwise."""
    scheme, location = parse_address(address)
    get_backend(scheme)
    if scheme not in ("tcp", "tls"):
        return
    with socket.create_connection(parse_host_port(location), timeout=_CONNECT_SECONDS) as connection:
        # A scheduler sends first, beginning with the length of its message.
        if scheme == "tcp" and not 0 < int.from_bytes(connection.recv(8), "little") < _LONGEST_GREETING:
            raise ValueError("something else listens there")


def _local() -> Engine:
    return LOCAL


DASK = Dask()
