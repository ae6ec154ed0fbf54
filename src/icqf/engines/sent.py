"""What leaves a site: which sums, in which words, and how they are made about nobody in particular.

Most of what a pass finds are sums over all participants of a site, and these leave as they are. Some are not:

- the largest of something is that of one participant. It is left out where the fit can do without, and
  rounded up where the fit only compares it with its tolerance, on a grid on which the comparison comes out
  the same;
- sums over those who press against the range of an item are sums over a few, and the next round's may be over
  one more. They only say how fast loadings may move, and are replaced by a number of participants, rounded
  up: the coordinator takes them for so many average ones, several times over, so that no step is too long.

With `Discretion.group` at 1 all is sent as it is, and a fit equals that of the pooled participants.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from icqf.engines.wire import Dimensions
from icqf.solvers.block_step import Sums
from icqf.solvers.certificate import Examine, Examined, LoadingRoom, Room
from icqf.solvers.fast import Step
from icqf.solvers.finish import HighestConfoundPart, Peaks, SolveScores
from icqf.solvers.observations import Block
from icqf.solvers.problem import Array, Terms
from icqf.solvers.rows import Held, InTurn, Pass, RowsHere
from icqf.solvers.start import Answered, Drawn, GramSums, Measure, Place, Products, Sizes, Source, Totals

_PEAK_STEPS = 20  # of the scores' range, to which the highest score of a site is rounded up
_SETTLED = 8.0  # times tol: what the moves of scores and the excess are first compared with
_INSIDE = 1e-9  # of the range: what confounds alone may reach is told only from here on
_CAREFUL = 4.0  # times an average participant: what a participant who presses is taken for, at least
_MOST = 1e6  # times what all participants together can plausibly add to a sum


@dataclass(frozen=True)
class Quantity:
    """Something that leaves a site: what it is in plain words, and its shape in letters.

    `adds` is false for the largest or smallest of something, which is coarse.
    """

    words: str
    shape: tuple[str, ...] = ()
    adds: bool = True


_GRAM = "sums of products of scores and confounds, pair by pair"
SENT: dict[type, dict[str, Quantity]] = {
    Answered: {
        "answers": Quantity("sum of the answers to each item", ("m",)),
        "count": Quantity("number of answers to each item (their weights added up)", ("m",)),
    },
    Products: {"products": Quantity("sums of products of answers, pair of items by pair", ("m", "m"))},
    Measure: {
        "squares": Quantity("sums of squares of first guesses of the scores", ("two", "some")),
        "sums": Quantity("sums of first guesses of the scores", ("two", "some")),
    },
    Place: {
        "S": Quantity(_GRAM, ("K", "K")),
        "P": Quantity("sums of products of scores or confounds and answers", ("K", "m")),
    },
    Step: {
        "S": Quantity(_GRAM, ("K", "K")),
        "P": Quantity("sums of products of scores or confounds and the answers aimed at", ("K", "m")),
        "active": Quantity(
            "sums of products of scores and confounds over those who reach an item's highest answer",
            ("pairs", "m"),
        ),
        "pressing": Quantity(
            "participants who reach an item's highest answer, rounded up", ("m",), adds=False
        ),
        "mass": Quantity("sum of the scores of each factor", ("k",)),
        "misfit": Quantity("half the sum of all squared errors"),
        "penalty": Quantity("penalty of all scores"),
        "peak": Quantity("upper limit of the scores of each factor, coarse", ("k",), adds=False),
        "step": Quantity("upper limit of the last moves of the scores, coarse", ("k",), adds=False),
        "excess": Quantity("upper limit of what reconstructed answers exceed, coarse", adds=False),
    },
    SolveScores: {},
    HighestConfoundPart: {
        "peaks": Quantity("the range of each item, or what confounds alone exceed it by", ("m",), adds=False)
    },
    Examine: {
        "misfit": Quantity("half the sum of all squared errors"),
        "penalty": Quantity("penalty of all scores"),
        "pull": Quantity("sums of products of scores or confounds and errors", ("K", "m")),
        "curvature": Quantity(
            "sums of squared scores and confounds over those who answered each item", ("K", "m")
        ),
        "together": Quantity(
            "sums of products of scores or confounds and answers around their means", ("K", "m")
        ),
        "sse": Quantity("sum of squared errors of each item", ("m",)),
        "total": Quantity("sum of the answers to each item", ("m",)),
        "total_square": Quantity("sum of the squared answers to each item", ("m",)),
        "count": Quantity("number of answers to each item (their weights added up)", ("m",)),
        "excess": Quantity("what reconstructed answers exceed their range by: 0", adds=False),
        "score_step": Quantity("upper limit of how far a score could still move, coarse", adds=False),
        "gain": Quantity("upper limit of what moving a score would gain, coarse", adds=False),
    },
    LoadingRoom: {
        "room": Quantity("upper limit of how much some loadings could rise, coarse", ("some",), adds=False)
    },
}
_OPTIONAL = ("active", "pressing")  # one of them, where anybody presses


def asked(step: Pass) -> Pass:
    """The pass whose findings count: the last one of several."""
    return step.steps[-1] if isinstance(step, InTurn) else step


def quantities(step: Pass) -> dict[str, Quantity]:
    """What a pass finds, by name; nothing for passes that only change what is kept of participants."""
    return SENT.get(type(asked(step)), {})


@dataclass(frozen=True)
class Discretion:
    """How a site keeps what it sends about nobody in particular.

    Attributes
    ----------
    group : int
        Fewest participants that a sum over some of them may be about; 1 switches everything here off.
    tol : float
        The tolerance of the fit, from which the grids are made.
    digits : int
        Significant digits of sums; 0 keeps all.
    """

    group: int = 5
    tol: float = 1e-3
    digits: int = 0

    def rounded(self, sums: Array) -> Array:
        """Sums with as many significant digits as are asked for."""
        if not self.digits:
            return sums
        size = np.floor(np.log10(np.where(sums == 0, 1.0, np.abs(sums))))
        unit = 10.0 ** (size - self.digits + 1)
        return np.asarray(np.rint(sums / unit) * unit)


class SiteRows:
    """The participants of one site, who answer what a fit asks, and of whom only sums leave."""

    def __init__(self, rows: RowsHere, terms: Terms, guard: Discretion) -> None:
        self.rows, self.terms, self.guard = rows, terms, guard
        self._means = np.zeros(rows.observations.m)  # of all sites' answers, as the start is told

    def apply(self, step: Pass) -> dict[str, Array]:
        """Make a pass; what leaves the site, by name."""
        found, last = self.rows.apply(step), asked(step)
        if isinstance(last, Place):
            self._means = last.filling.means
        leaving = self._leaving(last, found)
        return {
            name: self.guard.rounded(leaving[name]) if known.adds else leaving[name]
            for name, known in quantities(step).items()
            if name in leaving
        }

    def _leaving(self, last: Pass, found: Any) -> dict[str, Array]:
        coarse: dict[str, Array] = {}
        if isinstance(last, Step):
            found, coarse = self._of_step(last, found)
        elif isinstance(last, Examine):
            found = self._of_examination(found)
        elif isinstance(last, HighestConfoundPart):
            bound = np.asarray(self.terms.bounds.reconstruction)
            found = Peaks(np.maximum(found.peaks, bound * (1 - _INSIDE)))
        elif isinstance(last, LoadingRoom):
            wide = last.bound[last.items]
            room = np.minimum(found.room, wide)
            found = Room(room if self.guard.group < 2 else raised(room, self.guard.tol * wide))
        elif isinstance(last, Measure) and self.guard.group > 1:
            few = self.rows.apply(_CountParts(last.source)) < self.guard.group
            found = Sizes(np.where(few, 0.0, found.squares), np.where(few, 0.0, found.sums))
        elif isinstance(last, Products):
            return {"products": found}
        names = SENT.get(type(last), {})
        every = {name: getattr(found, name, None) for name in names} | coarse
        return {name: np.asarray(each, dtype=np.float64) for name, each in every.items() if each is not None}

    def _of_step(self, step: Step, found: Sums) -> tuple[Sums, dict[str, Array]]:
        Q, group = step.loadings.Q, self.guard.group
        # P + cross Q is all that the loadings' step needs of the two; apart, they would tell those who press.
        found = replace(found, P=found.P + found.cross @ Q)
        if group < 2:
            return found, {}
        coarse = {}
        if found.active is not None:
            coarse["pressing"] = np.ceil(self.rows.apply(_CountPressing(Q, step.terms)) / group) * group
        unit, top = _SETTLED * self.guard.tol * (1 - 1e-9), self.terms.bounds.score or 1.0
        peak = np.ceil(found.peak / top * _PEAK_STEPS - 1e-9) / _PEAK_STEPS * top
        found = replace(
            found,
            active=None,
            peak=np.minimum(peak, top),
            step=raised(found.step, unit),
            excess=float(raised(found.excess, unit)),
        )
        return found, coarse

    def _of_examination(self, found: Examined) -> Examined:
        together = found.together - found.answered * self._means
        found = replace(found, together=together, excess=max(found.excess, 0.0))
        if self.guard.group < 2:
            return found
        unit = self.guard.tol * (1 - 1e-9)
        return replace(
            found,
            score_step=float(raised(found.score_step, unit)),
            gain=float(raised(found.gain, unit)),
        )


def raised(values: Any, unit: Any) -> Array:
    """Numbers of at least 0 rounded up to `unit` times a power of two.

    Examples
    --------
    >>> raised([0.0, 0.3, 0.5, 5.0], 0.5)
    array([0. , 0.5, 0.5, 8. ])
    """
    values = np.asarray(values, dtype=np.float64)
    some = values > 0
    power = np.ceil(np.log2(np.where(some, values / unit, 1.0)) - 1e-9)
    return np.where(some, unit * 2.0**power, 0.0)


@dataclass(frozen=True)
class _CountPressing:
    """Count those who press against each item's range (m,), after a step with loadings Q. Stays at a site."""

    Q: Array
    terms: Terms

    def __call__(self, block: Block, held: Held) -> tuple[Held, Array]:
        pressed = held.multipliers
        if pressed is None or not len(pressed.rows):
            return held, np.zeros(self.Q.shape[1])
        A = np.concatenate([held.current[:, pressed.rows], block.C[:, pressed.rows]])
        excess = A.T @ self.Q - np.asarray(self.terms.bounds.reconstruction)
        return held, np.count_nonzero(pressed.values + self.terms.sigma * excess > 0, axis=0).astype(float)


