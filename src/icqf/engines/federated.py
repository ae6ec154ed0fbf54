"""The engine of several sites that may not share participants: passes are files, and only sums come back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from icqf.engines.base import Engine
from icqf.engines.sent import arrived, asked
from icqf.engines.wire import Dimensions, told
from icqf.errors import InputError
from icqf.io.exchange import Exchange, Message, write_message
from icqf.solvers.problem import Array, Problem
from icqf.solvers.result import Factors
from icqf.solvers.rows import Pass, Rows, total

_ALIKE = 1e-6  # relative difference of a request from the one that is in the folder already


@dataclass(frozen=True, eq=False)
class Participation:
    """A site that takes part: its name, its number of participants, Σω, and the answers to each item (m,)."""

    site: str
    n: int
    size: float
    counts: Array
    token: str


@dataclass(frozen=True)
class RoundDone:
    """What a callback is told after each round."""

    round: int
    kind: str
    seconds: float


class Federated(Engine):
    """Participants at several sites, which answer requests in a shared folder.

    Parameters
    ----------
    exchange : Exchange
        The folder.
    sites : sequence of Participation
        Those that take part, in the order of the plan.
    k : int
        The number of factors.
    plan : str
        The digest of the plan that all have agreed on.
    callback : callable, optional
        Told of each `RoundDone`.
    """

    def __init__(
        self,
        exchange: Exchange,
        sites: Sequence[Participation],
        *,
        k: int,
        plan: str,
        callback: Callable[[RoundDone], object] | None = None,
    ) -> None:
        self.exchange, self.sites, self.k = exchange, tuple(sites), k
        self.plan, self.callback = plan, callback
        self.rounds = 0

    @contextmanager
    def participants(self, problem: Problem) -> Iterator[Rows]:
        """The participants of a problem, each at its site."""
        yield RowsElsewhere(self, problem)

    def ask(self, step: Pass, dimensions: Dimensions, *, widest: float) -> Any:
        """Make a pass at all sites; what they found, added up."""
        began = time.monotonic()
        self.rounds += 1
        request = self._requested(step)
        found = []
        for site in self.sites:
            path = self.exchange.answer(self.rounds, site.site)
            message = self.exchange.wait_for(path, self._late(site.site))
            if message is None:
                raise ValueError("An answer is there or late.")
            self._check(message, site, request.digest, path.name)
            try:
                found.append(arrived(step, message.arrays, dimensions, size=site.size, widest=widest))
            except ValueError as error:
                raise InputError(
                    f"{path.name}: what {site.site!r} sent cannot be used ({error}).",
                    code="site-nonsense",
                    remedy="Ask the site which version of icqf it runs, and whether the file came through.",
                    site=site.site,
                    round=self.rounds,
                ) from None
        if self.callback is not None:
            self.callback(RoundDone(self.rounds, type(asked(step)).__name__, time.monotonic() - began))
        return total(found)

    def finish(self) -> None:
        """Tell the sites that no more is asked."""
        if not self.exchange.end.exists():
            write_message(self.exchange.end, {"plan": self.plan, "rounds": self.rounds}, {})

    def _requested(self, step: Pass) -> Message:
        """The request of this round, which is in the folder already where a broken-off fit goes on."""
        plain, arrays = told(step)
        firsts = np.cumsum([0, *(site.n for site in self.sites)])[:-1]
        header = {
            "plan": self.plan,
            "round": self.rounds,
            "first": {site.site: int(first) for site, first in zip(self.sites, firsts, strict=True)},
            "pass": plain,
        }
        path = self.exchange.request(self.rounds)
        if path.exists():
            earlier = self.exchange.wait_for(path, self._late("the coordinator"))
            if earlier is None or not _same(earlier, header, arrays):
                raise InputError(
                    f"{path.name}: the folder holds a request of another fit.",
                    code="other-fit",
                    remedy="Use an empty folder for each fit.",
                )
            return earlier
        return Message(header, arrays, write_message(path, header, arrays))

    def _check(self, message: Message, site: Participation, request: str, name: str) -> None:
        said = message.header
        expected = {"plan": self.plan, "site": site.site, "round": self.rounds, "request": request}
        for field, value in expected.items():
            if said.get(field) != value:
                what = {"plan": "another plan", "request": "another request"}.get(field, f"another {field}")
                raise InputError(
                    f"{name}: this answers {what} than the one of this fit (site {site.site!r}, "
                    f"round {self.rounds}).",
                    code="other-answer",
                    remedy="All must use the same plan and an empty folder; begin again in a new one.",
                    site=site.site,
                )
        if said.get("token") != site.token:
            raise InputError(
                f"{name}: two sites answer under the name {site.site!r}, or its data have changed since it "
                "announced itself.",
                code="same-name",
                remedy="Give each site the name that it has in the plan, and begin again in an empty folder.",
                site=site.site,
            )

    def _late(self, site: str) -> Callable[[float], InputError]:
        return lambda seconds: InputError(
            f"{site!r} has not answered round {self.rounds} within {seconds / 60:.3g} minutes.",
            code="site-late",
            remedy="See that it runs; then give the same command again, which goes on from here.",
            site=site,
            round=self.rounds,
        )


def _same(earlier: Message, header: dict[str, Any], arrays: dict[str, Array]) -> bool:
    """Whether a request is the earlier one, but for the last digits that another run may give."""
    if {*earlier.arrays} != {*arrays} or not _alike(earlier.header, header):
        return False
    return all(
        earlier.arrays[name].shape == np.shape(array)
        and np.allclose(earlier.arrays[name], array, rtol=_ALIKE, atol=_ALIKE * np.abs(array).max(initial=0))
        for name, array in arrays.items()
    )


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return {*one} == {*other} and all(_alike(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return bool(np.isclose(one, other, rtol=_ALIKE, atol=1e-12))
    return bool(one == other)


class RowsElsewhere:
    """All participants of a problem, at their sites; their scores stay there."""

    def __init__(self, engine: Federated, problem: Problem) -> None:
        self.engine, self.problem = engine, problem

    def start_at(self, start: Factors) -> None:
        raise InputError(
            "A federated fit begins at a start by name, because scores stay at the sites.",
            code="federated-start",
            remedy='Use init="nndsvd", "rotated" or "random".',
        )

    def apply(self, step: Pass) -> Any:
        dimensions = Dimensions(self.engine.k, self.problem.c, self.problem.m)
        return self.engine.ask(step, dimensions, widest=float(self.problem.span.max()))

    def factors(self, loadings: Array) -> Factors:
        return Factors(np.empty((len(loadings) - self.problem.c, 0)), loadings)

    def exact_scores(self) -> Array:
        return np.empty((self.engine.k, 0))
