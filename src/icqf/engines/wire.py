"""Passes over participants as plain words and numbers, and back: only those that a fit makes.

What is read may have been written by anybody, so every field has a kind and every array a shape; anything
else is refused. Bounds and penalty are not read at all: they are those of the reader.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from icqf.solvers.block_step import Loadings
from icqf.solvers.certificate import Examine, LoadingRoom
from icqf.solvers.fast import MoveMultipliers, Step
from icqf.solvers.finish import HighestConfoundPart, SolveScores
from icqf.solvers.problem import Array, Terms
from icqf.solvers.rows import InTurn, Pass, Rescale
from icqf.solvers.start import (
    Answered,
    Drawn,
    Filling,
    ForgetLeft,
    KeepLeft,
    Measure,
    Place,
    Products,
    Projected,
)

_LARGEST = 1e12  # of a number in a request
_AT_ONCE = 64  # most vectors that one pass is about
_MOST_STEPS = 5


@dataclass(frozen=True)
class Dimensions:
    """Factors k, columns of the confound design c, and items m."""

    k: int
    c: int
    m: int

    def of(self, name: str) -> int:
        """A length by its letter: K is k + c, and pairs are those of K rows."""
        K = self.k + self.c
        return {"k": self.k, "c": self.c, "m": self.m, "K": K, "pairs": K * (K + 1) // 2, "two": 2}[name]


def told(step: Pass) -> tuple[dict[str, Any], dict[str, Array]]:
    """A pass as plain values, and its arrays by where they stand in it.

    Examples
    --------
    >>> import numpy as np
    >>> from icqf.engines.wire import told
    >>> from icqf.solvers.rows import Rescale
    >>> told(Rescale(np.array([0.5]), 1.0))
    ({'kind': 'Rescale', 's': {'array': 's'}, 'top': 1.0}, {'s': array([0.5])})
    """
    arrays: dict[str, Array] = {}

    def tell(value: Any, where: str) -> Any:
        if isinstance(value, np.ndarray):
            arrays[where] = value
            return {"array": where}
        if isinstance(value, Terms):
            return {"kind": "Terms", "sigma": float(value.sigma)}
        if is_dataclass(value):
            parts = {
                each.name: tell(getattr(value, each.name), f"{where}.{each.name}".lstrip("."))
                for each in fields(value)
            }
            return {"kind": type(value).__name__, **parts}
        if isinstance(value, tuple):
            return [tell(each, f"{where}.{at}") for at, each in enumerate(value, start=1)]
        return value.item() if isinstance(value, np.generic) else value

    return tell(step, ""), arrays


def understood(plain: Any, arrays: Mapping[str, Array], dimensions: Dimensions, terms: Terms) -> Pass:
    """The pass that `told` told; ValueError for what is none."""
    step: Pass = _Reader(arrays, dimensions, terms).part(plain, _PASSES)
    return step


class _Reader:
    def __init__(self, arrays: Mapping[str, Array], dimensions: Dimensions, terms: Terms) -> None:
        self.arrays, self.dimensions, self.terms = arrays, dimensions, terms

    def part(self, plain: Any, kinds: tuple[type, ...]) -> Any:
        named = {kind.__name__: kind for kind in kinds}
        if not isinstance(plain, dict) or plain.get("kind") not in named:
            raise ValueError(f"it asks for {str(plain)[:60]}")
        kind = named[plain["kind"]]
        readers = _FIELDS[kind]
        if {*plain} != {"kind", *readers}:
            raise ValueError(f"{kind.__name__} has other parts")
        return kind(**{name: read(self, plain[name]) for name, read in readers.items()})

    def array(self, plain: Any) -> Array:
        if not isinstance(plain, dict) or {*plain} != {"array"} or plain["array"] not in self.arrays:
            raise ValueError("it lacks an array")
        return self.arrays[plain["array"]]


Read = Callable[[_Reader, Any], Any]


def _numbers(*shape: str, least: float = -_LARGEST, below: str = "") -> Read:
    """Finite numbers of this shape ("some" being any small length); `below` makes them places in a list."""

    def read(reader: _Reader, plain: Any) -> Array:
        array = reader.array(plain)
        lengths = [None if name == "some" else reader.dimensions.of(name) for name in shape]
        most = reader.dimensions.of("K") * reader.dimensions.m if below else _AT_ONCE
        right = array.ndim == len(shape) and all(
            0 < found <= most if wanted is None else found == wanted
            for found, wanted in zip(array.shape, lengths, strict=True)
        )
        if not right:
            raise ValueError(f"an array has the shape {array.shape}")
        if not (np.isfinite(array) & (array >= least) & (array <= _LARGEST)).all():
            raise ValueError("an array holds numbers that cannot be")
        if not below:
            return array
        places = array.astype(np.intp)
        if (places != array).any() or (places < 0).any() or (places >= reader.dimensions.of(below)).any():
            raise ValueError("an array holds places that are none")
        return places

    return read


def _number(low: float, high: float) -> Read:
    def read(reader: _Reader, plain: Any) -> float:
        if type(plain) not in (int, float) or not low <= plain <= high:
            raise ValueError(f"{str(plain)[:40]} is not a number between {low:g} and {high:g}")
        return float(plain)

    return read


def _flag(reader: _Reader, plain: Any) -> bool:
    if type(plain) is not bool:
        raise ValueError(f"{str(plain)[:40]} is neither true nor false")
    return plain


def _length(name: str) -> Read:
    def read(reader: _Reader, plain: Any) -> int:
        if type(plain) is not int or plain != reader.dimensions.of(name):
            raise ValueError(f"it is about {str(plain)[:40]} instead of {reader.dimensions.of(name)}")
        return plain

    return read


def _count(reader: _Reader, plain: Any) -> int:
    if type(plain) is not int or not 0 < plain < 2**40:
        raise ValueError(f"{str(plain)[:40]} is no number of participants")
    return plain


def _top(reader: _Reader, plain: Any) -> float | None:
    if plain != reader.terms.bounds.score:
        raise ValueError("it has another bound of the scores")
    return reader.terms.bounds.score


def _terms(reader: _Reader, plain: Any) -> Terms:
    if not isinstance(plain, dict) or {*plain} != {"kind", "sigma"} or plain["kind"] != "Terms":
        raise ValueError("its terms are not ones")
    sigma = _number(0.0, _LARGEST)(reader, plain["sigma"])
    return Terms(reader.terms.bounds, reader.terms.penalty, sigma)


def _state(reader: _Reader, plain: Any) -> Any:
    """That of a PCG64 generator."""
    numbers = plain.get("state") if isinstance(plain, dict) else None
    if not isinstance(numbers, dict) or {*numbers} != {"state", "inc"}:
        raise ValueError("its generator is not one")
    if not all(type(number) is int and 0 <= number < 2**128 for number in numbers.values()):
        raise ValueError("its generator is not one")
    return {"bit_generator": "PCG64", "state": dict(numbers), "has_uint32": 0, "uinteger": 0}


def _part(*kinds: type) -> Read:
    return lambda reader, plain: reader.part(plain, kinds)


def _steps(reader: _Reader, plain: Any) -> tuple[Any, ...]:
    if not isinstance(plain, list) or not 0 < len(plain) <= _MOST_STEPS:
        raise ValueError("it is no list of passes")
    return tuple(reader.part(each, (MoveMultipliers, Rescale, Step)) for each in plain)


_source = _part(Projected, Drawn)
_filling = _part(Filling)
_FIELDS: dict[type, dict[str, Read]] = {
    InTurn: {"steps": _steps},
    Step: {"loadings": _part(Loadings), "terms": _terms, "momentum": _number(0, 1), "look": _flag},
    Loadings: {"Q": _numbers("K", "m", least=0), "k": _length("k")},
    MoveMultipliers: {"Q": _numbers("K", "m", least=0), "terms": _terms},
    Rescale: {"s": _numbers("k", least=0), "top": _top},
    Answered: {},
    Filling: {"means": _numbers("m", least=0), "centred": _flag},
    Products: {"filling": _filling},
    KeepLeft: {"filling": _filling, "right": _numbers("m", "some")},
    ForgetLeft: {},
    Projected: {"mixing": _numbers("some", "some")},
    Drawn: {"state": _state, "n": _count, "k": _length("k")},
    Measure: {"source": _source},
    Place: {"source": _source, "scale": _numbers("k", least=0), "top": _top, "filling": _filling},
    SolveScores: {"Q": _numbers("K", "m", least=0), "terms": _terms, "tol": _number(0, 1)},
    HighestConfoundPart: {"Q": _numbers("c", "m", least=0)},
    Examine: {
        "Q": _numbers("K", "m", least=0),
        "terms": _terms,
        "span": _numbers("m", least=0),
        "score_unit": _numbers("k", least=0),
    },
    LoadingRoom: {
        "Q": _numbers("K", "m", least=0),
        "bound": _numbers("m", least=0),
        "factors": _numbers("some", below="K"),
        "items": _numbers("some", below="m"),
    },
}
_PASSES = (
    *(InTurn, Step, Answered, Products, KeepLeft, ForgetLeft, Measure, Place),
    *(SolveScores, HighestConfoundPart, Examine, LoadingRoom),
)