@dataclass(frozen=True)
class _CountParts:
    """Count those whose first guess of a score is positive, and negative (2, k). Stays at a site."""

    source: Source

    def __call__(self, block: Block, held: Held) -> tuple[Held, Array]:
        raw = self.source.of(block, held)
        return held, np.stack([(raw > 0).sum(axis=1), (raw < 0).sum(axis=1)])


def arrived(
    step: Pass, arrays: Mapping[str, Array], dimensions: Dimensions, *, size: float, widest: float
) -> Any:
    """What a pass found at a site, from what the site sent; ValueError for what cannot be.

    `size` is Σω of the site, and `widest` the widest range of an item.
    """
    last, expected = asked(step), quantities(step)
    absent = sorted({*expected} - {*arrays} - {*_OPTIONAL})
    strange = sorted({*arrays} - {*expected})
    if absent or strange:
        raise ValueError(f"it lacks {absent[0]!r}" if absent else f"{strange[0]!r} was not asked for")
    limit = _MOST * size * dimensions.m * max(1.0, widest) ** 2
    for name, array in arrays.items():
        shape = tuple(
            _some(last) if letter == "some" else dimensions.of(letter) for letter in expected[name].shape
        )
        if array.shape != shape:
            raise ValueError(f"{name!r} has the shape {array.shape} instead of {shape}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name!r} holds numbers that are not finite")
        if np.abs(array).max(initial=0.0) > limit:
            raise ValueError(
                f"{name!r} holds {np.abs(array).max():.3g}, more than all its participants could add"
            )
    return _found(last, arrays, dimensions, size)


def _some(last: Any) -> int:
    """The length that depends on what was asked."""
    if isinstance(last, LoadingRoom):
        return len(last.items)
    source = last.source
    return source.k if isinstance(source, Drawn) else int(source.mixing.shape[1])


def _found(last: Pass, arrays: Mapping[str, Array], dimensions: Dimensions, size: float) -> Any:
    K = dimensions.of("K")
    plain: dict[str, Any] = {name: array if array.ndim else float(array) for name, array in arrays.items()}
    if isinstance(last, Step):
        pressing, active = plain.pop("pressing", None), plain.pop("active", None)
        if pressing is not None:
            average = plain["S"][np.triu_indices(K)] / size
            active = _CAREFUL * last.terms.sigma * average[:, None] * pressing
        return Sums(cross=np.zeros((K, K)), active=active, **plain)
    if isinstance(last, Examine):
        return Examined(answered=np.zeros((K, dimensions.m)), **plain)
    if isinstance(last, SolveScores):
        return Peaks(np.ones(dimensions.k))  # scores have a bound, so that their highest is not needed
    if isinstance(last, Products):
        return arrays["products"]
    kinds: dict[type, type] = {
        Answered: Totals,
        Measure: Sizes,
        Place: GramSums,
        HighestConfoundPart: Peaks,
        LoadingRoom: Room,
    }
    kind = kinds.get(type(last))
    return None if kind is None else kind(**arrays)
